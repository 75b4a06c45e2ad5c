"""Hypothesis: a connection is a coupling that is there, however small, and not what rounding left."""

import numpy as np
import pytest
from scipy.linalg import block_diag

import ltinet
from evidence import EPS
from hard_matrices import pair, random_dense, rotated
from ltinet.blockdiag.schur import SchurForm, real_schur
from ltinet.blockdiag.separation import coupling_pattern, drop_noise_couplings, separate
from network_examples import pattern_block


def test_neurons_are_pairs_and_reals():
    block = block_diag([[-1.0]], [[-2.0]], pair(-1.0, 2.0), pair(-3.0, 1.0))
    block[0, 1] = block[1, 3] = block[2, 5] = 1.0
    expected = np.zeros((4, 4), dtype=bool)
    expected[0, 1] = expected[1, 2] = expected[2, 3] = True
    np.testing.assert_array_equal(coupling_pattern(block, 2), expected)


@pytest.mark.parametrize(("n_real", "n_pairs"), [(3, 0), (0, 3), (2, 2), (1, 0), (0, 1), (0, 0)])
def test_full_blocks_have_all_connections(n_real, n_pairs):
    n = n_real + n_pairs
    assert np.count_nonzero(coupling_pattern(pattern_block(n_real, n_pairs), n_real)) == n * (n - 1) // 2


def in_one_block(R, A, Z):
    schur = SchurForm(np.array(R, order="F"), np.array(Z, order="F"))
    return drop_noise_couplings(separate(schur, np.zeros(len(schur.sizes), dtype=int)), A)


def test_rounding_errors_are_not_couplings():
    A = rotated(np.diag([-1.0, -2.0, -3.0, -4.0]) + np.diag([0.5, 0.0, 0.5], 1), 1)
    blocks = drop_noise_couplings(separate(real_schur(A), np.zeros(4, dtype=int)), A)
    assert np.count_nonzero(np.triu(blocks, 1)) <= np.count_nonzero(np.triu(real_schur(A).R, 1))
    assert ltinet.block_diagonalize(rotated(np.diag([-1.0, -2.0, -3.0]), 2), n_blocks=1).n_connections == 0


def test_small_exact_couplings_are_kept():
    A = np.diag([-1.0, -2.0, -1e15]) + np.array([[0, 1e-20, 1.0], [0, 0, 1.0], [0, 0, 0]])
    blocks = in_one_block(A, A, np.eye(3))
    assert blocks[0, 1] == 1e-20


def test_only_rounding_is_dropped():
    A = random_dense(20, 4)
    schur = real_schur(A)
    kept = drop_noise_couplings(separate(schur, np.zeros(len(schur.sizes), dtype=int)), A)
    whole = separate(schur, np.zeros(len(schur.sizes), dtype=int)).bases.blocks
    assert np.max(np.abs(kept - whole)) <= 10 * np.sqrt(20) * EPS * 20 * np.linalg.norm(A)


def test_the_kernel_has_no_connections():
    form = ltinet.block_diagonalize(ltinet.named_system("convection_diffusion", points=8).A)
    assert max(form.neurons_per_block) == 16
    assert form.n_connections == 0
    assert "not connected" in str(form)
