"""Several inputs of any kinds as one batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from ltinet.errors import InvalidSignalError
from ltinet.once import cached_property
from ltinet.shown import count_of
from ltinet.signals.arrays import Times, Values
from ltinet.signals.sampled import Lines, SampledSignal
from ltinet.signals.signal import Signal


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

    def sampled_over(self, t: Times, *, tolerance: float) -> Lines:
        """Samples of all on one grid, joined by straight lines, with a time given twice where one of them jumps."""
        lines = [own.sampled_over(t, tolerance=tolerance) for own in self.signals]
        within = [own.samples.t[(own.samples.t >= t[0]) & (own.samples.t <= t[-1])] for own in lines]
        times = np.unique(np.concatenate(within))
        before = np.stack([own.samples.value_before(times) for own in lines])
        after = np.stack([own.samples.value(times) for own in lines])
        jumps = np.flatnonzero(np.any(before != after, axis=(0, 2)))
        jumps = jumps[jumps > 0]  # at the first time there is nothing before
        grid, u = np.insert(times, jumps, times[jumps]), np.insert(after, jumps, before[:, jumps], axis=1)
        return Lines(SampledSignal(grid, u), max(own.per_interval for own in lines), max(own.off for own in lines))

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
        return f"SignalBatch({count_of(len(self.signals), 'signal')} of {count_of(self.n_inputs, 'input')})"
