"""Exponentials of matrices and of scalars in double-double precision.

Exponentials e^{Fs} of matrices are computed by scaling and squaring, with a Taylor polynomial of degree 19 for norm 1/4
(4⁻²⁰/20! < 1e-30). From one of an augmented matrix follow exact steps of z' = F z + G u. Squarings amplify errors by an
unknown factor, so that the error of a step is estimated: by the difference of e^M from the third power of e^{M/3}.

Exponentials of scalars are computed as e^z − 1, doubled from an argument whose series needs three terms. What is
prepared for many steps must not err in the same direction in all of them, since an error below the last digit of one
step is above it after a million.
"""

import math
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.double_double import (
    ENTRYWISE_ORDER,
    MAX_PAIR_STATES,
    DoubleDouble,
    add,
    multiply,
    multiply_matrices,
    sum_matrices,
    two_product,
    two_sum,
)
from ltinet._util.floating_point import MAX_FLOAT, Array, balancing_units

_DEGREE = 19  # of the Taylor polynomial of matrices
_ROUNDING = 2.0**-104  # of an operation with pairs of doubles,
_SLICED_ROUNDING = 2.0**-94  # of a product of large matrices, which are cut into five slices,
_ROUGH_ROUNDING = 2.0**-82  # and of still larger ones, into four
_ERROR_FACTOR = 16.0  # error of an exponential over the difference of two computations; see tests/unit/error_bounds
_MAX_HALVINGS = 100  # enough for steps of 1e29 over the norm of F
_MIN_POWER_OF_TWO = 2.0**-1000  # its inverse is finite
_CUBIC_LIMIT = 2.0**-10  # |x| below which x³/6 + … in double precision is exact enough beside x in double-double
_MAX_EXPONENT = 2.0**1000  # larger exponents give the same result: zero or infinity


# Matrices


def double_double_matrix_exponentials(
    F: Array,
    length: float,
    n_halvings: int,
    *,
    units: Array | None = None,
    low: Array | None = None,
) -> list[DoubleDouble]:
    """Return e^{(F + low) s} at s = length, length/2, …, length/2^n, correct to about 20 digits of its norm in balanced units.

    With up to 32 states, entries that are small beside others have these digits as well. `units` of the states replace
    those of `balancing_units`; they must be powers of two, which cost no digit there and back. Exponentials of arguments
    of norm 1/4 or less are polynomials, all others squares.
    """
    units = balancing_units(F) if units is None else units
    exponents = np.frexp(units)[1]
    exponents = exponents[:, None] - exponents  # of the ratios of units, which may overflow where no entry does
    F = np.ldexp(F, -exponents)
    norm = min(float(np.linalg.norm(F, 1)) * length, MAX_FLOAT)
    halvings = _halvings(norm)

    def polynomial(level: int) -> DoubleDouble:
        argument = two_product(F, np.float64(length * 0.5**level))
        if low is not None:
            argument = two_sum(argument.high, argument.low + np.ldexp(low, -exponents) * (length * 0.5**level))
        return _taylor(argument)

    levels = [polynomial(level) for level in range(n_halvings, halvings - 1, -1)] or [polynomial(halvings)]
    for _ in range(halvings):
        levels.append(multiply_matrices(levels[-1], levels[-1]))
    return [
        DoubleDouble(np.ldexp(R.high, exponents), np.ldexp(R.low, exponents)) for R in levels[::-1][: n_halvings + 1]
    ]


def _halvings(norm: float) -> int:
    """Return how often an argument of this norm must be halved for a norm of 1/4 or less."""
    return min(max(0, math.ceil(math.log2(norm)) + 2) if norm > 0.0 else 0, _MAX_HALVINGS)


def _sufficient_degree(sizes: Array) -> int | None:
    """Return the degree of a polynomial of which no entry lacks a digit, for |M| of norm 1/4 or less; None above 19.

    An entry may begin late: it takes k factors for a state to act on one that is k connections away. If a term is
    negligible beside the sum in all entries, so are the next ones: each is the one before times |M|, as the sum is.
    Entries of larger matrices are known relative to their norm only.
    """
    if len(sizes) > ENTRYWISE_ORDER:
        norm = max(float(sizes.sum(axis=0).max()), _MIN_POWER_OF_TWO)
        return next((d for d in (7, 11, 15) if (d + 1) * math.log2(norm) < -104.0), _DEGREE)
    term = total = np.eye(len(sizes))
    for degree in range(_DEGREE + 1):
        term = term @ sizes / (degree + 1)  # the first that a polynomial of this degree lacks
        if degree % 4 == 3 and degree > 3 and np.all(term <= _ROUNDING * total):
            return degree
        total = total + term
    return None


def _taylor(M: DoubleDouble) -> DoubleDouble:
    """Return Σ M^k/k! up to degree 19, or less where that suffices, in up to seven products.

    It is a polynomial in M⁴ with polynomials in M as coefficients.
    """
    degree = _sufficient_degree(np.abs(M.high)) or _DEGREE
    n = len(M.high)
    square = multiply_matrices(M, M)
    powers = [DoubleDouble(np.eye(n), np.zeros((n, n))), M, square, multiply_matrices(square, M)]
    coefficients = [_linear_combination(powers, first) for first in range(0, degree, 4)]
    total = coefficients.pop()
    if coefficients:
        fourth = multiply_matrices(square, square)
    while coefficients:
        left, right = coefficients.pop(), multiply_matrices(fourth, total)
        total = sum_matrices([left.high, right.high, left.low + right.low])
    return total


@cache
def _inverse_factorials() -> list[tuple[float, float]]:
    """Return 1/k! as high + low."""
    exact = [Fraction(1, math.factorial(term)) for term in range(_DEGREE + 1)]
    return [(float(value), float(value - Fraction(float(value)))) for value in exact]


def _linear_combination(powers: list[DoubleDouble], first: int) -> DoubleDouble:
    """Return Σ M^i/(first + i)! for the powers i = 0, 1, …."""
    summands = []
    for power, (high, low) in zip(powers, _inverse_factorials()[first:], strict=False):
        product, lost = two_product(power.high, np.float64(high))
        summands += [product, lost + power.high * low + power.low * high]
    return sum_matrices(summands)


class DoubleDoubleStep(NamedTuple):
    """Step z(t + h) = W [z; u_k; u_{k+1}] as W = high + low, `(n, n + 2m)`, with an estimate of its error."""

    high: Array
    low: Array
    error: Array


def double_double_steps(
    F: DoubleDouble, G: DoubleDouble, longest: float, n_halvings: int, *, linear: bool, estimate_errors: bool = True
) -> list[DoubleDoubleStep]:
    """Return the steps of lengths `longest`, half of it, … of z' = F z + G u, held or linear inputs.

    exp(h [[F, G, 0], [0, 0, I/s], [0, 0, 0]]) has e^{Fh}, h φ₁ G and h² φ₂ G/s in its first rows (Van Loan 1978); s, a
    power of two near h, keeps all of one size. So do units of the inputs: balancing does not scale inputs, since nothing
    acts on them. To estimate errors it is computed twice, the second time as the third power of e^{M/3}, with other
    roundings throughout.
    """
    n, m = G.high.shape
    scale = 2.0 ** math.frexp(longest)[1]
    whole, low = np.zeros((2, n + 2 * m, n + 2 * m))
    whole[:n, :n], whole[:n, n : n + m] = F.high, G.high
    low[:n, :n], low[:n, n : n + m] = F.low, G.low
    whole[n : n + m, n + m :] = np.eye(m) / scale
    states = balancing_units(F.high)
    steps = []
    with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
        inputs = _powers_of_two(scale * np.abs(G.high / states[:, None]).max(axis=0, initial=0.0))
        units = np.concatenate([states, 1.0 / inputs, 1.0 / inputs])
        once = double_double_matrix_exponentials(whole, longest, n_halvings + 1, units=units, low=low)
        again = list(once)
        if estimate_errors:
            balanced = float(np.abs(whole * (units / units[:, None])).sum(axis=0).max(initial=0.0)) * longest
            n_squares = min(n_halvings, _halvings(min(balanced, MAX_FLOAT)))
            if _sufficient_degree(np.abs(whole) * (longest * 0.5**n_squares)) is None:
                n_squares = n_halvings  # of chains so long that polynomials do not reach their ends
            third, exact = whole / 3.0, two_product(whole / 3.0, np.float64(3.0))
            rest = (((whole - exact.high) - exact.low) + low) / 3.0
            roots = double_double_matrix_exponentials(third, longest, n_squares, units=units, low=rest)
            again[: n_squares + 1] = [multiply_matrices(root, multiply_matrices(root, root)) for root in roots]
        for level in range(n_halvings + 1):
            error = _exponential_error(once[level], again[level], np.abs(once[level + 1].high), states, units)
            length = longest * 0.5**level
            steps.append(_step_from_exponential(once[level], error, m, length=length, scale=scale, linear=linear))
    return steps


def _exponential_error(once: DoubleDouble, again: DoubleDouble, half: Array, states: Array, units: Array) -> Array:
    """Return an estimate of the error of the first rows of an exponential, which was computed twice.

    It is a multiple of the measured difference, and of its largest value relative to |e^{Fh/2}| |e^{Fh/2}|, the terms of the
    last squaring, in every entry: one may be right in both by chance. The columns of states, inputs and their slopes have
    sizes of their own.
    """
    n, m = len(states), (len(units) - len(states)) // 2
    difference = np.abs((once.high[:n] - again.high[:n]) + (once.low[:n] - again.low[:n]))
    terms, ratios = half[:n] @ half, units / states[:, None]
    sliced = _SLICED_ROUNDING if len(half) <= MAX_PAIR_STATES else _ROUGH_ROUNDING
    rounding = _ROUNDING if len(half) <= ENTRYWISE_ORDER else sliced
    error = np.empty_like(terms)
    for columns in (slice(0, n), slice(n, n + m), slice(n + m, n + 2 * m)):
        largest, total = (
            float(np.max(part[:, columns] * ratios[:, columns], initial=0.0)) for part in (difference, terms)
        )
        relative = (largest / total if total > 0.0 else 0.0) + len(half) * rounding
        error[:, columns] = _ERROR_FACTOR * (difference[:, columns] + relative * terms[:, columns])
    return error


def _step_from_exponential(
    exponential: DoubleDouble, error: Array, m: int, *, length: float, scale: float, linear: bool
) -> DoubleDoubleStep:
    """Return [P, h(φ₁ − φ₂) G, h φ₂ G], or [P, h φ₁ G, 0] for held inputs, from the first rows of the exponential."""
    n = len(error)
    high, low = exponential.high[:n], exponential.low[:n]
    if not linear:
        zeros = np.zeros((n, m))
        return DoubleDoubleStep(*(np.hstack([part[:, : n + m], zeros]) for part in (high, low, error)))
    first = DoubleDouble(high[:, n : n + m], low[:, n : n + m])
    second = DoubleDouble(high[:, n + m :], low[:, n + m :])
    quotient = scale / length
    product = two_product(np.float64(quotient), np.float64(length))
    rest = ((scale - product.high) - product.low) / length
    end = multiply(second, DoubleDouble(np.full((n, m), quotient), np.full((n, m), rest)))
    begin = add(first, DoubleDouble(-end.high, -end.low))
    rounding = 8.0 * _ROUNDING * (np.abs(first.high) + np.abs(end.high))
    of_end = error[:, n + m :] * quotient + rounding
    return DoubleDoubleStep(
        np.hstack([high[:, :n], begin.high, end.high]),
        np.hstack([low[:, :n], begin.low, end.low]),
        np.hstack([error[:, :n], error[:, n : n + m] + of_end, of_end]),
    )


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
