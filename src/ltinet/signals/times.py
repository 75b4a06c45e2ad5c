"""Time axes: validation, durations, and detection of uniform spacing.

Times ascend and are finite; a time given twice marks a jump. Durations are converted to seconds with one rounding,
dates are rejected. Times are uniform if each lies within rounding of t₀ + k·step, and this rounding is small compared
with the step: the first condition alone would accept any times whose steps are near the rounding of a large offset.
"""

import datetime
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS
from ltinet.errors import InvalidSignalError
from ltinet.signals.arrays import Times, all_finite, as_array, as_real_array

# Durations and dates

_SECOND = datetime.timedelta(seconds=1)
_SECONDS_PER_UNIT = {
    "W": Fraction(604_800), "D": Fraction(86_400), "h": Fraction(3600), "m": Fraction(60), "s": Fraction(1),
    "ms": Fraction(1, 10**3), "us": Fraction(1, 10**6), "ns": Fraction(1, 10**9), "ps": Fraction(1, 10**12),
    "fs": Fraction(1, 10**15), "as": Fraction(1, 10**18),
}  # fmt: skip
_LARGEST_EXACT_INTEGER = 2**53  # integers up to this size are exact in float64


def durations_to_seconds(array: NDArray[Any], name: str) -> Times:
    """Return durations in seconds, rounded once; beyond 2⁵³ of their unit accurate to a unit in the last place.

    Raises InvalidSignalError for durations without a unit, in months or years, whose length varies, and for NaT.
    """
    if array.dtype == object:
        return np.array([duration / _SECOND for duration in array.ravel().tolist()], dtype=np.float64).reshape(
            array.shape
        )
    unit, count = np.datetime_data(array.dtype)
    if unit not in _SECONDS_PER_UNIT:
        what = "no unit" if unit == "generic" else f"the unit {unit}, whose length varies"
        raise InvalidSignalError(f"{name} is made of durations with {what}; give numbers in seconds")
    if np.isnat(array).any():
        raise InvalidSignalError(f"{name} has durations that are NaT; remove them")
    size = _SECONDS_PER_UNIT[unit] * count
    counts = array.astype(np.int64)
    if np.max(np.abs(counts), initial=0) <= _LARGEST_EXACT_INTEGER:  # a quotient of two float64 numbers is rounded once
        return counts.astype(np.float64) * float(size.numerator) / float(size.denominator)
    integers, part = np.divmod(counts, size.denominator)
    return (integers.astype(np.float64) + part.astype(np.float64) / float(size.denominator)) * float(size.numerator)


def reject_dates(array: NDArray[Any], name: str) -> None:
    """Raise InvalidSignalError for dates: only the user knows which of them is zero."""
    if array.dtype.kind == "M":
        raise InvalidSignalError(
            f'{name} is made of dates ({array.dtype}); times are seconds: pass ({name} - {name}[0]) / np.timedelta64(1, "s")'
        )
    if array.dtype == object and _all_are(array, datetime.date | datetime.time):
        raise InvalidSignalError(
            f"{name} is made of dates ({type(array.flat[0]).__name__}); times are seconds: pass "
            f"[(date - {name}[0]).total_seconds() for date in {name}]"
        )


def _all_are(array: NDArray[Any], kind: Any) -> bool:
    """Return whether an array has entries, all of them instances of a type."""
    return array.size > 0 and all(isinstance(entry, kind) for entry in array.ravel().tolist())


# Time axes

# Rounding error of t₀ + k h in units of eps max |t|: 0.5 for the sum and up to 1 for the product, since the span may be
# twice as long as max |t|. It enters with the given time and with the last one, from which the step is computed; the
# division for the step, the comparison, and the end that linspace sets, add one or two each.
GRID_ROUNDING = 8.0
# Largest deviation from a uniform grid relative to the step; results then err by this fraction of the change in a step.
# The rounding of 10⁹ uniform times without an offset is within it. Larger deviations are due to a large offset of all
# times, and such times are treated as nonuniform.
GRID_TOLERANCE = 1e-6
_MAX_RESAMPLED = 1e8  # times: 800 MB for each channel
_CHUNK_SIZE = 2**18  # times per chunk, to limit temporary memory


@final
@dataclass(frozen=True, eq=False)
class TimeAxis:
    """Ascending, finite, read-only times; a time given twice marks a jump."""

    t: Times

    @classmethod
    def of(cls, t: Any) -> "TimeAxis":
        """Validate times and return an axis with a copy of them.

        Raises InvalidSignalError if they are not valid, or one is given more than twice: samples between the first and
        the last of these would have no effect.
        """
        times = as_times(t, "t")
        _reject_triple_times(times)
        times.setflags(write=False)
        return cls(times)

    @cached_property
    def step(self) -> float | None:
        """Common step of the times, None if they are not evenly spaced to rounding."""
        return uniform_step(self.t)

    @cached_property
    def longest_step(self) -> float:
        """Longest step between two consecutive times, 0 for a single one."""
        if self.step is not None:
            return self.step
        # By chunks, since the difference of all times would double the memory.
        chunks = (self.t[begin : begin + _CHUNK_SIZE + 1] for begin in range(0, len(self.t), _CHUNK_SIZE))
        return max(float(np.diff(chunk).max(initial=0.0)) for chunk in chunks)

    @cached_property
    def grid_deviation(self) -> float:
        """Largest deviation of uniform times from their grid that is due to an offset.

        It is 0 without an offset, where the deviation is the usual rounding.
        """
        first, last = float(self.t[0]), float(self.t[-1])
        if self.step is None or max(abs(first), abs(last)) <= 2.0 * (last - first):
            return 0.0
        return float(np.abs(_grid_deviation(self.t, self.step)).max())

    def without_step(self) -> "TimeAxis":
        """Return an axis of the same times that is treated as nonuniform."""
        return self.with_step(None)

    def with_step(self, step: float | None) -> "TimeAxis":
        """Return an axis of the same times with a step that is known, as that of a model in discrete time."""
        axis = TimeAxis(self.t)
        axis.__dict__["step"] = step
        return axis


def as_times(t: Any, name: str) -> Times:
    """Return a copy of ascending, finite times with at least one entry, in seconds."""
    times = np.array(as_real_times(t, name))
    if times.ndim != 1 or len(times) == 0:
        raise InvalidSignalError(f"{name} has shape {times.shape}; expected one row of at least one time")
    if not all_finite(times):
        raise InvalidSignalError(
            f"{name} has times that are not finite, the first at index {np.argmin(np.isfinite(times))}"
        )
    descends = times[1:] < times[:-1]
    if descends.any():
        index = int(np.argmax(descends))
        raise InvalidSignalError(
            f"{name} must not descend, but {name}[{index}] = {float(times[index])!r} comes before {name}[{index + 1}] "
            f"= {float(times[index + 1])!r}; sort the samples by time"
        )
    if not np.isfinite(float(times[-1]) - float(times[0])):
        raise InvalidSignalError(f"{name} spans more than double precision holds; give times in larger units")
    return times


def as_real_times(t: Any, name: str) -> Times:
    """Return times as float64, durations in seconds, in any order and shape; copied only if necessary.

    Raises InvalidSignalError for dates, for values that are not real numbers, and for different times that are equal in
    float64.
    """
    if type(t) is np.ndarray and t.dtype == np.float64:
        return t
    array = as_array(t, name)
    reject_dates(array, name)
    is_duration = array.dtype.kind == "m" or (array.dtype == object and _all_are(array, datetime.timedelta))
    times = durations_to_seconds(array, name) if is_duration else as_real_array(array, name)
    if times.ndim == 1 and array.dtype != times.dtype:
        merged = (times[1:] == times[:-1]) & (array[1:] != array[:-1])
        if merged.any():
            index = int(np.argmax(merged))
            raise InvalidSignalError(
                f"{name}[{index}] and {name}[{index + 1}] differ, but not in double precision, where both are "
                f"{float(times[index])!r}; subtract the first time before: {name} - {name}[0]"
            )
    return times


def as_time_step(dt: Any, name: str) -> float:
    """Return a positive, finite time step in seconds, or raise InvalidSignalError."""
    length = as_real_times(dt, name)
    if length.ndim:
        raise InvalidSignalError(f"{name} has shape {length.shape}; give one number, a positive time step")
    if not 0.0 < length < np.inf:
        raise InvalidSignalError(f"{name} is {float(length)}; give a positive time step")
    return float(length)


def resampled_times(t: Times, step: Any) -> Times:
    """Return the times t[0], t[0] + step, … up to t[-1]; raise InvalidSignalError for a step that is not valid."""
    dt = as_time_step(step, "resample")
    n_times = (t[-1] - t[0]) / dt + 1.0
    if n_times > _MAX_RESAMPLED:
        raise InvalidSignalError(f"resample is {dt:g}, which gives {n_times:.3g} samples; give a longer time step")
    return np.asarray(t[0] + dt * np.arange(int(n_times + GRID_TOLERANCE)))


def uniform_step(t: Times) -> float | None:
    """Return the step of evenly spaced times, None if they are not evenly spaced.

    Each time must be as close to t[0] + k·step as rounding allows, and this must be small compared with the step. The
    first condition alone would accept any times whose steps are near the rounding of a large offset.
    """
    if len(t) < 2:
        return None
    step = float((t[-1] - t[0]) / (len(t) - 1))
    if step <= 0.0:
        return None
    deviation = _grid_deviation(t, step)
    bound = grid_tolerance(float(t[0]), float(t[-1]), step)
    return step if deviation.max() <= bound and deviation.min() >= -bound else None


def grid_tolerance(first: float, last: float, step: float) -> float:
    """Return the deviation from an even grid up to which times between two of them count as even."""
    return min(GRID_ROUNDING * EPS * max(abs(first), abs(last)), GRID_TOLERANCE * step)


def _grid_deviation(t: Times, step: float) -> NDArray[np.float64]:
    """Return (t − t₀) − k·step; t − t₀ is exact where the offset is large."""
    deviation: NDArray[np.float64] = t - t[0]
    deviation -= step * np.arange(len(t), dtype=np.float64)
    return deviation


def _reject_triple_times(t: Times) -> None:
    """Raise InvalidSignalError if a time is given more than twice."""
    repeats = t[1:] == t[:-1]
    is_third = repeats[1:] & repeats[:-1] if repeats.any() else repeats[:0]
    if is_third.any():
        index = int(np.argmax(is_third))
        count = int(np.searchsorted(t, t[index], side="right")) - index
        what = f"all {count} times are" if count == len(t) else f"t[{index}] and the {count - 1} times after it are all"
        raise InvalidSignalError(
            f"{what} {float(t[index])!r}; a time given twice marks a jump of u, and samples between the two have "
            "no effect: keep the first and the last sample, or give times that tell the samples apart"
        )
