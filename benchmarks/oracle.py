"""Outputs to three more digits than a double holds: every number is an unevaluated sum of two doubles.

Matrices are cut into slices of so few bits that BLAS multiplies slices exactly, whatever the order of its sums (Ozaki,
Ogita, Oishi & Rump 2012). A step is x ← e^{Ah} x + h φ₁(Ah) B u + h φ₂(Ah) B (rise of u), with functions of the dense,
balanced matrix. No peer and no part of ltinet takes part.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

import ltinet

Array = NDArray[np.float64]
_SLICES = 3
_DOUBLE_BITS = 53
_TINY = 2.0**-75  # terms of the series, beside ½, that do not matter any more


class Twin(NamedTuple):
    """The number high + low; |low| is at most half a unit in the last place of high."""

    high: Array
    low: Array

    @classmethod
    def of(cls, exact: Array) -> "Twin":
        """Doubles that are what they say."""
        return cls(exact, np.zeros_like(exact))

    def columns(self, index: Any) -> "Twin":
        """Some columns."""
        return Twin(self.high[:, index], self.low[:, index])


@dataclass(frozen=True)
class _Sliced:
    """The left factor of many products, cut once."""

    stacks: list[Array]
    """For each level the slices that take part in it, side by side."""
    bits: int

    @classmethod
    def of(cls, left: Twin) -> "_Sliced":
        # Sums of n·_SLICES products of two slices must fit into a double.
        bits = (_DOUBLE_BITS - math.ceil(math.log2(_SLICES * max(left.high.shape[1], 1)))) // 2
        slices = _slices(left, bits, axis=1)
        return cls([np.hstack(slices[: level + 1]) for level in range(_SLICES)], bits)

    def times(self, right: Twin) -> Twin:
        """The product, to about 60 bits of the largest term of a row times that of a column."""
        columns = _slices(right, self.bits, axis=0)
        total = Twin(np.zeros(()), np.zeros(()))
        for level in range(_SLICES - 1, -1, -1):  # the smallest first; beyond the last level all is rounding
            exact = self.stacks[level] @ np.vstack(columns[level::-1])
            total = add(total, Twin(exact, np.zeros(())))
        return total


def reference_outputs(system: ltinet.StateSpace, u: Array, *, step: float) -> Array:
    """Outputs `(T, p)` for samples u `(T, m)` a step apart, straight lines between them, from rest.

    Time is cut into √T runs that advance side by side: first from zero, which gives where each begins, then from there.
    """
    balanced, (scale, _) = linalg.matrix_balance(np.array(system.A), permute=False, separate=True)
    exponential, phi1, phi2 = _phi_functions(_times_number(np.asarray(balanced, dtype=np.float64), step))
    rise, lost = _two_sum(u[1:], -u[:-1])
    B = _Sliced.of(Twin.of(np.array(system.B) / scale[:, None]))
    begin, end = B.times(Twin.of(u[:-1].T)), B.times(Twin(rise.T, lost.T))
    added = add(_Sliced.of(phi1).times(begin), _Sliced.of(phi2).times(end))
    x = _run(_Sliced.of(exponential), _by_number(added, step))
    C = np.array(system.C) * scale
    y = add(
        _Sliced.of(Twin.of(C)).times(x),
        _Sliced.of(Twin.of(np.array(system.D))).times(Twin.of(u.T)),
    )
    return np.ascontiguousarray(y.high.T)


def relative_error(y: Array, reference: Array) -> float:
    """Largest distance to the first len(y) rows of the reference, relative to the largest of all rows."""
    return float(np.max(np.abs(y - reference[: len(y)])) / np.max(np.abs(reference)))


def add(a: Twin, b: Twin) -> Twin:
    """The sum, correct to about twice the digits of a double (Knuth's two-sum, then the small parts)."""
    high, error = _two_sum(a.high, b.high)
    return Twin(*_two_sum(high, error + (a.low + b.low)))


def _run(P: _Sliced, added: Twin) -> Twin:
    """All states x₀ = 0, x_{k+1} = P x_k + added_k, one in a column."""
    n, n_steps = added.high.shape
    length = max(1, math.isqrt(n_steps))
    n_runs = -(-n_steps // length)
    gap = n_runs * length - n_steps
    padded = [np.pad(part, ((0, 0), (0, gap))).reshape(n, n_runs, length) for part in added]
    zero = Twin(np.zeros((n, n_runs)), np.zeros((n, n_runs)))
    ends = _advance(P, zero, padded)[-1]
    through = _power(P, length)
    starts = [Twin(np.zeros((n, 1)), np.zeros((n, 1)))]
    for run in range(n_runs - 1):
        starts.append(add(through.times(starts[-1]), ends.columns(slice(run, run + 1))))
    first = Twin(np.hstack([start.high for start in starts]), np.hstack([start.low for start in starts]))
    states = [first, *_advance(P, first, padded)]
    parts = [np.stack([state[part] for state in states[:-1]], axis=2).reshape(n, -1) for part in (0, 1)]
    last = states[-1].columns(slice(n_runs - 1, n_runs))
    return Twin(*(np.hstack([part, end])[:, : n_steps + 1] for part, end in zip(parts, last, strict=True)))


def _advance(P: _Sliced, x: Twin, added: list[Array]) -> list[Twin]:
    """The states after each step, all runs side by side."""
    states = []
    for k in range(added[0].shape[2]):
        x = add(P.times(x), Twin(added[0][:, :, k], added[1][:, :, k]))
        states.append(x)
    return states


def _power(P: _Sliced, exponent: int) -> _Sliced:
    """P to a power by squaring."""
    n = len(P.stacks[0])
    result, square = Twin(np.eye(n), np.zeros((n, n))), P.times(Twin(np.eye(n), np.zeros((n, n))))
    while exponent:
        if exponent % 2:
            result = _Sliced.of(square).times(result)
        exponent //= 2
        if exponent:
            square = _Sliced.of(square).times(square)
    return _Sliced.of(result)


def _phi_functions(matrix: Twin) -> tuple[Twin, Twin, Twin]:
    """e^Z, φ₁(Z) = Z⁻¹(e^Z − I) and φ₂(Z) = Z⁻²(e^Z − I − Z): a series for a small Z, then Z is doubled.

    φ₁(2Z) = ½ (e^Z φ₁ + φ₁) and φ₂(2Z) = ¼ (e^Z φ₂ + φ₁ + φ₂).
    """
    n = len(matrix.high)
    norm = float(np.max(np.sum(np.abs(matrix.high), axis=1)))
    halvings = max(0, math.ceil(math.log2(norm)) + 4) if norm > 0.0 else 0
    small = _by_power_of_two(matrix, -halvings)
    factor, identity = _Sliced.of(small), Twin.of(np.eye(n))
    phi2, term, order = _by_power_of_two(identity, -1), _by_power_of_two(identity, -1), 2
    while np.max(np.abs(term.high)) > _TINY:
        order += 1
        term = _over_number(factor.times(term), order)
        phi2 = add(phi2, term)
    phi1 = add(factor.times(phi2), identity)
    # e^Z − I is squared on its own: Z φ₁(Z) is the same, but its errors would grow with Z from doubling to doubling.
    less_identity = factor.times(phi1)
    for _ in range(halvings):
        growth = _Sliced.of(add(less_identity, identity))
        phi2 = _by_power_of_two(add(add(growth.times(phi2), phi2), phi1), -2)
        phi1 = _by_power_of_two(add(growth.times(phi1), phi1), -1)
        less_identity = add(growth.times(less_identity), less_identity)
    return add(less_identity, identity), phi1, phi2


def _by_power_of_two(value: Twin, power: int) -> Twin:
    return Twin(np.ldexp(value.high, power), np.ldexp(value.low, power))


def _slices(matrix: Twin, bits: int, *, axis: int) -> list[Array]:
    """Doubles that sum to the matrix, each with `bits` bits relative to the largest entry along the axis."""
    _, exponent = np.frexp(np.max(np.abs(matrix.high), axis=axis, keepdims=True, initial=0.0))
    rest, slices = matrix, []
    for index in range(_SLICES):
        shift = (index + 1) * bits - exponent
        slices.append(np.ldexp(np.rint(np.ldexp(rest.high, shift)), -shift))
        rest = add(rest, Twin(-slices[-1], np.zeros(())))
    return slices


def _times_number(matrix: Array, number: float) -> Twin:
    """An exact product of doubles: halves of 26 bits multiply without rounding (Dekker)."""
    high = matrix * number
    a, b = _halves(matrix), _halves(np.asarray(number))
    low = ((a[0] * b[0] - high) + a[0] * b[1] + a[1] * b[0]) + a[1] * b[1]
    return Twin(high, low)


def _by_number(value: Twin, number: float) -> Twin:
    return add(_times_number(value.high, number), Twin.of(value.low * number))


def _over_number(value: Twin, number: int) -> Twin:
    """A quotient: the remainder of the division of the high parts goes to the low part."""
    quotient = value.high / number
    back = _times_number(quotient, float(number))
    return Twin(*_two_sum(quotient, ((value.high - back.high) - back.low + value.low) / number))


def _halves(value: Array) -> tuple[Array, Array]:
    spread = value * (2.0**27 + 1.0)
    high = spread - (spread - value)
    return high, value - high


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Sum of a and b, rounded, and the error of that."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
