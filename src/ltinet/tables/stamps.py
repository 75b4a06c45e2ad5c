"""Time stamps in ISO 8601 as whole nanoseconds since 1970, and what a clock without a zone leaves open."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from ltinet.errors import FileFormatError
from ltinet.shown import shown
from ltinet.tables.cells import STAMP, shown_cell

Nanoseconds = NDArray[np.int64]
SECOND = 1_000_000_000
_HOUR = 3600 * SECOND
_QUARTER = 900 * SECOND  # offsets of zones change at quarters of an hour
_FIRST_YEAR, _LAST_YEAR = "1700", "2250"  # whole nanoseconds in 64 bits reach from 1677 to 2262


class StampError(Exception):
    """A stamp that cannot be used: its place in the sequence, and why."""

    def __init__(self, place: int, reason: str) -> None:
        super().__init__(reason)
        self.place = place


def zone_named(name: str) -> tzinfo:
    """UTC, an offset such as +01:00, or a zone by its name, such as Europe/Berlin.

    Raises:
        FileFormatError: it is none of these.
    """
    if name.upper() in ("UTC", "Z", "GMT"):
        return UTC
    try:
        return timezone(timedelta(seconds=_offset(name) // SECOND)) if name[:1] in "+-" else ZoneInfo(name)
    except Exception:  # the keys of zones are paths, which fail in many ways
        raise FileFormatError(
            f"zone is {shown(repr(name))}; give UTC, an offset such as +01:00, or a name such as Europe/Berlin"
        ) from None


def nanoseconds(cells: Sequence[str], zone: tzinfo | None) -> tuple[Nanoseconds, bool]:
    """Nanoseconds since 1970, and whether the stamps came with a zone.

    Those without are taken in the given one, or in UTC if there is none.

    Raises:
        StampError: one of them is no stamp, or does not exist, or has a zone where others have none.
    """
    found = [STAMP.fullmatch(cell) for cell in cells]
    groups = [stamp.groups() if stamp is not None else None for stamp in found]
    clock = np.zeros(len(cells), dtype=np.int64)
    suffixes: dict[str, int] = {}
    for place, own in enumerate(groups):
        if own is None:
            raise StampError(place, f"{shown_cell(cells[place])} is not a time in ISO 8601")
        if not _FIRST_YEAR <= own[0][:4] <= _LAST_YEAR:
            raise StampError(place, f"the year of {shown_cell(cells[place])} is not between 1700 and 2250")
        suffixes.setdefault(own[2] or "", place)
    clock[:] = _clock([f"{own[0]}T{(own[1] or '00:00').replace(',', '.')}" for own in groups if own is not None], cells)
    if "" in suffixes and len(suffixes) > 1:
        raise StampError(
            max(suffixes[""], min(place for text, place in suffixes.items() if text)),
            "some times have a zone and some have none; give all of them one",
        )
    if "" in suffixes:
        return clock - _zone_offsets(clock, zone), False
    offsets = {text: _offset(text) for text in suffixes}
    return clock - np.array([offsets[own[2]] for own in groups if own is not None], dtype=np.int64), True


def hidden_change(stamps: Nanoseconds, step: int) -> int | None:
    """The place of a stamp after a step that is an hour longer than usual, as where clocks are put forward."""
    steps = np.diff(stamps)
    suspicious = np.abs(steps - step - _HOUR) <= min(step, _HOUR) // 4
    return int(np.argmax(suspicious)) + 1 if suspicious.any() else None


def usual_step(stamps: Nanoseconds) -> int:
    """The median step."""
    return int(np.median(np.diff(stamps))) if len(stamps) > 1 else 0


def as_datetime(stamp: int, *, aware: bool, zone: tzinfo | None) -> datetime:
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
                raise StampError(place, f"there is no time {shown_cell(cells[place])}") from None
        raise


def _offset(text: str) -> int:
    """Nanoseconds that a clock with this suffix is ahead of UTC."""
    if text.upper() in ("Z", "UTC"):
        return 0
    digits = text[1:].replace(":", "").ljust(4, "0")
    ahead = (int(digits[:2]) * 3600 + int(digits[2:]) * 60) * SECOND
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
        offsets[place] = 0 if first is None else int(first.total_seconds()) * SECOND
    if ambiguous.any():
        raise StampError(
            int(np.argmax(ambiguous[which])),
            "clocks are put forward or back in this hour, so that times without a zone are ambiguous; write "
            "offsets, as in 2024-10-27T02:30:00+01:00",
        )
    return offsets[which]
