"""Simulation engines by name: the exact engine, and the paper's Algorithms 3 and A.1 with SciPy's ODE solvers.

An engine takes a simulation context, a signal, times and x0, and returns a solution whose trajectory evaluates
outputs and states at any time and bounds its own error. The exact engine needs no step-size control, since between
samples the solution has a closed form; it steps the system in the user's or in block coordinates
(`coordinate_selection`). The solver engines integrate one ODE per neuron, in times counted from the first: at a large
offset the solvers' steps would be lost in rounding, while the difference of two times within a factor of two of each
other is exact.

To add an engine, write a class with `options` and `run`, and add it to `ENGINES`.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.blas_threads import limit_blas_threads_for_work
from ltinet._util.floating_point import Array
from ltinet._util.progress import track_progress
from ltinet._util.text import sanitize
from ltinet.error_bounds.output_bounds import SolutionErrorBound, UnknownBound
from ltinet.errors import MissingDependencyError, SimulationError
from ltinet.signals.sampled import SampledSignal
from ltinet.signals.signal import Signal
from ltinet.simulation.context import Realization, SimulationContext
from ltinet.simulation.coordinate_selection import CoordinateChoice, select_coordinates
from ltinet.simulation.exact_error_bound import bound_exact_run
from ltinet.simulation.exact_run import ExactRun
from ltinet.simulation.forward_pass import Algorithm, LayerRun, LayerTask, SolverRun, solve_layer
from ltinet.simulation.options import SolverOptions, validate_input_tolerance
from ltinet.simulation.solution import Solution, outputs_at_jumps
from ltinet.simulation.solver_errors import bound_single_time, bound_solver_run, neuron_error_shares
from ltinet.simulation.step_model import count_threads
from ltinet.simulation.time_cells import uniform_cells

# MERGED ltinet.simulation.engines
# The exact engine's trajectory: the path, and how far it may be off.


class ExactTrajectory(ExactRun):
    """An exact path that bounds its own error."""

    def error_bound(self, start: float, stop: float) -> SolutionErrorBound | UnknownBound:
        """How far outputs between two times may be off; not known where T is an operator."""
        if self.realization.has_operator:
            return UnknownBound(self.samples.batch_shape, self.realization.system.n_outputs)
        with limit_blas_threads_for_work(self.n_multiplications):
            return SolutionErrorBound(bound_exact_run(self, start, stop), self.samples.batch_shape)


# MERGED ltinet.simulation.engines
# The exact engine: no step-size control and no stiffness, since between samples the solution has a closed form.
#
# It steps the system in the user's coordinates or in those of its blocks (`select_coordinates`), never in the
# second-order form of neurons.

_INPUT_TOLERANCE = 1e-8  # of the largest |u|: how far straight lines may be from a function


class ExactEngine:
    """Outputs in closed form."""

    options = frozenset({"input_tolerance", "coordinates"})

    def run(
        self,
        prepared: SimulationContext,
        signal: Signal,
        t: Array,
        *,
        x0: ArrayLike | None,
        n_jobs: int,
        options: Mapping[str, Any],
    ) -> Solution:
        """Outputs at the times t, from the state x0 at t[0]; a batch is shared by `n_jobs` threads."""
        given = options.get("input_tolerance")
        tolerance = _INPUT_TOLERANCE if given is None else validate_input_tolerance(given)
        threads = count_threads(n_jobs)
        samples, refinement, off = signal.sampled_over(t, tolerance=tolerance)
        realization = _realization(prepared, samples, options.get("coordinates", "auto"))
        if realization.resolves_shift(samples.axis):
            samples = SampledSignal(samples.axis.without_step(), samples.u, hold=samples.hold)
            realization = _realization(prepared, samples, options.get("coordinates", "auto"))
        trajectory = ExactTrajectory(realization, samples, x0, network=prepared, input_error=off)
        y = _outputs_at(trajectory, t, threads=threads)
        stats: dict[str, Any] = {
            "engine": "exact",
            "coordinates": realization.name,
            "grid": "irregular" if samples.step is None else "uniform",
            "algorithm": trajectory.algorithm,
            "n_samples": len(samples.t),
            "samples_per_interval": refinement,
        }
        return Solution(t, y, trajectory, stats)


def _realization(prepared: SimulationContext, samples: SampledSignal, wanted: CoordinateChoice) -> Realization:
    return select_coordinates(prepared, wanted, is_even=samples.step is not None, longest_step=samples.longest_step)


def _outputs_at(trajectory: ExactTrajectory, t: Array, *, threads: int) -> Array:
    """Outputs at the times t: from those at all samples where t are among them, which needs no states in between."""
    samples = trajectory.samples
    if samples.t is t or np.array_equal(samples.t, t):
        return trajectory.sampled_outputs(threads=threads)
    places = np.searchsorted(samples.t, t, side="right") - 1
    before = np.flatnonzero(t[1:] == t[:-1])  # of a time given twice the first is the one before the jump
    places[before] = np.searchsorted(samples.t, t[before], side="left")
    if np.array_equal(samples.t[places], t):
        return trajectory.sampled_outputs(threads=threads)[..., places, :]
    return outputs_at_jumps(trajectory.outputs(t), t, samples, trajectory.realization.system.D)


# MERGED ltinet.simulation.engines
# A run by solvers, and how far it may be off.


class SolverTrajectory(SolverRun):
    """Dense outputs that bound their own error."""

    def error_bound(self, start: float, stop: float) -> SolutionErrorBound:
        """How far outputs between two times may be off."""
        cells = uniform_cells(start, stop)
        bounds = bound_solver_run(self, cells) if stop > start else bound_single_time(self, cells)
        return SolutionErrorBound(bounds, self.signal.batch_shape)

    def neuron_shares(self) -> Array:
        """What the error of each neuron does to the worst output, layer after layer, `(n_neurons,)`."""
        return neuron_error_shares(self)


# MERGED ltinet.simulation.engines
# The paper's forward passes: one ODE per neuron, any SciPy solver per neuron, layers independent of each other.

_JUMP_TOLERANCE = 1e-8  # relative to u: what a function changes by in one unit in the last place of t is no jump


@dataclass(frozen=True)
class SolverPlan:
    """How the solver engines run."""

    algorithm: Algorithm
    options: SolverOptions
    n_jobs: int
    across_knots: bool
    """Integrate over knots of the input as if they were not there, as the paper does; for comparisons only."""


def simulate_with_solvers(
    prepared: SimulationContext, signal: Signal, t: Array, *, x0: ArrayLike | None, plan: SolverPlan
) -> tuple[Array, SolverTrajectory, dict[str, Any]]:
    """Outputs at the times t by Algorithm 3 or Algorithm A.1, with dense output in between, and what it took."""
    network = prepared.network
    plan.options.check_keys([layer.n_neurons for layer in network.layers])
    z0 = prepared.coordinates.neurons_from_blocks(prepared.initial_state(x0, signal.batch_shape))
    breaks = _restart_times(signal, t, plan)
    _refuse_jumps_between(signal, breaks)
    singles = signal.unbatched()
    offsets = np.cumsum([0, *(layer.n_states for layer in network.layers)])
    tasks = [
        LayerTask(
            index,
            layer,
            single,
            breaks,
            start[offsets[index] : offsets[index + 1]],
            plan.options,
            plan.algorithm,
            plan.across_knots,
        )
        for single, start in zip(singles, z0, strict=True)
        for index, layer in enumerate(network.layers)
    ]
    runs = _solve_layers(tasks, n_jobs=plan.n_jobs)
    batches = [runs[index * network.n_layers : (index + 1) * network.n_layers] for index in range(len(singles))]
    stop = float(t[-1]) if len(breaks) > 1 else np.nan  # at a single time there is no jump left to come
    trajectory = SolverTrajectory(prepared, signal, tuple(batches), stop=stop)
    y = outputs_at_jumps(trajectory.outputs(t), t, signal, prepared.system.D)
    return y, trajectory, _statistics(batches, plan)


def _restart_times(signal: Signal, t: Array, plan: SolverPlan) -> Array:
    """Where integration restarts: at the knots of the input, and for Algorithm A.1 at all times asked for."""
    ends = np.array([t[0], t[-1]])
    knots = signal.knots[(signal.knots > t[0]) & (signal.knots < t[-1])]
    if plan.across_knots:
        knots = knots[:0]
    return np.unique(np.concatenate([ends, knots, t if plan.algorithm == "per_interval" else ends]))


def _refuse_jumps_between(signal: Signal, breaks: Array) -> None:
    """Integration across kinks is inaccurate, across jumps it is wrong: the impulse in u̇ would be lost."""
    crossed = signal.knots[(signal.knots > breaks[0]) & (signal.knots < breaks[-1])]
    crossed = crossed[~np.isin(crossed, breaks)]
    if len(crossed):
        after, before = signal.value(crossed), signal.value_before(crossed)
        if np.max(np.abs(after - before), initial=0.0) > _JUMP_TOLERANCE * np.max(np.abs(after), initial=0.0):
            raise SimulationError('across_knots is for inputs without jumps; leave it out, or use hold="linear"')


def _solve_layers(tasks: Sequence[LayerTask], *, n_jobs: int) -> list[LayerRun]:
    """All tasks, here or through whatever backend joblib is set to: its own processes, or a cluster."""
    if n_jobs == 1:
        return list(track_progress(map(solve_layer, tasks), total=len(tasks), noun="layers"))
    try:
        import joblib
    except ImportError as error:
        raise MissingDependencyError('n_jobs needs joblib; install it with pip install "ltinet[parallel]"') from error
    backend, _ = joblib.parallel.get_active_backend()
    streams = backend.supports_return_generator  # all do but multiprocessing, whose results come at the end at once
    try:
        runs = joblib.Parallel(n_jobs=n_jobs, return_as="generator" if streams else "list")(
            joblib.delayed(solve_layer)(task) for task in tasks
        )
        return list(track_progress(runs, total=len(tasks), noun="layers"))
    except BrokenExecutor:  # joblib's TerminatedWorkerError is one
        raise SimulationError(
            f"a process that solved layers was ended from outside, as systems do that run out of memory; run it again "
            f"with fewer processes than n_jobs={n_jobs}"
        ) from None


def _statistics(batches: Sequence[Sequence[LayerRun]], plan: SolverPlan) -> dict[str, Any]:
    """Evaluations, steps and seconds per layer and neuron, summed over a batch, and in total."""
    stats: dict[str, Any] = {"engine": plan.algorithm, "across_knots": plan.across_knots}
    for name in ("evaluations", "steps", "seconds"):
        layers = [np.sum([getattr(own, name) for own in runs], axis=0) for runs in zip(*batches, strict=True)]
        stats[name] = tuple(tuple(own.tolist()) for own in layers)
        stats[f"total_{name}"] = sum(sum(own) for own in stats[name])
    return stats


# MERGED ltinet.simulation.engines
# Runs by solvers in times counted from the first: at a large offset a solver's steps would drown in its rounding.
#
# The system does not change with time, and a difference of two times within a factor of two of each other is exact.


@dataclass(frozen=True, eq=False)
class ShiftedTrajectory:
    """A solution whose time zero is at `origin`."""

    inner: SolverTrajectory
    origin: float

    def outputs(self, t: Array) -> Array:
        """Outputs y at any times."""
        return self.inner.outputs(t - self.origin)

    def user_states(self, t: Array) -> Array:
        """States x at any times."""
        return self.inner.user_states(t - self.origin)

    def neuron_states(self, t: Array) -> Array:
        """(ξ, ξ̇) at any times."""
        return self.inner.neuron_states(t - self.origin)

    def input_corners(self, t: Array) -> tuple[Array, Array]:
        """The input as a picture shows it, at the times t and at knots between them."""
        times, values = self.inner.input_corners(t - self.origin)
        return times + self.origin, values

    def error_bound(self, start: float, stop: float) -> SolutionErrorBound:
        """How far outputs between two times may be off."""
        return replace(self.inner.error_bound(start - self.origin, stop - self.origin), origin=self.origin)

    def neuron_shares(self) -> Array:
        """What the error of each neuron does to the worst output, layer after layer, `(n_neurons,)`."""
        return self.inner.neuron_shares()


def simulate_from_zero(
    prepared: SimulationContext, signal: Signal, t: Array, *, x0: ArrayLike | None, plan: SolverPlan
) -> Solution:
    """Outputs at the times t by solvers, in times counted from t[0] where that takes nothing from them.

    A function of time is asked for its values at the times that were given, and stays as it is.
    """
    origin = float(t[0])
    moved = signal.counted_from(origin)
    if moved is None:
        return Solution(t, *simulate_with_solvers(prepared, signal, t, x0=x0, plan=plan))
    try:
        y, trajectory, stats = simulate_with_solvers(prepared, moved, t - origin, x0=x0, plan=plan)
    except SimulationError as error:
        raise SimulationError(f"{error} (times counted from t[0] = {origin!r})") from None
    return Solution(t, y, ShiftedTrajectory(trajectory, origin), stats)


# MERGED ltinet.simulation.engines
# The engines "per_neuron" (Algorithm 3) and "per_interval" (Algorithm A.1): one differential equation per neuron.


@dataclass(frozen=True)
class SolverEngine:
    """Outputs by SciPy's solvers, by one of the paper's two forward passes."""

    algorithm: Algorithm
    options = frozenset({"method", "rtol", "atol", "first_step", "max_step", "across_knots"})

    def run(
        self,
        prepared: SimulationContext,
        signal: Signal,
        t: Array,
        *,
        x0: ArrayLike | None,
        n_jobs: int,
        options: Mapping[str, Any],
    ) -> Solution:
        """Outputs at the times t, from the state x0 at t[0]; layers are shared by `n_jobs` processes."""
        own = {name: value for name, value in options.items() if name != "across_knots"}
        plan = SolverPlan(self.algorithm, SolverOptions(**own), n_jobs, bool(options.get("across_knots")))
        return simulate_from_zero(prepared, signal, t, x0=x0, plan=plan)


# MERGED ltinet.simulation.engines
# The engines by name: whoever writes another adds a file, and a line to the table.
#
# An engine takes a prepared network, a signal, times and x0, and gives back a solution, whose trajectory knows outputs
# and states at any time and bounds its own error.


class Engine(Protocol):
    """A way to run a network."""

    @property
    def options(self) -> frozenset[str]:
        """The names of the options that it knows."""
        ...

    def run(
        self,
        prepared: SimulationContext,
        signal: Signal,
        t: Array,
        *,
        x0: ArrayLike | None,
        n_jobs: int,
        options: Mapping[str, Any],
    ) -> Solution:
        """Outputs at the ascending times t, from the user's state x0 at t[0], zero if it is None.

        `options` are those that were given, all of them known to the engine; it checks their values.
        """
        ...


ENGINES: dict[str, Engine] = {
    "exact": ExactEngine(),
    "per_neuron": SolverEngine("per_neuron"),
    "per_interval": SolverEngine("per_interval"),
}


def select_engine(name: Any, given: Mapping[str, Any]) -> tuple[Engine, dict[str, Any]]:
    """The engine of a name, with the options that were given, not None.

    Raises:
        SimulationError: no engine has this name, or it does not know one of the options: it would have no effect.
    """
    if not isinstance(name, str) or name not in ENGINES:
        raise SimulationError(f"engine is {sanitize(repr(name))}; known are {_listed(map(_quoted, ENGINES))}")
    engine, options = ENGINES[name], {option: value for option, value in given.items() if value is not None}
    if not engine.options.issuperset(options):
        foreign = [option for option in options if option not in engine.options]
        owners = [f"engine={_quoted(other)}" for other, own in ENGINES.items() if foreign[0] in own.options]
        way_out = f"leave out what belongs to {_listed(owners)}, or choose that" if owners else "no engine knows it"
        raise SimulationError(f"engine={_quoted(name)} has no {' and no '.join(foreign)}; {way_out}")
    return engine, options


def _quoted(name: str) -> str:
    return f'"{name}"'


def _listed(names: Any) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else str(last)
