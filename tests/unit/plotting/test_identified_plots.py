"""Hypothesis: pictures of an identified system show its own numbers: fits, errors, correlations and regions."""

import numpy as np
import pytest
from scipy import stats

import ltinet
from drawing_checks import check_texts
from ltinet import plotting

DT = 0.1
RIG = ltinet.StateSpace(
    [[-0.4, 3.0, 0.0], [-3.0, -0.4, 0.0], [0.0, 0.0, -1.0]],
    [[1.0], [0.5], [1.0]],
    [[1.0, 0.0, 1.0], [0.0, 1.0, -1.0]],
)


def record(seed: int, n_samples: int = 800) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    u = rng.standard_normal((n_samples, 1))
    y = ltinet.construct(RIG).simulate(u, DT * np.arange(n_samples), hold="zero").y
    return u, y + 0.02 * rng.standard_normal(y.shape)


@pytest.fixture(scope="module")
def found() -> ltinet.IdentificationResult:
    return ltinet.identify(*record(1), dt=DT, order=range(1, 6), delay=0)


def test_compare_shows_measured_and_simulated_outputs_with_the_fit(found: ltinet.IdentificationResult) -> None:
    u, y = record(2, 300)
    panels = found.plot.compare(u, y).axes
    assert len(panels) == 2
    for output, axes in enumerate(panels):
        measured, modelled = axes.get_lines()
        np.testing.assert_allclose(measured.get_xdata(), DT * np.arange(300))
        np.testing.assert_allclose(measured.get_ydata(), y[:, output], rtol=1e-12)  # offsets were taken and given back
        left = y[:, output] - modelled.get_ydata()
        fit = 100.0 * (1.0 - np.linalg.norm(left) / np.linalg.norm(y[:, output] - y[:, output].mean()))
        assert fit == pytest.approx(found.fit(u, y)[output], abs=1e-6)  # the same sums in another order
        assert modelled.get_label() == f"model, fit {fit:.1f} %"
        assert fit > 90.0


def test_compare_draws_experiments_in_a_row_and_outputs_by_name(found: ltinet.IdentificationResult) -> None:
    (u1, y1), (u2, y2) = record(3, 100), record(4, 60)
    (axes,) = found.plot.compare([u1, u2], [y1, y2], outputs=["y2"]).axes
    measured, _, seam = axes.get_lines()
    values = measured.get_ydata()
    assert np.flatnonzero(np.isnan(values)).tolist() == [100]
    np.testing.assert_allclose(values[101:], y2[:, 1], rtol=1e-12)
    assert seam.get_xdata()[0] == pytest.approx(DT * 100)


def test_compare_of_delayed_inputs_leaves_out_what_has_no_input() -> None:
    u, y = record(5)
    late = np.concatenate([np.zeros((2, 2)), y[:-2]])
    found = ltinet.identify(u, late, dt=DT, order=3, delay=2)
    axes = found.plot.compare(u, late).axes[0]
    np.testing.assert_allclose(axes.get_lines()[0].get_ydata(), late[2:, 0], rtol=1e-12, atol=1e-15)


def test_orders_shows_the_best_error_of_every_order(found: ltinet.IdentificationResult) -> None:
    values, errors = found.plot.orders().axes
    shown = np.concatenate([line.get_ydata() for line in values.get_lines()])
    np.testing.assert_array_equal(shown, found.singular_values[: len(shown)])
    assert len(values.get_lines()[0].get_ydata()) == found.order
    lines = {line.get_label(): dict(zip(*line.get_data(), strict=True)) for line in errors.get_lines()}
    for kind in {own.method for own in found.candidates}:
        for order in range(1, 6):
            expected = [
                own.error for own in found.candidates if (own.method, own.order) == (kind, order) and not own.refined
            ]
            if expected:
                assert lines[kind][order] == min(expected)


def test_residuals_shows_correlations_and_marks_those_outside(found: ltinet.IdentificationResult) -> None:
    u, y = record(1)
    tests = found.residuals(u, y)
    panels = np.reshape(found.plot.residuals(u, y).axes, (2, 2))
    for output in range(2):
        for axes, values in zip(
            panels[output], (tests.autocorrelation[output][26:], tests.cross_correlation[output, 0]), strict=True
        ):
            segments = axes.collections[0].get_segments()
            np.testing.assert_allclose([segment[1, 1] for segment in segments], values)
            outside = int(np.sum(np.abs(values) > tests.band))
            assert f"{outside} of {len(values)} outside 99 %" in [text.get_text() for text in axes.texts]


def test_poles_shows_regions_of_the_right_size(found: ltinet.IdentificationResult) -> None:
    axes = found.plot.poles().axes[0]
    pair = next(own for own in found.pole_uncertainty() if own.is_pair)
    outlines = [np.asarray(patch.get_xy()) for patch in axes.patches]
    assert len(outlines) == 2 * sum(own.is_pair for own in found.pole_uncertainty())
    away = outlines[0] - [pair.pole.real, pair.pole.imag]
    distances = np.einsum("ki,ij,kj->k", away, np.linalg.inv(pair.covariance), away)
    np.testing.assert_allclose(distances, stats.chi2.ppf(0.99, 2), rtol=1e-6)
    real = next(own for own in found.pole_uncertainty() if not own.is_pair)
    bars = [line for line in axes.get_lines() if len(line.get_xdata()) == 2 and line.get_linewidth() == 3.0]
    half = np.sqrt(stats.chi2.ppf(0.99, 1) * real.covariance[0, 0])
    np.testing.assert_allclose(bars[0].get_xdata(), [real.pole.real - half, real.pole.real + half], rtol=1e-9)


def test_bode_shows_bands_of_the_response(found: ltinet.IdentificationResult) -> None:
    omega = np.geomspace(0.1, 20.0, 30)
    own = found.frequency_band(omega)
    above, below = found.plot.bode(omega, pairs=[(1, 0)]).axes
    for axes, width, middle in (
        (above, own.magnitude_deviation, 20.0 * np.log10(np.abs(own.response[:, 1, 0]))),
        (below, np.rad2deg(own.phase_deviation), axes_values(below)),
    ):
        np.testing.assert_allclose(axes_values(axes), middle)
        outline = axes.collections[0].get_paths()[0].vertices
        reach = stats.norm.ppf(0.995) * width[:, 1, 0]
        for place in (3, 17):
            at = np.unique(np.round(outline[np.isclose(outline[:, 0], omega[place]), 1], 9))
            np.testing.assert_allclose(at, [middle[place] - reach[place], middle[place] + reach[place]], atol=1e-6)
    assert found.plot.bode().axes[0].get_lines()[0].get_xdata().max() <= np.pi / DT


def axes_values(axes) -> np.ndarray:
    return np.asarray(axes.get_lines()[0].get_ydata())


def test_bode_ends_at_the_nyquist_frequency_of_the_record() -> None:
    dt, u = 0.3, np.random.default_rng(3).standard_normal((300, 1))
    y = ltinet.construct(RIG).simulate(u, dt * np.arange(300), hold="zero").y
    found = ltinet.identify(u, y, dt=dt, order=3, delay=0)
    for plot in (found.plot, found.system.plot, found.net.plot):
        assert plot.bode().axes[0].get_lines()[0].get_xdata()[-1] == pytest.approx(np.pi / dt)
    unsampled = ltinet.StateSpace(found.system.A, found.system.B, found.system.C)
    assert unsampled.plot_frequencies()[-1] > 2.0 * np.pi / dt


def test_poles_without_a_covariance_are_drawn_and_said_to_be_so() -> None:
    axes = plotting.draw_uncertain_poles([-1.0 + 2.0j, -1.0 - 2.0j], [])
    assert axes.get_title() == "the uncertainty is unknown"


@pytest.mark.slow
def test_texts_are_readable_and_lie_on_no_other(found: ltinet.IdentificationResult) -> None:
    u, y = record(1)
    plots = found.plot
    for panels in (plots.compare(u, y), plots.residuals(u, y), plots.orders(), [plots.poles()], plots.bode()):
        check_texts(np.ravel(np.asarray(panels, dtype=object))[0].figure)


def test_wrong_shapes_are_refused() -> None:
    t, y = np.arange(5.0), np.zeros((5, 2))
    with pytest.raises(ltinet.PlottingError, match="fits have"):
        plotting.draw_measured(t, y, y, fits=[1.0])
    with pytest.raises(ltinet.PlottingError, match="lags, autocorrelation"):
        plotting.draw_correlations(t, np.zeros((2, 4)), np.zeros((2, 1, 5)), band=0.1)
    with pytest.raises(ltinet.PlottingError, match="singular values"):
        plotting.draw_orders([[1.0]], {}, chosen=1)
    with pytest.raises(ltinet.PlottingError, match="covariance of"):
        plotting.draw_uncertain_poles([-1.0], [(-1.0, np.eye(3))])
    with pytest.raises(ltinet.PlottingError, match="H, decibels and degrees"):
        plotting.draw_uncertain_bode([1.0, 2.0], np.ones((2, 1, 1)), decibels=np.ones(2), degrees=np.ones((2, 1, 1)))


def test_nothing_to_compare_is_said() -> None:
    values, errors = plotting.draw_orders([0.0], {"moesp": {}}, chosen=1)
    assert [axes.texts[0].get_text() for axes in (values, errors)] == ["no singular values", "no models were compared"]
