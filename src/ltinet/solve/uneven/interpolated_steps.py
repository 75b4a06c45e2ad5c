"""Exact steps of many lengths for a dense block: matrix exponentials at some lengths, and polynomials between them.

Every entry of e^{Fh}, h φ₁(Fh) G and h φ₂(Fh) G is an entire function of h. Between one power of two and the next it is
interpolated at Chebyshev lengths, so that a step costs a matrix product instead of a matrix exponential. Lengths within
a factor of two keep all errors relative to the entry itself.
"""

import math
import sys
from copy import copy
from dataclasses import dataclass
from functools import partial

import numpy as np

from ltinet.arrays import Array
from ltinet.solve.steps.propagators import StepMatrices, matrix_steps
from ltinet.solve.uneven import chebyshev
from ltinet.tolerances import EPS

_TOLERATED = math.log(10.0)
_LARGEST_BLOCK = 128  # states: eigenvalues of larger blocks take longer than a run
_FIRST = 16  # degree that is tried first
_LARGEST = 2**24  # numbers in the coefficients of one series, for memory
# Coefficients fall at least geometrically: what is left at half of the degree is squared at all of it. This is far
# above the rounding of exponentials, and its square far below.
_AT_HALF = 2.0**-40


class InterpolatedSteps:
    """Steps of blocks z' = F z + G u of equal size, for any lengths.

    A series is prepared where so many lengths are asked for that it pays, for all blocks of as many terms as the one
    that needs most.
    """

    def __init__(self, F: Array, G: Array, *, linear: bool, longest: float | None = None) -> None:
        self._F, self._G, self._linear, self._longest = F, G, linear, longest
        self.numbers = F.size + 2 * G.size
        """In the matrices of a step."""
        self._seen: dict[int, int] = {}
        self._series: dict[int, _Series] = {}
        self._too_few: dict[int, int] = {}
        self._decided: dict[int, _Series] | None = None

    def rises(self, over: float) -> bool:
        """Whether ‖e^{Fs}‖ may rise above e^{αs} by more than tenfold within a time: products then lose digits.

        ‖e^{Fs}‖ ≤ e^{μs}, with μ the largest eigenvalue of the symmetric part of F. In the long run it falls as e^{αs},
        with α the largest real part of an eigenvalue of F.
        """
        F = self._F
        if not F.size or F.shape[-1] > _LARGEST_BLOCK:
            return False
        symmetric = 0.5 * F + 0.5 * F.swapaxes(-1, -2)  # a sum of both may overflow
        speed = np.linalg.eigvalsh(symmetric).max(axis=-1) - np.linalg.eigvals(F).real.max(axis=-1)
        return bool(np.max(speed, initial=0.0) * over > _TOLERATED)

    def for_run(self, h: Array) -> "InterpolatedSteps":
        """The same for a run with steps of these lengths: they alone decide what is prepared, not what came before."""
        found, exponents = copy(self), np.frexp(h)[1]
        found._decided = {}
        for exponent in np.unique(exponents[h > 0.0]).tolist():
            n_lengths = len(np.unique(h[exponents == exponent]))
            series = self._worth_it(exponent, at_most=n_lengths // 2)
            if series is not None:
                found._decided[exponent] = series
        return found

    def of(self, h: Array) -> StepMatrices:
        """Steps of lengths h `(k,)` for F `(blocks, n, n)` and G `(blocks, n, m)`: arrays `(k, blocks, n, n or m)`."""
        values = np.empty((len(h), self.numbers))
        exponents = np.frexp(h)[1]
        for exponent in np.unique(exponents[h > 0.0]).tolist():
            rows = np.flatnonzero((exponents == exponent) & (h > 0.0))
            values[rows] = self._within(exponent, h[rows])
        P, begin, end = self._matrices(values)
        if not h.all():
            still = h == 0.0
            P[still], begin[still], end[still] = np.eye(P.shape[-1]), 0.0, 0.0
        return StepMatrices(P, begin, end)

    def _within(self, exponent: int, h: Array) -> Array:
        """For lengths between 2^(exponent − 1) and 2^exponent."""
        if self._decided is not None and exponent in self._decided:
            return self._decided[exponent].values(h)
        lengths, which = np.unique(h, return_inverse=True)
        series = self._after_all(exponent, len(lengths)) if self._decided is None else None
        return self._exact(lengths)[which] if series is None else series.values(h)

    def _after_all(self, exponent: int, n_lengths: int) -> "_Series | None":
        """The series, once it pays for all lengths that were asked for until now."""
        if exponent in self._series:
            return self._series[exponent]
        self._seen[exponent] = self._seen.get(exponent, 0) + n_lengths
        return self._worth_it(exponent, at_most=self._seen[exponent] // 2)

    def _worth_it(self, exponent: int, *, at_most: int) -> "_Series | None":
        """A series of as many terms as it takes, None if these are too many."""
        if exponent not in self._series and self._too_few.get(exponent, 0) < at_most:
            self._prepare(exponent, at_most=at_most)
        series = self._series.get(exponent)
        return series if series is not None and series.degree < at_most else None

    def _prepare(self, exponent: int, *, at_most: int) -> None:
        """Keep the series, or of which degree it would be at least."""
        degree, ends = _FIRST, (math.ldexp(1.0, exponent - 1), math.ldexp(1.0, exponent))
        if degree >= at_most:
            return
        values = self._exact(chebyshev.nodes(*ends, degree))
        while (coefficients := self._coefficients(values)) is None:
            degree *= 2
            if degree >= at_most or degree * self.numbers > _LARGEST:
                self._too_few[exponent] = degree if degree * self.numbers <= _LARGEST else sys.maxsize
                return
            both = np.empty((degree + 1, self.numbers))
            both[::2], both[1::2] = values, self._exact(chebyshev.nodes(*ends, degree)[1::2])
            values = both
        self._series[exponent] = _Series(*ends, degree, coefficients)

    def _coefficients(self, values: Array) -> Array | None:
        """Those that matter of the series through values at nodes, None if it has too few, for some block."""
        coefficients = chebyshev.coefficients(values)
        sizes, largest = np.abs(coefficients), np.abs(values).max(axis=0)
        for left, scale in zip(*map(self._matrices, (sizes[: len(sizes) // 2 + 1], largest[None])), strict=True):
            if not np.all(left.max(axis=(0, 2, 3), initial=0.0) <= _AT_HALF * scale.max(axis=(0, 2, 3), initial=0.0)):
                return None  # or some number is not finite
        matters = np.flatnonzero((sizes > EPS / 8.0 * largest).any(axis=1))
        return np.ascontiguousarray(coefficients[matters[0] if len(matters) else -1 :])

    def _exact(self, h: Array) -> Array:
        """All numbers of the matrices of a step, one matrix exponential for each length and block."""
        steps = partial(matrix_steps, h=h, linear=self._linear, longest=self._longest)
        parts = [steps(F, G) for F, G in zip(self._F, self._G, strict=True)]
        stacked = [np.stack(blocks, axis=1) for blocks in zip(*parts, strict=True)]
        return np.concatenate([part.reshape(len(h), part[0].size) for part in stacked], axis=1)

    def _matrices(self, values: Array) -> StepMatrices:
        """The matrices `(k, blocks, n, n or m)` whose numbers are rows of values."""
        blocks, n, m = self._G.shape
        P, begin, end = np.split(values, [self._F.size, self._F.size + self._G.size], axis=1)
        shape = (len(values), blocks, n)
        return StepMatrices(P.reshape(*shape, n), begin.reshape(*shape, m), end.reshape(*shape, m))


@dataclass(frozen=True)
class _Series:
    """A Chebyshev series between two lengths for every number of the matrices."""

    low: float
    high: float
    degree: int
    coefficients: Array

    def values(self, h: Array) -> Array:
        """One row for each length."""
        polynomials = np.empty((len(self.coefficients), len(h)))
        chebyshev.polynomials(h, self.low, self.high, out=polynomials)
        return np.asarray(polynomials.T @ self.coefficients)
