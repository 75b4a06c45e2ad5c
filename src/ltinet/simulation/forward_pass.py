"""Forward passes of the paper: Algorithm 3 (neuron by neuron) and Algorithm A.1 (interval by interval).

Every neuron m ξ̈ + c ξ̇ + k ξ = f(t) is integrated by a SciPy solver between knots of the input, from the last neuron
of a layer to the first. Its dense output enters the neurons before it. Evaluating many dense outputs inside a right-
hand side would dominate the cost of Algorithm 3: each is evaluated once, at the Chebyshev nodes between knots, and
the forcing e u + v u̇ − couplings of a neuron becomes one polynomial there. Layers are independent of each other.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import EPS, Array
from ltinet.errors import SimulationError
from ltinet.network.layer import HorizontalLayer
from ltinet.network.neuron import Neuron
from ltinet.network.realization import realize_layer
from ltinet.signals.signal import Signal, polyline_points
from ltinet.simulation.chebyshev import PiecewisePolynomial, from_node_values, node_times
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.options import NeuronOptions, SolverOptions

# MERGED ltinet.simulation.forward_pass
# One neuron's differential equation, integrated by a SciPy solver from knot to knot.

Forcing = Callable[[float], float]
_LARGEST = 1e300
_TOO_LARGE = "too large"
_INTERVAL_ROUNDING = (
    16  # units in the last place: what rounding leaves of an interval after many steps is none of its own
)


@dataclass(frozen=True)
class NeuronRun:
    """Where a neuron ended, its dense output, and what that took."""

    path: PiecewisePolynomial
    final: Array
    next_step: float | None
    """What to try first in the next interval."""
    evaluations: int
    steps: int
    seconds: float


def integrate_neuron(
    neuron: Neuron, forcing_of: Callable[[int], Forcing], *, breaks: Array, start: Array, jumps: Array,
    options: NeuronOptions, trial_step: float | None,
) -> NeuronRun:  # fmt: skip
    """Solve m ξ̈ + c ξ̇ + k ξ = forcing(t) over all intervals between breaks, restarting at each of them.

    `forcing_of(k)` is the right-hand side on interval k, `start` is (ξ, ξ̇) just after the first break (ξ alone for
    first order), `jumps[k]` what is added at break k + 1. The first step is the user's, or else `trial_step`, or else
    the solver's own guess; after a restart it is what the solver would have gone on with.
    """
    begin = perf_counter()
    edges, values = breaks[:1].tolist(), []
    state, evaluations = start, 0
    for index, span in enumerate(pairwise(breaks.tolist())):
        solver = _solver(neuron, forcing_of(index), span, state, options=options, trial_step=trial_step)
        longest, end = 0.0, span[1] - _INTERVAL_ROUNDING * math.ulp(max(map(abs, span)))
        while solver.status == "running" and (solver.t < end or longest == 0.0):
            _advance_solver(solver, neuron, options)
            times = node_times(np.array([solver.t_old]), np.array([solver.t]), options.degree)[0]
            values.append(solver.dense_output()(times).T)
            edges.append(float(solver.t))
            longest = max(longest, edges[-1] - edges[-2])
        edges[-1] = span[1]
        # What the solver would try next; LSODA keeps that to itself.
        trial_step = max(longest, float(getattr(solver, "h_abs", 0.0)))
        evaluations += solver.nfev
        state = solver.y + jumps[index]
    path = from_node_values(np.array(edges), np.array(values))
    return NeuronRun(path, state, trial_step, evaluations, len(values), perf_counter() - begin)


def _advance_solver(solver: Any, neuron: Neuron, options: NeuronOptions) -> None:
    """Take a step, or tell why there is none."""
    try:
        with np.errstate(invalid="ignore", over="ignore"):  # DOP853 divides zero by zero where its estimate underflows
            message = solver.step()
    except ValueError:  # what SciPy's linear algebra says of infinities
        message = _TOO_LARGE
    # An error estimate of such states overflows before they do, and no step is short enough then.
    if message == _TOO_LARGE or not np.all(np.abs(solver.y) < _LARGEST):
        raise SimulationError(
            f"neuron {neuron.index} exceeds the largest floating-point number at t = {solver.t:.6g}; simulate a "
            "shorter time, or choose other units for inputs and states"
        )
    if solver.status == "failed":
        raise SimulationError(
            f"{options.method} failed for neuron {neuron.index} at t = {solver.t:g} ({message}); choose an implicit "
            'method such as "Radau", or larger tolerances'
        )


def piece_forcing(left: float, right: float, series: Array) -> Forcing:
    """A Chebyshev series between two times as a fast function of one time; coefficients lost in rounding are left out.

    Up to the right end it is the limit from the left: what comes after a jump there belongs to the next interval.
    """
    kept = np.flatnonzero(np.abs(series) > np.finfo(np.float64).eps * np.abs(series).max(initial=0.0))
    constant, *others = series[: kept[-1] + 1].tolist() if len(kept) else [0.0]
    middle, scale = 0.5 * (left + right), 2.0 / (right - left)
    if len(others) <= 1:
        slope = others[0] * scale if others else 0.0
        return lambda t: constant + slope * (t - middle)
    others.reverse()

    def forcing(t: float) -> float:
        x = (t - middle) * scale
        twice = x + x
        later = latest = 0.0
        for coefficient in others:
            later, latest = coefficient + twice * later - latest, later
        return float(constant + x * later - latest)

    return forcing


def polynomial_forcing(path: PiecewisePolynomial) -> Forcing:
    """A piecewise polynomial of one component as a function of one time anywhere."""
    breaks = path.breaks.tolist()
    pieces = [piece_forcing(*ends, path.coefficients[k, :, 0]) for k, ends in enumerate(pairwise(breaks))]
    last = len(pieces) - 1
    return lambda t: pieces[min(max(bisect_right(breaks, t) - 1, 0), last)](t)


def _solver(
    neuron: Neuron, forcing: Forcing, span: tuple[float, float], state: Array, *, options: NeuronOptions,
    trial_step: float | None,
) -> Any:  # fmt: skip
    """SciPy's solver of a neuron, ready at the beginning of an interval."""
    width = span[1] - span[0]
    first_step = options.first_step or trial_step
    if first_step is not None:
        first_step = min(first_step, options.max_step, width)
        if options.first_step is None:  # equal steps: no short one is left over at the end
            first_step = width / math.ceil(width / first_step)
    right_hand_side, jacobian = _equation(neuron, forcing)
    extra: dict[str, Any] = {"jac": jacobian} if options.takes_jacobian else {}
    return options.solver_class(
        right_hand_side, span[0], state, span[1], rtol=options.rtol, atol=options.atol, max_step=options.max_step,
        first_step=first_step, **extra,
    )  # fmt: skip


def _equation(neuron: Neuron, forcing: Forcing) -> tuple[Callable[[float, Array], list[float]], Array]:
    """The first-order system of a neuron, and its constant Jacobian."""
    if neuron.order == 1:
        rate, gain = -neuron.k / neuron.c, 1.0 / neuron.c
        return lambda t, y: [rate * y[0] + gain * forcing(t)], np.array([[rate]])
    stiffness, damping, gain = -neuron.k / neuron.m, -neuron.c / neuron.m, 1.0 / neuron.m

    def right_hand_side(t: float, y: Array) -> list[float]:
        xi, rate = y.tolist()
        return [rate, stiffness * xi + damping * rate + gain * forcing(t)]

    return right_hand_side, np.array([[0.0, 1.0], [stiffness, damping]])


# MERGED ltinet.simulation.forward_pass
# What enters the neurons of a layer, e u + v u̇ less the couplings to later neurons, evaluated for all together.
#
# Evaluating many dense outputs one by one inside a right-hand side is what would make Algorithm 3 slow. Each dense output
# is evaluated once, at the Chebyshev nodes between knots, and what enters a neuron becomes one polynomial there.

# Between knots the solution is analytic: one polynomial of this degree replaces the pieces of a solver's dense output,
# whose seams would cost the next solver many small steps.
_SMOOTH_DEGREE = 16


@dataclass(frozen=True, eq=False)
class LayerForcing:
    """What enters each neuron of a layer, at the nodes of pieces between knots; `feed` adds what was solved."""

    layer: HorizontalLayer
    signal: Signal
    drive: Signal | None
    """What a polynomial input gives to the neurons, (E u, V u)."""
    feeds: NDArray[np.bool_]
    """Where the output of neuron j enters neuron i."""
    pieces: Array
    nodes: Array
    values: Array
    """`(pieces, nodes, neurons)`."""
    paths: dict[int, PiecewisePolynomial] = field(default_factory=dict)

    def between(self, left: float, right: float) -> "LayerForcing":
        """The same between two of the breaks only, with no neuron solved yet."""
        first, last = np.searchsorted(self.pieces, [left, right]).tolist()
        own = slice(first, last)
        return replace(
            self, pieces=self.pieces[first : last + 1], nodes=self.nodes[own], values=self.values[own], paths={}
        )

    def feed(self, index: int, path: PiecewisePolynomial) -> None:
        """Let the dense output of a neuron enter those before it."""
        self.paths[index] = path
        if self.feeds[:, index].any():
            taken = self._from_neuron(index, self.nodes.ravel())
            np.subtract(self.values, taken.reshape(self.values.shape), out=self.values)

    def polynomial(self, neuron: Neuron, options: NeuronOptions) -> PiecewisePolynomial:
        """What enters a neuron, less a function u: a polynomial between knots, or between seams if that is too rough.

        Across the seams of the dense outputs that feed it the sum is not smooth: where one polynomial between knots
        does not resolve it, integration has to restart at the seams, lest a solver mistake them for dynamics.
        """
        whole = from_node_values(self.pieces, self.values[:, :, neuron.index : neuron.index + 1])
        feeding = np.flatnonzero(self.feeds[neuron.index]).tolist()
        if not feeding:
            return whole
        rough = ~_is_resolved(whole, options)
        if not np.any(rough):
            return whole
        seams = np.unique(np.concatenate([self.paths[j].breaks for j in feeding]))
        inside = np.clip(np.searchsorted(self.pieces, seams, side="right") - 1, 0, len(rough) - 1)
        pieces = np.unique(np.concatenate([self.pieces, seams[rough[inside]]]))
        nodes = node_times(pieces[:-1], pieces[1:], _SMOOTH_DEGREE)
        values = _from_input(self.drive, nodes.ravel(), self.layer.n_neurons)[:, neuron.index]
        for j in feeding:
            values = values - self._from_neuron(j, nodes.ravel())[:, neuron.index]
        return from_node_values(pieces, values.reshape(*nodes.shape, 1))

    def forcing_of(self, neuron: Neuron, path: PiecewisePolynomial, breaks: Array) -> Callable[[int], Forcing]:
        """The right-hand side of a neuron on each interval between breaks, from its polynomial and a function u."""
        ends, series = breaks.tolist(), path.coefficients[:, :, 0]
        across = None if len(path.breaks) == len(breaks) else polynomial_forcing(path)

        def known(k: int) -> Forcing:
            return across or piece_forcing(ends[k], ends[k + 1], series[k])

        signal = self.signal
        if self.drive is not None:
            return known
        return lambda k: _function_forcing(signal, neuron, known(k), float(np.nextafter(breaks[k + 1], breaks[k])))

    def _from_neuron(self, index: int, times: Array) -> Array:
        """What the output of a neuron takes from those before it, `(len(times), n_neurons)`."""
        before = self.feeds[:, index]
        output = self.paths[index](times)
        taken = np.multiply.outer(output[:, 0], np.where(before, self.layer.K[:, index], 0.0))
        if self.layer.is_second_order[index]:
            taken += np.multiply.outer(output[:, 1], np.where(before, self.layer.C[:, index], 0.0))
        return np.asarray(taken)


def layer_forcing(layer: HorizontalLayer, signal: Signal, breaks: Array) -> LayerForcing:
    """What the input alone gives to the neurons of a layer, between breaks and the knots of the input."""
    inner = signal.knots[(signal.knots > breaks[0]) & (signal.knots < breaks[-1])]
    pieces = np.unique(np.concatenate([breaks, inner]))
    feeds = np.triu((layer.K != 0.0) | (layer.C != 0.0), 1)
    known = signal.degree if signal.degree is not None and signal.degree <= _SMOOTH_DEGREE else None
    nodes = node_times(pieces[:-1], pieces[1:], _SMOOTH_DEGREE if feeds.any() else max(known or 1, 1))
    # As few channels as the layer needs, however many inputs there are.
    drive = None if known is None else signal.through(np.vstack([layer.E, layer.V]))
    values = _from_input(drive, nodes.ravel(), layer.n_neurons).reshape(*nodes.shape, layer.n_neurons)
    return LayerForcing(layer, signal, drive, feeds, pieces, nodes, values)


def _from_input(drive: Signal | None, times: Array, n_neurons: int) -> Array:
    """E u + V u̇ of a polynomial, nothing for a function: that is asked for by the solver, wherever it steps."""
    if drive is None:
        return np.zeros((len(times), n_neurons))
    return np.asarray(drive.value(times)[:, :n_neurons] + drive.derivative(times)[:, n_neurons:])


def _is_resolved(path: PiecewisePolynomial, options: NeuronOptions) -> NDArray[np.bool_]:
    """For each piece, whether its last coefficients are lost in the error that the dense outputs have anyhow.

    Where a longest step is given it decides about that error, not the tolerances; then only rounding is lost.
    """
    series = np.abs(path.coefficients[:, :, 0])
    rtol, atol = (options.rtol, options.atol) if np.isinf(options.max_step) else (EPS, 0.0)
    return np.asarray(series[:, -2:].max(axis=1) <= 30.0 * (rtol * series.max() + atol))


def _function_forcing(signal: Signal, neuron: Neuron, coupling: Forcing, last: float) -> Forcing:
    """A function u and the couplings; asked up to just before the end, where a jump belongs to the next interval."""
    needs_derivative = bool(np.any(neuron.v))

    def forcing(t: float) -> float:
        at = np.array([min(t, last)])
        value = coupling(t) + float(signal.value(at)[0] @ neuron.e)
        return value + float(signal.derivative(at)[0] @ neuron.v) if needs_derivative else value

    return forcing


# MERGED ltinet.simulation.forward_pass
# A layer by Algorithm 3 (neuron after neuron over the whole horizon) or Algorithm A.1 (interval after interval).

Algorithm = Literal["per_neuron", "per_interval"]


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
    places = _state_indices(task.layer)
    J = realize_layer(task.layer).J
    state = task.z0 + J @ task.signal.value(task.breaks[:1])[0]
    if len(task.breaks) == 1:
        return _single_time_run(task, state, places)
    task = replace(task, layer=_without_first_order_rates(task.layer))
    known = layer_forcing(task.layer, task.signal, task.breaks)
    jumps = _jumps(task, J)
    # Intervals between samples are short: trying one step over all of it is cheaper than estimating a first step.
    first = float(task.breaks[1] - task.breaks[0]) if len(task.breaks) > 2 else None
    trial_steps = [first] * task.layer.n_neurons
    if task.algorithm == "per_neuron":
        return _join_runs(
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
    return _join_runs(runs)


def _solve_over(
    task: LayerTask,
    known: LayerForcing,
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
        options = task.options.for_neuron(task.index, neuron)
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


def _state_indices(layer: HorizontalLayer) -> list[list[int]]:
    """Where ξ and, for second-order neurons, ξ̇ of each neuron stand among the states of the layer."""
    rates = (layer.n_neurons + np.cumsum(layer.is_second_order) - 1).tolist()
    return [[i, rates[i]] if second else [i] for i, second in enumerate(layer.is_second_order.tolist())]


def _jumps(task: LayerTask, J: Array) -> Array:
    """What is added to (ξ, ξ̇) at the end of each interval: J times the jump of u there, nothing at the very end."""
    inner = task.breaks[1:-1]
    moves = (task.signal.value(inner) - task.signal.value_before(inner)) @ J.T if len(inner) else np.zeros((0, len(J)))
    return np.vstack([moves, np.zeros((1, len(J)))])


def _single_time_run(task: LayerTask, state: Array, places: list[list[int]]) -> LayerRun:
    """A run over a single time: the state there."""
    instant = np.repeat(task.breaks, 2)
    nothing = (0,) * len(places)
    paths = tuple(PiecewisePolynomial(instant, state[own][None, None]) for own in places)
    return LayerRun(paths, nothing, nothing, (0.0,) * len(places))


def _join_runs(runs: Sequence[list[NeuronRun]]) -> LayerRun:
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


# MERGED ltinet.simulation.forward_pass
# What solvers leave behind: dense outputs of all neurons, put together on request.


class SolverRun:
    """Dense outputs of all neurons, put together on request."""

    def __init__(
        self, prepared: SimulationContext, signal: Signal, batches: tuple[Sequence[LayerRun], ...], *, stop: float
    ) -> None:
        self.prepared, self.signal, self.batches = prepared, signal, batches
        self._stop = stop

    def neuron_states(self, t: Array) -> Array:
        """(ξ, ξ̇) at any times."""
        n_states = self.prepared.network.output_weights.shape[1]
        states = np.array([_layer_states(runs, t) for runs in self.batches])
        states = states.reshape(*self.signal.batch_shape, len(t), n_states)
        final = (t == self._stop)[:, None]  # dense outputs end before a jump at the very end
        jump = self.signal.value(t) - self.signal.value_before(t)
        return np.asarray(states + np.where(final, jump, 0.0) @ self.prepared.coordinates.J.T)

    def outputs(self, t: Array) -> Array:
        """Outputs y at any times."""
        network = self.prepared.network
        return np.asarray(self.neuron_states(t) @ network.output_weights.T + self.signal.value(t) @ network.Psi.T)

    def input_corners(self, t: Array) -> tuple[Array, Array]:
        """The input as a picture shows it, at the times t and at knots between them."""
        return polyline_points(self.signal, t)

    def user_states(self, t: Array) -> Array:
        """States x at any times."""
        coordinates = self.prepared.coordinates
        states = self.neuron_states(t) - self.signal.value(t) @ coordinates.J.T
        return coordinates.user_from_blocks(coordinates.blocks_from_neurons(states))


def _layer_states(runs: Sequence[LayerRun], t: Array) -> Array:
    """(ξ of all neurons, then ξ̇ of second-order ones) of layer after layer, `(len(t), n)`."""
    columns = [np.zeros((len(t), 0))]
    for run in runs:
        outputs = [path(t) for path in run.paths]
        columns += [output[:, :1] for output in outputs] + [output[:, 1:] for output in outputs]
    return np.hstack(columns)
