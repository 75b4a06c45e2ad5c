"""The paper's forward passes: one ODE per neuron, any SciPy solver per neuron, layers independent of each other."""

from collections.abc import Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltinet.arrays import Array
from ltinet.errors import MissingDependencyError, SimulationError
from ltinet.progress import counted
from ltinet.signals.signal import Signal
from ltinet.solve.jumps import before_jumps
from ltinet.solve.prepared import PreparedNetwork
from ltinet.solve.solvers.layer_path import Algorithm, LayerRun, LayerTask, solve_layer
from ltinet.solve.solvers.options import SolverOptions
from ltinet.solve.solvers.trajectory import SolverTrajectory

_JUMP = 1e-8  # relative to u: what a function changes by in one unit in the last place of t is no jump


@dataclass(frozen=True)
class SolverPlan:
    """How the solver engines run."""

    algorithm: Algorithm
    options: SolverOptions
    n_jobs: int
    across_knots: bool
    """Integrate over knots of the input as if they were not there, as the paper does; for comparisons only."""


def simulate_with_solvers(
    prepared: PreparedNetwork, signal: Signal, t: Array, *, x0: ArrayLike | None, plan: SolverPlan
) -> tuple[Array, SolverTrajectory, dict[str, Any]]:
    """Outputs at the times t by Algorithm 3 or Algorithm A.1, with dense output in between, and what it took."""
    network = prepared.network
    plan.options.check_keys([layer.n_neurons for layer in network.layers])
    z0 = prepared.coordinates.neurons_from_blocks(prepared.initial_state(x0, signal.batch_shape))
    breaks = _breaks(signal, t, plan)
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
    runs = _run(tasks, n_jobs=plan.n_jobs)
    batches = [runs[index * network.n_layers : (index + 1) * network.n_layers] for index in range(len(singles))]
    stop = float(t[-1]) if len(breaks) > 1 else np.nan  # at a single time there is no jump left to come
    trajectory = SolverTrajectory(prepared, signal, tuple(batches), stop=stop)
    y = before_jumps(trajectory.outputs(t), t, signal, prepared.system.D)
    return y, trajectory, _stats(batches, plan)


def _breaks(signal: Signal, t: Array, plan: SolverPlan) -> Array:
    """Where integration restarts: at the knots of the input, and for Algorithm A.1 at all times asked for."""
    ends = np.array([t[0], t[-1]])
    knots = signal.knots[(signal.knots > t[0]) & (signal.knots < t[-1])]
    if plan.across_knots:
        knots = knots[:0]
    return np.unique(np.concatenate([ends, knots, t if plan.algorithm == "intervals" else ends]))


def _refuse_jumps_between(signal: Signal, breaks: Array) -> None:
    """Integration across kinks is inaccurate, across jumps it is wrong: the impulse in u̇ would be lost."""
    crossed = signal.knots[(signal.knots > breaks[0]) & (signal.knots < breaks[-1])]
    crossed = crossed[~np.isin(crossed, breaks)]
    if len(crossed):
        after, before = signal.value(crossed), signal.value_before(crossed)
        if np.max(np.abs(after - before), initial=0.0) > _JUMP * np.max(np.abs(after), initial=0.0):
            raise SimulationError('across_knots is for inputs without jumps; leave it out, or use hold="linear"')


def _run(tasks: Sequence[LayerTask], *, n_jobs: int) -> list[LayerRun]:
    """All tasks, here or through whatever backend joblib is set to: its own processes, or a cluster."""
    if n_jobs == 1:
        return list(counted(map(solve_layer, tasks), total=len(tasks), noun="layers"))
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
        return list(counted(runs, total=len(tasks), noun="layers"))
    except BrokenExecutor:  # joblib's TerminatedWorkerError is one
        raise SimulationError(
            f"a process that solved layers was ended from outside, as systems do that run out of memory; run it again "
            f"with fewer processes than n_jobs={n_jobs}"
        ) from None


def _stats(batches: Sequence[Sequence[LayerRun]], plan: SolverPlan) -> dict[str, Any]:
    """Evaluations, steps and seconds per layer and neuron, summed over a batch, and in total."""
    stats: dict[str, Any] = {"engine": plan.algorithm, "across_knots": plan.across_knots}
    for name in ("evaluations", "steps", "seconds"):
        layers = [np.sum([getattr(own, name) for own in runs], axis=0) for runs in zip(*batches, strict=True)]
        stats[name] = tuple(tuple(own.tolist()) for own in layers)
        stats[f"total_{name}"] = sum(sum(own) for own in stats[name])
    return stats
