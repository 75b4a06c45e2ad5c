"""Residual tests: bands hold at their level, and only closed loops are reported."""

import numpy as np
import pytest
from scipy import signal

import ltinet
from ltinet.identification.residual_analysis import LAGS, analyze_residuals, chance_of_feedback


def in_a_loop(rng: np.random.Generator, gain: float, *, outside: float) -> tuple[np.ndarray, np.ndarray]:
    """A pole at 0.9 whose output, noise included, is fed back with this gain; `outside` drives the loop."""
    n = 3000
    reference, noise = outside * rng.standard_normal(n), 0.3 * rng.standard_normal(n)
    u, y, x, before = np.empty(n), np.empty(n), 0.0, 0.0
    for k in range(n):
        u[k] = reference[k] - gain * before
        y[k] = x + noise[k]
        x, before = 0.9 * x + 0.5 * u[k], y[k]
    return u, y


@pytest.mark.parametrize("colour", [0.0, 0.95])
def test_correlation_band_holds_99_percent(colour: float) -> None:
    outside, white, warned = [], 0, 0
    for number in range(60):
        rng = np.random.default_rng([9, number])
        draws = rng.standard_normal((2, 1500, 1))
        u, e = (
            signal.lfilter([1.0], [1.0, -0.9], draws[0], axis=0),
            signal.lfilter([1.0], [1.0, -colour], draws[1], axis=0),
        )
        tests = analyze_residuals([e], [u])
        outside.append(np.mean(np.abs(tests.cross_correlation) > tests.band))
        white += int(tests.is_white[0])
        warned += tests.feedback is not None
    # 60 × 51 correlations, 1 % of them: 31 ± 6 if independent; four deviations.
    assert 0.002 < np.mean(outside) < 0.018
    assert warned <= 4  # 1 % each: 0.6 of 60, and four deviations
    # 99 % of 60 white ones: 3 misses or fewer with 99.7 %; none of the coloured ones.
    assert white >= 57 if colour == 0.0 else white == 0


def test_correlation_definition() -> None:
    rng = np.random.default_rng(10)
    e = rng.standard_normal((400, 1))
    tests = analyze_residuals([e], [np.roll(e, 3, axis=0) + 1e-3 * rng.standard_normal((400, 1))])
    centred = e[:, 0] - e[:, 0].mean()
    lag = LAGS + 7
    assert tests.lags[lag] == 7
    assert tests.autocorrelation[0, lag] == pytest.approx(centred[:-7] @ centred[7:] / (centred @ centred))
    assert tests.lags[np.argmax(tests.cross_correlation[0, 0])] == -3  # inputs three samples after residuals
    assert "closed loop" in (tests.feedback or "")


KINDS = {
    "white": lambda rng, n: rng.standard_normal(n),
    "coloured": lambda rng, n: signal.lfilter([1.0], [1.0, -0.98], rng.standard_normal(n)),
    "a sweep": lambda _, n: signal.chirp(np.arange(n), 0.001, n, 0.4),
    "a random switch": lambda rng, n: np.repeat(rng.choice([-1.0, 1.0], n // 10), 10),
    "periods": lambda rng, n: np.tile(rng.standard_normal(n // 6), 6),
}


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("kind", KINDS)
def test_feedback_false_alarms_are_one_percent(kind: str) -> None:
    """Residuals with a memory and what the model misses of the system in them; correlations alone fail for sweeps."""
    chances = []
    for number in range(300):
        rng = np.random.default_rng([15, number])
        u = KINDS[kind](rng, 900)
        noise = signal.lfilter([1.0], [1.0, -0.9], rng.standard_normal(1000))[100:]
        missed = signal.lfilter([0.3, 0.2], [1.0, -0.6], u / u.std())
        chances.append(chance_of_feedback([(noise + missed)[:, None]], [u[:, None]])[0])
    # A chance below c comes with the chance c: 3 of 300 below 1 %, and four deviations of 1.7; the mean of 300 numbers
    # between 0 and 1 has the deviation 0.017, and residuals lose a little with the filter that is fitted to them.
    assert np.count_nonzero(np.array(chances) < 0.01) <= 10
    assert 0.43 < np.mean(chances) < 0.63


def test_feedback_with_delays_and_colored_noise() -> None:
    told = []
    for number in range(12):
        rng = np.random.default_rng([16, number])
        e = signal.lfilter([1.0], [1.0, -0.5], rng.standard_normal((2000, 1)), axis=0)
        u = rng.standard_normal((2000, 1)) - 0.3 * np.roll(e, 1 + number % 4, axis=0)
        told.append(chance_of_feedback([e], [u])[0] < 1e-4)
    assert all(told)


def test_feedback_warning() -> None:
    u, y = in_a_loop(np.random.default_rng(11), 0.6, outside=1.0)
    found = ltinet.identify(u, y, dt=1.0, order=1)
    assert any("closed loop" in text for text in (*found.warnings, *found.notes))
    simulated = ltinet.identify(u, y, dt=1.0, order=1, method="moesp")
    assert any("closed loop" in warning for warning in simulated.warnings)
    u, y = in_a_loop(np.random.default_rng(12), 0.0, outside=1.0)
    found = ltinet.identify(u, y, dt=1.0, order=1)
    assert not any("closed loop" in warning for warning in found.warnings)
    tests = found.residuals(u, y)
    assert tests.is_white.all()
    assert np.std(tests.residuals[0]) == pytest.approx(0.3, rel=0.05)  # 1/√6000 = 1.3 %, four times


def test_missing_mode_gives_positive_lags() -> None:
    rng = np.random.default_rng(13)
    u = rng.standard_normal((3000, 1))
    y = signal.lfilter([0.0, 1.0], [1.0, -0.9], u, axis=0) + signal.lfilter([0.0, 1.0], [1.0, 0.5, 0.6], u, axis=0)
    found = ltinet.identify(u, y + 0.05 * rng.standard_normal((3000, 1)), dt=1.0, order=1, delay=0)
    tests = found.residuals(u, y)
    sizes = np.abs(tests.cross_correlation[0, 0])
    assert sizes[tests.lags > 0].max() > 10.0 * tests.band
    assert tests.feedback is None


def test_residuals_of_short_and_several_records() -> None:
    rng = np.random.default_rng(14)
    short = analyze_residuals([rng.standard_normal((5, 2))], [rng.standard_normal((5, 1))])
    assert short.lags.tolist() == [0]
    assert short.feedback is None
    several = analyze_residuals(
        [rng.standard_normal((n, 2)) for n in (500, 90)], [rng.standard_normal((n, 3)) for n in (500, 90)]
    )
    assert several.cross_correlation.shape == (2, 3, len(several.lags))
    assert several.band == pytest.approx(2.5758 / np.sqrt(590), rel=1e-4)
