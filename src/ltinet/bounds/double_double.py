"""Matrix exponentials to twice the digits, to see how far those in double precision are off.

A number is kept as a double and what rounding took from it. Products of such matrices are sums of exact terms
(`residual`), so that nothing hangs on a processor's own extended precision.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.residual import product_terms, two_part_sum
from ltinet.bounds.units import best_units
from ltinet.exact_arithmetic import exact_product
from ltinet.tolerances import LARGEST

_DEGREE = 15  # of the Taylor polynomial: 4⁻¹⁶/16! < 1e-22 for a matrix of norm 1/4
_MOST_HALVINGS = 100  # steps of 1e29 over the norm of F


class DoubleDouble(NamedTuple):
    """high + low."""

    high: Array
    low: Array


def exponentials(F: Array, length: float, n_halvings: int, *, units: Array | None = None) -> list[DoubleDouble]:
    """e^{Fs} at s = length, length/2, …, length/2^n, each right to some 20 digits of its norm in units that suit F.

    Of few states entries that are small beside others are as well. Units are powers of two, which cost no digit there
    and back; whoever knows what states are may give theirs.
    """
    units = best_units(F) if units is None else units
    F, back = F * units / units[:, None], units[:, None] / units
    norm = min(float(np.linalg.norm(F, 1)) * length, LARGEST)
    halvings = max(n_halvings, min(math.ceil(math.log2(norm)) + 2 if norm > 0.0 else 0, _MOST_HALVINGS))
    scaled = DoubleDouble(*exact_product(F, np.float64(length * 0.5**halvings)))
    R = _taylor(scaled)
    found = [R]
    for _ in range(halvings):
        R = _product(R, R)
        found.append(R)
    return [DoubleDouble(own.high * back, own.low * back) for own in found[::-1][: n_halvings + 1]]


def _product(left: DoubleDouble, right: DoubleDouble) -> DoubleDouble:
    with np.errstate(over="ignore", invalid="ignore"):
        small = left.high @ right.low + left.low @ right.high
        return DoubleDouble(*two_part_sum([*product_terms(left.high, right.high), small], left.high.shape))


def _taylor(M: DoubleDouble) -> DoubleDouble:
    """Σ M^k/k! to `_DEGREE`, as a polynomial in M⁴ whose coefficients are polynomials in M: six matrix products."""
    n = len(M.high)
    square = _product(M, M)
    powers = [DoubleDouble(np.eye(n), np.zeros((n, n))), M, square, _product(square, M)]
    fourth = _product(square, square)
    parts = [_combined(powers, range(first, first + 4)) for first in range(0, _DEGREE, 4)]
    found = parts.pop()
    while parts:
        found = _sum(parts.pop(), _product(fourth, found))
    return found


def _combined(powers: list[DoubleDouble], terms: range) -> DoubleDouble:
    """Σ M^i/k! for the powers i = 0, 1, … and as many terms k."""
    summands = []
    for power, term in zip(powers, terms, strict=True):
        exact = Fraction(1, math.factorial(term))
        high = float(exact)
        low = float(exact - Fraction(high))
        product, lost = exact_product(power.high, np.float64(high))
        summands += [product, lost + power.high * low + power.low * high]
    return DoubleDouble(*two_part_sum(summands, powers[0].high.shape))


def _sum(left: DoubleDouble, right: DoubleDouble) -> DoubleDouble:
    return DoubleDouble(*two_part_sum([left.high, right.high, left.low + right.low], left.high.shape))
