"""Parts of the error bound from the defect: residuals against fractions, and sizes of responses against dense lags."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import linalg

from ltinet.error_bounds.trajectory_defect import (
    ExactProduct,
    exponents_of,
    lag_peaks,
    lag_sums,
    propagate,
    weighted_sizes,
)


@pytest.mark.parametrize("decades", [0.0, 3.0, 40.0])
@pytest.mark.parametrize("n", [1, 7, 60])
def test_residuals_have_the_digits_that_they_claim(n, decades):
    rng = np.random.default_rng([n, int(decades)])
    high = rng.standard_normal((n, n + 2)) * 10.0 ** rng.uniform(-decades, decades, (n, 1))
    low = 2.0**-54 * high * rng.uniform(-1.0, 1.0, high.shape)
    values = rng.standard_normal((5, n + 2)) * 10.0 ** rng.uniform(-decades, decades, n + 2)
    target = values @ high.T
    product = ExactProduct(high, low, None, units=exponents_of(values, 0), results=exponents_of(target, 0))
    value, bound = product.residual(product.slices(values), target)
    for k, row in enumerate(values.tolist()):
        for i in range(n):
            terms = zip(high[i].tolist(), low[i].tolist(), row, strict=True)
            exact = sum((Fraction(a) + Fraction(b)) * Fraction(v) for a, b, v in terms) - Fraction(target[k, i])
            assert abs(exact - Fraction(value[k, i])) <= Fraction(bound[k, i])
            assert bound[k, i] <= 2.0**-66 * np.abs(high[i] * values[k]).max() + 2.0**-50 * abs(value[k, i]) or decades


@pytest.mark.parametrize("n", [1, 5, 12])
def test_sums_over_lags_are_no_less_than_all_of_them(n, monkeypatch):
    rng = np.random.default_rng(n)
    S = rng.standard_normal((n, n))
    P, C = linalg.expm(0.2 * (S - S.T) - 0.05 * np.eye(n)), rng.standard_normal((2, n))
    powers = np.array([np.abs(C @ np.linalg.matrix_power(P, j)) for j in range(40)])
    between = [powers[max(0, 10 * k - 10) : 10 * k + 10].sum(axis=0) for k in range(4)]
    sums = lag_sums(C, P, length=10, count=4)
    np.testing.assert_allclose(sums, between, rtol=1e-10)
    monkeypatch.setattr("ltinet.error_bounds.trajectory_defect._MAX_SUM_WORK", 1)
    assert np.all(lag_sums(C, P, length=10, count=4) >= np.array(between) * (1.0 - 1e-12))


@pytest.mark.parametrize("fastest", [1.0, 1e3, 1e7])
def test_peaks_are_no_less_than_responses_at_any_lag(fastest):
    rng = np.random.default_rng(int(fastest))
    A = np.array([[-1.0, 30.0, 0.0], [-30.0, -1.0, 2.0], [0.0, 1.0, -fastest]])
    C = rng.standard_normal((2, 3))
    peaks = lag_peaks(C, A, cell=0.5, count=4)
    for lag in range(4):
        for s in rng.uniform(max(0.0, 0.5 * (lag - 2)), 0.5 * (lag + 1), 300):
            assert np.all(np.abs(C @ linalg.expm(A * s)) <= peaks[lag] * (1.0 + 1e-9))


def test_zero_times_infinity_is_zero():
    sizes, weights = np.array([[0.0, 1.0]]), np.array([[np.inf, 2.0], [1.0, np.inf]])
    np.testing.assert_array_equal(weighted_sizes(sizes, weights), [[2.0, np.inf]])
    np.testing.assert_array_equal(propagate(sizes, weights[None]), [[2.0, np.inf]])
