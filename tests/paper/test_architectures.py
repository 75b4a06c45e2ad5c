"""Architectures of the paper's systems, at least as well conditioned as in the paper."""

import numpy as np
import pytest

import ltinet


def test_convection_diffusion_has_199_layers_and_the_first_holds_the_boundary():
    form = ltinet.block_diagonalize(ltinet.named_system("convection_diffusion").A)
    assert form.n_blocks == 199
    assert form.block_sizes[0] == 40
    assert not np.any(form.block(0))  # two rows of 20 points that nothing but the input moves
    assert set(form.neurons_per_block[1:]) == {1}
    assert sum(size == 2 for size in form.block_sizes) == 162
    # The paper has 7.42; 3 + √10 = 6.1623 is what orthonormal bases give.
    assert np.linalg.cond(form.T / form.scaling[:, None]) <= 6.17


def test_diffusion_is_symmetric_and_has_400_layers_of_one_neuron():
    A = ltinet.named_system("diffusion").A
    form = ltinet.block_diagonalize(A)
    assert form.block_sizes == (1,) * 400
    # Orthogonal to rounding: cond(T) − 1 is of the order n·eps.
    assert np.linalg.cond(form.T) - 1.0 <= 400 * np.finfo(float).eps
    values = np.concatenate(form.eigenvalues).real
    # 10·n·eps·‖A‖ with ‖A‖ = 25.6.
    assert abs(values[0]) <= 4000 * np.finfo(float).eps * 25.6
    assert values[-1] == pytest.approx(-25.6, abs=4000 * np.finfo(float).eps * 25.6)


@pytest.mark.parametrize("seed", range(50))
def test_triangular_has_four_layers_with_condition_below_15(seed):
    A = ltinet.named_system("triangular", seed=seed).A
    form = ltinet.block_diagonalize(A, n_blocks=4)
    assert form.n_blocks == 4
    assert np.linalg.cond(form.T / form.scaling[:, None]) <= 15.0


def test_blobs_has_six_layers_of_all_three_kinds():
    form = ltinet.block_diagonalize(ltinet.named_system("blobs").A, n_blocks=6)
    kinds = {(np.any(values.imag == 0), np.any(values.imag != 0)) for values in form.eigenvalues}
    assert form.n_blocks == 6
    assert len(kinds) == 3  # first order, second order, mixed
    assert form.condition < 100.0  # the paper: about 11 at six layers, 1e6 or more at seven
