"""Bounds for the exact engine: from a run, and from a network alone."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ltinet.bounds.cell_propagation import Committed, DenseKernel, dense_kernel, phi1, scalar_errors
from ltinet.bounds.certificate import Certificate
from ltinet.bounds.layer_errors import layer_constant, paper_constant
from ltinet.bounds.output_errors import OutputErrorBound
from ltinet.bounds.step_rounding import DenseSteps, ScalarSteps, StepSizes, roundings
from ltinet.error_bounds.arrays import arrays_of
from ltinet.error_bounds.engine_arrays import EngineArrays, engine_arrays
from ltinet.solve.convolution import Convolution
from ltinet.solve.exact import ExactEngine, ExactTrajectory
from ltinet.solve.propagators import phi2
from ltinet.tolerances import EPS

Array = NDArray[np.float64]
_CELLS = 32
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
    is_even: bool
    steps_per_time: Array
    """Steps of the recurrence in each cell, per unit of time; none for a convolution."""
    linear: bool
    convolution: Convolution | None = None

    @property
    def cell(self) -> float:
        """Length of a cell."""
        return float(self.cells[1] - self.cells[0])

    @cached_property
    def scalars(self) -> ScalarSteps:
        """The steps of all scalars."""
        own = self.arrays.mode_inputs[: self.arrays.n_scalars]
        return ScalarSteps(self.arrays.system.rates, own, self.h, self.width, self.is_even)

    @cached_property
    def dense(self) -> list[DenseSteps]:
        """The steps of all coupled blocks."""
        return [DenseSteps(block.F, np.abs(block.G), self.h, self.width) for block in self.arrays.system.blocks]

    @cached_property
    def kernels(self) -> list[DenseKernel]:
        """How errors of coupled blocks reach the outputs."""
        horizon, n_cells = float(self.cells[-1] - self.cells[0]), len(self.cells) - 1
        blocks = self.arrays.system.blocks
        return [dense_kernel(block.C, block.F, horizon=horizon, n_cells=n_cells) for block in blocks]

    def between(self, sizes: StepSizes) -> StepSizes:
        """Sizes anywhere, from sizes at samples: within a step a state may be larger than at both ends."""
        arrays, parts = self.arrays, []
        rates = arrays.growth * self.h
        parts.append(
            np.maximum(1.0, np.exp(np.minimum(rates, 700.0))) * sizes.states[:, : arrays.n_scalars]
            + sizes.inputs @ (self.h * phi1(np.minimum(rates, 700.0))[:, None] * self.scalars.inputs).T
        )
        for own, steps in zip(arrays.mode_slices, self.dense, strict=True):
            entering = steps.one.integral @ steps.inputs
            parts.append(sizes.states[:, own] @ steps.one.reach.T + sizes.inputs @ entering.T)
        return StepSizes(np.hstack(parts), sizes.inputs)

    def parts(self, sizes: StepSizes, *, start: Array, off_grid: float, largest_change: Array) -> dict[str, Array]:
        """Bounds on the errors of outputs, `(cells, p)`, for states and inputs of some sizes at the samples."""
        arrays, anywhere = self.arrays, self.between(sizes)
        w = replace(sizes, states=anywhere.states + sizes.inputs @ self._shift.T if self.linear else anywhere.states)
        residuals = arrays.residuals
        packed = arrays.packed(anywhere.states)
        left = arrays.modes(packed @ residuals.per_state.T + anywhere.inputs @ residuals.per_input.T)
        none, nothing = np.zeros_like(left), np.zeros_like(start)
        decomposition = self._outputs(Committed(start, none, self.steps_per_time, left))
        decomposition += packed @ residuals.in_output.T
        if self.convolution is None:
            stepped = np.hstack([own.committed(part) for own, part in self._by_kind(w)])
            begun = EPS * (w.states[0] + start)
            rounding = self._outputs(Committed(begun, stepped, self.steps_per_time, none))
        else:
            rounding = np.zeros_like(decomposition)
        rounding += self._summed(w)
        found = {"rounding": rounding, "decomposition": decomposition}
        if off_grid > 0.0:
            # A sample that stands a little beside the grid: outputs are read, and the input changes, at another time.
            moving = arrays.modes(packed @ np.abs(arrays.F).T) + anywhere.inputs @ arrays.mode_inputs.T
            changes = off_grid * largest_change @ arrays.mode_inputs.T
            moved = self._outputs(Committed(nothing, changes, self._samples_per_time, none))
            found["times"] = moved + off_grid * moving @ arrays.mode_outputs.T
        return found

    @property
    def _samples_per_time(self) -> Array:
        return np.full(len(self.cells) - 1, 1.0 / self.h)

    @cached_property
    def _shift(self) -> Array:
        """|G₁|, by which w differs from the states, (modes × m)."""
        arrays = self.arrays
        with np.errstate(over="ignore", invalid="ignore"):
            factors = self.h * np.abs(phi2(arrays.system.rates * self.h))
        dense = [steps.one.integral @ steps.inputs for steps in self.dense]
        return np.vstack([np.minimum(factors, 1e300)[:, None] * self.scalars.inputs, *dense])

    def _by_kind(self, sizes: StepSizes) -> list[tuple[ScalarSteps | DenseSteps, StepSizes]]:
        slices = [slice(0, self.arrays.n_scalars), *self.arrays.mode_slices]
        kinds: list[ScalarSteps | DenseSteps] = [self.scalars, *self.dense]
        return [
            (steps, StepSizes(sizes.states[:, own], sizes.inputs)) for steps, own in zip(kinds, slices, strict=True)
        ]

    def _outputs(self, errors: Committed) -> Array:
        """What errors on their way into the states do to the outputs."""
        arrays = self.arrays
        scalars = slice(0, arrays.n_scalars)
        moved = scalar_errors(arrays.growth, errors.part(scalars), cell=self.cell)
        total = _weighted(moved, arrays.mode_outputs[:, scalars])
        for own, kernel in zip(arrays.mode_slices, self.kernels, strict=True):
            total = total + kernel.output_errors(errors.part(own))
        return np.asarray(total)

    def _summed(self, sizes: StepSizes) -> Array:
        """Rounding in the sums that make the outputs."""
        arrays = self.arrays
        n_terms = arrays.system.n_states + self.width * arrays.system.n_inputs
        run = self if self.convolution is None else replace(self, width=max(1, 2 * self.convolution.width))
        terms = np.hstack([own.summed(part) for own, part in run._by_kind(sizes)])
        direct = sizes.inputs @ np.abs(arrays.system.D).T
        share = (8.0 + roundings(arrays.system.n_states) + roundings(n_terms)) * EPS
        total = share * (_weighted(terms, arrays.mode_outputs) + direct)
        if self.convolution is not None:
            total += self.convolution.rounding(np.max(sizes.inputs, axis=0))
        return total


def _weighted(sizes: Array, weights: Array) -> Array:
    """Sizes · |weights|ᵀ, in which nothing seen of anything is nothing."""
    with np.errstate(invalid="ignore"):
        return np.asarray(sizes @ weights.T) if np.isfinite(sizes).all() else _careful_product(sizes, weights)


def _careful_product(sizes: Array, weights: Array) -> Array:
    terms = np.where(weights == 0.0, 0.0, np.multiply(sizes[:, None, :], weights, where=weights != 0.0))
    return np.asarray(terms.sum(axis=-1))


def judge_exact(trajectory: ExactTrajectory, start: float, stop: float) -> tuple[OutputErrorBound, ...]:
    """The bound of every signal of a batch."""
    arrays = engine_arrays(trajectory.engine)
    run, numbers = _run_of(trajectory, arrays, start, stop)
    states, inputs, changes = _sizes(trajectory, arrays, run.cells, numbers)
    starts = arrays.start_errors(trajectory.x0, trajectory.z0)
    off_grid = _off_grid(trajectory)
    bounds = []
    for own_states, own_inputs, own_changes, own_start in zip(states, inputs, changes, starts, strict=True):
        sizes = StepSizes(own_states, own_inputs)
        parts = run.parts(sizes, start=own_start, off_grid=off_grid, largest_change=own_changes)
        if trajectory.input_error > 0.0:
            parts["input"] = _moved_by_input(run, _BETWEEN_PROBES * trajectory.input_error)
        bounds.append(OutputErrorBound(run.cells, parts))
    return tuple(bounds)


def _run_of(
    trajectory: ExactTrajectory, arrays: EngineArrays, start: float, stop: float
) -> tuple[ExactRun, NDArray[np.intp]]:
    """How a trajectory went through time, and for every cell the samples around it: the first of them."""
    samples, width = trajectory.samples, trajectory.grid_width
    n_steps = max(1, (len(samples.t) - 1) // width)
    n_cells = min(_CELLS, n_steps) if stop > start else 1
    cells = np.linspace(start, stop, n_cells + 1) if stop > start else start + np.array([0.0, EPS * (1 + abs(start))])
    first = np.searchsorted(samples.t, cells[:-1], side="right") - 1
    last = np.searchsorted(samples.t, cells[1:], side="left")
    lengths = np.diff(samples.t)
    longest = float(np.max(lengths, initial=0.0)) if samples.step is None else samples.step
    counts = np.maximum(1, (last - first) / width)
    run = ExactRun(
        arrays,
        cells,
        h=longest or 1.0,
        width=width,
        is_even=samples.step is not None,
        steps_per_time=counts / (cells[1] - cells[0]) if stop > start else np.zeros(1),
        linear=trajectory.linear,
        convolution=trajectory.convolution,
    )
    return run, np.column_stack([np.maximum(first, 0), np.minimum(last, len(samples.t) - 1)])


def _sizes(
    trajectory: ExactTrajectory, arrays: EngineArrays, cells: Array, around: NDArray[np.intp]
) -> tuple[Array, Array, Array]:
    """The largest |z| by modes, |u| and change of u in each cell, `(batch, cells, ·)`, both ends included."""
    n_cells, batch = len(cells) - 1, len(trajectory.u)
    packed = np.zeros((batch, n_cells, arrays.system.n_states))
    for own, z in trajectory.sampled_states.pieces():
        for cell, (first, last) in enumerate(around.tolist()):
            begin, end = max(first, own.start), min(last + 1, own.stop)
            if begin < end:
                largest = np.abs(z[:, begin - own.start : end - own.start]).max(axis=1)
                np.maximum(packed[:, cell], largest, out=packed[:, cell])
    inputs, changes = np.zeros((2, batch, n_cells, trajectory.samples.n_inputs))
    for cell, (first, last) in enumerate(around.tolist()):
        values = trajectory.u[:, first : last + 1]
        inputs[:, cell] = np.abs(values).max(axis=1)
        changes[:, cell] = np.abs(np.diff(values, axis=1)).max(axis=1, initial=0.0)
    return arrays.modes(packed), inputs, changes


def _off_grid(trajectory: ExactTrajectory) -> float:
    """How far a sample stands from its place on an even grid."""
    samples = trajectory.samples
    if samples.step is None:
        return 0.0
    since = samples.t - samples.t[0]
    return float(np.max(np.abs(since - np.arange(len(since)) * samples.step)))


def certify(engine: ExactEngine, *, horizon: float, n_steps: int) -> Certificate:
    """What the exact engine promises for |u| ≤ 1 and x(0) = 0, without running it."""
    arrays, step = engine_arrays(engine), horizon / n_steps
    convolution = engine.grids.from_rest(step, linear=True, n_times=n_steps + 1)
    width = engine.grids.from_any_state(step, linear=True, n_times=n_steps + 1).width
    n_cells = min(_CELLS, max(1, n_steps // width))
    run = ExactRun(
        arrays,
        cells=np.linspace(0.0, horizon, n_cells + 1),
        h=step,
        width=width,
        is_even=True,
        steps_per_time=np.full(n_cells, 1.0 / (step * width)),
        linear=True,
        convolution=convolution,
    )
    sizes = _largest_sizes(run)
    parts = run.parts(sizes, start=np.zeros(sizes.states.shape[1]), off_grid=0.0, largest_change=sizes.inputs)
    gains = arrays_of(engine).gains(horizon)
    gain = _weighted(sizes.states, arrays.mode_outputs) + np.sum(np.abs(arrays.system.D), axis=1)
    return Certificate(
        horizon=horizon,
        n_steps=n_steps,
        rounding=np.max(parts["rounding"], axis=0),
        decomposition=np.max(parts["decomposition"], axis=0),
        gain=np.max(gain, axis=0),
        paper_constants=tuple(paper_constant(own) for own in gains),
        layer_constants=tuple(layer_constant(own) for own in gains),
    )


def _largest_sizes(run: ExactRun) -> StepSizes:
    """How large the states can be in every cell for inputs up to one, from rest."""
    arrays, n_cells = run.arrays, len(run.cells) - 1
    ones = np.ones((n_cells, arrays.system.n_inputs))
    none = np.zeros((n_cells, arrays.n_scalars))
    entering = ones @ run.scalars.inputs.T
    start = np.zeros(arrays.n_scalars)
    parts = [scalar_errors(arrays.growth, Committed(start, none, run.steps_per_time, entering), cell=run.cell)]
    horizon = float(run.cells[-1])
    for block, steps in zip(arrays.system.blocks, run.dense, strict=True):
        kernel = dense_kernel(np.eye(len(block.F)), block.F, horizon=horizon, n_cells=n_cells)
        driven = ones @ steps.inputs.T
        errors = Committed(np.zeros(len(block.F)), np.zeros_like(driven), run.steps_per_time, driven)
        parts.append(kernel.output_errors(errors))
    return StepSizes(np.hstack(parts), ones)


def _moved_by_input(run: ExactRun, off: float) -> Array:
    """What an input that is off by so much does to the outputs."""
    arrays, n_cells = run.arrays, len(run.cells) - 1
    entering = np.full((n_cells, arrays.system.n_inputs), off)
    driven = entering @ arrays.mode_inputs.T
    errors = Committed(np.zeros(driven.shape[1]), np.zeros_like(driven), run.steps_per_time, driven)
    return np.asarray(run._outputs(errors) + entering @ np.abs(arrays.system.D).T)
