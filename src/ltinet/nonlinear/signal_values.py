"""Inputs and scheduling signals of a run, as arrays `(channels, times, members of the batch)`."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ltinet._util.floating_point import EPS, Array
from ltinet.signals.sampled import SampledSignal
from ltinet.signals.signal import Signal
from ltinet.signals.times import GRID_ROUNDING

Values = Callable[[float], Array]
"""Function of one time that returns (v, p)."""


@dataclass(frozen=True, eq=False)
class RunSignals:
    """Inputs v and scheduling signals p of a run; signals that are the same for all members have one of them."""

    inputs: Signal
    scheduling: Signal | None
    batch_shape: tuple[int, ...]

    @property
    def n_members(self) -> int:
        """Number of members of the batch, 1 for a single run."""
        return math.prod(self.batch_shape)

    @property
    def all(self) -> list[Signal]:
        """Signals of the run."""
        return [self.inputs] if self.scheduling is None else [self.inputs, self.scheduling]

    @property
    def is_piecewise_constant(self) -> bool:
        """True if all signals are held between knots."""
        return all(signal.degree == 0 for signal in self.all)

    def knots(self, start: float, stop: float) -> Array:
        """Return both ends and all knots between them."""
        knots = np.concatenate([np.asarray(signal.knots) for signal in self.all])
        return np.unique(np.concatenate([[start, stop], knots[(knots > start) & (knots < stop)]]))

    def after(self, t: Array) -> Array:
        """Return (v, p) at times t, after jumps, `(m + l, T, M or 1)`."""
        return self._join([self._members(signal, signal.value(t)) for signal in self.all])

    def before(self, t: Array) -> Array:
        """Return (v, p) at times t, before jumps."""
        return self._join([self._members(signal, signal.value_before(t)) for signal in self.all])

    def at_jumps(self, t: Array) -> Array:
        """Return (v, p) before jumps at times that are given twice; of samples the first one at this time."""
        return self._join([self._members(signal, _first_values(signal, t)) for signal in self.all])

    def values_between(self, member: int, start: float, stop: float) -> Values:
        """Return (v, p) of one member as a function of one time between neighboring knots; limits from inside at both ends.

        Straight lines are evaluated from the values at both ends, in a few microseconds.
        """

        def at(values: Array) -> Array:
            return np.asarray(values[:, 0, min(member, values.shape[2] - 1)])

        if all(signal.degree is not None and signal.degree <= 1 for signal in self.all):
            first, last = at(self.after(np.array([start]))), at(self.before(np.array([stop])))
            slope = (last - first) / (stop - start)
            return lambda t: first + slope * (t - start)
        before_stop = at(self.before(np.array([stop])))
        signals = self.all

        def value(t: float) -> Array:
            if t >= stop:
                return before_stop
            time = np.array([max(t, start)])
            if any(signal.batch_shape for signal in signals):
                return at(self.after(time))
            return (
                signals[0].value(time)[0] if len(signals) == 1 else np.concatenate([s.value(time)[0] for s in signals])
            )

        return value

    def _members(self, signal: Signal, values: Array) -> Array:
        """Return values `(…, T, k)` as `(k, T, members)`."""
        if signal.batch_shape:
            shape = values.shape[-2:]
            values = np.broadcast_to(values, (*self.batch_shape, *shape)).reshape(-1, *shape)
        else:
            values = values[None]
        return np.ascontiguousarray(values.transpose(2, 1, 0))

    @staticmethod
    def _join(parts: list[Array]) -> Array:
        n_members = max(part.shape[-1] for part in parts)
        return np.concatenate([np.broadcast_to(part, (*part.shape[:-1], n_members)) for part in parts])


def _first_values(signal: Signal, t: Array) -> Array:
    """Return u(t⁻); a sample that is held for no time, since another follows at the same time, counts as well."""
    values = signal.value_before(t)
    if isinstance(signal, SampledSignal):
        index = np.minimum(np.searchsorted(signal.t, t), len(signal.t) - 1)
        is_sample = signal.t[index] == t
        values = np.where(is_sample[:, None], signal.u[..., index, :], values)
    return np.asarray(values)


def common_lengths(times: Array) -> Array:
    """Return the differences of ascending times, with those that differ by the rounding of times replaced by one value."""
    lengths = np.diff(times)
    distinct = np.unique(lengths)
    tolerance = GRID_ROUNDING * EPS * float(np.abs(times).max(initial=0.0))
    group = np.concatenate([[0], np.cumsum(np.diff(distinct) > tolerance)]) if len(distinct) else np.zeros(0, dtype=int)
    values = np.bincount(group, weights=distinct) / np.maximum(np.bincount(group), 1)
    return np.asarray(values[group][np.searchsorted(distinct, lengths)])
