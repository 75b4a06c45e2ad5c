"""Interface of all input signals, batches of signals, and their points for plotting.

A new kind of signal is a class with the members of `Signal`; `simulate` accepts it as it is. An object of another
library is recognised by an entry in `signals.conversion.CONVERTERS`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, final, runtime_checkable

import numpy as np

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import Array
from ltinet._util.text import format_count
from ltinet.errors import InvalidSignalError
from ltinet.signals.arrays import Times, Values
from ltinet.signals.sampled import SampledApproximation, SampledSignal

# MERGED ltinet.signals.signal
# What every kind of input can do, so that whoever runs one need not know which kind it is.
#
# A new kind is a class with these names, in a file of this room; `simulate` takes it as it is. One that users give as
# another library's object, to be recognised, gets a line in `as_signal.KINDS`.


class PiecewiseSmooth(Protocol):
    """Values of an input: smooth between knots, right-continuous at them."""

    @property
    def n_inputs(self) -> int:
        """Number of channels."""
        ...

    @property
    def knots(self) -> Times:
        """All times at which it is not smooth, ascending."""
        ...

    def value(self, t: Times) -> Values:
        """u(t), `(..., len(t), n_inputs)`, the value after a jump."""
        ...

    def value_before(self, t: Times) -> Values:
        """u(t⁻), the value before a jump."""
        ...


@runtime_checkable
class Signal(PiecewiseSmooth, Protocol):
    """An input, or a batch of them."""

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the batch, () for a single signal."""
        ...

    @property
    def start(self) -> float:
        """The first time at which it is known."""
        ...

    @property
    def stop(self) -> float:
        """The last."""
        ...

    @property
    def degree(self) -> int | None:
        """Its degree if it is a polynomial between knots, None if it is not."""
        ...

    def derivative(self, t: Times) -> Values:
        """u̇(t), after a knot."""
        ...

    def sampled_over(self, t: Times, *, tolerance: float) -> SampledApproximation:
        """Samples from t[0] to t[-1] within `tolerance` of it, for each channel relative to its largest value."""
        ...

    def unbatched(self) -> Sequence["Signal"]:
        """The signals of a batch, one by one; itself if it is a single one."""
        ...

    def through(self, weights: Values) -> "Signal":
        """Weights · u, a signal of as many channels as the weights have rows."""
        ...

    def counted_from(self, origin: float) -> "Signal | None":
        """The same with times counted from an origin, None where that would take digits from them or change it."""
        ...


# MERGED ltinet.signals.signal
# Several inputs of any kinds as one batch.


@final
@dataclass(frozen=True, init=False, eq=False, repr=False)
class SignalBatch:
    """Signals that run side by side: functions, polynomials and samples at their own times in one batch."""

    signals: tuple[Signal, ...]

    def __init__(self, signals: Sequence[Signal]) -> None:
        own = tuple(signals) if isinstance(signals, list | tuple) else (signals,)
        wrong = [type(one).__name__ for one in own if not isinstance(one, Signal) or one.batch_shape]
        if not own or wrong or len({one.n_inputs for one in own}) > 1:
            raise InvalidSignalError(
                f"a batch is made of single signals with equal numbers of inputs, at least one; got {len(own)} of "
                f"{[getattr(one, 'n_inputs', None) for one in own]} inputs"
                + (f", of which {wrong} are no single signals: SampledSignal(t, u) is one" if wrong else "")
            )
        object.__setattr__(self, "signals", own)

    @property
    def n_inputs(self) -> int:
        """Number of input channels."""
        return self.signals[0].n_inputs

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """How many signals there are."""
        return (len(self.signals),)

    @property
    def start(self) -> float:
        """The first time at which all are known."""
        return max(own.start for own in self.signals)

    @property
    def stop(self) -> float:
        """The last."""
        return min(own.stop for own in self.signals)

    @cached_property
    def knots(self) -> Times:
        """Those of all."""
        return np.unique(np.concatenate([own.knots for own in self.signals]))

    @property
    def degree(self) -> int | None:
        """The largest, None if one is no polynomial."""
        degrees = [own.degree for own in self.signals]
        return None if None in degrees else max(own for own in degrees if own is not None)

    def value(self, t: Times) -> Values:
        """u(t), the value after a jump."""
        return np.stack([own.value(t) for own in self.signals])

    def value_before(self, t: Times) -> Values:
        """u(t⁻), the value before a jump."""
        return np.stack([own.value_before(t) for own in self.signals])

    def derivative(self, t: Times) -> Values:
        """u̇(t), after a knot."""
        return np.stack([own.derivative(t) for own in self.signals])

    def sampled_over(self, t: Times, *, tolerance: float) -> SampledApproximation:
        """Samples of all on one grid, joined by straight lines, with a time given twice where one of them jumps."""
        lines = [own.sampled_over(t, tolerance=tolerance) for own in self.signals]
        within = [own.samples.t[(own.samples.t >= t[0]) & (own.samples.t <= t[-1])] for own in lines]
        times = np.unique(np.concatenate(within))
        before = np.stack([own.samples.value_before(times) for own in lines])
        after = np.stack([own.samples.value(times) for own in lines])
        jumps = np.flatnonzero(np.any(before != after, axis=(0, 2)))
        jumps = jumps[jumps > 0]  # at the first time there is nothing before
        grid, u = np.insert(times, jumps, times[jumps]), np.insert(after, jumps, before[:, jumps], axis=1)
        return SampledApproximation(
            SampledSignal(grid, u), max(own.per_interval for own in lines), max(own.off for own in lines)
        )

    def unbatched(self) -> Sequence[Signal]:
        """The signals."""
        return self.signals

    def through(self, weights: Values) -> "SignalBatch":
        """Weights · u."""
        return SignalBatch([own.through(weights) for own in self.signals])

    def counted_from(self, origin: float) -> "SignalBatch | None":
        """The same with times counted from an origin, if all can be."""
        moved = [own.counted_from(origin) for own in self.signals]
        return None if any(own is None for own in moved) else SignalBatch([own for own in moved if own is not None])

    def __repr__(self) -> str:
        return f"SignalBatch({format_count(len(self.signals), 'signal')} of {format_count(self.n_inputs, 'input')})"


# MERGED ltinet.signals.signal
# An input as the points that a picture joins by straight lines.


def polyline_points(signal: PiecewiseSmooth, t: Array) -> tuple[Array, Array]:
    """Each time twice, with the values before and after it, so that holds look like steps and jumps stand upright."""
    first, last = t[0], t[-1]
    knots = signal.knots
    times = np.union1d(t, knots[(knots > first) & (knots < last)])
    values = np.stack([signal.value_before(times), signal.value(times)], axis=-2)
    values[..., 0, 0, :] = values[..., 0, 1, :]  # what was before the start has no part in the run
    return np.repeat(times, 2), values.reshape(*values.shape[:-3], 2 * len(times), values.shape[-1])
