"""Array types, rounding tolerances and units that balance a matrix, in double precision.

All tolerances are relative and derived from eps = 2⁻⁵². A backward stable O(n³) computation on a matrix of norm s may
leave 10·n·eps·s; sums of n products err by 10·√n·eps of the sum of the sizes of their terms, since the bound n·eps for
one sum grows as √n where errors have both signs (Higham & Mary 2019). A tolerance that only one module needs is defined
there.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Array = NDArray[np.float64]
"""Real array of any shape."""
Complex = NDArray[np.complex128]
"""Complex array of any shape."""


EPS = float(np.finfo(np.float64).eps)
MAX_FLOAT = float(np.finfo(np.float64).max)
# Entries of matrix powers below it are set to zero in the exact engine, and error bounds include that. Products of two
# entries above it, at least 1e-300, do not underflow.
UNDERFLOW_CUTOFF = 1e-150
# Factor by which rounding grows along a chain of rank decisions, each about what the ones before it have transformed.
# Empirical: of 500 systems with nearly dependent inputs and outputs the zeros of 18, 1, 0, 0 and 44 are wrong with 30, 1e3,
# 3e4, 1e6 and 1e8, and gains with chains of integrators are right from 30 on (python -m benchmarks.constants
# RANK_CHAIN_GROWTH).
RANK_CHAIN_GROWTH = 3e4
# Largest factor by which a faster algorithm may amplify rounding errors; beyond it a slower one without the factor is
# used. It is √N for N = 10⁴: two digits, as many as independent roundings lose in a run of 10,000 steps anyway. Of 1,221
# fuzz runs, 3 were wrong with 1e5 for powers of P, and none with 1e3 or 30.
MAX_AMPLIFICATION = 100.0


def rounding_tolerance(size: int, scale: float = 1.0) -> float:
    """Return the tolerance of a backward stable O(size³) computation on a matrix of norm `scale`: 10·size·eps·scale."""
    return 10.0 * max(size, 1) * EPS * scale


def summation_tolerance(n_terms: int) -> float:
    """Return the tolerance of sums of n products relative to the sum of the sizes of their terms: 10·√n·eps.

    The factor 10 allows ten such sums in sequence.
    """
    return 10.0 * math.sqrt(max(n_terms, 1)) * EPS


def balancing_units(F: Array) -> Array:
    """Return units of the states `(n,)`, powers of two, such that F · units / units[:, None] is balanced."""
    return np.asarray(lapack.dgebal(F, scale=1, permute=0)[3]) if len(F) else np.ones(0)
