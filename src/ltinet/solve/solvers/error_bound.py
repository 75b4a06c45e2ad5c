"""Bounds for runs by solvers, and what the error of each neuron does to the outputs."""

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.allocation import neuron_shares
from ltinet.bounds.collocation import PieceValues, Rule
from ltinet.bounds.dense_output import bound_layer
from ltinet.bounds.layer_errors import LayerEquations, LayerGains
from ltinet.bounds.output_errors import OutputErrorBound
from ltinet.bounds.record import DenseOutput, LayerRecord, piece_grid
from ltinet.bounds.rounding import bound_rounding
from ltinet.signals.signal import Signal
from ltinet.solve.network_arrays import NetworkArrays
from ltinet.solve.solvers.function_pieces import Look, cut_for, look_at
from ltinet.solve.solvers.layer_path import LayerRun
from ltinet.solve.solvers.path import SolverPath


def judge_solvers(path: SolverPath, cells: Array) -> tuple[OutputErrorBound, ...]:
    """The bound of every signal of a batch."""
    arrays = path.prepared.network_arrays
    gains = arrays.gains(float(cells[-1] - cells[0]))
    bounds = []
    starts = _starts(path, arrays, cells[:1])
    for signal, runs, start in zip(path.signal.unbatched(), path.batches, starts, strict=True):
        look = look_at(signal, float(cells[0]), float(cells[-1]))
        largest = np.maximum(_largest(signal, cells), np.max(np.abs(look.u), axis=0, initial=0.0))
        records = (_record(own.equations, run, signal, largest, look) for own, run in zip(gains, runs, strict=True))
        layers = tuple(bound_layer(own, record, cells=cells) for own, record in zip(gains, records, strict=True))
        size = arrays.joined([own.size for own in layers], len(cells) - 1)
        rest = arrays.joined([own.rest for own in layers], len(cells) - 1)
        parts = arrays.output_parts(gains, rest, size=size, largest_input=largest, start=start, cells=cells)
        bounds.append(OutputErrorBound(cells, parts, layers, path.prepared.network.Phi))
    return tuple(bounds)


def judge_instant(path: SolverPath, cells: Array) -> tuple[OutputErrorBound, ...]:
    """A single time: nothing was solved, and rounding is that of an exact step."""
    arrays, now = path.prepared.network_arrays, cells[:1]
    gains = arrays.gains(float(cells[1] - cells[0]))
    bounds = []
    for signal, start in zip(path.signal.unbatched(), _starts(path, arrays, now), strict=True):
        largest = np.abs(signal.value(now)[0])
        parts = _instant_parts(arrays, gains, largest_input=largest, start=start, cells=cells)
        bounds.append(OutputErrorBound(cells, parts))
    return tuple(bounds)


def _instant_parts(
    arrays: NetworkArrays, gains: tuple[LayerGains, ...], *, largest_input: Array, start: Array, cells: Array
) -> dict[str, Array]:
    """Rounding of a step that has not been taken: of the states at the start, and of the sums that make outputs."""
    stops = np.cumsum([own.n_states for own in arrays.layers]).tolist()
    found = [
        bound_rounding(
            own, largest_input=largest_input, start=start[stop - layer.n_states : stop], step=1.0, cells=cells
        )
        for own, layer, stop in zip(gains, arrays.layers, stops, strict=True)
    ]
    size = arrays.joined([own.size for own in found], len(cells) - 1)
    errors = arrays.joined([own.error for own in found], len(cells) - 1)
    return arrays.output_parts(gains, errors, size=size, largest_input=largest_input, start=start, cells=cells)


def neuron_shares_of(path: SolverPath) -> Array:
    """What the error of each neuron does to the worst output of a run, layer after layer, `(n_neurons,)`."""
    arrays, network = path.prepared.network_arrays, path.prepared.network
    largest = np.zeros(network.n_neurons)
    for signal, runs in zip(path.signal.unbatched(), path.batches, strict=True):
        shares, sizes = [np.zeros(0)], np.zeros(network.n_inputs)  # rounding has no share
        breaks = runs[0].paths[0].breaks if runs else np.zeros(1)
        look = look_at(signal, float(breaks[0]), float(breaks[-1]))
        for equations, run, Phi in zip(arrays.layers, runs, network.Phi, strict=True):
            own = neuron_shares(equations, _record(equations, run, signal, sizes, look), Phi)
            shares.append(np.max(own, axis=1, initial=0.0))
        largest = np.maximum(largest, np.concatenate(shares))
    return largest


def _starts(path: SolverPath, arrays: NetworkArrays, now: Array) -> Array:
    """The states z at the first time for every signal of a batch, `(batch, n)`."""
    z = path.neuron_states(now) - path.signal.value(now) @ arrays.J.T
    return z.reshape(len(path.batches), arrays.Phi.shape[1])


def _record(equations: LayerEquations, run: LayerRun, signal: Signal, largest_input: Array, look: Look) -> LayerRecord:
    """What a run of a layer left behind, as bounds take it."""
    outputs = tuple(DenseOutput(path.breaks, path.coefficients) for path in run.paths)
    grid, rule = piece_grid(outputs, signal.knots)
    grid = cut_for(signal, look, grid, rule) if len(look.t) else grid
    n = equations.n_states
    both = _on_pieces(signal, np.vstack([equations.G, equations.J]), grid=grid, rule=rule)
    return LayerRecord(
        outputs,
        grid,
        rule,
        forcing=PieceValues(both.start[:, :n], both.nodes[:, :, :n]),
        shift=PieceValues(both.start[:, n:], both.nodes[:, :, n:]),
        forcing_size=np.abs(equations.G) @ largest_input,
        shift_size=np.abs(equations.J) @ largest_input,
    )


def _on_pieces(signal: Signal, weights: Array, *, grid: Array, rule: Rule) -> PieceValues:
    """Weights · u on all pieces; samples are straight lines there."""
    if signal.degree is not None and signal.degree <= 1:
        few = signal.through(weights)
        start, end = few.value(grid[:-1]), few.value_before(grid[1:])
        rise = end - start if signal.degree == 1 else np.zeros_like(start)
        return PieceValues(start, start[:, None] + rule.nodes[:, None] * rise[:, None])
    start, end = signal.value(grid[:-1]), signal.value_before(grid[1:])
    times = grid[:-1, None] + np.diff(grid)[:, None] * rule.nodes[:-1]
    inside = signal.value(times.ravel()).reshape(*times.shape, signal.n_inputs)
    return PieceValues(start @ weights.T, np.concatenate([inside, end[:, None]], axis=1) @ weights.T)


def _largest(signal: Signal, cells: Array) -> Array:
    """The largest |u| of every channel: at knots of samples, at many times of a function."""
    knots = signal.knots[(signal.knots >= cells[0]) & (signal.knots <= cells[-1])]
    times = np.concatenate([cells[:-1], knots])
    return np.asarray(np.max(np.maximum(np.abs(signal.value(times)), np.abs(signal.value_before(times))), axis=0))
