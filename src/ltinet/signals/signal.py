"""Interface of all input signals, batches of signals, and their points for plotting.

A new kind of signal is a class with the members of `Signal`; `simulate` accepts it as it is. An object of another
library is recognized by an entry in `signals.conversion.CONVERTERS`.
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

# Protocols of signals


class PiecewiseSmooth(Protocol):
    """Function of time that is smooth between knots and right-continuous at them."""

    @property
    def n_inputs(self) -> int:
        """Number of channels."""

    @property
    def knots(self) -> Times:
        """Times at which the function is not smooth, ascending."""

    def value(self, t: Times) -> Values:
        """Return u(t), the value after a jump.

        Parameters
        ----------
        t : ndarray
            Times, `(T,)`.

        Returns
        -------
        ndarray
            Values, `(..., T, n_inputs)`.
        """

    def value_before(self, t: Times) -> Values:
        """Return u(t⁻), the value before a jump.

        Parameters
        ----------
        t : ndarray
            Times, `(T,)`.

        Returns
        -------
        ndarray
            Values, `(..., T, n_inputs)`.
        """


@runtime_checkable
class Signal(PiecewiseSmooth, Protocol):
    """Protocol of an input signal, or of a batch of signals.

    `simulate` accepts any object with these members.
    """

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the batch, () for a single signal."""

    @property
    def start(self) -> float:
        """First time at which the signal is defined."""

    @property
    def stop(self) -> float:
        """Last time at which the signal is defined."""

    @property
    def degree(self) -> int | None:
        """Degree of the polynomials between knots, None if the signal is not piecewise polynomial."""

    def derivative(self, t: Times) -> Values:
        """Return u̇(t), the value after a knot.

        Parameters
        ----------
        t : ndarray
            Times, `(T,)`.

        Returns
        -------
        ndarray
            Values, `(..., T, n_inputs)`.
        """

    def sampled_over(self, t: Times, *, tolerance: float) -> SampledApproximation:
        """Return samples whose linear interpolant is within tolerance · max |u| of the signal.

        Parameters
        ----------
        t : ndarray
            Output times; samples are computed from the first to the last.
        tolerance : float
            Largest error for each channel, relative to its largest value.

        Returns
        -------
        SampledApproximation
            The samples, their number per interval of `t`, and a bound on the error.
        """

    def unbatched(self) -> Sequence["Signal"]:
        """Return the signals of a batch; a single signal returns itself.

        Returns
        -------
        sequence of Signal
            The signals.
        """

    def through(self, weights: Values) -> "Signal":
        """Return the signal weights · u.

        Parameters
        ----------
        weights : ndarray
            Matrix `(k, n_inputs)`.

        Returns
        -------
        Signal
            Signal with k channels.
        """

    def counted_from(self, origin: float) -> "Signal | None":
        """Return the signal with times relative to an origin, if that changes neither times nor values by rounding.

        Parameters
        ----------
        origin : float
            New zero of the time axis.

        Returns
        -------
        Signal or None
            The signal, None where rounding would change it.
        """


# Batches


@final
@dataclass(frozen=True, init=False, eq=False, repr=False)
class SignalBatch:
    """Batch of signals of any kinds: functions, polynomials and samples at times of their signal.

    Parameters
    ----------
    signals : sequence of Signal
        Single signals with equal numbers of inputs.
    """

    signals: tuple[Signal, ...]

    def __init__(self, signals: Sequence[Signal]) -> None:
        members = tuple(signals) if isinstance(signals, list | tuple) else (signals,)
        wrong = [type(one).__name__ for one in members if not isinstance(one, Signal) or one.batch_shape]
        if not members or wrong or len({one.n_inputs for one in members}) > 1:
            raise InvalidSignalError(
                f"a batch requires at least one single signal, all with equal numbers of inputs; got {len(members)} with "
                f"{[getattr(one, 'n_inputs', None) for one in members]} inputs"
                + (f", of which {wrong} are not single signals such as SampledSignal(t, u)" if wrong else "")
            )
        object.__setattr__(self, "signals", members)

    @property
    def n_inputs(self) -> int:
        """Number of input channels."""
        return self.signals[0].n_inputs

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the batch, one axis with the number of signals."""
        return (len(self.signals),)

    @property
    def start(self) -> float:
        """First time at which all signals are defined."""
        return max(signal.start for signal in self.signals)

    @property
    def stop(self) -> float:
        """Last time at which all signals are defined."""
        return min(signal.stop for signal in self.signals)

    @cached_property
    def knots(self) -> Times:
        """Knots of all signals."""
        return np.unique(np.concatenate([signal.knots for signal in self.signals]))

    @property
    def degree(self) -> int | None:
        """Largest degree, None if a signal is not piecewise polynomial."""
        degrees = [signal.degree for signal in self.signals if signal.degree is not None]
        return max(degrees) if len(degrees) == len(self.signals) else None

    def value(self, t: Times) -> Values:
        """Return u(t), the value after a jump.

        Parameters
        ----------
        t : ndarray
            Times, `(T,)`.

        Returns
        -------
        ndarray
            Values, `(..., T, n_inputs)`.
        """
        return np.stack([signal.value(t) for signal in self.signals])

    def value_before(self, t: Times) -> Values:
        """Return u(t⁻), the value before a jump.

        Parameters
        ----------
        t : ndarray
            Times, `(T,)`.

        Returns
        -------
        ndarray
            Values, `(..., T, n_inputs)`.
        """
        return np.stack([signal.value_before(t) for signal in self.signals])

    def derivative(self, t: Times) -> Values:
        """Return u̇(t), the value after a knot.

        Parameters
        ----------
        t : ndarray
            Times, `(T,)`.

        Returns
        -------
        ndarray
            Values, `(..., T, n_inputs)`.
        """
        return np.stack([signal.derivative(t) for signal in self.signals])

    def sampled_over(self, t: Times, *, tolerance: float) -> SampledApproximation:
        """Return samples of all signals on one grid, with linear interpolation and repeated times at jumps.

        Parameters
        ----------
        t : ndarray
            Output times; samples are computed from the first to the last.
        tolerance : float
            Largest error for each channel, relative to its largest value.

        Returns
        -------
        SampledApproximation
            The samples, their number per interval of `t`, and a bound on the error.
        """
        approximations = [signal.sampled_over(t, tolerance=tolerance) for signal in self.signals]
        samples = [approximation.samples for approximation in approximations]
        times = np.unique(np.concatenate([one.t[(one.t >= t[0]) & (one.t <= t[-1])] for one in samples]))
        before = np.stack([one.value_before(times) for one in samples])
        after = np.stack([one.value(times) for one in samples])
        jumps = np.flatnonzero(np.any(before != after, axis=(0, 2)))
        jumps = jumps[jumps > 0]  # no jump at the first time
        grid, u = np.insert(times, jumps, times[jumps]), np.insert(after, jumps, before[:, jumps], axis=1)
        per_interval = max(approximation.samples_per_interval for approximation in approximations)
        error = max(approximation.error for approximation in approximations)
        return SampledApproximation(SampledSignal(grid, u), per_interval, error)

    def unbatched(self) -> Sequence[Signal]:
        """Return the signals.

        Returns
        -------
        sequence of Signal
            The signals of the batch.
        """
        return self.signals

    def through(self, weights: Values) -> "SignalBatch":
        """Return the signal weights · u.

        Parameters
        ----------
        weights : ndarray
            Matrix `(k, n_inputs)`.

        Returns
        -------
        SignalBatch
            Signal with k channels.
        """
        return SignalBatch([signal.through(weights) for signal in self.signals])

    def counted_from(self, origin: float) -> "SignalBatch | None":
        """Return the signal with times relative to an origin, if that changes neither times nor values by rounding.

        Parameters
        ----------
        origin : float
            New zero of the time axis.

        Returns
        -------
        SignalBatch or None
            The signal, None where rounding would change it.
        """
        shifted = [shift for signal in self.signals if (shift := signal.counted_from(origin)) is not None]
        return SignalBatch(shifted) if len(shifted) == len(self.signals) else None

    def __repr__(self) -> str:
        return f"SignalBatch({format_count(len(self.signals), 'signal')} of {format_count(self.n_inputs, 'input')})"


# Plotting


def polyline_points(signal: PiecewiseSmooth, t: Array) -> tuple[Array, Array]:
    """Return each time twice, with the values before and after it.

    Plots of these points show held values as steps and jumps as vertical lines.
    """
    first, last = t[0], t[-1]
    knots = signal.knots
    times = np.union1d(t, knots[(knots > first) & (knots < last)])
    values = np.stack([signal.value_before(times), signal.value(times)], axis=-2)
    values[..., 0, 0, :] = values[..., 0, 1, :]  # values before the start are not part of the run
    return np.repeat(times, 2), values.reshape(*values.shape[:-3], 2 * len(times), values.shape[-1])
