"""Simulation of samples at arbitrary times: exact steps of different lengths.

Scalars take their steps from `nonuniform_scalars`. For a dense block every entry of e^{Fh}, h φ₁(Fh) G and h φ₂(Fh) G
is an entire function of h; between one power of two and the next it is interpolated at Chebyshev lengths, so that a
step costs a matrix product instead of a matrix exponential. Lengths within a factor of two keep all errors relative
to the entry itself.

Steps are arranged in runs of equal length that advance side by side; their end states follow from one another by the
propagators of whole runs (`recurrence`). Matrices of a run are multiplied only if ‖e^{Fs}‖ does not rise far above
e^{αs}, α the spectral abscissa: ‖e^{Fs}‖ ≤ e^{μs} with μ the largest eigenvalue of the symmetric part of F. Large
blocks are stepped one after the other.
"""

import math
import sys
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, Array, two_sum
from ltinet.simulation import chebyshev
from ltinet.simulation.modal import DenseBlock, ModalSystem
from ltinet.simulation.nonuniform_scalars import NonuniformScalarSteps
from ltinet.simulation.propagators import StepMatrices, matrix_steps
from ltinet.simulation.recurrence import VariableDecay, matrix_decays, scan_in_runs, split_into_runs
from ltinet.systems.matrices import Matrix

# MERGED ltinet.simulation.nonuniform
# Exact steps of many lengths for a dense block: matrix exponentials at some lengths, and polynomials between them.
#
# Every entry of e^{Fh}, h φ₁(Fh) G and h φ₂(Fh) G is an entire function of h. Between one power of two and the next it is
# interpolated at Chebyshev lengths, so that a step costs a matrix product instead of a matrix exponential. Lengths within
# a factor of two keep all errors relative to the entry itself.

_LOG_GROWTH_LIMIT = math.log(10.0)
_LARGEST_BLOCK = 128  # states: eigenvalues of larger blocks take longer than a run
_FIRST_DEGREE = 16  # degree that is tried first
_MAX_SERIES_NUMBERS = 2**24  # numbers in the coefficients of one series, for memory
# Coefficients fall at least geometrically: what is left at half of the degree is squared at all of it. This is far
# above the rounding of exponentials, and its square far below.
_HALF_DEGREE_ERROR = 2.0**-40


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
        return bool(np.max(speed, initial=0.0) * over > _LOG_GROWTH_LIMIT)

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
        degree, ends = _FIRST_DEGREE, (math.ldexp(1.0, exponent - 1), math.ldexp(1.0, exponent))
        if degree >= at_most:
            return
        values = self._exact(chebyshev.interpolation_lengths(*ends, degree))
        while (coefficients := self._coefficients(values)) is None:
            degree *= 2
            if degree >= at_most or degree * self.numbers > _MAX_SERIES_NUMBERS:
                self._too_few[exponent] = degree if degree * self.numbers <= _MAX_SERIES_NUMBERS else sys.maxsize
                return
            both = np.empty((degree + 1, self.numbers))
            both[::2], both[1::2] = values, self._exact(chebyshev.interpolation_lengths(*ends, degree)[1::2])
            values = both
        self._series[exponent] = _Series(*ends, degree, coefficients)

    def _coefficients(self, values: Array) -> Array | None:
        """Those that matter of the series through values at nodes, None if it has too few, for some block."""
        coefficients = chebyshev.interpolation_coefficients(values)
        sizes, largest = np.abs(coefficients), np.abs(values).max(axis=0)
        for left, scale in zip(*map(self._matrices, (sizes[: len(sizes) // 2 + 1], largest[None])), strict=True):
            if not np.all(
                left.max(axis=(0, 2, 3), initial=0.0) <= _HALF_DEGREE_ERROR * scale.max(axis=(0, 2, 3), initial=0.0)
            ):
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
        chebyshev.evaluate_polynomials(h, self.low, self.high, out=polynomials)
        return np.asarray(polynomials.T @ self.coefficients)


# MERGED ltinet.simulation.nonuniform
# Steps of a modal system of any lengths, prepared for many of them.

_MATRICES_AT_ONCE = 2**20  # numbers
_RUN_OCTAVES = 7  # a run of steps is shorter than 2⁷ of the longest


class NonuniformSteps:
    """Pairs, reals and dense blocks of a system, each with the steps that suit it, for lengths below 2^octave."""

    def __init__(self, system: ModalSystem, *, octave: int, linear: bool) -> None:
        self.system, self.linear, self._longest = system, linear, math.ldexp(1.0, octave)
        n_pairs = system.n_pairs
        pairs, reals = system.rates[:n_pairs], system.rates[n_pairs:].real
        self.scalars = [
            _scalar_group(rates, drive, place, octave=octave, linear=linear)
            for rates, drive, place in (
                (pairs, system.B[:n_pairs].T, slice(0, 2 * n_pairs)),
                (reals, system.B[n_pairs:].real.T, slice(2 * n_pairs, n_pairs + len(system.rates))),
            )
            if len(rates)
        ]

    @cached_property
    def dense(self) -> list["DenseStepGroup"]:
        """The dense blocks, those of equal size together."""
        offsets = np.cumsum([self.system.n_pairs + len(self.system.rates), *map(_size, self.system.blocks)])
        found = []
        for size, group in groupby(sorted(enumerate(self.system.blocks), key=_size_of), key=_size_of):
            numbers, blocks = zip(*group, strict=True)
            places = offsets[list(numbers), None] + np.arange(size)
            found.append(_dense_group(blocks, places, numbers, linear=self.linear, longest=self._longest))
        return found

    def for_run(self, h: Array) -> "NonuniformSteps":
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


class ScalarStepGroup(NamedTuple):
    """Pairs, or reals."""

    steps: NonuniformScalarSteps
    runs: NonuniformScalarSteps
    """For lengths of many steps together."""
    place: slice
    """Where they stand among packed states."""

    def step(self, h: Array, now: Array, then: Array) -> tuple[VariableDecay, NDArray[Any]]:
        """By what states are multiplied `(k, n)`, and what inputs `(batch, k, m)` at both ends add, `(batch, k, n)`."""
        factors, added = self.steps.step(h, now, then)
        return VariableDecay(factors, np.multiply, self.steps.growth, self.steps.incremental), added

    def over_runs(self, lengths: Array, lost: Array) -> VariableDecay:
        """By what states are multiplied in many steps together, `(k, 1, n)`; rounding took `lost` from the lengths."""
        factors, kept = self.runs.factors(lengths), self.runs.incremental
        if lost.any():
            factors += (factors + kept) * (lost[:, None] * self.runs.rates)
        return VariableDecay(factors[:, None], np.multiply, self.runs.growth, kept)


class DenseStepGroup(NamedTuple):
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

    def step(self, h: Array, now: Array, then: Array) -> tuple[VariableDecay, Array]:
        """Matrices `(k, blocks, n, n)`, and what the inputs `(batch, k, m)` at both ends add."""
        P, begin, end = self.steps.of(h)
        return matrix_decays(P), begin @ self._inputs(now) + end @ self._inputs(then)

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


def _scalar_group(
    rates: NDArray[Any], drive: NDArray[Any], place: slice, *, octave: int, linear: bool
) -> ScalarStepGroup:
    steps = NonuniformScalarSteps(rates, drive, octave=octave, linear=linear, many_follow=False)
    return ScalarStepGroup(
        steps, NonuniformScalarSteps(rates, drive, octave=octave + _RUN_OCTAVES, linear=linear, many_follow=True), place
    )


def _dense_group(
    blocks: tuple[DenseBlock, ...], places: NDArray[np.intp], numbers: tuple[int, ...], *, linear: bool, longest: float
) -> DenseStepGroup:
    F, G = np.stack([block.F for block in blocks]), np.stack([block.G for block in blocks])
    _, n, m = G.shape
    if m <= n:
        return DenseStepGroup(InterpolatedSteps(F, G, linear=linear, longest=longest), None, places, numbers)
    unit = np.broadcast_to(np.eye(n), F.shape)
    return DenseStepGroup(
        InterpolatedSteps(F, unit, linear=linear, longest=longest), G.transpose(0, 2, 1), places, numbers
    )


def _size(block: DenseBlock) -> int:
    return len(block.F)


def _size_of(numbered: tuple[int, DenseBlock]) -> int:
    return len(numbered[1].F)


# MERGED ltinet.simulation.nonuniform
# Steps in runs that are worked on side by side: how they are laid out, and where the states after them go.


@dataclass(frozen=True)
class StepRuns:
    """Runs of equal length; the last is filled up with steps of length zero, in which nothing moves."""

    n_steps: int
    length: int
    count: int

    @classmethod
    def of(cls, n_steps: int) -> "StepRuns":
        """Runs for so many steps."""
        return cls(n_steps, *split_into_runs(n_steps))

    def split(self, values: Array) -> Array:
        """`(batch, steps, m)` in the order of runs: the first steps of all of them, then the second ones, and so on."""
        batch, _, m = values.shape
        filled = np.zeros((batch, self.count * self.length, m))
        filled[:, : self.n_steps] = values
        return filled.reshape(batch, self.count, self.length, m).swapaxes(1, 2).reshape(filled.shape)

    def lengths(self, t: Array) -> tuple[Array, Array]:
        """How long each run lasts, from the times at the ends of all steps, and what rounding took from it."""
        ends = t[np.minimum(np.arange(self.count + 1) * self.length, self.n_steps)]
        return two_sum(ends[1:], -ends[:-1])

    def at_place(self, place: int) -> tuple[slice, slice]:
        """Which steps are at one place of all runs, and which runs have such a step."""
        return slice(place, None, self.length), slice(len(range(place, self.n_steps, self.length)))


class StepSink(Protocol):
    """Takes packed states after some steps, `(batch, steps, …)`, some of them given by their columns."""

    def take(self, steps: slice, columns: Any, states: Array) -> None:
        """Take them."""
        ...


@dataclass(frozen=True)
class StateSink:
    """Keeps them."""

    states: Array
    """`(batch, steps, n)`."""

    def take(self, steps: slice, columns: Any, states: Array) -> None:
        """Write them."""
        self.states[:, steps, columns] = states


@dataclass(frozen=True)
class OutputSink:
    """Keeps what they bring to the outputs."""

    weights: Matrix
    """C of packed states, transposed, (n × p)."""
    y: Array
    """`(batch, steps, p)`."""

    def take(self, steps: slice, columns: Any, states: Array) -> None:
        """Add it."""
        self.y[:, steps] += states @ self.weights[columns]


# MERGED ltinet.simulation.nonuniform
# Samples at any times: exact steps of different lengths.

_NUMBERS_AT_ONCE = 2**18  # numbers: states, or entries of small blocks, of steps that are worked on together
_MIN_STEPS_AT_ONCE = 64  # steps worked on together, however many states there are: calls cost time as well
_MAX_SMALL_BLOCK = 16  # states up to which products of matrices, all runs side by side, beat a loop over steps


@dataclass(frozen=True, eq=False)
class NonuniformStepper:
    """States along samples u `(batch, T, m)` at times t; a repeated time is a step of length zero."""

    steps: NonuniformSteps
    t: Array
    u: Array
    z0: Array
    """Packed states at the first sample, `(batch, n)`."""

    def begin(self) -> Array:
        """The states at the first sample."""
        return self.z0

    def advance(self, first: int, stop: int, before: Array) -> tuple[Array, Array]:
        """Packed states at some samples, and the state at the next one; after the last there is none."""
        last = min(stop, len(self.t) - 1)  # steps go from sample k to k + 1
        states = np.empty((len(self.u), last - first + 1, before.shape[-1]))
        states[:, 0] = before
        for begin in range(first, last, self._at_once):
            end = min(begin + self._at_once, last)
            own = slice(begin - first + 1, end - first + 1)
            self._through(begin, end, StateSink(states[:, own]), states[:, own.start - 1])
        return states[:, : stop - first], states[:, -1]

    def outputs(self, weights: Matrix) -> Array:
        """C z at all samples, `(batch, T, p)`; states are not kept."""
        y = np.zeros((*self.u.shape[:2], weights.shape[1]))
        state = self.z0
        y[:, 0] = state @ weights
        for begin in range(0, len(self.t) - 1, self._at_once):
            end = min(begin + self._at_once, len(self.t) - 1)
            state = self._through(begin, end, OutputSink(weights, y[:, begin + 1 : end + 1]), state)
        return y

    @cached_property
    def _at_once(self) -> int:
        small = [dense.steps.numbers for dense in self.steps.dense if dense.n_states <= _MAX_SMALL_BLOCK]
        return max(_MIN_STEPS_AT_ONCE, _NUMBERS_AT_ONCE // max(1, self.z0.size, *small))

    def _through(self, begin: int, end: int, sink: StepSink, before: Array) -> Array:
        """Go from one sample to another and give the states after all steps to a sink; those after the last."""
        now, then = self.u[:, begin:end], self.u[:, begin + 1 : end + 1]
        steps = _Steps(StepRuns.of(end - begin), self.t[begin : end + 1], now, then)
        after = np.empty_like(before)
        for scalars in self.steps.scalars:
            after[:, scalars.place] = steps.of_scalars(scalars, before[:, scalars.place], sink)
        for dense in self.steps.dense:
            walk = steps.of_small_blocks if steps.may_multiply(dense) else steps.of_large_blocks
            after[:, dense.columns] = walk(dense, before, sink)
        return after


@dataclass(frozen=True)
class _Steps:
    """Steps between times t, with inputs `(batch, steps, m)` at their beginnings and ends."""

    runs: StepRuns
    t: Array
    now: Array
    then: Array

    @cached_property
    def _in_runs(self) -> tuple[Array, Array, Array]:
        lengths = self.runs.split(np.diff(self.t)[None, :, None])[0, :, 0]
        return lengths, self.runs.split(self.now), self.runs.split(self.then)

    def of_scalars(self, scalars: ScalarStepGroup, first: Array, sink: StepSink) -> Array:
        """Scalars from their packed states at the beginning; those at the end."""
        decays, added = scalars.step(*self._in_runs)
        states = added.reshape(len(added), self.runs.length, self.runs.count, added.shape[-1]).transpose(1, 2, 0, 3)
        decays = decays._replace(factors=decays.factors.reshape(*states.shape[:2], 1, -1))
        over_runs = scalars.over_runs(*self.runs.lengths(self.t))
        begin = np.ascontiguousarray(first).view(added.dtype)
        for place, own in enumerate(scan_in_runs(decays, states, begin, over_runs=over_runs)):
            steps, runs = self.runs.at_place(place)
            sink.take(steps, scalars.place, own[runs].view(np.float64).swapaxes(0, 1))
        return np.asarray(states[-1, -1].view(np.float64))

    def may_multiply(self, dense: DenseStepGroup) -> bool:
        """Whether the matrices of a run may be multiplied with each other: it pays, and rounding does not grow.

        In products of matrices that rise before they fall, digits are lost that a product with a state keeps.
        """
        if dense.n_states > _MAX_SMALL_BLOCK:
            return False
        return not dense.steps.rises(float(self.runs.lengths(self.t)[0].max(initial=0.0)))

    def of_small_blocks(self, dense: DenseStepGroup, before: Array, sink: StepSink) -> Array:
        """Dense blocks from all packed states at the beginning; their own at the end."""
        decays, added = dense.step(*self._in_runs)
        shape = (self.runs.length, self.runs.count)
        states, factors = (own.reshape(*shape, *own.shape[1:]) for own in (added, decays.factors))
        for place, own in enumerate(scan_in_runs(decays._replace(factors=factors), states, dense.states(before))):
            steps, runs = self.runs.at_place(place)
            sink.take(steps, dense.columns, dense.packed(own[runs]))
        return dense.packed(states[-1, -1:])[:, 0]

    def of_large_blocks(self, dense: DenseStepGroup, before: Array, sink: StepSink) -> Array:
        """The same one step after the other: products of matrices would cost more than a loop."""
        h, at_once = np.diff(self.t), max(1, _MATRICES_AT_ONCE // dense.steps.numbers)
        state = dense.states(before)
        scratch = np.empty_like(state)
        for begin in range(0, len(h), at_once):
            own = slice(begin, begin + at_once)
            decays, states = dense.step(h[own], self.now[:, own], self.then[:, own])
            for P, after in zip(decays.factors, states, strict=True):
                np.matmul(P, state, scratch)
                after += scratch
                state = after
            sink.take(own, dense.columns, dense.packed(states))
        return dense.packed(state[None])[:, 0]
