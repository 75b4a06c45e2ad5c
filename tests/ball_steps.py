"""Steps in balls: the exponential of the augmented matrix for every length of a step, and matrices of balls."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from flint import arb, arb_mat, fmpz
from numpy.typing import NDArray

from ball_case import Case, Length

Array = NDArray[np.float64]

_SQUARINGS = 40  # of a matrix that cost less than its exponential
_NEAR = 16  # lengths just below, among which the nearest in digits is looked for


class StepMaps:
    """Exponentials of the augmented matrix by the length of the step, made from those of powers of two.

    A step is a sum of powers of two; its map is the product of theirs, which costs less than an exponential. Even steps
    that rounding made uneven differ in their last digits only: a map is made from the one that is nearest in digits.
    """

    def __init__(self, generator: Any, basis: Any, n: int, m: int, *, linear: bool) -> None:
        self.generator, self.basis, self.n, self.m, self.linear = generator, basis, n, m, linear
        self._digits: dict[int, Any] = {}
        self._found: dict[Length, tuple[Any, Any]] = {}

    @classmethod
    def of(cls, case: Case) -> "StepMaps":
        n, m = case.B.shape
        right = exact(np.hstack([case.A, case.B]))
        if case.E is not None:
            right = exact(case.E).solve(right)
        basis = exact(case.basis)
        right = basis.solve(
            _side_by_side(_part(right, range(n), range(n)) * basis, _part(right, range(n), range(n, n + m)))
        )
        size = n + (2 if case.linear else 1) * m
        generator = arb_mat(size, size)
        for i in range(n):
            for j in range(n + m):
                generator[i, j] = right[i, j]
        for i in range(m if case.linear else 0):
            generator[n + i, n + m + i] = arb(1)  # the last states are the slopes of u
        return cls(generator, basis, n, m, linear=case.linear)

    def at(self, key: Length) -> tuple[Any, Any]:
        """P and Q of a step of mantissa · 2^exponent, where x ← P x + Q [u_k; u_{k+1}] (u_k alone for zero hold)."""
        if key not in self._found:
            self.prepare([key])
        return self._found[key]

    def prepare(self, keys: Iterable[Length]) -> None:
        """Make the maps of many lengths, from the shortest on: then what one has more than another is no length < 0."""
        wanted = {key for key in keys if key not in self._found}
        unit = min((exponent for _, exponent in wanted), default=0)
        known: list[tuple[int, Any]] = []
        for ticks, key in sorted((mantissa << exponent - unit, (mantissa, exponent)) for mantissa, exponent in wanted):
            base, product = min(known[-_NEAR:], key=lambda own: (ticks - own[0]).bit_count(), default=(0, None))
            if product is None or ticks.bit_count() <= (ticks - base).bit_count():
                base, product = 0, None
            product = self._times_digits(product, ticks - base, unit)
            known.append((ticks, product))
            self._found[key] = self._split(product, key)

    def _times_digits(self, product: Any, ticks: int, unit: int) -> Any:
        """A map, followed by one of ticks · 2^unit."""
        for place in range(ticks.bit_length()):
            if ticks >> place & 1:
                digit = self._digit(unit + place)
                product = digit if product is None else product * digit
        size = self.generator.nrows()
        return arb_mat(size, size, _unit_entries(size)) if product is None else product

    def _digit(self, place: int) -> Any:
        if place not in self._digits:
            below = max((known for known in self._digits if known < place), default=-math.inf)
            if place - below < _SQUARINGS:
                half = self._digit(place - 1)
                self._digits[place] = half * half
            else:
                self._digits[place] = (self.generator * _power_of_two(place)).exp()
        return self._digits[place]

    def _split(self, whole: Any, key: Length) -> tuple[Any, Any]:
        n, m = self.n, self.m
        P = _part(whole, range(n), range(n))
        first = _part(whole, range(n), range(n, n + m))
        if not self.linear:
            return P, first
        slope = _part(whole, range(n), range(n + m, n + 2 * m)) * (1 / as_arb(key)) if key[0] else arb_mat(n, m)
        return P, _side_by_side(first - slope, slope)


def exact(values: Array) -> Any:
    return arb_mat(*values.shape, values.ravel().tolist())


def objects(matrix: Any, shape: tuple[int, ...]) -> NDArray[np.object_]:
    entries = np.empty(math.prod(shape), dtype=object)
    entries[:] = matrix.entries()
    return entries.reshape(shape)


def _part(matrix: Any, rows: range, columns: range) -> Any:
    return arb_mat(len(rows), len(columns), [matrix[i, j] for i in rows for j in columns])


def _side_by_side(left: Any, right: Any) -> Any:
    rows = zip(left.tolist(), right.tolist(), strict=True)
    return arb_mat(left.nrows(), left.ncols() + right.ncols(), [entry for a, b in rows for entry in (*a, *b)])


def as_arb(length: Length) -> Any:
    return arb(length[0]) * _power_of_two(length[1])


def _power_of_two(exponent: int) -> Any:
    return arb(fmpz(1) << exponent) if exponent >= 0 else 1 / arb(fmpz(1) << -exponent)


def _unit_entries(size: int) -> list[int]:
    return [int(i == j) for i in range(size) for j in range(size)]
