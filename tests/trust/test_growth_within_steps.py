"""Hypothesis: bounds of what grows by many orders of magnitude within one step lie above errors, and are finite."""

import numpy as np
import pytest

import ltinet
from ball_oracle import respond

_E_FOLDINGS = 600.0  # in a whole run: far larger ones exceed all numbers


def _bound_and_error(seed, *, coupled):
    rng = np.random.default_rng([37, seed])
    n = int(rng.integers(2, 5))
    A = rng.integers(-3, 4, (n, n)).astype(np.float64)
    if coupled:
        A = np.block([[A, np.eye(n)], [np.zeros((n, n)), A]])
    growth = max(np.linalg.eigvals(A).real.max(), 0.1)
    in_a_step = 10.0 ** rng.uniform(0.0, 2.0)  # e-foldings
    n_times = int(rng.integers(2, max(3, min(30, _E_FOLDINGS / in_a_step))))
    lengths = rng.uniform(0.5, 1.0, n_times) if rng.random() < 0.3 else np.ones(n_times)
    t = in_a_step / growth * np.concatenate([[0.0], np.cumsum(lengths[1:])])
    B, C, u = rng.standard_normal((len(A), 1)), rng.standard_normal((1, len(A))), rng.standard_normal((n_times, 1))
    x0 = rng.standard_normal(len(A)) if rng.random() < 0.5 else None
    hold = str(rng.choice(["zero", "linear"]))
    truth = respond(A, B, C, np.zeros((1, 1)), u=u, t=t, hold=hold, x0=x0).y
    solution = ltinet.construct((A, B, C)).simulate(u, t, hold=hold, x0=x0)
    peak, error = truth.peak.max(), truth.distance(solution.y).max()
    return solution.error_bound().max() / peak, error / peak


@pytest.mark.default_cases(20)
@pytest.mark.parametrize("seed", range(40))
def test_a_bound_is_finite_and_above_the_error(seed):
    bound, error = _bound_and_error(seed, coupled=False)
    assert error <= bound < np.inf


@pytest.mark.default_cases(6)
@pytest.mark.parametrize("seed", range(20))
def test_of_coupled_states_as_well(seed):
    bound, error = _bound_and_error(seed, coupled=True)
    assert error <= bound < np.inf


@pytest.mark.parametrize("h", [1.0, 5.0, 10.0, 20.0, 25.0])
def test_one_step_of_a_symmetric_matrix(h):
    A, B, C = np.array([[2.0, 1.0], [1.0, -2.0]]), np.array([[1.0], [0.0]]), np.array([[1.0, 0.0]])
    solution = ltinet.construct((A, B, C)).simulate(np.ones((2, 1)), [0.0, h])
    assert np.isfinite(solution.error_bound()).all()
