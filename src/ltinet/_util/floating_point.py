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

# MERGED ltinet._util.floating_point
# The two kinds of array that numbers come in here, by name.

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]


# MERGED ltinet._util.floating_point
# Thresholds that several rooms share, derived from machine precision and norms, each with its reason.
#
# One that a single file needs stands at the head of that file, as relative and with its reason as these.

EPS = float(np.finfo(np.float64).eps)
MAX_FLOAT = float(np.finfo(np.float64).max)
UNDERFLOW_CUTOFF = 1e-150  # powers of a step below it are zeros in the exact engine, and bounds count them


def rounding_tolerance(size: int, scale: float = 1.0) -> float:
    """What a backward stable O(size³) computation may leave behind on a matrix of norm `scale`: 10·size·eps·scale."""
    return 10.0 * max(size, 1) * EPS * scale


def summation_tolerance(n_terms: int) -> float:
    """What rounding leaves in sums of products, relative to the sum of their sizes: 10·√n·eps.

    The bound for one sum of n products is n·eps; errors of both signs grow as √n (Higham & Mary 2019). Ten such sums,
    one after the other, have room.
    """
    return 10.0 * math.sqrt(max(n_terms, 1)) * EPS


# MERGED ltinet._util.floating_point
# Sums and products of doubles with what rounding took from them; nothing hangs on a processor's own digits.

Doubles = NDArray[np.float64] | np.float64


def two_sum(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The sum rounded, and what rounding took from it (Knuth 1969); complex numbers likewise."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def two_product(a: Doubles, b: Doubles) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """a·b rounded, and what rounding took from it (Dekker 1971); nothing where the halves of a number overflow."""
    product = np.asarray(a * b)
    a1, a2 = _split(a)
    b1, b2 = _split(b)
    lost = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
    return product, np.where(np.isfinite(lost), lost, 0.0)


def _split(a: Doubles) -> tuple[Any, Any]:
    """Two numbers of 26 bits that sum to a (Veltkamp 1968)."""
    scaled = a * (2.0**27 + 1.0)
    upper = scaled - (scaled - a)
    return upper, a - upper
