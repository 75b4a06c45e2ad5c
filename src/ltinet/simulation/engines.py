"""Simulation engines by name: the exact engine, and the paper's Algorithms 3 and A.1 with SciPy's ODE solvers.

An engine takes a simulation context, a signal, times and x0, and returns a solution whose trajectory evaluates
outputs and states at any time and bounds its own error. The exact engine needs no step-size control, since between
samples the solution has a closed form; it steps the system in the user's or in block coordinates
(`coordinate_selection`). The solver engines integrate one ODE per neuron, in times counted from the first: at a large
offset the solvers' steps would be lost in rounding, while the difference of two times within a factor of two of each
other is exact.

To add an engine, write a class with `options` and `run`, and add it to `ENGINES`.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ltinet._util.floating_point import Array
from ltinet._util.progress import track_progress
from ltinet._util.text import install_hint, sanitize
from ltinet.error_bounds.output_bounds import OutputErrors, SolutionErrorBound, UnknownBound
from ltinet.errors import MissingDependencyError, SimulationError
from ltinet.signals.sampled import SampledSignal
from ltinet.signals.signal import Signal
from ltinet.simulation.context import Realization, SimulationContext
from ltinet.simulation.coordinate_selection import CoordinateChoice, select_coordinates
from ltinet.simulation.exact_run import ExactRun
from ltinet.simulation.forward_pass import Algorithm, LayerRun, LayerTask, SolverRun, solve_layer
from ltinet.simulation.options import SolverOptions, validate_input_tolerance
from ltinet.simulation.solution import Solution, outputs_at_jumps
from ltinet.simulation.solver_errors import bound_single_time, bound_solver_run, neuron_error_shares, uniform_cells
from ltinet.simulation.trajectory_error_bound import ExactErrorBound, bound_exact_run

_INPUT_TOLERANCE = 1e-8  # default distance of straight lines from an input function, relative to the largest |u|
_JUMP_TOLERANCE = 1e-8  # relative to u: changes of a function by one unit in the last place of t are smaller

Options = Mapping[str, Any]


class Engine(Protocol):
    """Method that simulates a network."""

    @property
    def options(self) -> frozenset[str]:
        """Names of the options that it accepts."""

    def run(
        self, context: SimulationContext, signal: Signal, t: Array, *, x0: Array | None, n_jobs: int, options: Options
    ) -> Solution:
        """Return the solution at the ascending times t, from the user's state x0 at t[0], zero if it is None.

        All `options` are in the set of the engine and not None; it validates their values.
        """


# Exact engine


class ExactTrajectory(ExactRun):
    """Exact run that bounds its own error."""

    outputs_at_samples: Array | None = None
    """Outputs at all samples, as far as the run needed them."""

    def error_bound(self, start: float, stop: float) -> ExactErrorBound | UnknownBound:
        """Return the error bound between two times; infinite where there are too many states for dense matrices."""
        return bound_exact_run(self, self.outputs_at_samples, start, stop)

    def output_errors(self, t: Array) -> OutputErrors:
        """Return the errors of the outputs at times t."""
        bound = self.error_bound(float(t[0]), float(t[-1]))
        if isinstance(bound, UnknownBound):
            shape = (*self.samples.batch_shape, len(t), self.realization.system.n_outputs)
            return OutputErrors(np.zeros(shape), np.full(shape, np.inf))
        return bound.errors_at(t)


class ExactEngine:
    """Outputs in closed form between samples; a batch is shared by `n_jobs` threads."""

    options = frozenset({"input_tolerance", "coordinates"})

    def run(
        self, context: SimulationContext, signal: Signal, t: Array, *, x0: Array | None, n_jobs: int, options: Options
    ) -> Solution:
        """Return the solution at the times t, from the state x0 at t[0]."""
        tolerance = validate_input_tolerance(options.get("input_tolerance", _INPUT_TOLERANCE))
        threads = n_jobs if n_jobs > 0 else (os.cpu_count() or 1) + 1 + n_jobs  # counted down from all cores
        samples, refinement, input_error = signal.sampled_over(t, tolerance=tolerance)
        coordinates = options.get("coordinates", "auto")
        realization = _select_realization(context, coordinates, samples)
        if realization.resolves_shift(samples.axis):
            samples = SampledSignal(samples.axis.without_step(), samples.u, hold=samples.hold)
            realization = _select_realization(context, coordinates, samples)
        trajectory = ExactTrajectory(realization, samples, x0, network=context, input_error=input_error)
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


def _select_realization(
    context: SimulationContext, coordinates: CoordinateChoice, samples: SampledSignal
) -> Realization:
    is_even = samples.step is not None
    return select_coordinates(context, coordinates, is_even=is_even, longest_step=samples.longest_step)


def _outputs_at(trajectory: ExactTrajectory, t: Array, *, threads: int) -> Array:
    """Return outputs at the times t; from those at all samples, which need no states, if these contain the times."""
    samples = trajectory.samples
    if samples.t is t or np.array_equal(samples.t, t):
        trajectory.outputs_at_samples = trajectory.sampled_outputs(threads=threads)
        return trajectory.outputs_at_samples
    positions = np.searchsorted(samples.t, t, side="right") - 1
    before = np.flatnonzero(t[1:] == t[:-1])  # the first of two equal times is before the jump
    positions[before] = np.searchsorted(samples.t, t[before], side="left")
    if np.array_equal(samples.t[positions], t):
        trajectory.outputs_at_samples = trajectory.sampled_outputs(threads=threads)
        return trajectory.outputs_at_samples[..., positions, :]
    return outputs_at_jumps(trajectory.outputs(t), t, samples, trajectory.realization.system.D)


# Solver engines


class SolverTrajectory(SolverRun):
    """Dense outputs of ODE solvers that bound their own error."""

    def error_bound(self, start: float, stop: float) -> SolutionErrorBound:
        """Return the error bound between two times."""
        cells = uniform_cells(start, stop)
        bounds = bound_solver_run(self, cells) if stop > start else bound_single_time(self, cells)
        return SolutionErrorBound(bounds, self.signal.batch_shape)

    def neuron_shares(self) -> Array:
        """Return the effect of the error of each neuron on the worst output, layer after layer, `(n_neurons,)`."""
        return neuron_error_shares(self)


@dataclass(frozen=True, eq=False)
class ShiftedTrajectory:
    """Trajectory whose time is counted from `origin`."""

    inner: SolverTrajectory
    origin: float

    def outputs(self, t: Array) -> Array:
        """Return outputs y at any times."""
        return self.inner.outputs(t - self.origin)

    def user_states(self, t: Array) -> Array:
        """Return states x at any times."""
        return self.inner.user_states(t - self.origin)

    def neuron_states(self, t: Array) -> Array:
        """Return (ξ, ξ̇) at any times."""
        return self.inner.neuron_states(t - self.origin)

    def input_corners(self, t: Array) -> tuple[Array, Array]:
        """Return the input for a plot, at the times t and at knots between them."""
        times, values = self.inner.input_corners(t - self.origin)
        return times + self.origin, values

    def error_bound(self, start: float, stop: float) -> SolutionErrorBound:
        """Return the error bound between two times."""
        return replace(self.inner.error_bound(start - self.origin, stop - self.origin), origin=self.origin)

    def neuron_shares(self) -> Array:
        """Return the effect of the error of each neuron on the worst output, layer after layer, `(n_neurons,)`."""
        return self.inner.neuron_shares()


@dataclass(frozen=True)
class SolverPlan:
    """Algorithm and options of a run by ODE solvers."""

    algorithm: Algorithm
    options: SolverOptions
    n_jobs: int
    across_knots: bool
    """True to integrate across knots of the input without a restart, as in the paper; for comparisons only."""


@dataclass(frozen=True)
class SolverEngine:
    """SciPy's solvers for one ODE per neuron, by Algorithm 3 ("per_neuron") or Algorithm A.1 ("per_interval").

    Layers are shared by `n_jobs` processes.
    """

    algorithm: Algorithm
    options = frozenset({"method", "rtol", "atol", "first_step", "max_step", "across_knots"})

    def run(
        self, context: SimulationContext, signal: Signal, t: Array, *, x0: Array | None, n_jobs: int, options: Options
    ) -> Solution:
        """Return the solution at the times t, from the state x0 at t[0].

        Times are counted from t[0]; a signal that cannot be shifted, a function of time, keeps its own.
        """
        solver_options = SolverOptions(**{name: options[name] for name in options if name != "across_knots"})
        plan = SolverPlan(self.algorithm, solver_options, n_jobs, bool(options.get("across_knots")))
        origin = float(t[0])
        shifted = signal.counted_from(origin)
        if shifted is None:
            return Solution(t, *simulate_with_solvers(context, signal, t, x0=x0, plan=plan))
        try:
            y, trajectory, stats = simulate_with_solvers(context, shifted, t - origin, x0=x0, plan=plan)
        except SimulationError as error:
            message = str(error).removesuffix(".")
            raise SimulationError(f"{message} (times are counted from t[0] = {origin!r}).") from None
        return Solution(t, y, ShiftedTrajectory(trajectory, origin), stats)


def simulate_with_solvers(
    context: SimulationContext, signal: Signal, t: Array, *, x0: Array | None, plan: SolverPlan
) -> tuple[Array, SolverTrajectory, dict[str, Any]]:
    """Return outputs at the times t, dense output in between, and statistics."""
    network = context.network
    plan.options.validate([layer.n_neurons for layer in network.layers])
    z0 = context.coordinates.neurons_from_blocks(context.initial_state(x0, signal.batch_shape))
    breaks = _restart_times(signal, t, plan)
    _check_no_jump_is_crossed(signal, breaks)
    singles = signal.unbatched()
    offsets = np.cumsum([0, *(layer.n_states for layer in network.layers)])
    tasks = []
    for single, start in zip(singles, z0, strict=True):
        for index, layer in enumerate(network.layers):
            z = start[offsets[index] : offsets[index + 1]]
            task = LayerTask(index, layer, single, breaks, z, plan.options, plan.algorithm, plan.across_knots)
            tasks.append(task)
    runs = _solve_layers(tasks, n_jobs=plan.n_jobs)
    batches = [runs[index * network.n_layers : (index + 1) * network.n_layers] for index in range(len(singles))]
    stop = float(t[-1]) if len(breaks) > 1 else np.nan  # at a single time no jump follows
    trajectory = SolverTrajectory(context, signal, tuple(batches), stop=stop)
    y = outputs_at_jumps(trajectory.outputs(t), t, signal, context.system.D)
    return y, trajectory, _statistics(batches, plan)


def _restart_times(signal: Signal, t: Array, plan: SolverPlan) -> Array:
    """Return the times at which integration restarts: knots of the input, and for Algorithm A.1 all times t."""
    ends = np.array([t[0], t[-1]])
    knots = signal.knots[(signal.knots > t[0]) & (signal.knots < t[-1])]
    if plan.across_knots:
        knots = knots[:0]
    return np.unique(np.concatenate([ends, knots, t if plan.algorithm == "per_interval" else ends]))


def _check_no_jump_is_crossed(signal: Signal, breaks: Array) -> None:
    """Raise an error if integration crosses a jump: the impulse in u̇ would be lost. Kinks are only inaccurate."""
    crossed = signal.knots[(signal.knots > breaks[0]) & (signal.knots < breaks[-1])]
    crossed = crossed[~np.isin(crossed, breaks)]
    if len(crossed):
        after, before = signal.value(crossed), signal.value_before(crossed)
        if np.max(np.abs(after - before), initial=0.0) > _JUMP_TOLERANCE * np.max(np.abs(after), initial=0.0):
            raise SimulationError("across_knots=True requires an input without jumps. Omit it, or remove the jumps.")


def _solve_layers(tasks: Sequence[LayerTask], *, n_jobs: int) -> list[LayerRun]:
    """Solve all tasks, in this process or with the active joblib backend: processes, or a cluster."""
    if n_jobs == 1:
        return list(track_progress(map(solve_layer, tasks), total=len(tasks), noun="layers"))
    try:
        import joblib
    except ImportError as error:
        raise MissingDependencyError(f"n_jobs needs joblib; {install_hint('parallel')}") from error
    backend, _ = joblib.parallel.get_active_backend()
    streams = backend.supports_return_generator  # all but multiprocessing, which returns all results at the end
    try:
        runs = joblib.Parallel(n_jobs=n_jobs, return_as="generator" if streams else "list")(
            joblib.delayed(solve_layer)(task) for task in tasks
        )
        return list(track_progress(runs, total=len(tasks), noun="layers"))
    except BrokenExecutor:  # base class of joblib's TerminatedWorkerError
        raise SimulationError(
            "a worker process was terminated, probably because the system ran out of memory. Use fewer processes than "
            f"n_jobs={n_jobs}."
        ) from None


def _statistics(batches: Sequence[Sequence[LayerRun]], plan: SolverPlan) -> dict[str, Any]:
    """Return evaluations, steps and seconds per layer and neuron, summed over a batch, and in total."""
    stats: dict[str, Any] = {"engine": plan.algorithm, "across_knots": plan.across_knots}
    for name in ("evaluations", "steps", "seconds"):
        layers = [np.sum([getattr(run, name) for run in runs], axis=0) for runs in zip(*batches, strict=True)]
        stats[name] = tuple(tuple(layer.tolist()) for layer in layers)
        stats[f"total_{name}"] = sum(sum(layer) for layer in stats[name])
    return stats


# Engines by name

ENGINES: dict[str, Engine] = {
    "exact": ExactEngine(),
    "per_neuron": SolverEngine("per_neuron"),
    "per_interval": SolverEngine("per_interval"),
}


def select_engine(name: Any, options: Mapping[str, Any]) -> tuple[Engine, dict[str, Any]]:
    """Return the engine of a name, and the options that are not None.

    Raises
    ------
    SimulationError
        The name is unknown, or the engine does not accept one of the options.
    """
    if not isinstance(name, str) or name not in ENGINES:
        raise SimulationError(f"engine must be one of {_join(map(_quote, ENGINES))}, got {sanitize(repr(name))}.")
    engine, options = ENGINES[name], {option: value for option, value in options.items() if value is not None}
    unknown = [option for option in options if option not in engine.options]
    if unknown:
        owners = [f"engine={_quote(other)}" for other in ENGINES if unknown[0] in ENGINES[other].options]
        hint = f"{unknown[0]} is an option of {_join(owners)}." if owners else "No engine has it."
        raise SimulationError(f"engine={_quote(name)} does not accept {_join(unknown)}. {hint}")
    return engine, options


def _quote(name: str) -> str:
    return f'"{name}"'


def _join(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
