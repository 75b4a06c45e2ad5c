"""Error bounds of the exact engine: of a run, and certificates of a network without a run.

The bound of a run takes the sizes of its inputs and states in every cell of time; if errors feed back so strongly
that the bound is infinite, it is repeated with shorter cells. A certificate bounds the error for all inputs with |u| ≤
1 and x(0) = 0 over a horizon and a number of steps.

Proven: that sizes are those of all samples of a cell, and the offsets of samples from an even grid. Assumed and
empirical: what `rounding_model` says of its parts, and for functions of time `_INPUT_ERROR_MARGIN`, by which a function
may be farther from its lines than at the places where they were compared.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ltinet._util.double_double import two_product, two_sum
from ltinet._util.floating_point import Array
from ltinet.error_bounds.gains import layer_error_constant, theorem2_constant
from ltinet.error_bounds.output_bounds import Certificate, OutputErrorBound
from ltinet.error_bounds.propagation import LocalErrors, measure_step_density
from ltinet.error_bounds.step_rounding import DenseSteps
from ltinet.errors import SimulationError
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.coordinate_selection import select_coordinates
from ltinet.simulation.exact_run import ExactRun
from ltinet.simulation.modal import free_derivative
from ltinet.simulation.options import validate_positive
from ltinet.simulation.rounding_model import RoundingModel, SampleOffsets, SubstepSizes, measure_substep_sizes
from ltinet.simulation.step_errors import classify_step_lengths, measure_nonuniform_errors, step_length_shares
from ltinet.simulation.system_arrays import EngineArrays
from ltinet.simulation.time_cells import (
    DEFAULT_CELLS,
    IGNORE_OVERFLOW,
    MAX_CELLS,
    SLOW,
    cell_length,
    divide_into_cells,
    has_held_samples,
    median_changes,
    nan_to_infinity,
    samples_around,
    step_cells,
    update_maxima,
    weighted_sizes,
    window_sums,
)

# Of |λ|h: relative change of a derivative from the nearer sample, at most half a step away, (e^{|λ|h/2} − 1)/|λ|h, which
# is largest for |λ|h = SLOW.
_DERIVATIVE_CHANGE = math.expm1(0.5 * SLOW) / SLOW
# Ratio of the distance of a function from its lines to the distance measured. Empirical safety factor: with a tenth of it
# tests/trust/test_inputs.py holds as well.
_INPUT_ERROR_MARGIN = 2.0


# Bound of a run


@IGNORE_OVERFLOW
def bound_exact_run(run: ExactRun, start: float, stop: float) -> tuple[OutputErrorBound, ...]:
    """Return the bound of every signal of a batch.

    The feedback of errors within a cell of time may diverge: shorter cells are tried then.
    """
    bounds = _bounds_with_cells(run, start, stop, fewest=DEFAULT_CELLS)
    if all(np.isfinite(part).all() for bound in bounds for part in bound.parts.values()):
        return bounds
    return _bounds_with_cells(run, start, stop, fewest=MAX_CELLS)


def _bounds_with_cells(run: ExactRun, start: float, stop: float, *, fewest: int) -> tuple[OutputErrorBound, ...]:
    arrays, t = run.realization.arrays, run.samples.t
    cells = divide_into_cells(arrays, start, stop, n_samples=len(t), longest=run.samples.longest_step, fewest=fewest)
    model, around = _rounding_model(run, arrays, cells), samples_around(t, cells)
    substeps = measure_substep_sizes(run, arrays, cells)
    grid_offsets = _grid_offsets(run)
    states, derivatives = _state_sizes(run, model, around, with_derivatives=grid_offsets is not None)
    starts, user_starts = arrays.start_errors(run.x0, run.z0)
    bounds = []
    for member, (start_errors, user_start_errors) in enumerate(zip(starts, user_starts, strict=True)):
        u = run.u[member]
        sizes = model.sizes(
            states[member],
            np.array([np.abs(u[first : last + 1]).max(axis=0) for first, last in around.tolist()]),
            input_sums=window_sums(u, model.window, around),
            input_norms=np.linalg.norm(u, axis=0),
            input_changes=median_changes(u, around) if model.nonuniform is not None else None,
            substeps=None if substeps is None else SubstepSizes(*(size[member] for size in substeps)),
        )
        offsets = None if grid_offsets is None else _sample_offsets(grid_offsets, derivatives[member], u, around)
        parts = model.parts(sizes, start=start_errors, user_start=user_start_errors, offsets=offsets)
        if run.input_error > 0.0:
            parts["input"] = _input_errors(model, _INPUT_ERROR_MARGIN * run.input_error)
        bounds.append(OutputErrorBound(model.cells, {name: nan_to_infinity(part) for name, part in parts.items()}))
    return tuple(bounds)


def _rounding_model(run: ExactRun, arrays: EngineArrays, cells: Array) -> RoundingModel:
    """Return the model of the steps that a run took."""
    t, width = run.samples.t, run.grid_width
    n_steps = _count_in_cells(cells, t[::width])
    longest = run.samples.longest_step or 1.0
    shares = nonuniform = density = lost_lengths = None
    if run.samples.step is None:
        shares = step_length_shares(t, cells, longest)
        if arrays.system.n_states:
            lengths = classify_step_lengths(t, cells, longest)
            nonuniform = measure_nonuniform_errors(run.nonuniform_steps, arrays.mode_slices, lengths)
            ends_in, n_cells = step_cells(t, cells), len(cells) - 1
            density = measure_step_density(t[1:], ends_in, n_cells=n_cells, cell=cell_length(cells))
            lost = np.abs(two_sum(t[1:], -t[:-1])[1])  # rounding of the lengths of the steps
            if lost.any():
                lost_lengths = np.bincount(ends_in, weights=lost, minlength=n_cells).astype(np.float64)
    return RoundingModel(
        arrays,
        cells,
        h=longest,
        width=width,
        n_samples=_count_in_cells(cells, t),
        n_steps=n_steps,
        linear=run.linear,
        length_shares=shares,
        nonuniform=nonuniform,
        density=density,
        lost_lengths=lost_lengths,
        held_inputs=has_held_samples(run.u),
        convolution=run.convolution,
    )


def _count_in_cells(cells: Array, t: Array) -> Array:
    """Count ascending times in each cell, its last edge included."""
    return np.diff(np.searchsorted(t, cells, side="right")).astype(np.float64)


def _state_sizes(
    run: ExactRun, model: RoundingModel, around: NDArray[np.intp], *, with_derivatives: bool
) -> tuple[Array, Array]:
    """Return the largest |z| by modes `(batch, cells, modes)` in each cell and, on request, |ẏ| around samples."""
    arrays = model.arrays
    batch, n_cells = len(run.u), len(around)
    sizes = np.zeros((batch, n_cells, arrays.system.n_states))
    derivatives = np.zeros((batch, n_cells, arrays.system.n_outputs))
    for piece, z in run.sampled_states.pieces():
        update_maxima(sizes, np.abs(z), piece, around)
        if with_derivatives:
            update_maxima(derivatives, _output_derivatives(run, model, piece, z), piece, around)
    return arrays.modes(sizes), derivatives


def _output_derivatives(run: ExactRun, model: RoundingModel, piece: slice, z: Array) -> Array:
    """Estimate |ẏ| = |C e^{Fs} (F z + G u)| from just before the samples of a piece to the next ones.

    e^{Fs} of a pair keeps its modulus; that of a coupled block is bounded entry by entry.
    """
    arrays = model.arrays
    before = np.arange(piece.start, piece.stop) - (0 if run.linear else 1)
    u = run.u[:, np.maximum(before, 0)]
    rates = free_derivative(arrays.system, z) + u @ arrays.G.T
    # Slow modes count at the samples, with their signs, and by their change between these; all others by size.
    change = arrays.speeds * run.samples.longest_step
    is_slow = change < SLOW
    sizes = arrays.modes(np.abs(rates))
    for modes, steps in model.steps[1:]:
        if isinstance(steps, DenseSteps) and not is_slow[modes].any():
            sizes[..., modes] = sizes[..., modes] @ steps.single_step.peak.T
    at_samples = np.abs((rates * arrays.packed(is_slow.astype(np.float64))) @ arrays.C.T)
    sizes = sizes * np.where(is_slow, _DERIVATIVE_CHANGE * arrays.speeds * run.samples.longest_step, 1.0)
    derivatives = at_samples + sizes @ arrays.mode_outputs.T
    derivatives[:, : 1 if piece.start == 0 else 0] = 0.0  # the first sample has no offset
    return np.asarray(derivatives)


def _grid_offsets(run: ExactRun) -> Array | None:
    """Return the distance of each sample from its place on an even grid; None where all are zero or times are uneven."""
    samples = run.samples
    if samples.step is None:
        return None
    t = samples.t
    since, lost_since = two_sum(t, -t[:1])  # times may be far from zero with a tiny step
    grid_time, lost = two_product(np.arange(len(t), dtype=np.float64), np.float64(samples.step))
    offsets = np.abs((since - grid_time) + (lost_since - lost))
    return offsets if offsets.any() else None


def _sample_offsets(offsets: Array, derivatives: Array, u: Array, around: NDArray[np.intp]) -> SampleOffsets:
    """Return the effects of samples with offsets `(samples,)` from the grid for one signal."""
    changes = np.pad(np.abs(np.diff(u, axis=0)), ((1, 1), (0, 0)))
    products = offsets[:, None] * np.maximum(changes[:-1], changes[1:])  # a line ends at the samples before and behind
    cells = [slice(first, last + 1) for first, last in around.tolist()]
    return SampleOffsets(
        np.array([offsets[cell].max() for cell in cells])[:, None] * derivatives,
        np.array([products[cell].max(axis=0) for cell in cells]),
        np.array([products[cell].sum(axis=0) for cell in cells]),
    )


def _input_errors(model: RoundingModel, error: float) -> Array:
    """Return the effect of an input error of this size on the outputs."""
    arrays = model.arrays
    entering = np.full((len(model.cells) - 1, arrays.system.n_inputs), error)
    driven = entering @ arrays.mode_inputs.T
    errors = LocalErrors(np.zeros(driven.shape[1]), np.zeros_like(driven), model.n_steps, driven)
    return np.asarray(model.output_errors(errors) + entering @ np.abs(arrays.system.D).T)


# Certificate of a network


def network_certificate(context: SimulationContext, *, horizon: float, n_steps: float) -> Certificate:
    """Return the certificate for straight lines and held inputs: the larger errors, and the smaller bound on outputs.

    Raises
    ------
    SimulationError
        The horizon is not positive and finite, or the number of steps is not a positive integer.
    """
    horizon, steps = validate_positive(horizon, "horizon"), validate_positive(n_steps, "n_steps")
    if steps != int(steps):
        raise SimulationError(f"n_steps must be an integer of at least 1, got {n_steps}.")
    linear, held = (_certify(context, horizon=horizon, n_steps=int(steps), linear=hold) for hold in (True, False))
    reduction = None
    if context.reduction_error is not None:  # |u| ≤ 1 has at most the energy m·horizon
        largest = context.reduction_error * math.sqrt(context.system.n_inputs * horizon)
        reduction = np.full(context.system.n_outputs, largest)
    return replace(
        linear,
        rounding=np.maximum(linear.rounding, held.rounding),
        decomposition=np.maximum(linear.decomposition, held.decomposition),
        gain=np.minimum(linear.gain, held.gain),
        reduction=reduction,
    )


@IGNORE_OVERFLOW
def _certify(context: SimulationContext, *, horizon: float, n_steps: int, linear: bool) -> Certificate:
    """Return the certificate for inputs with |u| ≤ 1 and x(0) = 0, lines or held."""
    step = horizon / n_steps
    realization = select_coordinates(context, is_even=True, longest_step=step)
    arrays = realization.arrays
    # Without a run there are no states within steps: cells are not shorter than steps.
    cells = divide_into_cells(arrays, 0.0, horizon, n_samples=n_steps + 1, longest=0.0)
    n_cells = len(cells) - 1
    per_cell = np.full(n_cells, n_steps / n_cells)
    width = realization.grids.uniform(step, linear=linear, n_times=n_steps + 1).width
    model = RoundingModel(
        arrays,
        cells,
        h=step,
        width=width,
        n_samples=per_cell,
        n_steps=np.ceil(per_cell / width),
        linear=linear,
        convolution=realization.grids.convolution(step, linear=linear, n_times=n_steps + 1),
    )
    # The largest states for inputs up to one, from rest.
    driven = np.tile(np.sum(arrays.mode_inputs, axis=1), (n_cells, 1))
    states = model.state_errors(LocalErrors(np.zeros(driven.shape[1]), np.zeros_like(driven), model.n_steps, driven))
    ones = np.ones((n_cells, arrays.system.n_inputs))
    sizes = model.sizes(states, ones, input_sums=ones * model.window, input_norms=ones[0] * math.sqrt(n_steps + 1))
    parts = model.parts(sizes, start=np.zeros(states.shape[1]), user_start=np.zeros(arrays.system.n_states))
    gains = context.network_arrays.gains(horizon)
    gain = weighted_sizes(states, arrays.mode_outputs) + np.sum(np.abs(arrays.system.D), axis=1)
    return Certificate(
        horizon=horizon,
        n_steps=n_steps,
        rounding=np.max(nan_to_infinity(parts["rounding"]), axis=0),
        decomposition=np.max(nan_to_infinity(parts["decomposition"]), axis=0),
        gain=np.max(nan_to_infinity(gain), axis=0),
        paper_constants=tuple(theorem2_constant(layer) for layer in gains),
        layer_constants=tuple(layer_error_constant(layer) for layer in gains),
    )
