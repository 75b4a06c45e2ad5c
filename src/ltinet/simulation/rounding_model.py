"""Rounding model of an exact run: errors committed in its steps, and their propagation to the outputs.

Sources of error are rounding in the steps and sums, the measured error of the propagators (`step_errors`), residuals
of the decomposition (`system_arrays`), and samples beside their even grid. Errors are counted in cells of time by
modes and propagated by |C e^{Fs}|. An error ε of the states obeys

    ε' = (F + ΔF) ε + ΔF z + ΔG u,

and what it feeds back into itself through ΔF is added pass by pass. The last pass and all after it add at most w/(1 −
q) for a w that is no less than the last one and that a pass multiplies by at most q < 1. Residuals in the user's
states are propagated by |C e^{Fs} X⁻¹|, in which the condition number of X cancels: modes that are slow beside the
spacing of the lags are summed with their signs, fast ones by size.

Where states grow by orders of magnitude within a step, cells shorter than steps give the sizes of the states.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, Array
from ltinet.error_bounds.propagation import (
    KERNEL_SAMPLES,
    DenseKernel,
    LocalErrors,
    StepDensity,
    dense_kernel,
    phi1,
    probabilistic_dense_errors,
    probabilistic_scalar_errors,
    propagate_scalar_errors,
    propagator_chain,
)
from ltinet.error_bounds.step_rounding import (
    CONSTANT_TERM_TOLERANCE,
    DenseSteps,
    ScalarSteps,
    StepMagnitudes,
    steps_within_block,
    sum_rounding_factor,
)
from ltinet.simulation.convolution import Convolution
from ltinet.simulation.exact_run import ExactRun
from ltinet.simulation.modal import DenseBlock, pack_weights
from ltinet.simulation.propagators import matrix_steps, phi2
from ltinet.simulation.step_errors import BlockStepErrors, NonuniformErrors, measure_block_errors
from ltinet.simulation.system_arrays import EngineArrays, OriginalStateResiduals
from ltinet.simulation.time_cells import (
    cell_length,
    grows_within_step,
    running_max,
    safe_ratio,
    samples_around,
    update_maxima,
    weighted_sizes,
)

# MERGED ltinet.simulation.rounding_model
# Where errors of a run come from beside rounding: what is left of the system, and samples beside their places.


class ErrorSources(NamedTuple):
    """What is left of the system, as errors on their way into the states, from states and inputs of some sizes."""

    arrays: EngineArrays
    inputs: Array
    start: Array
    user_start: Array

    def in_modes(self, states: Array, n_steps: Array) -> LocalErrors:
        """Into the modes."""
        residuals = self.arrays.residuals
        packed = self.arrays.packed(states)
        left = self.arrays.modes(packed @ residuals.per_state.T + self.inputs @ residuals.per_input.T)
        return LocalErrors(self.start, np.zeros_like(left), n_steps, left)

    def fed_back(self, states: Array, n_steps: Array) -> LocalErrors:
        """Into the modes, from errors of states alone."""
        left = self.arrays.modes(self.arrays.packed(states) @ self.arrays.residuals.per_state.T)
        return LocalErrors(np.zeros_like(self.start), np.zeros_like(left), n_steps, left)

    def in_user_states(self, residuals: OriginalStateResiduals, states: Array, n_steps: Array) -> LocalErrors:
        """Into the user's own states."""
        left = self.arrays.packed(states) @ residuals.per_state.T + self.inputs @ residuals.per_input.T
        return LocalErrors(self.user_start, np.zeros_like(left), n_steps, left)


class SampleOffsets(NamedTuple):
    """Samples that stand beside an even grid, and what changes in that time, cell by cell."""

    moved: Array
    """How far outputs move in that time just before a sample, `(cells, p)`."""
    largest: Array
    """The largest product of that time and of the change of u there, `(cells, m)`."""
    summed: Array
    """Their sum."""


# MERGED ltinet.simulation.rounding_model
# How large states are in cells of time that are shorter than steps.
#
# Where states grow by orders of magnitude within a step, its end says little about what it began with and went through:
# errors that enter early are small themselves, and grow with it.


class SubstepSizes(NamedTuple):
    """Moduli of modes in each cell, `(…, cells, modes)`."""

    begun: Array
    """At the samples from which steps go through it."""
    within: Array
    """At its edges, and at samples in it."""

    def of(self, member: int) -> "SubstepSizes":
        """Those of one signal of a batch."""
        return SubstepSizes(self.begun[member], self.within[member])


def measure_substep_sizes(path: ExactRun, arrays: EngineArrays, cells: Array) -> SubstepSizes | None:
    """Those of all signals of a batch; None where states grow little within a step, or cells are longer."""
    t, longest = path.samples.t, path.samples.longest_step
    if not grows_within_step(arrays, longest) or cell_length(cells) >= longest:
        return None
    edges = np.empty((len(path.u), len(cells), arrays.system.n_states))
    for at, z, _ in path.states_at(np.clip(cells, t[0], t[-1])):
        edges[:, at] = np.abs(z)
    within = np.maximum(edges[:, :-1], edges[:, 1:])
    begun = np.zeros_like(within)
    inside = [np.searchsorted(t, cells[:-1], side="left"), np.searchsorted(t, cells[1:], side="right") - 1]
    first, last = samples_around(t, cells).T
    for own, z in path.sampled_states.pieces():
        size = np.abs(z)
        update_maxima(within, size, own, np.column_stack(inside))
        update_maxima(begun, size, own, np.column_stack([first, np.maximum(last - 1, first)]))
    return SubstepSizes(arrays.modes(begun), arrays.modes(within))


# MERGED ltinet.simulation.rounding_model
# How the modes of an engine step: numbers side by side, and one coupled block after the other.


def steps_by_mode(
    arrays: EngineArrays, h: float, width: int, *, shares: Array | None, repeats: bool
) -> list[tuple[slice, ScalarSteps | DenseSteps]]:
    """Which modes step how, so many samples of one length, or up to it, at a time."""
    scalars = slice(0, arrays.n_scalars)
    inputs, outputs = arrays.mode_inputs[scalars], arrays.mode_outputs[:, scalars]
    doubled = 1 << (width - 1).bit_length()  # exponentials of blocks are known at powers of two
    first = ScalarSteps(arrays.system.rates, inputs, outputs, h, width, shares, repeats)
    dense = [
        DenseSteps(block.F, np.abs(block.G), block.C, h, doubled, shares, repeats, partial(_exponential, block))
        for block in arrays.system.blocks
    ]
    return [(scalars, first), *zip(arrays.mode_slices, dense, strict=True)]


def _exponential(block: DenseBlock, length: float) -> Array:
    """The engine's e^{Fh} of a coupled block."""
    return np.asarray(matrix_steps(block.F, block.G, np.array([length]), linear=True).P[0])


# MERGED ltinet.simulation.rounding_model
# How what is left of the system, in the user's own states, reaches the outputs: |C e^{Fs} X⁻¹| along all lags.
#
# Counted mode by mode, an error of the decomposition is multiplied by the condition number of X, which cancels again in
# C e^{Fs} X⁻¹. Modes that are slow beside the lags that are looked at are summed with their signs; fast ones, which could
# hide between two lags, by their sizes.

_SLOW = 0.5  # |λ| times the distance of two lags


def original_state_kernel(
    arrays: EngineArrays, X_inv: Array, kernels: list[DenseKernel], *, cell: float, n_cells: int
) -> DenseKernel:
    """The sizes of C e^{Fs} X⁻¹ in cells of lags, at most and on the whole; `kernels` are those of coupled blocks."""
    blocks, spacing = arrays.system.blocks, cell / KERNEL_SAMPLES
    is_slow = np.concatenate(
        [
            arrays.rates * spacing < _SLOW,
            np.repeat([np.linalg.norm(own.F, 2) * spacing < _SLOW for own in blocks], [len(own.F) for own in blocks]),
        ]
    ).astype(bool)
    with np.errstate(over="ignore", invalid="ignore"):
        peak, area = _with_signs(arrays, X_inv, is_slow, n_lags=n_cells * KERNEL_SAMPLES, spacing=spacing)
    by_cell = (n_cells, KERNEL_SAMPLES, *peak.shape[1:])
    peak, area = peak.reshape(by_cell).max(axis=1), area.reshape(by_cell).sum(axis=1)
    sizes = arrays.modes(np.abs(X_inv).T).T
    fast = np.flatnonzero(~is_slow[: arrays.n_scalars])
    if fast.size:
        most, whole = _decaying(arrays.growth[fast], cell=cell, n_cells=n_cells)
        weights = arrays.mode_outputs[:, fast]
        peak = peak + (weights * most[:, None]) @ sizes[fast]
        area = area + (weights * whole[:, None]) @ sizes[fast]
    for own, kernel in zip(arrays.mode_slices, kernels, strict=True):
        if not is_slow[own.start]:
            peak, area = peak + kernel.peak @ sizes[own], area + kernel.integral @ sizes[own]
    return DenseKernel(peak, area)


def _with_signs(
    arrays: EngineArrays, X_inv: Array, is_slow: NDArray[np.bool_], *, n_lags: int, spacing: float
) -> tuple[Array, Array]:
    """The largest |C e^{Fs} X⁻¹| of slow modes between two lags, and its integral there, `(lags, p, n)`."""
    system, lags = arrays.system, spacing * np.arange(n_lags + 1)
    scalars = np.where(is_slow[: arrays.n_scalars], system.rates, -np.inf)
    C = np.where(is_slow[: arrays.n_scalars], system.C, 0.0)
    turned = np.exp(np.where(np.isfinite(scalars), scalars, 0.0) * lags[:, None])
    dense = []
    for block, own in zip(system.blocks, arrays.mode_slices, strict=True):
        rows = np.zeros((n_lags + 1, *block.C.shape))
        if is_slow[own.start]:
            rows[0], P = block.C, propagator_chain(block.F, spacing).exponentials[0]
            for lag in range(n_lags):
                rows[lag + 1] = rows[lag] @ P
        dense.append(rows)
    values = pack_weights(system, C * turned[:, None], dense) @ X_inv
    steps = np.abs(np.diff(values, axis=0))
    values = np.abs(values)
    peak = np.maximum(values[:-1], values[1:]) + steps
    return peak, peak * spacing


def _decaying(growth: Array, *, cell: float, n_cells: int) -> tuple[Array, Array]:
    """The largest e^{Re λ s} in each cell of lags, and its integral, `(cells, n)`."""
    starts = cell * np.arange(n_cells)[:, None]
    with np.errstate(over="ignore"):
        first = np.exp(growth * starts)
        return first * np.maximum(1.0, np.exp(growth * cell)), first * cell * phi1(growth * cell)


# MERGED ltinet.simulation.rounding_model
# What a run of the exact engine commits along its way, and what becomes of it in the outputs.

_LARGEST = 1e300  # what takes the place of a number that is not finite
_ROUNDINGS_OF_STATES = 1.0  # eps, beside sums, where outputs are C z of a state: a product ½, the last sum ½
_ROUNDINGS = 3.2  # eps, beside sums: an exponential 1, what its exponent lost ½, a complex product √5/2, the last sum ½
_SECOND_ORDER = 1e-3  # of the outputs: errors so large that what they do to each other counts
_MAX_PASSES, _FEEDBACK_TOLERANCE = (
    16,
    1e-3,
)  # passes of feedback, and the share of the sum below which there is no more to come
_MAX_CELL_UPDATES, _MAX_DOUBLINGS, _LARGEST_RATIO = (
    64,
    16,
    0.99,
)  # where there is: at one cell, doublings from cell to cell, their end


@dataclass(frozen=True, eq=False)
class RoundingModel:
    """How the engine goes through time: samples of one length, or up to it, so many at a time."""

    arrays: EngineArrays
    cells: Array
    """Edges of equal cells of time."""
    h: float
    """The longest step between samples."""
    width: int
    n_samples: Array
    """In each cell, `(cells,)`."""
    n_steps: Array
    """Steps of the recurrence in each cell."""
    n_blocks: Array
    """Blocks of time that end in each cell, at most: those of states begin one sample after those of outputs."""
    linear: bool
    shares: Array | None = None
    """On uneven times: which share of the steps in each cell is about as long as h, h/2, h/4, …"""
    uneven: NonuniformErrors | None = None
    """On uneven times: how far the engine's own steps are off."""
    crowds: StepDensity | None = None
    """On uneven times: how close steps stand."""
    lost: Array | None = None
    """On uneven times: what rounding took from the lengths of all steps in each cell."""
    repeats: bool = True
    """Whether some inputs are held for many samples; without knowing them, they may be."""
    convolution: Convolution | None = None

    @property
    def cell(self) -> float:
        """Length of one; edges far from zero are rounded, and many in a row are not to add that up."""
        return cell_length(self.cells)

    @property
    def window(self) -> int:
        """How many samples a sum takes together."""
        return self.width if self.convolution is None else 2 * self.convolution.width

    @cached_property
    def kinds(self) -> list[tuple[slice, ScalarSteps | DenseSteps]]:
        """Which modes step how."""
        return steps_by_mode(self.arrays, self.h, self.window, shares=self.shares, repeats=self.repeats)

    @cached_property
    def kernels(self) -> list[DenseKernel]:
        """How errors of coupled blocks reach the outputs."""
        horizon, n_cells = float(self.cells[-1] - self.cells[0]), len(self.cells) - 1
        blocks = self.arrays.system.blocks
        return [dense_kernel(block.C, block.F, horizon=horizon, n_cells=n_cells) for block in blocks]

    def sizes(
        self,
        states: Array,
        inputs: Array,
        *,
        summed: Array,
        norms: Array,
        changes: Array | None = None,
        finer: SubstepSizes | None = None,
    ) -> StepMagnitudes:
        """Sizes of states and inputs at samples, and over as many cells as a step is long."""
        steps = 1 if self.window == 1 else 2  # what faded in one was there at the beginning of the one before
        n_behind = min(math.ceil((steps * self.window - 1) * self.h / self.cell), len(states) - 1)
        begun, within = (states, None) if finer is None else finer
        behind, inputs = running_max(begun, n_behind), running_max(inputs, n_behind)
        return StepMagnitudes(states, begun, behind, inputs, summed, norms, changes, within)

    @cached_property
    def user_kernel(self) -> DenseKernel:
        """How errors in the user's states reach the outputs."""
        if self.arrays.basis is None:
            raise ValueError("a network without a form has no states but its own")
        _, X_inv = self.arrays.basis
        return original_state_kernel(self.arrays, X_inv, self.kernels, cell=self.cell, n_cells=len(self.cells) - 1)

    def parts(
        self, sizes: StepMagnitudes, *, start: Array, user_start: Array, late: SampleOffsets | None = None
    ) -> dict[str, Array]:
        """Bounds on the errors of outputs, `(cells, p)`, for states and inputs of some sizes at the samples."""
        arrays, residuals = self.arrays, self.arrays.residuals
        inside = self._inside(sizes)
        sources = ErrorSources(arrays, sizes.inputs, start, user_start)
        decomposition = self._by_residuals(sources, inside)
        largest = np.max(weighted_sizes(inside, arrays.mode_outputs), axis=0)
        if np.any(np.max(decomposition, axis=0) > _SECOND_ORDER * largest):
            decomposition = self._by_residuals(sources, inside + self._states_off(sources, inside))
        rounding = self._rounding(self._shifted(sizes)) + self._by_even_inputs(sizes)
        rounding = sum((block.outputs(sizes) for block in self._blocks), rounding)
        found = {"rounding": rounding, "decomposition": np.zeros_like(decomposition)}
        found[residuals.part] += decomposition
        if late is not None:
            found["times"] = self._by_late_samples(late)
        if self.lost is not None:
            off = self.lost[:, None] * self._speeds(sizes)
            none = np.zeros_like(off)
            found["times"] = self.outputs(LocalErrors(none[0], off, np.ones(len(off)), none))
        return found

    def _inside(self, sizes: StepMagnitudes) -> Array:
        """How large states are anywhere in each cell, `(cells, modes)`."""
        known, gap = (sizes.here, self.h) if sizes.within is None else (sizes.within, self.cell)
        return np.hstack([steps.inside(known[:, own], sizes.inputs, gap) for own, steps in self.kinds])

    def _by_late_samples(self, late: SampleOffsets) -> Array:
        """A sample beside its place on the grid: the step before it ends, and the input changes, at another time."""
        per_input = np.vstack([steps.moved_by_sample(linear=self.linear) for _, steps in self.kinds])
        none = np.zeros((len(late.moved), len(per_input)))
        # Where states fade within a cell it counts how many samples still matter, where they last what all sum up to.
        by_largest = self.outputs(LocalErrors(none[0], late.largest @ per_input.T, self.n_samples, none))
        by_sum = self.outputs(LocalErrors(none[0], late.summed @ per_input.T, np.ones(len(none)), none))
        return np.fmin(by_largest, by_sum) + late.moved

    def _by_residuals(self, sources: ErrorSources, states: Array) -> Array:
        """What is left of the system does to the outputs, for states as large as `states` `(cells, modes)`."""
        arrays, residuals = self.arrays, self.arrays.residuals
        bound = self.outputs(sources.in_modes(states, self.n_steps))
        if residuals.in_user_states is not None:
            errors = sources.in_user_states(residuals.in_user_states, states, self.n_steps)
            bound = np.fmin(bound, self.user_kernel.output_errors(errors, cell=self.cell))
        return np.asarray(bound + arrays.packed(states) @ residuals.in_output.T)

    def _states_off(self, sources: ErrorSources, states: Array) -> Array:
        """How far the states of the system are from those of the engine, `(cells, modes)`.

        ε' = (F + ΔF) ε + ΔF z + ΔG u: what ε feeds back into itself through ΔF is added pass by pass, until no more
        comes.
        """
        added = self.states(sources.in_modes(states, self.n_steps))
        total = np.zeros_like(added)
        for _ in range(_MAX_PASSES):
            total += added
            if not np.any(added > _FEEDBACK_TOLERANCE * total):
                return total
            added = self.states(sources.fed_back(added, self.n_steps))
        return total + self._all_further(sources, added, total)

    def _all_further(self, sources: ErrorSources, added: Array, total: Array) -> Array:
        """What the last pass and all after it add: at most w/(1 − q), where w is no less and a pass makes q w of it.

        Errors act on what comes after them: w is what a cell passes on to itself, and rises fast from cell to cell.
        """
        shape, cells = total.max(axis=0), np.arange(len(total))[:, None]
        for _ in range(_MAX_CELL_UPDATES):  # towards the shape of which a pass makes the least in its own cell
            shape = shape + self.states(sources.fed_back(shape[None], self.n_steps[:1]))[0]
            shape /= np.max(shape)
        for doublings in range(1, _MAX_DOUBLINGS):
            rising = shape * 2.0 ** (doublings * cells)
            kept = np.max(safe_ratio(self.states(sources.fed_back(rising, self.n_steps)), rising))
            if kept < _LARGEST_RATIO:
                return np.asarray(rising * (np.max(safe_ratio(added, rising)) / (1.0 - kept)))
        return np.full_like(total, np.inf)

    def states(self, errors: LocalErrors) -> Array:
        """What errors on their way into the states do to these, `(cells, modes)`."""
        arrays = self.arrays
        parts = [propagate_scalar_errors(arrays.growth, errors.part(slice(0, arrays.n_scalars)), cell=self.cell)]
        for kernel, own in zip(self.state_kernels, arrays.mode_slices, strict=True):
            parts.append(kernel.output_errors(errors.part(own), cell=self.cell))
        return np.hstack(parts)

    @cached_property
    def state_kernels(self) -> list[DenseKernel]:
        """How errors of coupled blocks reach their states."""
        horizon, n_cells = float(self.cells[-1] - self.cells[0]), len(self.cells) - 1
        blocks = self.arrays.system.blocks
        return [dense_kernel(np.eye(len(own.F)), own.F, horizon=horizon, n_cells=n_cells) for own in blocks]

    def _shifted(self, sizes: StepMagnitudes) -> StepMagnitudes:
        """Those of w = z − G₁ u, in which even steps are taken."""
        if not self.linear or self.shares is not None:
            return sizes
        arrays = self.arrays
        with np.errstate(over="ignore", invalid="ignore"):
            factors = np.minimum(self.h * np.abs(phi2(arrays.system.rates * self.h)), _LARGEST)
        scalars = factors[:, None] * arrays.mode_inputs[: arrays.n_scalars]
        dense = [kind.one.integral @ kind.inputs for _, kind in self.kinds if isinstance(kind, DenseSteps)]
        shift = sizes.inputs @ np.vstack([scalars, *dense]).T
        return replace(sizes, here=sizes.here + shift, behind=sizes.behind + shift)

    def _rounding(self, sizes: StepMagnitudes) -> Array:
        """Rounding in the steps, and in the sums that make the outputs."""
        sums = self._sums(sizes)
        if self.convolution is not None:  # outputs between samples come from steps
            by_steps = replace(self, convolution=None)._rounding(sizes)
            return np.maximum(sums + self.convolution.rounding(sizes.norms), by_steps)
        stepped = np.hstack([steps.committed(sizes.part(own)) for own, steps in self.kinds])
        none, begun = np.zeros_like(stepped), EPS * sizes.here[0]
        if self.uneven is None:
            by_steps = self.outputs(LocalErrors(begun, stepped, self.n_steps, none))
            return np.asarray(sums + by_steps + self._by_what_faded(sizes))
        changes = self._changes(sizes)
        by_chance = changes > CONSTANT_TERM_TOLERANCE * EPS * sizes.largest  # other last digits at every step
        alike = np.where(by_chance, self._in_the_same_direction(sizes, changes), stepped)
        surely = LocalErrors(begun, alike, self.n_steps, none, self.crowds)
        new = LocalErrors(none[0], stepped * by_chance, self.n_steps, none, self.crowds)
        return np.asarray(sums + self.outputs(surely) + self._by_chance(new) + self._by_uneven_steps(sizes))

    def _by_what_faded(self, sizes: StepMagnitudes) -> Array | float:
        """What is left of states where blocks of time take them to have faded."""
        left = np.hstack([steps.left_out(sizes.part(own)) for own, steps in self.kinds])
        none = np.zeros_like(left)
        return self.outputs(LocalErrors(none[0], left, self.n_blocks, none)) if left.any() else 0.0

    @cached_property
    def _blocks(self) -> list[BlockStepErrors]:
        """By how much steps of coupled blocks are off, at samples and between them."""
        return measure_block_errors(self.arrays, self.h, linear=self.linear)

    @cached_property
    def _inputs_off(self) -> Array:
        """What even steps are off per unit of the inputs, `(modes, m)`; uneven ones are looked at elsewhere."""
        off = np.zeros_like(self.arrays.mode_inputs)
        for block in self._blocks if self.shares is None else []:
            off[block.modes] = block.inputs_of_longest
        return off

    def _by_even_inputs(self, sizes: StepMagnitudes) -> Array:
        """What even steps are off in what inputs add: the same at every sample."""
        off = sizes.inputs @ self._inputs_off.T
        return self.outputs(LocalErrors(np.zeros(off.shape[1]), off, self.n_samples, np.zeros_like(off)))

    def _by_uneven_steps(self, sizes: StepMagnitudes) -> Array:
        """What the engine's own steps of many lengths are off: the largest each time, or all together at once."""
        assert self.uneven is not None  # noqa: S101 - who calls has looked
        average, largest = self.uneven.committed(sizes)
        none, once = np.zeros_like(average), np.ones(len(average))
        each = self.outputs(LocalErrors(none[0], largest, self.n_steps, none, self.crowds))
        return np.fmin(each, self.outputs(LocalErrors(none[0], self.n_steps[:, None] * average, once, none)))

    @cached_property
    def _usual_steps(self) -> Array:
        """How long they are in each cell, where most of them stand."""
        crowding = 1.0 if self.crowds is None else self.crowds.crowding(0.0)
        return np.asarray(self.cell / (crowding * np.maximum(self.n_steps, 1.0)))

    def _changes(self, sizes: StepMagnitudes) -> Array:
        """By how much what inputs add to states in a step differs from one to the next, `(cells, modes)`."""
        if sizes.changes is None:
            return np.zeros_like(sizes.here)
        return np.asarray(self._usual_steps[:, None] * (sizes.changes @ self.arrays.mode_inputs.T))

    def _in_the_same_direction(self, sizes: StepMagnitudes, changes: Array) -> Array:
        """What rounding adds alike at every step even where states have other last digits each time."""
        assert self.uneven is not None  # noqa: S101 - who calls has looked
        found = np.zeros_like(changes)
        for own, steps in self.kinds:
            if isinstance(steps, DenseSteps):
                found[:, own] = steps.in_the_same_direction(
                    sizes.part(own), changes[:, own], self._usual_steps, of_products=self.uneven.common
                )
        return found

    def _speeds(self, sizes: StepMagnitudes) -> Array:
        """How fast states move at most, `(cells, modes)`."""
        arrays, here = self.arrays, sizes.here
        blocks = zip(arrays.mode_slices, arrays.system.blocks, strict=True)
        of_blocks = [here[:, own] @ np.abs(block.F).T for own, block in blocks]
        alone = np.hstack([here[:, : arrays.n_scalars] * arrays.rates, *of_blocks])
        return np.asarray(alone + sizes.inputs @ arrays.mode_inputs.T)

    def _by_chance(self, errors: LocalErrors) -> Array:
        """What errors at every step do to the outputs if they do not know of each other."""
        growth, own, cell = self.arrays.growth, slice(0, self.arrays.n_scalars), self.cell
        scalars = errors.part(own)
        moved = np.fmin(
            propagate_scalar_errors(growth, scalars, cell=cell), probabilistic_scalar_errors(growth, scalars, cell=cell)
        )
        total = weighted_sizes(moved, self.arrays.mode_outputs[:, own])
        for place, kernel in zip(self.arrays.mode_slices, self.kernels, strict=True):
            block = errors.part(place)
            spread = probabilistic_dense_errors(kernel, block, cell=cell)
            total = total + np.fmin(kernel.output_errors(block, cell=cell), spread)
        return np.asarray(total)

    def _sums(self, sizes: StepMagnitudes) -> Array:
        """Rounding of the sums that make the outputs, or the responses that inputs are convolved with."""
        system = self.arrays.system
        n, m = system.n_states, system.n_inputs
        n_within = steps_within_block(self.width) if self.convolution is None else 0.0
        if self.convolution is not None:  # responses are sums over states; what transforms add is counted elsewhere
            share = (_ROUNDINGS + sum_rounding_factor(n)) * EPS
        elif self.window == 1:  # outputs are C z + D u
            share = (_ROUNDINGS_OF_STATES + sum_rounding_factor(n + m)) * EPS
        else:  # responses as before, then sums over them and over states
            share = (_ROUNDINGS + sum_rounding_factor(n) + sum_rounding_factor(n + self.width * m)) * EPS
        total = share * (sizes.inputs @ np.abs(system.D).T)
        for own, steps in self.kinds:
            total = total + steps.in_outputs(sizes.part(own), share=share, n_within=n_within)
        return np.asarray(total)

    def outputs(self, errors: LocalErrors) -> Array:
        """What errors on their way into the states do to the outputs."""
        arrays = self.arrays
        scalars = slice(0, arrays.n_scalars)
        moved = propagate_scalar_errors(arrays.growth, errors.part(scalars), cell=self.cell)
        total = weighted_sizes(moved, arrays.mode_outputs[:, scalars])
        for own, kernel in zip(arrays.mode_slices, self.kernels, strict=True):
            total = total + kernel.output_errors(errors.part(own), cell=self.cell)
        return np.asarray(total)
