"""Delayed input signals relative to an operating point: v_j(t) = u_j(t − τ_j) − u0_j.

Nothing is resampled: samples move to t_k + τ_j, lines stay lines, and a function is evaluated at t − τ_j. Before the
signal is known v_j is zero: samples are known from their first one on, a function from the first time of the run on.
If v_j is not zero there, it jumps.

A moved knot that rounding separates from an output time, or from a knot of another input, is snapped to it, so that a
delay of whole samples maps samples to samples. The displacement of knots is reported and enters the error bounds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, two_sum
from ltinet.errors import InvalidSignalError
from ltinet.signals.adaptive_sampling import sample_function
from ltinet.signals.arrays import Times, Values
from ltinet.signals.sampled import SampledApproximation, SampledSignal
from ltinet.signals.signal import Signal, SignalBatch
from ltinet.signals.times import TimeAxis

# MERGED ltinet.signals.delayed
# Inputs that act late and are counted from an operating point: v_j(t) = u_j(t − τ_j) − u0_j.
#
# Nothing is resampled. The knots of a signal move with it: samples stay samples at t_k + τ_j, lines stay lines, and a
# function is asked for its value at t − τ_j. Before the signal is known, v_j is zero: samples are known from their first
# one on, a function from the first time of the run on. Where v_j is not zero there, it jumps.
#
# A moved knot that rounding puts beside an output time, or beside a knot of another input, is taken to be at that time:
# a delay of whole samples makes samples meet samples. By how far knots were moved is reported, and bounds count it.

_SNAP_ROUNDING = 8.0  # units of eps max |t|: as for times that are even, t₀ + k h plus a delay, each rounded
_SNAP_SHARE = 1e-6  # of the shortest step: times that stand closer than rounding are still told apart
_N_MAGNITUDE_SAMPLES = 200  # times at which the size of a function is looked at


class DelayedInput(NamedTuple):
    """A moved signal, and how far it may be from the exact one for each input, `(..., m)`."""

    signal: Signal
    off: Values
    """Largest distance at times that are not beside a jump."""
    moved: Values
    """Σ |jump|·|displacement of its time|: the integral of the distance beside jumps."""


def delayed_input(signal: Signal, axis: TimeAxis, *, delays: Times, offsets: Values) -> DelayedInput:
    """Return v_j(t) = u_j(t − τ_j) − u0_j for a run over the times of `axis`; cost O(T m) for samples.

    Raises
    ------
    InvalidSignalError
        The signal is of a user's own kind with several axes of batches.
    """
    if isinstance(signal, SampledSignal):
        return _delayed_samples(signal, axis, delays, offsets)
    if signal.batch_shape:
        if len(signal.batch_shape) > 1:
            raise InvalidSignalError("a batch of inputs with delays has one axis; give SignalBatch([…])")
        parts = [delayed_input(own, axis, delays=delays, offsets=offsets) for own in signal.unbatched()]
        return DelayedInput(
            SignalBatch([own.signal for own in parts]),
            np.stack([own.off for own in parts]),
            np.stack([own.moved for own in parts]),
        )
    moved = DelayedSignal.of(signal, axis, delays=delays, offsets=offsets)
    return DelayedInput(moved, *moved.distances(axis.t))


def snap_to_targets(times: Times, lost: Times, targets: Times) -> tuple[Times, Times]:
    """Return times moved onto targets that rounding separates them from, and by how far each is from its exact place.

    `times + lost` are the exact places, `targets` ascend strictly.
    """
    if not len(targets) or not len(times):
        return times, np.abs(lost)
    largest = max(abs(float(targets[0])), abs(float(targets[-1])), float(np.abs(times).max()))
    steps = np.diff(targets)
    limit = min(_SNAP_ROUNDING * EPS * largest, _SNAP_SHARE * float(steps.min(initial=np.inf)))
    after = np.clip(np.searchsorted(targets, times), 0, len(targets) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(
        np.abs(targets[after] - times) <= np.abs(times - targets[before]), targets[after], targets[before]
    )
    snapped = np.where(np.abs(nearest - times) <= limit, nearest, times)
    return snapped, np.abs((snapped - times) - lost)


def _delayed_samples(signal: SampledSignal, axis: TimeAxis, delays: Times, offsets: Values) -> DelayedInput:
    u = signal.u - offsets
    size = np.abs(u).max(axis=-2, initial=0.0)
    off = np.where(offsets != 0.0, 0.5 * EPS, 0.0) * size
    moved = np.zeros_like(off)
    if not delays.any():
        return DelayedInput(SampledSignal(signal.axis, u, hold=signal.hold), off, moved)
    first, last, linear = axis.t[0], axis.t[-1], signal.hold == "linear"
    targets = np.unique(np.concatenate([axis.t, signal.t]))
    groups = []
    for delay in np.unique(delays).tolist():
        columns = np.flatnonzero(delays == delay)
        times, lost = two_sum(signal.t, np.array([delay]))
        times, by = snap_to_targets(times, lost, targets) if delay else (signal.t, np.zeros(len(signal.t)))
        own = u[..., columns]
        groups.append((columns, times, own, delay > 0.0))
        # Lines are off by their slope times the displacement of their ends, jumps for as long as they are displaced.
        rises, widths = np.abs(np.diff(own, axis=-2)), np.diff(signal.t)
        at_once = (widths == 0.0) if linear else np.ones(len(widths), dtype=bool)
        jumps = np.concatenate(
            [np.abs(own[..., :1, :]) if delay else 0.0 * own[..., :1, :], rises * at_once[:, None]], -2
        )
        moved[..., columns] = (jumps * by[:, None]).sum(axis=-2)
        if linear and len(widths):
            slopes = rises / np.where(at_once, np.inf, widths)[:, None]
            ends = np.maximum(by[1:], by[:-1])[:, None]
            off[..., columns] += (slopes * ends).max(axis=-2) + 4.0 * EPS * size[..., columns]
    knots = np.concatenate([times for _, times, _, is_late in groups] + [axis.t])
    grid = np.unique(knots[(knots >= first) & (knots <= last)])
    before, after = (np.zeros((*u.shape[:-2], len(grid), u.shape[-1])) for _ in range(2))
    for columns, times, own, is_late in groups:
        part = SampledSignal(TimeAxis(times), own, hold=signal.hold)
        after[..., columns], before[..., columns] = part.value(grid), part.value_before(grid)
        if is_late:
            after[..., : np.searchsorted(grid, times[0]), columns] = 0.0
            before[..., : np.searchsorted(grid, times[0], side="right"), columns] = 0.0
    axes = (*range(after.ndim - 2), after.ndim - 1)
    jumps_at = np.any(before != after, axis=axes)
    if not linear:  # steps need no second sample, unless outputs before and after the jump are both asked for
        jumps_at &= np.isin(grid, axis.t[1:][axis.t[1:] == axis.t[:-1]])
    places = np.flatnonzero(jumps_at[1:]) + 1
    times = np.insert(grid, places, grid[places])
    values = np.insert(after, places, before[..., places, :], axis=-2)
    own_axis = axis if np.array_equal(times, axis.t) else TimeAxis(_read_only(times))
    return DelayedInput(SampledSignal(own_axis, values, hold=signal.hold), off, moved)


def _read_only(times: Times) -> Times:
    times.setflags(write=False)
    return times


class _Channels(NamedTuple):
    """Inputs of one delay: which they are, when they begin, and their knots before and after they were moved."""

    columns: NDArray[np.intp]
    delay: float
    start: float
    sources: Times
    knots: Times
    moved_by: Times


@final
@dataclass(frozen=True, eq=False, repr=False)
class DelayedSignal:
    """A function, a polynomial or a signal of a user's own kind, delayed and counted from an operating point."""

    base: Signal
    channels: tuple[_Channels, ...]
    known_from: float
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
            knots, by = sources, np.zeros(len(sources))
            if delay:
                times, lost = two_sum(sources, np.array([delay]))
                knots, by = snap_to_targets(times, lost, targets)
            start = float(knots[0]) if delay else -np.inf
            channels.append(_Channels(columns, delay, start, sources, knots, by))
        return cls(base, tuple(channels), known_from, offsets)

    def distances(self, t: Times) -> tuple[Values, Values]:
        """Return `off` and `moved` of `DelayedInput`; the size of a function is looked at in some places."""
        off, moved = np.zeros(len(self.offsets)), np.zeros(len(self.offsets))
        looks = t[:: max(1, len(t) // _N_MAGNITUDE_SAMPLES)]
        sizes = np.abs(self._unweighted(looks, before=False)).max(axis=0, initial=0.0)
        off += np.where(self.offsets != 0.0, 2.0 * EPS, 0.0) * sizes
        for own in self.channels:
            inside = (own.knots >= t[0]) & (own.knots <= t[-1]) & (own.moved_by > 0.0)
            if inside.any():
                at = own.knots[inside]
                jumps = self._unweighted(at, before=False) - self._unweighted(at, before=True)
                moved[own.columns] = (np.abs(jumps) * own.moved_by[inside, None]).sum(axis=0)[own.columns]
        return off, moved

    @property
    def n_inputs(self) -> int:
        """Number of channels."""
        return len(self.offsets) if self.weights is None else len(self.weights)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """A single signal."""
        return ()

    @property
    def start(self) -> float:
        """Zero before it begins, and so known at any time."""
        return -np.inf

    @property
    def stop(self) -> float:
        """The last time at which the signal itself is known."""
        return float(self.base.stop)

    @cached_property
    def knots(self) -> Times:
        """Those of all inputs."""
        return np.unique(np.concatenate([own.knots for own in self.channels]))

    @property
    def degree(self) -> int | None:
        """As before."""
        return self.base.degree

    def value(self, t: Times) -> Values:
        """Return v(t), the value after a jump."""
        return self._weighted(self._unweighted(t, before=False))

    def value_before(self, t: Times) -> Values:
        """Return v(t⁻), the value before a jump."""
        return self._weighted(self._unweighted(t, before=True))

    def derivative(self, t: Times) -> Values:
        """Return v̇(t), after a knot."""
        values = np.zeros((len(t), len(self.offsets)))
        for own in self.channels:
            now = t >= own.start
            if now.any():
                values[np.ix_(now, own.columns)] = self.base.derivative(self._source(t[now], own))[:, own.columns]
        return self._weighted(values)

    def sampled_over(self, t: Times, *, tolerance: float) -> SampledApproximation:
        """Samples so dense that lines between them are within tolerance · max |v| of it; exact for straight lines."""
        samples, per_interval = sample_function(self, t, tolerance=tolerance)
        is_line = self.degree is not None and self.degree <= 1
        return SampledApproximation(
            samples, per_interval, 0.0 if is_line else tolerance * float(np.abs(samples.u).max(initial=0.0))
        )

    def unbatched(self) -> Sequence["DelayedSignal"]:
        """A single signal."""
        return [self]

    def through(self, weights: Values) -> "DelayedSignal":
        """Return weights · v."""
        return replace(self, weights=weights if self.weights is None else weights @ self.weights)

    def counted_from(self, origin: float) -> None:  # noqa: ARG002
        """Return None: knots and functions are kept at the times that they were given at."""
        return

    def _weighted(self, values: Values) -> Values:
        return values if self.weights is None else np.asarray(values @ self.weights.T)

    def _unweighted(self, t: Times, *, before: bool) -> Values:
        values = np.zeros((len(t), len(self.offsets)))
        read = self.base.value_before if before else self.base.value
        for own in self.channels:
            now = (t > own.start) if before else (t >= own.start)
            if now.any():
                read_there = read(self._source(t[now], own))[:, own.columns]
                values[np.ix_(now, own.columns)] = read_there - self.offsets[own.columns]
        return values

    def _source(self, t: Times, own: _Channels) -> Times:
        """Return t − τ, kept between the knots that t lies between, so that rounding does not carry it over a jump."""
        if not own.delay:
            return t
        place = np.searchsorted(own.knots, t, side="right") - 1  # ≥ 0: t is not before the start
        upper = np.append(own.sources[1:], np.inf)[place]
        low = np.where(t > own.knots[place], np.nextafter(own.sources[place], np.inf), own.sources[place])
        source = np.maximum(np.minimum(t - own.delay, np.nextafter(upper, -np.inf)), low)
        source = np.where(t == own.knots[place], own.sources[place], source)
        return np.minimum(source, self.base.stop)

    def __repr__(self) -> str:
        return f"DelayedSignal({self.base!r})"
