"""φ-functions of a matrix whose step is short, right relative to the sizes of their terms, entry by entry.

SciPy's exponential is right relative to the norm of the matrix: where states have units that differ by decades, entries
that are small beside others keep no digit. The Taylor series Σ M^k/k! has an error of a few units of Σ|M|^k/k! in every
entry, which no change of units of the states makes better or worse. It is short where |M| is at most one in units that
suit it, and cancels little there.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from ltinet.tolerances import EPS

Array = NDArray[np.float64]
_SHORT = 1.0  # norm of Fh in balanced units: e^|Fh| is at most e, so that little cancels


class PhiFunctions(NamedTuple):
    """e^M, φ₁(M) and φ₂(M) of matrices along the first axis."""

    exponential: Array
    first: Array
    second: Array


def balanced_norm(F: Array) -> float:
    """The norm of F in units of the states that make it small."""
    if not F.size:
        return 0.0
    scaled, _ = linalg.matrix_balance(F, permute=False, separate=True)
    return float(np.linalg.norm(scaled, 1))


def is_short(norm: float, h: ArrayLike) -> NDArray[np.bool_]:
    """Which lengths h are short for a matrix of this balanced norm."""
    return np.asarray(norm * np.asarray(h) <= _SHORT)


def phi_functions_of_short(M: Array, *, norm: float) -> PhiFunctions:
    """For matrices M `(k, n, n)` of a balanced norm of at most `norm` ≤ 1: φ₂ by its series, then φ₁ = 1 + M φ₂."""
    identity = np.eye(M.shape[-1])
    second = np.broadcast_to(identity, M.shape)
    for power in range(_n_terms(norm), 0, -1):  # 2 Σ M^k/(k+2)!, innermost factor first
        second = identity + M @ second / (power + 2)
    second = 0.5 * second
    first = identity + M @ second
    return PhiFunctions(identity + M @ first, first, second)


def _n_terms(norm: float) -> int:
    """After how many terms what is left of 2 Σ M^k/(k+2)! does not matter beside the first."""
    count = 1
    while 2.0 * norm**count / math.factorial(count + 2) > EPS / 16.0:
        count += 1
    return count
