"""Hypothesis: for any division into runs the recurrence equals single steps."""

import numpy as np
import pytest
from flint import arb_mat, ctx

from ltinet._util.floating_point import EPS
from ltinet.simulation import recurrence
from ltinet.simulation.recurrence import StepDecay, scan_states


def _one_by_one(added, first, decay):
    """The recurrence with full matrices in balls of 1024 bits, whose radii stay far below the rounding of a double."""
    n_pairs, n_reals = len(decay.pairs), len(decay.reals)
    sizes = [2] * n_pairs + [1] * n_reals + [len(block) for block in decay.blocks]
    matrices = [np.array([[p.real, -p.imag], [p.imag, p.real]]) for p in decay.pairs]
    matrices += [np.array([[r]]) for r in decay.reals] + list(decay.blocks)
    P = np.zeros((sum(sizes), sum(sizes)))
    offset = 0
    for size, matrix in zip(sizes, matrices, strict=True):
        P[offset : offset + size, offset : offset + size] = matrix
        offset += size
    ends = np.empty(added.shape)
    with ctx.workprec(1024):
        step, state = _balls(P), _balls(first.T)
        for k in range(added.shape[1]):
            state = step * state + _balls(added[:, k].T)
            assert max(float(entry.rad()) for entry in state.entries()) < 1e-40
            ends[:, k] = np.array([float(entry) for entry in state.entries()]).reshape(first.T.shape).T
    return ends


def _balls(matrix):
    return arb_mat(*matrix.shape, matrix.ravel().tolist())


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("n_steps", [1, 2, 7, 8, 31, 33, 64, 401])
def test_accumulate(n_steps, batch):
    _agrees(n_steps, batch)


def test_accumulate_in_runs():
    """Matrices of this size are not solved by substitution."""
    n_steps, batch = 2001, 5
    assert n_steps * batch * 3 > recurrence._MAX_SUBSTITUTION_NUMBERS
    _agrees(n_steps, batch)


def _agrees(n_steps, batch):
    rng = np.random.default_rng(n_steps)
    decay = StepDecay(
        pairs=np.array([0.9 + 0.3j, 1e-30 + 0j, -0.2j]),
        reals=np.array([1.0, 0.5, 0.0]),
        blocks=(np.array([[0.9, 1.0], [0.0, 0.9]]),),
    )
    added, first = rng.standard_normal((batch, n_steps, 11)), rng.standard_normal((batch, 11))
    ends = added.copy()
    scan_states(ends, first, decay)
    expected = _one_by_one(added, first, decay)
    # Rounding of a sum of at most n_steps terms of the size of the result, as in any order of summation.
    bound = n_steps * np.finfo(float).eps * np.abs(expected).max()
    assert np.abs(ends - expected).max() <= bound


def test_overflow_leaves_state_at_rest_zero():
    decay = StepDecay(pairs=np.zeros(0, complex), reals=np.array([1e30, 0.5]), blocks=())
    ends = np.zeros((1, 400, 2))
    ends[0, :, 1] = 1.0
    scan_states(ends, np.zeros((1, 2)), decay)
    assert np.all(ends[0, :, 0] == 0.0)
    assert ends[0, -1, 1] == pytest.approx(2.0, rel=1e-15)


@pytest.mark.parametrize("n_steps", [5, 100, 30_000])
def test_overflowing_state_leaves_other_states_finite(n_steps):
    decay = StepDecay(pairs=np.array([1e200j, 0.5j]), reals=np.array([0.25, 1e200, 0.5]), blocks=())
    ends = np.ones((2, n_steps, 7))
    with np.errstate(over="ignore", invalid="ignore"):
        scan_states(ends, np.zeros((2, 7)), decay)
    assert not np.isfinite(ends[:, -1, [0, 1, 5]]).any()
    np.testing.assert_allclose(
        ends[:, -1, [4, 6]], np.array([[4 / 3, 2.0]] * 2), rtol=4.0**-n_steps + 2.0**-n_steps + 1e-15
    )
    expected = (1 + 1j) * (1 - 0.5j**n_steps) / (1 - 0.5j)
    np.testing.assert_allclose(ends[:, -1, 2:4], np.array([[expected.real, expected.imag]] * 2), rtol=1e-14)


def test_no_steps_at_all():
    scan_states(np.zeros((2, 0, 1)), np.ones((2, 1)), StepDecay(np.zeros(0, complex), np.ones(1), ()))


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("n", [1, 2, 5, 16, 17])
def test_dense_steps_of_a_single_run(n):
    """Steps by cyclic reduction; errors like those of one matrix-vector product per step."""
    rng = np.random.default_rng(n)
    matrix = 0.99 * np.eye(n) + 1e-3 * rng.standard_normal((n, n))
    added, first = rng.standard_normal((1, 3 * recurrence._MIN_REDUCTION_STEPS + 7, n)), rng.standard_normal((1, n))
    ends = added.copy()
    scan_states(ends, first, StepDecay(np.empty(0, complex), np.empty(0), (matrix,)))
    with ctx.workprec(256):
        state, step = _balls(first.T), _balls(matrix)
        for k in range(added.shape[1]):
            state = step * state + _balls(added[:, k].T)
            exact = np.array([float(entry) for entry in state.entries()])
            assert np.abs(ends[0, k] - exact).max() <= (k + 1) * (n + 2) * EPS * np.abs(ends).max()


def test_dense_steps_that_overflow(monkeypatch):
    """A state overflows at the same step as in single steps; all states before are equal."""
    decay = StepDecay(np.empty(0, complex), np.empty(0), (np.array([[9.0, 0.0], [0.0, -0.5]]),))
    found = []
    for most in (0, recurrence._MAX_REDUCTION_STATES):
        monkeypatch.setattr(recurrence, "_MAX_REDUCTION_STATES", most)
        ends = np.ones((1, 6 * recurrence._MIN_REDUCTION_STEPS, 2))
        with np.errstate(over="ignore", invalid="ignore"):
            scan_states(ends, np.ones((1, 2)), decay)
        found.append(ends)
    finite = [np.isfinite(ends).all(axis=-1) for ends in found]
    assert 300 < np.count_nonzero(finite[0]) < len(finite[0][0])
    np.testing.assert_array_equal(*finite)
    np.testing.assert_allclose(*(ends[finite[0]] for ends in found), rtol=1e-14)
