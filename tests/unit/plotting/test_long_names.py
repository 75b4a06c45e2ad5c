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


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("long", [True, False])
@pytest.mark.parametrize(("p", "m"), [(1, 3), (3, 1), (2, 2), (3, 3)])
@pytest.mark.parametrize("kind", ["bode", "nyquist", "step", "overview", "overview of the network"])
def test_texts_are_whole_and_curves_have_room(kind, p, m, long):
    system = plane(p, m, long=long)
    plots = ltinet.construct(system).plot if "network" in kind else system.plot
    drawn = plots() if "overview" in kind else getattr(plots, kind)()
    check_texts(drawn)
    if kind == "bode":
        assert drawn.axes[0].get_position().width >= 0.55
    if kind == "nyquist":
        assert drawn.axes[0].get_position().width >= 0.5


def test_a_figure_of_somebody_else_has_its_key_beside_the_axes():
    axes = plane(3, 3, long=True).plot.bode(figure=Figure()).axes
    assert axes[0].get_legend() is not None


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("plots", [lambda own: own.plot, lambda own: ltinet.construct(own).plot])
@pytest.mark.parametrize("kind", ["step", "impulse"])
def test_inputs_and_outputs_are_chosen_as_in_responses(plots, kind):
    system = plane(3, 2, long=True)
    draw, respond = getattr(plots(system), kind), getattr(system, f"{kind}_response")
    t = np.linspace(0.0, 2.0, 21)
    for input in (None, 1, "Rudder (deg)"):
        for output in (None, 2, "Sideslip angle beta (deg)"):
            drawn, sol = draw(t, input=input, output=output), respond(t, input=input, output=output)
            y = sol.y if input is None else sol.y[None]
            panels = np.reshape(drawn.axes, (y.shape[2], y.shape[0]))
            for row, own in enumerate(panels):
                for column, axes in enumerate(own):
                    np.testing.assert_allclose(axes.lines[-1].get_ydata(), y[column, :, row], rtol=0, atol=1e-12)
            assert panels[0, -1].get_title() == "from Rudder (deg)"
            assert panels[0, 0].get_ylabel().split()[0] in (["Sideslip"] if output != 2 else ["Yaw"])
    with pytest.raises(ltinet.PlottingError, match="there is no input 'rudder'"):
        draw(t, input="rudder")
    with pytest.raises(ltinet.PlottingError, match="there is no output 3 of 3 outputs"):
        draw(t, output=3)


def test_nyquist_draws_no_two_curves_of_one_colour():
    axes = plane(3, 3, long=True).plot.nyquist().axes[0]
    solid = [line for line in axes.lines if line.get_linestyle() == "-" and len(line.get_xdata()) > 2]
    colours = [line.get_color() for line in solid]
    assert len(colours) == len(set(colours)) == 7
    assert any("7 of 9" in legend.get_title().get_text() for legend in axes.figure.legends)


def test_fast_and_slow_modes_are_both_seen_in_a_picture_of_a_response():
    stiff = ltinet.StateSpace(np.diag([-1e-4, -1.0, -1e6]), np.ones(3), np.ones(3))
    assert stiff.impulse_response().plot().axes[0].get_xscale() == "log"
    assert stiff.step_response(np.linspace(0.0, 5.0, 11)).plot().axes[0].get_xscale() == "linear"


def test_real_poles_of_a_system_are_no_layers():
    axes = ltinet.StateSpace(-np.diag([1.0, 2.0]), [1.0, 1.0], [1.0, 1.0]).plot.spectrum().axes[0]
    assert axes.get_ylabel() == "imaginary part (1/time)"
