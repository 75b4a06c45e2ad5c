"""Hypothesis: what SciPy keeps of small and of slow states is kept, in whatever units and order a user has them."""

import numpy as np
import pytest

import ltinet
from ball_oracle import respond
from hostile.peer import advance, exponential_step

_RIGHT, _TIMES_THE_PEER = 1e-10, 10.0


def _cascade(rng):
    """Lags and integrators one after the other, in any order, with rates and couplings that are decades apart."""
    n, decades = int(rng.integers(6, 12)), rng.uniform(2.0, 5.0)
    rates = 10.0 ** rng.uniform(-decades, decades, n) * (rng.random(n) > 0.2)
    A = np.diag(-rates) + np.diag(10.0 ** rng.uniform(-decades, decades, n - 1) * rng.choice([-1.0, 1.0], n - 1), -1)
    order = rng.permutation(n)
    return A[order][:, order], 10.0 ** rng.uniform(-decades, decades)


def _compartments(rng):
    """One beside the other, nothing is lost: the slowest rate is zero, and others are decades above."""
    n, decades = int(rng.integers(3, 7)), rng.uniform(2.0, 5.0)
    A = np.diag(10.0 ** rng.uniform(-decades, decades, n - 1), -1)
    A += np.diag(10.0 ** rng.uniform(-decades, decades, n - 1), 1)
    return A - np.diag(A.sum(axis=0)), 10.0 ** rng.uniform(0.0, decades)


def _by_exponentials(A, B, u, t, hold, x0):
    """States `(T, n)`, one of SciPy's exponentials a step."""
    x = [x0]
    for k, h in enumerate(np.diff(t)):
        x.append(advance(exponential_step(A, B, h), x[-1], u[k], u[k + 1] if hold == "linear" else u[k]))
    return np.array(x)


def _is_right(found, peer, truth):
    error, allowed = truth.distance(found).max(axis=0), _TIMES_THE_PEER * truth.distance(peer).max(axis=0)
    return np.all((error <= _RIGHT * truth.peak) | (error <= allowed))


@pytest.mark.default_cases(6)
@pytest.mark.parametrize("hold", ["zero", "linear"])
@pytest.mark.parametrize("seed", [128, 228, *range(12)])
def test_states_of_a_cascade(hold, seed):
    rng = np.random.default_rng([38, seed])
    A, h = _cascade(rng)
    n = len(A)
    B, C = np.eye(n)[:, rng.choice(n, 2, replace=False)], np.eye(n)[rng.choice(n, 1)]
    t, u = h * np.cumsum(rng.uniform(0.1, 1.0, 12)), rng.standard_normal((12, 2))
    x0 = rng.standard_normal(n) * 10.0 ** rng.uniform(-4.0, 4.0, n)
    truth = respond(A, B, C, np.zeros((1, 2)), u=u, t=t, hold=hold, x0=x0, states=True).x
    states = ltinet.construct((A, B, C)).simulate(u, t, hold=hold, x0=x0).states
    assert _is_right(states, _by_exponentials(A, B, u, t, hold, x0), truth)


@pytest.mark.parametrize("seed", [52, 148, 196, 349, *range(12)])
def test_outputs_of_compartments(seed):
    # Whose blocks are numbers: both ways were not tried, however long a run shows that rates are off by some eps.
    rng = np.random.default_rng([39, seed])
    A, h = _compartments(rng)
    n = len(A)
    B, C = rng.standard_normal((n, 1)), rng.standard_normal((3, n))
    t, u = h * np.arange(24), rng.standard_normal((24, 1))
    truth = respond(A, B, C, np.zeros((3, 1)), u=u, t=t, hold="linear").y
    y = ltinet.construct((A, B, C)).simulate(u, t).y
    assert _is_right(y, _by_exponentials(A, B, u, t, "linear", np.zeros(n)) @ C.T, truth)
