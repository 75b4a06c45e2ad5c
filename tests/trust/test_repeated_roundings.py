"""Terms that stand still, added at every uneven step to a state that does not: their roundings go in one direction."""

from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np
import pytest

import ltinet

N_STEPS = 8192


def _integral(rng, n):
    """One state that sums up what others are worth, which stay as they are, and what comes in."""
    A = np.zeros((n, n))
    A[0, 1:] = 10.0 ** rng.uniform(-4.0, 0.0, n - 1) * rng.choice([-1.0, 1.0], n - 1)
    return A, np.eye(n)[:, :1] * rng.uniform(0.5, 2.0), rng.uniform(0.5, 2.0, n) * rng.choice([-1.0, 1.0], n)


def _times(rng, lengths):
    """Steps of so many lengths, whose sums are exact."""
    units = rng.integers(2**10, 2**11, lengths)
    return np.ldexp(np.concatenate([[0], np.cumsum(rng.choice(units, N_STEPS))]).astype(np.float64), -53)


def _truth(A, B, x0, u, t):
    """The first state, by sums of fractions: nothing is rounded."""
    slope = sum(Fraction(a) * Fraction(x) for a, x in zip(A[0, 1:], x0[1:], strict=True))
    steps = [Fraction(b) - Fraction(a) for a, b in pairwise(t)]
    moves = (h * (slope + Fraction(B[0, 0]) * Fraction(own)) for h, own in zip(steps, u[:-1, 0], strict=True))
    return list(accumulate(moves, initial=Fraction(x0[0])))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("n", [2, 12, 20])
@pytest.mark.parametrize("lengths", [2, 20, 2**10], ids="{} lengths".format)
@pytest.mark.parametrize("seed", range(2))
def test_no_error_is_above_its_bound(n, lengths, seed):
    rng = np.random.default_rng([37, n, lengths, seed])
    A, B, x0 = _integral(rng, n)
    t, u = _times(rng, lengths), rng.standard_normal((N_STEPS + 1, 1))
    solution = ltinet.construct((A, B, np.eye(n)[:1])).simulate(u, t, x0=x0, hold="zero")
    truth = _truth(A, B, x0, u, t)
    error = max(abs(Fraction(own) - true) for own, true in zip(solution.y[:, 0], truth, strict=True))
    assert error <= solution.error_bound()[0]
