"""States that follow each other through steps of which each has a decay of its own."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet.solve.steps import recurrence

_FEW = 32  # steps up to which a plain loop is faster than runs side by side


class Decays(NamedTuple):
    """By what each step multiplies states: P, or P − 1 where it changes them little.

    A number near one has few digits for what sets it apart from one, and after many short steps none are left. So two
    steps are composed as (P − 1) + P (P' − 1), and a state is what it was, and the change.
    """

    factors: NDArray[Any]
    """For each step, `(steps, …)`, or `(length, runs, …)` with the place within a run first."""
    product: np.ufunc
    """`np.multiply` for scalars, `np.matmul` for dense blocks."""
    growth: float
    """By what a step multiplies states at most."""
    kept: NDArray[Any] | bool = False
    """Where factors are P − 1: everywhere, nowhere, or as numbers that are 1 there and 0 elsewhere."""

    def advance(self, place: Any, before: NDArray[Any], states: NDArray[Any], *, scratch: NDArray[Any]) -> None:
        """In place: states, which hold what a step adds, and P · before; the change before what is kept."""
        self.product(self.factors[place], before, out=scratch)
        states += scratch
        if self.kept is not False:
            states += before if self.kept is True else before * self.kept

    def ends_of_runs(self, added: NDArray[Any]) -> NDArray[Any]:
        """States at the ends of runs of which each begins with nothing."""
        ends: NDArray[Any] = added[0].copy()
        scratch = np.empty_like(ends)
        for place in range(1, len(added)):
            self.product(self.factors[place], ends, out=scratch)
            if self.kept is not False:
                scratch += ends if self.kept is True else ends * self.kept
            np.add(scratch, added[place], out=ends)
        return ends

    def over_runs(self) -> "Decays":
        """Those of whole runs."""
        total = self.factors[0].copy()
        changed = np.empty_like(total)
        for own in self.factors[1:]:
            self.product(own if self.kept is False else own + self.kept, total, out=changed)
            total, changed = changed, total
            if self.kept is not False:
                total += own if self.kept is True else own * self.kept
        return self._replace(factors=total, growth=_growth(total, self.product, self.kept))


def matrices(factors: NDArray[Any]) -> Decays:
    """Decays of dense blocks."""
    return Decays(factors, np.matmul, _growth(factors, np.matmul, False))


def follow(
    decays: Decays, states: NDArray[Any], first: NDArray[Any], *, over_runs: Decays | None = None
) -> Iterator[NDArray[Any]]:
    """In place: z_k ← z_k + P_k z_{k−1} for steps that come in runs, `(length, n_runs, …)`; one place after the other.

    All runs advance together, first as if each began with nothing. Then their ends follow each other, with far fewer
    steps, and with what each begins with all runs advance again. The decays of whole runs may be known.
    """
    length = len(states)
    if length > 1 and length > recurrence.run_length(length, growth=decays.growth):
        _follow_out_of_runs(decays, states, first)  # products of what grows fast would overflow
        yield from states
        return
    ends = decays.ends_of_runs(states)
    _follow_in_turn(over_runs or decays.over_runs(), ends, first)
    before, scratch = np.concatenate([first[None], ends[:-1]]), np.empty_like(ends)
    for place in range(length):
        decays.advance(place, before, states[place], scratch=scratch)
        before = states[place]
        yield before


def runs_of(n_steps: int) -> tuple[int, int]:
    """The length of runs and their number for about N steps, or a few more: N^⅓ and N^⅔."""
    length = 1 if n_steps <= _FEW else round(n_steps ** (1 / 3))
    return length, -(-n_steps // length)


def _follow_in_turn(decays: Decays, states: NDArray[Any], first: NDArray[Any]) -> None:
    """The same for steps one after the other, `(steps, …)`; many of them in runs."""
    n_steps, factors = len(states), decays.factors
    length = 1 if n_steps <= _FEW else recurrence.run_length(n_steps ** (1 / 3), growth=decays.growth)
    whole = n_steps // length * length if length > 1 else 0
    if whole:
        in_runs, each = (
            part[:whole].reshape(whole // length, length, *part.shape[1:]).swapaxes(0, 1) for part in (states, factors)
        )
        for _ in follow(decays._replace(factors=each), in_runs, first):
            pass
    before, scratch = states[whole - 1] if whole else first, np.empty_like(first)
    for place in range(whole, n_steps):
        decays.advance(place, before, states[place], scratch=scratch)
        before = states[place]


def _follow_out_of_runs(decays: Decays, states: NDArray[Any], first: NDArray[Any]) -> None:
    length, count, *_ = states.shape
    factors, in_turn = (
        part.swapaxes(0, 1).reshape(length * count, *part.shape[2:]) for part in (decays.factors, states)
    )
    _follow_in_turn(decays._replace(factors=factors), in_turn, first)
    states[:] = in_turn.reshape(states.shape[1], states.shape[0], *states.shape[2:]).swapaxes(0, 1)


def _growth(factors: NDArray[Any], product: np.ufunc, kept: NDArray[Any] | bool) -> float:
    """The largest number, or the sum along a row of matrices."""
    real = factors.view(np.float64)
    largest = max(float(np.max(real, initial=0.0)), -float(np.min(real, initial=0.0)))
    width = factors.shape[-1] if product is np.matmul else math.sqrt(2.0)
    return width * largest + (0.0 if kept is False else 1.0)
