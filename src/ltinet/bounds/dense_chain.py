"""The exponential of a coupled block at lengths h, h/2, h/4, …: how large it is inside a step, and how far off.

A stiff block moves most at the beginning of a step, which lengths that halve show. How far the exponentials that the
engine uses are off is measured against such of twice the digits (`double_double`): bounds on what each squaring adds
would double with every one of them.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.arrays import Array
from ltinet.bounds.double_double import DoubleDouble
from ltinet.bounds.units import best_units
from ltinet.once import cached_property
from ltinet.tolerances import EPS, LARGEST

_TERMS = 18  # 1/19! < eps/16: the Taylor series of a matrix of norm one
_MOST_HALVINGS = 64  # beyond, a step is so long that only its slowest states are seen


@dataclass(frozen=True, eq=False)
class DenseChain:
    """e^{Fs} at s = length/2^j, the whole length first, and how far off they may be, `(levels, n, n)` each."""

    length: float
    exponentials: Array
    errors: Array
    pairs: "Pairs"

    def halved(self, times: int) -> "DenseChain":
        """The same up to a shorter length, as often as there are such."""
        times = min(times, len(self.exponentials) - 1)
        if times == 0:
            return self
        length = self.length * 0.5**times
        return replace(self, length=length, exponentials=self.exponentials[times:], errors=self.errors[times:])

    @cached_property
    def reach_to(self) -> Array:
        """The largest |e^{Fs}| up to each of the lengths, `(levels, n, n)`."""
        return np.asarray(np.maximum.accumulate(self._inside[::-1], axis=0)[::-1])

    @cached_property
    def error_to(self) -> Array:
        """The largest error up to each of the lengths."""
        return np.asarray(np.maximum.accumulate(self.errors[::-1], axis=0)[::-1])

    @cached_property
    def reach(self) -> Array:
        """The largest |e^{Fs}| up to the length, entry by entry."""
        return np.asarray(np.max(self._inside, axis=0))

    @cached_property
    def integral(self) -> Array:
        """∫|e^{Fs}| ds up to the length."""
        return self._integrated(self._inside)

    @cached_property
    def integral_to(self) -> Array:
        """∫|e^{Fs}| ds up to each of the lengths, `(levels, n, n)`."""
        own = self._lengths[:, None, None] * self._inside
        return np.asarray(np.cumsum(own[::-1], axis=0)[::-1])

    @cached_property
    def integral_of_errors(self) -> Array:
        """The same of the rounding errors."""
        return self._integrated(np.maximum(self.errors, np.roll(self.errors, -1, axis=0)))

    @cached_property
    def _inside(self) -> Array:
        """The largest |e^{Fs}| between two lengths that follow each other: at both, and at a place between."""
        levels = self.exponentials
        shorter = np.concatenate([levels[1:], np.eye(levels.shape[-1])[None]])
        still_shorter = np.concatenate([shorter[1:], shorter[-1:]])
        with np.errstate(over="ignore", invalid="ignore"):
            between = shorter @ still_shorter
        found = np.maximum(np.maximum(np.abs(levels), np.abs(shorter)), np.abs(between))
        gaps = 0.25 * self.length * 0.5 ** np.arange(len(levels))
        return smeared_rows(smeared(found, self.pairs, gaps=gaps), self.pairs, gaps=gaps)

    @cached_property
    def _lengths(self) -> Array:
        """From each length down to the next, from the last one to nothing."""
        lengths = self.length * 0.5 ** np.arange(1, len(self.exponentials) + 1)
        lengths[-1] *= 2.0
        return np.asarray(lengths)

    def _integrated(self, values: Array) -> Array:
        return np.asarray(np.tensordot(self._lengths, values, axes=1))


def dense_chain(F: Array, length: float, *, steps: int = 1) -> DenseChain:
    """The chain of a block, down to the length at which its exponential is a short series; cost O(n³) a halving.

    If the length is that of several steps, it goes down to one: longer exponentials are powers of that of a step.
    """
    n = len(F)
    units = best_units(F)
    norm = min(float(np.linalg.norm(F * units / units[:, None], 1)) * length, LARGEST) if n else 0.0
    enough = max(math.ceil(math.log2(norm)) if norm > 0.0 else 0, math.ceil(math.log2(steps)))
    halvings = min(enough, _MOST_HALVINGS)
    M = F * (length * 0.5**halvings)
    R = np.eye(n)
    for term in range(_TERMS, 0, -1):
        R = np.eye(n) + M @ R / term
    exponentials = [R]
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(halvings):
            R = R @ R
            exponentials.append(R)
    levels = np.array(exponentials[::-1])
    return DenseChain(length, levels, EPS * np.abs(levels), pairs_of(F))


def measured(chain: DenseChain, exact: list[DoubleDouble], found: Array) -> DenseChain:
    """The chain with the errors of exponentials that were found, `(levels, n, n)`, at its first few lengths."""
    off = [np.abs((own - high) - low) for own, (high, low) in zip(found, exact, strict=True)]
    errors = chain.errors.copy()
    errors[: len(off)] += np.array(off)
    return replace(chain, errors=errors)


class Pairs(NamedTuple):
    """Where the pairs of a quasi-triangular block begin, and how fast they turn."""

    first: NDArray[np.intp]
    omega: Array
    unit: Array
    """What the second state of each is measured in, in units of the first."""


def pairs_of(F: Array) -> Pairs:
    """The pairs of a block."""
    first = np.flatnonzero(np.diagonal(F, -1))
    size = np.sqrt(np.abs(F[first, first + 1])) * np.sqrt(np.abs(F[first + 1, first]))
    units = best_units(F)
    return Pairs(first, np.asarray(size), units[first + 1] / units[first])


def smeared(values: Array, pairs: Pairs, *, gaps: ArrayLike, of_rows: bool = False) -> Array:
    """What turns in a plane passes through zero, its size does not: columns of pairs between places that are looked at.

    Within a gap g a pair turns by ω g, and brings that share of its other component. `gaps` are those along the first
    axis of values.
    """
    angle = np.minimum(1.0, np.multiply.outer(np.asarray(gaps), pairs.omega))
    angle = angle.reshape(*angle.shape[:-1], *(1,) * (values.ndim - angle.ndim), angle.shape[-1])
    result = values.copy()
    one, other = values[..., pairs.first], values[..., pairs.first + 1]
    unit = 1.0 / pairs.unit if of_rows else pairs.unit
    result[..., pairs.first] = np.hypot(one, angle * other * unit)
    result[..., pairs.first + 1] = np.hypot(other, angle * one / unit)
    return result


def smeared_rows(values: Array, pairs: Pairs, *, gaps: ArrayLike) -> Array:
    """The same for rows."""
    return smeared(values.swapaxes(-1, -2), pairs, gaps=gaps, of_rows=True).swapaxes(-1, -2)
