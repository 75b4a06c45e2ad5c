"""Products and exponentials of matrices in long double, fast enough for hundreds of states.

NumPy multiplies long doubles one by one. Here a matrix is cut into slices of so few bits that products of slices are
exact in double precision, whatever the order of summation, and BLAS can form them (Ozaki, Ogita, Oishi & Rump 2012).
"""

import math

import numpy as np
import pytest

# Four slices hold 80 bits of a matrix with up to a thousand columns; the long double of x86 processors has 64.
ROUNDING = 2.0**-63
_SLICES = 4
_DOUBLE_BITS = 53


def need_extended_precision():
    """Skip where long double has no more digits than double."""
    if float(np.finfo(np.longdouble).eps) > ROUNDING:
        pytest.skip("long double has fewer than 64 bits here")


def product(left, right):
    """The product of two matrices; an entry is off by n·ROUNDING times the largest of its row and of its column."""
    # Sums of n·_SLICES products of two slices must fit into a double.
    bits = (_DOUBLE_BITS - math.ceil(math.log2(_SLICES * max(left.shape[1], 1)))) // 2
    rows, columns = _slices(left, bits, axis=1), _slices(right, bits, axis=0)
    total = np.zeros((left.shape[0], right.shape[1]), dtype=np.longdouble)
    for level in range(_SLICES - 1, -1, -1):  # the smallest first; beyond the last level all is rounding
        total += np.hstack(rows[: level + 1]) @ np.vstack(columns[level::-1])
    return total


def exponential(matrix):
    """e^matrix by scaling, a Taylor series and squaring; cost about 15 + log₂‖matrix‖ products."""
    norm = float(np.max(np.sum(np.abs(matrix), axis=1), initial=0.0))
    halvings = max(0, math.ceil(math.log2(norm)) + 4) if norm > 0.0 else 0
    scaled = np.ldexp(np.asarray(matrix, dtype=np.longdouble), -halvings)  # of norm 1/16 at most
    # What is squared is e^X − I: beside I the digits of a small X would be lost.
    less_identity, term, order = scaled, scaled, 1
    while np.max(np.abs(term), initial=0.0) > 0.01 * ROUNDING * np.max(np.abs(less_identity), initial=0.0):
        order += 1
        term = product(scaled, term) / order
        less_identity = less_identity + term
    for _ in range(halvings):
        less_identity = 2 * less_identity + product(less_identity, less_identity)
    return less_identity + np.eye(len(matrix))


def _slices(matrix, bits, *, axis):
    """Doubles that sum to the matrix, each with `bits` bits relative to the largest entry along the axis."""
    rest = np.asarray(matrix, dtype=np.longdouble)
    _, exponent = np.frexp(np.max(np.abs(rest), axis=axis, keepdims=True, initial=0.0))
    slices = []
    for index in range(_SLICES):
        shift = (index + 1) * bits - exponent
        slices.append(np.ldexp(np.rint(np.ldexp(rest.astype(float), shift)), -shift))
        rest = rest - slices[-1]
    return slices
