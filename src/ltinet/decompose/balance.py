"""Units that differ by orders of magnitude hide the structure of A; a diagonal of powers of two undoes that exactly."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from ltinet.model.matrices import Matrix


@dataclass(frozen=True)
class BalancedMatrix:
    """A matrix in units of its own choosing: A = factor · diag(scaling) · matrix · diag(scaling)⁻¹, exactly."""

    matrix: Matrix
    scaling: NDArray[np.float64]
    factor: float


def balance(A: Matrix, *, rescale_states: bool = True) -> BalancedMatrix:
    """Bring A to entries of order one and, with `rescale_states`, rows and columns to norms of one size.

    The factor keeps norms and their products in range for entries like 1e±150; the state scaling is LAPACK's
    `gebal` without permutations. Both are powers of two, so that nothing is rounded. Cost O(n²) per sweep.
    """
    balanced, scaling = A, np.ones(len(A))
    if rescale_states and len(A):
        balanced, _, _, scaling, _ = lapack.dgebal(A, scale=1, permute=0)
    factor = _power_of_two_near(float(np.abs(balanced).max()) if len(A) else 0.0)
    return BalancedMatrix(balanced / factor if factor != 1.0 else balanced, scaling, factor)


def _power_of_two_near(magnitude: float) -> float:
    """The power of two at or just below a positive magnitude; 1 for zero."""
    if magnitude == 0.0:
        return 1.0
    _, exponent = math.frexp(magnitude)
    return math.ldexp(1.0, min(max(exponent - 1, -1021), 1022))
