"""Hypothesis: whatever names are long, no text of a picture is cut off, and curves keep most of its width."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import ltinet
from drawing_checks import check_texts

RNG = np.random.default_rng(2)
OUTPUTS = ["Sideslip angle beta (deg)", "Roll rate p (deg/s)", "Yaw rate r of the body (deg/s)"]
INPUTS = ["Aileron deflection (deg)", "Rudder (deg)", "Throttle of engine 1 (%)"]


def plane(p, m, *, long):
    A = -np.diag([1.0, 2.0, 3.0, 0.1]) + 0.1 * RNG.standard_normal((4, 4))
    names = {"inputs": INPUTS[:m], "outputs": OUTPUTS[:p]} if long else {}
    return ltinet.StateSpace(A, RNG.standard_normal((4, m)), RNG.standard_normal((p, 4)), **names)


@pytest.mark.parametrize("long", [True, False])
@pytest.mark.parametrize(("p", "m"), [(1, 3), (3, 1), (2, 2), (3, 3)])
@pytest.mark.parametrize("kind", ["bode", "nyquist", "step", "overview", "overview of the network"])
def test_texts_are_whole_and_curves_have_room(kind, p, m, long):
    system = plane(p, m, long=long)
    plots = ltinet.construct(system).plot if "network" in kind else system.plot
    drawn = plots() if "overview" in kind else getattr(plots, kind)()
    figure = drawn if isinstance(drawn, Figure) else np.ravel(drawn)[0].figure
    check_texts(figure)
    if kind == "bode":
        assert drawn[0].get_position().width >= 0.55
    if kind == "nyquist":
        assert drawn.get_position().width >= 0.5


def test_a_figure_of_somebody_else_has_its_key_beside_the_axes():
    axes = plane(3, 3, long=True).plot.bode(figure=Figure())
    assert axes[0].get_legend() is not None


@pytest.mark.parametrize("plots", [lambda own: own.plot, lambda own: ltinet.construct(own).plot])
@pytest.mark.parametrize("kind", ["step", "impulse"])
def test_inputs_and_outputs_are_chosen_as_in_responses(plots, kind):
    system = plane(3, 2, long=True)
    draw, respond = getattr(plots(system), kind), getattr(system, f"{kind}_response")
    t = np.linspace(0.0, 2.0, 21)
    for input in (None, 1, "Rudder (deg)"):
        for output in (None, 2, "Sideslip angle beta (deg)"):
            panels, sol = draw(t, input=input, output=output), respond(t, input=input, output=output)
            y = sol.y if input is None else sol.y[None]
            assert panels.shape == (y.shape[2], y.shape[0])
            for row, own in enumerate(panels):
                for column, axes in enumerate(own):
                    np.testing.assert_allclose(axes.lines[-1].get_ydata(), y[column, :, row], rtol=0, atol=1e-12)
            assert panels[0, -1].get_title() == "from Rudder (deg)"
            assert panels[0, 0].get_ylabel().split()[0] in (["Sideslip"] if output != 2 else ["Yaw"])
    with pytest.raises(ltinet.PlottingError, match="there is no input 'rudder'"):
        draw(t, input="rudder")
    with pytest.raises(ltinet.PlottingError, match="there is no output 3 of 3 outputs"):
        draw(t, output=3)
