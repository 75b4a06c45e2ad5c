"""Double-double arithmetic: numbers high + low of about 32 digits, from double-precision operations.

`two_sum` (Knuth 1969) and `two_product` (Dekker 1971, with Veltkamp's splitting) return a rounded result together with
its exact rounding error. Sums and products of double-double numbers follow from them entry by entry, for real and
complex arrays.

Products of matrices are sums of matrices without rounding: small matrices are multiplied entry by entry, larger ones
are cut into slices of so few bits that products of slices are exact in BLAS whatever the order of summation (Ozaki,
Ogita, Oishi & Rump 2012). Slices of a row share their exponent, so that nothing would remain of an entry that is 1e-30
of its neighbors: the states between the two factors are first scaled by powers of two, which cost no digit. Sums of
matrices are compensated (Neumaier 1974). No extended precision of the processor is used.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import Array

ENTRYWISE_ORDER = 32  # states up to which single products take less time than slices; empirical, speed only
_N_SLICES = 4  # of 23 bits for small matrices: what is left out is 2⁻⁹⁰ of the products
_N_PAIR_SLICES = 5  # of pairs of doubles, up to this number of states, where the time does not matter
MAX_PAIR_STATES = 192
_DOUBLE_BITS = 53

Doubles = NDArray[np.float64] | np.float64


class DoubleDouble(NamedTuple):
    """Array of numbers high + low, real or complex, where `low` is below the last digit of `high`."""

    high: NDArray[Any]
    low: NDArray[Any]


# Error-free transformations


def two_sum(a: NDArray[Any], b: NDArray[Any]) -> DoubleDouble:
    """Return the rounded sum and its rounding error (Knuth 1969); also for complex numbers."""
    total = a + b
    b_part = total - a
    return DoubleDouble(total, (a - (total - b_part)) + (b - b_part))


def two_product(a: Doubles, b: Doubles) -> DoubleDouble:
    """Return the rounded product and its rounding error (Dekker 1971); the error is 0 where splitting overflows."""
    product = np.asarray(a * b)
    a1, a2 = _split(a)
    b1, b2 = _split(b)
    error = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
    return DoubleDouble(product, np.where(np.isfinite(error), error, 0.0))


def _split(a: Doubles) -> tuple[Any, Any]:
    """Split a into two numbers of at most 26 bits that sum to a (Veltkamp 1968)."""
    scaled = a * (2.0**27 + 1.0)
    upper = scaled - (scaled - a)
    return upper, a - upper


def outer_product(values: NDArray[Any], factors: Array) -> DoubleDouble:
    """Return the products of real or complex values (last axis) and real factors (first axis)."""
    products = two_product(np.ascontiguousarray(values).view(np.float64), factors[:, None])
    return DoubleDouble(*(part.view(values.dtype) for part in products))


# Sums and products, entry by entry


def add(a: DoubleDouble, b: DoubleDouble) -> DoubleDouble:
    """Return a + b."""
    high, low = two_sum(a.high, b.high)
    return two_sum(high, low + (a.low + b.low))


def multiply(a: DoubleDouble, b: DoubleDouble) -> DoubleDouble:
    """Return a · b."""
    product = _complex_product if np.iscomplexobj(a.high) else two_product
    high, low = product(a.high, b.high)
    return two_sum(high, low + (a.high * b.low + a.low * b.high))


def _complex_product(a: NDArray[Any], b: NDArray[Any]) -> DoubleDouble:
    """Return the rounded product of complex doubles and its rounding error."""
    high, low = (np.empty(np.broadcast_shapes(a.shape, b.shape), dtype=np.complex128) for _ in range(2))
    (xv, lost_xv), (yw, lost_yw) = two_product(a.real, b.real), two_product(a.imag, b.imag)
    (xw, lost_xw), (yv, lost_yv) = two_product(a.real, b.imag), two_product(a.imag, b.real)
    high.real, lost = two_sum(xv, -yw)
    low.real = lost + (lost_xv - lost_yw)
    high.imag, lost = two_sum(xw, yv)
    low.imag = lost + (lost_xw + lost_yv)
    return DoubleDouble(high, low)


# Matrices


def sum_matrices(terms: Sequence[Array]) -> DoubleDouble:
    """Return the sum of some matrices and its rounding error (Neumaier 1974)."""
    total, lost = np.zeros((2, *terms[0].shape))
    for term in terms:
        after = total + term
        lost += np.where(np.abs(total) >= np.abs(term), (total - after) + term, (term - after) + total)
        total = after
    rounded = np.asarray(total + lost)
    return DoubleDouble(rounded, np.asarray(lost - (rounded - total)))


def multiply_matrices(left: DoubleDouble, right: DoubleDouble) -> DoubleDouble:
    """Return the product of two real matrices."""
    with np.errstate(over="ignore", invalid="ignore"):
        small = left.high @ right.low + left.low @ right.high
        n_slices = _N_PAIR_SLICES if left.high.shape[1] <= MAX_PAIR_STATES else _N_SLICES
        return sum_matrices([*product_terms(left.high, right.high, n_slices=n_slices), small])


def subtract_product(value: DoubleDouble, left: DoubleDouble, right: Array) -> Array:
    """Return value − left @ right for real matrices whose leading digits cancel."""
    total, rest = value.high, value.low - left.low @ right
    for column, row in zip(left.high.T, right, strict=True):
        term, term_rounding = two_product(column[:, None], row)
        total, rounding = two_sum(total, -term)
        rest = rest + (rounding - term_rounding)
    return np.asarray(total + rest)


def product_terms(left: Array, right: Array, *, n_slices: int = _N_SLICES) -> list[Array]:
    """Return matrices that sum to left @ right, correct to about 30 digits in any units of the states between them."""
    if left.shape[1] <= ENTRYWISE_ORDER:
        return _entrywise_terms(left, right)
    # The size of each row of `right` beside those of its columns, as a power of two.
    size = np.abs(right)
    largest = np.max(size, axis=0, initial=0.0)
    ratios = np.max(size / np.where(largest > 0.0, largest, 1.0), axis=1, initial=0.0)
    units = np.ldexp(1.0, np.frexp(np.where(ratios > 0.0, ratios, 1.0))[1])
    bits = (_DOUBLE_BITS - math.ceil(math.log2(2 * left.shape[1]))) // 2
    rows = _slices(left * units, bits, n_slices, axis=1)
    columns = _slices(right / units[:, None], bits, n_slices, axis=0)
    return [rows[i] @ columns[level - i] for level in range(n_slices) for i in range(level + 1)]


def _entrywise_terms(left: Array, right: Array) -> list[Array]:
    """Return the product and its rounding error: exact products, summed pairwise with their errors."""
    with np.errstate(over="ignore", invalid="ignore"):
        products, errors = two_product(left.T[:, :, None], right[:, None, :])
        lost = errors.sum(axis=0)
        while half := len(products) // 2:
            sums, errors = two_sum(products[:half], products[half : 2 * half])
            products, lost = np.concatenate([sums, products[2 * half :]]), lost + errors.sum(axis=0)
    return [products.sum(axis=0), lost]


def _slices(matrix: Array, bits: int, count: int, *, axis: int) -> list[Array]:
    """Return doubles that sum to the matrix, each with `bits` bits relative to the largest entry along the axis."""
    rest = matrix
    _, exponent = np.frexp(np.max(np.abs(rest), axis=axis, keepdims=True, initial=0.0))
    slices = []
    for index in range(count):
        shift = (index + 1) * bits - exponent
        slices.append(np.ldexp(np.rint(np.ldexp(rest, shift)), -shift))
        rest = rest - slices[-1]
    return slices


# Residuals of matrix equations cancel to rounding level: in double precision what is computed is rounding of the products
# more than error of the decomposition. The cost is about 20 products.


def commutator(A: Array, X: Array, F: Array, *, E: Array | None = None) -> Array:
    """Return A X − X F, or A X − E X F of square matrices; E is the identity if it is None."""
    return sum_matrices([*product_terms(A, X), *_negated_product(X, F, E)]).high


def product_difference(minuend: Array, left: Array, right: Array, *, E: Array | None = None) -> Array:
    """Return minuend − left @ right, or minuend − E left right; E is the identity if it is None."""
    return sum_matrices([minuend, *_negated_product(left, right, E)]).high


def _negated_product(left: Array, right: Array, E: Array | None) -> list[Array]:
    """Return matrices that sum to −left right, or to −E left right; E left is held as its rounded value and the rest."""
    if E is None:
        return [-term for term in product_terms(left, right)]
    terms = product_terms(E, left)
    rounded = sum_matrices(terms).high
    rest = sum_matrices([*terms, -rounded]).high
    return [*_negated_product(rounded, right, None), -(rest @ right)]
