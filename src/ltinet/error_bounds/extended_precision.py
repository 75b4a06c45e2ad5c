"""Matrix residuals and exponentials in about twice double precision, from double-precision operations.

Residuals such as A X − X F cancel to rounding level in double precision: what is computed is rounding of the products
more than error of the decomposition. Matrices are cut into slices of so few bits that products of slices are exact in
BLAS whatever the order of summation (Ozaki, Ogita, Oishi & Rump 2012); sums are compensated (Neumaier 1974). Slices of
a row share their exponent, so that nothing would remain of an entry that is 1e-30 of its neighbors: matrices of up to
32 states are multiplied entry by entry, larger ones are first scaled by powers of two, which cost no digit.

Exponentials e^{Fs} are computed as unevaluated sums high + low by scaling and squaring, with a Taylor polynomial of
degree 15 for norm 1/4 (4⁻¹⁶/16! < 1e-22). No extended precision of the processor is used.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from ltinet._util.floating_point import MAX_FLOAT, Array, two_product, two_sum

_ENTRYWISE_ORDER = 32  # states up to which single products take less time than slices (empirical)
_N_SLICES = 4  # of 23 bits for small matrices: what is left out is 2⁻⁹⁰ of the products
_DOUBLE_BITS = 53
_DEGREE = 15  # of the Taylor polynomial
_MAX_HALVINGS = 100  # enough for steps of 1e29 over the norm of F


def balancing_units(F: Array) -> Array:
    """Return units of the states `(n,)`, powers of two, such that F · units / units[:, None] is balanced."""
    return np.asarray(lapack.dgebal(F, scale=1, permute=0)[3]) if len(F) else np.ones(0)


# Residuals


def commutator(A: Array, X: Array, F: Array) -> Array:
    """Return A X − X F, correct to many more digits than the products have; the cost is about 20 products."""
    return two_part_sum([*product_terms(A, X), *_negated(product_terms(X, F))], A.shape)[0]


def descriptor_commutator(A: Array, E: Array, X: Array, F: Array) -> Array:
    """Return A X − E X F to the accuracy of `commutator`."""
    return two_part_sum([*product_terms(A, X), *_negated_triple_product(E, X, F)], A.shape)[0]


def product_difference(minuend: Array, left: Array, right: Array) -> Array:
    """Return minuend − left @ right to the accuracy of `commutator`."""
    return two_part_sum([minuend, *_negated(product_terms(left, right))], minuend.shape)[0]


def descriptor_product_difference(minuend: Array, E: Array, X: Array, right: Array) -> Array:
    """Return minuend − E X right to the accuracy of `commutator`."""
    return two_part_sum([minuend, *_negated_triple_product(E, X, right)], minuend.shape)[0]


def _negated(terms: list[Array]) -> list[Array]:
    return [-term for term in terms]


def _negated_triple_product(E: Array, X: Array, right: Array) -> list[Array]:
    """Return matrices that sum to −E X right; E X is held as its rounded value and the rest."""
    terms = product_terms(E, X)
    rounded = two_part_sum(terms, X.shape)[0]
    rest = two_part_sum([*terms, -rounded], X.shape)[0]
    return [*_negated(product_terms(rounded, right)), -(rest @ right)]


def product_terms(left: Array, right: Array) -> list[Array]:
    """Return matrices that sum to left @ right, correct to about 30 digits in any units of the states between them."""
    if left.shape[1] <= _ENTRYWISE_ORDER:
        return _entrywise_terms(left, right)
    # The size of each row of `right` beside those of its columns, as a power of two.
    size = np.abs(right)
    largest = np.max(size, axis=0, initial=0.0)
    ratios = np.max(size / np.where(largest > 0.0, largest, 1.0), axis=1, initial=0.0)
    units = np.ldexp(1.0, np.frexp(np.where(ratios > 0.0, ratios, 1.0))[1])
    return _ozaki_terms(left * units, right / units[:, None])


def _entrywise_terms(left: Array, right: Array) -> list[Array]:
    """Return the product and its rounding error: exact products, summed pairwise with their errors."""
    with np.errstate(over="ignore", invalid="ignore"):
        products, errors = two_product(left.T[:, :, None], right[:, None, :])
        lost = errors.sum(axis=0)
        while half := len(products) // 2:
            sums, errors = two_sum(products[:half], products[half : 2 * half])
            products, lost = np.concatenate([sums, products[2 * half :]]), lost + errors.sum(axis=0)
    return [products.sum(axis=0), lost]


def _ozaki_terms(left: Array, right: Array) -> list[Array]:
    """Return matrices that sum to left @ right, the largest first; each is free of rounding."""
    bits = (_DOUBLE_BITS - math.ceil(math.log2(2 * max(left.shape[1], 1)))) // 2
    rows, columns = _slices(left, bits, axis=1), _slices(right, bits, axis=0)
    return [rows[i] @ columns[level - i] for level in range(_N_SLICES) for i in range(level + 1)]


def _slices(matrix: Array, bits: int, *, axis: int) -> list[Array]:
    """Return doubles that sum to the matrix, each with `bits` bits relative to the largest entry along the axis."""
    rest = matrix
    _, exponent = np.frexp(np.max(np.abs(rest), axis=axis, keepdims=True, initial=0.0))
    slices = []
    for index in range(_N_SLICES):
        shift = (index + 1) * bits - exponent
        slices.append(np.ldexp(np.rint(np.ldexp(rest, shift)), -shift))
        rest = rest - slices[-1]
    return slices


def two_part_sum(terms: list[Array], shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the sum of some matrices and its rounding error (Neumaier 1974)."""
    total, lost = np.zeros(shape), np.zeros(shape)
    for term in terms:
        after = total + term
        lost += np.where(np.abs(total) >= np.abs(term), (total - after) + term, (term - after) + total)
        total = after
    rounded = np.asarray(total + lost)
    return rounded, np.asarray(lost - (rounded - total))


# Exponentials


class DoubleDouble(NamedTuple):
    """Array of numbers high + low, where `low` is below the last digit of `high`."""

    high: Array
    low: Array


def extended_exponentials(
    F: Array, length: float, n_halvings: int, *, units: Array | None = None
) -> list[DoubleDouble]:
    """Return e^{Fs} at s = length, length/2, …, length/2^n, correct to about 20 digits of its norm in balanced units.

    With up to 32 states, entries that are small beside others have these digits as well. `units` of the states replace
    those of `balancing_units`; they must be powers of two, which cost no digit there and back.
    """
    units = balancing_units(F) if units is None else units
    exponents = np.frexp(units)[1]
    exponents = exponents[:, None] - exponents  # of the ratios of units, which may overflow where no entry does
    F = np.ldexp(F, -exponents)
    norm = min(float(np.linalg.norm(F, 1)) * length, MAX_FLOAT)
    halvings = max(n_halvings, min(math.ceil(math.log2(norm)) + 2 if norm > 0.0 else 0, _MAX_HALVINGS))
    R = _taylor(DoubleDouble(*two_product(F, np.float64(length * 0.5**halvings))))
    exponentials = [R]
    for _ in range(halvings):
        R = _multiply(R, R)
        exponentials.append(R)
    levels = exponentials[::-1][: n_halvings + 1]
    return [DoubleDouble(np.ldexp(R.high, exponents), np.ldexp(R.low, exponents)) for R in levels]


def _multiply(left: DoubleDouble, right: DoubleDouble) -> DoubleDouble:
    with np.errstate(over="ignore", invalid="ignore"):
        small = left.high @ right.low + left.low @ right.high
        return DoubleDouble(*two_part_sum([*product_terms(left.high, right.high), small], left.high.shape))


def _taylor(M: DoubleDouble) -> DoubleDouble:
    """Return Σ M^k/k! up to `_DEGREE`, a polynomial in M⁴ with polynomials in M as coefficients: six products."""
    n = len(M.high)
    square = _multiply(M, M)
    powers = [DoubleDouble(np.eye(n), np.zeros((n, n))), M, square, _multiply(square, M)]
    fourth = _multiply(square, square)
    coefficients = [_linear_combination(powers, range(first, first + 4)) for first in range(0, _DEGREE, 4)]
    total = coefficients.pop()
    while coefficients:
        left, right = coefficients.pop(), _multiply(fourth, total)
        total = DoubleDouble(*two_part_sum([left.high, right.high, left.low + right.low], M.high.shape))
    return total


def _linear_combination(powers: list[DoubleDouble], terms: range) -> DoubleDouble:
    """Return Σ M^i/k! for the powers i = 0, 1, … and as many terms k."""
    summands = []
    for power, term in zip(powers, terms, strict=True):
        exact = Fraction(1, math.factorial(term))
        high = float(exact)
        low = float(exact - Fraction(high))
        product, lost = two_product(power.high, np.float64(high))
        summands += [product, lost + power.high * low + power.low * high]
    return DoubleDouble(*two_part_sum(summands, powers[0].high.shape))
