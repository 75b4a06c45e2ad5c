"""Hypothesis: Bode and Nyquist plots show the closed form of a transfer function, and what they leave out they tell."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import ltinet
from drawing_checks import axes_of_size, check_texts, shown_texts
from ltinet.plotting import draw_bode, draw_nyquist
from ltinet.plotting.system_response import refine_curve

OMEGA = np.geomspace(1e-2, 1e2, 401)
S = 1j * OMEGA
LAG = 1.0 / (1.0 + S)


def test_a_lag_has_the_magnitude_and_phase_of_its_closed_form():
    above, below = draw_bode(OMEGA, LAG)
    omega, decibels = above.lines[0].get_data()
    np.testing.assert_array_equal(omega, OMEGA)
    # log10 and atan are right to a few units in the last place of numbers up to 40 and 90
    np.testing.assert_allclose(decibels, -10.0 * np.log10(1.0 + OMEGA**2), rtol=0, atol=1e-12)
    np.testing.assert_allclose(below.lines[0].get_ydata(), -np.rad2deg(np.arctan(OMEGA)), rtol=0, atol=1e-12)
    assert (above.get_ylabel(), below.get_ylabel()) == ("magnitude (dB)", "phase (degrees)")
    assert above.get_xscale() == below.get_xscale() == "log"
    assert above.get_legend() is None
    check_texts(above.figure)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_phase_goes_on_beyond_half_a_turn(order):
    phase = draw_bode(OMEGA, LAG**order)[1].lines[0].get_ydata()
    np.testing.assert_allclose(phase, -order * np.rad2deg(np.arctan(OMEGA)), rtol=0, atol=1e-10)


@pytest.mark.parametrize("sign", [0.0, -0.0])
def test_minus_half_a_turn_does_not_depend_on_the_sign_of_zero(sign):
    H = np.empty(len(OMEGA), complex)
    H.real, H.imag = -1.0 / OMEGA**2, sign
    assert draw_bode(OMEGA, H)[1].lines[0].get_ydata() == pytest.approx(-180.0)


def test_a_pole_on_the_axis_breaks_the_line_and_nothing_else():
    H = 1.0 / np.where(np.arange(401) == 200, 1.0, 1.0 + S**2)
    H[200] = complex(np.inf, np.nan)  # ω = 1
    for axes in draw_bode(OMEGA, H):
        missing = np.isnan(axes.lines[0].get_ydata())
        assert np.flatnonzero(missing).tolist() == [200]
        assert np.all(np.isfinite(axes.get_ylim()))


def test_rounding_is_not_drawn_as_if_it_were_known():
    H = np.where(OMEGA > 10.0, 1e-14 * np.exp(1j * OMEGA), LAG)
    phase = draw_bode(OMEGA, H)[1].lines[0].get_ydata()
    assert np.all(np.isnan(phase[OMEGA > 10.0]))
    assert np.all(np.isfinite(phase[OMEGA <= 10.0]))


def test_a_gain_is_a_level_line_and_zero_is_said_in_words():
    above, below = draw_bode(OMEGA, np.full(401, 2.0 + 1e-15 * OMEGA))
    assert np.ptp(above.get_ylim()) >= 10.0
    assert below.get_ylim()[1] - below.get_ylim()[0] >= 90.0
    texts = [text for text, _ in shown_texts(draw_bode(OMEGA, np.zeros(401))[0].figure)]
    assert "zero everywhere" in texts


def grid(p, m):
    return LAG[:, None, None] * (1.0 + np.arange(p * m).reshape(p, m))


def test_pairs_have_lines_and_names():
    above, below = draw_bode(OMEGA, grid(2, 2), names=["speed (m/s)", "angle"], input_names=["valve", "pump"])
    assert len(above.lines) == len(below.lines) == 4
    names = [text.get_text() for text in above.get_legend().get_texts()]
    assert names == ["speed (m/s) ← valve", "speed (m/s) ← pump", "angle ← valve", "angle ← pump"]
    check_texts(above.figure)


def test_of_many_pairs_the_eight_largest_are_drawn_and_the_key_says_so():
    above = draw_bode(OMEGA, grid(4, 5))[0]
    np.testing.assert_allclose([line.get_ydata()[0] for line in above.lines],
                               20.0 * np.log10(np.arange(13, 21) * abs(LAG[0])))  # fmt: skip
    assert above.get_legend().get_title().get_text() == "output ← input\n(8 of 20)"
    assert len(draw_bode(OMEGA, grid(4, 5), pairs=[(3, 4), (0, 0)])[0].lines) == 2


@pytest.mark.parametrize(
    ("omega", "H", "options", "message"),
    [
        (OMEGA[:3], LAG, {}, "omega has shape"),
        (-OMEGA, LAG, {}, "positive and ascending"),
        (OMEGA[::-1], LAG, {}, "positive and ascending"),
        ([], [], {}, "empty"),
        (OMEGA, np.zeros((401, 2)), {}, "H must have the shape"),
        (OMEGA, ["a"], {}, "complex numbers"),
        (OMEGA, LAG, {"pairs": [(0, 1)]}, "there is no input 1 of 1 input"),
        (OMEGA, LAG, {"pairs": [0]}, "must be pairs"),
        (OMEGA, LAG, {"names": ["a", "b"]}, "one for each"),
    ],
)
def test_bad_arguments_are_refused(omega, H, options, message):
    with pytest.raises(ltinet.PlottingError, match=message):
        draw_bode(omega, H, **options)


def test_nyquist_shows_both_branches_and_minus_one_to_one_scale():
    axes = draw_nyquist(2.0 * LAG, ax=axes_of_size())
    np.testing.assert_array_equal(axes.lines[0].get_xydata(), np.column_stack([2.0 * LAG.real, 2.0 * LAG.imag]))
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), -2.0 * LAG.imag)
    assert any(line.get_xydata().tolist() == [[-1.0, 0.0]] for line in axes.lines)
    axes.figure.draw_without_rendering()
    (x0, x1), (y0, y1), box = axes.get_xlim(), axes.get_ylim(), axes.get_window_extent()
    assert (x1 - x0) / box.width == pytest.approx((y1 - y0) / box.height)
    assert x0 < -1.0
    check_texts(axes.figure)


def test_a_curve_that_runs_away_is_cut_and_the_title_says_where():
    axes = draw_nyquist(1.0 / (1.0 + S**2 + 1e-6 * S), ax=axes_of_size())
    assert axes.get_title().startswith("cut at |H| = 3")
    assert np.nanmax(np.abs(axes.lines[0].get_xydata())) <= 3.0
    assert draw_nyquist(1.0 / S, limit=3.0, ax=axes_of_size()).get_title() == "cut at |H| = 3"
    H = LAG.copy()
    H[7] = complex(np.inf, np.nan)
    assert np.isnan(draw_nyquist(H, ax=axes_of_size()).lines[0].get_xdata()[7])


def test_the_nyquist_curve_of_an_integrator_shows_minus_one_and_the_unit_circle():
    loop = ltinet.tf([2.0], [10.0, 1.0], input_delay=1.5) * ltinet.pid(2.0, 0.2, 1.0, tf=0.2)
    (axes,) = loop.plot.nyquist().axes
    assert axes.get_title() == "cut at |H| = 3"
    assert np.ptp(axes.get_ylim()) < 8.0
    assert any(len(line.get_xdata()) > 9 and np.allclose(np.hypot(*line.get_data()), 1.0) for line in axes.lines)
    curve = axes.lines[0].get_xydata()
    assert np.nanmax(np.linalg.norm(np.diff(curve, axis=0), axis=1)) <= 0.02 * 3.0
    assert loop.plot.nyquist(limit=20.0).axes[0].get_ylim()[0] < -10.0
    whole = ltinet.tf([1e6], [1.0, 1.0]).plot.nyquist().axes[0]  # never near the unit circle
    assert whole.get_title() == ""
    assert whole.get_xlim()[1] > 9e5


def test_a_small_curve_is_not_a_dot_beside_minus_one():
    axes = draw_nyquist(1e-3 * LAG, ax=axes_of_size())
    assert "−1 lies far outside" in axes.get_title()
    assert axes.get_xlim()[0] > -0.5


def test_nyquist_names_pairs_and_refuses_what_it_cannot_draw():
    axes = draw_nyquist(grid(2, 2), ax=axes_of_size())
    assert len(axes.get_legend().get_texts()) == 4
    for bad, message in [({"limit": -1.0}, "limit must be"), ({"pairs": [(5, 5)]}, "pairs: there is no output 5")]:
        with pytest.raises(ltinet.PlottingError, match=message):
            draw_nyquist(LAG, ax=axes_of_size(), **bad)


def test_curves_are_refined_until_they_look_round():
    def resonance(omega):
        return (1.0 / (1.0 - omega**2 + 2e-3j * omega))[:, None, None]

    coarse = np.array([0.5, 0.99, 0.999, 1.0, 1.001, 1.01, 2.0])
    H = refine_curve(resonance, coarse, resonance(coarse))[:, 0, 0]
    # No piece longer than a fiftieth of the extent is left, which ten rounds of halving can do from this grid.
    assert np.max(np.abs(np.diff(H))) <= 0.02 * np.max(np.abs(H))
    assert np.all(np.diff(np.unwrap(np.angle(H))) < 0.0)


def test_the_turns_of_a_dead_time_are_cut_and_a_text_says_so():
    plant = ltinet.tf([2.0], [10.0, 1.0], input_delay=1.5) * ltinet.tf([1.0], [0.01, 1.0])
    above, below = plant.plot.bode().axes
    assert -560.0 < below.get_ylim()[0] < -450.0  # -180° without dead time
    assert below.lines[0].get_ydata().min() < -80_000.0
    assert any(text.get_text().startswith("dead time: below −5") for text in below.texts)
    assert above.lines[0].get_xdata()[-1] == pytest.approx(1e3)
    short = ltinet.tf([1.0], [1.0, 1.0], input_delay=0.1)
    assert not short.plot.bode().axes[1].texts
    check_texts(above.figure)


def test_every_plot_method_returns_the_figure():
    page = Figure()
    inner = page.subfigures(1, 2)[1].subfigures(2, 1)
    system = ltinet.tf([1.0], [1.0, 1.0])
    assert system.plot.bode(figure=inner[0]) is page
    assert system.plot.nyquist(ax=inner[1].subplots()) is page
    for draw in (system.plot, system.plot.step, system.plot.impulse, system.plot.pzmap, system.plot.spectrum):
        assert isinstance(draw(), Figure)
