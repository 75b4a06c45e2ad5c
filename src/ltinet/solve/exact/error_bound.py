"""Bounds for the exact engine, from a run."""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.bounds.cell_propagation import Committed, DenseKernel, dense_kernel, scalar_errors
from ltinet.bounds.output_errors import OutputErrorBound
from ltinet.bounds.step_rounding import DenseSteps, ScalarSteps, StepSizes, roundings, steps_within
from ltinet.once import cached_property
from ltinet.solve.exact.engine_arrays import EngineArrays, engine_arrays
from ltinet.solve.exact.path import ExactPath
from ltinet.solve.exact.sizes import repeats, running_max, window_sums
from ltinet.solve.exact.uneven_steps import UnevenErrors, shares_of_lengths, uneven_errors
from ltinet.solve.exact.user_kernel import user_kernel
from ltinet.solve.modal import DenseBlock
from ltinet.solve.steps.convolution import Convolution
from ltinet.solve.steps.packing import pack, unpack
from ltinet.solve.steps.propagators import exact_product, matrix_steps, phi2
from ltinet.tolerances import EPS

_CELLS, _MOST_CELLS = 32, 256
_LARGEST = 1e300  # what takes the place of a number that is not finite
_FACTORS_OF_STATES = 1.0  # eps, beside sums, where outputs are C z of a state: a product ½, the last sum ½
_FACTORS = 3.2  # eps, beside sums: an exponential 1, what its exponent lost ½, a complex product √5/2, the last sum ½
_BETWEEN_PROBES = 2.0  # by how much a function may be farther from its lines than at the places looked at


@dataclass(frozen=True, eq=False)
class ExactRun:
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
    linear: bool
    shares: Array | None = None
    """On uneven times: which share of the steps in each cell is about as long as h, h/2, h/4, …"""
    uneven: UnevenErrors | None = None
    """On uneven times: how far the engine's own steps are off."""
    repeats: bool = True
    """Whether some inputs are held for many samples; without knowing them, they may be."""
    convolution: Convolution | None = None

    @property
    def cell(self) -> float:
        """Length of a cell."""
        return float(self.cells[1] - self.cells[0])

    @property
    def window(self) -> int:
        """How many samples a sum takes together."""
        return self.width if self.convolution is None else 2 * self.convolution.width

    @cached_property
    def kinds(self) -> list[tuple[slice, ScalarSteps | DenseSteps]]:
        """Which modes step how."""
        arrays = self.arrays
        scalars = slice(0, arrays.n_scalars)
        inputs, outputs = arrays.mode_inputs[scalars], arrays.mode_outputs[:, scalars]
        width = self.window
        doubled = 1 << (width - 1).bit_length()  # exponentials of blocks are known at powers of two
        first = ScalarSteps(
            arrays.system.rates, inputs, outputs, self.h, width, is_even=self.shares is None, repeats=self.repeats
        )
        dense = [
            DenseSteps(
                block.F,
                np.abs(block.G),
                block.C,
                self.h,
                doubled,
                self.shares,
                self.repeats,
                partial(_exponential, block),
            )
            for block in arrays.system.blocks
        ]
        return [(scalars, first), *zip(arrays.mode_slices, dense, strict=True)]

    @cached_property
    def kernels(self) -> list[DenseKernel]:
        """How errors of coupled blocks reach the outputs."""
        horizon, n_cells = float(self.cells[-1] - self.cells[0]), len(self.cells) - 1
        blocks = self.arrays.system.blocks
        return [dense_kernel(block.C, block.F, horizon=horizon, n_cells=n_cells) for block in blocks]

    def sizes(self, states: Array, inputs: Array, *, summed: Array, norms: Array) -> StepSizes:
        """Sizes of states and inputs at samples, and over as many cells as a step is long."""
        steps = 1 if self.window == 1 else 2  # what faded in one was there at the beginning of the one before
        n_behind = min(math.ceil((steps * self.window - 1) * self.h / self.cell), len(states) - 1)
        return StepSizes(states, running_max(states, n_behind), running_max(inputs, n_behind), summed, norms)

    @cached_property
    def user_kernel(self) -> DenseKernel:
        """How errors in the user's states reach the outputs."""
        if self.arrays.basis is None:
            raise ValueError("a network without a form has no states but its own")
        _, X_inv = self.arrays.basis
        return user_kernel(self.arrays, X_inv, self.kernels, cell=self.cell, n_cells=len(self.cells) - 1)

    def parts(
        self, sizes: StepSizes, *, start: Array, user_start: Array, late: "Late | None" = None
    ) -> dict[str, Array]:
        """Bounds on the errors of outputs, `(cells, p)`, for states and inputs of some sizes at the samples."""
        arrays, residuals = self.arrays, self.arrays.residuals
        inside = np.hstack([steps.inside(sizes.part(own)) for own, steps in self.kinds])
        packed = arrays.packed(inside)
        left = arrays.modes(packed @ residuals.per_state.T + sizes.inputs @ residuals.per_input.T)
        none = np.zeros_like(left)
        decomposition = self.outputs(Committed(start, none, self.n_steps, left))
        user = residuals.in_user_states
        if user is not None:
            left = packed @ user.per_state.T + sizes.inputs @ user.per_input.T
            errors = Committed(user_start, np.zeros_like(left), self.n_steps, left)
            decomposition = np.fmin(decomposition, self.user_kernel.output_errors(errors, cell=self.cell))
        decomposition += packed @ residuals.in_output.T
        found = {"rounding": self._rounding(self._shifted(sizes)), "decomposition": np.zeros_like(decomposition)}
        found[residuals.part] += decomposition
        if late is not None:
            # A sample beside its place on the grid: the step before it ends, and the input changes, at another time.
            changes = np.hstack([late.changes @ steps.moved_by_sample(linear=self.linear).T for _, steps in self.kinds])
            moved = self.outputs(Committed(none[0], late.by * changes, self.n_samples, none))
            found["times"] = moved + late.by * late.rates
        return found

    def _shifted(self, sizes: StepSizes) -> StepSizes:
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

    def _rounding(self, sizes: StepSizes) -> Array:
        """Rounding in the steps, and in the sums that make the outputs."""
        sums = self._sums(sizes)
        if self.convolution is not None:  # outputs between samples come from steps
            by_steps = replace(self, convolution=None)._rounding(sizes)
            return np.maximum(sums + self.convolution.rounding(sizes.norms), by_steps)
        stepped = np.hstack([steps.committed(sizes.part(own)) for own, steps in self.kinds])
        if self.uneven is not None:
            stepped = stepped + self.uneven.committed(sizes)
        begun = EPS * sizes.here[0]
        return np.asarray(sums + self.outputs(Committed(begun, stepped, self.n_steps, np.zeros_like(stepped))))

    def _sums(self, sizes: StepSizes) -> Array:
        """Rounding of the sums that make the outputs, or the responses that inputs are convolved with."""
        system = self.arrays.system
        n, m = system.n_states, system.n_inputs
        n_within = steps_within(self.width) if self.convolution is None else 0.0
        if self.convolution is not None:  # responses are sums over states; what transforms add is counted elsewhere
            share = (_FACTORS + roundings(n)) * EPS
        elif self.window == 1:  # outputs are C z + D u
            share = (_FACTORS_OF_STATES + roundings(n + m)) * EPS
        else:  # responses as before, then sums over them and over states
            share = (_FACTORS + roundings(n) + roundings(n + self.width * m)) * EPS
        total = share * (sizes.inputs @ np.abs(system.D).T)
        for own, steps in self.kinds:
            total = total + steps.in_outputs(sizes.part(own), share=share, n_within=n_within)
        return np.asarray(total)

    def outputs(self, errors: Committed) -> Array:
        """What errors on their way into the states do to the outputs."""
        arrays = self.arrays
        scalars = slice(0, arrays.n_scalars)
        moved = scalar_errors(arrays.growth, errors.part(scalars), cell=self.cell)
        total = weighted(moved, arrays.mode_outputs[:, scalars])
        for own, kernel in zip(arrays.mode_slices, self.kernels, strict=True):
            total = total + kernel.output_errors(errors.part(own), cell=self.cell)
        return np.asarray(total)


def _exponential(block: DenseBlock, length: float) -> Array:
    """The engine's e^{Fh} of a coupled block."""
    return np.asarray(matrix_steps(block.F, block.G, np.array([length]), linear=True).P[0])


class Late(NamedTuple):
    """Samples that stand up to a time `by` beside an even grid, and what changes in that time, cell by cell."""

    by: float
    rates: Array
    """How fast outputs move just before a sample, `(cells, p)`."""
    changes: Array
    """The largest change of u from one sample to the next."""


def weighted(sizes: Array, weights: Array) -> Array:
    """Sizes · |weights|ᵀ, in which nothing seen of anything is nothing."""
    with np.errstate(invalid="ignore"):
        return np.asarray(sizes @ weights.T) if np.isfinite(sizes).all() else _careful_product(sizes, weights)


def _careful_product(sizes: Array, weights: Array) -> Array:
    return np.asarray(np.where(weights == 0.0, 0.0, sizes[:, None, :] * weights).sum(axis=-1))


def or_infinite(values: Array) -> Array:
    """What is no number because it was too large on the way is infinite."""
    return np.where(np.isnan(values), np.inf, values)


# States that grow may exceed all numbers where they are bounded from above: an infinite bound says so.
QUIETLY = np.errstate(over="ignore", invalid="ignore", divide="ignore")


@QUIETLY
def judge_exact(path: ExactPath, start: float, stop: float) -> tuple[OutputErrorBound, ...]:
    """The bound of every signal of a batch."""
    arrays = engine_arrays(path.prepared)
    run, around = _run_of(path, arrays, start, stop)
    late_by = _off_grid(path)
    states, rates = _state_sizes(path, arrays, around, with_rates=late_by > 0.0)
    starts, user_starts = arrays.start_errors(path.x0, path.z0)
    bounds = []
    for member, (own_start, user_start) in enumerate(zip(starts, user_starts, strict=True)):
        u = path.u[member]
        inputs = np.array([np.abs(u[first : last + 1]).max(axis=0) for first, last in around.tolist()])
        late = None
        if late_by > 0.0:
            pairs = [np.diff(u[first : last + 1], axis=0) for first, last in around.tolist()]
            late = Late(late_by, rates[member], np.array([np.abs(own).max(axis=0, initial=0.0) for own in pairs]))
        sums, norms = window_sums(u, run.window, around), np.linalg.norm(u, axis=0)
        sizes = run.sizes(states[member], inputs, summed=sums, norms=norms)
        parts = run.parts(sizes, start=own_start, user_start=user_start, late=late)
        if path.input_error > 0.0:
            parts["input"] = _moved_by_input(run, _BETWEEN_PROBES * path.input_error)
        bounds.append(OutputErrorBound(run.cells, {name: or_infinite(part) for name, part in parts.items()}))
    return tuple(bounds)


def _run_of(path: ExactPath, arrays: EngineArrays, start: float, stop: float) -> tuple[ExactRun, NDArray[np.intp]]:
    """How a trajectory went through time, and for every cell the first and last of the samples around it."""
    t, step, width = path.samples.t, path.samples.step, path.grid_width
    cells = cells_of(arrays, start, stop, n_samples=len(t))
    first = np.searchsorted(t, cells[:-1], side="right") - 1
    last = np.searchsorted(t, cells[1:], side="left")
    ends = np.searchsorted(t[::width], cells, side="right")
    longest = step or float(np.max(np.diff(t), initial=0.0)) or 1.0
    shares = None if step is not None else shares_of_lengths(t, cells, longest)
    uneven = None
    if shares is not None and arrays.system.n_states:
        uneven = uneven_errors(path.any_length, arrays.mode_slices, longest=longest, shares=shares)
    run = ExactRun(
        arrays,
        cells,
        h=longest,
        width=width,
        n_samples=np.diff(np.searchsorted(t, cells, side="right")).astype(np.float64),
        n_steps=np.diff(ends).astype(np.float64),
        linear=path.linear,
        shares=shares,
        uneven=uneven,
        repeats=repeats(path.u),
        convolution=path.convolution,
    )
    return run, np.column_stack([np.maximum(first, 0), np.minimum(last, len(t) - 1)])


def cells_of(arrays: EngineArrays, start: float, stop: float, *, n_samples: int) -> Array:
    """Edges of equal cells, more of them where states grow: errors grow from where they enter, not from the cell."""
    if not stop > start:
        return start + np.array([0.0, EPS * (1.0 + abs(start))])
    fastest = float(np.max(np.concatenate([arrays.growth, arrays.system.slowest_of_blocks]), initial=0.0))
    wanted = min(max(_CELLS, math.ceil(fastest * (stop - start))), _MOST_CELLS)
    return np.linspace(start, stop, max(1, min(wanted, n_samples - 1)) + 1)


def _state_sizes(
    path: ExactPath, arrays: EngineArrays, around: NDArray[np.intp], *, with_rates: bool
) -> tuple[Array, Array]:
    """The largest |z| by modes `(batch, cells, modes)` in each cell and, where asked for, |ẏ| just before samples."""
    batch, n_cells = len(path.u), len(around)
    sizes = np.zeros((batch, n_cells, arrays.system.n_states))
    rates = np.zeros((batch, n_cells, arrays.system.n_outputs))
    for own, z in path.sampled_states.pieces():
        size, moving = np.abs(z), np.abs(_rates_before(path, arrays, own, z)) if with_rates else None
        for cell, (first, last) in enumerate(around.tolist()):
            inside = slice(max(first - own.start, 0), max(min(last + 1, own.stop) - own.start, 0))
            if inside.start < inside.stop:
                np.maximum(sizes[:, cell], size[:, inside].max(axis=1), out=sizes[:, cell])
                if moving is not None:
                    np.maximum(rates[:, cell], moving[:, inside].max(axis=1), out=rates[:, cell])
    return arrays.modes(sizes), rates


def _rates_before(path: ExactPath, arrays: EngineArrays, own: slice, z: Array) -> Array:
    """C (F z + G u) just before the samples of a piece."""
    system = arrays.system
    before = np.arange(own.start, own.stop) - (0 if path.linear else 1)
    u = path.u[:, np.maximum(before, 0)]
    v, parts = unpack(system, z)
    moving = [part @ block.F.T for part, block in zip(parts, system.blocks, strict=True)]
    rates = np.asarray((pack(system, v * system.rates, moving) + u @ arrays.G.T) @ arrays.C.T)
    rates[:, : 1 if own.start == 0 else 0] = 0.0  # the first sample stands where it stands
    return rates


def _off_grid(path: ExactPath) -> float:
    """How far a sample stands from its place on an even grid."""
    samples = path.samples
    if samples.step is None:
        return 0.0
    t, start = samples.t, samples.t[0]
    since = t - start
    place, lost = exact_product(np.arange(len(t), dtype=np.float64), np.float64(samples.step))
    # What rounding took from t − t₀ (Knuth 1969): a double may stand far from zero and its step be tiny.
    other = since - t
    lost_since = (t - (since - other)) - (start + other)
    return float(np.max(np.abs((since - place) + (lost_since - lost))))


def _moved_by_input(run: ExactRun, off: float) -> Array:
    """What an input that is off by so much does to the outputs."""
    arrays = run.arrays
    entering = np.full((len(run.cells) - 1, arrays.system.n_inputs), off)
    driven = entering @ arrays.mode_inputs.T
    errors = Committed(np.zeros(driven.shape[1]), np.zeros_like(driven), run.n_steps, driven)
    return np.asarray(run.outputs(errors) + entering @ np.abs(arrays.system.D).T)
