"""Delayed input signals relative to an operating point: v_j(t) = u_j(t − τ_j) − u0_j.

Nothing is resampled: samples move to t_k + τ_j, lines stay lines, and a function is evaluated at t − τ_j. Before the
signal is known v_j is zero: samples are known from their first one on, a function from the first time of the run on.
If v_j is not zero there, it jumps.

A moved knot that rounding separates from an output time, or from a knot of another input, is snapped to it, so that a
delay of whole samples maps samples to samples. The displacement of knots is reported and enters the error bounds.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ltinet._util.cache import cached_property
from ltinet._util.double_double import two_sum
from ltinet._util.floating_point import EPS
from ltinet.errors import InvalidSignalError
from ltinet.signals.adaptive_sampling import sample_function
from ltinet.signals.arrays import Times, Values
from ltinet.signals.sampled import SampledApproximation, SampledSignal, SingleSignal
from ltinet.signals.signal import Signal, SignalBatch
from ltinet.signals.times import GRID_ROUNDING, GRID_TOLERANCE, TimeAxis

_N_MAGNITUDE_SAMPLES = 200  # times at which the magnitude of a function is evaluated; its factor is a rounding error


class DelayedInput(NamedTuple):
    """Delayed signal, with bounds on its difference to the exact one for each input, `(..., m)`."""

    signal: Signal
    error: Values
    """Largest difference at times that are not beside a jump."""
    jump_error: Values
    """Integral of the difference beside jumps: Σ |jump|·|displacement of its time|."""


def delayed_input(signal: Signal, axis: TimeAxis, *, delays: Times, offsets: Values) -> DelayedInput:
    """Return v_j(t) = u_j(t − τ_j) − u0_j for a run over the times of `axis`; cost O(T m) for samples.

    Raises InvalidSignalError for a user-defined signal with several batch axes.
    """
    if isinstance(signal, SampledSignal):
        return _delayed_samples(signal, axis, delays, offsets)
    if signal.batch_shape:
        if len(signal.batch_shape) > 1:
            raise InvalidSignalError("a batch of inputs with delays has one axis; give SignalBatch([…])")
        parts = (delayed_input(one, axis, delays=delays, offsets=offsets) for one in signal.unbatched())
        signals, errors, jump_errors = zip(*parts, strict=True)
        return DelayedInput(SignalBatch(signals), np.stack(errors), np.stack(jump_errors))
    delayed = DelayedSignal.of(signal, axis, delays=delays, offsets=offsets)
    return DelayedInput(delayed, *delayed.errors(axis.t))


def snap_to_targets(times: Times, remainder: Times, targets: Times) -> tuple[Times, Times]:
    """Return times snapped to targets that rounding separates them from, and the distance of each from its exact value.

    `times + remainder` are the exact values, `targets` ascend strictly.
    """
    if not len(targets) or not len(times):
        return times, np.abs(remainder)
    largest = max(abs(float(targets[0])), abs(float(targets[-1])), float(np.abs(times).max()))
    steps = np.diff(targets)
    limit = min(GRID_ROUNDING * EPS * largest, GRID_TOLERANCE * float(steps.min(initial=np.inf)))
    after = np.clip(np.searchsorted(targets, times), 0, len(targets) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(
        np.abs(targets[after] - times) <= np.abs(times - targets[before]), targets[after], targets[before]
    )
    snapped = np.where(np.abs(nearest - times) <= limit, nearest, times)
    return snapped, np.abs((snapped - times) - remainder)


def _delayed_samples(signal: SampledSignal, axis: TimeAxis, delays: Times, offsets: Values) -> DelayedInput:
    """Return delayed samples on one grid that contains the knots of all inputs and the output times."""
    u = signal.u - offsets
    magnitude = np.abs(u).max(axis=-2, initial=0.0)
    error = np.where(offsets != 0.0, 0.5 * EPS, 0.0) * magnitude
    jump_error = np.zeros_like(error)
    if not delays.any():
        return DelayedInput(SampledSignal(signal.axis, u, hold=signal.hold), error, jump_error)
    first, last, linear = axis.t[0], axis.t[-1], signal.hold == "linear"
    targets = np.unique(np.concatenate([axis.t, signal.t]))
    groups = []
    for delay in np.unique(delays).tolist():
        columns = np.flatnonzero(delays == delay)
        times, remainder = two_sum(signal.t, np.array([delay]))
        times, displacement = (
            snap_to_targets(times, remainder, targets) if delay else (signal.t, np.zeros(len(signal.t)))
        )
        u_group = u[..., columns]
        groups.append((columns, times, u_group, delay > 0.0))
        # The error of lines is their slope times the displacement of their ends; that of jumps lasts for the displacement.
        increments, widths = np.abs(np.diff(u_group, axis=-2)), np.diff(signal.t)
        is_jump = (widths == 0.0) if linear else np.ones(len(widths), dtype=bool)
        jumps = np.concatenate(
            [np.abs(u_group[..., :1, :]) if delay else 0.0 * u_group[..., :1, :], increments * is_jump[:, None]], -2
        )
        jump_error[..., columns] = (jumps * displacement[:, None]).sum(axis=-2)
        if linear and len(widths):
            slopes = increments / np.where(is_jump, np.inf, widths)[:, None]
            displacements = np.maximum(displacement[1:], displacement[:-1])[:, None]
            error[..., columns] += (slopes * displacements).max(axis=-2) + 4.0 * EPS * magnitude[..., columns]
    knots = np.concatenate([times for _, times, _, is_delayed in groups] + [axis.t])
    grid = np.unique(knots[(knots >= first) & (knots <= last)])
    before, after = (np.zeros((*u.shape[:-2], len(grid), u.shape[-1])) for _ in range(2))
    for columns, times, u_group, is_delayed in groups:
        part = SampledSignal(TimeAxis(times), u_group, hold=signal.hold)
        after[..., columns], before[..., columns] = part.value(grid), part.value_before(grid)
        if is_delayed:
            after[..., : np.searchsorted(grid, times[0]), columns] = 0.0
            before[..., : np.searchsorted(grid, times[0], side="right"), columns] = 0.0
    axes = (*range(after.ndim - 2), after.ndim - 1)
    jumps_at = np.any(before != after, axis=axes)
    if not linear:  # steps need a second sample only where outputs before and after the jump are requested
        jumps_at &= np.isin(grid, axis.t[1:][axis.t[1:] == axis.t[:-1]])
    jump_indices = np.flatnonzero(jumps_at[1:]) + 1
    times = np.insert(grid, jump_indices, grid[jump_indices])
    values = np.insert(after, jump_indices, before[..., jump_indices, :], axis=-2)
    times.setflags(write=False)
    result_axis = axis if np.array_equal(times, axis.t) else TimeAxis(times)
    return DelayedInput(SampledSignal(result_axis, values, hold=signal.hold), error, jump_error)


class _Channels(NamedTuple):
    """Inputs with equal delay: their columns, first time, and knots before and after the delay."""

    columns: NDArray[np.intp]
    delay: float
    start: float
    sources: Times
    knots: Times
    displacements: Times


@final
@dataclass(frozen=True, eq=False, repr=False)
class DelayedSignal(SingleSignal):
    """Delayed function, polynomial or user-defined signal, relative to an operating point."""

    base: Signal
    channels: tuple[_Channels, ...]
    offsets: Values
    weights: Values | None = None

    @classmethod
    def of(cls, base: Signal, axis: TimeAxis, *, delays: Times, offsets: Values) -> "DelayedSignal":
        """Return the signal for a run over the times of `axis`."""
        known_from = float(base.start) if np.isfinite(base.start) else float(axis.t[0])
        targets = np.unique(np.concatenate([axis.t, base.knots]))
        inner = base.knots[base.knots > known_from]
        channels = []
        for delay in np.unique(delays).tolist():
            columns = np.flatnonzero(delays == delay)
            sources = np.concatenate([[known_from], inner]) if delay else base.knots
            knots, displacements = sources, np.zeros(len(sources))
            if delay:
                times, remainder = two_sum(sources, np.array([delay]))
                knots, displacements = snap_to_targets(times, remainder, targets)
            start = float(knots[0]) if delay else -np.inf
            channels.append(_Channels(columns, delay, start, sources, knots, displacements))
        return cls(base, tuple(channels), offsets)

    def errors(self, t: Times) -> tuple[Values, Values]:
        """Return `error` and `jump_error` of `DelayedInput`.

        The magnitude of a function is evaluated at a limited number of times.
        """
        error, jump_error = np.zeros(len(self.offsets)), np.zeros(len(self.offsets))
        sample_times = t[:: max(1, len(t) // _N_MAGNITUDE_SAMPLES)]
        magnitudes = np.abs(self._unweighted(sample_times, before=False)).max(axis=0, initial=0.0)
        error += np.where(self.offsets != 0.0, 2.0 * EPS, 0.0) * magnitudes
        for channel in self.channels:
            inside = (channel.knots >= t[0]) & (channel.knots <= t[-1]) & (channel.displacements > 0.0)
            if inside.any():
                at = channel.knots[inside]
                jumps = self._unweighted(at, before=False) - self._unweighted(at, before=True)
                jump_error[channel.columns] = (np.abs(jumps) * channel.displacements[inside, None]).sum(axis=0)[
                    channel.columns
                ]
        return error, jump_error

    @property
    def n_inputs(self) -> int:
        """Number of channels."""
        return len(self.offsets) if self.weights is None else len(self.weights)

    @property
    def start(self) -> float:
        """First time, −∞: the signal is zero before the delay has passed."""
        return -np.inf

    @property
    def stop(self) -> float:
        """Last time at which the undelayed signal is defined."""
        return float(self.base.stop)

    @cached_property
    def knots(self) -> Times:
        """Knots of all inputs."""
        return np.unique(np.concatenate([channel.knots for channel in self.channels]))

    @property
    def degree(self) -> int | None:
        """Degree of the undelayed signal."""
        return self.base.degree

    def value(self, t: Times) -> Values:
        """Return v(t), the value after a jump."""
        return self._weighted(self._unweighted(t, before=False))

    def value_before(self, t: Times) -> Values:
        """Return v(t⁻), the value before a jump."""
        return self._weighted(self._unweighted(t, before=True))

    def derivative(self, t: Times) -> Values:
        """Return v̇(t), the value after a knot."""
        values = np.zeros((len(t), len(self.offsets)))
        for channel in self.channels:
            is_started = t >= channel.start
            if is_started.any():
                values[np.ix_(is_started, channel.columns)] = self.base.derivative(
                    self._source(t[is_started], channel)
                )[:, channel.columns]
        return self._weighted(values)

    def sampled_over(self, t: Times, *, tolerance: float) -> SampledApproximation:
        """Return samples whose linear interpolant is within tolerance · max |v|; exact for piecewise linear signals."""
        samples, per_interval = sample_function(self, t, tolerance=tolerance)
        is_line = self.degree is not None and self.degree <= 1
        return SampledApproximation(
            samples, per_interval, 0.0 if is_line else tolerance * float(np.abs(samples.u).max(initial=0.0))
        )

    def through(self, weights: Values) -> "DelayedSignal":
        """Return the signal weights · v."""
        return replace(self, weights=weights if self.weights is None else weights @ self.weights)

    def _weighted(self, values: Values) -> Values:
        """Return weights · values."""
        return values if self.weights is None else np.asarray(values @ self.weights.T)

    def _unweighted(self, t: Times, *, before: bool) -> Values:
        """Return the values of all inputs, before or after a jump."""
        values = np.zeros((len(t), len(self.offsets)))
        read = self.base.value_before if before else self.base.value
        for channel in self.channels:
            is_started = (t > channel.start) if before else (t >= channel.start)
            if is_started.any():
                values_at_source = read(self._source(t[is_started], channel))[:, channel.columns]
                values[np.ix_(is_started, channel.columns)] = values_at_source - self.offsets[channel.columns]
        return values

    def _source(self, t: Times, channel: _Channels) -> Times:
        """Return t − τ, limited to the knots that enclose t, so that rounding does not move it across a jump."""
        if not channel.delay:
            return t
        piece = np.searchsorted(channel.knots, t, side="right") - 1  # ≥ 0: t is not before the start
        upper = np.append(channel.sources[1:], np.inf)[piece]
        lower = np.where(t > channel.knots[piece], np.nextafter(channel.sources[piece], np.inf), channel.sources[piece])
        source = np.maximum(np.minimum(t - channel.delay, np.nextafter(upper, -np.inf)), lower)
        source = np.where(t == channel.knots[piece], channel.sources[piece], source)
        return np.minimum(source, self.base.stop)

    def __repr__(self) -> str:
        return f"DelayedSignal({self.base!r})"
