"""Matrix residuals and exponentials in about twice double precision, from double-precision operations.

Residuals such as A X − X F cancel to rounding level in double precision. Matrices are cut into slices of so few bits
that products of slices are exact in BLAS whatever the order of summation (Ozaki, Ogita, Oishi & Rump 2012); sums are
compensated (Neumaier 1974). Slices of a row share their exponent, so entries much smaller than their neighbours would
be lost: small matrices are multiplied entry by entry, large ones are first scaled by powers of two.

Exponentials e^{Fs} are computed as unevaluated sums high + low by scaling and squaring, with a Taylor polynomial of
degree 15 for norm 1/4 (4⁻¹⁶/16! < 1e-22).
"""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from ltinet._util.floating_point import MAX_FLOAT, Array, two_product, two_sum

# MERGED ltinet.error_bounds.extended_precision
# Units of states in which rows and columns of a matrix are of one size: powers of two, which cost no digit.


def balancing_units(F: Array) -> Array:
    """The units `(n,)`: F · units / units[:, None] is balanced."""
    return np.asarray(lapack.dgebal(F, scale=1, permute=0)[3]) if len(F) else np.ones(0)


# MERGED ltinet.error_bounds.extended_precision
# Residuals to full accuracy: what is left of A X − X F when all leading digits cancel.
#
# In double precision the residual of a good decomposition is rounding of the products more than of the decomposition.
# Matrices are cut into slices of so few bits that products of slices are exact, whatever the order of summation, and BLAS
# can form them (Ozaki, Ogita, Oishi & Rump 2012). Slices of a row share their bits: of an entry that is 1e-30 of its
# neighbours, which in other units would be as large as they, none is left. Of few states every product is therefore
# formed by itself; of many, both matrices are brought to units in which the rows of the right one are of one size.

_ENTRYWISE_ORDER = 32  # states: of more, slices take less time than single products
_N_SLICES = 4
_DOUBLE_BITS = 53


def commutator(A: Array, X: Array, F: Array) -> Array:
    """A X − X F, right to many more digits than the products have in double precision; about 20 products."""
    return _compensated_sum([*product_terms(A, X), *(-term for term in product_terms(X, F))], A.shape)


def descriptor_commutator(A: Array, E: Array, X: Array, F: Array) -> Array:
    """A X − E X F, likewise: E X is kept as a double and what rounding took from it."""
    terms = product_terms(E, X)
    rounded = _compensated_sum(terms, A.shape)
    lost = _compensated_sum([*terms, -rounded], A.shape)
    products = [*product_terms(A, X), *(-term for term in product_terms(rounded, F)), -(lost @ F)]
    return _compensated_sum(products, A.shape)


def descriptor_product_difference(given: Array, E: Array, X: Array, right: Array) -> Array:
    """Given − E X right, likewise."""
    terms = product_terms(E, X)
    rounded = _compensated_sum(terms, X.shape)
    lost = _compensated_sum([*terms, -rounded], X.shape)
    products = [given, *(-term for term in product_terms(rounded, right)), -(lost @ right)]
    return _compensated_sum(products, given.shape)


def product_difference(given: Array, left: Array, right: Array) -> Array:
    """Given − left @ right, likewise."""
    return _compensated_sum([given, *(-term for term in product_terms(left, right))], given.shape)


def product_terms(left: Array, right: Array) -> list[Array]:
    """Matrices that sum to left @ right, right to about 30 digits in whatever units the states between them are."""
    if left.shape[1] <= _ENTRYWISE_ORDER:
        return _entrywise_terms(left, right)
    units = _row_scales(right)
    return ozaki_terms(left * units, right / units[:, None])


def _entrywise_terms(left: Array, right: Array) -> list[Array]:
    """The product and what rounding took from it, entry by entry: all terms summed in pairs."""
    with np.errstate(over="ignore", invalid="ignore"):
        products, off = two_product(left.T[:, :, None], right[:, None, :])
        lost = off.sum(axis=0)
        while half := len(products) // 2:
            sums, off = two_sum(products[:half], products[half : 2 * half])
            products, lost = np.concatenate([sums, products[2 * half :]]), lost + off.sum(axis=0)
    return [products.sum(axis=0), lost]


def _row_scales(matrix: Array) -> Array:
    """The size of each row `(n,)` beside those of its columns, as a power of two, which costs no digit."""
    size = np.abs(matrix)
    largest = np.max(size, axis=0, initial=0.0)
    shares = np.max(size / np.where(largest > 0.0, largest, 1.0), axis=1, initial=0.0)
    return np.asarray(np.ldexp(1.0, np.frexp(np.where(shares > 0.0, shares, 1.0))[1]))


def _compensated_sum(terms: list[Array], shape: tuple[int, ...]) -> Array:
    """Compensated summation."""
    return two_part_sum(terms, shape)[0]


def two_part_sum(terms: list[Array], shape: tuple[int, ...]) -> tuple[Array, Array]:
    """The sum of some matrices and what rounding took from it (Neumaier 1974)."""
    total, lost = np.zeros(shape), np.zeros(shape)
    for term in terms:
        after = total + term
        lost += np.where(np.abs(total) >= np.abs(term), (total - after) + term, (term - after) + total)
        total = after
    rounded = np.asarray(total + lost)
    return rounded, np.asarray(lost - (rounded - total))


def ozaki_terms(left: Array, right: Array) -> list[Array]:
    """Matrices that sum to left @ right, the largest first; each is free of rounding."""
    bits = (_DOUBLE_BITS - math.ceil(math.log2(2 * max(left.shape[1], 1)))) // 2
    rows, columns = _slices(left, bits, axis=1), _slices(right, bits, axis=0)
    return [rows[i] @ columns[level - i] for level in range(_N_SLICES) for i in range(level + 1)]


def _slices(matrix: Array, bits: int, *, axis: int) -> list[Array]:
    """Doubles that sum to the matrix, each with `bits` bits relative to the largest entry along the axis."""
    rest = matrix
    _, exponent = np.frexp(np.max(np.abs(rest), axis=axis, keepdims=True, initial=0.0))
    slices = []
    for index in range(_N_SLICES):
        shift = (index + 1) * bits - exponent
        slices.append(np.ldexp(np.rint(np.ldexp(rest, shift)), -shift))
        rest = rest - slices[-1]
    return slices


# MERGED ltinet.error_bounds.extended_precision
# Matrix exponentials to twice the digits, to see how far those in double precision are off.
#
# A number is kept as a double and what rounding took from it. Products of such matrices are sums of exact terms
# (`residual`), so that nothing hangs on a processor's own extended precision.

_DEGREE = 15  # of the Taylor polynomial: 4⁻¹⁶/16! < 1e-22 for a matrix of norm 1/4
_MAX_HALVINGS = 100  # steps of 1e29 over the norm of F


class DoubleDouble(NamedTuple):
    """high + low."""

    high: Array
    low: Array


def extended_exponentials(
    F: Array, length: float, n_halvings: int, *, units: Array | None = None
) -> list[DoubleDouble]:
    """e^{Fs} at s = length, length/2, …, length/2^n, each right to some 20 digits of its norm in units that suit F.

    Of few states entries that are small beside others are as well. Units are powers of two, which cost no digit there
    and back; whoever knows what states are may give theirs.
    """
    units = balancing_units(F) if units is None else units
    F, back = F * units / units[:, None], units[:, None] / units
    norm = min(float(np.linalg.norm(F, 1)) * length, MAX_FLOAT)
    halvings = max(n_halvings, min(math.ceil(math.log2(norm)) + 2 if norm > 0.0 else 0, _MAX_HALVINGS))
    scaled = DoubleDouble(*two_product(F, np.float64(length * 0.5**halvings)))
    R = _taylor(scaled)
    found = [R]
    for _ in range(halvings):
        R = _multiply(R, R)
        found.append(R)
    return [DoubleDouble(own.high * back, own.low * back) for own in found[::-1][: n_halvings + 1]]


def _multiply(left: DoubleDouble, right: DoubleDouble) -> DoubleDouble:
    with np.errstate(over="ignore", invalid="ignore"):
        small = left.high @ right.low + left.low @ right.high
        return DoubleDouble(*two_part_sum([*product_terms(left.high, right.high), small], left.high.shape))


def _taylor(M: DoubleDouble) -> DoubleDouble:
    """Σ M^k/k! to `_DEGREE`, as a polynomial in M⁴ whose coefficients are polynomials in M: six matrix products."""
    n = len(M.high)
    square = _multiply(M, M)
    powers = [DoubleDouble(np.eye(n), np.zeros((n, n))), M, square, _multiply(square, M)]
    fourth = _multiply(square, square)
    parts = [_linear_combination(powers, range(first, first + 4)) for first in range(0, _DEGREE, 4)]
    found = parts.pop()
    while parts:
        found = _add(parts.pop(), _multiply(fourth, found))
    return found


def _linear_combination(powers: list[DoubleDouble], terms: range) -> DoubleDouble:
    """Σ M^i/k! for the powers i = 0, 1, … and as many terms k."""
    summands = []
    for power, term in zip(powers, terms, strict=True):
        exact = Fraction(1, math.factorial(term))
        high = float(exact)
        low = float(exact - Fraction(high))
        product, lost = two_product(power.high, np.float64(high))
        summands += [product, lost + power.high * low + power.low * high]
    return DoubleDouble(*two_part_sum(summands, powers[0].high.shape))


def _add(left: DoubleDouble, right: DoubleDouble) -> DoubleDouble:
    return DoubleDouble(*two_part_sum([left.high, right.high, left.low + right.low], left.high.shape))
