"""A layer by Algorithm 3 (neuron after neuron over the whole horizon) or Algorithm A.1 (interval after interval)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ltinet.network.layer import HorizontalLayer
from ltinet.network.neuron import Neuron
from ltinet.network.realisation import realise_layer
from ltinet.signals.as_signal import Signal
from ltinet.signals.function import FunctionSignal
from ltinet.signals.sampled import SampledSignal
from ltinet.solve.neuron_path import Forcing, NeuronRun, integrate_neuron, polynomial_forcing
from ltinet.solve.options import NeuronOptions, SolverOptions
from ltinet.solve.polynomials import PiecewisePolynomial, from_node_values, node_times

Array = NDArray[np.float64]
Algorithm = Literal["neurons", "intervals"]

# Between knots the solution is analytic: one polynomial of this degree replaces the pieces of a solver's dense output,
# whose seams would cost the next solver many small steps.
_SMOOTH_DEGREE = 16


@dataclass(frozen=True)
class LayerRun:
    """The dense output of every neuron of a layer, and what each took."""

    paths: tuple[PiecewisePolynomial, ...]
    evaluations: tuple[int, ...]
    steps: tuple[int, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class LayerTask:
    """All that solving one layer for one input takes; it can be sent to another process."""

    index: int
    layer: HorizontalLayer
    signal: Signal
    breaks: Array
    z0: Array
    options: SolverOptions
    algorithm: Algorithm
    across_knots: bool = False


def solve_layer(task: LayerTask) -> LayerRun:
    """Solve the neurons of a layer from the last to the first, feeding dense outputs upward."""
    places = _places(task.layer)
    J = realise_layer(task.layer).J
    state = task.z0 + J @ task.signal.value(task.breaks[:1])[0]
    if len(task.breaks) == 1:
        return _standing_still(task, state, places)
    jumps = _jumps(task, J)
    if task.algorithm == "neurons":
        return _joined([_solve_over(task, task.breaks, state, jumps, places)[0]])
    runs = []
    for k in range(len(task.breaks) - 1):
        run, state = _solve_over(task, task.breaks[k : k + 2], state, jumps[k : k + 1], places)
        runs.append(run)
    return _joined(runs)


def _solve_over(
    task: LayerTask, breaks: Array, state: Array, jumps: Array, places: list[list[int]]
) -> tuple[list[NeuronRun], Array]:
    """All neurons over some intervals: their runs in the order of the layer, and the state after the last jump.

    What enters a neuron is smooth between the steps of those that feed it, not across them: integration restarts there
    too, so that a solver never mistakes the seams of dense outputs for dynamics.
    """
    runs: dict[int, NeuronRun] = {}
    after = state.copy()
    for i in task.layer.solving_order:
        neuron, own = task.layer.neurons[i], places[i]
        forcing, seams = _forcing(task, neuron, breaks, runs)
        restarts = breaks if task.across_knots else seams
        moves = np.zeros((len(restarts) - 1, len(own)))
        moves[np.searchsorted(restarts, breaks[1:]) - 1] = jumps[:, own]
        options = task.options.of(task.index, neuron)
        runs[i] = integrate_neuron(neuron, forcing, breaks=restarts, start=state[own], jumps=moves, options=options)
        after[own] = runs[i].final
    return [runs[i] for i in range(task.layer.n_neurons)], after


def _forcing(task: LayerTask, neuron: Neuron, breaks: Array, runs: dict[int, NeuronRun]) -> tuple[Forcing, Array]:
    """What enters a neuron, e u + v u̇ less the couplings to later ones, as a function, and the seams of that function.

    For sampled inputs all of it is one piecewise polynomial, between knots if that is accurate enough.
    """
    feeding = [
        (runs[neuron.index + 1 + place].path, k, c)
        for place, (k, c) in enumerate(zip(neuron.stiffness_couplings, neuron.damping_couplings, strict=True))
        if k != 0.0 or c != 0.0
    ]
    signal = task.signal
    inner = signal.knots[(signal.knots > breaks[0]) & (signal.knots < breaks[-1])]
    pieces = np.unique(np.concatenate([breaks, inner]))
    known = _sum(task, neuron, feeding, pieces, _SMOOTH_DEGREE if feeding else 1)
    if feeding:
        rough = ~_is_resolved(known, task.options.of(task.index, neuron))
        seams = np.unique(np.concatenate([path.breaks for path, _, _ in feeding]))
        inside = np.clip(np.searchsorted(pieces, seams, side="right") - 1, 0, len(rough) - 1)
        if np.any(rough):
            pieces = np.unique(np.concatenate([pieces, seams[rough[inside]]]))
            known = _sum(task, neuron, feeding, pieces, _SMOOTH_DEGREE)
    forcing = polynomial_forcing(known)
    return forcing if isinstance(signal, SampledSignal) else _function_forcing(signal, neuron, forcing), pieces


def _sum(
    task: LayerTask, neuron: Neuron, feeding: list[tuple[PiecewisePolynomial, float, float]], pieces: Array, degree: int
) -> PiecewisePolynomial:
    """All that enters a neuron, less a function u, interpolated at the Chebyshev nodes of each piece."""
    nodes = node_times(pieces[:-1], pieces[1:], degree)
    times, values = nodes.ravel(), np.zeros(nodes.size)
    for path, k, c in feeding:
        output = path(times)
        values -= k * output[:, 0]
        if c != 0.0:
            values -= c * output[:, 1]
    if isinstance(task.signal, SampledSignal):
        values += task.signal.value(times) @ neuron.e
        if np.any(neuron.v):
            values += task.signal.derivative(times) @ neuron.v
    return from_node_values(pieces, values.reshape(*nodes.shape, 1))


def _is_resolved(path: PiecewisePolynomial, options: NeuronOptions) -> NDArray[np.bool_]:
    """For each piece, whether its last coefficients are lost in the error that the dense outputs have anyhow."""
    series = np.abs(path.coefficients[:, :, 0])
    return np.asarray(series[:, -2:].max(axis=1) <= 30.0 * (options.rtol * series.max() + options.atol))


def _function_forcing(signal: FunctionSignal, neuron: Neuron, coupling: Forcing) -> Forcing:
    needs_derivative = bool(np.any(neuron.v))

    def forcing(t: float) -> float:
        at = np.array([t])
        value = coupling(t) + float(signal.value(at)[0] @ neuron.e)
        return value + float(signal.derivative(at)[0] @ neuron.v) if needs_derivative else value

    return forcing


def _places(layer: HorizontalLayer) -> list[list[int]]:
    """Where ξ and, for second-order neurons, ξ̇ of each neuron stand among the states of the layer."""
    rates = (layer.n_neurons + np.cumsum(layer.is_second_order) - 1).tolist()
    return [[i, rates[i]] if second else [i] for i, second in enumerate(layer.is_second_order.tolist())]


def _jumps(task: LayerTask, J: Array) -> Array:
    """What is added to (ξ, ξ̇) at the end of each interval: J times the jump of u there, nothing at the very end."""
    inner = task.breaks[1:-1]
    moves = (task.signal.value(inner) - task.signal.value_before(inner)) @ J.T if len(inner) else np.zeros((0, len(J)))
    return np.vstack([moves, np.zeros((1, len(J)))])


def _standing_still(task: LayerTask, state: Array, places: list[list[int]]) -> LayerRun:
    """A run over a single time: the state there."""
    instant = np.repeat(task.breaks, 2)
    nothing = (0,) * len(places)
    paths = tuple(PiecewisePolynomial(instant, state[own][None, None]) for own in places)
    return LayerRun(paths, nothing, nothing, (0.0,) * len(places))


def _joined(runs: Sequence[list[NeuronRun]]) -> LayerRun:
    """One run over all intervals from runs over successive ones."""
    neurons = list(zip(*runs, strict=True))
    paths = tuple(
        PiecewisePolynomial(
            np.concatenate([parts[0].path.breaks, *(part.path.breaks[1:] for part in parts[1:])]),
            np.concatenate([part.path.coefficients for part in parts]),
        )
        for parts in neurons
    )
    return LayerRun(
        paths,
        tuple(sum(part.evaluations for part in parts) for parts in neurons),
        tuple(sum(part.steps for part in parts) for parts in neurons),
        tuple(sum(part.seconds for part in parts) for parts in neurons),
    )
