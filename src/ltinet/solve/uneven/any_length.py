"""Steps of a modal system of any lengths, prepared for many of them."""

import math
from copy import copy
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.once import cached_property
from ltinet.solve.modal import DenseBlock, ModalSystem
from ltinet.solve.uneven.interpolated_steps import InterpolatedSteps
from ltinet.solve.uneven.scalar_lengths import ScalarLengths
from ltinet.solve.uneven.varied_decay import Decays, matrices

_MATRICES_AT_ONCE = 2**20  # numbers
_RUNS = 7  # a run of steps is shorter than 2⁷ of the longest


class AnyLength:
    """Pairs, reals and dense blocks of a system, each with the steps that suit it, for lengths below 2^octave."""

    def __init__(self, system: ModalSystem, *, octave: int, linear: bool) -> None:
        self.system, self.linear, self._longest = system, linear, math.ldexp(1.0, octave)
        n_pairs = system.n_pairs
        pairs, reals = system.rates[:n_pairs], system.rates[n_pairs:].real
        self.scalars = [
            _scalars(rates, drive, place, octave=octave, linear=linear)
            for rates, drive, place in (
                (pairs, system.B[:n_pairs].T, slice(0, 2 * n_pairs)),
                (reals, system.B[n_pairs:].real.T, slice(2 * n_pairs, n_pairs + len(system.rates))),
            )
            if len(rates)
        ]

    @cached_property
    def dense(self) -> list["Dense"]:
        """The dense blocks, those of equal size together."""
        offsets = np.cumsum([self.system.n_pairs + len(self.system.rates), *map(_size, self.system.blocks)])
        found = []
        for size, group in groupby(sorted(enumerate(self.system.blocks), key=_size_of), key=_size_of):
            numbers, blocks = zip(*group, strict=True)
            places = offsets[list(numbers), None] + np.arange(size)
            found.append(_dense(blocks, places, numbers, linear=self.linear, longest=self._longest))
        return found

    def for_run(self, h: Array) -> "AnyLength":
        """The same for a run with steps of these lengths: whoever goes through it again takes the very same steps."""
        found = copy(self)
        found.scalars = [
            own._replace(steps=own.steps.for_run(h), runs=own.runs.for_runs(len(h))) for own in self.scalars
        ]
        found.__dict__["dense"] = [own._replace(steps=own.steps.for_run(h)) for own in self.dense]
        return found

    def step(self, h: Array, z: Array, now: Array, then: Array) -> Array:
        """One exact step of its own length h `(k,)` for each of the packed states z `(batch, k, n)`.

        The inputs `(batch, k, m)` are those at the beginning and at the end of each step.
        """
        result = np.empty_like(z)
        for scalars in self.scalars:
            decays, added = scalars.step(h, now, then)
            own = np.ascontiguousarray(z[..., scalars.place]).view(added.dtype)
            decays.advance(..., own, added, scratch=np.empty_like(added))
            result[..., scalars.place] = added.view(np.float64)
        for dense in self.dense:
            at_once = max(1, _MATRICES_AT_ONCE // dense.steps.numbers)
            for begin in range(0, len(h), at_once):
                at = slice(begin, begin + at_once)
                decays, added = dense.step(h[at], now[:, at], then[:, at])
                decays.advance(..., dense.states(z[:, at]), added, scratch=np.empty_like(added))
                result[:, at, dense.columns] = dense.packed(added)
        return result


class Scalars(NamedTuple):
    """Pairs, or reals."""

    steps: ScalarLengths
    runs: ScalarLengths
    """For lengths of many steps together."""
    place: slice
    """Where they stand among packed states."""

    def step(self, h: Array, now: Array, then: Array) -> tuple[Decays, NDArray[Any]]:
        """By what states are multiplied `(k, n)`, and what inputs `(batch, k, m)` at both ends add, `(batch, k, n)`."""
        factors, added = self.steps.step(h, now, then)
        return Decays(factors, np.multiply, self.steps.growth, self.steps.kept), added

    def over_runs(self, lengths: Array, lost: Array) -> Decays:
        """By what states are multiplied in many steps together, `(k, 1, n)`; rounding took `lost` from the lengths."""
        factors, kept = self.runs.factors(lengths), self.runs.kept
        if lost.any():
            factors += (factors + kept) * (lost[:, None] * self.runs.rates)
        return Decays(factors[:, None], np.multiply, self.runs.growth, kept)


class Dense(NamedTuple):
    """Dense blocks of equal size; with more inputs than states, the inputs of their steps are G u."""

    steps: InterpolatedSteps
    drive: Array | None
    """G, transposed, `(blocks, m, n)`."""
    places: NDArray[np.intp]
    """Where the states of each stand among packed states, `(blocks, n)`."""
    numbers: tuple[int, ...]
    """Which of the blocks of the system these are."""

    @property
    def n_states(self) -> int:
        """Dimension of each block."""
        return int(self.places.shape[1])

    def step(self, h: Array, now: Array, then: Array) -> tuple[Decays, Array]:
        """Matrices `(k, blocks, n, n)`, and what the inputs `(batch, k, m)` at both ends add."""
        P, begin, end = self.steps.of(h)
        return matrices(P), begin @ self._inputs(now) + end @ self._inputs(then)

    @property
    def columns(self) -> NDArray[np.intp]:
        """The same, one after the other."""
        return self.places.ravel()

    def states(self, packed: Array) -> Array:
        """The states of the blocks, `(..., blocks, n, batch)`, from packed ones, `(batch, ..., n_states)`."""
        return np.moveaxis(packed[..., self.places], 0, -1)

    def packed(self, states: Array) -> Array:
        """Their own columns of packed states, `(batch, k, blocks·n)`, from the states of the blocks."""
        n_steps, *shape, batch = states.shape
        return np.moveaxis(states, -1, 0).reshape(batch, n_steps, math.prod(shape))

    def _inputs(self, u: Array) -> Array:
        """Inputs as columns, `(k, blocks or 1, m or n, batch)`."""
        inputs = u[:, :, None] if self.drive is None else (u[:, :, None, None] @ self.drive)[:, :, :, 0]
        return np.moveaxis(inputs, 0, -1)


def _scalars(rates: NDArray[Any], drive: NDArray[Any], place: slice, *, octave: int, linear: bool) -> Scalars:
    steps = ScalarLengths(rates, drive, octave=octave, linear=linear, many_follow=False)
    return Scalars(steps, ScalarLengths(rates, drive, octave=octave + _RUNS, linear=linear, many_follow=True), place)


def _dense(
    blocks: tuple[DenseBlock, ...], places: NDArray[np.intp], numbers: tuple[int, ...], *, linear: bool, longest: float
) -> Dense:
    F, G = np.stack([block.F for block in blocks]), np.stack([block.G for block in blocks])
    _, n, m = G.shape
    if m <= n:
        return Dense(InterpolatedSteps(F, G, linear=linear, longest=longest), None, places, numbers)
    unit = np.broadcast_to(np.eye(n), F.shape)
    return Dense(InterpolatedSteps(F, unit, linear=linear, longest=longest), G.transpose(0, 2, 1), places, numbers)


def _size(block: DenseBlock) -> int:
    return len(block.F)


def _size_of(numbered: tuple[int, DenseBlock]) -> int:
    return len(numbered[1].F)
