"""Hypothesis: residuals are right although all leading digits cancel."""

import numpy as np

from ltinet.bounds.residual import commutator, difference
from network_examples import exact


def in_50_digits(matrix):
    return np.array(matrix.tolist(), dtype=object).reshape(matrix.rows, matrix.cols).astype(float)


def test_the_commutator_of_a_near_similarity():
    rng = np.random.default_rng(0)
    n = 12
    X, F = rng.standard_normal((n, n)), np.diag(rng.standard_normal(n))
    A = X @ F @ np.linalg.inv(X)
    expected = in_50_digits(exact(A) * exact(X) - exact(X) * exact(F))
    # Four slices of 23 bits leave out what is 2^-90 of the products.
    assert np.max(np.abs(expected)) < 1e-12
    np.testing.assert_allclose(commutator(A, X, F), expected, rtol=1e-9, atol=1e-24)


def test_the_difference_from_a_product():
    rng = np.random.default_rng(1)
    left, right = rng.standard_normal((5, 40)), rng.standard_normal((40, 3)) * 1e6
    given = left @ right
    expected = in_50_digits(exact(given) - exact(left) * exact(right))
    np.testing.assert_allclose(difference(given, left, right), expected, rtol=1e-9, atol=1e-18)


def test_nothing_has_no_residual():
    assert commutator(np.zeros((0, 0)), np.zeros((0, 0)), np.zeros((0, 0))).shape == (0, 0)
