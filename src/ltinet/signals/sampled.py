"""Samples with a hold: what a measurement or another program's output is."""

from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.errors import InvalidSignalError
from ltinet.once import cached_property
from ltinet.signals.arrays import Times, Values
from ltinet.signals.numbers import real_array
from ltinet.signals.times import TimeAxis, all_finite

Hold = Literal["linear", "zero"]


@final
@dataclass(frozen=True, init=False, eq=False, repr=False)
class SampledSignal:
    """Samples u_k at times t_k, joined by straight lines (`hold="linear"`) or kept until the next (`hold="zero"`).

    Times ascend; a time given twice marks a jump from the first of its samples to the second. Values are
    `(..., len(t), n_inputs)`; a single input may be given as `(len(t),)`.
    """

    axis: TimeAxis
    u: Values
    hold: Hold

    def __init__(self, t: ArrayLike | TimeAxis, u: ArrayLike, *, hold: Hold = "linear") -> None:
        axis = t if isinstance(t, TimeAxis) else TimeAxis.of(t)
        values = _as_samples(u, len(axis.t))
        if not isinstance(hold, str) or hold not in ("linear", "zero"):
            raise InvalidSignalError(f'hold is {hold!r}; it must be "linear" (straight lines) or "zero" (steps)')
        values.setflags(write=False)
        object.__setattr__(self, "axis", axis)
        object.__setattr__(self, "u", values)
        object.__setattr__(self, "hold", hold)

    @property
    def t(self) -> Times:
        """The times of the samples."""
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
        """The distinct sample times."""
        return np.unique(self.t)

    @property
    def step(self) -> float | None:
        """The common distance of the samples, None if they are not evenly spaced to rounding."""
        return self.axis.step

    def value(self, t: Times) -> Values:
        """u(t), the value after a jump; the last sample at the end."""
        return self._interpolate(t, np.searchsorted(self.t, t, side="right") - 1)

    def value_before(self, t: Times) -> Values:
        """u(t⁻), the value before a jump; the first sample at the start."""
        return self._interpolate(t, np.searchsorted(self.t, t, side="left") - 1)

    def derivative(self, t: Times) -> Values:
        """The paper's finite difference (u_{k+1} − u_k)/(t_{k+1} − t_k) of the piece with t; 0 for steps."""
        piece = self._piece(np.searchsorted(self.t, t, side="right") - 1)
        if self.hold == "zero" or len(self.t) == 1:
            return np.zeros((*self.batch_shape, len(piece), self.n_inputs))
        width = self.t[piece + 1] - self.t[piece]
        rise = self.u[..., piece + 1, :] - self.u[..., piece, :]
        return np.asarray(rise / np.where(width > 0.0, width, 1.0)[:, None])

    def _piece(self, piece: NDArray[np.intp]) -> NDArray[np.intp]:
        return np.clip(piece, 0, max(len(self.t) - 2, 0))

    def _interpolate(self, t: Times, piece: NDArray[np.intp]) -> Values:
        last = len(self.t) - 1
        if self.hold == "zero" or last == 0:
            return np.asarray(self.u[..., np.clip(piece, 0, last), :])
        piece = np.clip(piece, 0, last)
        after = np.minimum(piece + 1, last)
        width = self.t[after] - self.t[piece]
        share = np.where(width > 0.0, (t - self.t[piece]) / np.where(width > 0.0, width, 1.0), 0.0)[:, None]
        return np.asarray((1.0 - share) * self.u[..., piece, :] + share * self.u[..., after, :])

    def __repr__(self) -> str:
        what = f"{len(self.t)} samples of {self.n_inputs} inputs"
        return f"SampledSignal({what}, hold={self.hold!r}, batch={self.batch_shape})"


def _as_samples(u: ArrayLike, n_times: int) -> Values:
    given = real_array(u, "u")
    values = np.array(given, order="C")
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim < 2 or values.shape[-2] != n_times:
        raise InvalidSignalError(
            f"u has shape {given.shape} but there are {n_times} times; it must be (n_times, n_inputs) or "
            "(batch, n_times, n_inputs), time before channels: pass u.T if channels come first"
        )
    if not all_finite(values):
        raise InvalidSignalError("u has entries that are not finite; replace NaN and infinities")
    return values
