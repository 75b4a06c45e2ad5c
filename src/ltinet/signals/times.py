"""Times: checked once, and asked whether they are evenly spaced only once."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.errors import InvalidSignalError
from ltinet.signals.arrays import Times
from ltinet.tolerances import EPS


@final
@dataclass(frozen=True, eq=False)
class TimeAxis:
    """Ascending, finite times that nobody changes; a time given twice marks a jump."""

    t: Times

    @classmethod
    def of(cls, t: ArrayLike) -> "TimeAxis":
        """Check times and keep a copy of them."""
        times = as_times(t, "t")
        times.setflags(write=False)
        return cls(times)

    @cached_property
    def step(self) -> float | None:
        """The common distance of the times, None if they are not evenly spaced to rounding."""
        return even_step(self.t)


def as_times(t: ArrayLike, name: str) -> Times:
    """A copy of ascending, finite times with at least one entry."""
    times = np.array(t, dtype=np.float64)
    if times.ndim != 1 or len(times) == 0:
        raise InvalidSignalError(f"{name} has shape {times.shape}; give a list of at least one time")
    if not all_finite(times):
        raise InvalidSignalError(
            f"{name} has times that are not finite, the first at index {np.argmin(np.isfinite(times))}"
        )
    descends = times[1:] < times[:-1]
    if descends.any():
        place = int(np.argmax(descends))
        raise InvalidSignalError(
            f"{name} must not descend, but {name}[{place}] = {times[place]:g} comes before {name}[{place + 1}] = "
            f"{times[place + 1]:g}; sort the samples by time"
        )
    return times


def even_step(t: Times) -> float | None:
    """The step of evenly spaced times, judged relative to their own size; None if they are not even."""
    if len(t) < 2:
        return None
    step = float((t[-1] - t[0]) / (len(t) - 1))
    if step <= 0.0:
        return None
    off = np.arange(len(t), dtype=np.float64)
    off *= step
    off += t[0]
    off -= t
    # Times made by arange or linspace are off by a few units in the last place of the largest of them.
    bound = 8.0 * EPS * max(abs(float(t[0])), abs(float(t[-1])))
    return step if off.max() <= bound and off.min() >= -bound else None


def all_finite(values: NDArray[np.float64]) -> bool:
    """Whether no entry is NaN or infinite. A finite sum of squares shows it fastest; those of huge numbers overflow."""
    flat = values.ravel()
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.dot(flat, flat)
    return math.isfinite(total) or bool(np.all(np.isfinite(values)))
