"""Hypothesis: runs by fast convolution are right, and their bound is within 30·√T of their error, T steps.

The truth is one complex scalar recurrence for each mode, in balls that are narrow at the end. Small systems never take
this way: it is for many states.
"""

import numpy as np
import pytest
from flint import acb, arb, ctx

import ltinet

BITS = 200  # beside one for each step: boxes that turn grow by up to √2 in every one


def drawn(seed):
    """Pairs and reals side by side, with rates over four decades, and an input."""
    rng = np.random.default_rng(seed)
    n_steps = int(10 ** rng.uniform(3.0, 3.5))
    n = int(rng.integers(4e5 // n_steps, 6e5 // n_steps))  # enough for this way, few enough for the oracle
    n_pairs = n // 3
    decay = 10.0 ** rng.uniform(-2.0, 2.0, n - n_pairs)
    turn = 10.0 ** rng.uniform(-2.0, 2.0, n_pairs)
    A = np.diag(-np.concatenate([np.repeat(decay[:n_pairs], 2), decay[n_pairs:]]))
    first = 2 * np.arange(n_pairs)
    A[first, first + 1], A[first + 1, first] = -turn, turn
    B, C = rng.standard_normal((n, 1)), rng.standard_normal((1, n))
    return A, B, C, 2.0 ** rng.integers(-8, -3), rng.standard_normal(n_steps + 1), n_pairs


def truth(A, B, C, h, u, *, n_pairs, hold):
    """Outputs as midpoints of balls, rounded to double."""
    with ctx.workprec(BITS + len(u)):
        inputs = [acb(float(own)) for own in u]
        total = [arb(0)] * len(u)
        places = [(2 * k, True) for k in range(n_pairs)] + [(k, False) for k in range(2 * n_pairs, len(A))]
        for k, is_pair in places:
            rate = acb(float(A[k, k]), float(A[k + 1, k]) if is_pair else 0.0)
            gain = acb(float(B[k, 0]), float(B[k + 1, 0]) if is_pair else 0.0)
            weight = acb(float(C[0, k]), -float(C[0, k + 1]) if is_pair else 0.0)  # Re(weight · v) = c₁ Re v + c₂ Im v
            z = rate * acb(h)
            P = z.exp()
            phi1 = (P - 1) / z
            phi2 = (phi1 - 1) / z
            before, after = (phi1 - phi2, phi2) if hold == "linear" else (phi1, acb(0))
            before, after = before * gain * acb(h), after * gain * acb(h)
            v = acb(0)
            for step in range(1, len(u)):
                v = P * v + before * inputs[step - 1] + after * inputs[step]
                total[step] = total[step] + (weight * v).real
        assert all(float(own.rad()) < 1e-40 for own in total)
        return np.array([float(own.mid()) for own in total])


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("hold", ["linear", "zero"])
@pytest.mark.parametrize("seed", range(4))
def test_error_and_bound_of_runs_by_convolution(seed, hold):
    A, B, C, h, u, n_pairs = drawn(seed)
    net = ltinet.construct(ltinet.StateSpace(A, B, C))
    solution = net.simulate(u, h * np.arange(len(u)), hold=hold)
    assert solution.stats["algorithm"] == "convolution"
    exact = truth(A, B, C, h, u, n_pairs=n_pairs, hold=hold)
    error = np.abs(solution.y[:, 0] - exact)
    assert np.all(error <= solution.error_bound(solution.t)[:, 0])
    bound = float(solution.error_bound()[0])
    assert error.max() <= 1e-13 * np.abs(exact).max()
    assert bound <= 30.0 * np.sqrt(len(u) - 1) * error.max()


@pytest.mark.parametrize("seed", range(8))
def test_few_states_go_another_way(seed):
    rng = np.random.default_rng([73, seed])
    A = -np.diag(rng.uniform(0.1, 1.0, 32)) + np.diag(rng.uniform(0.5, 1.0, 31), 1)
    net = ltinet.construct(ltinet.StateSpace(A, rng.standard_normal((32, 1)), rng.standard_normal((1, 32))))
    assert net.simulate(rng.standard_normal(10_001), np.arange(10_001.0)).stats["algorithm"] == "blocks"
