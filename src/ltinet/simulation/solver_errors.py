"""Error bounds of runs by ODE solvers, and tolerances of single neurons for a requested error.

Bounds follow the defect of each dense output through its layer to the outputs. A solver may step over a short pulse
of an input function, and polynomials on the pieces between its steps do not show it either; the function is therefore
sampled all over its span, and pieces whose polynomial misses a sample are halved.

The tolerance search runs the network, attributes the error of the worst output to the neurons, distributes the target
equally among them, and repeats until a further run would not save evaluations.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.polynomial import chebyshev

from ltinet._util.floating_point import EPS, Array
from ltinet.error_bounds.defect import (
    CollocationRule,
    DenseOutput,
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
from ltinet.simulation.system_arrays import NetworkArrays

# MERGED ltinet.simulation.solver_errors
# Pieces of time short enough for what a function of time does in them.
#
# A solver steps over a pulse that it does not meet, and polynomials on the pieces that its steps leave do not see the
# pulse either: a bound from them would be as blind as the solver. A function is therefore looked at all over its span,
# and pieces whose polynomial misses what was seen are cut in halves.

_ROUNDING = 64.0 * EPS  # of the largest value: what values of functions, and of polynomials through them, are off by
_HALVINGS = 40  # what a jump that is not among the knots leaves in a piece then is below rounding


class InputProbe(NamedTuple):
    """Times all over a span and the function there, none for samples, which are what they are between knots."""

    t: Array
    u: Array


def probe_input(signal: Signal, start: float, stop: float) -> InputProbe:
    """A first look at an input."""
    t = initial_sample_times(start, stop) if signal.degree is None else np.empty(0)
    return InputProbe(t, signal.value(t))


def refine_grid(signal: Signal, look: InputProbe, grid: Array, rule: CollocationRule) -> Array:
    """The grid, with pieces halved on which a polynomial through the function at the nodes misses what was seen."""
    inside = (look.t > grid[0]) & (look.t < grid[-1])
    t, u = look.t[inside], look.u[inside]
    allowed = _ROUNDING * np.max(np.abs(u), axis=0, initial=0.0)
    for _ in range(_HALVINGS):
        piece = np.searchsorted(grid, t, side="right") - 1
        looked_at, which = np.unique(piece, return_inverse=True)
        start, width = grid[looked_at], np.diff(grid)[looked_at]
        series = np.einsum("kj,njm->nkm", rule.to_series, _at_nodes(signal, start, width, rule))
        x = 2.0 * (t - start[which]) / width[which] - 1.0
        found = np.einsum("tk,tkm->tm", chebyshev.chebvander(x, rule.n_nodes), series[which])
        misses = np.any(np.abs(found - u) > allowed, axis=1)
        if not misses.any():
            break
        own = np.unique(piece[misses])
        grid = np.union1d(grid, 0.5 * (grid[own] + grid[own + 1]))
        near = np.isin(piece, own)
        t, u = t[near], u[near]
    return grid


def _at_nodes(signal: Signal, start: Array, width: Array, rule: CollocationRule) -> Array:
    """The function at the starts and at the nodes of some pieces, `(pieces, q + 1, m)`; at their ends before a jump."""
    times = start[:, None] + width[:, None] * np.append(0.0, rule.nodes[:-1])
    values = signal.value(times.ravel()).reshape(*times.shape, signal.n_inputs)
    return np.concatenate([values, signal.value_before(start + width)[:, None]], axis=1)


# MERGED ltinet.simulation.solver_errors
# Bounds for runs by solvers, and what the error of each neuron does to the outputs.


def bound_solver_run(path: SolverRun, cells: Array) -> tuple[OutputErrorBound, ...]:
    """The bound of every signal of a batch."""
    arrays = path.prepared.network_arrays
    gains = arrays.gains(float(cells[-1] - cells[0]))
    bounds = []
    starts = _starts(path, arrays, cells[:1])
    for signal, runs, start in zip(path.signal.unbatched(), path.batches, starts, strict=True):
        look = probe_input(signal, float(cells[0]), float(cells[-1]))
        largest = np.maximum(_largest(signal, cells), np.max(np.abs(look.u), axis=0, initial=0.0))
        records = (_record(own.equations, run, signal, largest, look) for own, run in zip(gains, runs, strict=True))
        layers = tuple(bound_layer_error(own, record, cells=cells) for own, record in zip(gains, records, strict=True))
        size = arrays.joined([own.size for own in layers], len(cells) - 1)
        rest = arrays.joined([own.rest for own in layers], len(cells) - 1)
        parts = arrays.output_parts(gains, rest, size=size, largest_input=largest, start=start, cells=cells)
        bounds.append(OutputErrorBound(cells, parts, layers, path.prepared.network.Phi))
    return tuple(bounds)


def bound_single_time(path: SolverRun, cells: Array) -> tuple[OutputErrorBound, ...]:
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


def neuron_error_shares(path: SolverRun) -> Array:
    """What the error of each neuron does to the worst output of a run, layer after layer, `(n_neurons,)`."""
    arrays, network = path.prepared.network_arrays, path.prepared.network
    largest = np.zeros(network.n_neurons)
    for signal, runs in zip(path.signal.unbatched(), path.batches, strict=True):
        shares, sizes = [np.zeros(0)], np.zeros(network.n_inputs)  # rounding has no share
        breaks = runs[0].paths[0].breaks if runs else np.zeros(1)
        look = probe_input(signal, float(breaks[0]), float(breaks[-1]))
        for equations, run, Phi in zip(arrays.layers, runs, network.Phi, strict=True):
            own = neuron_error_contributions(equations, _record(equations, run, signal, sizes, look), Phi)
            shares.append(np.max(own, axis=1, initial=0.0))
        largest = np.maximum(largest, np.concatenate(shares))
    return largest


def _starts(path: SolverRun, arrays: NetworkArrays, now: Array) -> Array:
    """The states z at the first time for every signal of a batch, `(batch, n)`."""
    z = path.neuron_states(now) - path.signal.value(now) @ arrays.J.T
    return z.reshape(len(path.batches), arrays.Phi.shape[1])


def _record(
    equations: LayerEquations, run: LayerRun, signal: Signal, largest_input: Array, look: InputProbe
) -> LayerDenseOutput:
    """What a run of a layer left behind, as bounds take it."""
    outputs = tuple(DenseOutput(path.breaks, path.coefficients) for path in run.paths)
    grid, rule = common_pieces(outputs, signal.knots)
    grid = refine_grid(signal, look, grid, rule) if len(look.t) else grid
    n = equations.n_states
    both = _on_pieces(signal, np.vstack([equations.G, equations.J]), grid=grid, rule=rule)
    return LayerDenseOutput(
        outputs,
        grid,
        rule,
        forcing=PiecewiseValues(both.start[:, :n], both.nodes[:, :, :n]),
        shift=PiecewiseValues(both.start[:, n:], both.nodes[:, :, n:]),
        forcing_size=np.abs(equations.G) @ largest_input,
        shift_size=np.abs(equations.J) @ largest_input,
    )


def _on_pieces(signal: Signal, weights: Array, *, grid: Array, rule: CollocationRule) -> PiecewiseValues:
    """Weights · u on all pieces; samples are straight lines there."""
    if signal.degree is not None and signal.degree <= 1:
        few = signal.through(weights)
        start, end = few.value(grid[:-1]), few.value_before(grid[1:])
        rise = end - start if signal.degree == 1 else np.zeros_like(start)
        return PiecewiseValues(start, start[:, None] + rule.nodes[:, None] * rise[:, None])
    start, end = signal.value(grid[:-1]), signal.value_before(grid[1:])
    times = grid[:-1, None] + np.diff(grid)[:, None] * rule.nodes[:-1]
    inside = signal.value(times.ravel()).reshape(*times.shape, signal.n_inputs)
    return PiecewiseValues(start @ weights.T, np.concatenate([inside, end[:, None]], axis=1) @ weights.T)


def _largest(signal: Signal, cells: Array) -> Array:
    """The largest |u| of every channel: at knots of samples, at many times of a function."""
    knots = signal.knots[(signal.knots >= cells[0]) & (signal.knots <= cells[-1])]
    times = np.concatenate([cells[:-1], knots])
    return np.asarray(np.max(np.maximum(np.abs(signal.value(times)), np.abs(signal.value_before(times))), axis=0))


# MERGED ltinet.simulation.solver_errors
# Tolerances for single neurons so that a simulation is as exact as asked, and no more.

Tolerances = Mapping[tuple[int, int], float]
Simulate = Callable[[Tolerances], Solution]

_LOOSEST, _TIGHTEST = 1e-2, 1e-13  # SciPy's solvers take no relative tolerance below 100 eps
_TARGET_FRACTION = 0.9  # of the target, since errors answer to tolerances in proportion only roughly
_MAX_RUNS = 10
_WORTHWHILE_RATIO = 0.999  # of the evaluations of the best run: what another run should save at least


@runtime_checkable
class HasNeuronShares(Protocol):
    """A trajectory that knows which neuron adds how much to its error."""

    def neuron_shares(self) -> Array:
        """What the error of each neuron does to the worst output, layer after layer, `(n_neurons,)`."""
        ...


@dataclass(frozen=True)
class NeuronTolerances:
    """Tolerances by (layer, neuron), to be passed on: `net.simulate(…, rtol=chosen.rtol, atol=chosen.atol)`."""

    rtol: Tolerances = field(repr=False)
    atol: Tolerances = field(repr=False)
    target: float
    bound: float
    """The largest `error_bound()` of an output of the run with these tolerances."""
    evaluations: int
    """What that run took."""
    n_runs: int
    """How many runs the choice took in all."""


def search_tolerances(simulate: Simulate, neurons: list[tuple[int, int]], *, target: float) -> NeuronTolerances:
    """Run, see which neuron adds how much to the error, share out the target equally, and run again.

    Raises:
        SimulationError: the bound stays above the target at the tightest tolerances: rounding alone exceeds it.
    """
    tolerances = np.full(len(neurons), np.clip(target, _TIGHTEST, _LOOSEST))
    met: Array | None = None
    best: NeuronTolerances | None = None
    aim = _TARGET_FRACTION
    for run in range(1, _MAX_RUNS + 1):
        chosen = dict(zip(neurons, tolerances.tolist(), strict=True))
        solution = simulate(chosen)
        bound = float(np.max(solution.error_bound(), initial=0.0))
        evaluations = int(solution.stats["total_evaluations"])
        if bound <= target:
            met = tolerances
            settled = best is not None and evaluations > _WORTHWHILE_RATIO * best.evaluations
            if best is None or evaluations < best.evaluations:
                best = NeuronTolerances(chosen, chosen, target, bound, evaluations, run)
            if settled:
                break
            wanted = _equal_share_tolerances(solution, tolerances, allowed=target / bound if bound > 0.0 else np.inf)
            after = np.sqrt(met * wanted)  # half the way: errors jump where a step more or less is taken
        elif met is not None:
            after = np.sqrt(met * tolerances)  # what is enough lies between the two
        else:
            aim *= _TARGET_FRACTION if bound < 2.0 * target else 1.0  # close, and not there: aim lower
            after = _equal_share_tolerances(solution, tolerances, allowed=aim * target / bound)
        if np.array_equal(after, tolerances):
            break
        tolerances = after
    if best is None:
        raise SimulationError(
            f"the bound is {bound:.2g} after {run} runs and does not come below the target {target:g}; rounding may "
            'exceed it: look at sol.error_parts(), raise the target, or use engine="exact"'
        )
    return replace(best, n_runs=run)


def _equal_share_tolerances(solution: Solution, tolerances: Array, *, allowed: float) -> Array:
    """Tolerances at which neurons are expected to add equal shares to an error that is `allowed` times that now.

    Errors of different neurons cancel in part: the sum of the shares is to change as the bound is.
    """
    trajectory = solution.trajectory
    if not isinstance(trajectory, HasNeuronShares):
        raise TypeError("tolerances are for runs by solvers")
    shares = trajectory.neuron_shares()
    budget = allowed * float(np.sum(shares))
    return update_tolerances(tolerances, shares, budget=budget, loosest=_LOOSEST, tightest=_TIGHTEST)
