"""Hypothesis: chains of integrators in states that are turned against them are right, whatever rounding does to zeros.

Nine eigenvalues of zero move by (n eps)^{1/9} of the matrix when its entries are rounded. The matrix that is given has
such eigenvalues too, others than that of any decomposition: `lsim` and a Schur form lose all digits within some hundred
steps.
"""

import numpy as np
import pytest

import ltinet
from ball_oracle import respond


def _drawn(seed):
    rng = np.random.default_rng([91, seed])
    n = int(rng.integers(5, 10))
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    A = Q @ np.diag(rng.uniform(0.2, 0.8, n - 1), 1) @ Q.T
    n_steps = int(10 ** rng.uniform(2.0, 2.5))
    t = 10.0 ** rng.uniform(0.0, 2.5) * np.cumsum(rng.uniform(0.2, 1.0, n_steps) if seed % 2 else np.ones(n_steps))
    B, C = rng.standard_normal((n, 2)), rng.standard_normal((2, n))
    x0 = rng.standard_normal(n) if seed % 3 == 0 else None
    return A, B, C, t, rng.standard_normal((n_steps, 2)), x0


@pytest.mark.xfail(strict=False, reason="rounding of one exponential moves the eigenvalues; SciPy's loses as much")
@pytest.mark.default_cases(2)
@pytest.mark.parametrize("hold", ["linear", "zero"])
@pytest.mark.parametrize("seed", range(12))
def test_outputs_and_bounds(seed, hold):
    A, B, C, t, u, x0 = _drawn(seed)
    truth = respond(A, B, C, np.zeros((2, 2)), u=u, t=t, hold=hold, x0=x0).y
    solution = ltinet.construct((A, B, C)).simulate(u, t, hold=hold, x0=x0)
    error = truth.distance(solution.y).max(axis=0)
    bound = solution.error_bound()
    assert np.all(error <= 1e-10 * truth.peak)
    assert np.all(error <= bound)
    assert np.all(bound <= 1e-8 * truth.peak)
