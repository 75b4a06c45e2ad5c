"""Propagation of local errors to the outputs, in cells of time.

An error that enters state i at time s moves the outputs at time t by C e^{F(t − s)} times it. Local errors enter at the
start, at every step and continuously. Scalar modes |C_i| e^{Re λ (t − s)} are summed in closed form. For coupled blocks
|C e^{Fs}| is evaluated on a grid of lags and at lengths h, h/2, h/4, …, widened by the rotation ω g of each pair within
a gap g: bounds by the entries of F would grow where the exponential decays. Where steps are unevenly spaced, the number
of steps in windows of decreasing width bounds the sum of e^{g s}: n e^{g w₀} + Σ n_j (e^{g w_{j+1}} − e^{g w_j}).

Independent rounding errors add up as the root of the sum of their squares. Each is at most uniform within its bound, so
its standard deviation is at most 0.58 of it; a factor of three (empirical) is five standard deviations of the sum.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, MAX_FLOAT, Array
from ltinet.error_bounds.extended_precision import DoubleDouble, balancing_units

# MERGED ltinet.error_bounds.propagation
# The exponential of a coupled block at lengths h, h/2, h/4, …: how large it is inside a step, and how far off.
#
# A stiff block moves most at the beginning of a step, which lengths that halve show. How far the exponentials that the
# engine uses are off is measured against such of twice the digits (`double_double`): bounds on what each squaring adds
# would double with every one of them.

_TAYLOR_TERMS = 18  # 1/19! < eps/16: the Taylor series of a matrix of norm one
_MAX_HALVINGS = 64  # beyond, a step is so long that only its slowest states are seen


@dataclass(frozen=True, eq=False)
class PropagatorChain:
    """e^{Fs} at s = length/2^j, the whole length first, and how far off they may be, `(levels, n, n)` each."""

    length: float
    exponentials: Array
    errors: Array
    pairs: "OscillatorPairs"

    def halved(self, times: int) -> "PropagatorChain":
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
        return cover_row_rotation(cover_rotation(found, self.pairs, gaps=gaps), self.pairs, gaps=gaps)

    @cached_property
    def _lengths(self) -> Array:
        """From each length down to the next, from the last one to nothing."""
        lengths = self.length * 0.5 ** np.arange(1, len(self.exponentials) + 1)
        lengths[-1] *= 2.0
        return np.asarray(lengths)

    def _integrated(self, values: Array) -> Array:
        return np.asarray(np.tensordot(self._lengths, values, axes=1))


def propagator_chain(F: Array, length: float, *, steps: int = 1) -> PropagatorChain:
    """The chain of a block, down to the length at which its exponential is a short series; cost O(n³) a halving.

    If the length is that of several steps, it goes down to one: longer exponentials are powers of that of a step.
    """
    n = len(F)
    units = balancing_units(F)
    norm = min(float(np.linalg.norm(F * units / units[:, None], 1)) * length, MAX_FLOAT) if n else 0.0
    enough = max(math.ceil(math.log2(norm)) if norm > 0.0 else 0, math.ceil(math.log2(steps)))
    halvings = min(enough, _MAX_HALVINGS)
    M = F * (length * 0.5**halvings)
    R = np.eye(n)
    for term in range(_TAYLOR_TERMS, 0, -1):
        R = np.eye(n) + M @ R / term
    exponentials = [R]
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(halvings):
            R = R @ R
            exponentials.append(R)
    levels = np.array(exponentials[::-1])
    return PropagatorChain(length, levels, EPS * np.abs(levels), oscillator_pairs(F))


def with_measured_errors(chain: PropagatorChain, exact: list[DoubleDouble], found: Array) -> PropagatorChain:
    """The chain with the errors of exponentials that were found, `(levels, n, n)`, at its first few lengths."""
    off = [np.abs((own - high) - low) for own, (high, low) in zip(found, exact, strict=True)]
    errors = chain.errors.copy()
    errors[: len(off)] += np.array(off)
    return replace(chain, errors=errors)


class OscillatorPairs(NamedTuple):
    """Where the pairs of a quasi-triangular block begin, and how fast they turn."""

    first: NDArray[np.intp]
    omega: Array
    unit: Array
    """What the second state of each is measured in, in units of the first."""


def oscillator_pairs(F: Array) -> OscillatorPairs:
    """The pairs of a block."""
    first = np.flatnonzero(np.diagonal(F, -1))
    size = np.sqrt(np.abs(F[first, first + 1])) * np.sqrt(np.abs(F[first + 1, first]))
    units = balancing_units(F)
    return OscillatorPairs(first, np.asarray(size), units[first + 1] / units[first])


def cover_rotation(values: Array, pairs: OscillatorPairs, *, gaps: ArrayLike, of_rows: bool = False) -> Array:
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


def cover_row_rotation(values: Array, pairs: OscillatorPairs, *, gaps: ArrayLike) -> Array:
    """The same for rows."""
    return cover_rotation(values.swapaxes(-1, -2), pairs, gaps=gaps, of_rows=True).swapaxes(-1, -2)


# MERGED ltinet.error_bounds.propagation
# Steps that come in crowds: how many of them there are within short windows of time.
#
# Errors of steps fade while time goes on. Where many steps follow each other closely, and then none for long, they are
# all there at once, and what fades on the average of the time between them does not fade within the crowd.

_MAX_WINDOWS = 20


@dataclass(frozen=True, eq=False)
class StepDensity:
    """The most steps that end within any window of each width, cell of time by cell of time."""

    widths: Array
    """Descending from that of a cell, each half of the one before."""
    counts: Array
    """`(cells, widths)`."""

    def lasting(self, growth: Array) -> Array:
        """The largest sum of e^{g s} over the times s since all steps of a cell, `(cells, n)` for real parts g `(n,)`.

        Of what decays it is n e^{g w₀} + Σ n_j (e^{g w_{j+1}} − e^{g w_j}): no more than n_j steps are nearer than w_j.
        """
        with np.errstate(over="ignore"):
            left = np.exp(np.multiply.outer(np.append(self.widths, 0.0), np.minimum(growth, 0.0)))
            most = np.exp(np.maximum(growth, 0.0) * self.widths[0])
        return np.asarray((self.counts[:, :1] * left[0] + self.counts @ np.diff(left, axis=0)) * most)

    def crowding(self, shortest: float) -> Array:
        """By how much steps stand closer than on the average of a cell, `(cells,)`, in windows that are not shorter."""
        wide = np.maximum(1, np.count_nonzero(self.widths >= shortest))
        average = np.maximum(self.counts[:, :1], 1.0) * (self.widths[:wide] / self.widths[0])
        return np.asarray(np.max(self.counts[:, :wide] / average, axis=1, initial=1.0))


def measure_step_density(ends: Array, places: NDArray[np.intp], *, n_cells: int, cell: float) -> StepDensity:
    """Count the steps that end at ascending times, in the cells whose numbers are given."""
    first = np.searchsorted(places, places, side="left")
    widths, counts = [cell], [np.bincount(places, minlength=n_cells)]
    numbers = np.arange(len(ends))
    while len(widths) < _MAX_WINDOWS and counts[-1].max(initial=0) > 2:
        widths.append(0.5 * widths[-1])
        nearer = numbers - np.maximum(np.searchsorted(ends, ends - widths[-1], side="right"), first) + 1
        most = np.zeros(n_cells, dtype=np.intp)
        np.maximum.at(most, places, nearer)
        counts.append(most)
    return StepDensity(np.array(widths), np.array(counts, dtype=np.float64).T)


# MERGED ltinet.error_bounds.propagation
# What becomes of errors that are committed along the way: how far they move the outputs, cell of time by cell of time.
#
# An error that enters state i at time s moves the outputs at time t by C e^{F(t − s)} times it. Errors enter in three
# ways: at the start, at every step of the recurrence, and all the time. Scalars |C_i| e^{Re λ (t − s)} sum up in closed
# form; of coupled blocks the sizes of C e^{Fs} are taken from the matrix itself, since bounds by its entries would grow
# where it decays.

KERNEL_SAMPLES = 8  # in each cell, at which C e^{Fs} is looked at


@dataclass(frozen=True, eq=False)
class LocalErrors:
    """Errors on their way into the states `(n,)` or `(cells, n)`."""

    start: Array
    """At the first time."""
    each_step: Array
    """At every step of the recurrence."""
    n_steps: Array
    """How many of them there are in each cell, `(cells,)`."""
    all_the_time: Array
    """Per unit of time."""
    crowds: StepDensity | None = None
    """How close steps stand, where they are not spread evenly."""

    def part(self, own: slice) -> "LocalErrors":
        """Those of some states."""
        return LocalErrors(
            self.start[own], self.each_step[:, own], self.n_steps, self.all_the_time[:, own], self.crowds
        )


def phi1(z: Array) -> Array:
    """(e^z − 1)/z for real z, 1 at zero."""
    safe = np.where(z == 0.0, 1.0, z)
    return np.asarray(np.where(z == 0.0, 1.0, np.expm1(safe) / safe))


def propagate_scalar_errors(growth: Array, errors: LocalErrors, *, cell: float) -> Array:
    """Bounds `(cells, n)` on the errors of scalars with real parts `growth` `(n,)` anywhere in each cell of time."""
    with np.errstate(over="ignore", invalid="ignore"):
        kept = np.exp(growth * cell)
        most = np.maximum(1.0, kept)
        time = cell * phi1(growth * cell)
        entered = errors.each_step * decayed_step_sum(growth, errors, cell=cell) + errors.all_the_time * time
        bounds = np.empty_like(entered)
        before = errors.start
        for own, added in zip(bounds, entered, strict=True):
            np.add(_zero_preserving_product(most, before), added, out=own)
            before = _zero_preserving_product(kept, before) + added
    return bounds


def decayed_step_sum(growth: Array, errors: LocalErrors, *, cell: float) -> Array:
    """The sum of e^{g s} over the times s since the steps of a cell, at most, `(cells, n)`."""
    if errors.crowds is not None:
        return errors.crowds.lasting(growth)
    first, others = np.minimum(errors.n_steps, 1.0)[:, None], np.maximum(errors.n_steps - 1.0, 0.0)[:, None]
    return np.asarray(first * np.maximum(1.0, np.exp(growth * cell)) + others * phi1(growth * cell))


def _zero_preserving_product(factor: Array, error: Array) -> Array:
    """Nothing stays nothing, however fast it would grow."""
    return np.where(error == 0.0, 0.0, factor * error)


@dataclass(frozen=True, eq=False)
class DenseKernel:
    """How large C e^{Fs} is for lags s in cells of equal length: at most, and on the whole, `(cells, p, n)` each."""

    peak: Array
    integral: Array

    def lags(self, n_cells: int) -> tuple[Array, Array]:
        """Peaks and integrals over two neighbouring lags each: an output may stand anywhere in its cell."""
        peak = np.maximum(self.peak[:n_cells], np.concatenate([self.peak[:1], self.peak[: n_cells - 1]]))
        integral = self.integral[:n_cells] + np.concatenate([self.integral[:1] * 0.0, self.integral[: n_cells - 1]])
        return peak, integral

    def rates(self, errors: LocalErrors, *, cell: float) -> Array:
        """How many steps but the first come in a unit of time, at most, `(cells,)`."""
        rate = np.maximum(errors.n_steps - 1.0, 0.0) / cell
        return rate if errors.crowds is None else rate * errors.crowds.crowding(0.5 * self.duration)

    @cached_property
    def duration(self) -> float:
        """How long it takes until C e^{Fs} has faded, where it fades first."""
        peak = np.max(self.peak, axis=0, initial=0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.nanmin(self.integral.sum(axis=0) / peak, initial=np.inf))

    def output_errors(self, errors: LocalErrors, *, cell: float) -> Array:
        """Bounds `(cells, p)` on what errors of a coupled block do to the outputs anywhere in each cell."""
        n_cells = len(errors.each_step)
        first = errors.each_step * np.minimum(errors.n_steps, 1.0)[:, None]
        peak, integral = self.lags(n_cells)
        rate = errors.each_step * self.rates(errors, cell=cell)[:, None] + errors.all_the_time
        bounds = np.einsum("cpn,n->cp", peak, errors.start)
        both, weights = np.hstack([first, rate]), np.concatenate([peak, integral], axis=2).swapaxes(1, 2)
        for lag in range(n_cells):
            bounds[lag:] += both[: n_cells - lag] @ weights[lag]
        return np.asarray(bounds)


def dense_kernel(C: Array, F: Array, *, horizon: float, n_cells: int) -> DenseKernel:
    """Look at C e^{Fs} along all lags up to the horizon, most closely at the beginning, where a stiff block moves."""
    spacing = horizon / (n_cells * KERNEL_SAMPLES)
    chain = propagator_chain(F, spacing)
    P, rows = chain.exponentials[0], np.array(C)
    values = np.empty((n_cells * KERNEL_SAMPLES + 1, *C.shape))
    with np.errstate(over="ignore", invalid="ignore"):
        for place in range(len(values)):
            values[place] = rows
            rows = rows @ P
        values = np.abs(values)
        inside = cover_rotation(np.maximum(values[:-1], values[1:]), chain.pairs, gaps=spacing)
        first, peak_of_first = initial_response(C, chain)
    inside[0] = np.maximum(inside[0], peak_of_first)
    areas = inside * spacing
    areas[0] = first
    by_cell = (n_cells, KERNEL_SAMPLES, *C.shape)
    return DenseKernel(inside.reshape(by_cell).max(axis=1), areas.reshape(by_cell).sum(axis=1))


def initial_response(C: Array, chain: PropagatorChain) -> tuple[Array, Array]:
    """∫|C e^{Fs}| ds and the largest |C e^{Fs}| up to the length of a chain."""
    levels = np.abs(C @ chain.exponentials)
    largest = np.maximum(levels, np.concatenate([levels[1:], np.abs(C)[None]]))
    lengths = chain.length * 0.5 ** np.arange(1, len(largest) + 1)
    largest = cover_rotation(largest, chain.pairs, gaps=lengths)
    lengths[-1] *= 2.0
    return np.tensordot(lengths, largest, axes=1), np.max(largest, axis=0)


# MERGED ltinet.error_bounds.propagation
# What roundings that do not know of each other come to along a run: the root of the sum of their squares.
#
# Each is uniform within its bound or nearer to zero, so that its standard deviation is at most 0.58 of it: three times
# the root is five standard deviations of their sum. Where fewer than nine of them last, their plain sum is less.

_CONFIDENCE_FACTOR = 3.0
_SMALLEST_SQUARE = 1e-280  # squares below which they lose their digits, and nothing is said


def _probabilistic_bound(squares: Array) -> Array:
    return np.where(squares > _SMALLEST_SQUARE, _CONFIDENCE_FACTOR * np.sqrt(squares), np.inf)


def probabilistic_scalar_errors(growth: Array, errors: LocalErrors, *, cell: float) -> Array:
    """Bounds `(cells, n)` on what errors at every step do to scalars with real parts `growth`."""
    kept = np.exp(2.0 * growth * cell)
    most = np.maximum(1.0, kept)
    entered = errors.each_step**2 * decayed_step_sum(2.0 * growth, errors, cell=cell)
    squares = np.empty_like(entered)
    before = np.zeros_like(growth)
    for own, added in zip(squares, entered, strict=True):
        own[:] = np.where(before == 0.0, 0.0, most * before) + added
        before = np.where(before == 0.0, 0.0, kept * before) + added
    return _probabilistic_bound(squares)


def probabilistic_dense_errors(kernel: DenseKernel, errors: LocalErrors, *, cell: float) -> Array:
    """The same for a coupled block: bounds `(cells, p)` on what they do to the outputs."""
    n_cells = len(errors.each_step)
    peak, integral = kernel.lags(n_cells)
    first = errors.each_step**2 * np.minimum(errors.n_steps, 1.0)[:, None]
    others = errors.each_step**2 * kernel.rates(errors, cell=cell)[:, None]
    squares = np.zeros((n_cells, peak.shape[1]))
    for lag in range(n_cells):
        sources = slice(0, n_cells - lag)
        squares[lag:] += first[sources] @ (peak[lag] ** 2).T + others[sources] @ (peak[lag] * integral[lag]).T
    return _probabilistic_bound(squares)
