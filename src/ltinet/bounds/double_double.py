"""Matrix exponentials to twice the digits, to see how far those in double precision are off.

A number is kept as a double and what rounding took from it. Products of such matrices are sums of exact terms
(`residual`), so that nothing hangs on a processor's own extended precision.
"""

import math
from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.residual import product_terms, two_part_sum
from ltinet.bounds.units import best_units
from ltinet.exact_arithmetic import exact_product
from ltinet.tolerances import LARGEST

_TERMS = 14  # 4⁻¹⁵/15! < 1e-21: the Taylor series of a matrix of norm 1/4
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
    n = len(F)
    units = best_units(F) if units is None else units
    F, back = F * units / units[:, None], units[:, None] / units
    norm = min(float(np.linalg.norm(F, 1)) * length, LARGEST)
    halvings = max(n_halvings, min(math.ceil(math.log2(norm)) + 2 if norm > 0.0 else 0, _MOST_HALVINGS))
    scaled = DoubleDouble(*exact_product(F, np.float64(length * 0.5**halvings)))
    R = DoubleDouble(np.eye(n), np.zeros((n, n)))
    for term in range(_TERMS, 0, -1):
        R = _plus_identity(_divided(_product(scaled, R), float(term)))
    found = [R]
    for _ in range(halvings):
        R = _product(R, R)
        found.append(R)
    return [DoubleDouble(own.high * back, own.low * back) for own in found[::-1][: n_halvings + 1]]


def _product(left: DoubleDouble, right: DoubleDouble) -> DoubleDouble:
    with np.errstate(over="ignore", invalid="ignore"):
        small = left.high @ right.low + left.low @ right.high
        return DoubleDouble(*two_part_sum([*product_terms(left.high, right.high), small], left.high.shape))


def _divided(R: DoubleDouble, by: float) -> DoubleDouble:
    """R divided by a small whole number."""
    quotient = R.high / by
    back, lost = exact_product(quotient, np.float64(by))
    rest = ((R.high - back) - lost) + R.low
    return DoubleDouble(quotient, rest / by)


def _plus_identity(R: DoubleDouble) -> DoubleDouble:
    return DoubleDouble(*two_part_sum([np.eye(len(R.high)), R.high, R.low], R.high.shape))
