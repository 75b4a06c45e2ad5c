"""Hypothesis: `plot` of a system and of its network draw the same answers, at chosen places or at those given."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import ltinet
from drawing_checks import check_texts, example, shown_texts
from ltinet.plotting.plots import NetworkPlots, SystemPlots

SYSTEM = ltinet.StateSpace([[-1.0, 4.0], [-4.0, -1.0]], np.eye(2), [[1.0, 0.0], [0.0, 3.0]])
NET = ltinet.construct(SYSTEM)


@pytest.mark.parametrize("plot", [SYSTEM.plot, NET.plot], ids=["system", "network"])
def test_every_door_draws_what_the_object_says(plot):
    omega = np.geomspace(0.1, 100.0, 50)
    above, _ = plot.bode(omega).axes
    H = SYSTEM.frequency_response(omega)
    # Both know H to 1e-12 of its peak; 20 log10 makes 8.7 of a relative 1.
    np.testing.assert_allclose(above.lines[1].get_ydata(), 20.0 * np.log10(np.abs(H[:, 0, 1])), rtol=0, atol=1e-9)
    curve = plot.nyquist(omega, pairs=[(1, 1)]).axes[0].lines[0].get_xydata()
    np.testing.assert_allclose(curve, np.column_stack([H[:, 1, 1].real, H[:, 1, 1].imag]), rtol=0, atol=1e-11)
    t = np.linspace(0.0, 3.0, 31)
    panels = plot.step(t).axes
    np.testing.assert_allclose(panels[2].lines[-1].get_ydata(), SYSTEM.step_response(t).y[0, :, 1], atol=1e-12)
    np.testing.assert_allclose(panels[2].lines[0].get_ydata(), SYSTEM.dcgain()[1, 0], rtol=1e-14)
    assert len(plot.impulse(t).axes) == 4


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("plot", [SYSTEM.plot, NET.plot, example(6).plot], ids=["system", "network", "blobs"])
def test_the_overview_is_a_slide_whose_texts_can_be_read(plot):
    page = plot()
    assert page.get_size_inches()[0] / page.get_size_inches()[1] == pytest.approx(16.0 / 9.0)
    check_texts(page)


def test_the_overview_says_once_which_colour_is_which_layer():
    net = ltinet.construct(ltinet.named_system("mass_spring_damper", n_masses=20))
    page = net.plot()
    assert [text for text, _ in shown_texts(page)].count("layer 0") == 1
    assert len(page.findobj(lambda artist: hasattr(artist, "get_xticklabels"))) == 5  # no colour bars besides


def test_names_that_the_object_has_are_drawn():
    names = {"names": ["speed (m/s)", "angle (rad)"], "input_names": ["valve", "pump"]}
    plots = SystemPlots(SYSTEM, SYSTEM.plot_frequencies, **names)
    assert plots.step().axes[2].get_ylabel() == "angle (rad)"
    assert plots.bode().axes[0].get_legend().get_texts()[1].get_text() == "speed (m/s) ← pump"
    network = NetworkPlots(NET, SYSTEM.plot_frequencies, **names)
    assert network.step().axes[1].get_title() == "from pump"


def test_of_very_many_inputs_some_are_run():
    rng = np.random.default_rng(3)
    system = ltinet.StateSpace(-np.diag(rng.uniform(1.0, 2.0, 3)), rng.random((3, 40)), rng.random((30, 3)))
    panels = np.reshape(system.plot.step().axes, (4, 4))
    assert "4 of 40 inputs, evenly spread over all" in panels[0, 0].figure.get_suptitle()
    assert [axes.get_title() for axes in panels[0]] == ["from u1", "from u14", "from u27", "from u40"]
    assert isinstance(system.plot(), Figure)


@pytest.mark.slow
@pytest.mark.parametrize(
    "system", [([1.0], [1.0, 0.0]), ([1.0], [1.0, 0.0, 1.0]), ([2.0], [1.0]), ([1.0], [1.0, -1.0])]
)
def test_integrators_undamped_unstable_and_static_systems_have_their_pictures(system):
    plot = ltinet.as_state_space(system).plot
    for draw in (plot.bode, plot.nyquist, plot.step, plot.impulse, plot, ltinet.construct(system).plot):
        check_texts(draw())


def test_a_system_in_discrete_time_has_bode_nyquist_and_step():
    system = ltinet.StateSpace([[0.5]], [1.0], [1.0], dt=0.1)
    above, _ = system.plot.bode().axes
    assert above.lines[0].get_xdata()[-1] == pytest.approx(np.pi / 0.1)
    system.plot.nyquist()
    assert system.plot.step().axes[0].lines[-1].get_drawstyle() == "steps-post"
