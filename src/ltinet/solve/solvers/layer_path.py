"""A layer by Algorithm 3 (neuron after neuron over the whole horizon) or Algorithm A.1 (interval after interval)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ltinet.arrays import Array
from ltinet.network.layer import HorizontalLayer
from ltinet.network.state_equations import realise_layer
from ltinet.signals.signal import Signal
from ltinet.solve.solvers.entering import Entering, entering
from ltinet.solve.solvers.neuron_path import NeuronRun, integrate_neuron
from ltinet.solve.solvers.options import SolverOptions
from ltinet.solve.solvers.polynomials import PiecewisePolynomial

Algorithm = Literal["neurons", "intervals"]


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
    task = replace(task, layer=_without_first_order_rates(task.layer))
    known = entering(task.layer, task.signal, task.breaks)
    jumps = _jumps(task, J)
    # Intervals between samples are short: trying one step over all of it is cheaper than estimating a first step.
    first = float(task.breaks[1] - task.breaks[0]) if len(task.breaks) > 2 else None
    trial_steps = [first] * task.layer.n_neurons
    if task.algorithm == "neurons":
        return _joined(
            [_solve_over(task, known, task.breaks, state=state, jumps=jumps, places=places, trial_steps=trial_steps)[0]]
        )
    runs = []
    for k in range(len(task.breaks) - 1):
        run, state = _solve_over(
            task,
            known.between(*task.breaks[k : k + 2].tolist()),
            task.breaks[k : k + 2],
            state=state,
            jumps=jumps[k : k + 1],
            places=places,
            trial_steps=trial_steps,
        )
        trial_steps = [own.next_step for own in run]
        runs.append(run)
    return _joined(runs)


def _solve_over(
    task: LayerTask,
    known: Entering,
    breaks: Array,
    *,
    state: Array,
    jumps: Array,
    places: list[list[int]],
    trial_steps: Sequence[float | None],
) -> tuple[list[NeuronRun], Array]:
    """All neurons over some intervals: their runs in the order of the layer, and the state after the last jump."""
    runs: dict[int, NeuronRun] = {}
    after = state.copy()
    for i in task.layer.solving_order:
        neuron, own = task.layer.neurons[i], places[i]
        options = task.options.of(task.index, neuron)
        polynomial = known.polynomial(neuron, options)
        restarts = breaks if task.across_knots else polynomial.breaks
        moves = np.zeros((len(restarts) - 1, len(own)))
        moves[np.searchsorted(restarts, breaks[1:]) - 1] = jumps[:, own]
        runs[i] = integrate_neuron(
            neuron,
            known.forcing_of(neuron, polynomial, restarts),
            breaks=restarts,
            start=state[own],
            jumps=moves,
            options=options,
            trial_step=trial_steps[i],
        )
        known.feed(i, runs[i].path)
        after[own] = runs[i].final
    return [runs[i] for i in range(task.layer.n_neurons)], after


def _without_first_order_rates(layer: HorizontalLayer) -> HorizontalLayer:
    """An equal layer in which no ξ̇ of a first-order neuron enters another: that neuron's equation replaces it.

    Layers of constructed networks are such already; solvers give no derivative of a first-order neuron.
    """
    first_order = np.flatnonzero(~layer.is_second_order)
    if not np.any(np.triu(layer.C, 1)[:, first_order]):
        return layer
    C, K, E, V = (np.array(matrix) for matrix in (layer.C, layer.K, layer.E, layer.V))
    for j in first_order[::-1].tolist():
        share = C[:j, j] / C[j, j]
        for matrix in (K, E, V, C):
            matrix[:j] -= np.multiply.outer(share, matrix[j])
        C[:j, j] = 0.0
    return HorizontalLayer(layer.M, C, K, E, V)


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
