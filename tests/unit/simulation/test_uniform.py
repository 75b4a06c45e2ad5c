"""Hypothesis: all algorithms for uniform samples give the same outputs."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import ltinet
from ltinet.simulation.convolution import prepare_convolution
from ltinet.simulation.grids import CostModel, GridCache, prepare_uniform_grid, select_convolution
from ltinet.simulation.modal import to_modal_system
from ltinet.simulation.step_model import prepare_single_steps, prepare_step_model
from ltinet.simulation.time_blocks import TimeBlocks, prepare_time_blocks

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


def system_of(A, *, n_inputs=2, n_outputs=3):
    rng = np.random.default_rng(1)
    n = len(A)
    B, C, D = (rng.standard_normal(shape) for shape in ((n, n_inputs), (n_outputs, n), (n_outputs, n_inputs)))
    return to_modal_system(ltinet.construct((A, B, C, D)).blocks)


@pytest.fixture(params=[True, False], ids=["linear", "zero"])
def step(request):
    return prepare_step_model(system_of(A), 0.02, linear=request.param)


@pytest.mark.parametrize("width", [2, 8, 32, 64, 128])
@pytest.mark.parametrize("batch", [1, 4])
def test_blocks_of_any_width_agree_with_single_steps(step, width, batch):
    rng = np.random.default_rng(width)
    u, w = rng.standard_normal((batch, 300, 2)), rng.standard_normal((batch, 6))
    expected = prepare_single_steps(step).outputs(u, w)
    found = prepare_time_blocks(step, width).outputs(u, w)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * np.abs(expected).max())


@pytest.mark.parametrize("n_times", [2, 3, 128, 301])
@pytest.mark.parametrize("batch", [1, 4, 300])
def test_convolution_agrees_with_single_steps(step, n_times, batch):
    u = np.random.default_rng(n_times).standard_normal((batch, n_times, 2))
    expected = prepare_single_steps(step).outputs(u, step.shifted_state(np.zeros((batch, 6)), u[:, 0]))
    grid = prepare_convolution(step, n_times)
    found = grid.outputs(u)
    assert found.shape == expected.shape
    assert np.all(np.abs(found - expected) <= grid.rounding(np.abs(u).max(axis=(0, 1))))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14 * np.abs(expected).max())


def test_before_the_first_input_a_convolution_is_zero(step):
    u = np.random.default_rng(0).standard_normal((3, 200, 2))
    u[0, :50], u[1] = 0.0, 0.0
    y = prepare_convolution(step, 200).outputs(u)
    assert not y[0, :50].any()
    assert not y[1].any()
    assert y[0, 50].all()
    assert y[2].all()


def test_state_after_whole_blocks_continues_a_cut_signal(step):
    rng = np.random.default_rng(0)
    u, w = rng.standard_normal((2, 256, 2)), rng.standard_normal((2, 6))
    grid = prepare_time_blocks(step, 64)
    assert 0 < len(grid.decayed) < 6
    whole, after = grid.outputs_and_state(u, w)
    first, between = grid.outputs_and_state(u[:, :128], w)
    second, after_second = grid.outputs_and_state(u[:, 128:], between)
    size = np.abs(whole).max()
    np.testing.assert_allclose(np.concatenate([first, second], axis=1), whole, rtol=0, atol=1e-14 * size)
    np.testing.assert_allclose(after_second, after, rtol=0, atol=1e-14 * np.abs(after).max())


def test_sparse_inputs_give_the_same_outputs(step):
    u = np.zeros((1, 50, 2))
    u[0, 3], u[0, 40] = [1.0, -2.0], [0.5, 0.0]
    grid = prepare_single_steps(step)
    rest = np.full((1, 50, 2), 1.0)
    pulse, ones, both = (grid.outputs(values, np.zeros((1, 6))) for values in (u, rest, u + rest))
    np.testing.assert_allclose(pulse + ones, both, rtol=0, atol=1e-14 * np.abs(both).max())


def test_responses_are_those_of_a_pulse(step):
    """An input at the second sample only: H_k at the samples from there on."""
    u = np.zeros((2, 100, 2))
    u[0, 1, 0], u[1, 1, 1] = 1.0, 1.0
    y = prepare_single_steps(step).outputs(u, np.zeros((2, 6)))
    by_Gamma, _ = step.markov_parameters(98)
    np.testing.assert_allclose(y[:, 2:].transpose(1, 2, 0), by_Gamma, rtol=0, atol=1e-14 * np.abs(y).max())


# A pole of its own, and a coupled block whose powers overflow to infinities of both signs.
@pytest.mark.parametrize("A", [np.diag([30.0, -1.0]), np.diag([20.0, 20.0, 20.0, -1.0]) + np.diag([1.0, 1.0, 0.0], 1)])
def test_overflowing_system_gets_shorter_blocks(A):
    growing = prepare_step_model(system_of(A), 1.0, linear=True)
    assert prepare_time_blocks(growing, 64) is None
    u = np.zeros((1, 1000, 2))
    u[:, -8:] = 1.0
    grid = prepare_uniform_grid(growing, CostModel(growing.system, growing.length, 1000))
    assert np.all(np.isfinite(grid.outputs(u, np.zeros((1, len(A))))))


def test_states_decayed_within_a_step_skip_the_recurrence():
    fast = prepare_step_model(system_of(np.diag(-np.linspace(1e3, 1e5, 100))), 1.0, linear=True)
    assert isinstance(prepare_uniform_grid(fast, CostModel(fast.system, fast.length, 20_000)), TimeBlocks)


def test_threads_can_share_what_is_prepared():
    """More step lengths than the cache holds, requested by several threads at once."""
    grids = GridCache(system_of(A))
    lengths = [0.01 * (1 + place % 11) for place in range(400)]
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda length: grids.single(length, linear=True).step.length, lengths)
        assert list(found) == lengths


@pytest.mark.parametrize("fastest_growth", [-0.01, 0.2])
def test_convolution_is_selected_for_slow_states_without_growth(fastest_growth):
    slow = np.diag(-0.01 * np.arange(1.0, 201.0))
    slow[0, 0] = fastest_growth
    step = prepare_step_model(system_of(slow), 0.01, linear=True)
    convolution = select_convolution(step, CostModel(step.system, step.length, 10_000))
    assert (convolution is None) == (fastest_growth > 0.0)
