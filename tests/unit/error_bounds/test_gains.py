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
