"""Error bounds of the exact engine: of a run, and certificates of a network without a run.

The bound of a run takes the sizes of its inputs and states in every cell of time; if errors feed back so strongly
that the bound has no end, it is repeated with shorter cells. A certificate bounds the error for all inputs with |u| ≤
1 and x(0) = 0 over a horizon and a number of steps.
"""

import math

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import Array, two_product, two_sum
from ltinet.error_bounds.gains import layer_error_constant, theorem2_constant
from ltinet.error_bounds.output_bounds import Certificate, OutputErrorBound, add_reduction_error, combine_certificates
from ltinet.error_bounds.propagation import LocalErrors, StepDensity, measure_step_density
from ltinet.error_bounds.step_rounding import DenseSteps
from ltinet.errors import SimulationError
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.coordinate_selection import select_coordinates
from ltinet.simulation.exact_run import ExactRun
from ltinet.simulation.modal import pack_states, unpack_states
from ltinet.simulation.options import validate_positive
from ltinet.simulation.rounding_model import RoundingModel, SampleOffsets, measure_substep_sizes
from ltinet.simulation.step_errors import classify_step_lengths, measure_nonuniform_errors, step_length_shares
from ltinet.simulation.system_arrays import EngineArrays
from ltinet.simulation.time_cells import (
    DEFAULT_CELLS,
    IGNORE_OVERFLOW,
    MAX_CELLS,
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

# MERGED ltinet.simulation.exact_error_bound
# Bounds for the exact engine, from a run.

_SLOW_BETWEEN_SAMPLES = 0.5  # |λ|h up to which outputs move about as fast between samples as at them
_RATE_CHANGE = 0.57  # of |λ|h: by how much that changes from the nearer sample on, (e^{¼} − 1)/½ for |λ|h = ½
_BETWEEN_PROBES = 2.0  # by how much a function may be farther from its lines than at the places looked at


@IGNORE_OVERFLOW
def bound_exact_run(path: ExactRun, start: float, stop: float) -> tuple[OutputErrorBound, ...]:
    """The bound of every signal of a batch.

    What errors do to each other within a cell of time may have no end: shorter cells are tried then.
    """
    bounds = _bounds_with_cells(path, start, stop, fewest=DEFAULT_CELLS)
    if all(np.isfinite(part).all() for bound in bounds for part in bound.parts.values()):
        return bounds
    return _bounds_with_cells(path, start, stop, fewest=MAX_CELLS)


def _bounds_with_cells(path: ExactRun, start: float, stop: float, *, fewest: int) -> tuple[OutputErrorBound, ...]:
    arrays = path.realization.arrays
    n_samples, longest = len(path.samples.t), path.samples.longest_step
    cells = divide_into_cells(arrays, start, stop, n_samples=n_samples, longest=longest, fewest=fewest)
    run, around = _rounding_model(path, arrays, cells)
    finer = measure_substep_sizes(path, arrays, cells)
    late_by = _grid_offsets(path)
    states, rates = _state_sizes(path, run, around, with_rates=late_by is not None)
    starts, user_starts = arrays.start_errors(path.x0, path.z0)
    bounds = []
    for member, (own_start, user_start) in enumerate(zip(starts, user_starts, strict=True)):
        u = path.u[member]
        inputs = np.array([np.abs(u[first : last + 1]).max(axis=0) for first, last in around.tolist()])
        late = None if late_by is None else _sample_offsets(late_by, rates[member], u, around)
        sums, norms = window_sums(u, run.window, around), np.linalg.norm(u, axis=0)
        changes = median_changes(u, around) if run.uneven is not None else None
        own = None if finer is None else finer.of(member)
        sizes = run.sizes(states[member], inputs, summed=sums, norms=norms, changes=changes, finer=own)
        parts = run.parts(sizes, start=own_start, user_start=user_start, late=late)
        if path.input_error > 0.0:
            parts["input"] = _input_errors(run, _BETWEEN_PROBES * path.input_error)
        bounds.append(OutputErrorBound(run.cells, {name: nan_to_infinity(part) for name, part in parts.items()}))
    return tuple(bounds)


def _rounding_model(path: ExactRun, arrays: EngineArrays, cells: Array) -> tuple[RoundingModel, NDArray[np.intp]]:
    """How a trajectory went through time, and for every cell the first and last of the samples around it."""
    t, step, width = path.samples.t, path.samples.step, path.grid_width
    n_steps = _count_in_cells(cells, t[::width])
    longest = path.samples.longest_step or 1.0
    shares = None if step is not None else step_length_shares(t, cells, longest)
    uneven = None
    if shares is not None and arrays.system.n_states:
        uneven = measure_nonuniform_errors(
            path.nonuniform_steps, arrays.mode_slices, classify_step_lengths(t, cells, longest)
        )
    run = RoundingModel(
        arrays,
        cells,
        h=longest,
        width=width,
        n_samples=_count_in_cells(cells, t),
        n_steps=n_steps,
        n_blocks=np.maximum(n_steps, _count_in_cells(cells, t[1::width])),
        linear=path.linear,
        shares=shares,
        uneven=uneven,
        repeats=has_held_samples(path.u),
        crowds=None if uneven is None else _step_density(t, cells),
        lost=None if uneven is None else _lost_lengths(t, cells),
        convolution=path.convolution,
    )
    return run, samples_around(t, cells)


def _count_in_cells(cells: Array, t: Array) -> Array:
    """How many of ascending times lie in each cell, of its ends the last included."""
    return np.diff(np.searchsorted(t, cells, side="right")).astype(np.float64)


def _state_sizes(
    path: ExactRun, run: RoundingModel, around: NDArray[np.intp], *, with_rates: bool
) -> tuple[Array, Array]:
    """The largest |z| by modes `(batch, cells, modes)` in each cell and, where asked for, |ẏ| around samples."""
    arrays = run.arrays
    batch, n_cells = len(path.u), len(around)
    sizes = np.zeros((batch, n_cells, arrays.system.n_states))
    rates = np.zeros((batch, n_cells, arrays.system.n_outputs))
    for own, z in path.sampled_states.pieces():
        update_maxima(sizes, np.abs(z), own, around)
        if with_rates:
            update_maxima(rates, _rates_before(path, run, own, z), own, around)
    return arrays.modes(sizes), rates


def _rates_before(path: ExactRun, run: RoundingModel, own: slice, z: Array) -> Array:
    """How fast outputs move from just before the samples of a piece to the next ones, |C e^{Fs} (F z + G u)|.

    e^{Fs} of a pair keeps its modulus, of a coupled block it is bounded entry by entry.
    """
    arrays, system = run.arrays, run.arrays.system
    before = np.arange(own.start, own.stop) - (0 if path.linear else 1)
    u = path.u[:, np.maximum(before, 0)]
    v, parts = unpack_states(system, z)
    of_blocks = [part @ block.F.T for part, block in zip(parts, system.blocks, strict=True)]
    moving = pack_states(system, v * system.rates, of_blocks) + u @ arrays.G.T
    # What hardly turns between two samples is seen at them, with its sign and as far as it turns; of all else the size.
    is_slow = arrays.speeds * path.samples.longest_step < _SLOW_BETWEEN_SAMPLES
    seen = arrays.packed(is_slow.astype(np.float64))
    share = np.where(is_slow, _RATE_CHANGE * arrays.speeds * path.samples.longest_step, 1.0)
    sizes = arrays.modes(np.abs(moving))
    for modes, steps in run.kinds[1:]:
        if isinstance(steps, DenseSteps) and not is_slow[modes].any():
            sizes[..., modes] = sizes[..., modes] @ steps.one.reach.T
    rates = np.abs((moving * seen) @ arrays.C.T) + (sizes * share) @ arrays.mode_outputs.T
    rates[:, : 1 if own.start == 0 else 0] = 0.0  # the first sample stands where it stands
    return np.asarray(rates)


def _sample_offsets(by: Array, rates: Array, u: Array, around: NDArray[np.intp]) -> SampleOffsets:
    """What samples do that stand so far from their places `(samples,)`, signal by signal."""
    changes = np.pad(np.abs(np.diff(u, axis=0)), ((1, 1), (0, 0)))
    moved = by[:, None] * np.maximum(changes[:-1], changes[1:])  # a line changes at the samples before and behind
    cells = [slice(first, last + 1) for first, last in around.tolist()]
    return SampleOffsets(
        np.array([by[own].max() for own in cells])[:, None] * rates,
        np.array([moved[own].max(axis=0) for own in cells]),
        np.array([moved[own].sum(axis=0) for own in cells]),
    )


def _step_density(t: Array, cells: Array) -> StepDensity:
    """How close steps stand in each cell."""
    return measure_step_density(t[1:], step_cells(t, cells), n_cells=len(cells) - 1, cell=cell_length(cells))


def _lost_lengths(t: Array, cells: Array) -> Array | None:
    """What rounding took from the lengths of the steps in each cell; None where it took nothing."""
    lost = np.abs(two_sum(t[1:], -t[:-1])[1])
    if not lost.any():
        return None
    return np.asarray(np.bincount(step_cells(t, cells), weights=lost, minlength=len(cells) - 1), dtype=np.float64)


def _grid_offsets(path: ExactRun) -> Array | None:
    """How far each sample stands from its place on an even grid; None where all stand in their places."""
    samples = path.samples
    if samples.step is None:
        return None
    t = samples.t
    since, lost_since = two_sum(t, -t[:1])  # a double may stand far from zero and its step be tiny
    place, lost = two_product(np.arange(len(t), dtype=np.float64), np.float64(samples.step))
    by = np.abs((since - place) + (lost_since - lost))
    return by if by.any() else None


def _input_errors(run: RoundingModel, off: float) -> Array:
    """What an input that is off by so much does to the outputs."""
    arrays = run.arrays
    entering = np.full((len(run.cells) - 1, arrays.system.n_inputs), off)
    driven = entering @ arrays.mode_inputs.T
    errors = LocalErrors(np.zeros(driven.shape[1]), np.zeros_like(driven), run.n_steps, driven)
    return np.asarray(run.outputs(errors) + entering @ np.abs(arrays.system.D).T)


# MERGED ltinet.simulation.exact_error_bound
# Bounds for the exact engine, from a network alone.


def network_certificate(prepared: SimulationContext, *, horizon: float, n_steps: float) -> Certificate:
    """The same for a network as its users ask for it.

    Raises:
        SimulationError: the horizon or the number of steps cannot be used.
    """
    horizon, steps = validate_positive(horizon, "horizon"), validate_positive(n_steps, "n_steps")
    if steps != int(steps):
        raise SimulationError(f"n_steps is {n_steps}; give a whole number of steps")
    own = [certify(prepared, horizon=horizon, n_steps=int(steps), linear=linear) for linear in (True, False)]
    return add_reduction_error(combine_certificates(*own), prepared.reduction_error, prepared.system.n_inputs)


@IGNORE_OVERFLOW
def certify(prepared: SimulationContext, *, horizon: float, n_steps: int, linear: bool = True) -> Certificate:
    """What the exact engine promises for |u| ≤ 1 and x(0) = 0, without running it."""
    step = horizon / n_steps
    realization = select_coordinates(prepared, is_even=True, longest_step=step)
    arrays = realization.arrays
    # No run is known here whose states could be looked at within steps: cells are not shorter than these.
    cells = divide_into_cells(arrays, 0.0, horizon, n_samples=n_steps + 1, longest=0.0)
    per_cell = np.full(len(cells) - 1, n_steps / (len(cells) - 1))
    width = realization.grids.uniform(step, linear=linear, n_times=n_steps + 1).width
    run = RoundingModel(
        arrays,
        cells,
        h=step,
        width=width,
        n_samples=per_cell,
        n_steps=np.ceil(per_cell / width),
        n_blocks=np.ceil(per_cell / width),
        linear=linear,
        convolution=realization.grids.convolution(step, linear=linear, n_times=n_steps + 1),
    )
    states = _largest_states(run)
    ones = np.ones((len(states), arrays.system.n_inputs))
    sizes = run.sizes(states, ones, summed=ones * run.window, norms=ones[0] * math.sqrt(n_steps + 1))
    parts = run.parts(sizes, start=np.zeros(states.shape[1]), user_start=np.zeros(arrays.system.n_states))
    gains = prepared.network_arrays.gains(horizon)
    gain = weighted_sizes(states, arrays.mode_outputs) + np.sum(np.abs(arrays.system.D), axis=1)
    return Certificate(
        horizon=horizon,
        n_steps=n_steps,
        rounding=np.max(nan_to_infinity(parts["rounding"]), axis=0),
        decomposition=np.max(nan_to_infinity(parts["decomposition"]), axis=0),
        gain=np.max(nan_to_infinity(gain), axis=0),
        paper_constants=tuple(theorem2_constant(own) for own in gains),
        layer_constants=tuple(layer_error_constant(own) for own in gains),
    )


def _largest_states(run: RoundingModel) -> Array:
    """How large the states can be in every cell for inputs up to one, from rest."""
    n_cells = len(run.cells) - 1
    driven = np.tile(np.sum(run.arrays.mode_inputs, axis=1), (n_cells, 1))
    return run.states(LocalErrors(np.zeros(driven.shape[1]), np.zeros_like(driven), run.n_steps, driven))
