"""Hypothesis: no entry of a matrix, however large, makes the exponential of a step run for ever.

SciPy's does from about 1e38 on. A limit for each test would tell; results are right, or no numbers at all.
"""

import numpy as np
import pytest

import ltinet
from ltinet.simulation.propagators import matrix_steps


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("decade", [20, 29, 31, 37, 39, 50, 100, 200, 300])
def test_dense_matrices_of_any_size(decade):
    rng = np.random.default_rng(decade)
    for n in (2, 3, 7):
        F = rng.standard_normal((n, n))
        F[rng.integers(n), rng.integers(n)] = 10.0**decade
        for matrix in (F, -(10.0 ** (decade - 10.0)) * np.eye(n) + F, rng.standard_normal((n, n)) * 10.0**decade):
            with np.errstate(over="ignore", invalid="ignore"):
                P = matrix_steps(matrix, np.eye(n), np.array([1e-3, 1.0]), linear=True).P
            assert P.shape == (2, n, n)


@pytest.mark.parametrize("decade", [40, 100, 150])
def test_units_that_differ_by_any_power_of_ten(decade):
    """A pair in which one state is counted in other units: e^{−1} (cos 1, sin 1) whatever these are."""
    unit = 2.0 ** round(decade / np.log10(2.0))
    F = np.array([[-1.0, unit], [-1.0 / unit, -1.0]])
    P = matrix_steps(F, np.eye(2), np.array([1.0]), linear=False).P[0]
    cosine, sine = np.exp(-1.0) * np.cos(1.0), np.exp(-1.0) * np.sin(1.0)
    np.testing.assert_allclose(P, [[cosine, unit * sine], [-sine / unit, cosine]], rtol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("decade", [40, 100, 300])
def test_runs_end_with_a_result_or_an_error(decade):
    rng = np.random.default_rng(decade)
    for n in (2, 5, 10):
        A = np.diag(-1.0 - np.arange(n)) + np.triu(rng.uniform(0.0, 0.1, (n, n)), 1)
        A[n - 1, 0], A[0, n - 1] = 3.0, 10.0**decade
        try:
            net = ltinet.construct(ltinet.StateSpace(A, np.ones((n, 1)), np.ones((1, n)), np.zeros((1, 1))))
            solution = net.simulate(np.ones(4), 0.5 * np.arange(4), x0=np.ones(n))
        except (ltinet.InvalidNetworkError, ltinet.SimulationError):
            continue
        assert np.isfinite(solution.y).all()
        assert solution.error_bound().shape == (1,)
