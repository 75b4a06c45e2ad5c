"""Rounding model of an exact run: errors committed in its steps, and their propagation to the outputs.

Sources of error are rounding in the steps and sums, the measured error of the propagators (`step_errors`), residuals
of the decomposition (`system_arrays`), and samples beside their even grid. Errors are counted in cells of time by
modes and propagated by |C e^{Fs}|. An error ε of the states obeys

    ε' = (F + ΔF) ε + ΔF z + ΔG u,

and its feedback through ΔF is added pass by pass. The last pass and all later ones add at most w/(1 − q) for a w that is
not less than the last one and that a pass maps to at most q w, q < 1. Residuals in the user's states are propagated by
|C e^{Fs} X⁻¹|, in which the condition number of X cancels: modes that are slow beside the spacing of the lags are
summed with their signs, fast ones, which could oscillate between two lags, by size.

Where states grow by orders of magnitude within a step, its end says little about its beginning, and errors that enter
early are small themselves: cells shorter than steps then give the sizes of the states.

What is proven, assumed and empirical:

* proven: the propagation of errors of scalar modes, the feedback of all passes (any w and q < 1), the residuals, which
  are computed in extended precision, and the effects of times beside their grid on scalar modes;
* assumed: independent roundings in sums (`error_bounds.step_rounding`), and along steps on uneven times, whose states
  have different last digits at every step (`error_bounds.propagation`);
* empirical: sizes of exponentials of coupled blocks between lags (`error_bounds.propagation`), and errors of propagators
  between the lengths at which they are measured (`step_errors`).

"rounding" is therefore an estimate, and so is "decomposition" where blocks are coupled.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, Array
from ltinet._util.phi_functions import phi1, phi_functions
from ltinet.error_bounds.propagation import (
    KERNEL_SAMPLES,
    DenseKernel,
    LocalErrors,
    StepDensity,
    dense_kernel,
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
    sum_rounding_factor,
)
from ltinet.simulation.convolution import Convolution
from ltinet.simulation.exact_run import ExactRun
from ltinet.simulation.modal import DenseBlock, pack_weights
from ltinet.simulation.propagators import matrix_steps
from ltinet.simulation.step_errors import BlockStepErrors, NonuniformErrors, measure_block_errors
from ltinet.simulation.system_arrays import EngineArrays, UserStateResiduals
from ltinet.simulation.time_cells import (
    SLOW,
    cell_length,
    grows_within_step,
    running_max,
    safe_ratio,
    samples_around,
    update_maxima,
    weighted_sizes,
)

_MAX_FACTOR = 1e300  # replaces factors that overflow: the sizes that follow from it are far beyond those of outputs
_STATE_ROUNDINGS = 1.0  # eps beside sums, where outputs are C z of a state: a product ½, the last sum ½
_RESPONSE_ROUNDINGS = 3.2  # eps beside sums: exponential 1, its exponent ½, complex product √5/2, the last sum ½
# Feedback of errors ε through ΔF is of the second order: with ε at most a fraction of the outputs it adds about that
# fraction of ε itself. What is neglected is this fraction of the part, where the bound has no third digit.
_SECOND_ORDER = 1e-3  # of the largest output: errors from which on their feedback is added
_FEEDBACK_TOLERANCE = 1e-3  # of the sum: a pass that adds less ends the passes
_MAX_PASSES = 16  # of feedback, speed only: all later ones are bounded together
# The bound on all later passes holds for any shape w and any q < 1. These numbers decide how small it is, and whether
# one is found; without one it is infinite.
_MAX_CELL_UPDATES = 64  # power iterations for the shape of feedback within a cell
_MAX_DOUBLINGS = 16  # growth of that shape from cell to cell that is tried, as a power of two
_MAX_CONTRACTION = 0.99  # q up to which 1/(1 − q), at most 100, is used


# Error sources


class ErrorSources(NamedTuple):
    """Residuals of the decomposition as local errors, for states and inputs of some sizes."""

    arrays: EngineArrays
    inputs: Array
    start: Array
    user_start: Array

    def in_modes(self, states: Array, n_steps: Array) -> LocalErrors:
        """Return the local errors of modes."""
        residuals = self.arrays.residuals
        packed = self.arrays.packed(states)
        errors = self.arrays.modes(packed @ residuals.per_state.T + self.inputs @ residuals.per_input.T)
        return LocalErrors(self.start, np.zeros_like(errors), n_steps, errors)

    def feedback(self, states: Array, n_steps: Array) -> LocalErrors:
        """Return the local errors of modes that errors of the states cause."""
        errors = self.arrays.modes(self.arrays.packed(states) @ self.arrays.residuals.per_state.T)
        return LocalErrors(np.zeros_like(self.start), np.zeros_like(errors), n_steps, errors)

    def in_user_states(self, residuals: UserStateResiduals, states: Array, n_steps: Array) -> LocalErrors:
        """Return the local errors of the user's states."""
        errors = self.arrays.packed(states) @ residuals.per_state.T + self.inputs @ residuals.per_input.T
        return LocalErrors(self.user_start, np.zeros_like(errors), n_steps, errors)


def _step_errors(errors: Array, n_steps: Array, density: StepDensity | None = None) -> LocalErrors:
    """Return local errors that enter at every step only."""
    none = np.zeros_like(errors)
    return LocalErrors(none[0], errors, n_steps, none, density)


class SampleOffsets(NamedTuple):
    """Effects of samples that are beside an even grid, cell by cell."""

    outputs: Array
    """Change of the outputs during the offset of a sample, just before it, `(cells, p)`."""
    largest: Array
    """Largest product of offset and change of u, `(cells, m)`."""
    summed: Array
    """Sum of these products, `(cells, m)`."""


class SubstepSizes(NamedTuple):
    """Moduli of modes in each cell that is shorter than steps, `(…, cells, modes)`."""

    at_step_starts: Array
    """At the samples from which steps go through the cell."""
    within_cells: Array
    """At its edges, and at samples in it."""


def measure_substep_sizes(run: ExactRun, arrays: EngineArrays, cells: Array) -> SubstepSizes | None:
    """Return the sizes for all signals of a batch; None where states grow little within a step, or cells are longer."""
    t, longest = run.samples.t, run.samples.longest_step
    if not grows_within_step(arrays, longest) or cell_length(cells) >= longest:
        return None
    edges = np.empty((len(run.u), len(cells), arrays.system.n_states))
    for at, z, _ in run.states_at(np.clip(cells, t[0], t[-1])):
        edges[:, at] = np.abs(z)
    within = np.maximum(edges[:, :-1], edges[:, 1:])
    starts = np.zeros_like(within)
    inside = [np.searchsorted(t, cells[:-1], side="left"), np.searchsorted(t, cells[1:], side="right") - 1]
    first, last = samples_around(t, cells).T
    for piece, z in run.sampled_states.pieces():
        size = np.abs(z)
        update_maxima(within, size, piece, np.column_stack(inside))
        update_maxima(starts, size, piece, np.column_stack([first, np.maximum(last - 1, first)]))
    return SubstepSizes(arrays.modes(starts), arrays.modes(within))


# Propagation


@dataclass(frozen=True, eq=False)
class RoundingModel:
    """Steps of an exact run: samples of one length, or up to it, `width` at a time."""

    arrays: EngineArrays
    cells: Array
    """Edges of equal cells of time."""
    h: float
    """Longest step between samples."""
    width: int
    n_samples: Array
    """Number of samples in each cell, `(cells,)`."""
    n_steps: Array
    """Number of steps of the recurrence in each cell."""
    linear: bool
    length_shares: Array | None = None
    """On uneven times: share of the steps in each cell that are about as long as h, h/2, h/4, …"""
    nonuniform: NonuniformErrors | None = None
    """On uneven times: errors of the engine's steps."""
    density: StepDensity | None = None
    """On uneven times: density of the steps."""
    lost_lengths: Array | None = None
    """On uneven times: rounding of the lengths of all steps in each cell."""
    held_inputs: bool = True
    """True if some inputs are, or may be, constant over many samples."""
    convolution: Convolution | None = None

    @property
    def cell(self) -> float:
        """Length of a cell: not a difference of edges, whose rounding would add up over many cells."""
        return cell_length(self.cells)

    @property
    def window(self) -> int:
        """Number of samples in one sum."""
        return self.width if self.convolution is None else 2 * self.convolution.width

    @cached_property
    def steps(self) -> list[tuple[slice, ScalarSteps | DenseSteps]]:
        """Modes and their steps: scalars, and one coupled block after the other."""
        arrays = self.arrays
        scalars = slice(0, arrays.n_scalars)
        inputs, outputs = arrays.mode_inputs[scalars], arrays.mode_outputs[:, scalars]
        shares, held = self.length_shares, self.held_inputs
        doubled = 1 << (self.window - 1).bit_length()  # exponentials of blocks are computed at powers of two
        dense = [
            DenseSteps(block.F, np.abs(block.G), block.C, self.h, doubled, shares, held, partial(_exponential, block))
            for block in arrays.system.blocks
        ]
        first = ScalarSteps(arrays.system.rates, inputs, outputs, self.h, self.window, shares, held)
        return [(scalars, first), *zip(arrays.mode_slices, dense, strict=True)]

    @cached_property
    def output_kernels(self) -> list[DenseKernel]:
        """Propagation of errors of coupled blocks to the outputs."""
        return [self._kernel(block.C, block.F) for block in self.arrays.system.blocks]

    @cached_property
    def state_kernels(self) -> list[DenseKernel]:
        """Propagation of errors of coupled blocks to their states."""
        return [self._kernel(np.eye(len(block.F)), block.F) for block in self.arrays.system.blocks]

    def _kernel(self, C: Array, F: Array) -> DenseKernel:
        return dense_kernel(C, F, horizon=float(self.cells[-1] - self.cells[0]), n_cells=len(self.cells) - 1)

    @cached_property
    def user_kernel(self) -> DenseKernel:
        """Propagation of errors in the user's states to the outputs."""
        if self.arrays.basis is None:
            raise ValueError("the network was built from parameters: there are no user states")
        _, X_inv = self.arrays.basis
        kernels = self.output_kernels
        return original_state_kernel(self.arrays, X_inv, kernels, cell=self.cell, n_cells=len(self.cells) - 1)

    def state_errors(self, errors: LocalErrors) -> Array:
        """Return the errors of the states that result from local errors, `(cells, modes)`."""
        arrays = self.arrays
        parts = [propagate_scalar_errors(arrays.growth, errors.part(slice(0, arrays.n_scalars)), cell=self.cell)]
        for kernel, modes in zip(self.state_kernels, arrays.mode_slices, strict=True):
            parts.append(kernel.output_errors(errors.part(modes), cell=self.cell))
        return np.hstack(parts)

    def output_errors(self, errors: LocalErrors, *, independent: bool = False) -> Array:
        """Return the errors of the outputs that result from local errors, `(cells, p)`.

        Those of independent errors at every step are estimated where that is less than the bound.
        """
        arrays, scalars, cell = self.arrays, slice(0, self.arrays.n_scalars), self.cell
        of_scalars = propagate_scalar_errors(arrays.growth, errors.part(scalars), cell=cell)
        if independent:
            estimate = probabilistic_scalar_errors(arrays.growth, errors.part(scalars), cell=cell)
            of_scalars = np.fmin(of_scalars, estimate)
        total = weighted_sizes(of_scalars, arrays.mode_outputs[:, scalars])
        for modes, kernel in zip(arrays.mode_slices, self.output_kernels, strict=True):
            of_block = kernel.output_errors(errors.part(modes), cell=cell)
            if independent:
                of_block = np.fmin(of_block, probabilistic_dense_errors(kernel, errors.part(modes), cell=cell))
            total = total + of_block
        return np.asarray(total)

    # Sizes and parts of the bound

    def sizes(
        self,
        states: Array,
        inputs: Array,
        *,
        input_sums: Array,
        input_norms: Array,
        input_changes: Array | None = None,
        substeps: SubstepSizes | None = None,
    ) -> StepMagnitudes:
        """Return the sizes of states and inputs at samples, and over as many cells as a step is long."""
        steps = 1 if self.window == 1 else 2  # a state that the engine omits in one step was there before the last one
        n_behind = min(math.ceil((steps * self.window - 1) * self.h / self.cell), len(states) - 1)
        starts, within = (states, None) if substeps is None else substeps
        over_step, inputs = running_max(starts, n_behind), running_max(inputs, n_behind)
        return StepMagnitudes(states, starts, over_step, inputs, input_sums, input_norms, input_changes, within)

    def parts(
        self, sizes: StepMagnitudes, *, start: Array, user_start: Array, offsets: SampleOffsets | None = None
    ) -> dict[str, Array]:
        """Return bounds on the errors of outputs, `(cells, p)`, for states and inputs of some sizes at the samples."""
        arrays, residuals = self.arrays, self.arrays.residuals
        known, gap = (sizes.at_samples, self.h) if sizes.within_cells is None else (sizes.within_cells, self.cell)
        states = np.hstack([steps.size_within(known[:, modes], sizes.inputs, gap) for modes, steps in self.steps])
        sources = ErrorSources(arrays, sizes.inputs, start, user_start)
        decomposition = self._residual_errors(sources, states)
        largest = np.max(weighted_sizes(states, arrays.mode_outputs), axis=0)
        if np.any(np.max(decomposition, axis=0) > _SECOND_ORDER * largest):
            decomposition = self._residual_errors(sources, states + self._state_distance(sources, states))
        input_errors = sizes.inputs @ self._uniform_input_errors.T  # the same at every sample
        rounding = self._rounding(self._shifted(sizes)) + self.output_errors(_step_errors(input_errors, self.n_samples))
        rounding = sum((block.outputs(sizes) for block in self._block_errors), rounding)
        parts = {"rounding": rounding, "decomposition": np.zeros_like(decomposition)}
        parts[residuals.part] += decomposition
        if offsets is not None:
            parts["times"] = self._offset_errors(offsets)
        if self.lost_lengths is not None:
            errors = self.lost_lengths[:, None] * self._state_speeds(sizes)
            parts["times"] = self.output_errors(_step_errors(errors, np.ones(len(errors))))
        return parts

    # Residuals of the decomposition

    def _residual_errors(self, sources: ErrorSources, states: Array) -> Array:
        """Return the effect of the residuals on the outputs for states of some sizes `(cells, modes)`."""
        arrays, residuals = self.arrays, self.arrays.residuals
        bound = self.output_errors(sources.in_modes(states, self.n_steps))
        if residuals.in_user_states is not None:
            errors = sources.in_user_states(residuals.in_user_states, states, self.n_steps)
            bound = np.fmin(bound, self.user_kernel.output_errors(errors, cell=self.cell))
        return np.asarray(bound + arrays.packed(states) @ residuals.in_output.T)

    def _state_distance(self, sources: ErrorSources, states: Array) -> Array:
        """Return the distance of the states of the system from those of the engine, `(cells, modes)`.

        ε' = (F + ΔF) ε + ΔF z + ΔG u: the feedback of ε through ΔF is added pass by pass.
        """
        added = self.state_errors(sources.in_modes(states, self.n_steps))
        total = np.zeros_like(added)
        for _ in range(_MAX_PASSES):
            total += added
            if not np.any(added > _FEEDBACK_TOLERANCE * total):
                return total
            added = self.state_errors(sources.feedback(added, self.n_steps))
        return total + self._remaining_feedback(sources, added, total)

    def _remaining_feedback(self, sources: ErrorSources, added: Array, total: Array) -> Array:
        """Bound the last pass and all later ones by w/(1 − q) for a w ≥ `added` that a pass maps to at most q w, q < 1.

        Errors act on later times only, so that w is chosen with the shape of the feedback of a cell to itself, doubled
        `doublings` times from each cell to the next.
        """
        shape, cells = total.max(axis=0), np.arange(len(total))[:, None]
        for _ in range(_MAX_CELL_UPDATES):  # towards the shape with the least feedback within its cell
            shape = shape + self.state_errors(sources.feedback(shape[None], self.n_steps[:1]))[0]
            shape /= np.max(shape)
        for doublings in range(1, _MAX_DOUBLINGS):
            rising = shape * 2.0 ** (doublings * cells)
            contraction = np.max(safe_ratio(self.state_errors(sources.feedback(rising, self.n_steps)), rising))
            if contraction < _MAX_CONTRACTION:
                return np.asarray(rising * (np.max(safe_ratio(added, rising)) / (1.0 - contraction)))
        return np.full_like(total, np.inf)

    # Rounding

    def _shifted(self, sizes: StepMagnitudes) -> StepMagnitudes:
        """Return the sizes of w = z − G₁ u, in which even steps are taken."""
        if not self.linear or self.length_shares is not None:
            return sizes
        arrays = self.arrays
        with np.errstate(over="ignore", invalid="ignore"):
            factors = np.minimum(self.h * np.abs(phi_functions(arrays.system.rates * self.h)[1]), _MAX_FACTOR)
        scalars = factors[:, None] * arrays.mode_inputs[: arrays.n_scalars]
        dense = [
            steps.single_step.integral @ steps.input_weights for _, steps in self.steps if isinstance(steps, DenseSteps)
        ]
        shift = sizes.inputs @ np.vstack([scalars, *dense]).T
        return replace(sizes, at_samples=sizes.at_samples + shift, over_step=sizes.over_step + shift)

    def _rounding(self, sizes: StepMagnitudes) -> Array:
        """Estimate the rounding in the steps, and in the sums that form the outputs."""
        sums = self._sum_rounding(sizes)
        if self.convolution is not None:  # outputs between samples come from steps
            of_steps = replace(self, convolution=None)._rounding(sizes)
            return np.maximum(sums + self.convolution.rounding(sizes.input_norms), of_steps)
        local = np.hstack([steps.local_errors(sizes.part(modes)) for modes, steps in self.steps])
        none, start = np.zeros_like(local), EPS * sizes.at_samples[0]
        if self.nonuniform is None:
            of_steps = self.output_errors(LocalErrors(start, local, self.n_steps, none))
            omitted = np.hstack([steps.omitted(sizes.part(modes)) for modes, steps in self.steps])
            # Blocks of states begin one sample after those of outputs, so that one more of them may end in a cell.
            of_omitted = self.output_errors(_step_errors(omitted, self.n_steps + 1.0)) if omitted.any() else 0.0
            return np.asarray(sums + of_steps + of_omitted)
        changes = self._input_changes(sizes)
        is_independent = changes > CONSTANT_TERM_TOLERANCE * EPS * sizes.largest  # other last digits at every step
        biased = np.zeros_like(changes)
        for modes, steps in self.steps:
            if isinstance(steps, DenseSteps):
                biased[:, modes] = steps.biased_rounding(
                    sizes.part(modes), changes[:, modes], self._usual_steps, common=self.nonuniform.common
                )
        biased = np.where(is_independent, biased, local)
        of_biased = self.output_errors(LocalErrors(start, biased, self.n_steps, none, self.density))
        independent_errors = _step_errors(local * is_independent, self.n_steps, self.density)
        of_independent = self.output_errors(independent_errors, independent=True)
        return np.asarray(sums + of_biased + of_independent + self._nonuniform_step_errors(self.nonuniform, sizes))

    def _sum_rounding(self, sizes: StepMagnitudes) -> Array:
        """Estimate the rounding of the sums that form the outputs, or the responses that inputs are convolved with."""
        system = self.arrays.system
        n, m = system.n_states, system.n_inputs
        n_within = 0.0
        if self.convolution is not None:  # responses are sums over states; `Convolution.rounding` counts the transforms
            relative = (_RESPONSE_ROUNDINGS + sum_rounding_factor(n)) * EPS
        elif self.window == 1:  # outputs are C z + D u
            relative = (_STATE_ROUNDINGS + sum_rounding_factor(n + m)) * EPS
        else:  # responses as before, then sums over them and over states
            n_terms = n + self.width * m
            relative = (_RESPONSE_ROUNDINGS + sum_rounding_factor(n) + sum_rounding_factor(n_terms)) * EPS
            # Steps that precede a state inside a block: those of blocks of 16 samples, and one within such a block.
            n_within = 1.0 + (self.width // 16 if self.width > 16 else 0)
        total = relative * (sizes.inputs @ np.abs(system.D).T)
        for modes, steps in self.steps:
            total = total + steps.output_rounding(sizes.part(modes), relative=relative, n_within=n_within)
        return np.asarray(total)

    @cached_property
    def _block_errors(self) -> list[BlockStepErrors]:
        """Errors of the steps of coupled blocks, at samples and between them."""
        return measure_block_errors(self.arrays, self.h, linear=self.linear)

    @cached_property
    def _uniform_input_errors(self) -> Array:
        """Errors of even steps per unit of the inputs, `(modes, m)`; those of uneven ones are in `nonuniform`."""
        errors = np.zeros_like(self.arrays.mode_inputs)
        for block in self._block_errors if self.length_shares is None else []:
            errors[block.modes] = block.inputs_of_longest
        return errors

    def _nonuniform_step_errors(self, nonuniform: NonuniformErrors, sizes: StepMagnitudes) -> Array:
        """Return the effect of errors of uneven steps: the largest at each step, or the sum of all of them at once."""
        average, largest = nonuniform.local_errors(sizes)
        each = self.output_errors(_step_errors(largest, self.n_steps, self.density))
        all_at_once = _step_errors(self.n_steps[:, None] * average, np.ones(len(average)))
        return np.fmin(each, self.output_errors(all_at_once))

    @cached_property
    def _usual_steps(self) -> Array:
        """Length of steps in each cell where most of them are."""
        peak_ratio = 1.0 if self.density is None else self.density.peak_ratio(0.0)
        return np.asarray(self.cell / (peak_ratio * np.maximum(self.n_steps, 1.0)))

    def _input_changes(self, sizes: StepMagnitudes) -> Array:
        """Return the change of the input's contribution to states from one step to the next, `(cells, modes)`."""
        if sizes.input_changes is None:
            return np.zeros_like(sizes.at_samples)
        return np.asarray(self._usual_steps[:, None] * (sizes.input_changes @ self.arrays.mode_inputs.T))

    # Times

    def _offset_errors(self, offsets: SampleOffsets) -> Array:
        """Return the effect of samples beside the grid: the step before ends, and the input changes, at another time."""
        per_input = np.vstack([steps.delay_response(linear=self.linear) for _, steps in self.steps])
        # Where states decay within a cell, the number of samples that still matter is small; else the sum is smaller.
        by_largest = self.output_errors(_step_errors(offsets.largest @ per_input.T, self.n_samples))
        by_sum = self.output_errors(_step_errors(offsets.summed @ per_input.T, np.ones(len(self.n_samples))))
        return np.fmin(by_largest, by_sum) + offsets.outputs

    def _state_speeds(self, sizes: StepMagnitudes) -> Array:
        """Return a bound on |z'|, `(cells, modes)`."""
        arrays, states = self.arrays, sizes.at_samples
        blocks = zip(arrays.mode_slices, arrays.system.blocks, strict=True)
        of_blocks = [states[:, modes] @ np.abs(block.F).T for modes, block in blocks]
        free = np.hstack([states[:, : arrays.n_scalars] * arrays.rates, *of_blocks])
        return np.asarray(free + sizes.inputs @ arrays.mode_inputs.T)


def _exponential(block: DenseBlock, length: float) -> Array:
    """Return the engine's e^{Fh} of a coupled block."""
    return np.asarray(matrix_steps(block.F, block.G, np.array([length]), linear=True).P[0])


# Propagation from the user's states


def original_state_kernel(
    arrays: EngineArrays, X_inv: Array, kernels: list[DenseKernel], *, cell: float, n_cells: int
) -> DenseKernel:
    """Return the peak and the integral of |C e^{Fs} X⁻¹| in cells of lags; `kernels` are those of coupled blocks.

    By size of modes, an error of the decomposition would be multiplied by the condition number of X.
    """
    blocks, spacing = arrays.system.blocks, cell / KERNEL_SAMPLES
    is_slow = np.concatenate(
        [
            arrays.rates * spacing < SLOW,
            np.repeat(
                [np.linalg.norm(block.F, 2) * spacing < SLOW for block in blocks], [len(block.F) for block in blocks]
            ),
        ]
    ).astype(bool)
    with np.errstate(over="ignore", invalid="ignore"):
        peak = _slow_mode_peaks(arrays, X_inv, is_slow, n_lags=n_cells * KERNEL_SAMPLES, spacing=spacing)
        area = peak * spacing
    by_cell = (n_cells, KERNEL_SAMPLES, *peak.shape[1:])
    peak, area = peak.reshape(by_cell).max(axis=1), area.reshape(by_cell).sum(axis=1)
    sizes = arrays.modes(np.abs(X_inv).T).T
    fast = np.flatnonzero(~is_slow[: arrays.n_scalars])
    if fast.size:
        # The largest e^{Re λ s} in each cell of lags, and its integral, (cells, n).
        growth = arrays.growth[fast]
        with np.errstate(over="ignore"):
            first = np.exp(growth * (cell * np.arange(n_cells)[:, None]))
            largest, integral = first * np.maximum(1.0, np.exp(growth * cell)), first * cell * phi1(growth * cell)
        weights = arrays.mode_outputs[:, fast]
        peak = peak + (weights * largest[:, None]) @ sizes[fast]
        area = area + (weights * integral[:, None]) @ sizes[fast]
    for modes, kernel in zip(arrays.mode_slices, kernels, strict=True):
        if not is_slow[modes.start]:
            peak, area = peak + kernel.peak @ sizes[modes], area + kernel.integral @ sizes[modes]
    return DenseKernel(peak, area)


def _slow_mode_peaks(
    arrays: EngineArrays, X_inv: Array, is_slow: NDArray[np.bool_], *, n_lags: int, spacing: float
) -> Array:
    """Estimate the largest |C e^{Fs} X⁻¹| of slow modes between two lags, `(lags, p, n)`: both ends and the change."""
    system, lags = arrays.system, spacing * np.arange(n_lags + 1)
    is_slow_scalar = is_slow[: arrays.n_scalars]
    C = np.where(is_slow_scalar, system.C, 0.0)
    factors = np.exp(np.where(is_slow_scalar, system.rates, 0.0) * lags[:, None])
    dense = []
    for block, modes in zip(system.blocks, arrays.mode_slices, strict=True):
        rows = np.zeros((n_lags + 1, *block.C.shape))
        if is_slow[modes.start]:
            rows[0], P = block.C, propagator_chain(block.F, spacing).exponentials[0]
            for lag in range(n_lags):
                rows[lag + 1] = rows[lag] @ P
        dense.append(rows)
    values = pack_weights(system, C * factors[:, None], dense) @ X_inv
    changes = np.abs(np.diff(values, axis=0))
    values = np.abs(values)
    return np.asarray(np.maximum(values[:-1], values[1:]) + changes)
