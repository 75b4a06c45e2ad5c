"""States that grow and hardly know of each other, seen far from the input: runs end early, long trials say nothing."""

import numpy as np
import pytest

import ltinet
from ball_oracle import respond

# The exponential of a step is right to some eps of |A|h, and off in the same direction at each: 500 e-foldings of it.
_RIGHT = 1e-10


@pytest.mark.default_cases(7)
@pytest.mark.parametrize("hold", ["zero", "linear"])
@pytest.mark.parametrize("seed", range(12))
def test_what_reaches_an_output_by_weak_couplings_keeps_its_digits(hold, seed):
    rng = np.random.default_rng([11, seed])
    n, growth, rate = int(rng.integers(2, 5)), 10.0 ** rng.uniform(-2.5, 1.2), 10.0 ** rng.uniform(-3.0, 3.0)
    couplings = 10.0 ** rng.uniform(-14.0, -8.0, (n, n)) * rng.choice([0.0, 1.0, -1.0], (n, n))
    couplings[np.arange(1, n), np.arange(n - 1)] = 10.0 ** rng.uniform(-14.0, -8.0, n - 1)
    A = rate * (np.eye(n) + (1.0 - np.eye(n)) * couplings)
    B, C = np.eye(n)[:, :1], np.eye(n)[1:2]
    dt, n_times = growth / rate, int(min(rng.integers(4, 300), 500.0 / growth + 2.0))
    t, u = dt * np.arange(n_times), rng.standard_normal((n_times, 1))
    truth = respond(A, B, C, np.zeros((1, 1)), u=u, t=t, hold=hold).y
    net = ltinet.construct((A, B, C))
    solution = net.simulate(u, t, hold=hold)
    error = truth.distance(solution.y).max()
    assert error <= _RIGHT * truth.peak.max()
    assert error <= solution.error_bound().max()
    assert truth.distance(next(net.stepper(dt, hold=hold).run([u]))).max() <= _RIGHT * truth.peak.max()
