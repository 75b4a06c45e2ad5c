"""Hypothesis: the Schur form is an orthogonal similarity, and its diagonal blocks are read as LAPACK means them."""

import numpy as np
import pytest
from scipy.linalg import block_diag, circulant

from evidence import EPS
from hard_matrices import haar, pair, random_dense, skew_symmetric
from ltinet.blockdiag.schur import SchurForm, is_decoupled, real_schur, schur_by_parts, symmetric_schur


def assert_schur_of(A, schur):
    n = len(A)
    # LAPACK's threshold for its own Schur forms: 30·n·eps.
    assert np.linalg.norm(schur.Z @ schur.R @ schur.Z.T - A, 1) <= 30 * n * EPS * np.linalg.norm(A, 1)
    assert np.linalg.norm(schur.Z @ schur.Z.T - np.eye(n), 1) <= 30 * n * EPS
    assert not np.any(np.tril(schur.R, -2))


@pytest.mark.parametrize("n", [1, 2, 3, 40])
def test_real_schur(n):
    A = random_dense(n, n)
    assert_schur_of(A, real_schur(A))


def test_real_schur_leaves_its_argument_alone():
    A = np.asfortranarray(random_dense(6))
    copy = A.copy()
    real_schur(A)
    np.testing.assert_array_equal(A, copy)


def test_real_schur_of_nothing():
    schur = real_schur(np.zeros((0, 0)))
    assert schur.R.shape == schur.Z.shape == (0, 0)
    assert len(schur.eigenvalues) == 0
    assert is_decoupled(schur, np.zeros((0, 0)))


def test_real_schur_without_convergence_raises():
    with pytest.raises(np.linalg.LinAlgError, match="did not converge"):
        real_schur(np.full((3, 3), np.nan))  # no entry below the diagonal ever compares as negligible


def test_schur_by_parts_keeps_zeros():
    parts = [random_dense(5, 1), pair(-1.0, 2.0), [[3.0]], random_dense(4, 2)]
    order = np.random.default_rng(0).permutation(12)
    A = block_diag(*parts)[np.ix_(order, order)]
    schur = schur_by_parts(A)
    assert_schur_of(A, schur)
    piece = np.searchsorted([5, 7, 8], order, side="right")  # of each state
    for column in schur.Z.T:
        assert len(set(piece[column != 0.0].tolist())) == 1
    own = np.array([piece[np.flatnonzero(column)[0]] for column in schur.Z.T])
    assert not np.any(schur.R[own[:, None] != own])


def test_schur_by_parts_of_connected_matrix():
    A = random_dense(7, 3)
    by_parts = schur_by_parts(A)
    assert_schur_of(A, by_parts)
    assert np.all(by_parts.Z != 0.0)  # every Schur vector is one of the whole
    assert schur_by_parts(np.zeros((0, 0))).R.shape == (0, 0)


def test_symmetric_schur():
    S = random_dense(20)
    A = S + S.T
    schur = symmetric_schur(A)
    assert_schur_of(A, schur)
    assert is_decoupled(schur, A)
    assert len(schur.pairs) == 0


def test_diagonal_blocks_are_read_from_the_subdiagonal():
    R = block_diag([[5.0]], pair(-1.0, 2.0), [[4.0]], pair(-3.0, 0.5)) + np.triu(np.ones((6, 6)), 2)
    schur = SchurForm(R, np.eye(6))
    assert schur.starts.tolist() == [0, 1, 3, 4, 6]
    assert schur.sizes.tolist() == [1, 2, 1, 2]
    assert schur.pairs.tolist() == [1, 4]
    np.testing.assert_allclose(schur.eigenvalues, [5, -1 + 2j, 4, -3 + 0.5j], rtol=4 * EPS)
    assert schur.neurons_between(np.array([0, 3, 6])).tolist() == [2, 2]


def test_frequency_of_a_lopsided_pair_neither_over_nor_underflows():
    R = np.array([[0.0, 1e200], [-1e-200, 0.0]])
    np.testing.assert_allclose(SchurForm(R, np.eye(2)).eigenvalues, [1j], rtol=4 * EPS)


@pytest.mark.parametrize(
    "A",
    [skew_symmetric(), haar(21), circulant(np.arange(12.0)), np.eye(4), np.zeros((4, 4))],
    ids=["skew", "orthogonal", "circulant", "identity", "zero"],
)
def test_normal_matrices_are_block_diagonal(A):
    assert is_decoupled(real_schur(A), A)


@pytest.mark.parametrize("where", [(0, 1), (0, 4), (2, 4), (3, 4)])
def test_is_decoupled_detects_one_coupling(where):
    R = np.diag(np.arange(1.0, 6.0))
    assert is_decoupled(SchurForm(R, np.eye(5)), R)
    R[where] = 1e-10
    assert not is_decoupled(SchurForm(R, np.eye(5)), R)
