"""Simulation in discrete time: x[k+1] = A x[k] + B u[k], y[k] = C x[k] + D u[k].

The exact engine takes the step model of a difference equation (`discrete_step`) in original or in block coordinates, with
the algorithms of evenly spaced samples. Times are multiples of dt and counted as samples, and there are no values between
them. Delays are whole samples: with v_j[k] = u_j[k − d_j] − u0_j and the outputs w of the core, y_i[k] = w_i[k − e_i] + y0_i,
and y_i = y0_i before.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import Array
from ltinet._util.text import sanitize
from ltinet.errors import InvalidSignalError, SimulationError
from ltinet.signals.arrays import as_real_array
from ltinet.signals.sampled import Hold, SampledSignal, validate_hold
from ltinet.signals.signal import Signal
from ltinet.signals.times import TimeAxis, as_real_times, as_time_step
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.coordinate_selection import CoordinateChoice, select_coordinates
from ltinet.simulation.delayed_stepper import delays_in_samples
from ltinet.simulation.delays import model_input
from ltinet.simulation.discrete_error_bound import DiscreteErrorBound, bound_discrete_run
from ltinet.simulation.exact_run import ExactRun
from ltinet.simulation.solution import Solution
from ltinet.simulation.sparse_recurrence import SparseRun
from ltinet.systems.signal_names import UNNAMED
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings
from ltinet.systems.system_matrices import SystemMatrices

Indices = NDArray[np.intp]

# Deviation of a time from a multiple of dt, in samples: far above the rounding of 1e9 times, far below a mistake.
_TIME_TOLERANCE = 1e-6
_STEP_TOLERANCE = 1e-9  # relative difference of two time steps that count as equal


# Sample times


class SampleTimes(NamedTuple):
    """Requested times, and all samples from the first to the last of them."""

    t: Array
    axis: TimeAxis
    numbers: Indices
    """Index of each requested time among the samples."""

    @property
    def has_all(self) -> bool:
        """True if every sample is requested."""
        return len(self.numbers) == len(self.axis.t)


def sample_times(t: Any, u: Any, dt: float) -> SampleTimes:
    """Return the samples of a run: t is a number of samples, times that are multiples of dt, or None to follow u."""
    if t is None:
        t = _count_samples(u)
    is_count = isinstance(t, (int, np.integer)) and not isinstance(t, bool)
    if is_count:
        if t < 1:
            raise InvalidSignalError(f"the number of samples must be at least 1, got {t}.")
        index = np.arange(int(t))
        axis = TimeAxis(np.asarray(dt * index, dtype=np.float64))
    else:
        times = as_real_times(t, "t")
        if not times.ndim:
            raise InvalidSignalError(
                f"t must be a list of times or an integer number of samples, got {float(times):g}. "
                f"Pass np.arange(n) * {dt:g}, or n."
            )
        axis = TimeAxis.of(times)
        numbers = sample_numbers(axis.t, dt)
        index = numbers - numbers[0]
        repeated = np.flatnonzero(np.diff(index) == 0)
        if len(repeated):
            raise InvalidSignalError(
                f"t has {float(axis.t[repeated[0]])!r} twice; a model in discrete time has one value at each sample. "
                "Pass each time once."
            )
    requested = axis.t
    if len(index) != index[-1] + 1:
        axis = TimeAxis(requested[0] + dt * np.arange(int(index[-1]) + 1))
    return SampleTimes(requested, axis.with_step(dt), index)


def sample_numbers(t: Array, dt: float) -> Indices:
    """Return t/dt as integers; raise InvalidSignalError for a time that is not a multiple of dt."""
    ratio = t / dt
    nearest = np.rint(ratio)
    is_beside = np.abs(ratio - nearest) > _TIME_TOLERANCE
    if is_beside.any():
        raise InvalidSignalError(
            f"times must be multiples of the time step dt = {dt:g} of the model, got {float(t[np.argmax(is_beside)])!r}. "
            f"Pass np.arange(n) * {dt:g}, or a number of samples."
        )
    return nearest.astype(np.intp)


def _count_samples(u: Any) -> int:
    """Return the number of samples of u."""
    values = getattr(u, "values", u)
    if u is None or isinstance(u, Mapping) or callable(values):
        raise InvalidSignalError("t is missing and does not follow from u. Pass times, or a number of samples.")
    shape = np.shape(as_real_array(values, "u"))
    return int(shape[-2] if len(shape) > 1 else shape[0] if shape else 0)


def resolve_time_step(dt: Any, model_dt: float | None, call: str) -> float:
    """Return the time step of a stepper or an export: the argument dt, or that of a model in discrete time."""
    if model_dt is None:
        if dt is None:
            raise InvalidSignalError(f"dt is missing; a model in continuous time needs a time step. Pass {call}.")
        return as_time_step(dt, "dt")
    if dt is not None and abs(as_time_step(dt, "dt") / model_dt - 1.0) > _STEP_TOLERANCE:
        raise InvalidSignalError(
            f"dt must be the time step {model_dt:g} of the model in discrete time, got {float(dt):g}. Omit it, or convert "
            "the model: system.to_continuous()."
        )
    return model_dt


# Simulation


@dataclass(frozen=True, eq=False)
class InputEnergy:
    """Energy Σ |u|² of an input from its first sample on; computed when it is needed."""

    signal: SampledSignal

    @property
    def t(self) -> Array:
        """Times of the samples."""
        return self.signal.t

    @cached_property
    def values(self) -> Array:
        """Energy up to each sample, `(..., T)`."""
        u = self.signal.u
        return np.cumsum((u * u).sum(axis=-1), axis=-1)


def simulate_discrete(  # noqa: PLR0913
    context: SimulationContext,
    u: Any,
    *,
    t: Any,
    x0: ArrayLike | None,
    hold: Any,
    engine: str,
    n_jobs: int,
    options: Mapping[str, Any],
    settings: SignalSettings,
    sparse_system: SystemMatrices | None = None,
) -> tuple[Solution, "InputEnergy"]:
    """Simulate a model in discrete time, and return the energy of the input of its core as well.

    The arguments are those of `simulate`, and validated there where they agree. `sparse_system` is a large sparse system, which
    is simulated by its sparse matrices.
    """
    dt = _require_time_step(context)
    _refuse_options_of_continuous_time(dt, hold=hold, engine=engine, options=options)
    samples = sample_times(t, u, dt)
    delays = delays_in_samples(settings.array("input_delay", context.n_inputs), dt, is_discrete=True).whole
    lead = _samples_before(u, samples.axis, dt, int(delays.max(initial=0)))
    values = _sampled_input(context, u, samples, settings, lead=lead)
    given = SampledSignal(samples.axis, values[..., lead:, :], hold="zero")
    x0 = None if x0 is None else as_real_array(x0, "x0")
    core_input = given
    if settings.shifts_signals:
        deviations = delayed_samples(values - settings.array("u0", context.n_inputs), delays)
        core_input = SampledSignal(samples.axis, deviations[..., lead:, :], hold="zero")
    run: DiscreteRun | SparseRun
    if sparse_system is not None and sparse_system.sparse is not None:
        run = SparseRun(sparse_system.sparse, sparse_system.C, sparse_system.D, core_input, x0)
        outputs = run.sampled_outputs()
    else:
        coordinates: CoordinateChoice = options.get("coordinates", "auto")
        realization = select_coordinates(context, coordinates, is_even=True, longest_step=dt)
        run = DiscreteRun(realization, core_input, x0, network=context)
        threads = n_jobs if n_jobs > 0 else (os.cpu_count() or 1) + 1 + n_jobs  # counted down from all cores
        outputs = run.sampled_outputs(threads=threads)
    trajectory = DiscreteTrajectory(run, outputs, given, samples.axis.t, dt, settings)
    stats = {
        "engine": "exact",
        "coordinates": run.coordinates,
        "grid": "discrete",
        "algorithm": run.algorithm,
        "n_samples": len(samples.axis.t),
        "samples_per_interval": 1,
        "hold": None,
    }
    y = trajectory.at_samples(slice(None) if samples.has_all else samples.numbers)
    names = context.names
    solution = Solution(samples.t, y, trajectory, stats, UNNAMED if names == UNNAMED else names)
    return solution, InputEnergy(core_input)


def _require_time_step(context: SimulationContext) -> float:
    if context.dt is None:
        raise SimulationError("the model is in continuous time and has no samples.")
    return context.dt


def _refuse_options_of_continuous_time(dt: float, *, hold: Any, engine: str, options: Mapping[str, Any]) -> None:
    is_discrete = f"the model is in discrete time (dt = {dt:g})"
    if engine != "exact":
        raise SimulationError(
            f"engine={sanitize(repr(engine))} solves differential equations, and {is_discrete}. Omit engine, or simulate "
            "system.to_continuous()."
        )
    if options.get("input_tolerance") is not None:
        raise SimulationError(f"input_tolerance is for inputs between samples, and {is_discrete}. Omit it.")
    refuse_linear_hold(hold, dt)


def refuse_linear_hold(hold: Hold | None, dt: float) -> None:
    """Raise InvalidSignalError for a hold that needs values between the samples of a model in discrete time."""
    if hold is not None and validate_hold(hold) == "linear":
        raise InvalidSignalError(
            f"hold={hold!r} interpolates inputs between samples, and the model is in discrete time (dt = {dt:g}). Omit hold."
        )


def _samples_before(u: Any, axis: TimeAxis, dt: float, longest_delay: int) -> int:
    """Return the number of samples before the first time that u has and that a delay brings into the run."""
    if not isinstance(u, SampledSignal):
        return 0
    return max(0, min(longest_delay, int((axis.t[0] - u.start) / dt + _TIME_TOLERANCE)))


def _sampled_input(
    context: SimulationContext, u: Any, samples: SampleTimes, settings: SignalSettings, *, lead: int
) -> Array:
    """Return the input at `lead` samples before the first time and at all samples, `(..., lead + T, m)`."""
    if u is None:
        u0 = settings.array("u0", context.n_inputs)
        return np.broadcast_to(u0, (len(samples.axis.t), context.n_inputs))
    is_sampled = not (callable(u) or isinstance(u, (Signal, Mapping)))
    if is_sampled and not samples.has_all:
        skipped = int(np.max(np.diff(samples.numbers)))
        raise InvalidSignalError(
            f"t must contain every sample if u is an array, but it skips from one to the {skipped}th after it. Pass "
            'consecutive multiples of dt, u as a function of time, or ltinet.SampledSignal(t_u, u, hold="zero") for samples '
            "at other times t_u."
        )
    signal = model_input(
        u, samples.axis, n_inputs=context.n_inputs, names=context.names.inputs, hold="zero", settings=NO_SETTINGS
    ).signal
    if isinstance(signal, SampledSignal):
        if signal.axis is samples.axis:
            return signal.u
        t, step = samples.axis.t, samples.axis.longest_step
        times = np.concatenate([t[0] - step * np.arange(lead, 0, -1), t])
        # A step at k dt that rounding puts after the sample belongs to it.
        return signal.value(times + _TIME_TOLERANCE * step) if signal.hold == "zero" else signal.value(times)
    return np.asarray(signal.value(samples.axis.t))


def delayed_samples(values: Array, delays: Indices) -> Array:
    """Return each channel (last axis) later by a number of samples, and zero before."""
    if not delays.any():
        return values
    result, n_samples = np.zeros_like(values), values.shape[-2]
    for channel, delay in enumerate(np.minimum(delays, n_samples).tolist()):
        result[..., delay:, channel] = values[..., : n_samples - delay, channel]
    return result


class DiscreteRun(ExactRun):
    """Run of a core in discrete time; its values exist at samples only."""

    @property
    def coordinates(self) -> str:
        """Name of the coordinates of the run."""
        return self.realization.name

    def states_at(self, t: Array) -> Iterator[tuple[Any, Array, Array]]:
        """Yield the indices of some times, packed states `(batch, k, n)` there and inputs there."""
        dt = float(self.samples.step or 0.0)
        index = sample_numbers(t - self.samples.t[0], dt)
        yield from super().states_at(self.samples.t[index])


@dataclass(frozen=True, eq=False)
class DiscreteTrajectory:
    """Solution of a model in discrete time at its samples."""

    core: DiscreteRun | SparseRun
    core_outputs: Array
    """Outputs of the core at all samples, `(..., T, p)`."""
    given: SampledSignal
    """Input as the user gave it."""
    t: Array
    dt: float
    settings: SignalSettings

    def at_samples(self, index: Indices | slice) -> Array:
        """Return outputs at some samples, `(..., k, p)`."""
        return self._outputs[..., index, :]

    @cached_property
    def _outputs(self) -> Array:
        if not self.settings.shifts_signals:
            return self.core_outputs
        p = self.core_outputs.shape[-1]
        return delayed_samples(self.core_outputs, self.output_delays) + self.settings.array("y0", p)

    @property
    def output_delays(self) -> Indices:
        """Delays of the outputs in samples."""
        delays = self.settings.array("output_delay", self.core_outputs.shape[-1])
        return np.asarray(delays_in_samples(delays, self.dt, is_discrete=True).whole)

    def sample_index(self, t: Array) -> Indices:
        """Return the samples at some times; raise InvalidSignalError for times between samples."""
        return sample_numbers(t - self.t[0], self.dt)

    def outputs(self, t: Array) -> Array:
        """Return outputs y at times of samples."""
        return self.at_samples(self.sample_index(t))

    def user_states(self, t: Array) -> Array:
        """Return states x at times of samples."""
        return self.core.user_states(self.t[self.sample_index(t)])

    def neuron_states(self, t: Array) -> Array:
        """Return (ξ[k], ξ[k+1] of second-order neurons) at times of samples."""
        return self.core.neuron_states(self.t[self.sample_index(t)])

    def input_corners(self, t: Array) -> tuple[Array, Array]:
        """Return the input for a plot, at the times t."""
        return t, self.given.u[..., self.sample_index(t), :]

    def error_bound(self, start: float, stop: float) -> DiscreteErrorBound:  # noqa: ARG002 - known at all samples
        """Return the error bound at samples."""
        return DiscreteErrorBound(self._bound, self.sample_index)

    @cached_property
    def _bound(self) -> Array:
        settings, run = self.settings, self.core
        if isinstance(run, SparseRun):
            return np.full(self.core_outputs.shape, np.inf)
        bound = bound_discrete_run(
            run, self.core_outputs, input_is_rounded=settings.shifts_signals and settings.u0 is not None
        )
        if not settings.shifts_signals:
            return bound
        bound = delayed_samples(bound, self.output_delays)
        return bound if settings.y0 is None else bound + np.spacing(np.abs(self._outputs))
