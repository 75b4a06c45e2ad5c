"""Step, impulse and initial responses by the exact engine, at given or at chosen times.

The impulse response is that of the state x0 = B e_j, without D δ(t). Chosen times are extended until the response
has settled. In models with delays, input j is delayed by τ_j and output i by σ_i, so that y_ij(t) = w_ij(t − τ_j −
σ_i) for the response w of the core, zero before. Responses are deviations: the operating point does not enter them.
"""

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.floating_point import Array
from ltinet._util.text import sanitize, suggest_names
from ltinet.analysis.dc_gain import count_integrators, dc_gain
from ltinet.analysis.response_times import (
    Modes,
    TimeSpan,
    deviation_reference,
    extend_span,
    max_times,
    response_modes,
    sample_times,
    select_time_span,
    settling_time_bound,
)
from ltinet.errors import InvalidSignalError
from ltinet.signals.arrays import as_real_array
from ltinet.signals.delayed import DelayedInput
from ltinet.signals.sampled import SampledSignal
from ltinet.signals.times import as_real_times
from ltinet.simulation.api import simulate
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.delays import DelayedTrajectory
from ltinet.simulation.solution import ErrorBound, HasInput, Solution, Trajectory
from ltinet.systems.signal_names import Names
from ltinet.systems.signal_settings import SignalSettings
from ltinet.systems.system_matrices import SystemMatrices

# MERGED ltinet.analysis.responses
# One input or all of them, one output or all of them.

Channel: TypeAlias = int | str | None
"""An input or an output by its name, or counted from 0; None for all of them."""
Times: TypeAlias = ArrayLike | None
"""The times of a response; None for those that suit it."""


def resolve_index(index: Any, names: Names, what: str) -> int | None:
    """An input or an output by its name or its number, counted from 0; None for all of them.

    Raises:
        InvalidSignalError: there is no such one.
    """
    if index is None:
        return None
    if isinstance(index, str):
        if index not in names:
            raise InvalidSignalError(f"there is no {what} {sanitize(repr(index))}; {suggest_names(index, names)}")
        return names.index(index)
    count = len(names)
    try:
        number = -1 if isinstance(index, bool) else operator.index(index)
    except TypeError:
        number = -1
    if not 0 <= number < count:
        known = f"0 to {count - 1}" if count > 1 else "0" if count else "none, there are no such"
        raise InvalidSignalError(f"{what} is {sanitize(repr(index))}; give one of {known}, or None for all")
    return number


def select_output(solution: Solution, output: int | None) -> Solution:
    """The solution of one output alone, or as it is."""
    if output is None:
        return solution
    own = slice(output, output + 1)
    alone = _OneOutput(solution.trajectory, own)
    return replace(
        solution, y=solution.y[..., own], trajectory=alone, signal_names=solution.signal_names.with_output(output)
    )


@dataclass(frozen=True, eq=False)
class _OneOutput:
    """A trajectory of which one output is shown."""

    whole: Trajectory
    own: slice

    def outputs(self, t: Array) -> Array:
        return self.whole.outputs(t)[..., self.own]

    def user_states(self, t: Array) -> Array:
        return self.whole.user_states(t)

    def neuron_states(self, t: Array) -> Array:
        return self.whole.neuron_states(t)

    def input_corners(self, t: Array) -> tuple[Array, Array]:
        if not isinstance(self.whole, HasInput):
            return t, np.zeros((len(t), 0))
        return self.whole.input_corners(t)

    def error_bound(self, start: float, stop: float) -> ErrorBound:
        return _OneBound(self.whole.error_bound(start, stop), self.own)


@dataclass(frozen=True, eq=False)
class _OneBound:
    whole: ErrorBound
    own: slice

    def at(self, t: Array) -> dict[str, Array]:
        return self._chosen(self.whole.at(t))

    def overall(self) -> dict[str, Array]:
        return self._chosen(self.whole.overall())

    def _chosen(self, parts: Mapping[str, Array]) -> dict[str, Array]:
        return {name: part[..., self.own] for name, part in parts.items()}


# MERGED ltinet.analysis.responses
# The responses that everybody asks for first, by the exact engine, at times that are given or chosen.

_SETTLED = 0.015  # of the reference, in the last tenth of the times: below the 2 % that everybody speaks of
_MOST_TRIES = 12
_N_CHECKS = 2001  # times at which it is seen whether a response that seems to have settled stirs again

ResponseAtTimes = Callable[[Array], Solution]


def step_response(
    prepared: SimulationContext, system: SystemMatrices, t: ArrayLike | None, *, input: Any, output: Any
) -> Solution:
    """Outputs after one input went from 0 to 1 at t = 0, from rest."""
    chosen, own = _chosen(system, input, output)
    final = _part(dc_gain(system), chosen, own)
    modes = partial(excited_modes, prepared, system, chosen, own, to_step=True)
    directions = np.eye(system.n_inputs)[chosen if chosen is not None else slice(None)]

    def run(times: Array) -> Solution:
        u = np.broadcast_to(directions[..., None, :], (*directions.shape[:-1], len(times), system.n_inputs))
        return simulate(prepared, u, t=times, hold="zero")

    return select_output(_run_at_times(run, t, modes, final, own), own)


def impulse_response(
    prepared: SimulationContext, system: SystemMatrices, t: ArrayLike | None, *, input: Any, output: Any
) -> Solution:
    """Outputs after a unit impulse of one input at t = 0: those of the state x0 = B e_j, without D δ(t)."""
    chosen, own = _chosen(system, input, output)
    modes = partial(excited_modes, prepared, system, chosen, own, to_step=False)
    starts = system.B.T[chosen if chosen is not None else slice(None)]
    D = _part(system.D, chosen, own)
    told = ("D is not zero: the response also has the impulse D δ(t) at t = 0, which no number shows",)

    def run(times: Array) -> Solution:
        u = np.zeros((*starts.shape[:-1], 1, system.n_inputs))
        still = np.broadcast_to(u, (*u.shape[:-2], len(times), u.shape[-1]))
        return simulate(prepared, still, t=times, x0=starts, hold="zero")

    found = select_output(_run_at_times(run, t, modes, np.zeros(D.shape), own), own)
    return _with_notes(found, told) if D.any() else found


def initial_response(
    prepared: SimulationContext, system: SystemMatrices, x0: ArrayLike, *, t: ArrayLike | None, output: Any
) -> Solution:
    """Outputs from the state x0 at t = 0 without input; x0 may be a batch `(..., n)`."""
    own = resolve_index(output, system.output_names, "output")
    start = as_real_array(x0, "x0")
    batch = start.shape[:-1]
    n_starts = math.prod(batch)

    def modes() -> Modes:
        packed = prepared.system.packed_from_blocks(prepared.initial_state(start, batch))
        outputs, n_integrators = _outputs(system, own), count_integrators(system)
        return response_modes(prepared.system, packed, outputs, to_step=False, n_integrators=n_integrators)

    def run(times: Array) -> Solution:
        u = np.broadcast_to(np.zeros(system.n_inputs), (*batch, len(times), system.n_inputs))
        return simulate(prepared, u, t=times, x0=start, hold="zero")

    return select_output(_run_at_times(run, t, modes, np.zeros((len(_outputs(system, own)), n_starts)), own), own)


def excited_modes(
    prepared: SimulationContext, system: SystemMatrices, chosen: int | None, own: int | None, *, to_step: bool
) -> Modes:
    """The modes that inputs push."""
    modal, B = prepared.system, prepared.blocks.B.T
    packed = modal.packed_from_blocks(B if chosen is None else B[chosen : chosen + 1])
    outputs, n_integrators = _outputs(system, own), count_integrators(system)
    return response_modes(modal, packed, outputs, to_step=to_step, n_integrators=n_integrators)


def _run_at_times(
    run: ResponseAtTimes, t: ArrayLike | None, modes_of_run: Callable[[], Modes], final: Array, own: int | None
) -> Solution:
    """The response at the times given, or at times chosen so that it has settled where it settles."""
    if t is not None:
        times = as_real_times(t, "t")
        if not times.ndim:
            raise InvalidSignalError(
                f"t is {times:g}, a single time; give a list of them from 0 on, such as "
                f"np.linspace(0, {abs(times):g}, 501)"
            )
        if times.ndim == 1 and len(times) and times[0] != 0.0:
            raise InvalidSignalError(
                f"t begins at {times[0]:g}, but responses begin at 0; give times from 0 on, such as "
                "np.linspace(0, 10, 501)"
            )
        return run(times)
    modes = modes_of_run()
    span, most = select_time_span(modes, final), max_times(modes.amplitudes[0].size if len(modes.rates) else 1)

    def outputs(times: Array) -> tuple[Solution, Array]:
        found = run(times)
        y = found.y if own is None else found.y[..., own : own + 1]
        return found, y.reshape(-1, *y.shape[-2:])

    for _ in range(_MOST_TRIES):
        times, told = sample_times(span, most)
        solution, y = outputs(times)
        longer = _extended_span(span, modes, final, y, times, lambda own: outputs(own)[1]) if span.settles else None
        if longer is None:
            break
        span = longer
    notes = (*span.notes, *told)
    return _with_notes(solution, notes) if notes else solution


def _extended_span(
    span: TimeSpan, modes: Modes, final: Array, y: Array, times: Array, outputs: Callable[[Array], Array]
) -> TimeSpan | None:
    """The span for a response `(starts, T, p)` that has not settled at the end of this one, or that stirs again later.

    What has settled in the last tenth of the times is looked at further where modes that cancel each other now may be
    seen again, as in a delay that is an impulse later on.
    """
    reference = deviation_reference(final.T, np.abs(y).max(axis=1, initial=0.0))
    late = y[:, times >= 0.9 * times[-1]]
    if not (np.abs(late - final.T[:, None, :]) <= _SETTLED * reference[:, None, :]).all():
        return extend_span(span)
    rest = settling_time_bound(modes, reference.T, share=_SETTLED)
    if rest <= times[-1]:
        return None
    looks = np.linspace(0.0, rest, min(_N_CHECKS, max_times(y[:, 0].size)))
    away = np.abs(outputs(looks) - final.T[:, None, :]) > _SETTLED * reference[:, None, :]
    departed = np.flatnonzero(away.any(axis=(0, 2)) & (looks > times[-1]))
    return extend_span(span, float(looks[departed[-1]]) / 0.9) if departed.size else None


def _chosen(system: SystemMatrices, input: Any, output: Any) -> tuple[int | None, int | None]:
    return resolve_index(input, system.input_names, "input"), resolve_index(output, system.output_names, "output")


def _part(gains: Array, chosen: int | None, own: int | None) -> Array:
    """The entries of a p×m matrix between the outputs and inputs that are asked for."""
    rows = slice(None) if own is None else slice(own, own + 1)
    columns = slice(None) if chosen is None else slice(chosen, chosen + 1)
    return gains[rows, columns]


def _outputs(system: SystemMatrices, own: int | None) -> list[int]:
    return list(range(system.n_outputs)) if own is None else [own]


def _with_notes(solution: Solution, notes: tuple[str, ...]) -> Solution:
    return replace(solution, stats={**solution.stats, "notes": (*solution.notes, *notes)})


# MERGED ltinet.analysis.responses
# How long a response is worth looking at, from the modes alone: nothing is run.


def suggest_end_time(prepared: SimulationContext, system: SystemMatrices, *, input: int, output: int) -> float:
    """The time by which the answer of an output to a step of an input shows what there is to see."""
    modes = excited_modes(prepared, system, input, output, to_step=True)
    return select_time_span(modes, dc_gain(system)[output : output + 1, input : input + 1]).end


# MERGED ltinet.analysis.responses
# Responses of models with delays: those of the core, each read as much earlier as its input and output are late.
#
# Input j is delayed by τ_j and output i by σ_i, so that y_ij(t) = w_ij(t − τ_j − σ_i), zero before. Responses are
# deviations: the operating point has no part in them.

CoreResponse = Callable[[Any], Solution]
_MOST_SHIFTS = 4  # delays for which uneven times are repeated; of more the longest


def delayed_response(  # noqa: PLR0913 - a model, and what is asked of it
    run: CoreResponse,
    prepared: SimulationContext,
    system: SystemMatrices,
    settings: SignalSettings,
    *,
    t: ArrayLike | None,
    input: Any = None,
    output: Any = None,
    kind: str,
    x0: Any = None,
) -> Solution:
    """Return a response with delays from `run(t)`, that of the core; `kind` is "step", "impulse" or "initial".

    Parameters
    ----------
    run : callable
        The response of the core at given times, or at times of its own choice for None.
    prepared, system, settings : PreparedNetwork, SystemMatrices, SignalSettings
        The model.
    t : array_like or None
        Times; those of the core, longer by the longest delay, if left out.
    input, output : int, str or None
        The input and the output that were chosen.
    kind : {"step", "impulse", "initial"}
        Which response this is.
    x0 : array_like or None
        The state that an initial response begins in.

    Returns
    -------
    Solution
    """
    own, chosen = resolve_index(output, system.output_names, "output"), None
    outputs = settings.array("output_delay", system.n_outputs)[slice(None) if own is None else slice(own, own + 1)]
    delays, state_delays = outputs, None
    if kind != "initial":
        chosen = resolve_index(input, system.input_names, "input")
        inputs = settings.array("input_delay", system.n_inputs)
        state_delays = inputs if chosen is None else np.asarray(inputs[chosen])
        delays = state_delays[..., None] + outputs
    core = run(t)
    if t is None:
        notes = core.notes
        core = run(_extended_times(core.t, np.unique(delays)))
        if notes != core.notes:
            core = replace(core, stats={**core.stats, "notes": tuple(dict.fromkeys((*notes, *core.notes)))})
    delays = np.broadcast_to(delays, core.y[..., 0, :].shape)
    seen = given = None
    start = x0
    if kind == "step":
        directions = np.eye(system.n_inputs)[chosen if chosen is not None else slice(None)]
        u = np.broadcast_to(directions[..., None, :], (*directions.shape[:-1], len(core.t), system.n_inputs))
        given = SampledSignal(core.t, u, hold="zero")
        nothing = np.zeros(directions.shape)
        seen = DelayedInput(given, nothing, nothing)
    elif kind == "impulse":
        start = system.B.T[chosen if chosen is not None else slice(None)]
    trajectory = DelayedTrajectory(
        core=core.trajectory,
        t=core.t,
        delays=delays,
        y0=np.zeros(delays.shape[-1]),
        signal=given,
        delayed=seen,
        D=np.zeros((delays.shape[-1], system.n_inputs)),
        context=prepared,
        x0=start,
        state_delays=state_delays,
        output=own,
    )
    return replace(core, y=trajectory.outputs(core.t, core_outputs=core.y), trajectory=trajectory)


def _extended_times(t: Array, delays: Array) -> Array:
    """Return times that show the response of the core as well, from 0 on, when it is delayed."""
    end = float(t[-1] + delays.max(initial=0.0))
    steps = np.diff(t)
    if len(t) < 2 or np.ptp(steps) <= 1e-6 * float(steps.max()):
        return np.linspace(0.0, end, len(t))
    shifts = delays if len(delays) <= _MOST_SHIFTS else delays[-1:]
    return np.unique(np.concatenate([t[:1], *(t + own for own in shifts.tolist()), [end]]))
