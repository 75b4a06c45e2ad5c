"""Exponentials of matrices and of scalars in double-double precision.

Exponentials e^{Fs} of matrices are computed by scaling and squaring, with a Taylor polynomial of degree 15 for norm 1/4
(4⁻¹⁶/16! < 1e-22). From one of an augmented matrix follow exact steps of z' = F z + G u.

Exponentials of scalars are computed as e^z − 1, doubled from an argument whose series needs three terms. What is
prepared for many steps must not err in the same direction in all of them, since an error below the last digit of one
step is above it after a million.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltinet._util.double_double import (
    DoubleDouble,
    add,
    multiply,
    multiply_matrices,
    outer_product,
    sum_matrices,
    two_product,
)
from ltinet._util.floating_point import MAX_FLOAT, Array, balancing_units

_DEGREE = 15  # of the Taylor polynomial of matrices
_MAX_HALVINGS = 100  # enough for steps of 1e29 over the norm of F
_MIN_POWER_OF_TWO = 2.0**-1000  # its inverse is finite
_CUBIC_LIMIT = 2.0**-10  # |x| below which x³/6 + … in double precision is exact enough beside x in double-double
_MAX_EXPONENT = 2.0**1000  # larger exponents give the same result: zero or infinity


# Matrices


def double_double_matrix_exponentials(
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
    R = _taylor(two_product(F, np.float64(length * 0.5**halvings)))
    exponentials = [R]
    for _ in range(halvings):
        R = multiply_matrices(R, R)
        exponentials.append(R)
    levels = exponentials[::-1][: n_halvings + 1]
    return [DoubleDouble(np.ldexp(R.high, exponents), np.ldexp(R.low, exponents)) for R in levels]


def _taylor(M: DoubleDouble) -> DoubleDouble:
    """Return Σ M^k/k! up to `_DEGREE`, a polynomial in M⁴ with polynomials in M as coefficients: six products."""
    n = len(M.high)
    square = multiply_matrices(M, M)
    powers = [DoubleDouble(np.eye(n), np.zeros((n, n))), M, square, multiply_matrices(square, M)]
    fourth = multiply_matrices(square, square)
    coefficients = [_linear_combination(powers, range(first, first + 4)) for first in range(0, _DEGREE, 4)]
    total = coefficients.pop()
    while coefficients:
        left, right = coefficients.pop(), multiply_matrices(fourth, total)
        total = sum_matrices([left.high, right.high, left.low + right.low])
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
    return sum_matrices(summands)


def double_double_steps(F: Array, G: Array, lengths: Array, *, linear: bool) -> list[tuple[Array, Array]]:
    """Return P and the input matrices at both ends, `(lengths, …)`, each as high + low, from one exponential.

    Lengths come in rows, each half of the one before. exp(h [[F, G, 0], [0, 0, I/s], [0, 0, 0]]) has e^{Fh}, h φ₁ G and
    h² φ₂ G/s in its first rows (Van Loan 1978); s, a power of two near h, keeps all of one size. So do units of the
    inputs: balancing does not scale inputs, since nothing acts on them.
    """
    n, m = G.shape
    scale = 2.0 ** math.frexp(float(lengths.max()))[1]
    augmented = np.zeros((n + 2 * m, n + 2 * m))
    augmented[:n, :n], augmented[:n, n : n + m] = F, G
    augmented[n : n + m, n + m :] = np.eye(m) / scale
    states = balancing_units(F)
    inputs = _powers_of_two(scale * np.abs(G / states[:, None]).max(axis=0, initial=0.0))
    units = np.concatenate([states, 1.0 / inputs, 1.0 / inputs])
    n_halvings = len(lengths) - 1
    columns = [double_double_matrix_exponentials(augmented, h, n_halvings, units=units) for h in lengths[0].tolist()]
    exponentials = np.array(columns).swapaxes(0, 1)  # lengths in rows and columns, then high and low
    high, low = exponentials.reshape(lengths.size, 2, *augmented.shape)[:, :, :n].swapaxes(0, 1)
    first = high[:, :, n : n + m], low[:, :, n : n + m]
    zeros = np.zeros_like(first[0])
    if not linear:
        return [(high[:, :, :n], low[:, :, :n]), first, (zeros, zeros)]
    second = high[:, :, n + m :] * (scale / lengths.ravel())[:, None, None]
    # One more rounding, of numbers no larger than the contribution of the inputs: far below the differences of interest.
    return [(high[:, :, :n], low[:, :, :n]), (first[0] - second, first[1]), (second, zeros)]


def _powers_of_two(sizes: Array) -> Array:
    """Return the powers of two above the sizes; 2 for zeros and for sizes that are not finite or whose inverse is not."""
    usable = np.where((sizes > _MIN_POWER_OF_TWO) & (sizes < 1.0 / _MIN_POWER_OF_TWO), sizes, 1.0)
    return np.asarray(np.ldexp(1.0, np.frexp(usable)[1]))


# Scalars


def double_double_exponential_table(
    rates: NDArray[Any], step: float, count: int, *, less_one: NDArray[np.bool_]
) -> DoubleDouble:
    """Return e^{kλq}, or e^{kλq} − 1, `(count, n_rates)`, for a power of two q; accurate to 2⁻⁷⁰ max(1, |kλq|)."""
    z = rates * step
    once = _expm1_by_doubling(DoubleDouble(z, np.zeros_like(z)))
    table = DoubleDouble(*np.zeros((2, 1, *z.shape), dtype=z.dtype))
    while len(table.high) < count:
        more = _compose_expm1(table, once)
        table = DoubleDouble(*(np.concatenate(parts) for parts in zip(table, more, strict=True)))
        once = _compose_expm1(once, once)
    ones = DoubleDouble(np.where(less_one, 0.0, 1.0), np.zeros(len(rates)))
    return add(ones, DoubleDouble(table.high[:count], table.low[:count]))


def double_double_exponentials(rates: NDArray[Any], lengths: NDArray[np.float64]) -> DoubleDouble:
    """Return e^{λh}, `(lengths, n_rates)`, for any lengths; accurate to 2⁻⁷⁰ max(1, |λh|)."""
    changes = _expm1_by_doubling(outer_product(rates, lengths))
    return add(DoubleDouble(np.ones_like(changes.high), np.zeros_like(changes.low)), changes)


def _expm1_by_doubling(exponents: DoubleDouble) -> DoubleDouble:
    """Return e^z − 1."""
    z, rounding = exponents
    largest = float(np.abs(z).max(initial=0.0))
    if not largest < _MAX_EXPONENT:  # results underflow or overflow beyond, and phases are meaningless
        z = np.clip(z.view(np.float64), -_MAX_EXPONENT, _MAX_EXPONENT).view(z.dtype)
        rounding = np.where(np.isfinite(rounding), rounding, 0.0)
        largest = 2.0 * _MAX_EXPONENT
    halvings = max(0, int(np.ceil(np.log2(max(largest, _CUBIC_LIMIT) / _CUBIC_LIMIT))))
    fraction = np.ldexp(1.0, -halvings)
    high, low = _expm1_near_zero(fraction * z)
    result = DoubleDouble(high, low + fraction * rounding * (1.0 + fraction * z))
    for _ in range(halvings):
        result = _compose_expm1(result, result)
    return result


def _expm1_near_zero(x: NDArray[Any]) -> DoubleDouble:
    """Return e^x − 1 for |x| up to `_CUBIC_LIMIT`."""
    zeros = np.zeros_like(x)
    square = multiply(DoubleDouble(x, zeros), DoubleDouble(0.5 * x, zeros))
    rest = x * x * x * (1.0 / 6.0 + x * (1.0 / 24.0 + x * (1.0 / 120.0 + x * (1.0 / 720.0 + x / 5040.0))))
    return add(DoubleDouble(x, zeros), DoubleDouble(square.high, square.low + rest))


def _compose_expm1(a: DoubleDouble, b: DoubleDouble) -> DoubleDouble:
    """Return e^{x+y} − 1 = a + b + a b from a = e^x − 1 and b = e^y − 1."""
    return add(add(a, b), multiply(a, b))
