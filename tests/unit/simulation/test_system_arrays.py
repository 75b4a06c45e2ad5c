"""Matrices of the engine and sizes in cells of time, as error bounds use them."""

import numpy as np
import pytest

import ltinet
from ltinet._util.floating_point import EPS
from ltinet.error_bounds.trajectory_defect import weighted_sizes


@pytest.mark.parametrize("n_layers", [None, 1], ids=["scalars", "one block"])
def test_basis_transforms_the_system(n_layers):
    rng = np.random.default_rng(0)
    A, B, C = rng.standard_normal((5, 5)) - 2.0 * np.eye(5), rng.standard_normal((5, 2)), rng.standard_normal((3, 5))
    arrays = ltinet.construct((A, B, C), n_layers=n_layers)._context.arrays
    X, X_inv = arrays.basis
    tolerance = 100 * 5 * EPS * np.linalg.cond(X)
    np.testing.assert_allclose(X @ X_inv, np.eye(5), atol=tolerance)
    np.testing.assert_allclose(X @ arrays.F @ X_inv, A, atol=tolerance * np.linalg.norm(A))
    np.testing.assert_allclose(X @ arrays.G, B, atol=tolerance * np.linalg.norm(B))
    np.testing.assert_allclose(arrays.C @ X_inv, C, atol=tolerance * np.linalg.norm(C))
    assert arrays.residuals.part == "decomposition"


def test_infinite_sizes_count_where_they_have_a_weight():
    sizes, weights = np.array([[2.0, np.inf], [2.0, 3.0]]), np.array([[1.0, 0.0], [0.0, 4.0], [0.5, 1.0]])
    np.testing.assert_array_equal(weighted_sizes(sizes, weights), [[2.0, np.inf, np.inf], [2.0, 12.0, 4.0]])
