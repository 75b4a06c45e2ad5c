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
from ltinet.signals.times import as_real_times, uniform_step
from ltinet.simulation.api import simulate
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.delays import DelayedTrajectory
from ltinet.simulation.solution import ErrorBound, HasInput, Solution, Trajectory, with_notes
from ltinet.systems.signal_names import Names
from ltinet.systems.signal_settings import SignalSettings
from ltinet.systems.system_matrices import SystemMatrices

# Choice of inputs and outputs.

Channel: TypeAlias = int | str | None
"""Name or index, counted from 0, of an input or an output; None for all."""
Times: TypeAlias = ArrayLike | None
"""Times of a response; None for times that suit it."""


def resolve_index(index: Any, names: Names, noun: str) -> int | None:
    """Return the index of an input or an output from its name or index; None for all.

    Raises:
        InvalidSignalError: the name or index does not exist.
    """
    if index is None:
        return None
    if isinstance(index, str):
        if index not in names:
            raise InvalidSignalError(f"there is no {noun} {sanitize(repr(index))}; {suggest_names(index, names)}")
        return names.index(index)
    count = len(names)
    try:
        number = -1 if isinstance(index, bool) else operator.index(index)
    except TypeError:
        number = -1
    if not 0 <= number < count:
        known = f"between 0 and {count - 1}" if count else f"None, since there is no {noun}"
        raise InvalidSignalError(f"{noun} must be {known} or a name, got {sanitize(repr(index))}")
    return number


def select_output(solution: Solution, output: int | None) -> Solution:
    """Return the solution of one output, or of all for None."""
    if output is None:
        return solution
    column, names = slice(output, output + 1), solution.signal_names.with_output(output)
    trajectory = _OneOutput(solution.trajectory, column)
    return replace(solution, y=solution.y[..., column], trajectory=trajectory, signal_names=names)


@dataclass(frozen=True, eq=False)
class _OneOutput:
    """Trajectory restricted to one output."""

    all_outputs: Trajectory
    column: slice

    def outputs(self, t: Array) -> Array:
        return self.all_outputs.outputs(t)[..., self.column]

    def user_states(self, t: Array) -> Array:
        return self.all_outputs.user_states(t)

    def neuron_states(self, t: Array) -> Array:
        return self.all_outputs.neuron_states(t)

    def input_corners(self, t: Array) -> tuple[Array, Array]:
        if not isinstance(self.all_outputs, HasInput):
            return t, np.zeros((len(t), 0))
        return self.all_outputs.input_corners(t)

    def error_bound(self, start: float, stop: float) -> ErrorBound:
        return _OneBound(self.all_outputs.error_bound(start, stop), self.column)


@dataclass(frozen=True, eq=False)
class _OneBound:
    all_outputs: ErrorBound
    column: slice

    def at(self, t: Array) -> dict[str, Array]:
        return self._chosen(self.all_outputs.at(t))

    def overall(self) -> dict[str, Array]:
        return self._chosen(self.all_outputs.overall())

    def _chosen(self, parts: Mapping[str, Array]) -> dict[str, Array]:
        return {name: part[..., self.column] for name, part in parts.items()}


# Responses at given or chosen times.

_SETTLED_SHARE = 0.015  # of the reference, in the last tenth of the times: below the usual 2 %
MAX_EXTENSIONS = 12
"""Number of times that a response is made longer by a half at least: 1.5¹² = 130 times the first end."""
_N_CHECKS = 2001  # later times at which a response that seems to have settled is checked

ResponseAtTimes = Callable[[Array], Solution]


def step_response(
    prepared: SimulationContext, system: SystemMatrices, t: ArrayLike | None, *, input: Any, output: Any
) -> Solution:
    """Return the outputs after a step of one input, or of each, from 0 to 1 at t = 0, from rest."""
    j, i = _indices(system, input, output)
    modes = partial(excited_modes, prepared, system, j, i, of_step=True)

    def final() -> Array:
        return dc_gain(system)[_chosen(i), _chosen(j)]

    def run(times: Array) -> Solution:
        return simulate(prepared, unit_steps(system, j, len(times)), t=times, hold="zero")

    return select_output(_run_at_times(run, t, modes, final, i), i)


def impulse_response(
    prepared: SimulationContext, system: SystemMatrices, t: ArrayLike | None, *, input: Any, output: Any
) -> Solution:
    """Return the outputs after a unit impulse of one input, or of each: those of x0 = B e_j, without D δ(t)."""
    j, i = _indices(system, input, output)
    modes = partial(excited_modes, prepared, system, j, i, of_step=False)
    starts = system.B.T[j if j is not None else slice(None)]
    D = system.D[_chosen(i), _chosen(j)]
    note = "D is not zero: the response also has the impulse D δ(t) at t = 0, which is not part of the values"

    def run(times: Array) -> Solution:
        u = np.zeros((*starts.shape[:-1], 1, system.n_inputs))
        zero = np.broadcast_to(u, (*u.shape[:-2], len(times), u.shape[-1]))
        return simulate(prepared, zero, t=times, x0=starts, hold="zero")

    solution = select_output(_run_at_times(run, t, modes, partial(np.zeros, D.shape), i), i)
    return with_notes(solution, (note,)) if D.any() else solution


def initial_response(
    prepared: SimulationContext, system: SystemMatrices, x0: ArrayLike, t: ArrayLike | None, *, output: Any
) -> Solution:
    """Return the outputs from the state x0 at t = 0 without input; x0 may be a batch `(..., n)`."""
    i = resolve_index(output, system.output_names, "output")
    start = as_real_array(x0, "x0")
    batch = start.shape[:-1]
    n_starts = math.prod(batch)

    def modes() -> Modes:
        return _modes(prepared, system, prepared.initial_state(start, batch), i, of_step=False)

    def run(times: Array) -> Solution:
        u = np.broadcast_to(np.zeros(system.n_inputs), (*batch, len(times), system.n_inputs))
        return simulate(prepared, u, t=times, x0=start, hold="zero")

    final = partial(np.zeros, (len(_outputs(system, i)), n_starts))
    return select_output(_run_at_times(run, t, modes, final, i), i)


def excited_modes(
    prepared: SimulationContext, system: SystemMatrices, j: int | None, i: int | None, *, of_step: bool
) -> Modes:
    """Return the modes of the responses of output i to input j, or of all for None."""
    return _modes(prepared, system, prepared.blocks.B.T[_chosen(j)], i, of_step=of_step)


def _modes(
    prepared: SimulationContext, system: SystemMatrices, starts: Array, i: int | None, *, of_step: bool
) -> Modes:
    """Return the modes of output i, or of all for None, from initial states in block coordinates."""
    packed, outputs = prepared.system.packed_from_blocks(starts), _outputs(system, i)
    return response_modes(prepared.system, packed, outputs, of_step=of_step, n_integrators=count_integrators(system))


def _run_at_times(
    run: ResponseAtTimes,
    t: ArrayLike | None,
    modes_of_run: Callable[[], Modes],
    final_values: Callable[[], Array],
    i: int | None,
) -> Solution:
    """Return the response at given times, or at times chosen so that it has settled if it settles."""
    if t is not None:
        return run(validate_response_times(t))
    modes, final = modes_of_run(), final_values()
    span, most = select_time_span(modes, final), max_times(modes.amplitudes[0].size if len(modes.rates) else 1)

    def outputs(times: Array) -> tuple[Solution, Array]:
        solution = run(times)
        y = solution.y[..., _chosen(i)]
        return solution, y.reshape(-1, *y.shape[-2:])

    for _ in range(MAX_EXTENSIONS):
        times, time_notes = sample_times(span, most)
        solution, y = outputs(times)
        longer = _extended_span(span, modes, final, y, times, lambda times: outputs(times)[1]) if span.settles else None
        if longer is None:
            break
        span = longer
    notes = (*span.notes, *time_notes)
    return with_notes(solution, notes) if notes else solution


def validate_response_times(t: ArrayLike) -> Array:
    """Return the times of a response, which must begin at 0."""
    times = as_real_times(t, "t")
    if not times.ndim:
        raise InvalidSignalError(
            f"t must be a list of times from 0 on, got {times:g}; pass np.linspace(0, {abs(times):g}, 501)"
        )
    if times.ndim == 1 and len(times) and times[0] != 0.0:
        raise InvalidSignalError(
            f"t must begin at 0, where responses begin, got {times[0]:g}; pass np.linspace(0, 10, 501)"
        )
    return times


def _extended_span(
    span: TimeSpan, modes: Modes, final: Array, y: Array, times: Array, outputs: Callable[[Array], Array]
) -> TimeSpan | None:
    """Return a longer span for a response `(starts, T, p)` that has not settled, or that moves again later; else None.

    A response that has settled in the last tenth of the times is checked at later times if modes that cancel each
    other may become visible again, as in a Padé approximant of a delay.
    """
    reference = deviation_reference(final.T, np.abs(y).max(axis=1, initial=0.0))
    last_values = y[:, times >= 0.9 * times[-1]]
    if not (np.abs(last_values - final.T[:, None, :]) <= _SETTLED_SHARE * reference[:, None, :]).all():
        return extend_span(span)
    settling_time = settling_time_bound(modes, reference.T, share=_SETTLED_SHARE)
    if settling_time <= times[-1]:
        return None
    later = np.linspace(0.0, settling_time, min(_N_CHECKS, max_times(y[:, 0].size)))
    away = np.abs(outputs(later) - final.T[:, None, :]) > _SETTLED_SHARE * reference[:, None, :]
    departed = np.flatnonzero(away.any(axis=(0, 2)) & (later > times[-1]))
    return extend_span(span, float(later[departed[-1]]) / 0.9) if departed.size else None


def unit_steps(system: SystemMatrices, j: int | None, n_times: int) -> Array:
    """Return unit steps of input j, or of each in turn for None: `(n_times, m)` or `(m, n_times, m)`."""
    directions = np.eye(system.n_inputs)[j if j is not None else slice(None), None]
    return np.broadcast_to(directions, (*directions.shape[:-2], n_times, system.n_inputs))


def _indices(system: SystemMatrices, input: Any, output: Any) -> tuple[int | None, int | None]:
    return resolve_index(input, system.input_names, "input"), resolve_index(output, system.output_names, "output")


def _chosen(index: int | None) -> slice:
    """Return the range of one index, or of all for None."""
    return slice(None) if index is None else slice(index, index + 1)


def _outputs(system: SystemMatrices, i: int | None) -> list[int]:
    return list(range(system.n_outputs)) if i is None else [i]


def suggest_end_time(prepared: SimulationContext, system: SystemMatrices, *, input: int, output: int) -> float:
    """Return the time by which the step response from an input to an output has settled, from the modes alone."""
    modes = excited_modes(prepared, system, input, output, of_step=True)
    return select_time_span(modes, dc_gain(system)[output : output + 1, input : input + 1]).end


# Models with delays.

CoreResponse = Callable[[Any], Solution]
_MAX_REPEATED_DELAYS = 4  # delays for which uneven times are repeated; if there are more, only the longest


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
        Response of the core at given times, or at times that suit it for None.
    prepared, system, settings : SimulationContext, SystemMatrices, SignalSettings
        Model; without delays the response is that of the core.
    t : array_like or None
        Times; those of the core, longer by the longest delay, if left out.
    input, output : int, str or None
        Chosen input and output.
    kind : {"step", "impulse", "initial"}
        Kind of response.
    x0 : array_like or None
        The state that an initial response begins in.

    Returns
    -------
    Solution
    """
    if not settings.has_delays or (kind == "initial" and settings.output_delay is None):
        return with_notes(run(t), settings.notes)
    i, j = resolve_index(output, system.output_names, "output"), None
    outputs = settings.array("output_delay", system.n_outputs)[_chosen(i)]
    delays, state_delays = outputs, None
    if kind != "initial":
        j = resolve_index(input, system.input_names, "input")
        inputs = settings.array("input_delay", system.n_inputs)
        state_delays = inputs if j is None else np.asarray(inputs[j])
        delays = state_delays[..., None] + outputs
    core = with_notes(run(t), settings.notes)
    if t is None:
        notes = core.notes
        core = run(_extended_times(core.t, np.unique(delays)))
        if notes != core.notes:
            core = replace(core, stats={**core.stats, "notes": tuple(dict.fromkeys((*notes, *core.notes)))})
    delays = np.broadcast_to(delays, core.y[..., 0, :].shape)
    delayed = signal = None
    start = x0
    if kind == "step":
        u = unit_steps(system, j, len(core.t))
        signal = SampledSignal(core.t, u, hold="zero")
        nothing = np.zeros((*u.shape[:-2], u.shape[-1]))
        delayed = DelayedInput(signal, nothing, nothing)
    elif kind == "impulse":
        start = system.B.T[j if j is not None else slice(None)]
    trajectory = DelayedTrajectory(
        core=core.trajectory,
        t=core.t,
        delays=delays,
        y0=np.zeros(delays.shape[-1]),
        signal=signal,
        delayed=delayed,
        D=np.zeros((delays.shape[-1], system.n_inputs)),
        context=prepared,
        x0=start,
        state_delays=state_delays,
        output=i,
    )
    return replace(core, y=trajectory.outputs(core.t, core_outputs=core.y), trajectory=trajectory)


def _extended_times(t: Array, delays: Array) -> Array:
    """Return times from 0 on that resolve the response of the core after each delay."""
    end = float(t[-1] + delays.max(initial=0.0))
    if len(t) < 2 or uniform_step(t) is not None:
        return np.linspace(0.0, end, len(t))
    shifts = delays if len(delays) <= _MAX_REPEATED_DELAYS else delays[-1:]
    return np.unique(np.concatenate([t[:1], *(t + shift for shift in shifts.tolist()), [end]]))
