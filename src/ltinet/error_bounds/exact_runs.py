"""Bounds for the exact engine: from a run, and from a network alone."""

import numpy as np
from numpy.typing import NDArray

from ltinet.bounds.certificate import Certificate
from ltinet.bounds.layer_errors import LayerGains, layer_constant, paper_constant
from ltinet.bounds.output_errors import OutputErrorBound
from ltinet.bounds.rounding import bound_rounding
from ltinet.error_bounds.arrays import NetworkArrays, arrays_of
from ltinet.error_bounds.cells import cells_between
from ltinet.solve.exact import ExactEngine, ExactTrajectory

Array = NDArray[np.float64]
_BETWEEN_PROBES = 2.0  # by how much a function may be farther from its lines than at the places looked at


def judge_exact(trajectory: ExactTrajectory, cells: Array) -> tuple[OutputErrorBound, ...]:
    """The bound of every signal of a batch."""
    samples, arrays = trajectory.samples, arrays_of(trajectory.engine)
    gains = arrays.gains(float(cells[-1] - cells[0]))
    largest = np.max(np.abs(samples.u), axis=-2).reshape(len(trajectory.z0), samples.n_inputs)
    steps = np.diff(samples.knots)
    step = float(np.min(steps)) if len(steps) else 1.0  # at a single time there is none
    bounds = []
    starts = trajectory.engine.coordinates.neurons_from_blocks(
        trajectory.engine.system.blocks_from_packed(trajectory.z0)
    )
    for own, z0 in zip(largest, starts, strict=True):
        parts, _ = exact_parts(arrays, gains, largest_input=own, start=z0, step=step, cells=cells)
        if trajectory.convolution is not None:
            parts["rounding"] += trajectory.convolution.rounding(own)
        if trajectory.input_error > 0.0:
            parts["input"] = _moved_by_input(arrays, gains, _BETWEEN_PROBES * trajectory.input_error, cells)
        bounds.append(OutputErrorBound(cells, parts))
    return tuple(bounds)


def certify(engine: ExactEngine, *, horizon: float, n_steps: int) -> Certificate:
    """What the exact engine promises for |u| ≤ 1 and x(0) = 0, without running it."""
    arrays, cells = arrays_of(engine), cells_between(0.0, horizon)
    gains, ones = arrays.gains(horizon), np.ones(arrays.D.shape[1])
    start = np.zeros(arrays.Phi.shape[1])
    step = horizon / n_steps
    parts, size = exact_parts(arrays, gains, largest_input=ones, start=start, step=step, cells=cells)
    convolution = engine.grids.from_rest(step, linear=True, n_times=n_steps + 1)
    if convolution is not None:
        parts["rounding"] += convolution.rounding(ones)
    return Certificate(
        horizon=horizon,
        n_steps=n_steps,
        rounding=np.max(parts["rounding"], axis=0),
        decomposition=np.max(parts["decomposition"], axis=0),
        gain=np.max(size @ np.abs(arrays.Phi).T, axis=0) + np.sum(np.abs(arrays.D), axis=1),
        paper_constants=tuple(paper_constant(own) for own in gains),
        layer_constants=tuple(layer_constant(own) for own in gains),
    )


def exact_parts(
    arrays: NetworkArrays, gains: tuple[LayerGains, ...], *, largest_input: Array, start: Array, step: float,
    cells: Array,
) -> tuple[dict[str, Array], Array]:  # fmt: skip
    """Bounds for inputs of some size, and how large the states can be on every cell."""
    stops = np.cumsum([own.n_states for own in arrays.layers]).tolist()
    found = [
        bound_rounding(
            own, largest_input=largest_input, start=start[stop - layer.n_states : stop], step=step, cells=cells
        )
        for own, layer, stop in zip(gains, arrays.layers, stops, strict=True)
    ]
    size = arrays.joined([own.size for own in found], len(cells) - 1)
    errors = arrays.joined([own.error for own in found], len(cells) - 1)
    return arrays.output_parts(gains, errors, size=size, largest_input=largest_input, start=start, cells=cells), size


def _moved_by_input(arrays: NetworkArrays, gains: tuple[LayerGains, ...], off: float, cells: Array) -> Array:
    """What an input that is off by so much does to the outputs."""
    entering = np.full(arrays.D.shape[1], off)
    moved = [
        own.propagate_in_time(np.tile(np.abs(own.equations.G) @ entering, (len(cells) - 1, 1)), cells=cells)
        for own in gains
    ]
    return np.asarray(arrays.joined(moved, len(cells) - 1) @ np.abs(arrays.Phi).T + np.abs(arrays.D) @ entering)
