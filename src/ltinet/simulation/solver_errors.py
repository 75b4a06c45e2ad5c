"""Error bounds of runs by ODE solvers, and tolerances of single neurons for a requested error.

Bounds follow the defect of each dense output through its layer to the outputs (`error_bounds.defect`). A solver may
step over a short pulse of an input function, and polynomials on the pieces between its steps do not show it either; the
function is therefore sampled all over its span, and pieces whose polynomial misses a sample are halved. Pulses between
these samples remain unseen: for functions of time the bound is an estimate in this respect.

The tolerance search runs the network, attributes the error of the worst output to the neurons, distributes the target
equally among them, and repeats until a further run would not save evaluations.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from ltinet._util.floating_point import EPS, Array
from ltinet.error_bounds.defect import (
    CollocationRule,
    LayerDenseOutput,
    PiecewiseValues,
    bound_layer_error,
    common_pieces,
    neuron_error_contributions,
    update_tolerances,
)
from ltinet.error_bounds.gains import LayerEquations, LayerGains, bound_rounding
from ltinet.error_bounds.output_bounds import OutputErrorBound
from ltinet.errors import SimulationError
from ltinet.signals.adaptive_sampling import initial_sample_times
from ltinet.signals.signal import Signal
from ltinet.simulation.forward_pass import LayerRun, SolverRun
from ltinet.simulation.solution import Solution

_FUNCTION_ROUNDING = 64.0 * EPS  # relative to the largest value: rounding of functions and of polynomials through them
_MAX_HALVINGS = 40  # after these the contribution of a jump that is not among the knots is below rounding
_N_CELLS = 128  # cells of time: bounds hold for any number, and are smaller and slower to compute with more
_LOOSEST, _TIGHTEST = 1e-2, 1e-13  # SciPy's solvers take no relative tolerance below 100 eps
_TARGET_FRACTION = 0.9  # of the target, since errors are proportional to tolerances only roughly
_MAX_RUNS = 10  # an error where no bound of a run has reached the target
_WORTHWHILE_RATIO = 0.999  # of the evaluations of the best run: what another run should save at least

Tolerances = Mapping[tuple[int, int], float]
Simulate = Callable[[Tolerances], Solution]


# Error bounds


def uniform_cells(start: float, stop: float) -> NDArray[np.float64]:
    """Return the edges of equal cells; that of a single time is as long as its rounding."""
    if stop > start:
        return np.linspace(start, stop, _N_CELLS + 1)
    return start + np.array([0.0, EPS * (1.0 + abs(start))])


def bound_solver_run(run: SolverRun, cells: Array) -> tuple[OutputErrorBound, ...]:
    """Return the bound of every signal of a batch."""
    gains = run.prepared.network_arrays.gains(float(cells[-1] - cells[0]))
    bounds = []
    for signal, runs, start in zip(run.signal.unbatched(), run.batches, _initial_states(run, cells[:1]), strict=True):
        probe = _probe_input(signal, float(cells[0]), float(cells[-1]))
        largest = np.maximum(_largest_inputs(signal, cells), np.max(np.abs(probe.u), axis=0, initial=0.0))
        layers = tuple(
            bound_layer_error(layer, _dense_output(layer.equations, layer_run, signal, largest, probe), cells=cells)
            for layer, layer_run in zip(gains, runs, strict=True)
        )
        states = [(layer.size, layer.rest) for layer in layers]
        parts = _output_parts(run, gains, states, largest_input=largest, start=start, cells=cells)
        bounds.append(OutputErrorBound(cells, parts, layers, run.prepared.network.Phi))
    return tuple(bounds)


def bound_single_time(run: SolverRun, cells: Array) -> tuple[OutputErrorBound, ...]:
    """Return the bounds of a run at a single time: rounding of the initial states and of the sums for the outputs."""
    gains = run.prepared.network_arrays.gains(float(cells[1] - cells[0]))
    bounds = []
    for signal, start in zip(run.signal.unbatched(), _initial_states(run, cells[:1]), strict=True):
        largest = np.abs(signal.value(cells[:1])[0])
        starts = np.split(start, np.cumsum([layer.equations.n_states for layer in gains])[:-1])
        states = [
            bound_rounding(layer, largest_input=largest, start=layer_start, step=1.0, cells=cells)
            for layer, layer_start in zip(gains, starts, strict=False)  # one empty start without layers
        ]
        parts = _output_parts(run, gains, states, largest_input=largest, start=start, cells=cells)
        bounds.append(OutputErrorBound(cells, parts))
    return tuple(bounds)


def _output_parts(
    run: SolverRun, gains: tuple[LayerGains, ...], states: Sequence[tuple[Array, Array]], *, largest_input: Array,
    start: Array, cells: Array,
) -> dict[str, Array]:  # fmt: skip
    """Return the parts of the output error from sizes and errors of the states of each layer."""
    none = np.zeros((len(cells) - 1, 0))
    size, errors = (np.hstack([none, *layers]) for layers in (list(zip(*states, strict=True)) or [(), ()]))
    arrays = run.prepared.network_arrays
    return arrays.output_parts(gains, errors, size=size, largest_input=largest_input, start=start, cells=cells)


def neuron_error_shares(run: SolverRun) -> Array:
    """Return the effect of the error of each neuron on the worst output, layer after layer, `(n_neurons,)`."""
    arrays, network = run.prepared.network_arrays, run.prepared.network
    largest = np.zeros(network.n_neurons)
    for signal, runs in zip(run.signal.unbatched(), run.batches, strict=True):
        shares, no_input = [np.zeros(0)], np.zeros(network.n_inputs)  # rounding is not attributed to neurons
        breaks = runs[0].paths[0].breaks if runs else np.zeros(1)
        probe = _probe_input(signal, float(breaks[0]), float(breaks[-1]))
        for equations, layer_run, Phi in zip(arrays.layers, runs, network.Phi, strict=True):
            output = _dense_output(equations, layer_run, signal, no_input, probe)
            shares.append(np.max(neuron_error_contributions(equations, output, Phi), axis=1, initial=0.0))
        largest = np.maximum(largest, np.concatenate(shares))
    return largest


def _initial_states(run: SolverRun, now: Array) -> Array:
    """Return the states z at the first time for every signal of a batch, `(batch, n)`."""
    arrays = run.prepared.network_arrays
    z = run.neuron_states(now) - run.signal.value(now) @ arrays.J.T
    return z.reshape(len(run.batches), arrays.Phi.shape[1])


def _largest_inputs(signal: Signal, cells: Array) -> Array:
    """Return the largest |u| of every channel: at knots of samples, at many times of a function."""
    knots = signal.knots[(signal.knots >= cells[0]) & (signal.knots <= cells[-1])]
    times = np.concatenate([cells[:-1], knots])
    return np.asarray(np.max(np.maximum(np.abs(signal.value(times)), np.abs(signal.value_before(times))), axis=0))


# Inputs on pieces


class _InputProbe(NamedTuple):
    """Times all over a span and the input function there; empty for samples, which are polynomials between knots."""

    t: Array
    u: Array


def _probe_input(signal: Signal, start: float, stop: float) -> _InputProbe:
    t = initial_sample_times(start, stop) if signal.degree is None else np.empty(0)
    return _InputProbe(t, signal.value(t))


def _dense_output(
    equations: LayerEquations, run: LayerRun, signal: Signal, largest_input: Array, probe: _InputProbe
) -> LayerDenseOutput:
    """Return the dense outputs of a layer and its forcing on common pieces."""
    grid, rule = common_pieces(run.paths, signal.knots)
    grid = _refine_grid(signal, probe, grid, rule) if len(probe.t) else grid
    n = equations.n_states
    both = _weighted_input(signal, np.vstack([equations.G, equations.J]), grid=grid, rule=rule)
    return LayerDenseOutput(
        run.paths,
        grid,
        rule,
        forcing=PiecewiseValues(both.start[:, :n], both.nodes[:, :, :n]),
        shift=PiecewiseValues(both.start[:, n:], both.nodes[:, :, n:]),
        forcing_size=np.abs(equations.G) @ largest_input,
        shift_size=np.abs(equations.J) @ largest_input,
    )


def _refine_grid(signal: Signal, probe: _InputProbe, grid: Array, rule: CollocationRule) -> Array:
    """Halve the pieces on which a polynomial through the function at the nodes misses one of its samples."""
    inside = (probe.t > grid[0]) & (probe.t < grid[-1])
    t, u = probe.t[inside], probe.u[inside]
    tolerance = _FUNCTION_ROUNDING * np.max(np.abs(u), axis=0, initial=0.0)
    for _ in range(_MAX_HALVINGS):
        piece = np.searchsorted(grid, t, side="right") - 1
        pieces, index = np.unique(piece, return_inverse=True)
        start, width = grid[pieces], np.diff(grid)[pieces]
        # Values at the starts and at the nodes, (pieces, q + 1, m); at the ends before a jump.
        times = start[:, None] + width[:, None] * np.append(0.0, rule.nodes[:-1])
        values = signal.value(times.ravel()).reshape(*times.shape, signal.n_inputs)
        values = np.concatenate([values, signal.value_before(start + width)[:, None]], axis=1)
        series = np.einsum("kj,njm->nkm", rule.to_series, values)
        x = 2.0 * (t - start[index]) / width[index] - 1.0
        interpolated = np.einsum("tk,tkm->tm", chebyshev.chebvander(x, rule.n_nodes), series[index])
        misses = np.any(np.abs(interpolated - u) > tolerance, axis=1)
        if not misses.any():
            break
        halved = np.unique(piece[misses])
        grid = np.union1d(grid, 0.5 * (grid[halved] + grid[halved + 1]))
        is_near = np.isin(piece, halved)
        t, u = t[is_near], u[is_near]
    return grid


def _weighted_input(signal: Signal, weights: Array, *, grid: Array, rule: CollocationRule) -> PiecewiseValues:
    """Return weights · u on all pieces; samples are straight lines there."""
    if signal.degree is not None and signal.degree <= 1:
        weighted = signal.through(weights)
        start, end = weighted.value(grid[:-1]), weighted.value_before(grid[1:])
        rise = end - start if signal.degree == 1 else np.zeros_like(start)
        return PiecewiseValues(start, start[:, None] + rule.nodes[:, None] * rise[:, None])
    start, end = signal.value(grid[:-1]), signal.value_before(grid[1:])
    times = grid[:-1, None] + np.diff(grid)[:, None] * rule.nodes[:-1]
    inside = signal.value(times.ravel()).reshape(*times.shape, signal.n_inputs)
    return PiecewiseValues(start @ weights.T, np.concatenate([inside, end[:, None]], axis=1) @ weights.T)


# Tolerances of single neurons


@dataclass(frozen=True)
class NeuronTolerances:
    """Tolerances by (layer, neuron), for `net.simulate(…, rtol=chosen.rtol, atol=chosen.atol)`.

    Parameters
    ----------
    rtol, atol : mapping of (int, int) to float
        Tolerances of each neuron.
    target : float
        Requested error bound.
    bound : float
        Largest `error_bound()` of an output of the run with these tolerances.
    evaluations : int
        Number of evaluations of that run.
    n_runs : int
        Number of runs that the search took.
    """

    rtol: Tolerances = field(repr=False)
    atol: Tolerances = field(repr=False)
    target: float
    bound: float
    evaluations: int
    n_runs: int


def search_tolerances(simulate: Simulate, neurons: list[tuple[int, int]], *, target: float) -> NeuronTolerances:
    """Search the tolerances with the fewest evaluations whose error bound is at most the target.

    Raises
    ------
    SimulationError
        The bound stays above the target at the tightest tolerances: rounding alone exceeds it.
    """
    tolerances = np.full(len(neurons), np.clip(target, _TIGHTEST, _LOOSEST))
    sufficient: Array | None = None
    best: NeuronTolerances | None = None
    fraction = _TARGET_FRACTION
    for run in range(1, _MAX_RUNS + 1):
        mapping = dict(zip(neurons, tolerances.tolist(), strict=True))
        solution = simulate(mapping)
        bound = float(np.max(solution.error_bound(), initial=0.0))
        evaluations = int(solution.stats["total_evaluations"])
        if bound <= target:
            sufficient = tolerances
            settled = best is not None and evaluations > _WORTHWHILE_RATIO * best.evaluations
            if best is None or evaluations < best.evaluations:
                best = NeuronTolerances(mapping, mapping, target, bound, evaluations, run)
            if settled:
                break
            equal = _equal_share_tolerances(solution, tolerances, factor=target / bound if bound > 0.0 else np.inf)
            after = np.sqrt(sufficient * equal)  # half the way: errors jump where the number of steps changes
        elif sufficient is not None:
            after = np.sqrt(sufficient * tolerances)  # the loosest sufficient tolerances lie between the two
        else:
            fraction *= _TARGET_FRACTION if bound < 2.0 * target else 1.0  # close to the target: aim below it
            after = _equal_share_tolerances(solution, tolerances, factor=fraction * target / bound)
        if np.array_equal(after, tolerances):
            break
        tolerances = after
    if best is None:
        raise SimulationError(
            f"the error bound is {bound:.2g} after {run} runs and does not reach the target {target:g}; rounding may "
            'exceed it: check sol.error_parts(), raise the target, or use engine="exact"'
        )
    return replace(best, n_runs=run)


def _equal_share_tolerances(solution: Solution, tolerances: Array, *, factor: float) -> Array:
    """Return tolerances at which neurons are expected to add equal shares to an error `factor` times the present one.

    Errors of different neurons cancel in part: the sum of the shares is to change as the bound does.
    """
    trajectory: Any = solution.trajectory  # of a solver engine, which attributes its error to neurons
    shares = trajectory.neuron_shares()
    budget = factor * float(np.sum(shares))
    return update_tolerances(tolerances, shares, budget=budget, loosest=_LOOSEST, tightest=_TIGHTEST)
