"""Simulation of models with input and output delays and an operating point.

The core (A, B, C, D) of a model runs with v_j(t) = u_j(t − τ_j) − u0_j (`signals.delayed`). Its outputs w are known
between samples in closed form, so that y_i(t) = w_i(t − σ_i) + y0_i is as exact as w; before t0 + σ_i nothing has
arrived, and y_i = y0_i. States are those of the core at t.

Rounding of the shifted times and of the sums is bounded by the gains of the core. With h_ij its impulse response and
an input that is off by at most ε_j, and by an integral of at most m_j beside jumps,

    |Δw_i| ≤ Σ_j ( ∫|h_ij| + |D_ij| ) ε_j + sup |h_ij| m_j ,

and reading w_i at a time that is off by δ changes it as an input and an initial state do that are late by δ. For
functions of time the variation of the input is an estimate: twice that at the requested times.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ltinet._util.double_double import two_sum
from ltinet._util.floating_point import EPS, Array
from ltinet.error_bounds.output_bounds import OutputErrors
from ltinet.errors import SimulationError
from ltinet.signals.conversion import as_signal, order_inputs
from ltinet.signals.delayed import DelayedInput, delayed_input, snap_to_targets
from ltinet.signals.sampled import Hold, SampledSignal
from ltinet.signals.signal import Signal, polyline_points
from ltinet.signals.times import TimeAxis
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.modal import free_derivative
from ltinet.simulation.response_bounds import (
    ResponseBounds,
    bound_free_responses,
    bound_impulse_responses,
    input_vectors,
)
from ltinet.simulation.solution import ErrorBound, KnowsOutputErrors, Solution, Trajectory, outputs_at_jumps
from ltinet.systems.signal_names import Names, names_or_defaults
from ltinet.systems.signal_settings import SignalSettings

# Variation, largest value and slope of a function over those at the requested times. For sines with three or more samples
# a period the largest ratio is 1.40, 1.40 and π/2 (python -m benchmarks.constants _VARIATION_MARGIN).
_VARIATION_MARGIN = 2.0
_PART = "delays and operating point"  # name of the part of the error bound


class ModelInput(NamedTuple):
    """Input of a model, and that of its core."""

    signal: Signal
    """Input as the user gave it; the operating point without one."""
    delayed: DelayedInput | None
    """Input of the core; None if it is the same."""

    @property
    def of_core(self) -> Signal:
        """Signal that enters the core."""
        return self.signal if self.delayed is None else self.delayed.signal


def model_input(
    u: Any, axis: TimeAxis, *, n_inputs: int, names: Names | None, hold: Hold, settings: SignalSettings
) -> ModelInput:
    """Return the input of a model from the argument u of a simulation."""
    if not isinstance(u, np.ndarray):  # an array has no names
        inputs = names_or_defaults(names, "inputs", n_inputs)
        u = order_inputs(u, inputs, are_given=names is not None, n_times=len(axis.t))
    signal = as_signal(u, axis, n_inputs=n_inputs, hold=hold)
    if not settings.shifts_signals:
        return ModelInput(signal, None)
    u0 = settings.array("u0", n_inputs)
    if u is None:
        signal = SampledSignal(axis, np.broadcast_to(u0, (len(axis.t), n_inputs)))
    return ModelInput(signal, delayed_input(signal, axis, delays=settings.array("input_delay", n_inputs), offsets=u0))


def solution_from_core(
    solution: Solution,
    settings: SignalSettings,
    *,
    given: ModelInput,
    context: SimulationContext | None,
    D: Array,
    x0: Any,
) -> Solution:
    """Return the solution of a model from that of its core; without `context` rounding is not bounded."""
    p = solution.y.shape[-1]
    trajectory = DelayedTrajectory(
        core=solution.trajectory,
        t=solution.t,
        delays=np.broadcast_to(settings.array("output_delay", p), solution.y[..., 0, :].shape),
        y0=settings.array("y0", p),
        signal=given.signal,
        delayed=given.delayed,
        D=D,
        context=context,
        x0=x0,
    )
    is_delayed = trajectory.delays.any()
    y = trajectory.outputs(solution.t, core_outputs=solution.y) if is_delayed else solution.y + trajectory.y0
    return replace(solution, y=y, trajectory=trajectory)


@dataclass(frozen=True, eq=False)
class DelayedTrajectory:
    """Trajectory of a model with delays and an operating point."""

    core: Trajectory
    t: Array
    delays: Array
    """Output delays, `(..., p)`."""
    y0: Array
    signal: Signal | None
    """Input as the user gave it; None without one."""
    delayed: DelayedInput | None
    """Input of the core; None without one."""
    D: Array
    context: SimulationContext | None
    x0: Any = None
    """The user's state at the first time."""
    state_delays: Array | None = None
    """Delays of all states of the members of a batch, `(...)`, where each is the response to another input."""
    output: int | None = None
    """Index of the output of the core, where it is a single one."""

    def outputs(self, t: Array, *, core_outputs: Array | None = None) -> Array:
        """Return outputs y at any times; `core_outputs` are those of the core at `self.t`, if known already."""
        w = self._evaluate_delayed(
            t, self.delays, self.delays.shape, lambda times: self._core_outputs(times, core_outputs)
        )
        return np.asarray(w + self.y0)

    def _evaluate_delayed(
        self, t: Array, delays: Array, shape: tuple[int, ...], evaluate: Callable[[Array], Array]
    ) -> Array:
        """Return values of the core at t − delays, zero before they arrive; `shape` is that at a single time."""
        values = np.zeros((*shape[:-1], len(t), shape[-1]))
        for delay in np.unique(delays).tolist():
            arrived, source, _ = self.source_times(t, delay)
            if arrived.any():
                has_delay = (delays == delay)[..., None, :]
                values[..., arrived, :] = np.where(has_delay, evaluate(source), values[..., arrived, :])
        return values

    def source_times(self, t: Array, delay: float) -> tuple[Any, Array, Array]:
        """Return which times are after t0 + delay, the times t − delay of these, and the rounding of the latter."""
        if not delay:
            return np.ones(len(t), dtype=bool), t, np.zeros(len(t))
        times, lost = two_sum(t, np.array([-delay]))
        times, shifts = snap_to_targets(times, lost, np.unique(self.t))
        arrived = times >= self.t[0]
        return arrived, times[arrived], shifts[arrived]

    def _core_outputs(self, t: Array, core_outputs: Array | None) -> Array:
        if core_outputs is not None:
            # Times given twice are before and after a jump; any other has one place.
            indices = np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 1)
            doubled = np.flatnonzero(t[1:] == t[:-1])
            indices[doubled] = np.searchsorted(self.t, t[doubled], side="left")
            # The value before a jump is known where the run has this time twice as well.
            if np.array_equal(self.t[indices], t) and np.all(indices[doubled] < indices[doubled + 1]):
                return core_outputs[..., indices, :]
        y = self.core.outputs(t)
        return y if self.delayed is None else outputs_at_jumps(y, t, self.delayed.signal, self.D)

    def user_states(self, t: Array) -> Array:
        """Return states x of the core at any times."""
        return self._delayed_states(t, self.core.user_states)

    def neuron_states(self, t: Array) -> Array:
        """Return (ξ, ξ̇) of the core at any times."""
        return self._delayed_states(t, self.core.neuron_states)

    def _delayed_states(self, t: Array, evaluate: Callable[[Array], Array]) -> Array:
        if self.state_delays is None:
            return np.asarray(evaluate(t))
        return self._evaluate_delayed(t, self.state_delays[..., None], evaluate(self.t[:1])[..., 0, :].shape, evaluate)

    def input_corners(self, t: Array) -> tuple[Array, Array]:
        """Return the user's input at the times t and at knots between them."""
        return (t, np.zeros((len(t), 0))) if self.signal is None else polyline_points(self.signal, t)

    def error_bound(self, start: float, stop: float) -> "DelayedErrorBound":
        """Return a bound on the error of outputs between two times."""
        return DelayedErrorBound(self, self.core.error_bound(start, stop), self._rounding())

    def output_errors(self, t: Array) -> OutputErrors:
        """Return the errors of the outputs at times t, without those of sums; for models without output delays."""
        if not isinstance(self.core, KnowsOutputErrors) or self.delays.any():
            raise SimulationError(
                "outputs of a model with output delays are not corrected. Simulate the model without output_delay, and delay "
                "the corrected outputs."
            )
        return self.core.output_errors(t)

    def _rounding(self) -> Array:
        """Return the effect of shifted times and of sums except the last on the outputs, `(..., p)`."""
        shape = self.delays.shape
        if self.context is None or self.context.has_operator:
            return np.full(shape, np.inf if self.delayed is not None else 0.0)
        bounds = _CoreBounds(self.context, float(self.t[-1] - self.t[0]))
        total, shifts = np.zeros(shape), np.zeros(shape)
        for delay in np.unique(self.delays).tolist():
            at_times = self.source_times(self.t, delay)[2]
            # Between the requested times the difference of two numbers is rounded by half a unit of either.
            largest = max(float(at_times.max(initial=0.0)), EPS * float(np.abs(self.t).max())) if delay else 0.0
            shifts = np.where(self.delays == delay, largest, shifts)
        if self.delayed is not None and (np.any(self.delayed.error) or np.any(self.delayed.jump_error)):
            gains = bounds.input_gains
            total += self.delayed.error @ (gains.integral + np.abs(self.D)).T + self.delayed.jump_error @ gains.peak.T
        if shifts.any():
            speed = bounds.output_speed(self.delayed, self.t, self.x0, batch_shape=shape[:-1])
            total += shifts * (speed if self.output is None else speed[..., self.output, None])
        return total


@dataclass(frozen=True, eq=False)
class DelayedErrorBound:
    """Bound of the core at the times at which outputs are read, and the rounding of shifted times and sums."""

    run: DelayedTrajectory
    core: ErrorBound
    rounding: Array

    def at(self, t: Array) -> dict[str, Array]:
        """Return the parts at any times, `(..., len(t), p)` each."""
        run = self.run
        parts: dict[str, Array] = {}
        for delay in np.unique(run.delays).tolist():
            arrived, source, _ = run.source_times(t, delay)
            if not arrived.any():
                continue
            has_delay = (run.delays == delay)[..., None, :]
            for name, core_part in self.core.at(source).items():
                part = parts.setdefault(name, np.zeros((*core_part.shape[:-2], len(t), core_part.shape[-1])))
                part[..., arrived, :] = np.where(has_delay, core_part, part[..., arrived, :])
        # The last sum, and as for all outputs the rounding of exact ones to doubles, for comparison with these.
        last_sum = EPS * np.abs(run.outputs(t)) * (run.y0 != 0.0)
        parts[_PART] = self.rounding[..., None, :] + last_sum
        return parts

    def overall(self) -> dict[str, Array]:
        """Return the parts over all times, `(..., p)` each."""
        parts = self.at(self.run.t)
        worst = np.argmax(sum(parts.values()), axis=-2)[..., None, :]
        return {name: np.take_along_axis(part, worst, axis=-2)[..., 0, :] for name, part in parts.items()}


# Gains of the core


@dataclass(frozen=True, eq=False)
class _CoreBounds:
    """Bounds on the responses of a core over a horizon."""

    context: SimulationContext
    horizon: float

    @property
    def input_gains(self) -> ResponseBounds:
        """Bounds on the impulse responses."""
        return bound_impulse_responses(self.context, self.horizon)

    def output_speed(self, delayed: DelayedInput | None, t: Array, x0: Any, *, batch_shape: tuple[int, ...]) -> Array:
        """Return a bound on |ẇ_i| between jumps: from the variation of the input, and from the initial state."""
        system = self.context.system
        speed = np.zeros((*batch_shape, system.n_outputs))
        if delayed is not None:
            signal: Any = delayed.signal
            samples = getattr(signal, "u", None)
            is_function = samples is None
            # A function is known at the requested times only.
            times = np.unique(t) if is_function else signal.t
            values: Array = np.asarray(signal.value(times) if is_function else samples)
            margin = _VARIATION_MARGIN if is_function else 1.0
            changes = margin * np.abs(np.diff(values, axis=-2))
            variation = margin * np.abs(values[..., 0, :]) + changes.sum(axis=-2)
            speed = speed + self._driven_speed(variation, margin * np.abs(values).max(axis=-2, initial=0.0))
            if is_function or (signal.hold == "linear" and len(times) > 1):
                widths = np.diff(times)
                slopes = (changes / np.where(widths > 0.0, widths, np.inf)[:, None]).max(axis=-2, initial=0.0)
                speed = speed + slopes @ np.abs(system.D).T
        if x0 is not None and np.any(x0):
            start = system.packed_from_blocks(self.context.initial_state(x0, batch_shape))
            peak = bound_free_responses(self.context, free_derivative(system, start), self.horizon).peak.T
            speed = speed + peak.reshape(*batch_shape, system.n_outputs)
        return np.asarray(speed)

    def _driven_speed(self, variation: Array, size: Array) -> Array:
        """Return a bound on |C x'| from rest: sup |h|·variation of v, or (∫|ḣ| + |h(0)|)·max |v| where that is less."""
        peak = self.input_gains.peak
        derivative = free_derivative(self.context.system, input_vectors(self.context))
        integral = bound_free_responses(self.context, derivative, self.horizon).integral
        with np.errstate(invalid="ignore"):
            speed = np.fmin(variation @ peak.T, size @ (integral + peak).T)
        return np.nan_to_num(speed, nan=np.inf)
