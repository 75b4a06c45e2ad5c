"""Time columns of tables: names and units, ISO 8601 time stamps, time zones and counts since 1970.

Stamps are converted to whole nanoseconds since 1970. Clocks without a zone are checked for changes to daylight saving
time; numbers too large for seconds, as programs count milli-, micro- or nanoseconds since 1970, are refused without a
unit.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from types import MappingProxyType
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from ltinet._util.text import sanitize
from ltinet.errors import FileFormatError
from ltinet.tables.cells import TIMESTAMP_PATTERN, quote_cell

# MERGED ltinet.tables.timestamps
# What programs call a column of times, and the units that they put beside the name.

_WORDS = (
    "t|times?|zeit|zeiten|zeitpunkt|uhrzeit|zeitstempel|time ?stamps?|date ?time|datum|date|date ?/ ?time"
    "|datum ?/ ?uhrzeit|datum ?/ ?zeit"
    "|elapsed(?: time)?|rel(?:ative)? time|abs(?:olute)? time|sample time|messzeit|temps|tiempo|tempo"
    "|x_value|seconds?|secs?|sekunden"
)
_NAME = re.compile(
    rf"(?P<word>{_WORDS})"
    r"(?:\s*[\[(](?P<bracketed>.*)[\])]|\s*/\s*(?P<per>\w+)|(?:\s+in\s+|[\s,]+|\.)(?P<after>\w+))?",
    re.IGNORECASE,
)
# How many of the unit make a second, or how many seconds make the unit: one division or product, rounded once.
_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_SECONDS = {"min": 60.0, "h": 3600.0, "d": 86400.0}
_ALIASES = {
    "s": "sec secs second seconds sek sekunde sekunden",
    "ms": "msec msecs millisecond milliseconds millisekunden",
    "us": "µs μs usec usecs microsecond microseconds mikrosekunden",
    "ns": "nsec nanosecond nanoseconds nanosekunden",
    "min": "mins minute minutes minuten",
    "h": "hr hrs hour hours std stunde stunden",
    "d": "day days tag tage",
}
UNITS = MappingProxyType({alias: unit for unit, names in _ALIASES.items() for alias in (unit, *names.split())})
"""Units of time by all their names."""
KNOWN_UNITS = tuple(_ALIASES)
_CLOCKS = ("utc", "gmt", "z")
_TEMPERATURES = ("k", "°c", "c", "degc", "deg c", "°f", "f", "degf", "kelvin", "celsius")  # "T (K)" is no time


def is_time_name(name: str) -> bool:
    """Whether a column of this name is meant as the time; a unit may follow the word."""
    found = _found(name)
    if found is None:
        return False
    if (found["bracketed"] or "").strip().casefold() in _TEMPERATURES:
        return False
    after = found["per"] or found["after"]
    return after is None or _unit_or_clock(after)


def unit_text(name: str) -> str | None:
    """What the name says of the unit, "ms" of "Time (ms)"; None where it says nothing."""
    found = _found(name)
    if found is None:
        brackets = re.search(r"[\[(]([^\])]*)[\])]\s*$", name)
        return brackets[1].strip() if brackets else None
    text = found["bracketed"] or found["per"] or found["after"]
    return text.strip() if text and text.strip() else None


def mentions_utc(name: str) -> bool:
    """Whether the name says that clocks show universal time."""
    return (unit_text(name) or "").casefold() in _CLOCKS


def unit_of(text: str) -> str | None:
    """The unit by its usual sign; None if it is not known."""
    return UNITS.get(text.strip().casefold())


def in_seconds(unit: str) -> tuple[float, float]:
    """A factor and a divisor: t in seconds is t · factor / divisor, where one of the two is 1."""
    return (1.0, _PER_SECOND[unit]) if unit in _PER_SECOND else (_SECONDS[unit], 1.0)


def _found(name: str) -> re.Match[str] | None:
    return _NAME.fullmatch(" ".join(name.replace("_", " ").split()) if name.casefold() != "x_value" else name)


def _unit_or_clock(text: str) -> bool:
    return unit_of(text) is not None or text.casefold() in _CLOCKS


# MERGED ltinet.tables.timestamps
# Time stamps in ISO 8601 as whole nanoseconds since 1970, and what a clock without a zone leaves open.

Nanoseconds = NDArray[np.int64]
NANOSECONDS_PER_SECOND = 1_000_000_000
_HOUR = 3600 * NANOSECONDS_PER_SECOND
_QUARTER = 900 * NANOSECONDS_PER_SECOND  # offsets of zones change at quarters of an hour
_FIRST_YEAR, _LAST_YEAR = "1700", "2250"  # whole nanoseconds in 64 bits reach from 1677 to 2262


class TimestampError(Exception):
    """A stamp that cannot be used: its place in the sequence, and why."""

    def __init__(self, place: int, reason: str) -> None:
        super().__init__(reason)
        self.place = place


def parse_time_zone(name: str) -> tzinfo:
    """UTC, an offset such as +01:00, or a zone by its name, such as Europe/Berlin.

    Raises:
        FileFormatError: it is none of these.
    """
    if name.upper() in ("UTC", "Z", "GMT"):
        return UTC
    try:
        return (
            timezone(timedelta(seconds=_offset(name) // NANOSECONDS_PER_SECOND)) if name[:1] in "+-" else ZoneInfo(name)
        )
    except Exception:  # the keys of zones are paths, which fail in many ways
        raise FileFormatError(
            f"zone is {sanitize(repr(name))}; give UTC, an offset such as +01:00, or a name such as Europe/Berlin"
        ) from None


def parse_timestamps(cells: Sequence[str], zone: tzinfo | None) -> tuple[Nanoseconds, bool]:
    """Nanoseconds since 1970, and whether the stamps came with a zone.

    Those without are taken in the given one, or in UTC if there is none.

    Raises:
        StampError: one of them is no stamp, or does not exist, or has a zone where others have none.
    """
    found = [TIMESTAMP_PATTERN.fullmatch(cell) for cell in cells]
    groups = [stamp.groups() if stamp is not None else None for stamp in found]
    clock = np.zeros(len(cells), dtype=np.int64)
    suffixes: dict[str, int] = {}
    for place, own in enumerate(groups):
        if own is None:
            raise TimestampError(place, f"{quote_cell(cells[place])} is not a time in ISO 8601")
        if not _FIRST_YEAR <= own[0][:4] <= _LAST_YEAR:
            raise TimestampError(place, f"the year of {quote_cell(cells[place])} is not between 1700 and 2250")
        suffixes.setdefault(own[2] or "", place)
    clock[:] = _clock([f"{own[0]}T{(own[1] or '00:00').replace(',', '.')}" for own in groups if own is not None], cells)
    if "" in suffixes and len(suffixes) > 1:
        raise TimestampError(
            max(suffixes[""], min(place for text, place in suffixes.items() if text)),
            "some times have a zone and some have none; give all of them one",
        )
    if "" in suffixes:
        return clock - _zone_offsets(clock, zone), False
    offsets = {text: _offset(text) for text in suffixes}
    return clock - np.array([offsets[own[2]] for own in groups if own is not None], dtype=np.int64), True


def hidden_clock_change(stamps: Nanoseconds, step: int) -> int | None:
    """The place of a stamp after a step that is an hour longer than usual, as where clocks are put forward."""
    steps = np.diff(stamps)
    suspicious = np.abs(steps - step - _HOUR) <= min(step, _HOUR) // 4
    return int(np.argmax(suspicious)) + 1 if suspicious.any() else None


def median_step(stamps: Nanoseconds) -> int:
    """The median step."""
    return int(np.median(np.diff(stamps))) if len(stamps) > 1 else 0


def to_datetime(stamp: int, *, aware: bool, zone: tzinfo | None) -> datetime:
    """A stamp as Python has it, to the microsecond; in its zone, in UTC, or without one if none was known."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=stamp // 1000)
    if aware:
        return moment
    return moment.replace(tzinfo=None) if zone is None else moment.astimezone(zone)


def _clock(texts: Sequence[str], cells: Sequence[str]) -> Nanoseconds:
    try:
        return np.array(texts, dtype="datetime64[ns]").astype(np.int64)
    except ValueError:
        for place, text in enumerate(texts):
            try:
                np.datetime64(text, "ns")
            except ValueError:
                raise TimestampError(place, f"there is no time {quote_cell(cells[place])}") from None
        raise


def _offset(text: str) -> int:
    """Nanoseconds that a clock with this suffix is ahead of UTC."""
    if text.upper() in ("Z", "UTC"):
        return 0
    digits = text[1:].replace(":", "").ljust(4, "0")
    ahead = (int(digits[:2]) * 3600 + int(digits[2:]) * 60) * NANOSECONDS_PER_SECOND
    return -ahead if text[0] == "-" else ahead


def _zone_offsets(clock: Nanoseconds, zone: tzinfo | None) -> Nanoseconds:
    """What to subtract from clocks in a zone; refused within the hour that comes twice or not at all."""
    if zone is None:
        return np.zeros_like(clock)
    quarters, which = np.unique(clock // _QUARTER, return_inverse=True)
    offsets = np.zeros(len(quarters), dtype=np.int64)
    ambiguous = np.zeros(len(quarters), dtype=np.bool_)
    for place, quarter in enumerate(quarters.tolist()):
        local = datetime(1970, 1, 1) + timedelta(seconds=quarter * 900)
        first, second = (local.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
        ambiguous[place] = first != second or first is None
        offsets[place] = 0 if first is None else int(first.total_seconds()) * NANOSECONDS_PER_SECOND
    if ambiguous.any():
        raise TimestampError(
            int(np.argmax(ambiguous[which])),
            "clocks are put forward or back in this hour, so that times without a zone are ambiguous; write "
            "offsets, as in 2024-10-27T02:30:00+01:00",
        )
    return offsets[which]


# MERGED ltinet.tables.timestamps
# Whole numbers that are no seconds: what programs count in milli-, micro- or nanoseconds since 1970.

_SINCE_1970 = 1e11  # seconds that nobody measures; in milliseconds since 1970 it is the year 1973


def refuse_epoch_numbers(first: float, place: str) -> None:
    """Refuse a first time that is too large for seconds, of a column without a unit.

    Raises:
        FileFormatError: it is.
    """
    if abs(first) >= _SINCE_1970:
        raise FileFormatError(
            f"{place}: the time {first:.0f} looks like milli-, micro- or nanoseconds since 1970; say what it is in, as "
            'in time_unit="ms", or time_unit="s" to take it as it is'
        )
