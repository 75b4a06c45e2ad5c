"""Pictures of models in discrete time."""

import numpy as np
import pytest

import ltinet

pytest.importorskip("matplotlib")


def model() -> ltinet.StateSpace:
    return ltinet.StateSpace([[1.6, -0.8], [1.0, 0.0]], [[1.0], [0.0]], [[0.1, 0.1]], dt=0.1)


def test_values_at_samples_are_drawn_as_stairs() -> None:
    system = model()
    axes = system.simulate(np.sin(np.arange(30))).plot().axes[0]
    assert {line.get_drawstyle() for line in axes.lines} == {"steps-post"}
    again = system.impulse_response(20, input=0).plot(ax=axes)
    assert again is axes.figure
    panels = ltinet.construct(system).plot.step().axes
    assert panels[0].lines[-1].get_drawstyle() == "steps-post"
    continuous = system.to_continuous().step_response(input=0).plot().axes[0]
    assert {line.get_drawstyle() for line in continuous.lines} == {"default"}


@pytest.mark.parametrize("kind", ["bode", "nyquist", "impulse"])
def test_all_pictures_are_drawn(kind: str) -> None:
    for source in (model(), ltinet.construct(model())):
        assert getattr(source.plot, kind)() is not None
        assert source.plot() is not None
