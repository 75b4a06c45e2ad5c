"""Hypothesis: steps of any lengths are right, and below the bound, whatever way a rate or a block takes through them.

Steps of different lengths share series and tables (`slow_rates`, `fast_rates`, `interpolated_steps`), and the bound
measures what they give. Systems and times are drawn so that all of them are met: rates from far below to far above the
length of a step, layers with few and many coupled states, lengths within a factor of two and over decades, jumps, and
times so far from zero that steps are a few units of their last digit.
"""

import numpy as np
import pytest

import ltinet
from ball_oracle import respond

RIGHT = 1e-10
# 1.7e9 s are the year 2023: a step of 0.01 s is then 4e4 units in the last place.
FAR = 1.7e9
STEPS = 400  # more than preparation of series and tables waits for


def oscillators(rng, n):
    """Pairs and reals that turn and decay at rates over five decades, seen through a random basis."""
    damped = 10.0 ** rng.uniform(-4.0, 0.0, n // 2)
    turning = [np.array([[-share, 1.0], [-1.0, -share]]) for share in damped]
    return in_random_basis(rng, [10.0 ** rng.uniform(-1.0, 4.0) * block for block in turning])


def decays(rng, n):
    """Reals over seven decades, slow and stiff."""
    return in_random_basis(rng, [np.array([[-rate]]) for rate in 10.0 ** rng.uniform(-2.0, 5.0, n)])


def defective(rng, n):
    """One Jordan block, with a pair beside it."""
    jordan = -rng.uniform(0.5, 50.0) * np.eye(n - 2) + np.diag(np.full(n - 3, 20.0), 1)
    return in_random_basis(rng, [jordan, np.array([[-0.5, 30.0], [-30.0, -0.5]])])


def growing(rng, n):
    """A random matrix, one or two of whose states grow, by a few hundred over the run."""
    A = 30.0 * rng.standard_normal((n, n)) / np.sqrt(n)
    return A - (np.max(np.linalg.eigvals(A).real) - 1.5) * np.eye(n)


def integrating(rng, n):
    """A chain of integrators beside slow pairs: nothing fades."""
    chain = np.diag(np.ones(n - 3), 1)
    return in_random_basis(rng, [chain, np.array([[0.0, 5.0], [-5.0, 0.0]])])


def in_random_basis(rng, blocks):
    n = sum(map(len, blocks))
    A, at = np.zeros((n, n)), 0
    for block in blocks:
        A[at : at + len(block), at : at + len(block)] = block
        at += len(block)
    V = np.linalg.qr(rng.standard_normal((n, n)))[0] * rng.uniform(0.5, 2.0, n)
    return V @ A @ np.linalg.inv(V)


def jitter(rng):
    """Even times, each a little late."""
    return 0.01 * np.arange(STEPS + 1) + rng.uniform(0.0, 0.004, STEPS + 1)


def lognormal(rng):
    """Lengths over three decades."""
    return np.concatenate([[0.0], np.cumsum(0.004 * np.exp(1.5 * rng.standard_normal(STEPS)))])


def jumps(rng):
    """Some times come twice."""
    t = np.cumsum(rng.uniform(0.5, 1.5, STEPS + 1) * 0.01)
    return np.sort(np.concatenate([t[:-8], rng.choice(t[:-8], 8, replace=False)]))


def far(rng):
    """Seconds since 1970."""
    return FAR + np.cumsum(rng.uniform(0.5, 1.5, STEPS + 1) * 0.01)


FAMILIES = [oscillators, decays, defective, growing, integrating]
TIMES = [jitter, lognormal, jumps, far]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("times", TIMES, ids=lambda own: own.__name__)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda own: own.__name__)
def test_outputs_and_states_are_right_and_below_the_bound(family, times, seed):
    rng = np.random.default_rng([FAMILIES.index(family), TIMES.index(times), seed])
    n, m = int(rng.integers(4, 9)), int(rng.integers(1, 4))
    A, B, C = family(rng, n), rng.standard_normal((n, m)), rng.standard_normal((2, n))
    t = times(rng)
    B, C, n = B[: len(A)], C[:, : len(A)], len(A)
    run = {
        "u": rng.standard_normal((len(t), m)),
        "t": t,
        "hold": ("linear", "zero")[seed % 2],
        "x0": rng.standard_normal(n) if seed >= 2 else None,
    }
    net = ltinet.construct((A, B, C), n_layers=1 if seed == 3 else None)
    solution = net.simulate(**run)
    truth = respond(A, B, C, states=True, **run)
    assert solution.stats["grid"] == "irregular"
    assert_right(truth.y.distance(solution.y), truth.y.peak, bound=solution.error_bound())
    # The bound speaks of outputs: states are those of a network that shows them all.
    seen = ltinet.construct((A, B, np.eye(n)), n_layers=1 if seed == 3 else None).simulate(**run)
    assert_right(truth.x.distance(seen.y), truth.x.peak, bound=seen.error_bound())
    off = np.max(truth.x.distance(solution.states), axis=0)
    assert np.all(off <= RIGHT * np.max(truth.x.peak))


def assert_right(errors, peak, *, bound):
    largest = np.max(errors, axis=-2)
    assert np.all(largest <= RIGHT * np.max(peak))
    assert np.all(np.isfinite(bound))
    assert np.all(largest <= bound)
