"""Hypothesis: what inputs add in an even step of many time constants is off by more than rounding, and bounds know it.

Runs are forced into the user's own states, one block of all of them: there the exponential of a long step is worst.
"""

import numpy as np
import pytest

import ltinet
from ball_oracle import respond
from ltinet.signals.sampled import SampledSignal
from ltinet.simulation.engines import ExactTrajectory


def stiff(rng, n):
    """Slow and fast states in a basis that is far from orthogonal."""
    rates = -(10.0 ** rng.uniform(-5.0, 0.0, n))
    basis = rng.standard_normal((n, n)) @ np.diag(10.0 ** rng.uniform(-2.0, 0.0, n)) @ rng.standard_normal((n, n))
    A = basis @ np.diag(rates) @ np.linalg.inv(basis)
    return ltinet.StateSpace(A, rng.standard_normal((n, 2)), rng.standard_normal((2, n)))


@pytest.mark.default_cases(6)
@pytest.mark.parametrize("hold", ["linear", "zero"])
@pytest.mark.parametrize("seed", range(12))
def test_errors_of_long_even_steps_are_below_their_bounds(seed, hold):
    rng = np.random.default_rng([26, seed])
    system = stiff(rng, int(rng.integers(2, 8)))
    t = 10.0 ** rng.uniform(3.0, 5.5) * np.arange(40.0)
    u = rng.standard_normal((len(t), 2))
    x0 = rng.standard_normal(system.n_states) if seed % 2 else None
    samples = SampledSignal(t, u, hold=hold)
    direct = ltinet.construct(system)._context.original
    run = ExactTrajectory(direct, samples, x0)
    run.outputs_at_samples = run.sampled_outputs(threads=1)
    truth = respond(system.A, system.B, system.C, system.D, u=u, t=t, hold=hold, x0=x0).y
    error = truth.distance(run.outputs_at_samples)
    bound = np.asarray(sum(run.error_bound(float(t[0]), float(t[-1])).overall().values()))
    assert np.all(error.max(axis=0) <= bound)
    assert np.all(np.isfinite(bound))
