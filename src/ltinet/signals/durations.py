"""Times that are no plain numbers: a duration is seconds, in one way only; a date is no duration and is refused."""

import datetime
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltinet.errors import InvalidSignalError
from ltinet.signals.arrays import Times

_SECOND = datetime.timedelta(seconds=1)
_SECONDS = {
    "W": Fraction(604_800), "D": Fraction(86_400), "h": Fraction(3600), "m": Fraction(60), "s": Fraction(1),
    "ms": Fraction(1, 10**3), "us": Fraction(1, 10**6), "ns": Fraction(1, 10**9), "ps": Fraction(1, 10**12),
    "fs": Fraction(1, 10**15), "as": Fraction(1, 10**18),
}  # fmt: skip
_EXACT = 2**53  # integers up to this size are float64 numbers


def holds_durations(given: NDArray[Any]) -> bool:
    """Whether an array is made of durations, NumPy's or Python's."""
    return given.dtype.kind == "m" or (given.dtype == object and _all_are(given, datetime.timedelta))


def seconds(given: NDArray[Any], name: str) -> Times:
    """Durations in seconds, rounded once; those beyond 2⁵³ of their unit to within a unit in the last place.

    Raises:
        InvalidSignalError: they have no unit, are months or years, whose length varies, or are not a time at all.
    """
    if given.dtype == object:
        return np.array([own / _SECOND for own in given.ravel().tolist()], dtype=np.float64).reshape(given.shape)
    unit, count = np.datetime_data(given.dtype)
    if unit not in _SECONDS:
        what = "no unit" if unit == "generic" else f"the unit {unit}, whose length varies"
        raise InvalidSignalError(f"{name} is made of durations with {what}; give them in seconds, as numbers")
    if np.isnat(given).any():
        raise InvalidSignalError(f"{name} has durations that are no time (NaT); leave them out")
    size = _SECONDS[unit] * count
    counts = given.astype(np.int64)
    if size.denominator == 1:
        return counts.astype(np.float64) * float(size)
    if np.max(np.abs(counts), initial=0) <= _EXACT:  # a quotient of two float64 numbers is rounded once
        return counts.astype(np.float64) * float(size.numerator) / float(size.denominator)
    whole, part = np.divmod(counts, size.denominator)
    return (whole.astype(np.float64) + part.astype(np.float64) / float(size.denominator)) * float(size.numerator)


def refuse_dates(given: NDArray[Any], name: str) -> None:
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
