"""Times of rows in seconds, or as they are; they must not descend, and no more than two may be one."""

from datetime import datetime, tzinfo

import numpy as np

from ltinet.arrays import Array
from ltinet.errors import FileFormatError
from ltinet.tables.form import Form
from ltinet.tables.options import TableOptions
from ltinet.tables.rows import Rows
from ltinet.tables.since_1970 import refuse_numbers_since_1970
from ltinet.tables.stamps import SECOND, Nanoseconds, StampError, as_datetime, hidden_change, nanoseconds, usual_step


class Clock:
    """What is remembered of times from one chunk to the next."""

    def __init__(self, form: Form, options: TableOptions) -> None:
        self._title, self._columns, self._dt = form.title, form.columns, options.dt
        self._unit_was_given = options.time_unit is not None
        self._n_rows = 0
        self._last: Array = np.zeros(0)  # at most two times
        self._origin: int | None = None
        self._aware = False
        self._last_stamp: Nanoseconds = np.zeros(0, dtype=np.int64)
        self._usual = 0

    @property
    def start(self) -> datetime | None:
        """The first stamp."""
        zone: tzinfo | None = self._columns.zone
        return None if self._origin is None else as_datetime(self._origin, aware=self._aware, zone=zone)

    def told(self) -> tuple[str, ...]:
        """What was assumed."""
        if self._origin is None or self._aware or self._columns.zone is not None:
            return ()
        return ("times without a zone taken as they stand, as if clocks were never put forward or back",)

    def read(self, rows: Rows) -> tuple[Array, FileFormatError | None]:
        """The times of the rows up to the first fault, be it their own or one that reading them found."""
        fault = rows.fault
        if self._dt is not None:
            t = self._dt * np.arange(self._n_rows, self._n_rows + len(rows.values), dtype=np.float64)
        elif self._columns.is_stamped:
            t, own = self._from_stamps(rows)
            fault = own or fault
        else:
            factor, divisor = self._columns.scale
            t = np.asarray(rows.times, dtype=np.float64) * factor / divisor
            if not self._n_rows and len(t) and not self._unit_was_given and self._columns.unit is None:
                refuse_numbers_since_1970(float(t[0]), f"{self._title}, line {rows.line(0)}")
        t, disorder = self._in_order(t, rows)
        fault = disorder or fault
        self._n_rows += len(t)
        self._last = np.concatenate([self._last, t[-2:]])[-2:]
        return t, fault

    def _from_stamps(self, rows: Rows) -> tuple[Array, FileFormatError | None]:
        cells, fault = list(map(str, rows.times)), None
        if not cells:
            return np.zeros(0), None
        while True:  # a stamp before the one that was found may have a fault of another kind
            try:
                stamps, aware = nanoseconds(cells, self._columns.zone)
                break
            except StampError as error:
                fault = FileFormatError(f"{self._title}, line {rows.line(error.place)}: {error}")
                if not error.place:
                    return np.zeros(0), fault
                cells = cells[: error.place]
        if self._origin is None:
            self._origin, self._aware = int(stamps[0]), aware
        elif aware != self._aware:
            place = f"{self._title}, line {rows.line(0)}"
            return np.zeros(0), FileFormatError(
                f"{place}: some times have a zone and some have none; give all of them one"
            )
        stamps, change = self._without_hidden_change(stamps, rows)
        t = (stamps - self._origin) // SECOND + ((stamps - self._origin) % SECOND) / SECOND
        return t.astype(np.float64), change or fault

    def _without_hidden_change(self, stamps: Nanoseconds, rows: Rows) -> tuple[Nanoseconds, FileFormatError | None]:
        """The stamps up to where clocks without a zone may have been put forward."""
        joined = np.concatenate([self._last_stamp, stamps])
        self._usual = self._usual or usual_step(joined)
        self._last_stamp = stamps[-1:]
        place = hidden_change(joined, self._usual) if not self._aware and self._columns.zone is None else None
        if place is None or not self._usual:
            return stamps, None
        row = place - (len(joined) - len(stamps))
        return stamps[:row], FileFormatError(
            f"{self._title}, line {rows.line(row)}: the time is an hour further on than usual: a gap, or clocks put "
            'forward? Say in which zone they are, as in zone="Europe/Berlin", or zone="UTC" if they are never changed'
        )

    def _in_order(self, t: Array, rows: Rows) -> tuple[Array, FileFormatError | None]:
        joined = np.concatenate([self._last, t])
        begin = len(joined) - len(t)
        descends = joined[1:] < joined[:-1]
        if descends.any():
            place = int(np.argmax(descends)) + 1
            hint = "sort the rows by time, and remove totals and further tables below"
            if self._origin is not None and not self._aware and self._columns.zone is None:
                hint += (
                    "; if clocks were put back here, write times with their offsets, as in 2024-10-27T02:30:00+01:00"
                )
            kept = t[: max(place - begin, 0)]
            return kept, FileFormatError(
                f"{self._title}, line {rows.line(place - begin)}: t must not descend, but {float(joined[place])!r} "
                f"comes after {float(joined[place - 1])!r}; {hint}"
            )
        stays = joined[1:] == joined[:-1]
        thrice = stays[1:] & stays[:-1] if stays.any() else stays[:0]
        if thrice.any():
            place = int(np.argmax(thrice)) + 2
            return t[: max(place - begin, 0)], FileFormatError(
                f"{self._title}, line {rows.line(place - begin)}: the time {float(joined[place])!r} is given a third "
                "time; given twice it marks a jump, and what is between has no effect: keep the first and the last of "
                "them, or give times that tell the rows apart"
            )
        return t, None
