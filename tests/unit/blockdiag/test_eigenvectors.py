"""Hypothesis: eigenvectors span the same subspaces as the Sylvester equations, and are refused where they would not."""

import numpy as np
import pytest
from scipy.linalg import block_diag

from evidence import EPS
from hard_matrices import pair, random_dense
from ltinet.blockdiag import decoupling
from ltinet.blockdiag.decoupling import decouple, decouple_neurons
from ltinet.blockdiag.orthonormal_bases import orthonormalize
from ltinet.blockdiag.schur import SchurForm, real_schur

needs_trevc = pytest.mark.skipif(decoupling._trevc is None, reason="this SciPy does not export LAPACK's trevc")


@needs_trevc
@pytest.mark.parametrize("n", [1, 2, 3, 17, 60])
def test_columns_satisfy_the_eigenvalue_equation(n):
    schur = real_schur(random_dense(n, n))
    decoupled = decouple_neurons(schur, schur.starts)
    residual = np.linalg.norm(schur.R @ decoupled.X - decoupled.X @ decoupled.diagonal, 1)
    assert residual <= 30 * n * EPS * np.linalg.norm(schur.R, 1) * np.linalg.norm(decoupled.X, 1)


@needs_trevc
def test_same_subspaces_as_sylvester_equations():
    schur = real_schur(random_dense(20, 4) + np.diag(3.0 * np.arange(20)))
    fast = orthonormalize(decouple_neurons(schur, schur.starts), schur, schur.starts)
    slow = orthonormalize(decouple(schur.R, schur.starts), schur, schur.starts)
    for start, stop in zip(schur.starts[:-1], schur.starts[1:], strict=True):
        P, Q = fast.basis[:, start:stop], slow.basis[:, start:stop]
        # Subspaces are known to eps·‖R‖/sep, and sep is of the order one here.
        assert np.linalg.norm(P @ P.T - Q @ Q.T, 2) <= 1e4 * EPS
    np.testing.assert_allclose(fast.blocks, slow.blocks, atol=1e4 * EPS * np.linalg.norm(schur.R))


@needs_trevc
def test_pairs_stand_as_rotations():
    R = block_diag(pair(-1.0, 2.0), [[3.0]]) + np.triu(np.ones((3, 3)), 2)
    decoupled = decouple_neurons(SchurForm(R, np.eye(3)), np.array([0, 2, 3]))
    np.testing.assert_allclose(decoupled.diagonal, block_diag(pair(-1.0, 2.0), [[3.0]]), rtol=4 * EPS)


def test_nearly_real_pair_uses_sylvester():
    R = block_diag([[3.0]], [[-1.0, 1.0], [-1e-18, -1.0]], pair(-1.0, 2.0)) + np.triu(np.ones((5, 5)), 2)
    schur = SchurForm(R, np.eye(5))
    mixed, slow = decouple_neurons(schur, schur.starts), decouple(R, schur.starts)
    # The same Sylvester equations, alone and together with others; sep is of the order one.
    np.testing.assert_allclose(mixed.X[:, 1:3], slow.X[:, 1:3], rtol=0.0, atol=100 * EPS * np.max(np.abs(slow.X)))
    np.testing.assert_array_equal(mixed.diagonal[1:3, 1:3], R[1:3, 1:3])
    assert np.linalg.norm(R @ mixed.X - mixed.X @ mixed.diagonal, 1) <= 30 * 5 * EPS * np.linalg.norm(R, 1)


@needs_trevc
@pytest.mark.parametrize("every", [2, 3, 30])
def test_wide_blocks_use_sylvester(every):
    schur = real_schur(random_dense(30, 7) + np.diag(3.0 * np.arange(30)))
    bounds = np.unique(np.r_[schur.starts[:5], schur.starts[5::every], 30])
    mixed, slow = decouple_neurons(schur, bounds), decouple(schur.R, bounds)
    wide = np.repeat(schur.neurons_between(bounds) > 1, np.diff(bounds))
    assert 1 <= np.count_nonzero(wide) < 30
    # Both solve Sylvester equations, in another order; sep is of the order one here.
    np.testing.assert_allclose(mixed.X[:, wide], slow.X[:, wide], atol=1e4 * EPS * np.max(np.abs(slow.X)))
    np.testing.assert_array_equal(mixed.diagonal[:, wide], slow.diagonal[:, wide])
    residual = np.linalg.norm(schur.R @ mixed.X - mixed.X @ mixed.diagonal, 1)
    assert residual <= 30 * 30 * EPS * np.linalg.norm(schur.R, 1) * np.linalg.norm(mixed.X, 1)


def test_decouple_neurons_without_trevc(monkeypatch):
    monkeypatch.setattr(decoupling, "_trevc", None)
    schur = real_schur(random_dense(5))
    found, slow = decouple_neurons(schur, schur.starts), decouple(schur.R, schur.starts)
    assert np.array_equal(found.X == 0.0, slow.X == 0.0)
    residual = np.linalg.norm(schur.R @ found.X - found.X @ found.diagonal, 1)
    assert residual <= 30 * 5 * EPS * np.linalg.norm(schur.R, 1) * np.linalg.norm(found.X, 1)
    np.testing.assert_array_equal(found.diagonal, slow.diagonal)  # entries of R


def test_unknown_trevc_signature_is_rejected(monkeypatch):
    monkeypatch.setattr(decoupling, "_TREVC_SIGNATURE", "void (int)")
    assert decoupling._load_trevc() is None


@needs_trevc
def test_nothing_is_printed_for_no_states(capfd):
    decouple_neurons(SchurForm(np.zeros((0, 0)), np.zeros((0, 0))), np.array([0]))
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""  # LAPACK writes about illegal arguments to the terminal


@needs_trevc
def test_the_given_form_is_not_touched():
    schur = real_schur(random_dense(9, 2))
    R = schur.R.copy()
    decouple_neurons(schur, schur.starts)
    np.testing.assert_array_equal(schur.R, R)
