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
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.cache import cached_property
from ltinet._util.double_double import two_sum
from ltinet._util.floating_point import EPS, Array
from ltinet.simulation import chebyshev
from ltinet.simulation.modal import ModalSystem
from ltinet.simulation.nonuniform_scalars import NonuniformScalarSteps
from ltinet.simulation.propagators import StepMatrices, matrix_steps
from ltinet.simulation.recurrence import VariableDecay, matrix_decays, scan_in_runs, split_into_runs
from ltinet.systems.matrices import Matrix

# Dense blocks.

# Transient growth of ‖e^{Fs}‖ up to which matrices of steps are multiplied: a product loses as many digits, one here.
_LOG_GROWTH_LIMIT = math.log(10.0)
_MAX_GROWTH_STATES = 128  # states, speed only: eigenvalues of larger blocks take longer than a run
_FIRST_DEGREE = 16  # degree that is tried first; speed only
_MAX_SERIES_NUMBERS = 2**24  # numbers in the coefficients of one series, for memory (128 MiB)
# Coefficients decay at least geometrically: the truncation error at half of the degree is squared at all of it. This is
# far above the rounding of exponentials, and its square far below.
_HALF_DEGREE_ERROR = 2.0**-40


class InterpolatedSteps:
    """Steps of dense blocks z' = F z + G u of equal size, for any lengths.

    A Chebyshev series is used if the lengths of a call, or of a run, pay for it, with the degree that the block with the
    slowest convergence needs.
    """

    def __init__(self, F: Array, G: Array, *, linear: bool, longest: float | None = None) -> None:
        self._F, self._G, self._linear, self._longest = F, G, linear, longest
        self.numbers = F.size + 2 * G.size
        """Numbers in the matrices of a step."""
        self._series: dict[int, _Series] = {}
        self._minimum_degree: dict[int, int] = {}
        self._run_series: dict[int, _Series] | None = None

    def has_transient_growth(self, over: float) -> bool:
        """Return True if ‖e^{Fs}‖ may exceed e^{αs} tenfold within a time: products of matrices then lose digits.

        ‖e^{Fs}‖ ≤ e^{μs}, with μ the largest eigenvalue of the symmetric part of F; α is the spectral abscissa of F, by
        which the norm decays in the long run.
        """
        F = self._F
        if not F.size or F.shape[-1] > _MAX_GROWTH_STATES:
            return False
        symmetric = 0.5 * F + 0.5 * F.swapaxes(-1, -2)  # the sum of both may overflow
        rate = np.linalg.eigvalsh(symmetric).max(axis=-1) - np.linalg.eigvals(F).real.max(axis=-1)
        return bool(np.max(rate, initial=0.0) * over > _LOG_GROWTH_LIMIT)

    def for_run(self, h: Array) -> "InterpolatedSteps":
        """Return steps for a run of these lengths: they alone, and no earlier requests, decide on the series."""
        steps, exponents = copy(self), np.frexp(h)[1]
        steps._run_series = {}
        for exponent in np.unique(exponents[h > 0.0]).tolist():
            n_lengths = len(np.unique(h[exponents == exponent]))
            series = self._affordable_series(exponent, max_degree=n_lengths // 2)
            if series is not None:
                steps._run_series[exponent] = series
        return steps

    def of(self, h: Array) -> StepMatrices:
        """Return steps of lengths h `(k,)`: arrays `(k, blocks, n, n or m)`."""
        values = np.empty((len(h), self.numbers))
        exponents = np.frexp(h)[1]
        for exponent in np.unique(exponents[h > 0.0]).tolist():
            rows = np.flatnonzero((exponents == exponent) & (h > 0.0))
            values[rows] = self._within_octave(exponent, h[rows])
        P, begin, end = self._matrices(values)
        if not h.all():
            zero = h == 0.0
            P[zero], begin[zero], end[zero] = np.eye(P.shape[-1]), 0.0, 0.0
        return StepMatrices(P, begin, end)

    def _within_octave(self, exponent: int, h: Array) -> Array:
        """Return the numbers of steps with lengths between 2^(exponent − 1) and 2^exponent."""
        if self._run_series is not None and exponent in self._run_series:
            return self._run_series[exponent].values(h)
        lengths, index = np.unique(h, return_inverse=True)
        series = self._affordable_series(exponent, max_degree=len(lengths) // 2) if self._run_series is None else None
        return self._exact(lengths)[index] if series is None else series.values(h)

    def _affordable_series(self, exponent: int, *, max_degree: int) -> "_Series | None":
        """Return the series of an octave, None if its degree is not below the maximum."""
        if exponent not in self._series and self._minimum_degree.get(exponent, 0) < max_degree:
            self._prepare(exponent, max_degree=max_degree)
        series = self._series.get(exponent)
        return series if series is not None and series.degree < max_degree else None

    def _prepare(self, exponent: int, *, max_degree: int) -> None:
        """Store the series of an octave, or a lower bound on its degree if that exceeds the maximum."""
        degree, ends = _FIRST_DEGREE, (math.ldexp(1.0, exponent - 1), math.ldexp(1.0, exponent))
        if degree >= max_degree:
            return
        values = self._exact(chebyshev.interpolation_lengths(*ends, degree))
        while (coefficients := self._converged_coefficients(values)) is None:
            degree *= 2
            fits = degree * self.numbers <= _MAX_SERIES_NUMBERS
            if degree >= max_degree or not fits:
                self._minimum_degree[exponent] = degree if fits else sys.maxsize
                return
            refined = np.empty((degree + 1, self.numbers))
            refined[::2], refined[1::2] = values, self._exact(chebyshev.interpolation_lengths(*ends, degree)[1::2])
            values = refined
        self._series[exponent] = _Series(*ends, degree, coefficients)

    def _converged_coefficients(self, values: Array) -> Array | None:
        """Return the coefficients that matter of the series through values at nodes, None if a block needs more."""
        coefficients = chebyshev.interpolation_coefficients(values)
        sizes, largest = np.abs(coefficients), np.abs(values).max(axis=0)
        half = sizes[: len(sizes) // 2 + 1]  # the highest degrees
        for tail, scale in zip(self._matrices(half), self._matrices(largest[None]), strict=True):
            limits = _HALF_DEGREE_ERROR * scale.max(axis=(0, 2, 3), initial=0.0)
            if not np.all(tail.max(axis=(0, 2, 3), initial=0.0) <= limits):  # also if a number is not finite
                return None
        significant = np.flatnonzero((sizes > EPS / 8.0 * largest).any(axis=1))
        return np.ascontiguousarray(coefficients[significant[0] if len(significant) else -1 :])

    def _exact(self, h: Array) -> Array:
        """Return all numbers of the matrices, by one matrix exponential for each length and block."""
        parts = [
            matrix_steps(F, G, h, linear=self._linear, longest=self._longest)
            for F, G in zip(self._F, self._G, strict=True)
        ]
        stacked = [np.stack(blocks, axis=1) for blocks in zip(*parts, strict=True)]
        return np.concatenate([part.reshape(len(h), part[0].size) for part in stacked], axis=1)

    def _matrices(self, values: Array) -> StepMatrices:
        """Return the matrices `(k, blocks, n, n or m)` whose numbers are rows of values."""
        blocks, n, m = self._G.shape
        P, begin, end = np.split(values, [self._F.size, self._F.size + self._G.size], axis=1)
        shape = (len(values), blocks, n)
        return StepMatrices(P.reshape(*shape, n), begin.reshape(*shape, m), end.reshape(*shape, m))


@dataclass(frozen=True)
class _Series:
    """Chebyshev series between two lengths for every number of the matrices."""

    low: float
    high: float
    degree: int
    coefficients: Array

    def values(self, h: Array) -> Array:
        """Return the numbers of the matrices, one row for each length."""
        polynomials = np.empty((len(self.coefficients), len(h)))
        chebyshev.evaluate_polynomials(h, self.low, self.high, out=polynomials)
        return np.asarray(polynomials.T @ self.coefficients)


# Steps of a modal system.

_MAX_MATRIX_NUMBERS = 2**20  # numbers in the matrices of steps that are processed together (8 MiB)
_RUN_OCTAVES = 7  # a run has N^⅓ steps, shorter than 2⁷ times the longest step for up to 2²¹ steps at once


class NonuniformSteps:
    """Steps of pairs, reals and dense blocks of a system, for lengths below 2^octave."""

    def __init__(self, system: ModalSystem, *, octave: int, linear: bool) -> None:
        self.system, self.linear, self._longest = system, linear, math.ldexp(1.0, octave)
        n_pairs, n_scalars = system.n_pairs, system.n_pairs + len(system.rates)
        self.scalars = []
        for rates, drive, columns in (
            (system.rates[:n_pairs], system.B[:n_pairs].T, slice(0, 2 * n_pairs)),
            (system.rates[n_pairs:].real, system.B[n_pairs:].real.T, slice(2 * n_pairs, n_scalars)),
        ):
            if len(rates):
                steps = NonuniformScalarSteps(rates, drive, octave=octave, linear=linear, many_follow=False)
                runs = NonuniformScalarSteps(
                    rates, drive, octave=octave + _RUN_OCTAVES, linear=linear, many_follow=True
                )
                self.scalars.append(ScalarStepGroup(steps, runs, columns))
        self.dense = self._group_dense_blocks()

    def _group_dense_blocks(self) -> list["DenseStepGroup"]:
        """Return the steps of dense blocks, grouped by size."""
        sizes = [len(block.F) for block in self.system.blocks]
        groups = []
        for size in sorted(set(sizes)):
            numbers = tuple(number for number, other in enumerate(sizes) if other == size)
            blocks = [self.system.blocks[number] for number in numbers]
            indices = np.array([self.system.block_slices[number].start + np.arange(size) for number in numbers])
            F, G = np.stack([block.F for block in blocks]), np.stack([block.G for block in blocks])
            drive = None
            if G.shape[2] > size:  # steps for inputs G u, one per state
                G, drive = np.broadcast_to(np.eye(size), F.shape), G.transpose(0, 2, 1)
            steps = InterpolatedSteps(F, G, linear=self.linear, longest=self._longest)
            groups.append(DenseStepGroup(steps, drive, indices, numbers))
        return groups

    def for_run(self, h: Array) -> "NonuniformSteps":
        """Return steps for a run of these lengths, which alone decide how steps are computed: runs are repeatable."""
        steps = copy(self)
        steps.scalars = [
            group._replace(steps=group.steps.for_run(h), runs=group.runs.for_runs(len(h))) for group in self.scalars
        ]
        steps.dense = [group._replace(steps=group.steps.for_run(h)) for group in self.dense]
        return steps

    def step(self, h: Array, z: Array, now: Array, then: Array) -> Array:
        """Return packed states after one step of length h `(k,)` each from packed states z `(batch, k, n)`.

        The inputs `(batch, k, m)` are those at the beginning and at the end of each step.
        """
        result = np.empty_like(z)
        for scalars in self.scalars:
            decays, added = scalars.step(h, now, then)
            before = np.ascontiguousarray(z[..., scalars.columns]).view(added.dtype)
            decays.advance(..., before, added, scratch=np.empty_like(added))
            result[..., scalars.columns] = added.view(np.float64)
        for dense in self.dense:
            for steps in dense.batches(len(h)):
                decays, added = dense.step(h[steps], now[:, steps], then[:, steps])
                decays.advance(..., dense.states(z[:, steps]), added, scratch=np.empty_like(added))
                result[:, steps, dense.columns] = dense.packed(added)
        return result


class ScalarStepGroup(NamedTuple):
    """Steps of pairs or of reals."""

    steps: NonuniformScalarSteps
    runs: NonuniformScalarSteps
    """Steps as long as runs of many steps."""
    columns: slice
    """Columns of the packed states."""

    def step(self, h: Array, now: Array, then: Array) -> tuple[VariableDecay, NDArray[Any]]:
        """Return decays `(k, n)`, and the contributions `(batch, k, n)` of inputs `(batch, k, m)` at both ends."""
        factors, added = self.steps.step(h, now, then)
        return VariableDecay(factors, np.multiply, self.steps.growth, self.steps.incremental), added

    def over_runs(self, lengths: Array, rounding: Array) -> VariableDecay:
        """Return the decays of runs, `(k, 1, n)`, whose exact lengths are lengths + rounding."""
        factors, incremental = self.runs.factors(lengths), self.runs.incremental
        if rounding.any():
            factors += (factors + incremental) * (rounding[:, None] * self.runs.rates)
        return VariableDecay(factors[:, None], np.multiply, self.runs.growth, incremental)


class DenseStepGroup(NamedTuple):
    """Steps of dense blocks of equal size."""

    steps: InterpolatedSteps
    drive: Array | None
    """G, transposed, `(blocks, m, n)`, with more inputs than states: the inputs of the steps are then G u."""
    indices: NDArray[np.intp]
    """Indices of the states of each block among packed states, `(blocks, n)`."""
    numbers: tuple[int, ...]
    """Indices of the blocks in the system."""

    @property
    def n_states(self) -> int:
        """Number of states of each block."""
        return int(self.indices.shape[1])

    @property
    def columns(self) -> NDArray[np.intp]:
        """Indices of all states among packed states, `(blocks·n,)`."""
        return self.indices.ravel()

    def batches(self, n_steps: int) -> Iterator[slice]:
        """Yield steps whose matrices are held in memory together."""
        at_once = max(1, _MAX_MATRIX_NUMBERS // self.steps.numbers)
        for begin in range(0, n_steps, at_once):
            yield slice(begin, begin + at_once)

    def step(self, h: Array, now: Array, then: Array) -> tuple[VariableDecay, Array]:
        """Return decays `(k, blocks, n, n)`, and the contributions of inputs `(batch, k, m)` at both ends."""
        P, begin, end = self.steps.of(h)
        return matrix_decays(P), begin @ self._inputs(now) + end @ self._inputs(then)

    def states(self, packed: Array) -> Array:
        """Return the states of the blocks, `(..., blocks, n, batch)`, from packed ones, `(batch, ..., n_states)`."""
        return np.moveaxis(packed[..., self.indices], 0, -1)

    def packed(self, states: Array) -> Array:
        """Return the columns of packed states, `(batch, k, blocks·n)`, from `(k, blocks, n, batch)`."""
        n_steps, *shape, batch = states.shape
        return np.moveaxis(states, -1, 0).reshape(batch, n_steps, math.prod(shape))

    def _inputs(self, u: Array) -> Array:
        """Return inputs as columns, `(k, blocks or 1, m or n, batch)`."""
        inputs = u[:, :, None] if self.drive is None else (u[:, :, None, None] @ self.drive)[:, :, :, 0]
        return np.moveaxis(inputs, 0, -1)


# Runs of steps side by side.

_MAX_STATE_NUMBERS = 2**19  # speed only: numbers in the states of steps that are processed together (4 MiB)
_MIN_STEPS_AT_ONCE = 64  # speed only: steps processed together, however many states there are: calls cost time as well
_MAX_SMALL_BLOCK = (
    16  # states up to which products of matrices, all runs side by side, are faster than a loop over steps
)


@dataclass(frozen=True)
class StepRuns:
    """Division of steps into runs of equal length; the last run is filled up with steps of length zero."""

    n_steps: int
    length: int
    count: int

    @classmethod
    def of(cls, n_steps: int) -> "StepRuns":
        """Return runs for a number of steps."""
        return cls(n_steps, *split_into_runs(n_steps))

    def split(self, values: Array) -> Array:
        """Return `(batch, steps, m)` ordered by position: the first steps of all runs, then their second steps, and so on."""
        batch, _, m = values.shape
        filled = np.zeros((batch, self.count * self.length, m))
        filled[:, : self.n_steps] = values
        return filled.reshape(batch, self.count, self.length, m).swapaxes(1, 2).reshape(filled.shape)

    def lengths(self, t: Array) -> tuple[Array, Array]:
        """Return the duration of each run from the times at the ends of all steps, and its rounding error."""
        ends = t[np.minimum(np.arange(self.count + 1) * self.length, self.n_steps)]
        return two_sum(ends[1:], -ends[:-1])

    def at_position(self, position: int) -> tuple[slice, slice]:
        """Return the samples after the steps at one position of all runs, and the runs that are so long."""
        return slice(position + 1, None, self.length), slice(len(range(position, self.n_steps, self.length)))


@dataclass(frozen=True, eq=False)
class NonuniformStepper:
    """States along samples u `(batch, T, m)` at times t; a repeated time is a step of length zero."""

    steps: NonuniformSteps
    t: Array
    u: Array
    z0: Array
    """Packed states at the first sample, `(batch, n)`."""

    def advance(self, first: int, stop: int, before: Array) -> tuple[Array, Array]:
        """Return packed states at samples first … stop − 1, and the state at sample `stop`, or at the last one."""
        last = min(stop, len(self.t) - 1)  # steps go from sample k to k + 1
        states = np.empty((len(self.u), last - first + 1, before.shape[-1]))
        states[:, 0] = before
        for begin in range(first, last, self._at_once):
            end = min(begin + self._at_once, last)
            self._fill(states[:, begin - first : end - first + 1], begin, end)
        return states[:, : stop - first], states[:, -1]

    def outputs(self, weights: Matrix) -> Array:
        """Return C z at all samples, `(batch, T, p)`, without storing the states; `weights` is C, transposed."""
        y, begin, state = np.empty((*self.u.shape[:2], weights.shape[1])), 0, self.z0
        while begin < len(self.t):
            piece = slice(begin, begin + self._at_once)
            states, state = self.advance(piece.start, piece.stop, state)
            y[:, piece], begin = states @ weights, piece.stop
        return y

    @cached_property
    def _at_once(self) -> int:
        small = [dense.steps.numbers for dense in self.steps.dense if dense.n_states <= _MAX_SMALL_BLOCK]
        return max(_MIN_STEPS_AT_ONCE, _MAX_STATE_NUMBERS // max(1, self.z0.size, *small))

    def _fill(self, states: Array, begin: int, end: int) -> None:
        """Fill packed states `(batch, end − begin + 1, n)` from the first of them."""
        now, then = self.u[:, begin:end], self.u[:, begin + 1 : end + 1]
        steps = _StepBatch(StepRuns.of(end - begin), self.t[begin : end + 1], now, then)
        for scalars in self.steps.scalars:
            steps.fill_scalars(scalars, states)
        for dense in self.steps.dense:
            fill = steps.fill_small_blocks if steps.may_multiply(dense) else steps.fill_large_blocks
            fill(dense, states)


@dataclass(frozen=True)
class _StepBatch:
    """Steps between times t, with inputs `(batch, steps, m)` at their beginnings and ends."""

    runs: StepRuns
    t: Array
    now: Array
    then: Array

    @cached_property
    def _in_runs(self) -> tuple[Array, Array, Array]:
        lengths = self.runs.split(np.diff(self.t)[None, :, None])[0, :, 0]
        return lengths, self.runs.split(self.now), self.runs.split(self.then)

    def fill_scalars(self, scalars: ScalarStepGroup, packed: Array) -> None:
        """Fill the columns of scalars in packed states `(batch, steps + 1, n)` from the first of them."""
        decays, added = scalars.step(*self._in_runs)
        states = added.reshape(len(added), self.runs.length, self.runs.count, added.shape[-1]).transpose(1, 2, 0, 3)
        decays = decays._replace(factors=decays.factors.reshape(*states.shape[:2], 1, -1))
        over_runs = scalars.over_runs(*self.runs.lengths(self.t))
        begin = np.ascontiguousarray(packed[:, 0, scalars.columns]).view(added.dtype)
        for position, ends in enumerate(scan_in_runs(decays, states, begin, over_runs=over_runs)):
            steps, runs = self.runs.at_position(position)
            packed[:, steps, scalars.columns] = ends[runs].view(np.float64).swapaxes(0, 1)

    def may_multiply(self, dense: DenseStepGroup) -> bool:
        """Return True if the matrices of a run may be multiplied: for small blocks without transient growth.

        Products of matrices whose norms rise before they fall lose digits that products with a state keep.
        """
        if dense.n_states > _MAX_SMALL_BLOCK:
            return False
        return not dense.steps.has_transient_growth(float(self.runs.lengths(self.t)[0].max(initial=0.0)))

    def fill_small_blocks(self, dense: DenseStepGroup, packed: Array) -> None:
        """Fill the columns of dense blocks in packed states, all runs side by side."""
        decays, added = dense.step(*self._in_runs)
        shape = (self.runs.length, self.runs.count)
        states, factors = (part.reshape(*shape, *part.shape[1:]) for part in (added, decays.factors))
        begin = dense.states(packed[:, 0])
        for position, ends in enumerate(scan_in_runs(decays._replace(factors=factors), states, begin)):
            steps, runs = self.runs.at_position(position)
            packed[:, steps, dense.columns] = dense.packed(ends[runs])

    def fill_large_blocks(self, dense: DenseStepGroup, packed: Array) -> None:
        """Fill the columns of dense blocks in packed states, step by step."""
        h, state = np.diff(self.t), dense.states(packed[:, 0])
        scratch = np.empty_like(state)
        for steps in dense.batches(len(h)):
            decays, states = dense.step(h[steps], self.now[:, steps], self.then[:, steps])
            for P, after in zip(decays.factors, states, strict=True):
                np.matmul(P, state, scratch)
                after += scratch
                state = after
            packed[:, steps.start + 1 : steps.stop + 1, dense.columns] = dense.packed(states)
