"""Hypothesis: reordering is an orthogonal similarity after which the neurons of each group stand together."""

import itertools

import numpy as np
import pytest
from scipy.linalg import block_diag

from evidence import EPS
from hard_matrices import haar, jordan, pair, random_dense
from ltinet.blockdiag.schur import SchurForm, is_decoupled, leading_subspace, real_schur, reorder


def assert_orthogonally_similar(before, after):
    n = len(before.R)
    assert np.linalg.norm(after.Z.T @ after.Z - np.eye(n), 1) <= 30 * n * EPS
    A = before.Z @ before.R @ before.Z.T
    assert np.linalg.norm(after.Z @ after.R @ after.Z.T - A, 1) <= 30 * n * EPS * np.linalg.norm(A, 1)
    assert not np.any(np.tril(after.R, -2))


@pytest.mark.parametrize("seed", range(5))
def test_groups_become_contiguous(seed):
    schur = real_schur(random_dense(30, seed))
    groups = np.random.default_rng(seed).integers(0, 4, len(schur.sizes))
    ordered = reorder(schur, groups)
    assert_orthogonally_similar(schur, ordered.schur)
    assert ordered.bounds[0] == 0
    assert ordered.bounds[-1] == 30
    expected = sorted(multiset(schur.eigenvalues[groups == group]) for group in np.unique(groups))
    first = ordered.schur.starts.searchsorted(ordered.bounds)
    found = sorted(multiset(ordered.schur.eigenvalues[a:b]) for a, b in itertools.pairwise(first))
    assert found == expected


def test_reorder_sorts_reals_first():
    R = block_diag(pair(-1.0, 2.0), pair(-0.5, 3.0), [[-4.0]], [[-2.0]]) + np.triu(np.ones((6, 6)), 2)
    ordered = reorder(SchurForm(R, np.eye(6)), np.zeros(4, dtype=int))
    values = ordered.schur.eigenvalues
    assert (values.imag > 0).tolist() == [False, False, True, True]
    np.testing.assert_allclose(values.real, [-2.0, -4.0, -0.5, -1.0], rtol=1e-12)  # rounding of swaps, cond ~10


def test_each_neuron_alone_needs_no_swap():
    schur = real_schur(random_dense(12, 3))
    ordered = reorder(schur, np.arange(len(schur.sizes))[::-1])
    np.testing.assert_array_equal(ordered.schur.R, schur.R)
    np.testing.assert_array_equal(ordered.bounds, schur.starts)


def test_swap_of_equal_eigenvalues():
    # LAPACK calls equal eigenvalues exchanged and does nothing; their couplings to others differ.
    R = np.array([[1.0, 0.0, 5.0], [0.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    schur = SchurForm(R, np.eye(3))
    ordered = reorder(schur, np.array([0, 1, 0]))
    assert_orthogonally_similar(schur, ordered.schur)
    assert ordered.bounds.tolist() == [0, 2, 3]
    assert ordered.schur.R[0, 2] == ordered.schur.R[1, 2] == 0.0  # the second state is decoupled from the group


def test_swap_of_uncoupled_blocks_is_exact():
    R = block_diag(random_schur_block(), pair(-1.0, 2.0), [[-3.0]], pair(-0.1, 7.0))
    schur = SchurForm(R, np.eye(len(R)))
    ordered = reorder(schur, np.array([0, 1, 2, 0]))
    assert set(np.unique(ordered.schur.Z).tolist()) == {0.0, 1.0}  # a permutation
    place = np.argmax(ordered.schur.Z, axis=0)
    np.testing.assert_array_equal(ordered.schur.R, R[np.ix_(place, place)])


def random_schur_block():
    """One pair with the numbers of a general matrix."""
    return np.array([[-0.7, 1.3], [-0.2, -0.7]])


def test_refused_swap_merges_groups():
    # Two equal pairs, coupled: LAPACK cannot exchange what it cannot tell apart.
    R = np.kron(np.eye(3), pair(-1.0, 2.0)) + np.kron(np.eye(3, k=1), np.eye(2))
    schur = SchurForm(R, np.eye(6))
    ordered = reorder(schur, np.array([0, 1, 0]))
    assert_orthogonally_similar(schur, ordered.schur)
    assert ordered.bounds.tolist() in ([0, 6], [0, 4, 6], [0, 2, 6])


def test_reorder_with_splitting_pair():
    rng = np.random.default_rng(0)
    for omega in 10.0 ** np.arange(-17.0, -5.0):
        lopsided = np.array([[-1.0, 1.0], [-(omega**2), -1.0]])
        R = block_diag(lopsided, [[-3.0]], lopsided, [[-2.0]])
        R += np.triu(rng.standard_normal((6, 6)), 2) * (np.triu(np.ones((6, 6)), 1) > 0)
        schur = SchurForm(R, np.eye(6))
        ordered = reorder(schur, np.array([0, 1, 2, 0]))
        assert_orthogonally_similar(schur, ordered.schur)
        assert sorted(np.diff(ordered.bounds).tolist()) in ([1, 2, 3], [1, 5], [3, 3], [2, 4], [6])


def test_the_given_form_is_not_touched():
    schur = real_schur(random_dense(10, 5))
    R, Z = schur.R.copy(), schur.Z.copy()
    reorder(schur, np.arange(len(schur.sizes)) % 2)
    np.testing.assert_array_equal(schur.R, R)
    np.testing.assert_array_equal(schur.Z, Z)


def test_leading_subspace_is_invariant_to_rounding():
    R = np.triu(random_dense(12, 6), 1) + np.diag(np.r_[np.full(6, -1.0), np.full(6, -1.0 - 1e-7)])
    Q, B = leading_subspace(R, 7)
    assert Q.shape == (12, 5)
    assert np.linalg.norm(Q.T @ Q - np.eye(5), 1) <= 30 * 12 * EPS
    assert np.linalg.norm(R @ Q - Q @ B, 1) <= 30 * 12 * EPS * np.linalg.norm(R, 1)
    np.testing.assert_allclose(np.diag(B), np.full(5, -1.0 - 1e-7), rtol=1e-12)


def test_leading_subspace_beside_equal_eigenvalues_without_coupling():
    # LAPACK alone would leave the vectors of equal eigenvalues where they are.
    R = np.kron(np.eye(2), np.array([[-1.0, 300.0], [0.0, -2.0]]))
    Q, B = leading_subspace(R, 2)
    np.testing.assert_array_equal(Q[:2], np.zeros((2, 2)))
    assert np.linalg.norm(R @ Q - Q @ B, 1) <= 30 * 4 * EPS * np.linalg.norm(R, 1)


def test_leading_subspace_of_inseparable_pairs_is_refused_or_invariant():
    R = np.kron(jordan(2, 0.0), np.eye(2)) + np.kron(np.eye(2), pair(-1.0, 2.0))
    found = leading_subspace(R, 2)
    if found is not None:
        Q, B = found
        assert np.linalg.norm(R @ Q - Q @ B, 1) <= 30 * 4 * EPS * np.linalg.norm(R, 1)


def test_leading_subspace_keeps_pairs():
    # Swaps turn pairs with a tiny imaginary part into two real eigenvalues now and then; such a result is refused.
    rng = np.random.default_rng(0)
    for omega in 10.0 ** rng.uniform(-17.0, -7.0, 40):
        lopsided = np.array([[-1.0, 1.0], [-(omega**2), -1.0]])
        R = block_diag([[-rng.uniform(0.5, 3.0)]], lopsided, lopsided)
        R[0, 1:], R[1:3, 3:] = rng.standard_normal(4), rng.standard_normal((2, 2))
        found = leading_subspace(R, 1)
        if found is not None:
            Q, B = found
            assert np.flatnonzero(np.diagonal(B, -1)).tolist() == [0, 2]
            assert np.linalg.norm(R @ Q - Q @ B, 1) <= 30 * 5 * EPS * np.linalg.norm(R, 1)


def test_rotations_of_a_normal_matrix_stay_block_diagonal():
    Q = haar(10)
    schur = real_schur(Q)
    ordered = reorder(schur, np.arange(len(schur.sizes)) % 2)
    assert_orthogonally_similar(schur, ordered.schur)
    assert is_decoupled(ordered.schur, Q)


def multiset(values):
    """Eigenvalues rounded to what swaps cannot move, in an order of their own."""
    return sorted((round(float(value.real), 8), round(float(value.imag), 8)) for value in values)
