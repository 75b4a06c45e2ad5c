"""Simulation of a network or a system from user input: options, times, input signal and initial state.

All arguments are validated here, once. Networks run by one of the engines; large sparse models run by the implicit
method. If a network stands for a model that was reduced before, the error of the reduction is bounded by

    |e(t)| ≤ ‖G − G_r‖ ‖u‖,

with the H2 norm of the reduction error and the norm of u in L2(0, t).
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.floating_point import Array
from ltinet.errors import InvalidSignalError, SimulationError
from ltinet.signals.arrays import as_real_array
from ltinet.signals.conversion import as_signal, order_inputs, suggest_swapped_arguments
from ltinet.signals.sampled import Hold, SampledApproximation, validate_hold
from ltinet.signals.signal import Signal
from ltinet.signals.times import as_real_times
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.delays import core_input, operating_point_input, solution_from_core
from ltinet.simulation.engines import select_engine
from ltinet.simulation.implicit import simulate_implicit
from ltinet.simulation.options import validate_n_jobs
from ltinet.simulation.solution import Solution
from ltinet.systems.signal_names import UNNAMED, names_or_defaults
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.systems.system_matrices import SystemMatrices, require_continuous_time

# MERGED ltinet.simulation.api
# What a reduction left out of outputs at any time: |e(t)| ≤ ‖G − G_r‖ ‖u‖, in the H2 norm and in L2(0, t).

_INPUT_TOLERANCE = 1e-3  # of max |u|: lines within it stand for an input, and it is counted


@dataclass(frozen=True, eq=False)
class ReductionError:
    """The energy of every input of a batch up to any time, and the H2 norm that it is multiplied by."""

    norm: float
    """‖G − G_r‖ in the H2 norm; infinite where that is not known."""
    t: Array
    energy: Array
    """∫ |u|² from the first time to each of t, `(..., K)`."""
    n_outputs: int

    def at(self, t: Array) -> Array:
        """The bound at any times, `(..., len(t), p)`; the energy up to the next place where it is known."""
        place = np.clip(np.searchsorted(self.t, t, side="left"), 0, len(self.t) - 1)
        return self._bound(self.energy[..., place])

    def overall(self) -> Array:
        """The bound over all times, `(..., p)`."""
        return self._bound(self.energy[..., -1])

    def _bound(self, energy: Array) -> Array:
        with np.errstate(invalid="ignore"):
            bound = np.where(energy > 0.0, self.norm * np.sqrt(energy), 0.0)
        return np.repeat(bound[..., None], self.n_outputs, axis=-1)


def bound_reduction_error(norm: float, signal: Signal, t: Array, *, from_rest: bool, n_outputs: int) -> ReductionError:
    """Bound what a reduction left out of a run; without end where it began in a state, of which nobody knows."""
    lines: SampledApproximation = signal.sampled_over(t, tolerance=_INPUT_TOLERANCE)
    samples = lines.samples
    u = np.asarray(samples.u, dtype=np.float64)
    steps = np.diff(samples.t)
    first, second = u[..., :-1, :], u[..., 1:, :]
    if samples.hold == "zero":
        squares = (first * first).sum(axis=-1)
    else:
        squares = ((first * first + first * second + second * second) / 3.0).sum(axis=-1)
    off = lines.off * math.sqrt(u.shape[-1])
    # ‖u‖ ≤ ‖lines‖ + ‖u − lines‖ in L2, and (a + b)² ≤ 1.01 a² + 101 b².
    energy = np.concatenate([np.zeros_like(squares[..., :1]), np.cumsum(squares * steps, axis=-1)], axis=-1)
    energy = 1.01 * energy + 101.0 * off**2 * (samples.t - samples.t[0]) if off > 0.0 else energy
    return ReductionError(norm if from_rest else math.inf, samples.t, energy, n_outputs)


# MERGED ltinet.simulation.api
# One run of a network by any engine, from what a user gives: the options, the times, the input and the start.

_IMPLICIT_TOLERANCE = 1e-6  # of an implicit run, unless another is given


def simulate_system(
    system: SystemMatrices,
    network: Callable[[], SimulationContext],
    u: Any,
    *,
    t: ArrayLike,
    x0: ArrayLike | None,
    hold: Hold | None,
    tolerance: float | None,
    settings: SignalSettings,
) -> Solution:
    """Run a system by its network, exactly, or a large sparse one as it is; `ltinet.StateSpace.simulate` tells more."""
    pencil = system.sparse
    if pencil is None or (tolerance is None and not pencil.is_large):
        if tolerance is not None:
            raise SimulationError(
                "tolerance is for the implicit solver of sparse models; this system is run exactly: leave it out"
            )
        return simulate(network(), u, t=t, x0=x0, hold=hold, settings=settings)
    require_continuous_time(system, "system.simulate(u, t)")
    wanted = _IMPLICIT_TOLERANCE if tolerance is None else tolerance
    return simulate_implicit(
        system, pencil, u, t=t, x0=x0, hold=resolve_hold(hold, settings), tolerance=wanted, settings=settings
    )


def simulate(  # noqa: PLR0913
    prepared: SimulationContext,
    u: Any,
    *,
    t: ArrayLike,
    x0: ArrayLike | None = None,
    hold: Hold | None = None,
    engine: str = "exact",
    n_jobs: int = 1,
    options: Mapping[str, Any] | None = None,
    settings: SignalSettings = NO_SETTINGS,
) -> Solution:
    """Check everything once and let the engine run; `ltinet.DynamicNetwork.simulate` says what may be given."""
    chosen, given = select_engine(engine, options or {})
    n_jobs = validate_n_jobs(n_jobs)
    try:
        axis = prepared.time_axis(as_real_times(t, "t"))
    except InvalidSignalError as error:
        raise suggest_swapped_arguments(error, u) from None
    n_inputs = prepared.n_inputs
    names = prepared.names
    if not isinstance(u, np.ndarray):  # an array has no names
        inputs = names_or_defaults(names.inputs, "inputs", n_inputs)
        u = order_inputs(u, inputs, are_given=names.inputs is not None, n_times=len(axis.t))
    signal = given_signal = as_signal(u, axis, n_inputs=n_inputs, hold=resolve_hold(hold, settings))
    if settings.shifts_signals:
        given_signal = operating_point_input(signal, axis, settings) if u is None else signal
        seen = core_input(given_signal, axis, settings)
        signal = seen.signal
    start = None if x0 is None else as_real_array(x0, "x0")
    solution = chosen.run(prepared, signal, axis.t, x0=start, n_jobs=n_jobs, options=given)
    if prepared.reduction_error is not None:
        rest, p = start is None or not np.any(start), solution.y.shape[-1]
        left = bound_reduction_error(prepared.reduction_error, signal, axis.t, from_rest=rest, n_outputs=p)
        solution = replace(solution, reduction=left)
    if settings.shifts_signals:
        D = prepared.system.D if prepared.origin is None else prepared.origin.D  # the latter without the network
        solution = solution_from_core(
            solution, settings, given=given_signal, seen=seen, prepared=prepared, D=D, x0=start
        )
    solution = replace(solution, stats={**solution.stats, "hold": getattr(given_signal, "hold", None)})
    return solution if names is UNNAMED or names == UNNAMED else replace(solution, signal_names=names)


def resolve_hold(hold: Hold | None, settings: SignalSettings) -> Literal["linear", "zero"]:
    """Return the hold of a run: the one that was given, else that of the model, else lines.

    Raises
    ------
    InvalidSignalError
        There is no such hold.
    """
    return validate_hold(hold if hold is not None else settings.hold or "linear")
