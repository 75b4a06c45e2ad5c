"""Bounds for the exact engine, from a run."""

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.bounds.cell_propagation import Committed
from ltinet.bounds.crowds import Crowds, crowds_of
from ltinet.bounds.output_errors import OutputErrorBound
from ltinet.bounds.step_rounding import DenseSteps
from ltinet.exact_arithmetic import exact_product, exact_sum
from ltinet.solve.engine_arrays import EngineArrays
from ltinet.solve.exact.error_sources import Late
from ltinet.solve.exact.finer_sizes import finer_sizes
from ltinet.solve.exact.infinite_sizes import QUIETLY, or_infinite
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.exact.run_errors import ExactRun
from ltinet.solve.exact.sizes import (
    CELLS,
    MOST_CELLS,
    cells_of,
    cells_of_steps,
    length_of,
    repeats,
    samples_around,
    take_largest,
    usual_changes,
    window_sums,
)
from ltinet.solve.exact.uneven_steps import lengths_of, shares_of_lengths, uneven_errors
from ltinet.solve.steps.packing import pack, unpack

_SEEN_AT_SAMPLES = 0.5  # |λ|h up to which outputs move about as fast between samples as at them
_MORE_BETWEEN = 0.57  # of |λ|h: by how much that changes from the nearer sample on, (e^{¼} − 1)/½ for |λ|h = ½
_BETWEEN_PROBES = 2.0  # by how much a function may be farther from its lines than at the places looked at


@QUIETLY
def judge_exact(path: ExactPath, start: float, stop: float) -> tuple[OutputErrorBound, ...]:
    """The bound of every signal of a batch.

    What errors do to each other within a cell of time may have no end: shorter cells are tried then.
    """
    bounds = _judged(path, start, stop, fewest=CELLS)
    if all(np.isfinite(part).all() for bound in bounds for part in bound.parts.values()):
        return bounds
    return _judged(path, start, stop, fewest=MOST_CELLS)


def _judged(path: ExactPath, start: float, stop: float, *, fewest: int) -> tuple[OutputErrorBound, ...]:
    arrays = path.realisation.arrays
    n_samples, longest = len(path.samples.t), path.samples.longest_step
    cells = cells_of(arrays, start, stop, n_samples=n_samples, longest=longest, fewest=fewest)
    run, around = _run_of(path, arrays, cells)
    finer = finer_sizes(path, arrays, cells)
    late_by = _off_grid(path)
    states, rates = _state_sizes(path, run, around, with_rates=late_by is not None)
    starts, user_starts = arrays.start_errors(path.x0, path.z0)
    bounds = []
    for member, (own_start, user_start) in enumerate(zip(starts, user_starts, strict=True)):
        u = path.u[member]
        inputs = np.array([np.abs(u[first : last + 1]).max(axis=0) for first, last in around.tolist()])
        late = None if late_by is None else _late(late_by, rates[member], u, around)
        sums, norms = window_sums(u, run.window, around), np.linalg.norm(u, axis=0)
        changes = usual_changes(u, around) if run.uneven is not None else None
        own = None if finer is None else finer.of(member)
        sizes = run.sizes(states[member], inputs, summed=sums, norms=norms, changes=changes, finer=own)
        parts = run.parts(sizes, start=own_start, user_start=user_start, late=late)
        if path.input_error > 0.0:
            parts["input"] = _moved_by_input(run, _BETWEEN_PROBES * path.input_error)
        bounds.append(OutputErrorBound(run.cells, {name: or_infinite(part) for name, part in parts.items()}))
    return tuple(bounds)


def _run_of(path: ExactPath, arrays: EngineArrays, cells: Array) -> tuple[ExactRun, NDArray[np.intp]]:
    """How a trajectory went through time, and for every cell the first and last of the samples around it."""
    t, step, width = path.samples.t, path.samples.step, path.grid_width
    n_steps = _ending_in(cells, t[::width])
    longest = path.samples.longest_step or 1.0
    shares = None if step is not None else shares_of_lengths(t, cells, longest)
    uneven = None
    if shares is not None and arrays.system.n_states:
        uneven = uneven_errors(path.any_length, arrays.mode_slices, lengths_of(t, cells, longest))
    run = ExactRun(
        arrays,
        cells,
        h=longest,
        width=width,
        n_samples=_ending_in(cells, t),
        n_steps=n_steps,
        n_blocks=np.maximum(n_steps, _ending_in(cells, t[1::width])),
        linear=path.linear,
        shares=shares,
        uneven=uneven,
        repeats=repeats(path.u),
        crowds=None if uneven is None else _crowds(t, cells),
        lost=None if uneven is None else _lost(t, cells),
        convolution=path.convolution,
    )
    return run, samples_around(t, cells)


def _ending_in(cells: Array, t: Array) -> Array:
    """How many of ascending times lie in each cell, of its ends the last included."""
    return np.diff(np.searchsorted(t, cells, side="right")).astype(np.float64)


def _state_sizes(path: ExactPath, run: ExactRun, around: NDArray[np.intp], *, with_rates: bool) -> tuple[Array, Array]:
    """The largest |z| by modes `(batch, cells, modes)` in each cell and, where asked for, |ẏ| around samples."""
    arrays = run.arrays
    batch, n_cells = len(path.u), len(around)
    sizes = np.zeros((batch, n_cells, arrays.system.n_states))
    rates = np.zeros((batch, n_cells, arrays.system.n_outputs))
    for own, z in path.sampled_states.pieces():
        take_largest(sizes, np.abs(z), own, around)
        if with_rates:
            take_largest(rates, _rates_before(path, run, own, z), own, around)
    return arrays.modes(sizes), rates


def _rates_before(path: ExactPath, run: ExactRun, own: slice, z: Array) -> Array:
    """How fast outputs move from just before the samples of a piece to the next ones, |C e^{Fs} (F z + G u)|.

    e^{Fs} of a pair keeps its modulus, of a coupled block it is bounded entry by entry.
    """
    arrays, system = run.arrays, run.arrays.system
    before = np.arange(own.start, own.stop) - (0 if path.linear else 1)
    u = path.u[:, np.maximum(before, 0)]
    v, parts = unpack(system, z)
    of_blocks = [part @ block.F.T for part, block in zip(parts, system.blocks, strict=True)]
    moving = pack(system, v * system.rates, of_blocks) + u @ arrays.G.T
    # What hardly turns between two samples is seen at them, with its sign and as far as it turns; of all else the size.
    is_slow = arrays.speeds * path.samples.longest_step < _SEEN_AT_SAMPLES
    seen = arrays.packed(is_slow.astype(np.float64))
    share = np.where(is_slow, _MORE_BETWEEN * arrays.speeds * path.samples.longest_step, 1.0)
    sizes = arrays.modes(np.abs(moving))
    for modes, steps in run.kinds[1:]:
        if isinstance(steps, DenseSteps) and not is_slow[modes].any():
            sizes[..., modes] = sizes[..., modes] @ steps.one.reach.T
    rates = np.abs((moving * seen) @ arrays.C.T) + (sizes * share) @ arrays.mode_outputs.T
    rates[:, : 1 if own.start == 0 else 0] = 0.0  # the first sample stands where it stands
    return np.asarray(rates)


def _late(by: Array, rates: Array, u: Array, around: NDArray[np.intp]) -> Late:
    """What samples do that stand so far from their places `(samples,)`, signal by signal."""
    changes = np.pad(np.abs(np.diff(u, axis=0)), ((1, 1), (0, 0)))
    moved = by[:, None] * np.maximum(changes[:-1], changes[1:])  # a line changes at the samples before and behind
    cells = [slice(first, last + 1) for first, last in around.tolist()]
    return Late(
        np.array([by[own].max() for own in cells])[:, None] * rates,
        np.array([moved[own].max(axis=0) for own in cells]),
        np.array([moved[own].sum(axis=0) for own in cells]),
    )


def _crowds(t: Array, cells: Array) -> Crowds:
    """How close steps stand in each cell."""
    return crowds_of(t[1:], cells_of_steps(t, cells), n_cells=len(cells) - 1, cell=length_of(cells))


def _lost(t: Array, cells: Array) -> Array | None:
    """What rounding took from the lengths of the steps in each cell; None where it took nothing."""
    lost = np.abs(exact_sum(t[1:], -t[:-1])[1])
    if not lost.any():
        return None
    return np.asarray(np.bincount(cells_of_steps(t, cells), weights=lost, minlength=len(cells) - 1), dtype=np.float64)


def _off_grid(path: ExactPath) -> Array | None:
    """How far each sample stands from its place on an even grid; None where all stand in their places."""
    samples = path.samples
    if samples.step is None:
        return None
    t = samples.t
    since, lost_since = exact_sum(t, -t[:1])  # a double may stand far from zero and its step be tiny
    place, lost = exact_product(np.arange(len(t), dtype=np.float64), np.float64(samples.step))
    by = np.abs((since - place) + (lost_since - lost))
    return by if by.any() else None


def _moved_by_input(run: ExactRun, off: float) -> Array:
    """What an input that is off by so much does to the outputs."""
    arrays = run.arrays
    entering = np.full((len(run.cells) - 1, arrays.system.n_inputs), off)
    driven = entering @ arrays.mode_inputs.T
    errors = Committed(np.zeros(driven.shape[1]), np.zeros_like(driven), run.n_steps, driven)
    return np.asarray(run.outputs(errors) + entering @ np.abs(arrays.system.D).T)
