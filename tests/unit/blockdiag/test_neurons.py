"""Hypothesis: every diagonal block gets an orthonormal basis of its own, by whichever way is accurate."""

import numpy as np
import pytest

from evidence import EPS
from hard_matrices import nearly_real_pairs, random_dense
from ltinet.blockdiag import decoupling
from ltinet.blockdiag.orthonormal_bases import block_bases, neuron_bases
from ltinet.blockdiag.schur import SchurForm, real_schur


@pytest.mark.parametrize("A", [random_dense(15, 1), nearly_real_pairs(1e-6)], ids=["random", "nearly_real_pairs"])
@pytest.mark.parametrize("with_trevc", [True, False])
def test_bases_are_orthonormal_and_invariant(A, with_trevc, monkeypatch):
    if not with_trevc:
        monkeypatch.setattr(decoupling, "_trevc", None)
    schur = real_schur(A)
    bases = neuron_bases(schur)
    n = len(A)
    np.testing.assert_array_equal(bases.bounds, schur.starts)
    for start, stop in zip(bases.bounds[:-1], bases.bounds[1:], strict=True):
        Q = bases.basis[:, start:stop]
        assert np.linalg.norm(Q.T @ Q - np.eye(stop - start)) <= 100 * EPS
    residual = np.linalg.norm(schur.R @ bases.basis - bases.basis @ bases.blocks, 1)
    assert residual <= 30 * n * EPS * np.linalg.norm(schur.R, 1) * np.linalg.norm(bases.basis, 1)


@pytest.mark.parametrize("with_trevc", [True, False])
def test_bases_of_a_nilpotent_matrix_are_finite(with_trevc, monkeypatch):
    if not with_trevc:
        monkeypatch.setattr(decoupling, "_trevc", None)
    basis = neuron_bases(SchurForm(np.triu(random_dense(60, 2), 1), np.eye(60))).basis
    assert np.all(np.isfinite(basis))
    np.testing.assert_allclose(np.linalg.norm(basis, axis=0), np.ones(60), rtol=60 * EPS)


def test_rounding_does_not_merge_blocks():
    # Twice the same eigenvalue, with a coupling that rounding left: two directions, not one.
    R = np.array([[1.0, 1e-17, 0.3], [0.0, 1.0, 0.2], [0.0, 0.0, 2.0]])
    bases = block_bases(SchurForm(R, np.eye(3)), np.arange(4))
    assert np.linalg.cond(bases.basis) < 10.0


@pytest.mark.parametrize("coupling", [0.0, 0.5])
def test_blocks_of_several_neurons_are_invariant(coupling):
    R = np.triu(random_dense(12, 3), 1) + np.diag(np.r_[np.arange(1.0, 12.0), 1.0])  # the first and last are equal
    R[0, 1:] *= coupling
    schur, bounds = SchurForm(R, np.eye(12)), np.array([0, 1, 4, 5, 11, 12])
    bases = block_bases(schur, bounds)
    residual = np.linalg.norm(R @ bases.basis - bases.basis @ bases.blocks, 1)
    assert residual <= 30 * 12 * EPS * np.linalg.norm(R, 1) * np.linalg.norm(bases.basis, 1)
