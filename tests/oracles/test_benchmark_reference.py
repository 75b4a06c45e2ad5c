"""Hypothesis: the outputs that benchmarks measure errors against are right to the last digit of a double."""

import numpy as np
import pytest
from benchmarks.support.oracle import reference_outputs

import ltinet
from ball_oracle import respond

STEP = 2.0**-4  # times are exact
SYSTEMS = {
    "oscillating": np.array([[-0.01, 3.0, 0.2], [-3.0, -0.01, 0.0], [0.0, 1e-3, -1.0]]),
    "stiff": np.array([[-1e4, 1.0, 0.0], [0.0, -1.0, 30.0], [0.0, 0.0, -300.0]]),
    "defective": np.array([[-0.5, 1.0, 0.0], [0.0, -0.5, 1.0], [0.0, 0.0, -0.5]]),
    "with zero": np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.3]]),
    "badly scaled": np.array([[-1.0, 1e9, 0.0], [-1e-8, -2.0, 1e-5], [0.0, 1e4, -3.0]]),
}


@pytest.mark.default_cases(5)
@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("n_times", [1, 2, 37, 2049, 4100])  # part of a run, several, and more than fit side by side
def test_the_reference_is_what_another_oracle_proves(name, n_times):
    """By exponentials of an augmented matrix instead of φ-functions, and in pieces of other lengths."""
    random = np.random.default_rng(n_times)
    A = SYSTEMS[name]
    B, C, D = random.standard_normal((3, 2)), random.standard_normal((2, 3)), random.standard_normal((2, 2))
    u = random.standard_normal((n_times, 2))
    expected = respond(A, B, C, D, u=u, t=STEP * np.arange(n_times)).y.mid
    y = reference_outputs(ltinet.StateSpace(A, B, C, D), u, step=STEP)
    # Both are rounded to doubles at the very end only: the same number, or its neighbour where a tie was close.
    np.testing.assert_allclose(y, expected, rtol=0.0, atol=np.finfo(float).eps * np.max(np.abs(expected)))


def test_steps_without_an_exact_sum_are_taken_as_they_are():
    """Times k·step are not doubles; the response to a constant input is known in closed form."""
    step, n_times = 0.1, 50
    y = reference_outputs(ltinet.StateSpace([[-1.0]], [[1.0]], [[1.0]]), np.ones((n_times, 1)), step=step)
    expected = -np.expm1(-step * np.arange(n_times))
    np.testing.assert_allclose(y[:, 0], expected, rtol=4 * np.finfo(float).eps * (1 + step * n_times))
