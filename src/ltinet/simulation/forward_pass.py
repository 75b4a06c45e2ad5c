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
from ltinet._util.piecewise_polynomials import PiecewisePolynomial, from_node_values, node_times
from ltinet.error_bounds.gains import layer_state_indices
from ltinet.errors import SimulationError
from ltinet.network.layer import HorizontalLayer
from ltinet.network.neuron import Neuron
from ltinet.network.realization import realize_layer
from ltinet.signals.signal import Signal, polyline_points
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.options import METHODS_WITH_JACOBIAN, NeuronOptions, SolverOptions

Forcing = Callable[[float], float]
Algorithm = Literal["per_neuron", "per_interval"]

_MAX_STATE = 1e300  # beyond, the error estimates of the solvers overflow and no step is short enough
_OVERFLOW = "overflow"
_END_TOLERANCE = 16  # units in the last place of the end of an interval, lost in rounding after many steps
# Between knots the solution is analytic: one polynomial of this degree replaces the pieces of a solver's dense output,
# whose seams would cost the next solver many small steps.
_SMOOTH_DEGREE = 16

# Layers.


@dataclass(frozen=True)
class NeuronRun:
    """Dense output of a neuron, its final state, and the cost."""

    path: PiecewisePolynomial
    final: Array
    next_step: float | None
    """First step to try in the next interval."""
    evaluations: int
    steps: int
    seconds: float


@dataclass(frozen=True)
class LayerRun:
    """Dense output of every neuron of a layer, and the cost of each."""

    paths: tuple[PiecewisePolynomial, ...]
    evaluations: tuple[int, ...]
    steps: tuple[int, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class LayerTask:
    """A layer and one input to be solved; it can be sent to another process."""

    index: int
    layer: HorizontalLayer
    signal: Signal
    breaks: Array
    z0: Array
    options: SolverOptions
    algorithm: Algorithm
    across_knots: bool = False


def solve_layer(task: LayerTask) -> LayerRun:
    """Solve the neurons of a layer from the last to the first, by Algorithm 3 or A.1."""
    indices = [list(places) for places in layer_state_indices(task.layer.is_second_order)]
    J = realize_layer(task.layer).J
    state = task.z0 + J @ task.signal.value(task.breaks[:1])[0]
    if len(task.breaks) == 1:
        return _single_time_run(task, state, indices)
    task = replace(task, layer=_without_first_order_rates(task.layer))
    forcing = layer_forcing(task.layer, task.signal, task.breaks)
    jumps = _jumps(task, J)
    # Intervals between samples are short: trying one step over all of it is cheaper than estimating a first step.
    first = float(task.breaks[1] - task.breaks[0]) if len(task.breaks) > 2 else None
    trial_steps = [first] * task.layer.n_neurons
    n_intervals = len(task.breaks) - 1
    at_once = n_intervals if task.algorithm == "per_neuron" else 1
    runs = []
    for begin in range(0, n_intervals, at_once):
        breaks = task.breaks[begin : begin + at_once + 1]
        run, state = _solve_intervals(
            task,
            forcing.between(float(breaks[0]), float(breaks[-1])),
            breaks,
            state=state,
            jumps=jumps[begin : begin + at_once],
            indices=indices,
            trial_steps=trial_steps,
        )
        trial_steps = [neuron_run.next_step for neuron_run in run]
        runs.append(run)
    return _join_runs(runs)


def _solve_intervals(
    task: LayerTask,
    forcing: "LayerForcing",
    breaks: Array,
    *,
    state: Array,
    jumps: Array,
    indices: list[list[int]],
    trial_steps: Sequence[float | None],
) -> tuple[list[NeuronRun], Array]:
    """Solve all neurons over some intervals; return their runs in the order of the layer, and the state at the end."""
    runs: dict[int, NeuronRun] = {}
    after = state.copy()
    for i in task.layer.solving_order:
        neuron, states = task.layer.neurons[i], indices[i]
        options = task.options.for_neuron(task.index, neuron)
        polynomial = forcing.polynomial(neuron, options)
        restarts = breaks if task.across_knots else polynomial.breaks
        restart_jumps = np.zeros((len(restarts) - 1, len(states)))
        restart_jumps[np.searchsorted(restarts, breaks[1:]) - 1] = jumps[:, states]
        runs[i] = integrate_neuron(
            neuron,
            forcing.forcing_of(neuron, polynomial, restarts),
            breaks=restarts,
            start=state[states],
            jumps=restart_jumps,
            options=options,
            trial_step=trial_steps[i],
        )
        forcing.feed(i, runs[i].path)
        after[states] = runs[i].final
    return [runs[i] for i in range(task.layer.n_neurons)], after


def _without_first_order_rates(layer: HorizontalLayer) -> HorizontalLayer:
    """Return an equal layer in which no ξ̇ of a first-order neuron enters another: its equation is substituted.

    Layers of constructed networks have this form already; solvers return no derivative of a first-order neuron.
    """
    first_order = np.flatnonzero(~layer.is_second_order)
    if not np.any(np.triu(layer.C, 1)[:, first_order]):
        return layer
    C, K, E, V = (np.array(matrix) for matrix in (layer.C, layer.K, layer.E, layer.V))
    for j in first_order[::-1].tolist():
        factors = C[:j, j] / C[j, j]
        for matrix in (K, E, V, C):
            matrix[:j] -= np.multiply.outer(factors, matrix[j])
        C[:j, j] = 0.0
    return HorizontalLayer(layer.M, C, K, E, V)


def _jumps(task: LayerTask, J: Array) -> Array:
    """Return the jumps of (ξ, ξ̇) at the end of each interval: J times the jump of u there, zero at the very end."""
    inner = task.breaks[1:-1]
    jumps = (task.signal.value(inner) - task.signal.value_before(inner)) @ J.T if len(inner) else np.zeros((0, len(J)))
    return np.vstack([jumps, np.zeros((1, len(J)))])


def _single_time_run(task: LayerTask, state: Array, indices: list[list[int]]) -> LayerRun:
    """Return a run over a single time: the state there."""
    instant = np.repeat(task.breaks, 2)
    zeros = (0,) * len(indices)
    paths = tuple(PiecewisePolynomial(instant, state[states][None, None]) for states in indices)
    return LayerRun(paths, zeros, zeros, (0.0,) * len(indices))


def _join_runs(runs: Sequence[list[NeuronRun]]) -> LayerRun:
    """Join runs over successive intervals."""
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


# Neurons.


def integrate_neuron(
    neuron: Neuron, forcing_of: Callable[[int], Forcing], *, breaks: Array, start: Array, jumps: Array,
    options: NeuronOptions, trial_step: float | None,
) -> NeuronRun:  # fmt: skip
    """Solve m ξ̈ + c ξ̇ + k ξ = forcing(t) over all intervals between breaks, restarting at each of them.

    `forcing_of(k)` is the right-hand side on interval k, `start` is (ξ, ξ̇) just after the first break (ξ alone for
    first order), `jumps[k]` is the jump at break k + 1. The first step is the user's, else `trial_step`, else the
    solver's guess; after a restart it is the step with which the solver would have continued.
    """
    begin = perf_counter()
    edges, values = breaks[:1].tolist(), []
    state, evaluations = start, 0
    for index, span in enumerate(pairwise(breaks.tolist())):
        solver = _solver(neuron, forcing_of(index), span, state, options=options, trial_step=trial_step)
        longest, end = 0.0, span[1] - _END_TOLERANCE * math.ulp(max(map(abs, span)))
        while solver.status == "running" and (solver.t < end or longest == 0.0):
            _advance_solver(solver, neuron, options)
            times = node_times(np.array([solver.t_old]), np.array([solver.t]), options.degree)[0]
            values.append(solver.dense_output()(times).T)
            edges.append(float(solver.t))
            longest = max(longest, edges[-1] - edges[-2])
        edges[-1] = span[1]
        # The step that the solver would try next; LSODA does not expose it.
        trial_step = max(longest, float(getattr(solver, "h_abs", 0.0)))
        evaluations += solver.nfev
        state = solver.y + jumps[index]
    path = from_node_values(np.array(edges), np.array(values))
    return NeuronRun(path, state, trial_step, evaluations, len(values), perf_counter() - begin)


def _advance_solver(solver: Any, neuron: Neuron, options: NeuronOptions) -> None:
    """Take a step, or raise the reason for its failure."""
    try:
        with np.errstate(invalid="ignore", over="ignore"):  # DOP853 divides zero by zero where its estimate underflows
            message = solver.step()
    except ValueError:  # of SciPy's linear algebra, for infinities
        message = _OVERFLOW
    if message == _OVERFLOW or not np.all(np.abs(solver.y) < _MAX_STATE):
        raise SimulationError(
            f"neuron {neuron.index} overflows at t = {solver.t:.6g}. Simulate a shorter time, or choose other units for "
            "inputs and states."
        )
    if solver.status == "failed":
        raise SimulationError(
            f"{options.method} failed for neuron {neuron.index} at t = {solver.t:g} ({message}). Choose an implicit "
            'method such as "Radau", or larger tolerances.'
        )


def piece_forcing(left: float, right: float, series: Array) -> Forcing:
    """Return a Chebyshev series between two times as a fast function of one time, without negligible coefficients.

    At the right end it is the limit from the left: the value after a jump there belongs to the next interval.
    """
    significant = np.flatnonzero(np.abs(series) > EPS * np.abs(series).max(initial=0.0))
    constant, *others = series[: significant[-1] + 1].tolist() if len(significant) else [0.0]
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
    """Return a piecewise polynomial of one component as a function of one time."""
    breaks = path.breaks.tolist()
    pieces = [piece_forcing(*ends, path.coefficients[k, :, 0]) for k, ends in enumerate(pairwise(breaks))]
    last = len(pieces) - 1
    return lambda t: pieces[min(max(bisect_right(breaks, t) - 1, 0), last)](t)


def _solver(
    neuron: Neuron, forcing: Forcing, span: tuple[float, float], state: Array, *, options: NeuronOptions,
    trial_step: float | None,
) -> Any:  # fmt: skip
    """Return SciPy's solver of a neuron at the beginning of an interval."""
    width = span[1] - span[0]
    first_step = options.first_step or trial_step
    if first_step is not None:
        first_step = min(first_step, options.max_step, width)
        if options.first_step is None:  # equal steps, without a short one at the end
            first_step = width / math.ceil(width / first_step)
    right_hand_side, jacobian = _equation(neuron, forcing)
    extra: dict[str, Any] = {"jac": jacobian} if options.method in METHODS_WITH_JACOBIAN else {}
    return options.solver_class(
        right_hand_side, span[0], state, span[1], rtol=options.rtol, atol=options.atol, max_step=options.max_step,
        first_step=first_step, **extra,
    )  # fmt: skip


def _equation(neuron: Neuron, forcing: Forcing) -> tuple[Callable[[float, Array], list[float]], Array]:
    """Return the first-order system of a neuron and its constant Jacobian."""
    if neuron.order == 1:
        rate, gain = -neuron.k / neuron.c, 1.0 / neuron.c
        return lambda t, y: [rate * y[0] + gain * forcing(t)], np.array([[rate]])
    stiffness, damping, gain = -neuron.k / neuron.m, -neuron.c / neuron.m, 1.0 / neuron.m

    def right_hand_side(t: float, y: Array) -> list[float]:
        xi, rate = y.tolist()
        return [rate, stiffness * xi + damping * rate + gain * forcing(t)]

    return right_hand_side, np.array([[0.0, 1.0], [stiffness, damping]])


# Forcing of the neurons of a layer, e u + v u̇ less the couplings to later neurons.


@dataclass(frozen=True, eq=False)
class LayerForcing:
    """Forcing of each neuron of a layer at the Chebyshev nodes between knots; `feed` adds outputs of solved neurons."""

    layer: HorizontalLayer
    signal: Signal
    drive: Signal | None
    """(E u, V u) of a polynomial input; None for a function, which the solver evaluates at its steps."""
    feeds: NDArray[np.bool_]
    """Mask [i, j]: the output of neuron j enters neuron i."""
    pieces: Array
    nodes: Array
    values: Array
    """`(pieces, nodes, neurons)`."""
    paths: dict[int, PiecewisePolynomial] = field(default_factory=dict)

    def between(self, left: float, right: float) -> "LayerForcing":
        """Return the forcing between two of the breaks only, with no neuron solved yet."""
        first, last = np.searchsorted(self.pieces, [left, right]).tolist()
        pieces = slice(first, last)
        return replace(
            self, pieces=self.pieces[first : last + 1], nodes=self.nodes[pieces], values=self.values[pieces], paths={}
        )

    def feed(self, index: int, path: PiecewisePolynomial) -> None:
        """Subtract the dense output of a neuron from the forcing of those before it."""
        self.paths[index] = path
        if self.feeds[:, index].any():
            coupling = self._coupling(index, self.nodes.ravel())
            np.subtract(self.values, coupling.reshape(self.values.shape), out=self.values)

    def polynomial(self, neuron: Neuron, options: NeuronOptions) -> PiecewisePolynomial:
        """Return the forcing of a neuron, without a function u, as a polynomial between knots or between seams.

        Across the seams of the dense outputs that feed the neuron the sum is not smooth: where one polynomial between
        knots does not resolve it, integration must restart at the seams, or a solver would mistake them for dynamics.
        """
        forcing = from_node_values(self.pieces, self.values[:, :, neuron.index : neuron.index + 1])
        feeding = np.flatnonzero(self.feeds[neuron.index]).tolist()
        if not feeding:
            return forcing
        rough = ~_is_resolved(forcing, options)
        if not np.any(rough):
            return forcing
        seams = np.unique(np.concatenate([self.paths[j].breaks for j in feeding]))
        inside = np.clip(np.searchsorted(self.pieces, seams, side="right") - 1, 0, len(rough) - 1)
        pieces = np.unique(np.concatenate([self.pieces, seams[rough[inside]]]))
        nodes = node_times(pieces[:-1], pieces[1:], _SMOOTH_DEGREE)
        values = _from_input(self.drive, nodes.ravel(), self.layer.n_neurons)[:, neuron.index]
        for j in feeding:
            values = values - self._coupling(j, nodes.ravel())[:, neuron.index]
        return from_node_values(pieces, values.reshape(*nodes.shape, 1))

    def forcing_of(self, neuron: Neuron, path: PiecewisePolynomial, breaks: Array) -> Callable[[int], Forcing]:
        """Return the right-hand side of a neuron on each interval between breaks."""
        ends, series = breaks.tolist(), path.coefficients[:, :, 0]
        across = None if len(path.breaks) == len(breaks) else polynomial_forcing(path)

        def polynomial(k: int) -> Forcing:
            return across or piece_forcing(ends[k], ends[k + 1], series[k])

        signal = self.signal
        if self.drive is not None:
            return polynomial
        return lambda k: _function_forcing(signal, neuron, polynomial(k), float(np.nextafter(breaks[k + 1], breaks[k])))

    def _coupling(self, index: int, times: Array) -> Array:
        """Return K ξ + C ξ̇ of one neuron in the equations of those before it, `(len(times), n_neurons)`."""
        before = self.feeds[:, index]
        output = self.paths[index](times)
        coupling = np.multiply.outer(output[:, 0], np.where(before, self.layer.K[:, index], 0.0))
        if self.layer.is_second_order[index]:
            coupling += np.multiply.outer(output[:, 1], np.where(before, self.layer.C[:, index], 0.0))
        return np.asarray(coupling)


def layer_forcing(layer: HorizontalLayer, signal: Signal, breaks: Array) -> LayerForcing:
    """Return the forcing of a layer by the input alone, between breaks and the knots of the input."""
    inner = signal.knots[(signal.knots > breaks[0]) & (signal.knots < breaks[-1])]
    pieces = np.unique(np.concatenate([breaks, inner]))
    feeds = np.triu((layer.K != 0.0) | (layer.C != 0.0), 1)
    degree = signal.degree if signal.degree is not None and signal.degree <= _SMOOTH_DEGREE else None
    nodes = node_times(pieces[:-1], pieces[1:], _SMOOTH_DEGREE if feeds.any() else max(degree or 1, 1))
    # As few channels as the layer needs, however many inputs there are.
    drive = None if degree is None else signal.through(np.vstack([layer.E, layer.V]))
    values = _from_input(drive, nodes.ravel(), layer.n_neurons).reshape(*nodes.shape, layer.n_neurons)
    return LayerForcing(layer, signal, drive, feeds, pieces, nodes, values)


def _from_input(drive: Signal | None, times: Array, n_neurons: int) -> Array:
    """Return E u + V u̇ of a polynomial input; zeros for a function, which the solver evaluates at its steps."""
    if drive is None:
        return np.zeros((len(times), n_neurons))
    return np.asarray(drive.value(times)[:, :n_neurons] + drive.derivative(times)[:, n_neurons:])


def _is_resolved(path: PiecewisePolynomial, options: NeuronOptions) -> NDArray[np.bool_]:
    """Return, for each piece, True if its last coefficients are below the error of the dense outputs.

    With a longest step the tolerances do not determine that error: then only rounding is neglected.
    """
    series = np.abs(path.coefficients[:, :, 0])
    rtol, atol = (options.rtol, options.atol) if np.isinf(options.max_step) else (EPS, 0.0)
    return np.asarray(series[:, -2:].max(axis=1) <= 30.0 * (rtol * series.max() + atol))


def _function_forcing(signal: Signal, neuron: Neuron, coupling: Forcing, last: float) -> Forcing:
    """Return E u + V u̇ of a function u plus couplings; a jump at the end belongs to the next interval."""
    needs_derivative = bool(np.any(neuron.v))

    def forcing(t: float) -> float:
        at = np.array([min(t, last)])
        value = coupling(t) + float(signal.value(at)[0] @ neuron.e)
        return value + float(signal.derivative(at)[0] @ neuron.v) if needs_derivative else value

    return forcing


# Result.


class SolverRun:
    """Dense outputs of all neurons, assembled on request."""

    def __init__(
        self, prepared: SimulationContext, signal: Signal, batches: tuple[Sequence[LayerRun], ...], *, stop: float
    ) -> None:
        self.prepared, self.signal, self.batches = prepared, signal, batches
        self._stop = stop

    def neuron_states(self, t: Array) -> Array:
        """Return (ξ, ξ̇) at any times."""
        n_states = self.prepared.network.output_weights.shape[1]
        states = np.array([_layer_states(runs, t) for runs in self.batches])
        states = states.reshape(*self.signal.batch_shape, len(t), n_states)
        final = (t == self._stop)[:, None]  # dense outputs end before a jump at the very end
        jump = self.signal.value(t) - self.signal.value_before(t)
        return np.asarray(states + np.where(final, jump, 0.0) @ self.prepared.coordinates.J.T)

    def outputs(self, t: Array) -> Array:
        """Return outputs y at any times."""
        network = self.prepared.network
        return np.asarray(self.neuron_states(t) @ network.output_weights.T + self.signal.value(t) @ network.Psi.T)

    def input_corners(self, t: Array) -> tuple[Array, Array]:
        """Return times and values of the input for a plot, at the times t and at knots between them."""
        return polyline_points(self.signal, t)

    def user_states(self, t: Array) -> Array:
        """Return states x at any times."""
        coordinates = self.prepared.coordinates
        states = self.neuron_states(t) - self.signal.value(t) @ coordinates.J.T
        return coordinates.user_from_blocks(coordinates.blocks_from_neurons(states))


def _layer_states(runs: Sequence[LayerRun], t: Array) -> Array:
    """Return (ξ of all neurons, then ξ̇ of second-order ones) of layer after layer, `(len(t), n)`."""
    columns = [np.zeros((len(t), 0))]
    for run in runs:
        outputs = [path(t) for path in run.paths]
        columns += [output[:, :1] for output in outputs] + [output[:, 1:] for output in outputs]
    return np.hstack(columns)
