"""Exact steps of many lengths for scalars v' = λ v + B u, without an exponential for each.

Lengths within a factor of eight are worked on together, below a power of two H. What is prepared for them depends on
|λ|H: see `slow_rates` and `fast_rates`. Of states that hardly decay, P − 1 is given in place of P = e^{λh}.
"""

import math
from collections.abc import Callable, Container
from copy import copy
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.solve.steps.propagators import scalar_steps
from ltinet.solve.uneven.fast_rates import fast_rates
from ltinet.solve.uneven.slow_rates import driven, slow_rates

Step = tuple[NDArray[Any], NDArray[Any]]
_OCTAVES = 3  # lengths that are worked on together differ by less than 2³
_FAST = 8.0  # |λ|H, from which on |λh| ≥ 1 for all lengths
_SLOWEST = 32.0  # |λ|H up to which series are not too long, so that all rates may go one way
_SLOW_GROWTH = 1.0  # |λ|H of growing states, whose φ₁ rises as e^{λh}
_FASTEST = 4096.0  # |λ|H, beyond which tables would be too long
_LASTING = 2.0**-5  # |Re λ|H up to which a state is told by what changes: more of it would be lost along a run of steps
_MANY = 256  # lengths, from which on preparation pays
_MANY_STEPS = 16 * _MANY  # of which there are about as many runs
_LEAST = -1000  # exponent of the shortest lengths that are told from shorter ones
_KINDS = 1024  # more than there are


class ScalarLengths:
    """Steps of rates (real, or complex for pairs) with inputs B (transposed), for lengths below 2^octave.

    Where many of them follow each other, states that hardly decay are told by what changes.
    """

    def __init__(
        self, rates: NDArray[Any], drive: NDArray[Any], *, octave: int, linear: bool, many_follow: bool
    ) -> None:
        self.rates, self.drive, self._octave, self._linear = rates, drive, octave, linear
        self._kept = (np.abs(rates.real) * math.ldexp(1.0, octave) <= _LASTING) & many_follow
        with np.errstate(over="ignore"):
            self.growth = float(np.exp(np.max(rates.real, initial=0.0) * math.ldexp(1.0, octave)))
            """By what a step multiplies states at most."""
        self._seen: dict[int, int] = {}
        self._prepared: dict[int, _Ways] = {}
        self._decided: Container[int] | None = None

    def for_run(self, h: Array) -> "ScalarLengths":
        """The same for a run with steps of these lengths: they alone decide what is prepared, not what came before."""
        return self._with(frozenset(np.flatnonzero(np.bincount(self._kinds(h)[0]) >= _MANY).tolist()))

    def for_runs(self, n_steps: int) -> "ScalarLengths":
        """The same for lengths of many steps together, of which a run has so many."""
        return self._with(range(_KINDS if n_steps >= _MANY_STEPS else 0))

    def _with(self, decided: Container[int]) -> "ScalarLengths":
        found = copy(self)
        found._decided = decided
        return found

    @property
    def kept(self) -> NDArray[Any] | bool:
        """Where factors are P − 1: everywhere, nowhere, or as numbers that are 1 there and 0 elsewhere."""
        return bool(self._kept[0]) if np.all(self._kept == self._kept[0]) else self._kept.astype(np.float64)

    def factors(self, h: Array) -> NDArray[Any]:
        """By what steps of lengths h multiply states, `(k, n_rates)`."""
        kinds, present = self._kinds(h)
        found = np.empty((len(h), len(self.rates)), dtype=self.rates.dtype)
        for kind in present:
            rows = np.flatnonzero(kinds == kind)
            found[rows] = self._way(kind, len(rows)).factors(h[rows])
        found[h == 0.0] = np.where(self._kept, 0.0, 1.0)
        return found

    def step(self, h: Array, now: Array, then: Array) -> Step:
        """The same, and what inputs `(batch, k, m)` at both ends add, `(batch, k, n_rates)`."""
        kinds, present = self._kinds(h)
        if len(present) == 1:
            factors, added = self._way(present[0], len(h)).step(h, now, then)
        else:
            factors = np.empty((len(h), len(self.rates)), dtype=self.rates.dtype)
            added = np.empty((len(now), *factors.shape), dtype=self.rates.dtype)
            for kind in present:
                rows = np.flatnonzero(kinds == kind)
                factors[rows], added[:, rows] = self._way(kind, len(rows)).step(h[rows], now[:, rows], then[:, rows])
        if not h.all():
            factors[h == 0.0], added[:, h == 0.0] = np.where(self._kept, 0.0, 1.0), 0.0
        return factors, added

    def _kinds(self, h: Array) -> tuple[NDArray[np.intp], list[int]]:
        """By how many factors of eight each length is below the longest, and which there are."""
        exponents = np.frexp(h)[1]
        exponents[h == 0.0] = self._octave  # nothing moves in a step of length zero
        kinds = (self._octave - np.clip(exponents, _LEAST, self._octave)) // _OCTAVES
        return kinds, np.flatnonzero(np.bincount(kinds)).tolist()

    def _way(self, kind: int, n_lengths: int) -> "_Way":
        """For lengths below 2^(octave − 3 kind); what two threads prepare at once is the same."""
        if not self._pays(kind, n_lengths):
            return _OneByOne(self.rates, self.drive, self._kept, self._linear)
        if kind not in self._prepared:
            longest = math.ldexp(1.0, self._octave - _OCTAVES * kind)
            self._prepared[kind] = _ways(self.rates, self.drive, longest, kept=self._kept, linear=self._linear)
        return self._prepared[kind]

    def _pays(self, kind: int, n_lengths: int) -> bool:
        """Whether preparation does: as was decided for a run, or for as many lengths as were asked for until now."""
        if self._decided is not None:
            return kind in self._decided
        self._seen[kind] = self._seen.get(kind, 0) + n_lengths
        return self._seen[kind] >= _MANY or kind in self._prepared


class _Way(Protocol):
    """Steps of some rates."""

    def factors(self, h: Array) -> NDArray[Any]: ...

    def step(self, h: Array, now: Array, then: Array) -> Step: ...


@dataclass(frozen=True)
class _Ways:
    """All rates, for lengths that are worked on together: one way for most, others in place of it for their own."""

    most: _Way
    others: list[tuple[NDArray[np.intp], _Way]]

    def factors(self, h: Array) -> NDArray[Any]:
        factors = self.most.factors(h)
        for columns, way in self.others:
            factors[:, columns] = way.factors(h)
        return factors

    def step(self, h: Array, now: Array, then: Array) -> Step:
        factors, added = self.most.step(h, now, then)
        for columns, way in self.others:
            factors[:, columns], added[:, :, columns] = way.step(h, now, then)
        return factors, added


def _ways(rates: NDArray[Any], drive: NDArray[Any], longest: float, *, kept: NDArray[np.bool_], linear: bool) -> _Ways:
    size, grows = np.abs(rates) * longest, rates.real > 0.0
    most_slow = _SLOWEST if np.all(size <= _SLOWEST) else _FAST
    slow = size <= np.where(grows, _SLOW_GROWTH, most_slow)
    fast = ~slow & ~grows & (size <= _FASTEST)
    makers: list[tuple[NDArray[np.bool_], Callable[..., _Way]]]
    makers = [(slow, slow_rates), (fast, fast_rates), (~slow & ~fast, _one_by_one)]
    (most, make_most), *rest = sorted(makers, key=lambda maker: -np.count_nonzero(maker[0]))
    # The way of most goes through all rates: writing columns costs more than working on some in vain.
    harmless = np.where(most, rates, rates[most][0])
    others = [
        (np.flatnonzero(own), make(rates[own], drive[:, own], longest, kept=kept[own], linear=linear))
        for own, make in rest
        if own.any()
    ]
    return _Ways(make_most(harmless, drive, longest, kept=kept, linear=linear), others)


@dataclass(frozen=True)
class _OneByOne:
    """An exponential for every step: for few of them, for rates that grow fast and those beyond all tables."""

    rates: NDArray[Any]
    drive: NDArray[Any]
    kept: NDArray[np.bool_]
    linear: bool

    def factors(self, h: Array) -> NDArray[Any]:
        P, begin, end = scalar_steps(self.rates, h, linear=False)
        return np.where(self.kept, self.rates * (begin + end), P)

    def step(self, h: Array, now: Array, then: Array) -> Step:
        P, begin, end = scalar_steps(self.rates, h, linear=self.linear)
        added = driven(now, self.drive) * begin + driven(then, self.drive) * end
        return np.where(self.kept, self.rates * (begin + end), P), added


def _one_by_one(
    rates: NDArray[Any], drive: NDArray[Any], _: float, *, kept: NDArray[np.bool_], linear: bool
) -> _OneByOne:
    return _OneByOne(rates, drive, kept, linear)
