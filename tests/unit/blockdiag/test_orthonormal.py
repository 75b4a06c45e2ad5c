"""Hypothesis: each block gets orthonormal columns and a similar block of the same pattern, b ≥ |c| in every pair."""

import itertools

import numpy as np
import pytest
from scipy.linalg import block_diag

from evidence import EPS
from hard_matrices import pair, random_dense
from ltinet.blockdiag.decoupling import decouple
from ltinet.blockdiag.orthonormal_bases import orthonormalize
from ltinet.blockdiag.schur import SchurForm, real_schur, reorder


def grouped(A, n_groups, seed=0):
    schur = real_schur(A)
    ordered = reorder(schur, np.random.default_rng(seed).integers(0, n_groups, len(schur.sizes)))
    return ordered.schur, orthonormalize(decouple(ordered.schur.R, ordered.bounds), ordered.schur, ordered.bounds)


@pytest.mark.parametrize("n_groups", [1, 2, 5, 100])
def test_columns_are_orthonormal_and_invariant(n_groups):
    A = random_dense(26, 3)
    schur, bases = grouped(A, n_groups)
    for start, stop in itertools.pairwise(bases.bounds.tolist()):
        Q = bases.basis[:, start:stop]
        assert np.linalg.norm(Q.T @ Q - np.eye(stop - start), 2) <= 30 * 26 * EPS
    residual = np.linalg.norm(schur.R @ bases.basis - bases.basis @ bases.blocks, 1)
    assert residual <= 30 * 26 * EPS * np.linalg.norm(schur.R, 1) * np.linalg.norm(bases.basis, 1)


@pytest.mark.parametrize("n_groups", [1, 3, 100])
def test_pairs_have_equal_diagonals_and_the_larger_entry_above(n_groups):
    schur, bases = grouped(random_dense(26, 4), n_groups)
    at = schur.pairs
    b, c = bases.blocks[at, at + 1], bases.blocks[at + 1, at]
    np.testing.assert_array_equal(bases.blocks[at, at], bases.blocks[at + 1, at + 1])
    assert np.all(b >= -c * (1.0 - 8 * EPS))
    assert np.all(c < 0)
    omega = schur.eigenvalues.imag[schur.sizes == 2]
    np.testing.assert_allclose(np.sqrt(b) * np.sqrt(-c), omega, rtol=100 * EPS)


def test_orthonormal_columns_are_better_than_unit_diagonals():
    schur = real_schur(random_dense(20, 5))
    decoupled = decouple(schur.R, schur.starts)
    bases = orthonormalize(decoupled, schur, schur.starts)
    # Demmel (1983): within √L of the best block scaling there is, of which the plain X is one.
    assert np.linalg.cond(bases.basis) <= np.sqrt(len(schur.sizes)) * np.linalg.cond(decoupled.X)


@pytest.mark.parametrize("omega", [1.0, 1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("alone", [True, False])
def test_tiny_pair_stays_a_pair(omega, alone):
    R = block_diag([[-5.0]], [[-1.0, 1.0], [-(omega**2), -1.0]]) + np.triu(np.ones((3, 3)), 2)
    schur = SchurForm(R, np.eye(3))
    bounds = np.array([0, 1, 3]) if alone else np.array([0, 3])
    bases = orthonormalize(decouple(R, bounds), schur, bounds)
    b, c = bases.blocks[1, 2], bases.blocks[2, 1]
    assert b > 0 > c
    assert np.sqrt(b) * np.sqrt(-c) == pytest.approx(omega, rel=100 * EPS)


def test_a_normal_pair_is_a_rotation():
    R = pair(-1.0, 2.0).T.copy()  # −2 above: the basis must turn over
    schur = SchurForm(R, np.eye(2))
    bases = orthonormalize(decouple(R, np.array([0, 2])), schur, np.array([0, 2]))
    np.testing.assert_allclose(bases.blocks, pair(-1.0, 2.0), atol=4 * EPS)


def test_large_columns_are_recomputed():
    # Two groups 1e-6 apart: columns of X have entries of 1e6, a subspace from them is exact to 1e-10 only.
    R = np.triu(random_dense(8, 6), 1) + np.diag(np.r_[np.full(4, -1.0), np.full(4, -1.000001)])
    schur = SchurForm(R, np.eye(8))
    bounds = np.array([0, 4, 8])
    decoupled = decouple(R, bounds)
    assert np.max(np.abs(decoupled.X)) > 1e4
    bases = orthonormalize(decoupled, schur, bounds)
    residual = np.linalg.norm(R @ bases.basis - bases.basis @ bases.blocks, 1)
    assert residual <= 30 * 8 * EPS * np.linalg.norm(R, 1) * np.linalg.norm(bases.basis, 1)
