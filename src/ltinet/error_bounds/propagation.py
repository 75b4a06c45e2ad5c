"""Propagation of local errors to the outputs, in cells of time.

An error that enters state i at time s moves the outputs at time t by C e^{F(t − s)} times it. Local errors enter at the
start, at every step and continuously. Scalar modes |C_i| e^{Re λ (t − s)} are summed in closed form. For coupled blocks
|C e^{Fs}| is evaluated on a grid of lags and at lengths h, h/2, h/4, …, which resolve a stiff block, and widened by the
rotation ω g of each pair within a gap g: bounds by the entries of F would grow where the exponential decays. Between
these places its size is therefore estimated, not bounded.

Where steps are unevenly spaced, errors of a dense group of steps are all present at once, and what decays over the
average time between steps does not decay within the group. The number of steps in windows of decreasing width bounds
the sum of e^{g s} over the times s since the steps: n e^{g w₀} + Σ n_j (e^{g w_{j+1}} − e^{g w_j}).

Independent rounding errors add up as the root of the sum of their squares. Each is at most uniform within its bound, so
its standard deviation is at most 1/√3 ≈ 0.58 of it; a factor of three is five standard deviations of the sum. That
roundings are independent is an assumption: what follows from it is an estimate. Where fewer than nine of them persist,
their plain sum is smaller.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, MAX_FLOAT, Array, balancing_units
from ltinet._util.phi_functions import phi1

_TAYLOR_TERMS = 18  # 1/19! < eps/16: the Taylor series of a matrix of norm one
_MAX_HALVINGS = 64  # of a step: what e^{Fs} does within 2⁻⁶⁴ of a length is below its rounding
_MAX_WINDOWS = 20  # widths of windows in which steps are counted, each half of the one before; a bound with any number
# Lags in each cell at which C e^{Fs} is evaluated. Empirical: the responses of 200 random blocks exceed what is estimated
# between lags by at most 10 % with 8 lags, 15 % with 4, and a factor of 7 with 1; in 95 % of the blocks by 2.6, 4 and
# 22 % (tests/unit/error_bounds/test_responses_between_lags.py).
KERNEL_SAMPLES = 8
_CONFIDENCE_FACTOR = (
    3.0  # assumption, see above: on the root of the sum of squared bounds, 3√3 = 5.2 standard deviations
)
_SMALLEST_SQUARE = 1e-280  # squares below lose digits to underflow (2⁻¹⁰²²/eps = 1e-292): no estimate is given then


# Exponentials of a coupled block


@dataclass(frozen=True, eq=False)
class PropagatorChain:
    """Exponentials e^{Fs} at s = length/2^j, the whole length first, and their errors, `(levels, n, n)` each.

    Sizes between these lengths are estimated from both of their ends, a place between them, and rotations of pairs.
    """

    length: float
    exponentials: Array
    errors: Array
    pairs: "OscillatorPairs"

    def halved(self, times: int) -> "PropagatorChain":
        """Return the chain up to a length halved `times` times, or as often as it has levels."""
        times = min(times, len(self.exponentials) - 1)
        if times == 0:
            return self
        length = self.length * 0.5**times
        return replace(self, length=length, exponentials=self.exponentials[times:], errors=self.errors[times:])

    @cached_property
    def peak_to(self) -> Array:
        """Largest |e^{Fs}| up to each of the lengths, `(levels, n, n)`."""
        return np.asarray(np.maximum.accumulate(self._peak_within[::-1], axis=0)[::-1])

    @cached_property
    def error_to(self) -> Array:
        """Largest error up to each of the lengths, `(levels, n, n)`."""
        return np.asarray(np.maximum.accumulate(self.errors[::-1], axis=0)[::-1])

    @cached_property
    def peak(self) -> Array:
        """Largest |e^{Fs}| up to the length, entry by entry."""
        return np.asarray(np.max(self._peak_within, axis=0))

    @cached_property
    def integral(self) -> Array:
        """∫|e^{Fs}| ds up to the length."""
        return np.asarray(np.tensordot(self._gaps, self._peak_within, axes=1))

    @cached_property
    def integral_to(self) -> Array:
        """∫|e^{Fs}| ds up to each of the lengths, `(levels, n, n)`."""
        areas = self._gaps[:, None, None] * self._peak_within
        return np.asarray(np.cumsum(areas[::-1], axis=0)[::-1])

    @cached_property
    def error_integral(self) -> Array:
        """Integral of the errors up to the length."""
        return np.asarray(np.tensordot(self._gaps, np.maximum(self.errors, np.roll(self.errors, -1, axis=0)), axes=1))

    @cached_property
    def _peak_within(self) -> Array:
        """Largest |e^{Fs}| between two successive lengths: at both, and at a place between."""
        levels = self.exponentials
        shorter = np.concatenate([levels[1:], np.eye(levels.shape[-1])[None]])
        still_shorter = np.concatenate([shorter[1:], shorter[-1:]])
        with np.errstate(over="ignore", invalid="ignore"):
            between = shorter @ still_shorter
        largest = np.maximum(np.maximum(np.abs(levels), np.abs(shorter)), np.abs(between))
        gaps = 0.25 * self.length * 0.5 ** np.arange(len(levels))
        columns = cover_rotation(largest, self.pairs, gaps=gaps)
        return cover_rotation(columns.swapaxes(-1, -2), self.pairs, gaps=gaps, of_rows=True).swapaxes(-1, -2)

    @cached_property
    def _gaps(self) -> Array:
        """Differences of successive lengths, the last one down to zero."""
        gaps = self.length * 0.5 ** np.arange(1, len(self.exponentials) + 1)
        gaps[-1] *= 2.0
        return np.asarray(gaps)


def propagator_chain(F: Array, length: float, *, steps: int = 1) -> PropagatorChain:
    """Return the chain of a block, down to the length at which its exponential is a short series.

    If the length is that of several steps, it goes down to one: longer exponentials are powers of that of a step. The
    cost is O(n³) for each halving.
    """
    n = len(F)
    units = balancing_units(F)
    norm = min(float(np.linalg.norm(F * units / units[:, None], 1)) * length, MAX_FLOAT) if n else 0.0
    needed = max(math.ceil(math.log2(norm)) if norm > 0.0 else 0, math.ceil(math.log2(steps)))
    halvings = min(needed, _MAX_HALVINGS)
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


class OscillatorPairs(NamedTuple):
    """Pairs of a quasi-triangular block: index of their first state, frequency, and unit of the second state."""

    first: NDArray[np.intp]
    omega: Array
    unit: Array
    """Unit of the second state of each pair, in units of the first."""


def oscillator_pairs(F: Array) -> OscillatorPairs:
    """Return the pairs of a quasi-triangular block."""
    first = np.flatnonzero(np.diagonal(F, -1))
    omega = np.sqrt(np.abs(F[first, first + 1])) * np.sqrt(np.abs(F[first + 1, first]))
    units = balancing_units(F)
    return OscillatorPairs(first, np.asarray(omega), units[first + 1] / units[first])


def cover_rotation(values: Array, pairs: OscillatorPairs, *, gaps: ArrayLike, of_rows: bool = False) -> Array:
    """Widen the columns of pairs by their rotation between the places at which values are known.

    A component that rotates passes through zero while its modulus does not: within a gap g a pair turns by ω g, which
    adds that fraction of the other component. `gaps` are those along the first axis of values. With `of_rows` the values
    are transposed, and the columns are rows of the propagator.
    """
    angle = np.minimum(1.0, np.multiply.outer(np.asarray(gaps), pairs.omega))
    angle = angle.reshape(*angle.shape[:-1], *(1,) * (values.ndim - angle.ndim), angle.shape[-1])
    result = values.copy()
    one, other = values[..., pairs.first], values[..., pairs.first + 1]
    unit = 1.0 / pairs.unit if of_rows else pairs.unit
    result[..., pairs.first] = np.hypot(one, angle * other * unit)
    result[..., pairs.first + 1] = np.hypot(other, angle * one / unit)
    return result


# Unevenly spaced steps


@dataclass(frozen=True, eq=False)
class StepDensity:
    """Largest number of steps that end within any window of each width, for each cell of time."""

    widths: Array
    """Descending from that of a cell, each half of the one before."""
    counts: Array
    """`(cells, widths)`."""

    def decayed_sum(self, growth: Array) -> Array:
        """Return the largest sum of e^{g s} over the times s since all steps of a cell, `(cells, n)` for g `(n,)`.

        With decay it is n e^{g w₀} + Σ n_j (e^{g w_{j+1}} − e^{g w_j}): no more than n_j steps are nearer than w_j.
        """
        with np.errstate(over="ignore"):
            decay = np.exp(np.multiply.outer(np.append(self.widths, 0.0), np.minimum(growth, 0.0)))
            largest = np.exp(np.maximum(growth, 0.0) * self.widths[0])
        return np.asarray((self.counts[:, :1] * decay[0] + self.counts @ np.diff(decay, axis=0)) * largest)

    def peak_ratio(self, shortest: float) -> Array:
        """Return the ratio of the largest to the average density of a cell, `(cells,)`, in windows ≥ `shortest`."""
        wide = np.maximum(1, np.count_nonzero(self.widths >= shortest))
        average = np.maximum(self.counts[:, :1], 1.0) * (self.widths[:wide] / self.widths[0])
        return np.asarray(np.max(self.counts[:, :wide] / average, axis=1, initial=1.0))


def measure_step_density(ends: Array, cells: NDArray[np.intp], *, n_cells: int, cell: float) -> StepDensity:
    """Count the steps that end at ascending times in windows; `cells` are the cells in which they end."""
    first = np.searchsorted(cells, cells, side="left")
    widths, counts = [cell], [np.bincount(cells, minlength=n_cells)]
    numbers = np.arange(len(ends))
    while len(widths) < _MAX_WINDOWS and counts[-1].max(initial=0) > 2:
        widths.append(0.5 * widths[-1])
        steps_within = numbers - np.maximum(np.searchsorted(ends, ends - widths[-1], side="right"), first) + 1
        largest = np.zeros(n_cells, dtype=np.intp)
        np.maximum.at(largest, cells, steps_within)
        counts.append(largest)
    return StepDensity(np.array(widths), np.array(counts, dtype=np.float64).T)


# Sums over all steps of a run


@dataclass(frozen=True, eq=False)
class LocalErrors:
    """Errors that enter the states, `(n,)` or `(cells, n)`."""

    start: Array
    """At the first time."""
    per_step: Array
    """At every step of the recurrence."""
    n_steps: Array
    """Number of these steps in each cell, `(cells,)`."""
    per_time: Array
    """Continuously, per unit of time."""
    density: StepDensity | None = None
    """Density of steps that are not evenly spaced."""

    def part(self, modes: slice) -> "LocalErrors":
        """Return the errors of some states."""
        return LocalErrors(
            self.start[modes], self.per_step[:, modes], self.n_steps, self.per_time[:, modes], self.density
        )


def propagate_scalar_errors(growth: Array, errors: LocalErrors, *, cell: float) -> Array:
    """Return bounds `(cells, n)` on the errors of scalars with real parts `growth` `(n,)` anywhere in each cell."""
    with np.errstate(over="ignore", invalid="ignore"):
        entered = errors.per_step * _decayed_step_sum(growth, errors, cell=cell)
        entered = entered + errors.per_time * (cell * phi1(growth * cell))
        return _accumulate_over_cells(np.exp(growth * cell), errors.start, entered)


def _accumulate_over_cells(factor: Array, start: Array, entered: Array) -> Array:
    """Return the largest error in each cell, where errors grow by `factor` from cell to cell; 0 · ∞ counts as 0."""
    largest_factor = np.maximum(1.0, factor)
    bounds = np.empty_like(entered)
    before = start
    for bound, added in zip(bounds, entered, strict=True):
        bound[:] = np.where(before == 0.0, 0.0, largest_factor * before) + added
        before = np.where(before == 0.0, 0.0, factor * before) + added
    return bounds


def _decayed_step_sum(growth: Array, errors: LocalErrors, *, cell: float) -> Array:
    """Return the largest sum of e^{g s} over the times s since the steps of a cell, `(cells, n)`."""
    if errors.density is not None:
        return errors.density.decayed_sum(growth)
    first, others = np.minimum(errors.n_steps, 1.0)[:, None], np.maximum(errors.n_steps - 1.0, 0.0)[:, None]
    return np.asarray(first * np.maximum(1.0, np.exp(growth * cell)) + others * phi1(growth * cell))


@dataclass(frozen=True, eq=False)
class DenseKernel:
    """Largest |C e^{Fs}| and its integral for lags s in cells of equal length, `(cells, p, n)` each."""

    peak: Array
    integral: Array

    def adjacent_lags(self, n_cells: int) -> tuple[Array, Array]:
        """Return peaks and integrals over two adjacent lags each: an output may be anywhere in its cell."""
        peak = np.maximum(self.peak[:n_cells], np.concatenate([self.peak[:1], self.peak[: n_cells - 1]]))
        integral = self.integral[:n_cells] + np.concatenate([self.integral[:1] * 0.0, self.integral[: n_cells - 1]])
        return peak, integral

    def step_rate(self, errors: LocalErrors, *, cell: float) -> Array:
        """Return the largest number of steps beyond the first per unit of time, `(cells,)`."""
        rate = np.maximum(errors.n_steps - 1.0, 0.0) / cell
        return rate if errors.density is None else rate * errors.density.peak_ratio(0.5 * self.duration)

    @cached_property
    def duration(self) -> float:
        """Shortest time in which a column of C e^{Fs} decays: integral over peak."""
        peak = np.max(self.peak, axis=0, initial=0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.nanmin(self.integral.sum(axis=0) / peak, initial=np.inf))

    def output_errors(self, errors: LocalErrors, *, cell: float) -> Array:
        """Return bounds `(cells, p)` on the effect of errors of a coupled block on the outputs in each cell."""
        n_cells = len(errors.per_step)
        first = errors.per_step * np.minimum(errors.n_steps, 1.0)[:, None]
        peak, integral = self.adjacent_lags(n_cells)
        rate = errors.per_step * self.step_rate(errors, cell=cell)[:, None] + errors.per_time
        bounds = np.einsum("cpn,n->cp", peak, errors.start)
        both, weights = np.hstack([first, rate]), np.concatenate([peak, integral], axis=2).swapaxes(1, 2)
        for lag in range(n_cells):
            bounds[lag:] += both[: n_cells - lag] @ weights[lag]
        return np.asarray(bounds)


def dense_kernel(C: Array, F: Array, *, horizon: float, n_cells: int) -> DenseKernel:
    """Evaluate C e^{Fs} along all lags up to the horizon, most finely at the beginning, where a stiff block moves."""
    spacing = horizon / (n_cells * KERNEL_SAMPLES)
    chain = propagator_chain(F, spacing)
    P, rows = chain.exponentials[0], np.array(C)
    values = np.empty((n_cells * KERNEL_SAMPLES + 1, *C.shape))
    with np.errstate(over="ignore", invalid="ignore"):
        for index in range(len(values)):
            values[index] = rows
            rows = rows @ P
        values = np.abs(values)
        peaks = cover_rotation(np.maximum(values[:-1], values[1:]), chain.pairs, gaps=spacing)
        first_area, first_peak = initial_response(C, chain)
    peaks[0] = np.maximum(peaks[0], first_peak)
    areas = peaks * spacing
    areas[0] = first_area
    by_cell = (n_cells, KERNEL_SAMPLES, *C.shape)
    return DenseKernel(peaks.reshape(by_cell).max(axis=1), areas.reshape(by_cell).sum(axis=1))


def initial_response(C: Array, chain: PropagatorChain) -> tuple[Array, Array]:
    """Return ∫|C e^{Fs}| ds and the largest |C e^{Fs}| up to the length of a chain."""
    levels = np.abs(C @ chain.exponentials)
    largest = np.maximum(levels, np.concatenate([levels[1:], np.abs(C)[None]]))
    gaps = chain.length * 0.5 ** np.arange(1, len(largest) + 1)
    largest = cover_rotation(largest, chain.pairs, gaps=gaps)
    gaps[-1] *= 2.0
    return np.tensordot(gaps, largest, axes=1), np.max(largest, axis=0)


# Independent roundings


def probabilistic_scalar_errors(growth: Array, errors: LocalErrors, *, cell: float) -> Array:
    """Estimate the errors `(cells, n)` of scalars with real parts `growth` from independent errors at every step."""
    entered = errors.per_step**2 * _decayed_step_sum(2.0 * growth, errors, cell=cell)
    squares = _accumulate_over_cells(np.exp(2.0 * growth * cell), np.zeros_like(growth), entered)
    return _from_squares(squares)


def probabilistic_dense_errors(kernel: DenseKernel, errors: LocalErrors, *, cell: float) -> Array:
    """Estimate the effect `(cells, p)` of independent errors of a coupled block at every step on the outputs."""
    n_cells = len(errors.per_step)
    peak, integral = kernel.adjacent_lags(n_cells)
    first = errors.per_step**2 * np.minimum(errors.n_steps, 1.0)[:, None]
    others = errors.per_step**2 * kernel.step_rate(errors, cell=cell)[:, None]
    squares = np.zeros((n_cells, peak.shape[1]))
    for lag in range(n_cells):
        sources = slice(0, n_cells - lag)
        squares[lag:] += first[sources] @ (peak[lag] ** 2).T + others[sources] @ (peak[lag] * integral[lag]).T
    return _from_squares(squares)


def _from_squares(squares: Array) -> Array:
    return np.where(squares > _SMALLEST_SQUARE, _CONFIDENCE_FACTOR * np.sqrt(squares), np.inf)
