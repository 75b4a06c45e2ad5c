"""Simulation of a network or a system from user input: options, times, input signal and initial state.

All arguments are validated here, once. Networks run by one of the engines; large sparse models run by the implicit
method. If a network stands for a reduced model, the error of the reduction is bounded by

    |e(t)| ≤ ‖G − G_r‖ ‖u‖,

with the H2 norm of the reduction error and the norm of u in L2(0, t).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.floating_point import Array
from ltinet._util.progress import Progress, show_progress
from ltinet.error_bounds.output_bounds import ReductionError
from ltinet.errors import InvalidSignalError, SimulationError
from ltinet.signals.arrays import as_real_array
from ltinet.signals.conversion import NamedColumns, suggest_swapped_arguments
from ltinet.signals.sampled import Hold, validate_hold
from ltinet.signals.signal import Signal
from ltinet.signals.times import as_real_times
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.delayed_stepper import DelayedStepper
from ltinet.simulation.delays import model_input, solution_from_core
from ltinet.simulation.discrete import refuse_linear_hold, resolve_time_step, simulate_discrete
from ltinet.simulation.engines import select_engine
from ltinet.simulation.implicit import simulate_implicit
from ltinet.simulation.options import validate_n_jobs
from ltinet.simulation.solution import Solution, with_notes
from ltinet.simulation.stepper import Stepper
from ltinet.systems.signal_names import UNNAMED
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.systems.system_matrices import SystemMatrices

_ENERGY_TOLERANCE = 1e-3  # of max |u|: polyline that replaces an input whose energy is integrated; its error is added
_MISSING_TIMES = "t is missing; a model in continuous time needs times. Pass simulate(u, t)"
_DEFAULT_IMPLICIT_TOLERANCE = 1e-6  # relative error tolerance of the implicit solver


def simulate_system(  # noqa: PLR0913
    system: SystemMatrices,
    context: Callable[[], SimulationContext],
    u: Any,
    *,
    t: ArrayLike | None,
    x0: ArrayLike | None,
    hold: Hold | None,
    tolerance: float | None,
    settings: SignalSettings,
    progress: Progress = None,
) -> Solution:
    """Simulate a system: large sparse models by the implicit method or, in discrete time, sample by sample, others exactly.

    The arguments are those of `ltinet.StateSpace.simulate`. `context` is called only if the network is needed.
    """
    t = resolve_times(t, u)
    pencil = system.sparse
    if pencil is None or (tolerance is None and not pencil.is_large):
        if tolerance is not None:
            raise SimulationError(
                "tolerance is for the implicit solver of sparse models, and this system is simulated exactly. "
                "Omit tolerance."
            )
        return simulate(context(), u, t=t, x0=x0, hold=hold, settings=settings)
    if system.dt is not None:
        if tolerance is not None:
            raise SimulationError(
                "tolerance is for the implicit solver of differential equations, and the model is in discrete time. Omit it."
            )
        solution, _ = simulate_discrete(
            context(), u, t=t, x0=x0, hold=hold, engine="exact", n_jobs=1, options={}, settings=settings,
            sparse_system=system,
        )  # fmt: skip
        return with_notes(solution, settings.notes)
    if t is None:
        raise suggest_swapped_arguments(InvalidSignalError(_MISSING_TIMES), u)
    tolerance = _DEFAULT_IMPLICIT_TOLERANCE if tolerance is None else tolerance
    hold = resolve_hold(hold, settings)
    with show_progress(f"integrating {system.n_states} states", progress) as report:
        return simulate_implicit(
            system, pencil, u, t=t, x0=x0, hold=hold, tolerance=tolerance, settings=settings, report=report
        )


def simulate(  # noqa: PLR0913
    context: SimulationContext,
    u: Any,
    *,
    t: ArrayLike | None,
    x0: ArrayLike | None = None,
    hold: Hold | None = None,
    engine: str = "exact",
    n_jobs: int = 1,
    options: Mapping[str, Any] | None = None,
    settings: SignalSettings = NO_SETTINGS,
) -> Solution:
    """Validate all arguments and run the engine; the arguments are those of `ltinet.DynamicNetwork.simulate`."""
    engine_object, engine_options = select_engine(engine, options or {})
    t = resolve_times(t, u)
    n_jobs = validate_n_jobs(n_jobs)
    if context.dt is not None:
        solution, energy = simulate_discrete(
            context, u, t=t, x0=x0, hold=hold, engine=engine, n_jobs=n_jobs, options=engine_options, settings=settings
        )
        solution = with_notes(solution, settings.notes)
        if context.reduction_error is None:
            return solution
        norm = context.reduction_error if x0 is None or not np.any(x0) else math.inf
        error = ReductionError(norm, energy.t, energy.values, solution.y.shape[-1])
        return replace(solution, reduction=error)
    try:
        if t is None:
            raise InvalidSignalError(_MISSING_TIMES)
        axis = context.time_axis(as_real_times(t, "t"))
    except InvalidSignalError as error:
        raise suggest_swapped_arguments(error, u) from None
    names, hold = context.names, resolve_hold(hold, settings)
    given = model_input(u, axis, n_inputs=context.n_inputs, names=names.inputs, hold=hold, settings=settings)
    signal = given.of_core
    x0 = None if x0 is None else as_real_array(x0, "x0")
    solution = engine_object.run(context, signal, axis.t, x0=x0, n_jobs=n_jobs, options=engine_options)
    if context.reduction_error is not None:
        # The bound holds from rest only: the response to x0 of the states that were removed is unknown.
        norm = context.reduction_error if x0 is None or not np.any(x0) else math.inf
        n_outputs = solution.y.shape[-1]
        solution = replace(solution, reduction=bound_reduction_error(norm, signal, axis.t, n_outputs=n_outputs))
    if settings.shifts_signals:
        D = context.system.D if context.origin is None else context.origin.D  # the latter without the network
        solution = solution_from_core(solution, settings, given=given, context=context, D=D, x0=x0)
    solution = replace(solution, stats={**solution.stats, "hold": getattr(given.signal, "hold", None)})
    solution = with_notes(solution, settings.notes)
    return solution if names is UNNAMED or names == UNNAMED else replace(solution, signal_names=names)


def resolve_times(t: ArrayLike | None, u: Any) -> ArrayLike | None:
    """Return the times of a run: the argument, else those of a table, else None."""
    return u.t if t is None and isinstance(u, NamedColumns) else t


def resolve_hold(hold: Hold | None, settings: SignalSettings, dt: float | None = None) -> Literal["linear", "zero"]:
    """Return the hold of a run: the argument, else that of the model, else linear; an unknown hold is an error.

    In discrete time, with a time step dt, it is zero, and a linear hold is an error.
    """
    if dt is not None:
        refuse_linear_hold(hold, dt)
        return "zero"
    return validate_hold(hold if hold is not None else settings.hold or "linear")


def create_stepper(
    context: SimulationContext, dt: Any, *, hold: Hold | None, x0: ArrayLike | None, settings: SignalSettings
) -> Stepper:
    """Return a streaming simulation; the arguments are those of `ltinet.DynamicNetwork.stepper`."""
    x0 = None if x0 is None else as_real_array(x0, "x0")
    step = resolve_time_step(dt, context.dt, "stepper(dt)")
    core = Stepper(context, step, hold=resolve_hold(hold, settings, context.dt), x0=x0)
    return DelayedStepper(core, settings) if settings.shifts_signals else core


def bound_reduction_error(norm: float, signal: Signal, t: Array, *, n_outputs: int) -> ReductionError:
    """Bound the error of a reduction with H2 norm `norm` in a simulation from rest."""
    polyline = signal.sampled_over(t, tolerance=_ENERGY_TOLERANCE)
    samples = polyline.samples
    u = np.asarray(samples.u, dtype=np.float64)
    first, second = u[..., :-1, :], u[..., 1:, :]
    if samples.hold == "zero":
        mean_square = (first * first).sum(axis=-1)
    else:
        mean_square = ((first * first + first * second + second * second) / 3.0).sum(axis=-1)
    energy = np.cumsum(mean_square * np.diff(samples.t), axis=-1)
    energy = np.concatenate([np.zeros_like(mean_square[..., :1]), energy], axis=-1)
    input_error = polyline.error * math.sqrt(u.shape[-1])
    if input_error > 0.0:
        # ‖u‖ ≤ ‖polyline‖ + ‖u − polyline‖ in L2, and (a + b)² ≤ 1.01 a² + 101 b².
        energy = 1.01 * energy + 101.0 * input_error**2 * (samples.t - samples.t[0])
    return ReductionError(norm, samples.t, energy, n_outputs)
