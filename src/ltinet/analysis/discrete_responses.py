"""Step, impulse and initial responses of models in discrete time, and characteristics of their step responses.

Values exist at samples only, and characteristics are those of the samples: a rise time is the difference of two sample
times. An impulse is one sample of height 1/dt, of area one, as in MATLAB and python-control. Delays are whole samples
and part of the responses. A response is shown until its visible modes z have faded, where z = e^{s dt} is treated as the
rate s of a response in continuous time (`response_times`).
"""

import math
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.floating_point import Array
from ltinet.analysis.characteristics import StepInfo, validate_levels
from ltinet.analysis.dc_gain import count_integrators, dc_gain
from ltinet.analysis.response_times import (
    MAX_TIMES,
    Modes,
    deviation_reference,
    response_modes,
    select_time_span,
    settling_time_bound,
    slowest_modes,
)
from ltinet.analysis.responses import Channel, Times, resolve_index, select_output
from ltinet.errors import InvalidSignalError
from ltinet.signals.arrays import as_real_array
from ltinet.simulation.api import simulate
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.discrete import sample_times
from ltinet.simulation.solution import Solution, with_notes
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.systems.system_matrices import SystemMatrices

Kind = Literal["step", "impulse", "initial"]

_SETTLED_SHARE = 0.015  # of the reference, in the last tenth of the samples: below the usual 2 %
_TAIL_SHARE = 1e-7  # of the reference: amplitude of all modes together beyond which no characteristic changes
_MAX_EXTENSIONS = 12  # as `responses.MAX_EXTENSIONS`
_MIN_SAMPLES = 11  # ten steps, drawing only
_MAX_NUMBERS = 20_000_000  # of all curves together: 160 MB
_MAX_SAMPLES = 1_000_000  # of one curve, for memory; a note says where it ends before it has settled
_PEAK_ROUNDING = 1e-9  # of the final value: smaller excesses are rounding
_REACHED = 1e-13  # of the final value: distance at which a response in finitely many samples has reached it


class _Response(NamedTuple):
    """Response of a model from input j, or each, to output i, or all (None)."""

    prepared: SimulationContext
    system: SystemMatrices
    delays: SignalSettings
    kind: Kind
    j: int | None
    i: int | None
    x0: Array | None

    @property
    def dt(self) -> float:
        """Time step."""
        return float(self.system.dt or math.nan)

    def run(self, t: Any) -> Solution:
        """Return the response at some samples; those between are computed as well."""
        samples = sample_times(t, None, self.dt)
        n = len(samples.axis.t)
        if self.x0 is not None:
            u = np.broadcast_to(np.zeros(self.system.n_inputs), (*self.x0.shape[:-1], n, self.system.n_inputs))
        else:
            directions = np.eye(self.system.n_inputs)[self.j if self.j is not None else slice(None), None]
            u = np.repeat(directions, n, axis=-2)
            if self.kind == "impulse":
                u[..., 0, :] /= self.dt
                u[..., 1:, :] = 0.0
        solution = simulate(self.prepared, u, t=n, x0=self.x0, settings=self.delays)
        if samples.has_all:
            return solution
        return replace(solution, t=samples.axis.t[samples.numbers], y=solution.y[..., samples.numbers, :])

    @property
    def outputs(self) -> slice:
        """Selected outputs."""
        return slice(None) if self.i is None else slice(self.i, self.i + 1)

    @property
    def inputs(self) -> slice:
        """Selected inputs."""
        return slice(None) if self.j is None else slice(self.j, self.j + 1)

    def modes(self) -> Modes:
        """Return the modes as rates log(z)/dt of continuous time, with the amplitudes of the response."""
        prepared, of_step = self.prepared, self.kind == "step"
        if self.x0 is not None:
            starts = prepared.initial_state(self.x0, self.x0.shape[:-1])
        else:
            starts = prepared.blocks.B.T[self.inputs]
        packed = prepared.system.packed_from_blocks(starts)
        outputs = list(range(self.system.n_outputs))[self.outputs]
        found = response_modes(prepared.system, packed, outputs, of_step=False, n_integrators=0)
        z, amplitudes = found.rates, found.amplitudes
        rates = np.log(np.maximum(np.abs(z), np.finfo(float).tiny)) / self.dt + 1j * np.angle(z) / self.dt
        is_integrator = slowest_modes(rates, count_integrators(self.system))
        if of_step:
            distance = np.abs(1.0 - z)
            amplitudes = amplitudes / np.where(is_integrator | (distance == 0.0), 1.0, distance)[:, None, None]
        return Modes(rates, amplitudes, is_integrator, of_step)

    def final(self, modes: Modes) -> Array:
        """Return the final values, `(p, starts)`."""
        if self.kind == "step":
            return dc_gain(self.system)[self.outputs, self.inputs]
        return np.zeros(modes.amplitudes.shape[1:])

    @property
    def longest_delay(self) -> float:
        """Longest delay of the response."""
        inputs = self.delays.array("input_delay", self.system.n_inputs)[self.inputs]
        outputs = self.delays.array("output_delay", self.system.n_outputs)[self.outputs]
        of_inputs = 0.0 if self.kind == "initial" else float(inputs.max(initial=0.0))
        return of_inputs + float(outputs.max(initial=0.0))


def discrete_response(
    prepared: SimulationContext,
    system: SystemMatrices,
    settings: SignalSettings,
    t: Times,
    *,
    kind: Kind,
    input: Channel = None,
    output: Channel = None,
    x0: ArrayLike | None = None,
) -> Solution:
    """Return a response with delays; the arguments are those of the methods of `ltinet.StateSpace`."""
    j, i = resolve_index(input, system.input_names, "input"), resolve_index(output, system.output_names, "output")
    delays = replace(settings, u0=None, y0=None)
    response = _Response(prepared, system, delays, kind, j, i, None if x0 is None else as_real_array(x0, "x0"))
    if kind == "initial" and response.x0 is None:
        raise InvalidSignalError("x0 is missing. Pass the state at t = 0.")
    if t is None:
        return select_output(_chosen_response(response), i)
    solution = response.run(t)
    if solution.t[0] != 0.0 or (np.ndim(t) and np.ravel(np.asarray(t))[0] != 0.0):
        raise InvalidSignalError(
            f"t must begin at 0, where responses begin. Pass np.arange(n) * {response.dt:g}, or n."
        )
    return select_output(solution, i)


def _chosen_response(response: _Response) -> Solution:
    """Return a response that has settled if it settles, at no more than `MAX_TIMES` of its samples."""
    modes = response.modes()
    final = response.final(modes)
    span = select_time_span(modes, final)
    most = int(np.clip(_MAX_NUMBERS // max(1, modes.amplitudes[:1].size), MAX_TIMES, _MAX_SAMPLES))
    wanted = max(_MIN_SAMPLES, _count(span.end + response.longest_delay, response.dt))
    for _ in range(_MAX_EXTENSIONS):
        n = min(wanted, most)
        solution = response.run(n)
        longer = _longer(response, modes, final, solution) if span.settles and n < most else None
        if longer is None:
            break
        wanted = longer
    notes = span.notes
    if wanted > most:
        notes = (*notes, f"shown until t = {solution.t[-1]:g}; it needs {wanted} samples to settle")
    if n > MAX_TIMES:
        stride = -(-n // MAX_TIMES)
        kept = slice(None, None, stride)
        solution = replace(solution, t=solution.t[kept], y=solution.y[..., kept, :])
        notes = (*notes, f"one of {stride} samples is shown; pass t to see others")
    return with_notes(solution, notes) if notes else solution


def _longer(response: _Response, modes: Modes, final: Array, solution: Solution) -> int | None:
    """Return a larger number of samples for a response that has not settled, or that moves again later; else None."""
    y = _curves(response, solution)
    n = int(y.shape[1])
    reference = deviation_reference(final.T, np.abs(y).max(axis=1, initial=0.0))

    def is_away(values: Array) -> Array:
        return np.asarray((np.abs(values - final.T[:, None]) > _SETTLED_SHARE * reference[:, None]).any(axis=(0, 2)))

    if is_away(y[:, -max(1, n // 10) :]).any():
        return math.ceil(1.5 * n)
    bound = settling_time_bound(modes, reference.T, share=_SETTLED_SHARE) + response.longest_delay
    later = min(_count(bound, response.dt), _MAX_SAMPLES)
    if later <= n:
        return None
    away = np.flatnonzero(is_away(_curves(response, response.run(later))))
    last = int(away[-1]) if len(away) else 0
    return max(math.ceil(last / 0.9), math.ceil(1.5 * n)) if last >= n else None


def _curves(response: _Response, solution: Solution) -> Array:
    """Return the selected outputs, `(starts, T, p)`."""
    y = solution.y[..., response.outputs]
    return y.reshape(-1, *y.shape[-2:])


def _count(time: float, dt: float) -> int:
    """Return the number of samples from 0 to a time."""
    return math.ceil(min(time / dt, 1e15)) + 1


# Characteristics of step responses.


def discrete_step_info(
    prepared: SimulationContext, system: SystemMatrices, *, input: Channel, output: Channel, settling: Any, rise: Any
) -> StepInfo:
    """Compute characteristics of the samples of step responses, without delays."""
    band, (low, high) = validate_levels(settling, rise)
    j, i = resolve_index(input, system.input_names, "input"), resolve_index(output, system.output_names, "output")
    inputs = range(system.n_inputs) if j is None else [j]
    outputs = range(system.n_outputs) if i is None else [i]
    final = dc_gain(system)[np.ix_(outputs, inputs)]
    values = np.full((6, *final.shape), np.nan)
    for column, number in enumerate(inputs):
        response = _Response(prepared, system, NO_SETTINGS, "step", number, None, None)
        modes = response.modes()
        finals = response.final(modes)
        span = select_time_span(modes, finals)
        reference = deviation_reference(finals, modes.amplitudes.max(axis=0, initial=0.0))
        end = max(span.end, settling_time_bound(modes, reference, share=_TAIL_SHARE) if span.settles else 0.0)
        n = min(max(_MIN_SAMPLES, _count(end, response.dt)), _MAX_SAMPLES)
        y = response.run(n).y
        for row, index in enumerate(outputs):
            values[:, row, column] = _measure(
                y[:, index], float(final[row, column]), response.dt, settles=span.settles, is_bounded=span.is_bounded,
                band=band, low=low, high=high, n_states=system.n_states,
            )  # fmt: skip
    return StepInfo(
        final,
        *values,
        dead_time=np.zeros(final.shape),
        input_names=tuple(system.input_names[number] for number in inputs),
        output_names=tuple(system.output_names[index] for index in outputs),
    )


def _measure(  # noqa: PLR0913
    y: Array,
    final: float,
    dt: float,
    *,
    settles: bool,
    is_bounded: bool,
    band: float,
    low: float,
    high: float,
    n_states: int,
) -> tuple[float, ...]:
    """Return rise time, settling time, overshoot, undershoot, peak and its time from the samples of a response."""
    if not np.isfinite(final):
        return (np.nan, np.nan, np.nan, np.nan, np.inf, np.inf)
    if not settles:
        peak = np.nan if is_bounded else np.inf
        return (np.nan, np.nan, np.nan, np.nan, peak, peak)
    size, largest = abs(final), np.abs(y)
    at = int(np.argmax(largest))
    peak, time = float(largest[at]), at * dt
    if size > 0.0 and peak <= size * (1.0 + _PEAK_ROUNDING):
        # The limit; in finitely many samples, of which there are as many as states, it may be reached.
        reached = np.flatnonzero(largest[: n_states + 1] >= size * (1.0 - _REACHED))
        peak, time = size, float(reached[0]) * dt if len(reached) else np.inf
    if final == 0.0:
        return (np.nan, np.nan, np.nan, np.nan, peak, time)
    towards = math.copysign(1.0, final) * y
    beyond, against = float(towards.max()), float(-towards.min())
    outside = np.flatnonzero(np.abs(y - final) > band * size)
    settled = int(outside[-1]) + 1 if len(outside) else 0
    first_low, first_high = (np.flatnonzero(towards >= level * size) for level in (low, high))
    return (
        float(first_high[0] - first_low[0]) * dt if len(first_high) else np.nan,
        settled * dt if settled < len(y) else np.nan,
        100.0 * (beyond - size) / size if beyond > size * (1.0 + _PEAK_ROUNDING) else 0.0,
        100.0 * against / size if against > _PEAK_ROUNDING * size else 0.0,
        peak,
        time,
    )
