"""Hypothesis: steps with individual decays, in parallel runs, equal single steps."""

import numpy as np
import pytest
from flint import arb_mat, ctx

from ltinet.simulation.recurrence import VariableDecay, matrix_decays, scan_in_runs, split_into_runs

EPS = float(np.finfo(float).eps)


def _balls(matrix):
    return arb_mat(*matrix.shape, matrix.ravel().tolist())


def _one_by_one(decays, added, first):
    """States `(steps, n, batch)` after steps with a matrix each, in balls of 256 bits."""
    ends = np.empty(added.shape)
    with ctx.workprec(256):
        state = _balls(first)
        for k, decay in enumerate(decays):
            state = _balls(decay) * state + _balls(added[k])
            ends[k] = np.array([float(entry) for entry in state.entries()]).reshape(first.shape)
    return ends


def _followed(decays, added, first, length, **known):
    """States after each step, in turn."""
    factors, states = (
        part.reshape(-1, length, *part.shape[1:]).swapaxes(0, 1).copy() for part in (decays.factors, added)
    )
    for place, own in enumerate(scan_in_runs(decays._replace(factors=factors), states, first, **known)):
        np.testing.assert_array_equal(own, states[place])
    return states.swapaxes(0, 1).reshape(added.shape)


@pytest.mark.parametrize("n_steps", [1, 31, 40, 401])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("kept", [True, False, "some"])
@pytest.mark.parametrize("kind", ["real", "complex"])
def test_scalars(n_steps, batch, kept, kind):
    rng = np.random.default_rng(n_steps)
    length, count = split_into_runs(n_steps)
    assert 0 <= length * count - n_steps < length
    P = rng.uniform(0.0, 1.0, (length * count, 1, 3)) * [1.0, 1e-20, 0.9]
    added, first = rng.standard_normal((length * count, batch, 3)), rng.standard_normal((batch, 3))
    if kind == "complex":
        P = P * np.exp(1j * rng.uniform(0.0, 6.0, P.shape))
        added, first = added + 1j * added[::-1], first * (1.0 - 2.0j)
    kept = np.array([1.0, 0.0, 1.0]) if kept == "some" else kept
    ends = _followed(VariableDecay(P - kept, np.multiply, 1.0, kept), added, first, length)
    state, expected = first, []
    for decay, more in zip(P, added, strict=True):
        state = decay * state + more
        expected.append(state)
    # Both orders round by a few units of sums that the decay keeps below ten; so does P − 1 beside P.
    np.testing.assert_allclose(ends, expected, rtol=0, atol=100 * EPS * np.abs(expected).max())


@pytest.mark.parametrize("n_steps", [1, 40, 401])
def test_blocks(n_steps):
    rng = np.random.default_rng(n_steps)
    length, count = split_into_runs(n_steps)
    P = 0.4 * rng.standard_normal((length * count, 2, 3, 3))
    added, first = rng.standard_normal((length * count, 2, 3, 2)), rng.standard_normal((2, 3, 2))
    ends = _followed(matrix_decays(P), added, first, length)
    for block in range(2):
        expected = _one_by_one(P[:, block], added[:, block], first[block])
        assert np.abs(ends[:, block] - expected).max() <= length * count * EPS * np.abs(expected).max()


@pytest.mark.parametrize("product", [np.multiply, np.matmul])
def test_overflow_leaves_state_at_rest_zero(product):
    if product is np.multiply:
        P, first = np.tile([[1e30, 0.5]], (400, 1, 1)), np.zeros((1, 2))
    else:
        P, first = np.tile(np.diag([1e30, 0.5]), (400, 1, 1)), np.zeros((2, 1))
    added = np.zeros((400, *first.shape))
    added.reshape(400, 2)[:, 1] = 1.0
    ends = _followed(VariableDecay(P, product, 1e30), added, first, 8).reshape(400, 2)
    assert np.all(ends[:, 0] == 0.0)
    assert ends[-1, 1] == pytest.approx(2.0, rel=1e-15)


def test_small_changes_of_large_states_are_accurate():
    """A state decays by 2⁻⁵⁴ per step: P is 1 as a double, only P − 1 is known."""
    change, states = np.full((4096, 1, 1), -(2.0**-54)), np.zeros((4096, 1, 1))
    ends = _followed(VariableDecay(change, np.multiply, 1.0, True), states, np.ones((1, 1)), 16)
    # Within a run of 16 steps a quarter of a unit each is lost, and a chain of some hundred runs rounds as often.
    assert 1.0 - ends[-1, 0, 0] == pytest.approx(4096 * 2.0**-54, rel=0.05)
