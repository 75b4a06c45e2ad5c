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

# MERGED ltinet.signals.times
# Times that are no plain numbers: a duration is seconds, in one way only; a date is no duration and is refused.

_SECOND = datetime.timedelta(seconds=1)
_SECONDS_PER_UNIT = {
    "W": Fraction(604_800), "D": Fraction(86_400), "h": Fraction(3600), "m": Fraction(60), "s": Fraction(1),
    "ms": Fraction(1, 10**3), "us": Fraction(1, 10**6), "ns": Fraction(1, 10**9), "ps": Fraction(1, 10**12),
    "fs": Fraction(1, 10**15), "as": Fraction(1, 10**18),
}  # fmt: skip
_LARGEST_EXACT_INTEGER = 2**53  # integers up to this size are float64 numbers


def has_durations(given: NDArray[Any]) -> bool:
    """Whether an array is made of durations, NumPy's or Python's."""
    return given.dtype.kind == "m" or (given.dtype == object and _all_are(given, datetime.timedelta))


def durations_to_seconds(given: NDArray[Any], name: str) -> Times:
    """Durations in seconds, rounded once; those beyond 2⁵³ of their unit to within a unit in the last place.

    Raises:
        InvalidSignalError: they have no unit, are months or years, whose length varies, or are not a time at all.
    """
    if given.dtype == object:
        return np.array([own / _SECOND for own in given.ravel().tolist()], dtype=np.float64).reshape(given.shape)
    unit, count = np.datetime_data(given.dtype)
    if unit not in _SECONDS_PER_UNIT:
        what = "no unit" if unit == "generic" else f"the unit {unit}, whose length varies"
        raise InvalidSignalError(f"{name} is made of durations with {what}; give them in seconds, as numbers")
    if np.isnat(given).any():
        raise InvalidSignalError(f"{name} has durations that are no time (NaT); leave them out")
    size = _SECONDS_PER_UNIT[unit] * count
    counts = given.astype(np.int64)
    if size.denominator == 1:
        return counts.astype(np.float64) * float(size)
    if np.max(np.abs(counts), initial=0) <= _LARGEST_EXACT_INTEGER:  # a quotient of two float64 numbers is rounded once
        return counts.astype(np.float64) * float(size.numerator) / float(size.denominator)
    whole, part = np.divmod(counts, size.denominator)
    return (whole.astype(np.float64) + part.astype(np.float64) / float(size.denominator)) * float(size.numerator)


def reject_dates(given: NDArray[Any], name: str) -> None:
    """Refuse dates: only the user knows which of them is zero.

    Raises:
        InvalidSignalError: the array is made of dates, NumPy's or Python's.
    """
    if given.dtype.kind == "M":
        raise InvalidSignalError(
            f"{name} is made of dates ({given.dtype}); times are seconds: pass "
            f'({name} - {name}[0]) / np.timedelta64(1, "s")'
        )
    if given.dtype == object and _all_are(given, datetime.date | datetime.time):
        raise InvalidSignalError(
            f"{name} is made of dates ({type(given.flat[0]).__name__}); times are seconds: pass "
            f"[(own - {name}[0]).total_seconds() for own in {name}]"
        )


def _all_are(given: NDArray[Any], kind: Any) -> bool:
    return given.size > 0 and all(isinstance(own, kind) for own in given.ravel().tolist())


# MERGED ltinet.signals.times
# Times: checked once, and asked whether they are evenly spaced only once.

# What rounding leaves of t₀ + k h, in units of eps max |t|: a half for the sum and up to one for the product, since the
# span may be twice as long as max |t|. It enters with the given time and with the last one, which the step is taken
# from; the division for the step, the comparison, and an end that linspace sets, add one or two each.
_GRID_ROUNDING = 8.0
# Times that are off by a share of the step are treated as if they were not, at the price of an error of this share of
# what happens in a step. The rounding of 10⁹ even times without an offset is within it; larger shares are not rounding
# of the grid but of an offset, and such times are taken as they were given.
_GRID_TOLERANCE = 1e-6
_CHUNK_SIZE = 2**18  # times that are looked at together


@final
@dataclass(frozen=True, eq=False)
class TimeAxis:
    """Ascending, finite times that nobody changes; a time given twice marks a jump."""

    t: Times

    @classmethod
    def of(cls, t: Any) -> "TimeAxis":
        """Check times and keep a copy of them.

        Raises:
            InvalidSignalError: they are no times, or one of them is given more than twice: samples between the first
                and the last of these would act for no time, which is never what was measured.
        """
        times = as_times(t, "t")
        _reject_triple_times(times)
        times.setflags(write=False)
        return cls(times)

    @cached_property
    def step(self) -> float | None:
        """The common distance of the times, None if they are not evenly spaced to rounding."""
        return uniform_step(self.t)

    @cached_property
    def longest_step(self) -> float:
        """The longest distance between two times that follow each other, 0 for a single one."""
        if self.step is not None:
            return self.step
        # Piece by piece: a difference of all would take memory.
        pieces = (self.t[begin : begin + _CHUNK_SIZE + 1] for begin in range(0, len(self.t), _CHUNK_SIZE))
        return max(float(np.diff(own).max(initial=0.0)) for own in pieces)

    @cached_property
    def beside_grid(self) -> float:
        """How far even times stand beside their grid because of an offset; 0 without one, where rounding is as ever."""
        first, last = float(self.t[0]), float(self.t[-1])
        if self.step is None or max(abs(first), abs(last)) <= 2.0 * (last - first):
            return 0.0
        return float(np.abs(_grid_deviation(self.t, self.step)).max())

    def as_given(self) -> "TimeAxis":
        """The same times, each of them taken as it was given, whether they are even or not."""
        axis = TimeAxis(self.t)
        axis.__dict__["step"] = None
        return axis


def as_times(t: Any, name: str) -> Times:
    """A copy of ascending, finite times with at least one entry, in seconds if they were durations."""
    times = np.array(as_real_times(t, name))
    if times.ndim != 1 or len(times) == 0:
        raise InvalidSignalError(f"{name} has shape {times.shape}; give one row of at least one time")
    if not all_finite(times):
        raise InvalidSignalError(
            f"{name} has times that are not finite, the first at index {np.argmin(np.isfinite(times))}"
        )
    descends = times[1:] < times[:-1]
    if descends.any():
        place = int(np.argmax(descends))
        raise InvalidSignalError(
            f"{name} must not descend, but {name}[{place}] = {float(times[place])!r} comes before {name}[{place + 1}] "
            f"= {float(times[place + 1])!r}; sort the samples by time"
        )
    if not np.isfinite(float(times[-1]) - float(times[0])):
        raise InvalidSignalError(f"{name} spans more than double precision holds; give times in larger units")
    return times


def as_real_times(t: Any, name: str) -> Times:
    """Times as float64, durations in seconds, in whatever order and shape they came; not copied if they need not be.

    Raises:
        InvalidSignalError: they are dates, or no real numbers, or so large that float64 takes different ones for equal.
    """
    if type(t) is np.ndarray and t.dtype == np.float64:
        return t
    given = as_array(t, name)
    reject_dates(given, name)
    times = durations_to_seconds(given, name) if has_durations(given) else as_real_array(given, name)
    if times.ndim == 1 and given.dtype != times.dtype:
        merged = (times[1:] == times[:-1]) & (given[1:] != given[:-1])
        if merged.any():
            place = int(np.argmax(merged))
            raise InvalidSignalError(
                f"{name}[{place}] and {name}[{place + 1}] differ, but not in double precision, where both are "
                f"{float(times[place])!r}; subtract the first time before: {name} - {name}[0]"
            )
    return times


def as_time_step(dt: Any, name: str) -> float:
    """A positive, finite length of time, in seconds if it is a duration.

    Raises:
        InvalidSignalError: it is not.
    """
    length = as_real_times(dt, name)
    if length.ndim:
        raise InvalidSignalError(f"{name} has shape {length.shape}; give one number, a positive time step")
    if not 0.0 < length < np.inf:
        raise InvalidSignalError(f"{name} is {float(length)}; give a positive time step")
    return float(length)


def uniform_step(t: Times) -> float | None:
    """The step of evenly spaced times, None if they are not even.

    Even means: each is as close to t[0] + k·step as rounding brings it, and that is little compared with the step. The
    first alone would take any times for even whose steps are near the rounding of a large offset.
    """
    if len(t) < 2:
        return None
    step = float((t[-1] - t[0]) / (len(t) - 1))
    if step <= 0.0:
        return None
    off = _grid_deviation(t, step)
    bound = min(_GRID_ROUNDING * EPS * max(abs(float(t[0])), abs(float(t[-1]))), _GRID_TOLERANCE * step)
    return step if off.max() <= bound and off.min() >= -bound else None


def _grid_deviation(t: Times, step: float) -> NDArray[np.float64]:
    """(t − t₀) − k·step. The difference comes first: it is exact where the offset is large."""
    off: NDArray[np.float64] = t - t[0]
    off -= step * np.arange(len(t), dtype=np.float64)
    return off


def _reject_triple_times(t: Times) -> None:
    stays = t[1:] == t[:-1]
    thrice = stays[1:] & stays[:-1] if stays.any() else stays[:0]
    if thrice.any():
        place = int(np.argmax(thrice))
        count = int(np.searchsorted(t, t[place], side="right")) - place
        what = f"all {count} times are" if count == len(t) else f"t[{place}] and the {count - 1} times after it are all"
        raise InvalidSignalError(
            f"{what} {float(t[place])!r}; a time given twice marks a jump of u, and what is given between the two has "
            "no effect: keep the first and the last sample, or give times that tell the samples apart"
        )
