"""Residuals in which all leading digits cancel."""

import numpy as np
import pytest

from ltinet._util.double_double import commutator, product_difference
from network_examples import exact


def in_50_digits(matrix):
    return np.array(matrix.tolist(), dtype=object).reshape(matrix.rows, matrix.cols).astype(float)


def test_commutator_matches_mpmath():
    rng = np.random.default_rng(0)
    n = 12
    X, F = rng.standard_normal((n, n)), np.diag(rng.standard_normal(n))
    A = X @ F @ np.linalg.inv(X)
    expected = in_50_digits(exact(A) * exact(X) - exact(X) * exact(F))
    # Four slices of 23 bits leave out what is 2^-90 of the products.
    assert np.max(np.abs(expected)) < 1e-12
    np.testing.assert_allclose(commutator(A, X, F), expected, rtol=1e-9, atol=1e-24)


def test_product_difference_matches_mpmath():
    rng = np.random.default_rng(1)
    left, right = rng.standard_normal((5, 40)), rng.standard_normal((40, 3)) * 1e6
    minuend = left @ right
    expected = in_50_digits(exact(minuend) - exact(left) * exact(right))
    np.testing.assert_allclose(product_difference(minuend, left, right), expected, rtol=1e-9, atol=1e-18)


def test_commutator_of_empty_matrices():
    assert commutator(np.zeros((0, 0)), np.zeros((0, 0)), np.zeros((0, 0))).shape == (0, 0)


@pytest.mark.parametrize("n", [6, 40])
def test_commutator_is_independent_of_units(n):
    rng = np.random.default_rng(2)
    X, F = rng.standard_normal((n, n)), np.diag(rng.standard_normal(n))
    A = X @ F @ np.linalg.inv(X)
    units = 2.0 ** np.linspace(-180, 180, n).round()
    residual = commutator(A * units[:, None] / units, X * units[:, None], F)
    np.testing.assert_allclose(residual / units[:, None], commutator(A, X, F), rtol=1e-7, atol=1e-24)


def test_commutator_of_badly_scaled_companion_matrix():
    rates = -(10.0 ** np.array([0.0, 4.0, 8.0, 12.0]))
    n = len(rates)
    A = np.eye(n, k=1)
    A[-1] = -np.poly(rates)[:0:-1]
    X = np.vander(rates, increasing=True).T
    expected = in_50_digits(exact(A) * exact(X) - exact(X) * exact(np.diag(rates)))
    np.testing.assert_allclose(commutator(A, X, np.diag(rates)), expected, rtol=1e-9)
