"""Hypothesis: the outputs that benchmarks measure errors against are right to the last digit of a double."""

import numpy as np
import pytest
from benchmarks.oracle import reference_outputs

import ltinet
from exact_trajectories import outputs_in_50_digits

STEP = 2.0**-4  # times are exact
SYSTEMS = {
    "oscillating": np.array([[-0.01, 3.0, 0.2], [-3.0, -0.01, 0.0], [0.0, 1e-3, -1.0]]),
    "stiff": np.array([[-1e4, 1.0, 0.0], [0.0, -1.0, 30.0], [0.0, 0.0, -300.0]]),
    "defective": np.array([[-0.5, 1.0, 0.0], [0.0, -0.5, 1.0], [0.0, 0.0, -0.5]]),
    "with zero": np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.3]]),
}


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("n_times", [2, 37])
def test_reference_equals_50_digits(name, n_times):
    random = np.random.default_rng(n_times)
    A = SYSTEMS[name]
    B, C, D = random.standard_normal((3, 2)), random.standard_normal((2, 3)), random.standard_normal((2, 2))
    u = random.standard_normal((n_times, 2))
    times = STEP * np.arange(n_times)
    expected = outputs_in_50_digits((A, B, C, D), times, u, x0=np.zeros(3), hold="linear")
    y = reference_outputs(ltinet.StateSpace(A, B, C, D), u, step=STEP)
    # Both are rounded to doubles at the very end only: the same number, or its neighbour where a tie was close.
    np.testing.assert_allclose(y, expected, rtol=0.0, atol=np.finfo(float).eps * np.max(np.abs(expected)))
