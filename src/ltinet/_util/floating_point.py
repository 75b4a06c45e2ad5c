"""Array types, rounding tolerances and error-free transformations in double precision.

All tolerances are relative and derived from eps = 2⁻⁵². A backward stable O(n³) computation on a matrix of norm s may
leave 10·n·eps·s; sums of n products err by 10·√n·eps of the sum of the sizes of their terms, since the bound n·eps for
one sum grows as √n where errors have both signs (Higham & Mary 2019). A tolerance that only one module needs is defined
there.

`two_sum` (Knuth 1969) and `two_product` (Dekker 1971, with Veltkamp's splitting) return a rounded result together with
its exact rounding error.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Real array of any shape."""
Complex = NDArray[np.complex128]
"""Complex array of any shape."""


EPS = float(np.finfo(np.float64).eps)
MAX_FLOAT = float(np.finfo(np.float64).max)
# Entries of matrix powers below it are set to zero in the exact engine, and error bounds include that. Products of two
# entries above it, at least 1e-300, do not underflow.
UNDERFLOW_CUTOFF = 1e-150


def rounding_tolerance(size: int, scale: float = 1.0) -> float:
    """Return the tolerance of a backward stable O(size³) computation on a matrix of norm `scale`: 10·size·eps·scale."""
    return 10.0 * max(size, 1) * EPS * scale


def summation_tolerance(n_terms: int) -> float:
    """Return the tolerance of sums of n products relative to the sum of the sizes of their terms: 10·√n·eps.

    The factor 10 allows ten such sums in sequence.
    """
    return 10.0 * math.sqrt(max(n_terms, 1)) * EPS


Doubles = NDArray[np.float64] | np.float64


def two_sum(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rounded sum and its rounding error (Knuth 1969); also for complex numbers."""
    total = a + b
    b_part = total - a
    return total, (a - (total - b_part)) + (b - b_part)


def two_product(a: Doubles, b: Doubles) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the rounded product and its rounding error (Dekker 1971); the error is 0 where splitting overflows."""
    product = np.asarray(a * b)
    a1, a2 = _split(a)
    b1, b2 = _split(b)
    error = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
    return product, np.where(np.isfinite(error), error, 0.0)


def _split(a: Doubles) -> tuple[Any, Any]:
    """Split a into two numbers of at most 26 bits that sum to a (Veltkamp 1968)."""
    scaled = a * (2.0**27 + 1.0)
    upper = scaled - (scaled - a)
    return upper, a - upper
