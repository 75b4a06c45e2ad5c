"""Closed-form gains of neurons compared with the integrals of |h| and |ḣ|.

LTINET_THOROUGH=1 compares 1,000 random neurons instead of a few.
"""

import os

import mpmath
import numpy as np
import pytest

from ltinet.error_bounds.gains import first_order_gains, second_order_gains
from neuron_quadrature import quadrature, random_neurons

# Closed forms lose a factor |root · horizon| or so over eps, and that is 1e3 at most here.
RELATIVE = 1e-10
NEURONS_PER_SEED = 250 if os.environ.get("LTINET_THOROUGH") else 12


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_second_order_gains_match_quadrature(seed):
    for m, c, k, horizon in random_neurons(NEURONS_PER_SEED, seed):
        gains = second_order_gains(np.array(m), np.array(c), np.array(k), horizon=horizon)
        expected = quadrature(m, c, k, horizon=horizon)
        np.testing.assert_allclose(
            [float(gains.value), float(gains.rate)], expected, rtol=RELATIVE, err_msg=f"{m, c, k, horizon}"
        )


@pytest.mark.parametrize("k", [3.0, 1e-12, 0.0, -1e-12, -2.0])
@pytest.mark.parametrize("c", [2.0, -0.5])
def test_first_order_gains_match_mpmath(c, k):
    with mpmath.workdps(50):
        rate = -mpmath.mpf(k) / c
        value = (mpmath.expm1(rate * 4) / rate if rate else mpmath.mpf(4)) / abs(c)
        expected = float(value), float(1 / mpmath.mpf(abs(c)) + abs(rate) * value)
    gains = first_order_gains(np.array(c), np.array(k), horizon=4.0)
    np.testing.assert_allclose([float(gains.value), float(gains.rate)], expected, rtol=1e-14)


@pytest.mark.parametrize(("c", "k"), [(0.3, 2.0), (2.0, 1.0), (5.0, 1.0), (2.0 + 1e-9, 1.0)])
def test_infinite_horizon_is_the_limit(c, k):
    infinite = second_order_gains(np.array(1.0), np.array(c), np.array(k), horizon=np.inf)
    long = second_order_gains(np.array(1.0), np.array(c), np.array(k), horizon=400.0)
    np.testing.assert_allclose([float(gain) for gain in infinite], [float(gain) for gain in long], rtol=1e-12)
    # h ≥ 0 for real roots: the integral is the static gain 1/k.
    assert c < 2.0 or float(infinite.value) == pytest.approx(1.0 / k)


def test_unstable_neurons_have_infinite_gains():
    first = first_order_gains(np.array([1.0, 1.0]), np.array([0.0, -1.0]), horizon=np.inf)
    second = second_order_gains(np.ones(3), np.array([0.0, -1.0, 0.0]), np.array([1.0, 0.2, 0.0]), horizon=np.inf)
    assert np.all(np.isinf(first.value))
    assert np.all(np.isinf(second.value))


def test_gains_of_arrays_are_those_of_their_entries():
    m, c, k = np.array([[3.0, 1.0], [2.0, 0.4]]), np.array([[1.0, 0.5], [3.0, 2.0]]), np.array([[1.0, 4.0], [0.1, 0.0]])
    gains = second_order_gains(m, c, k, horizon=3.0)
    for place in np.ndindex(2, 2):
        single = second_order_gains(m[place], c[place], k[place], horizon=3.0)
        assert (gains.value[place], gains.rate[place]) == (float(single.value), float(single.rate))


def test_gain_is_attained():
    # u = sign h(T − t) attains the gain: the reason why it is called peak-to-peak.
    c, k, T = 0.4, 9.0, 3.0
    a, omega = -c / 2, np.sqrt(k - c * c / 4)
    s = (np.arange(200_000) + 0.5) * T / 200_000
    h = np.exp(a * s) * np.sin(omega * s) / omega
    gain = float(second_order_gains(np.array(1.0), np.array(c), np.array(k), horizon=T).value)
    attained = np.sum(h * np.sign(h)) * T / 200_000
    assert attained == pytest.approx(gain, rel=1e-6)  # the midpoint rule at kinks of |h|


@pytest.mark.parametrize("horizon", [0.3, 1.0, 2.5, 7.0, np.inf])
@pytest.mark.parametrize("fast", [0.75, 3.0, 40.0])
def test_overdamped_rate_gain_matches_mpmath(fast, horizon):
    # h = (e^{−t/2} − e^{−ft})/(f − 1/2) rises to its peak at log(2f)/(f − 1/2) and falls to h(T).
    with mpmath.workdps(40):

        def h(t):
            return (mpmath.exp(-t / 2) - mpmath.exp(-fast * t)) / (fast - 0.5)

        T, peak_time = mpmath.mpf(horizon), mpmath.log(2 * mpmath.mpf(fast)) / (fast - 0.5)
        expected = float(2 * h(peak_time) - h(T) if peak_time < T else h(T))
    gains = second_order_gains(np.array(1.0), np.array(0.5 + fast), np.array(0.5 * fast), horizon=horizon)
    assert float(gains.rate) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("horizon", [0.4, 1.1, 2.0, 5.3])
@pytest.mark.parametrize("c", [0.5, 0.0, -0.3])
def test_underdamped_rate_gain_is_the_total_variation(c, horizon):
    a, omega = -c / 2, np.sqrt(9.0 - c * c / 4)
    t = np.linspace(0.0, horizon, 100_001)
    variation = np.sum(np.abs(np.diff(np.exp(a * t) * np.sin(omega * t) / omega)))
    gains = second_order_gains(np.array(1.0), np.array(c), np.array(9.0), horizon=horizon)
    assert float(gains.rate) == pytest.approx(variation, rel=1e-7)  # each extremum may lie between two points
