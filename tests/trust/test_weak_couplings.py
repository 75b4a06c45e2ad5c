"""Outputs that see an input only through a coupling far below the rounding of the rest have all their digits.

Any T mixes states by some eps, and a weight of the size of that rounding is zero in a network: an output that hangs on
it is nothing but error there. The user's matrix knows it exactly, and so does a run in the user's states.
"""

import flint
import numpy as np
import pytest

import ltinet
from ball_oracle import respond
from ltinet.simulation.propagators import matrix_steps


def _drawn(seed):
    """Two groups of states: inputs move the second, outputs see the first, and little leads from there to here."""
    rng = np.random.default_rng(seed)
    here, there = rng.integers(1, 5, 2)
    n, m, p, steps = here + there, *rng.integers(1, 3, 2), int(10.0 ** rng.uniform(1.0, 2.0))
    back = rng.standard_normal((there, here)) * (rng.random() < 0.8)
    A = np.block([[_stable(rng, here), _weak(rng) * rng.standard_normal((here, there))], [back, _stable(rng, there)]])
    B = np.vstack([np.zeros((here, m)), rng.standard_normal((there, m))])
    C = np.hstack([rng.standard_normal((p, here)), np.zeros((p, there))])
    x0 = np.concatenate([np.zeros(here), rng.standard_normal(there)]) if rng.random() < 0.4 else None
    order = rng.permutation(n)
    t = 10.0 ** rng.uniform(-3.0, 1.0) * np.arange(steps)
    system = A[np.ix_(order, order)], B[order], C[:, order]
    return system, rng.standard_normal((steps, m)), t, None if x0 is None else x0[order]


def _weak(rng):
    return 10.0 ** (rng.uniform(-22.0, -9.0) if rng.random() < 0.8 else rng.uniform(-280.0, -22.0))


def _stable(rng, n):
    if rng.random() < 0.5:
        return -np.diag(10.0 ** rng.uniform(-1.0, 1.0, n))
    A = rng.standard_normal((n, n))
    return A - (np.abs(np.linalg.eigvals(A)).max() + rng.uniform()) * np.eye(n)


@pytest.mark.default_cases(9)
@pytest.mark.parametrize("hold", ["linear", "zero"])
@pytest.mark.parametrize("seed", range(30))
def test_weakly_reached_outputs_are_right(seed, hold):
    (A, B, C), u, t, x0 = _drawn(seed)
    true = respond(A, B, C, np.zeros((len(C), B.shape[1])), u=u, t=t, hold=hold, x0=x0).y
    solution = ltinet.construct((A, B, C)).simulate(u, t, hold=hold, x0=x0)
    error = true.distance(solution.y).max(axis=0)
    assert np.all(error <= 1e-10 * true.peak)
    assert np.all(error <= solution.error_bound())


@pytest.mark.parametrize("weak", [1e-13, 1e-15, 1e-17, 1e-30, 1e-100])
def test_weak_feedback_is_no_zero(weak):
    A, B, C = np.array([[-1.0, weak], [-1.0, -2.0]]), [[0.0], [1.0]], [[1.0, 0.0]]
    solution = ltinet.construct((A, B, C)).simulate(np.ones((51, 1)), np.linspace(0.0, 5.0, 51))
    true = respond(A, np.array(B), np.array(C), np.zeros((1, 1)), u=np.ones((51, 1)), t=np.linspace(0.0, 5.0, 51)).y
    assert true.distance(solution.y).max() <= 1e-10 * true.peak.max()


def _exponential(A, h):
    """e^{Ah} to all digits of its smallest entries."""
    before, flint.ctx.prec = flint.ctx.prec, 1_500
    try:
        M = flint.arb_mat([[flint.arb(float(entry)) * flint.arb(h) for entry in row] for row in A]).exp()
        return np.array([[float(M[i, j]) for j in range(len(A))] for i in range(len(A))])
    finally:
        flint.ctx.prec = before


@pytest.mark.default_cases(17)
@pytest.mark.parametrize("seed", range(40))
def test_long_steps_keep_small_entries(seed):
    (A, B, _), _, _, _ = _drawn(seed)
    h = np.array([0.3, 2.0, 7.0, 40.0]) / np.linalg.norm(A, 2)
    found = matrix_steps(A, B, h, linear=True).P
    for own, length in zip(found, h, strict=True):
        # Entries are sums over ways between states, without signs those of |A|; 2e-15 was the worst of 200 draws.
        off = np.abs(own - _exponential(A, length))
        assert np.all(off <= 1e-14 * _exponential(np.abs(A), length))
