"""Poles are crosses and zeros circles at their places; discrete-time systems show the unit circle."""

import numpy as np
import pytest

import ltinet
from ltinet.errors import PlottingError
from ltinet.plotting import draw_pole_zero_map


@pytest.mark.parametrize("dt", [None, 0.1])
def test_poles_and_zeros_are_at_their_places(dt):
    continuous = ltinet.as_state_space(([1.0, 2.0, 5.0], [1.0, 1.0, 4.0, 2.0]))
    system = continuous if dt is None else continuous.to_discrete(dt)
    axes = ltinet.pzmap(system).axes[0]
    groups = {group.get_label(): np.asarray(group.get_offsets()) for group in axes.collections}
    for name, values in (("poles", system.poles()), ("zeros", system.zeros())):
        np.testing.assert_array_equal(groups[name], np.column_stack([values.real, values.imag]))
    circles = [line for line in axes.lines if len(line.get_xdata()) > 100]
    assert len(circles) == (0 if dt is None else 1)


def test_a_static_gain_says_that_there_is_nothing_to_draw():
    axes = ltinet.pzmap(ltinet.StateSpace([], [], [], 2.0)).axes[0]
    assert "static gain" in " ".join(text.get_text() for text in axes.texts)


def test_networks_have_the_same_picture():
    net = ltinet.construct(ltinet.StateSpace([[0, 1], [-4, -0.4]], [0, 1], [1, 0]))
    assert len(net.plot.pzmap().axes[0].collections) == 1
    assert len(net.pzmap().axes[0].collections) == 1


def test_values_that_are_not_finite_are_refused():
    with pytest.raises(PlottingError, match="not all finite"):
        draw_pole_zero_map([np.nan])
