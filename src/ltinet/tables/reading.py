"""Streaming reader of tables: rows in chunks, with their times converted and checked and gaps filled.

Times must not descend, and at most two rows may share one. Gaps are rejected, filled with the last value or by linear
interpolation over time, or left as NaN, which splits a record.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import BinaryIO, final

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import Array
from ltinet._util.text import format_count
from ltinet.errors import FileFormatError
from ltinet.tables.cells import detect_decimal, quote_cell
from ltinet.tables.format_detection import NoRowsError, TableFormat, detect_format, split_lines
from ltinet.tables.options import Gaps, TableOptions
from ltinet.tables.rows import ParsedRows, parse_rows
from ltinet.tables.source import HEAD_BYTES, TextBlock, read_blocks
from ltinet.tables.timestamps import (
    NANOSECONDS_PER_SECOND,
    Nanoseconds,
    TimestampError,
    hidden_clock_change,
    median_step,
    parse_timestamps,
    reject_epoch_numbers,
    to_datetime,
)

LONGEST_GAP = 1_000_000
"""Rows that may wait for the value after a gap."""


@final
@dataclass(frozen=True)
class TableChunk:
    """Times `(T,)` and values `(T, k)` of consecutive rows."""

    t: Array
    values: Array


@final
class TableReader:
    """Reader of one table: its format is detected on creation, its rows are read on request."""

    def __init__(self, stream: BinaryIO, *, title: str, options: TableOptions) -> None:
        self.title, self._options = title, options
        self._blocks = read_blocks(stream, title=title, encoding=options.encoding)
        head, self._form = self._read_head()
        lines = head.content.split(b"\n", self._form.first_line - 1)
        self._first = TextBlock(lines[-1], self._form.first_line)
        self._times = TimeReader(self._form, options)
        self._gaps = GapFiller(options.gaps, self._form.columns.value_names, title)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the values."""
        return self._form.columns.value_names

    @property
    def start(self) -> datetime | None:
        """First time where times are stamps; known with the first chunk."""
        return self._times.start

    @property
    def time_unit(self) -> str | None:
        """Unit of the times of chunks, if it is known."""
        columns = self._form.columns
        return "s" if columns.is_stamped or columns.unit is not None else None

    @property
    def notes(self) -> tuple[str, ...]:
        """Changes made to the table, such as gaps filled; complete when all of it has been read."""
        return (*self._form.notes, *self._times.notes, *self._gaps.notes)

    def select(self, columns: Sequence[int]) -> None:
        """Read only these of the values, by their positions in `names`; to be called before rows are read."""
        roles = self._form.columns
        self._form = replace(self._form, columns=replace(roles, values=tuple(roles.values[k] for k in columns)))
        self._gaps = GapFiller(self._options.gaps, self.names, self.title)

    def chunks(self) -> Iterator[TableChunk]:
        """Yield the rows in their order, as they arrive.

        Raises FileFormatError at the first faulty row, after all rows before it.
        """
        n_rows = 0
        for block in chain([self._first] if self._first.content else [], self._blocks):
            self._form = _update_decimal_mark(self._form, block)
            rows = parse_rows(block, self._form, self._options.gaps)
            t, fault = self._times.read(rows)
            lines = np.arange(rows.first_line, rows.first_line + len(t)) if rows.lines is None else np.array(rows.lines)
            complete = self._gaps.fill(Samples(t, rows.values[: len(t)], lines[: len(t)].astype(np.int64)))
            if len(complete.t):
                n_rows += len(complete.t)
                yield TableChunk(complete.t, complete.values)
            if fault is not None:
                raise fault
        self._gaps.finish()
        if not n_rows:
            raise FileFormatError(f"{self.title} has a header but no samples; at least one line of numbers must follow")

    def _read_head(self) -> tuple[TextBlock, TableFormat]:
        """Return the text so far and its format; a stream may begin slowly, and a header alone does not suffice."""
        content = b""
        while True:
            block = next(self._blocks, None)
            content += b"" if block is None else block.content
            head = TextBlock(content, 1)
            try:
                return head, detect_format(head, self._options, self.title)
            except NoRowsError:
                if block is None or len(content) >= HEAD_BYTES:
                    raise


def _update_decimal_mark(form: TableFormat, block: TextBlock) -> TableFormat:
    """Return the format with the decimal mark of this block if none has occurred before."""
    delimiter = form.dialect.delimiter
    if form.dialect.decimal is not None or not (b"." in block.content or b"," in block.content):
        return form
    if delimiter == "," and b'"' not in block.content:
        return form.with_decimal(".")
    try:
        lines = split_lines(block.content.decode(), delimiter, block.first_line)
    except ValueError:
        return form  # the row-by-row parser reports the fault
    rows = [[line.cells[k] for k in form.columns.used if k < len(line.cells)] for line in lines if not line.is_comment]
    place = f"{form.title}, from line {block.first_line} on:"
    whole_rows = [line.cells for line in lines if not line.is_comment]
    return form.with_decimal(detect_decimal(rows, delimiter, place, whole_rows))


# Times.


class TimeReader:
    """Conversion of times to seconds, and the checks that need the times of earlier chunks."""

    def __init__(self, form: TableFormat, options: TableOptions) -> None:
        self._title, self._columns, self._dt = form.title, form.columns, options.dt
        self._is_unit_given = options.time_unit is not None
        self._n_rows = 0
        self._last: Array = np.zeros(0)  # the last two times
        self._origin: int | None = None
        self._aware = False
        self._last_stamp: Nanoseconds = np.zeros(0, dtype=np.int64)
        self._median_step = 0

    @property
    def start(self) -> datetime | None:
        """First time stamp."""
        zone = self._columns.zone
        return None if self._origin is None else to_datetime(self._origin, aware=self._aware, zone=zone)

    @property
    def notes(self) -> tuple[str, ...]:
        """Assumptions about the times."""
        if self._origin is None or not self._is_local:
            return ()
        return ("times without a zone taken as they stand, as if clocks were never put forward or back",)

    @property
    def _is_local(self) -> bool:
        """True where stamps have no zone, so that daylight saving time may be hidden in them."""
        return not self._aware and self._columns.zone is None

    def read(self, rows: ParsedRows) -> tuple[Array, FileFormatError | None]:
        """Return the times of the rows up to the first fault, in the times or in other cells, and this fault."""
        fault = rows.fault
        if self._dt is not None:
            t = self._dt * np.arange(self._n_rows, self._n_rows + len(rows.values), dtype=np.float64)
        elif self._columns.is_stamped:
            t, time_fault = self._convert_stamps(rows)
            fault = time_fault or fault
        else:
            factor, divisor = self._columns.scale
            t = np.asarray(rows.times, dtype=np.float64) * factor / divisor
            if not self._n_rows and len(t) and not self._is_unit_given and self._columns.unit is None:
                reject_epoch_numbers(float(t[0]), f"{self._title}, line {rows.line(0)}")
        t, disorder = self._check_order(t, rows)
        self._n_rows += len(t)
        self._last = np.concatenate([self._last, t[-2:]])[-2:]
        return t, disorder or fault

    def _convert_stamps(self, rows: ParsedRows) -> tuple[Array, FileFormatError | None]:
        """Return seconds since the first stamp of the table, up to the first fault."""
        cells, fault = list(map(str, rows.times)), None
        if not cells:
            return np.zeros(0), None
        while True:  # a stamp before the reported one may have a fault of another kind
            try:
                stamps, aware = parse_timestamps(cells, self._columns.zone, self._columns.day_first)
                break
            except TimestampError as error:
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
        stamps, change = self._check_clock_change(stamps, rows)
        seconds, rest = np.divmod(stamps - self._origin, NANOSECONDS_PER_SECOND)
        return (seconds + rest / NANOSECONDS_PER_SECOND).astype(np.float64), change or fault

    def _check_clock_change(self, stamps: Nanoseconds, rows: ParsedRows) -> tuple[Nanoseconds, FileFormatError | None]:
        """Return the stamps up to where clocks without a zone may have been put forward."""
        joined = np.concatenate([self._last_stamp, stamps])
        self._median_step = self._median_step or median_step(joined)
        self._last_stamp = stamps[-1:]
        place = hidden_clock_change(joined, self._median_step) if self._is_local else None
        if place is None or not self._median_step:
            return stamps, None
        row = place - (len(joined) - len(stamps))
        return stamps[:row], FileFormatError(
            f"{self._title}, line {rows.line(row)}: the time is an hour further on than usual: a gap, or clocks put "
            'forward? Give the zone of the times, as in zone="Europe/Berlin", or zone="UTC" if they are never changed'
        )

    def _check_order(self, t: Array, rows: ParsedRows) -> tuple[Array, FileFormatError | None]:
        """Return the times up to where they descend, or where one occurs for the third time."""
        joined = np.concatenate([self._last, t])
        begin = len(joined) - len(t)
        descends = joined[1:] < joined[:-1]
        if descends.any():
            place = int(np.argmax(descends)) + 1
            hint = "sort the rows by time, and remove totals and further tables below"
            if self._origin is not None and self._is_local:
                hint += (
                    "; if clocks were put back here, write times with their offsets, as in 2024-10-27T02:30:00+01:00"
                )
            return t[: max(place - begin, 0)], FileFormatError(
                f"{self._title}, line {rows.line(place - begin)}: t must not descend, but {float(joined[place])!r} "
                f"comes after {float(joined[place - 1])!r}; {hint}"
            )
        stays = joined[1:] == joined[:-1]
        thrice = stays[1:] & stays[:-1] if stays.any() else stays[:0]
        if thrice.any():
            place = int(np.argmax(thrice)) + 2
            return t[: max(place - begin, 0)], FileFormatError(
                f"{self._title}, line {rows.line(place - begin)}: the time {float(joined[place])!r} is given a third "
                "time; two rows of one time mark a jump, and rows between them have no effect: keep the first and the "
                "last of them, or give distinct times"
            )
        return t, None


# Gaps.


@final
@dataclass(frozen=True)
class Samples:
    """Times `(T,)`, values `(T, k)` with NaN for gaps, and the line number of each row."""

    t: Array
    values: Array
    lines: NDArray[np.int64]

    def part(self, begin: int, end: int | None = None) -> "Samples":
        """Return a range of the rows."""
        return Samples(self.t[begin:end], self.values[begin:end], self.lines[begin:end])


@final
class GapFiller:
    """Filling of gaps chunk by chunk; rows whose gaps are open wait until a value follows."""

    def __init__(self, policy: Gaps, names: tuple[str, ...], title: str) -> None:
        self._policy, self._names, self._title = policy, names, title
        self._waiting: Samples | None = None  # the last complete row and those after it
        self._n_returned = 0  # rows of these that were returned already: 0 or 1
        self.n_filled = 0
        self.n_split = 0
        """Number of rows with gaps that were left."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Number of gaps filled or left."""
        if self.n_split:
            return (f"{format_count(self.n_split, 'row')} with gaps left out",)
        if not self.n_filled:
            return ()
        method = "the value before" if self._policy == "hold" else "straight lines"
        return (f"{format_count(self.n_filled, 'gap')} filled by {method}",)

    def fill(self, samples: Samples) -> Samples:
        """Return the rows that are complete with these samples, gaps filled."""
        has_gaps = bool(np.isnan(samples.values).any())
        if self._policy == "split":
            self.n_split += int(np.isnan(samples.values).any(axis=1).sum())
            return samples
        if self._policy == "error" or (not has_gaps and (self._waiting is None or len(self._waiting.t) == 1)):
            self._set_waiting(samples.part(max(len(samples.t) - 1, 0)))
            return samples
        joined, begin = samples, self._n_returned
        if self._waiting is not None:
            joined = Samples(
                np.concatenate([self._waiting.t, samples.t]),
                np.concatenate([self._waiting.values, samples.values]),
                np.concatenate([self._waiting.lines, samples.lines]),
            )
        gaps = np.isnan(joined.values)
        self._reject_open_gap(gaps[0], joined.lines[0], "no value comes before it")
        # For each cell the last row, up to its own, in which its column has a value.
        known = np.maximum.accumulate(np.where(gaps, 0, np.arange(len(gaps))[:, None]), axis=0)
        if self._policy == "hold":
            end, filled = len(joined.t), np.take_along_axis(joined.values, known, axis=0)
        else:
            end, filled = int(known[-1].min()) + 1, joined.values.copy()
            for column in np.flatnonzero(gaps[:end].any(axis=0)):
                missing, with_value = gaps[:end, column], ~gaps[:, column]
                filled[:end, column][missing] = np.interp(
                    joined.t[:end][missing], joined.t[with_value], joined.values[with_value, column]
                )
        self.n_filled += int(gaps[begin:end].sum())
        # The row before the waiting ones is complete: interpolation begins at it. Values after it stay unchanged.
        rest = joined.part(end - 1)
        self._set_waiting(Samples(rest.t, np.concatenate([filled[end - 1 : end], rest.values[1:]]), rest.lines))
        return Samples(joined.t, filled, joined.lines).part(begin, end)

    def finish(self) -> None:
        """Raise FileFormatError if rows still wait for a value."""
        if self._waiting is not None and len(self._waiting.t) > self._n_returned:
            gaps = np.isnan(self._waiting.values)
            row = self._n_returned + int(np.argmax(gaps[self._n_returned :].any(axis=1)))
            self._reject_open_gap(gaps[row], self._waiting.lines[row], "no value follows it")

    def _set_waiting(self, waiting: Samples) -> None:
        if len(waiting.t) > LONGEST_GAP:
            raise FileFormatError(
                f"{self._title}, line {waiting.lines[1]}: a gap begins that is longer than {LONGEST_GAP} rows; fill it "
                'with gaps="hold", or leave its column out with columns="…"'
            )
        if len(waiting.t):
            self._waiting, self._n_returned = waiting, 1

    def _reject_open_gap(self, gaps: NDArray[np.bool_], line: int, why: str) -> None:
        if gaps.any():
            name = quote_cell(self._names[int(np.argmax(gaps))])
            raise FileFormatError(
                f"{self._title}, line {line}, column {name}: this gap cannot be filled, since {why}; give a value or "
                "remove the line"
            )
