"""Hypothesis: the inverse of block bases satisfies LAPACK's test of an inverse, whatever the sizes of the blocks."""

import numpy as np
import pytest

from evidence import EPS, LAPACK_THRESHOLD
from hard_matrices import clusters_in_triangle, nearly_real_pairs, random_dense
from ltinet.blockdiag.orthonormal_bases import BlockBases
from ltinet.blockdiag.schur import SchurForm, real_schur
from ltinet.blockdiag.separation import Separation, separate, separate_neurons


def assert_inverse(separation):
    basis, inverse, n = separation.bases.basis, separation.inverse, len(separation.bases.basis)
    size = np.linalg.norm(basis, 1) * np.linalg.norm(inverse, 1)
    residual = np.linalg.norm(basis @ inverse - np.eye(n), 1)
    assert residual <= LAPACK_THRESHOLD * n * EPS * size


@pytest.mark.parametrize("n_groups", [1, 2, 5, 30])
@pytest.mark.parametrize("A", [random_dense(30, 1), nearly_real_pairs(1e-6)], ids=["random", "nearly_real_pairs"])
def test_groups_of_any_size(A, n_groups):
    schur = real_schur(A)
    assert_inverse(separate(schur, np.arange(len(schur.sizes)) % n_groups))


def test_nearly_parallel_bases():
    # cond(T) is above 1e8 here: what is small is T T⁻¹ − I, not T⁻¹ T − I.
    separation = separate_neurons(real_schur(clusters_in_triangle()))
    assert separation.condition > 1e8
    assert_inverse(separation)


def test_zeros_below_the_blocks_are_exact():
    schur = real_schur(random_dense(30, 1))
    separation = separate(schur, np.arange(len(schur.sizes)) % 5)
    block = np.searchsorted(separation.bases.bounds, np.arange(30), side="right")
    assert not separation.inverse[block[:, None] > block].any()


@pytest.mark.parametrize("sizes", [(1, 1), (2, 2), (3, 3)])
def test_parallel_bases_have_no_inverse(sizes):
    half = sizes[0]
    basis = np.zeros((2 * half, 2 * half))
    basis[:half, :half] = basis[:half, half:] = np.eye(half)
    with pytest.raises(np.linalg.LinAlgError, match=r"parallel|Singular"):
        _ = Separation(SchurForm(basis, basis), BlockBases(basis, basis, np.array([0, half, 2 * half]))).inverse


def test_nothing():
    assert separate_neurons(SchurForm(np.zeros((0, 0)), np.zeros((0, 0)))).inverse.shape == (0, 0)
