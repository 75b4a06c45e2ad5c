"""Exponentials in double-double arithmetic compared with mpmath."""

import mpmath
import numpy as np
import pytest

from ltinet.error_bounds.double_double_exponentials import double_double_matrix_exponentials


@pytest.mark.parametrize(("n", "length"), [(1, 1.0), (3, 5.0), (8, 1.0), (12, 30.0)])
def test_exponentials_match_mpmath_to_28_digits(n, length):
    F = np.random.default_rng(n).standard_normal((n, n))
    with mpmath.workdps(60):
        for halvings, result in enumerate(double_double_matrix_exponentials(F, length, 2)):
            exact = mpmath.expm(mpmath.matrix(F.tolist()) * mpmath.mpf(length) / 2**halvings)
            high, low = mpmath.matrix(result.high.tolist()), mpmath.matrix(result.low.tolist())
            error = mpmath.mnorm(exact - high - low, 1) / mpmath.mnorm(exact, 1)
            assert error <= 1e-28
