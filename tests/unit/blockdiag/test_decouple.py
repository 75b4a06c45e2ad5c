"""Hypothesis: R X = X · blkdiag(R_11, …, R_LL) to rounding, whatever the sizes of the blocks."""

import numpy as np
import pytest
from scipy.linalg import solve_sylvester

from evidence import EPS
from hard_matrices import hippo_legs, jordan, random_dense
from ltinet.blockdiag.decoupling import decouple
from ltinet.blockdiag.schur import real_schur


def separated_schur(n=24, seed=0):
    """A Schur form whose eigenvalues are apart, so that X is moderate."""
    return real_schur(random_dense(n, seed) + np.diag(5.0 * np.arange(n)))


@pytest.mark.parametrize("every", [1, 2, 3, 7, 24])
def test_columns_are_invariant_subspaces(every):
    schur = separated_schur()
    bounds = np.unique(np.r_[schur.starts[::every], 24])
    decoupled = decouple(schur.R, bounds)
    X, block = decoupled.X, np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    residual = np.linalg.norm(schur.R @ X - X @ decoupled.diagonal, 1)
    assert residual <= 30 * 24 * EPS * np.linalg.norm(schur.R, 1) * np.linalg.norm(X, 1)
    np.testing.assert_array_equal(decoupled.diagonal, np.where(block[:, None] == block, schur.R, 0.0))
    assert not np.any(X[block[:, None] > block])  # block upper triangular


def test_decouple_two_blocks_matches_sylvester():
    schur = separated_schur(10, 1)
    k = int(schur.starts[len(schur.starts) // 2])
    X = decouple(schur.R, np.array([0, k, 10])).X
    expected = solve_sylvester(schur.R[:k, :k], -schur.R[k:, k:], -schur.R[:k, k:])
    # Both solve a system of condition ‖R‖/sep, which is below 1e3 here.
    np.testing.assert_allclose(X[:k, k:], expected, atol=1e3 * 10 * EPS * np.max(np.abs(expected)))
    np.testing.assert_array_equal(X[:k, :k], np.eye(k))
    np.testing.assert_array_equal(X[k:, k:], np.eye(10 - k))


def test_decouple_one_block():
    R = np.triu(random_dense(5))
    decoupled = decouple(R, np.array([0, 5]))
    np.testing.assert_array_equal(decoupled.X, np.eye(5))
    np.testing.assert_array_equal(decoupled.diagonal, R)


def test_nothing():
    assert decouple(np.zeros((0, 0)), np.array([0])).X.shape == (0, 0)


@pytest.mark.parametrize("R", [jordan(40, 1.0), hippo_legs(64).T.copy(), np.triu(random_dense(60, 2), 1)])
def test_decouple_inseparable_blocks_is_finite(R):
    X = decouple(R, np.arange(len(R) + 1)).X
    assert np.all(np.isfinite(X))
    assert np.all(np.max(np.abs(X), axis=0) > 0)
    assert np.max(np.abs(X)) < 1e150  # squares of its entries are still numbers
    unit = X / np.linalg.norm(X, axis=0)
    assert np.linalg.svd(unit, compute_uv=False)[-1] < 1e-8  # what cond(T) shows afterwards


def test_the_given_matrix_is_not_touched():
    R = np.triu(random_dense(8, 4))
    copy = R.copy()
    decouple(R, np.arange(9))
    np.testing.assert_array_equal(R, copy)
