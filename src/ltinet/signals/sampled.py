"""Sampled input signals, joined by straight lines (first-order hold) or held (zero-order hold)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.cache import cached_property
from ltinet._util.display import dir_without
from ltinet._util.text import format_count, sanitize
from ltinet.errors import InvalidSignalError
from ltinet.signals.arrays import Times, Values, all_finite, as_real_array
from ltinet.signals.times import TimeAxis

Hold = Literal["linear", "zero", "foh", "zoh"]
"""Lines or steps between samples; "foh" (first-order hold) and "zoh" (zero-order hold) are synonyms."""
_HOLDS: Mapping[str, Literal["linear", "zero"]] = {"linear": "linear", "zero": "zero", "foh": "linear", "zoh": "zero"}


class SampledApproximation(NamedTuple):
    """Approximation of a signal by samples and their hold, as required by the exact engine."""

    samples: "SampledSignal"
    samples_per_interval: int
    """Number of samples between two output times; 1 for samples that are used as given."""
    error: float
    """Bound on the difference to the signal."""


class SingleSignal:
    """Base class of signals that are no batches and keep their given times."""

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the batch, () for a single signal."""
        return ()

    def unbatched(self) -> list[Self]:
        """Return the signals of a batch; a single signal returns itself.

        Returns
        -------
        list
            The signal.
        """
        return [self]

    def counted_from(self, origin: float) -> Self | None:  # noqa: ARG002
        """Return the signal with times relative to an origin, if that changes neither times nor values by rounding.

        Parameters
        ----------
        origin : float
            New zero of the time axis.

        Returns
        -------
        signal or None
            The signal; None where rounding would change it, and for functions, which keep their given times.
        """
        return None


@final
@dataclass(frozen=True, init=False, eq=False, repr=False)
class SampledSignal:
    """Samples u_k at times t_k, joined by straight lines (`hold="linear"`) or held until the next (`hold="zero"`).

    Parameters
    ----------
    t : array_like
        Ascending times; a time given twice marks a jump from the first of its samples to the second.
    u : array_like
        Values, `(..., T, n_inputs)`; a single input may be given as `(T,)`.
    hold : str
        "linear" or "foh", "zero" or "zoh".
    """

    axis: TimeAxis
    u: Values
    hold: Hold

    def __init__(self, t: ArrayLike | TimeAxis, u: ArrayLike, *, hold: Hold = "linear") -> None:
        axis = t if isinstance(t, TimeAxis) else TimeAxis.of(t)
        values = _as_samples(u, len(axis.t))
        hold = validate_hold(hold)
        values.setflags(write=False)
        object.__setattr__(self, "axis", axis)
        object.__setattr__(self, "u", values)
        object.__setattr__(self, "hold", hold)

    @property
    def t(self) -> Times:
        """Times of the samples."""
        return self.axis.t

    @property
    def n_inputs(self) -> int:
        """Number of input channels."""
        return int(self.u.shape[-1])

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the batch, () for a single signal."""
        return self.u.shape[:-2]

    @property
    def start(self) -> float:
        """Time of the first sample."""
        return float(self.t[0])

    @property
    def stop(self) -> float:
        """Time of the last sample."""
        return float(self.t[-1])

    @cached_property
    def knots(self) -> Times:
        """Distinct sample times."""
        return np.unique(self.t)

    @property
    def step(self) -> float | None:
        """Common step of the times, None if they are not evenly spaced to rounding."""
        return self.axis.step

    @property
    def longest_step(self) -> float:
        """Longest step between two consecutive samples, 0 for a single one."""
        return self.axis.longest_step

    @property
    def degree(self) -> int:
        """Degree between samples: 1 for lines, 0 for steps."""
        return 1 if self.hold == "linear" else 0

    def sampled_over(self, t: Times, *, tolerance: float) -> SampledApproximation:  # noqa: ARG002
        """Return the samples from the first of the times on; one is added there if it is missing.

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
        return SampledApproximation(self._from(float(t[0])), 1, 0.0)

    def unbatched(self) -> list["SampledSignal"]:
        """Return the signals of a batch; a single signal returns itself.

        Returns
        -------
        sequence of SampledSignal
            The signals.
        """
        if not self.batch_shape:
            return [self]
        flat = self.u.reshape(math.prod(self.batch_shape), *self.u.shape[-2:])
        return [SampledSignal(self.axis, u, hold=self.hold) for u in flat]

    def through(self, weights: Values) -> "SampledSignal":
        """Return the signal weights · u.

        Parameters
        ----------
        weights : ndarray
            Matrix `(k, n_inputs)`.

        Returns
        -------
        SampledSignal
            Signal with k channels.
        """
        return SampledSignal(self.axis, self.u @ weights.T, hold=self.hold)

    def counted_from(self, origin: float) -> "SampledSignal | None":
        """Return the signal with times relative to an origin, if all lie between half and twice of it.

        Parameters
        ----------
        origin : float
            New zero of the time axis.

        Returns
        -------
        SampledSignal or None
            The signal; None where differences would not be exact (Sterbenz lemma).
        """
        ends = np.array([self.start, self.stop]) / origin if origin else np.zeros(2)
        if not np.all((ends >= 0.5) & (ends <= 2.0)):
            return None
        return SampledSignal(self.t - origin, self.u, hold=self.hold)

    def _from(self, start: float) -> "SampledSignal":
        """Return the samples from a time on, with an interpolated first one where it is missing."""
        if start == self.start:
            return self
        first = int(np.searchsorted(self.t, start, side="right")) - 1
        if self.t[first] == start:
            return SampledSignal(self.t[first:], self.u[..., first:, :], hold=self.hold)
        head = self.value(np.array([start]))
        times = np.concatenate([[start], self.t[first + 1 :]])
        return SampledSignal(times, np.concatenate([head, self.u[..., first + 1 :, :]], axis=-2), hold=self.hold)

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
        return self._interpolate(t, np.searchsorted(self.t, t, side="right") - 1)

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
        return self._interpolate(t, np.searchsorted(self.t, t, side="left") - 1)

    def derivative(self, t: Times) -> Values:
        """Return the finite difference (u_{k+1} − u_k)/(t_{k+1} − t_k) of the interval that contains t; 0 for steps.

        Parameters
        ----------
        t : ndarray
            Times, `(T,)`.

        Returns
        -------
        ndarray
            Values, `(..., T, n_inputs)`.
        """
        piece = np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, max(len(self.t) - 2, 0))
        if self.hold == "zero" or len(self.t) == 1:
            return np.zeros((*self.batch_shape, len(piece), self.n_inputs))
        width = self.t[piece + 1] - self.t[piece]
        rise = self.u[..., piece + 1, :] - self.u[..., piece, :]
        return np.asarray(rise / np.where(width > 0.0, width, 1.0)[:, None])

    def _interpolate(self, t: Times, piece: NDArray[np.intp]) -> Values:
        """Return values at times in the given intervals."""
        last = len(self.t) - 1
        if self.hold == "zero" or last == 0:
            return np.asarray(self.u[..., np.clip(piece, 0, last), :])
        piece = np.clip(piece, 0, last)
        after = np.minimum(piece + 1, last)
        width = self.t[after] - self.t[piece]
        fraction = np.where(width > 0.0, (t - self.t[piece]) / np.where(width > 0.0, width, 1.0), 0.0)[:, None]
        return np.asarray((1.0 - fraction) * self.u[..., piece, :] + fraction * self.u[..., after, :])

    def __dir__(self) -> list[str]:
        return dir_without(self, "axis")

    def __repr__(self) -> str:
        what = f"{len(self.t)} samples of {format_count(self.n_inputs, 'input')}"
        return f"SampledSignal({what}, hold={self.hold!r}, batch={self.batch_shape})"


def validate_hold(hold: Any) -> Literal["linear", "zero"]:
    """Return the canonical name of a hold, or raise InvalidSignalError."""
    if not isinstance(hold, str) or hold not in _HOLDS:
        raise InvalidSignalError(
            f'hold is {sanitize(repr(hold))}; it must be "linear" or "foh" (straight lines), "zero" or "zoh" (steps)'
        )
    return _HOLDS[hold]


def _as_samples(u: ArrayLike, n_times: int) -> Values:
    """Return finite samples `(..., T, n_inputs)` as a new array."""
    array = as_real_array(u, "u")
    values = np.array(array, order="C")
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim < 2 or values.shape[-2] != n_times:
        raise InvalidSignalError(_count_mismatch_message(array.shape, n_times))
    if not all_finite(values):
        *_, sample, channel = first = tuple(np.argwhere(~np.isfinite(values))[0].tolist())
        raise InvalidSignalError(
            f"u has entries that are not finite, the first {values[first]:g} at sample {sample} of channel {channel}; "
            "replace NaN and infinities"
        )
    return values


def _count_mismatch_message(shape: tuple[int, ...], n_times: int) -> str:
    """Return a message for samples whose number differs from that of the times."""
    times = format_count(n_times, "time")
    if len(shape) > 1 and shape[-1] == n_times:
        transposed = "u.T" if len(shape) == 2 else "np.swapaxes(u, -1, -2)"
        return (
            f"u has shape {shape} but there are {times}; it must be (n_times, n_inputs) or (batch, n_times, n_inputs), "
            f"time before channels: pass {transposed} if channels come first"
        )
    n_samples = shape[-2] if len(shape) > 1 else shape[0] if shape else 1
    return (
        f"u has {format_count(n_samples, 'sample')} (shape {shape}) but there are {times}; give one sample, a row of u, "
        'for each time, or ltinet.SampledSignal(t_u, u, hold="zero") for samples at other times t_u (hold="linear" joins them)'
    )
