"""Hypothesis: however the steps are cut into runs, the recurrence gives what one step after the other gives."""

import numpy as np
import pytest
from flint import arb_mat, ctx

from ltinet.solve.steps.recurrence import Decay, accumulate


def _one_by_one(added, first, decay):
    """The recurrence with full matrices in balls of 256 bits, whose radii stay far below the rounding of a double."""
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
    with ctx.workprec(256):
        step, state = _balls(P), _balls(first.T)
        for k in range(added.shape[1]):
            state = step * state + _balls(added[:, k].T)
            assert max(float(entry.rad()) for entry in state.entries()) < 1e-40
            ends[:, k] = np.array([float(entry) for entry in state.entries()]).reshape(first.T.shape).T
    return ends


def _balls(matrix):
    return arb_mat(*matrix.shape, matrix.ravel().tolist())


@pytest.mark.parametrize("n_steps", [1, 2, 31, 33, 64, 401])
@pytest.mark.parametrize("batch", [1, 3])
def test_accumulate(n_steps, batch):
    rng = np.random.default_rng(n_steps)
    decay = Decay(
        pairs=np.array([0.9 + 0.3j, 1e-30 + 0j, -0.2j]),
        reals=np.array([1.0, 0.5, 0.0]),
        blocks=(np.array([[0.9, 1.0], [0.0, 0.9]]),),
    )
    added, first = rng.standard_normal((batch, n_steps, 11)), rng.standard_normal((batch, 11))
    ends = added.copy()
    accumulate(ends, first, decay)
    expected = _one_by_one(added, first, decay)
    # Rounding of a sum of at most n_steps terms of the size of the result, as in any order of summation.
    bound = n_steps * np.finfo(float).eps * np.abs(expected).max()
    assert np.abs(ends - expected).max() <= bound


def test_growth_beyond_the_range_of_numbers_does_not_spoil_a_state_at_rest():
    decay = Decay(pairs=np.zeros(0, complex), reals=np.array([1e30, 0.5]), blocks=())
    ends = np.zeros((1, 400, 2))
    ends[0, :, 1] = 1.0
    accumulate(ends, np.zeros((1, 2)), decay)
    assert np.all(ends[0, :, 0] == 0.0)
    assert ends[0, -1, 1] == pytest.approx(2.0, rel=1e-15)


def test_no_steps_at_all():
    accumulate(np.zeros((2, 0, 1)), np.ones((2, 1)), Decay(np.zeros(0, complex), np.ones(1), ()))
