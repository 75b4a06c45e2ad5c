"""Where solutions meet bounds: what an engine did, put into the arrays that bounds are made from."""

from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet.bounds.allocation import neuron_shares
from ltinet.bounds.certificate import Certificate
from ltinet.bounds.collocation import PieceValues, Rule
from ltinet.bounds.decomposition import Mismatch, bound_decomposition, measure_mismatch
from ltinet.bounds.dense_output import bound_layer
from ltinet.bounds.layer_errors import (
    LayerEquations,
    LayerGains,
    layer_constant,
    layer_gains,
    layer_places,
    paper_constant,
)
from ltinet.bounds.output_errors import OutputErrorBound
from ltinet.bounds.record import DenseOutput, LayerRecord, piece_grid
from ltinet.bounds.rounding import bound_rounding
from ltinet.network.network import Network
from ltinet.network.realisation import realise_layer
from ltinet.signals.as_signal import Signal
from ltinet.signals.sampled import SampledSignal
from ltinet.solve.exact import ExactEngine, ExactTrajectory
from ltinet.solve.layer_path import LayerRun
from ltinet.solve.solution import Trajectory
from ltinet.solve.solver_engine import SolverTrajectory, unbatched
from ltinet.tolerances import EPS

Array = NDArray[np.float64]
_CELLS = 128  # parts of the horizon between which bounds that are not followed in time may differ
_BETWEEN_PROBES = 2.0  # by how much a function may be farther from its lines than at the places looked at


@dataclass(frozen=True, eq=False)
class SolutionErrorBound:
    """The bounds of all signals of a batch."""

    bounds: tuple[OutputErrorBound, ...]
    batch_shape: tuple[int, ...]

    def at(self, t: Array) -> dict[str, Array]:
        """The parts at any times, `(..., len(t), p)` each."""
        return self._stacked([bound.at(t) for bound in self.bounds])

    def overall(self) -> dict[str, Array]:
        """The parts over all times, `(..., p)` each."""
        return self._stacked([bound.overall() for bound in self.bounds])

    def _stacked(self, parts: list[dict[str, Array]]) -> dict[str, Array]:
        return {
            name: np.stack([own[name] for own in parts]).reshape(*self.batch_shape, *parts[0][name].shape)
            for name in parts[0]
        }


def judge(trajectory: Trajectory, *, start: float, stop: float) -> SolutionErrorBound:
    """A bound on the error of a solution between two times, whichever engine it came from."""
    cells = np.linspace(start, stop, _CELLS + 1) if stop > start else np.array([start, np.nextafter(start, np.inf)])
    if isinstance(trajectory, SolverTrajectory):
        return _judge_solvers(trajectory, cells) if stop > start else _judge_instant(trajectory, cells)
    if isinstance(trajectory, ExactTrajectory):
        return _judge_exact(trajectory, cells)
    raise TypeError(f"no bounds are known for a {type(trajectory).__name__}")


def certify(engine: ExactEngine, *, horizon: float, n_steps: int) -> Certificate:
    """What the exact engine promises for |u| ≤ 1 and x(0) = 0, without running it."""
    arrays, cells = arrays_of(engine), np.linspace(0.0, horizon, _CELLS + 1)
    gains, ones = arrays.gains(horizon), np.ones(arrays.D.shape[1])
    start = np.zeros(arrays.Phi.shape[1])
    parts, size = _exact_parts(arrays, gains, largest_input=ones, start=start, step=horizon / n_steps, cells=cells)
    return Certificate(
        horizon=horizon,
        n_steps=n_steps,
        rounding=np.max(parts["rounding"], axis=0),
        decomposition=np.max(parts["decomposition"], axis=0),
        gain=np.max(size @ np.abs(arrays.Phi).T, axis=0) + np.sum(np.abs(arrays.D), axis=1),
        paper_constants=tuple(paper_constant(own) for own in gains),
        layer_constants=tuple(layer_constant(own) for own in gains),
    )


def neuron_shares_of(trajectory: Trajectory) -> Array:
    """What the error of each neuron does to the worst output of a run by solvers, layer after layer, `(n_neurons,)`."""
    if not isinstance(trajectory, SolverTrajectory):
        raise TypeError("only runs by solvers have errors of single neurons")
    arrays, network = arrays_of(trajectory.engine), trajectory.engine.network
    largest = np.zeros(network.n_neurons)
    for signal, runs in zip(unbatched(trajectory.signal), trajectory.batches, strict=True):
        shares, sizes = [np.zeros(0)], np.zeros(network.n_inputs)  # rounding has no share
        for equations, run, Phi in zip(arrays.layers, runs, network.Phi, strict=True):
            own = neuron_shares(equations, _record(equations, run, signal, sizes), Phi)
            shares.append(np.max(own, axis=1, initial=0.0))
        largest = np.maximum(largest, np.concatenate(shares))
    return largest


@dataclass(frozen=True, eq=False)
class NetworkArrays:
    """A network as bounds take it: y = Phi z + D u."""

    engine_form: tuple[Array, Array, Array] | None
    """A, and the matrices between the states x of the system and z; None if there is no system."""
    B: Array | None
    C: Array | None
    layers: tuple[LayerEquations, ...]
    Phi: Array
    D: Array
    Psi: Array

    @cached_property
    def mismatch(self) -> Mismatch | None:
        """How far the network is from its system; measured once."""
        if self.engine_form is None:
            return None
        A, X, X_inv = self.engine_form
        F, G = linalg.block_diag(*(own.F for own in self.layers)), np.vstack([own.G for own in self.layers])
        return measure_mismatch(A, X, X_inv, F=F, G=G, Phi=self.Phi, B=self.B, C=self.C)

    @cached_property
    def J(self) -> Array:
        """(ξ, ξ̇) = z + J u."""
        return np.vstack([np.zeros((0, self.D.shape[1])), *(own.J for own in self.layers)])

    def gains(self, horizon: float) -> tuple[LayerGains, ...]:
        """The gains of all layers."""
        return tuple(layer_gains(own, horizon=horizon) for own in self.layers)

    def joined(self, values: list[Array], n_cells: int) -> Array:
        """Values of all layers side by side, `(cells, n)`."""
        return np.hstack([np.zeros((n_cells, 0)), *values])


_KNOWN: WeakKeyDictionary[ExactEngine, NetworkArrays] = WeakKeyDictionary()


def arrays_of(engine: ExactEngine) -> NetworkArrays:
    """The arrays of an engine's network, made once."""
    if engine not in _KNOWN:
        _KNOWN[engine] = _make_arrays(engine)
    return _KNOWN[engine]


def _make_arrays(engine: ExactEngine) -> NetworkArrays:
    network, form, coordinates = engine.network, engine.form, engine.coordinates
    layers = layer_equations(network)
    Phi = np.hstack([np.zeros((network.n_outputs, 0)), *network.Phi])
    J = np.vstack([np.zeros((0, network.n_inputs)), *(own.J for own in layers)])
    system = None
    if form is not None and coordinates.to_blocks is not None and coordinates.to_network is not None:
        X = np.asarray((coordinates.to_blocks.T @ form.T.T).T)
        system = form.original, X, np.asarray(coordinates.to_network @ form.T_inv)
    B, C = (None, None) if engine.origin is None else (engine.origin.B, engine.origin.C)
    return NetworkArrays(system, B, C, layers, Phi, network.Psi + Phi @ J, network.Psi)


def layer_equations(network: Network) -> tuple[LayerEquations, ...]:
    """The equations of all layers."""
    return tuple(
        LayerEquations(*realise_layer(layer), places=layer_places(layer.is_second_order)) for layer in network.layers
    )


def _judge_exact(trajectory: ExactTrajectory, cells: Array) -> SolutionErrorBound:
    samples, arrays = trajectory.samples, arrays_of(trajectory.engine)
    gains = arrays.gains(float(cells[-1] - cells[0]))
    largest = np.max(np.abs(samples.u), axis=-2).reshape(len(trajectory.z0), samples.n_inputs)
    steps = np.diff(samples.knots)
    step = float(np.min(steps)) if len(steps) else float(cells[-1] - cells[0])
    bounds = []
    for own, z0 in zip(largest, trajectory.z0, strict=True):
        parts, _ = _exact_parts(arrays, gains, largest_input=own, start=z0, step=step, cells=cells)
        if trajectory.input_error > 0.0:
            parts["input"] = _moved_by_input(arrays, gains, _BETWEEN_PROBES * trajectory.input_error, cells)
        bounds.append(OutputErrorBound(cells, parts))
    return SolutionErrorBound(tuple(bounds), samples.batch_shape)


def _exact_parts(
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
    return _parts(arrays, gains, errors, size=size, largest_input=largest_input, start=start, cells=cells), size


def _moved_by_input(arrays: NetworkArrays, gains: tuple[LayerGains, ...], off: float, cells: Array) -> Array:
    """What an input that is off by so much does to the outputs."""
    entering = np.full(arrays.D.shape[1], off)
    moved = [
        own.propagate_in_time(np.tile(np.abs(own.equations.G) @ entering, (len(cells) - 1, 1)), cells=cells)
        for own in gains
    ]
    return np.asarray(arrays.joined(moved, len(cells) - 1) @ np.abs(arrays.Phi).T + np.abs(arrays.D) @ entering)


def _judge_solvers(trajectory: SolverTrajectory, cells: Array) -> SolutionErrorBound:
    arrays = arrays_of(trajectory.engine)
    gains = arrays.gains(float(cells[-1] - cells[0]))
    bounds = []
    starts = _starts(trajectory, arrays, cells[:1])
    for signal, runs, start in zip(unbatched(trajectory.signal), trajectory.batches, starts, strict=True):
        largest = _largest(signal, cells)
        records = (_record(own.equations, run, signal, largest) for own, run in zip(gains, runs, strict=True))
        layers = tuple(bound_layer(own, record, cells=cells) for own, record in zip(gains, records, strict=True))
        size = arrays.joined([own.size for own in layers], len(cells) - 1)
        rest = arrays.joined([own.rest for own in layers], len(cells) - 1)
        parts = _parts(arrays, gains, rest, size=size, largest_input=largest, start=start, cells=cells)
        bounds.append(OutputErrorBound(cells, parts, layers, trajectory.engine.network.Phi))
    return SolutionErrorBound(tuple(bounds), trajectory.signal.batch_shape)


def _judge_instant(trajectory: SolverTrajectory, cells: Array) -> SolutionErrorBound:
    """A single time: nothing was solved, and rounding is that of an exact step."""
    arrays, now, width = arrays_of(trajectory.engine), cells[:1], float(cells[1] - cells[0])
    gains = arrays.gains(width)
    bounds = []
    for signal, start in zip(unbatched(trajectory.signal), _starts(trajectory, arrays, now), strict=True):
        largest = np.abs(signal.value(now)[0])
        parts, _ = _exact_parts(arrays, gains, largest_input=largest, start=start, step=width, cells=cells)
        bounds.append(OutputErrorBound(cells, parts))
    return SolutionErrorBound(tuple(bounds), trajectory.signal.batch_shape)


def _starts(trajectory: SolverTrajectory, arrays: NetworkArrays, now: Array) -> Array:
    """z at the first time for every signal of a batch, `(batch, n)`."""
    z = trajectory.neuron_states(now) - trajectory.signal.value(now) @ arrays.J.T
    return z.reshape(len(trajectory.batches), arrays.Phi.shape[1])


def _record(equations: LayerEquations, run: LayerRun, signal: Signal, largest_input: Array) -> LayerRecord:
    """What a run of a layer left behind, as bounds take it."""
    outputs = tuple(DenseOutput(path.breaks, path.coefficients) for path in run.paths)
    grid, rule = piece_grid(outputs, signal.knots)
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
    if isinstance(signal, SampledSignal):
        few = SampledSignal(signal.t, signal.u @ weights.T, hold=signal.hold)
        start, end = few.value(grid[:-1]), few.value_before(grid[1:])
        rise = end - start if signal.hold == "linear" else np.zeros_like(start)
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


def _parts(
    arrays: NetworkArrays, gains: tuple[LayerGains, ...], errors: Array, *, size: Array, largest_input: Array,
    start: Array, cells: Array,
) -> dict[str, Array]:  # fmt: skip
    """What errors of the states `(cells, n)`, the last sum and the mismatch do to the outputs, `(cells, p)` each."""
    weights = np.abs(arrays.Phi)
    terms = size @ weights.T + (np.abs(arrays.Psi) + np.abs(arrays.D)) @ largest_input
    n_terms = weights.shape[1] + len(largest_input) + 8
    decomposition = np.zeros_like(terms)
    if arrays.mismatch is not None:
        moved = bound_decomposition(
            gains, arrays.mismatch, size=size, largest_input=largest_input, start=start, cells=cells
        )
        decomposition = moved @ weights.T + size @ arrays.mismatch.Phi.T
    return {"rounding": errors @ weights.T + n_terms * EPS * terms, "decomposition": decomposition}
