"""Time columns of tables: names and units, time stamps, time zones and counts since 1970.

Stamps are dates in ISO 8601, or with the day, the month or the year first. Whether 01.03.2026 has the day or the month
first is decided by the option `day_first`, or by a day above 12 among the first rows, and refused otherwise.

Stamps are converted to whole nanoseconds since 1970. Clocks without a zone are checked for changes to daylight saving
time; numbers too large for seconds, as programs count milli-, micro- or nanoseconds since 1970, are refused without a
unit.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from types import MappingProxyType
from typing import cast
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from ltinet._util.text import sanitize
from ltinet.errors import FileFormatError
from ltinet.tables.cells import LOCAL_TIMESTAMP_PATTERN, TIMESTAMP_PATTERN, quote_cell

# Names of time columns, and the units beside them.

_WORDS = (
    "date ?(?:/|and|&|,)? ?time|datum ?(?:/|und|&|,)? ?(?:uhr)?zeit"
    "|t|times?|zeit|zeiten|zeitpunkt|messzeitpunkt|uhrzeit|zeitstempel|time ?stamps?|datum|date"
    "|elapsed(?: time)?|rel(?:ative)? time|abs(?:olute)? time|sample time|messzeit|temps|tiempo|tempo"
    "|x_value|seconds?|secs?|sekunden"
)
_NAME = re.compile(
    rf"(?P<word>{_WORDS})"
    r"(?:\s*[\[(](?P<bracketed>.*)[\])]|\s*/\s*(?P<per>\w+)|(?:\s+in\s+|[\s,]+|\.)(?P<after>\w+))?",
    re.IGNORECASE,
)
# Units per second, or seconds per unit, so that a conversion is one division or one product, rounded once.
_UNITS_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_SECONDS_PER_UNIT = {"min": 60.0, "h": 3600.0, "d": 86400.0}
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
_UTC_NAMES = ("utc", "gmt", "z")
_TEMPERATURES = ("k", "°c", "c", "degc", "deg c", "°f", "f", "degf", "kelvin", "celsius")  # "T (K)" is a temperature


def is_time_name(name: str) -> bool:
    """Return whether a column of this name holds times; a unit may follow the word.

    "T" without a unit of time is as often a temperature, and no time.
    """
    match = _match_name(name)
    if match is None or name.strip() == "T" or (match["bracketed"] or "").strip().casefold() in _TEMPERATURES:
        return False
    after = match["per"] or match["after"]
    return after is None or unit_of(after) is not None or after.casefold() in _UTC_NAMES


def unit_text(name: str) -> str | None:
    """Return the unit in the name of a column, "ms" of "Time (ms)"; None without a unit."""
    match = _match_name(name)
    if match is None:
        brackets = re.search(r"[\[(]([^\])]*)[\])]\s*$", name)
        return brackets[1].strip() if brackets else None
    text = match["bracketed"] or match["per"] or match["after"]
    return text.strip() if text and text.strip() else None


def mentions_utc(name: str) -> bool:
    """Return whether the name of a column says that its times are UTC."""
    return (unit_text(name) or "").casefold() in _UTC_NAMES


def unit_of(text: str) -> str | None:
    """Return the usual symbol of a unit of time; None if it is not known."""
    return UNITS.get(text.strip().casefold())


def to_seconds_factors(unit: str) -> tuple[float, float]:
    """Return a factor and a divisor: t in seconds is t · factor / divisor, where one of the two is 1."""
    return (1.0, _UNITS_PER_SECOND[unit]) if unit in _UNITS_PER_SECOND else (_SECONDS_PER_UNIT[unit], 1.0)


def _match_name(name: str) -> re.Match[str] | None:
    return _NAME.fullmatch(" ".join(name.replace("_", " ").split()) if name.casefold() != "x_value" else name)


# Time stamps.

Nanoseconds = NDArray[np.int64]
NANOSECONDS_PER_SECOND = 1_000_000_000
_HOUR = 3600 * NANOSECONDS_PER_SECOND  # ns
_QUARTER = 900 * NANOSECONDS_PER_SECOND  # ns; offsets of zones change at quarters of an hour
_MONTHS_PER_YEAR = _HOURS_OF_HALF_DAY = 12
_MONTHS = {
    name: str(number)
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], start=1
    )
}
_FIRST_YEAR, _LAST_YEAR = "1700", "2250"  # nanoseconds in 64 bits reach from 1677 to 2262


class TimestampError(Exception):
    """Error for an unusable stamp, with its position in the sequence."""

    def __init__(self, place: int, reason: str) -> None:
        super().__init__(reason)
        self.place = place


def parse_time_zone(name: str) -> tzinfo:
    """Return the zone for UTC, an offset such as +01:00, or a name such as Europe/Berlin.

    Raises FileFormatError for an unknown zone.
    """
    if name.upper() in ("UTC", "Z", "GMT"):
        return UTC
    try:
        return _fixed_zone(name) if name.startswith(("+", "-")) else ZoneInfo(name)
    except Exception:  # keys of zones are paths, whose lookup fails in many ways
        raise FileFormatError(
            f"zone is {sanitize(repr(name))}; give UTC, an offset such as +01:00, or a name such as Europe/Berlin"
        ) from None


def parse_timestamps(
    cells: Sequence[str], zone: tzinfo | None, day_first: bool | None = None
) -> tuple[Nanoseconds, bool]:
    """Return nanoseconds since 1970, and whether the stamps came with a zone.

    Stamps without a zone are read in `zone`, or in UTC if this is None. Raises TimestampError at a stamp that is
    invalid, does not exist, has a zone where others have none, or an unknown order of day and month.
    """
    texts: list[str] = []
    suffixes: list[str] = []
    first_places: dict[str, int] = {}
    for place, cell in enumerate(cells):
        match = TIMESTAMP_PATTERN.fullmatch(cell)
        date, time, suffix = _local_timestamp(cell, place, day_first) if match is None else match.groups()
        if not _FIRST_YEAR <= date[:4] <= _LAST_YEAR:
            raise TimestampError(place, f"the year of {quote_cell(cell)} is not between 1700 and 2250")
        texts.append(f"{date}T{(time or '00:00').replace(',', '.')}")
        suffixes.append(suffix or "")
        first_places.setdefault(suffixes[-1], place)
    clock = _parse_clock(texts, cells)
    if "" in first_places and len(first_places) > 1:
        raise TimestampError(
            max(first_places[""], min(place for text, place in first_places.items() if text)),
            "some times have a zone and some have none; give all of them one",
        )
    if "" in first_places:
        return clock - _zone_offsets(clock, zone), False
    offsets = {text: _offset(datetime(1970, 1, 1, tzinfo=_fixed_zone(text))) for text in first_places}
    return clock - np.array([offsets[suffix] for suffix in suffixes], dtype=np.int64), True


def detect_day_first(cells: Sequence[str]) -> bool | None:
    """Return whether dates such as 28.03.2026 have the day first; None where no day is above 12."""
    for cell in cells:
        match = LOCAL_TIMESTAMP_PATTERN.fullmatch(cell)
        first, second, _ = re.split("[./-]", match[1]) if match else ("", "", "")
        if len(first) <= 2 and second.isdecimal() and max(int(first), int(second)) > _MONTHS_PER_YEAR:
            return int(first) > _MONTHS_PER_YEAR
    return None


def _local_timestamp(cell: str, place: int, day_first: bool | None) -> tuple[str, str | None, str | None]:
    """Return the date and the time of day in ISO 8601, and the zone, of a stamp in another notation."""
    match = LOCAL_TIMESTAMP_PATTERN.fullmatch(cell)
    if match is None:
        raise TimestampError(place, f"{quote_cell(cell)} is not a time in ISO 8601")
    date, hour, minutes, half, suffix = match.groups()
    first, second, third = re.split("[./-]", date)
    if len(first) > 2:
        year, month, day = first, second, third
    elif second.isalpha():
        year, month, day = third, _MONTHS.get(second.casefold(), second), first
    elif day_first is None:
        raise TimestampError(
            place,
            f"{quote_cell(cell)} may have the day or the month first; decide with day_first=True or day_first=False, or "
            'give the step of evenly spaced rows, as in dt="0.01"',
        )
    else:
        year, month, day = (third, second, first) if day_first else (third, first, second)
    if half is not None:
        if not 1 <= int(hour) <= _HOURS_OF_HALF_DAY:
            raise TimestampError(place, f"there is no time {quote_cell(cell)}")
        hour = str(int(hour) % _HOURS_OF_HALF_DAY + _HOURS_OF_HALF_DAY * (half in "Pp"))
    time = None if hour is None else f"{hour.zfill(2)}{minutes}"
    return f"{year}-{month.zfill(2)}-{day.zfill(2)}", time, suffix


def hidden_clock_change(stamps: Nanoseconds, step: int) -> int | None:
    """Return the position after a step that is an hour longer than usual, as where clocks are put forward."""
    steps = np.diff(stamps)
    suspicious = np.abs(steps - step - _HOUR) <= min(step, _HOUR) // 4
    return int(np.argmax(suspicious)) + 1 if suspicious.any() else None


def median_step(stamps: Nanoseconds) -> int:
    """Return the median step in nanoseconds, 0 of fewer than two stamps."""
    return int(np.median(np.diff(stamps))) if len(stamps) > 1 else 0


def to_datetime(stamp: int, *, aware: bool, zone: tzinfo | None) -> datetime:
    """Return a stamp as a datetime, to the microsecond: in its zone, in UTC, or naive if no zone is known."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=stamp // 1000)
    if aware:
        return moment
    return moment.replace(tzinfo=None) if zone is None else moment.astimezone(zone)


def _parse_clock(texts: Sequence[str], cells: Sequence[str]) -> Nanoseconds:
    try:
        return np.array(texts, dtype="datetime64[ns]").astype(np.int64)
    except ValueError:
        for place, text in enumerate(texts):
            try:
                np.datetime64(text, "ns")
            except ValueError:
                raise TimestampError(place, f"there is no time {quote_cell(cells[place])}") from None
        raise


def _fixed_zone(text: str) -> tzinfo:
    """Return the zone of a suffix such as Z, UTC, +01 or +01:00."""
    return cast("tzinfo", datetime.fromisoformat(f"1970-01-01T00:00{text.upper().replace('UTC', 'Z')}").tzinfo)


def _offset(moment: datetime) -> int:
    """Return the nanoseconds by which a clock is ahead of UTC; 0 for times that its zone does not know."""
    ahead = moment.utcoffset()
    return 0 if ahead is None else int(ahead.total_seconds()) * NANOSECONDS_PER_SECOND


def _zone_offsets(clock: Nanoseconds, zone: tzinfo | None) -> Nanoseconds:
    """Return the offsets of clocks in a zone; raise TimestampError within an hour that occurs twice or not at all."""
    if zone is None:
        return np.zeros_like(clock)
    quarters, which = np.unique(clock // _QUARTER, return_inverse=True)
    offsets = np.zeros(len(quarters), dtype=np.int64)
    ambiguous = np.zeros(len(quarters), dtype=np.bool_)
    for place, quarter in enumerate(quarters.tolist()):
        local = datetime(1970, 1, 1) + timedelta(seconds=quarter * 900)
        first, second = (_offset(local.replace(tzinfo=zone, fold=fold)) for fold in (0, 1))
        ambiguous[place], offsets[place] = first != second, first
    if ambiguous.any():
        raise TimestampError(
            int(np.argmax(ambiguous[which])),
            "clocks are put forward or back in this hour, so that times without a zone are ambiguous; write "
            "offsets, as in 2024-10-27T02:30:00+01:00",
        )
    return offsets[which]


# Counts of milli-, micro- or nanoseconds since 1970.

_LARGEST_SECONDS = 1e11  # s, 3,000 years; in milliseconds since 1970 it is the year 1973


def reject_epoch_numbers(first: float, place: str) -> None:
    """Raise FileFormatError for a first time that is too large for seconds, of a column without a unit."""
    if abs(first) >= _LARGEST_SECONDS:
        raise FileFormatError(
            f"{place}: the time {first:.0f} looks like milli-, micro- or nanoseconds since 1970; give its unit, as "
            'in time_unit="ms", or time_unit="s" to take it as it is'
        )
