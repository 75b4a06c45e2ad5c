"""Hypothesis: the width of the blocks changes speed only."""

import numpy as np
import pytest

import ltinet
from ltinet.solve.modal import modal_system
from ltinet.solve.toeplitz import block_toeplitz
from ltinet.solve.uniform import uniform_grid

# Slow and fast scalars, a pair, and a coupled block: after a block of 64 steps some states last and some have faded.
A = np.array(
    [
        [-0.1, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, -500.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, -0.2, 3.0, 0.0, 0.0],
        [0.0, 0.0, -3.0, -0.2, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, -1.0, 1.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, -1.0],
    ]
)


@pytest.fixture
def system():
    rng = np.random.default_rng(1)
    given = ltinet.StateSpace(A, rng.standard_normal((6, 2)), rng.standard_normal((3, 6)), rng.standard_normal((3, 2)))
    return modal_system(ltinet.construct(given).network)


@pytest.mark.parametrize("width", [2, 8, 32, 64, 128])
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("linear", [True, False])
def test_blocks_of_any_width_agree_with_single_steps(system, width, batch, linear):
    rng = np.random.default_rng(width)
    u, w = rng.standard_normal((batch, 300, 2)), rng.standard_normal((batch, 6))
    single = uniform_grid(system, 0.02, linear=linear, n_times=300, width=1)
    blocked = uniform_grid(system, 0.02, linear=linear, n_times=300, width=width)
    expected, _ = single.outputs(u, w)
    np.testing.assert_allclose(blocked.outputs(u, w)[0], expected, rtol=0, atol=1e-13 * np.abs(expected).max())


def test_the_state_after_whole_blocks_goes_on_where_the_signal_is_cut(system):
    rng = np.random.default_rng(0)
    u, w = rng.standard_normal((2, 256, 2)), rng.standard_normal((2, 6))
    grid = uniform_grid(system, 0.02, linear=True, n_times=256, width=64)
    assert 0 < len(grid.lasting.faded) < 6
    whole, after = grid.outputs(u, w)
    first, between = grid.outputs(u[:, :128], w)
    second, after_second = grid.outputs(u[:, 128:], between)
    size = np.abs(whole).max()
    np.testing.assert_allclose(np.concatenate([first, second], axis=1), whole, rtol=0, atol=1e-14 * size)
    np.testing.assert_allclose(after_second, after, rtol=0, atol=1e-14 * np.abs(after).max())


def test_inputs_that_are_mostly_zero_give_what_others_give(system):
    u = np.zeros((1, 50, 2))
    u[0, 3], u[0, 40] = [1.0, -2.0], [0.5, 0.0]
    grid = uniform_grid(system, 0.02, linear=True, n_times=50, width=1)
    rest = np.full((1, 50, 2), 1.0)
    pulse, ones, both = (grid.outputs(values, np.zeros((1, 6)))[0] for values in (u, rest, u + rest))
    np.testing.assert_allclose(pulse + ones, both, rtol=0, atol=1e-14 * np.abs(both).max())


@pytest.mark.parametrize("K", [1, 8, 32, 64])
def test_a_block_toeplitz_matrix_convolves(K):
    rng = np.random.default_rng(K)
    markov, blocks = rng.standard_normal((K, 3, 2)), rng.standard_normal((5, K * 2))
    u = blocks.reshape(5, K, 2)
    expected = np.stack([sum(u[:, j] @ markov[k - j].T for j in range(k + 1)) for k in range(K)], axis=1)
    out = np.empty((5, K * 3))
    block_toeplitz(markov).outputs(blocks, out=out)
    np.testing.assert_allclose(out, expected.reshape(5, K * 3), atol=1e-13 * K)
