"""Streaming reader of tables: rows in chunks, with their times converted and checked and gaps filled.

Times must not descend, and at most two rows may share one. Gaps are refused, filled by the last value or by linear
interpolation over time, or left as NaN, which splits a record.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo
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
    refuse_epoch_numbers,
    to_datetime,
)

# MERGED ltinet.tables.reading
# Times of rows in seconds, or as they are; they must not descend, and no more than two may be one.


class TimeReader:
    """What is remembered of times from one chunk to the next."""

    def __init__(self, form: TableFormat, options: TableOptions) -> None:
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
        return None if self._origin is None else to_datetime(self._origin, aware=self._aware, zone=zone)

    def told(self) -> tuple[str, ...]:
        """What was assumed."""
        if self._origin is None or self._aware or self._columns.zone is not None:
            return ()
        return ("times without a zone taken as they stand, as if clocks were never put forward or back",)

    def read(self, rows: ParsedRows) -> tuple[Array, FileFormatError | None]:
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
                refuse_epoch_numbers(float(t[0]), f"{self._title}, line {rows.line(0)}")
        t, disorder = self._in_order(t, rows)
        fault = disorder or fault
        self._n_rows += len(t)
        self._last = np.concatenate([self._last, t[-2:]])[-2:]
        return t, fault

    def _from_stamps(self, rows: ParsedRows) -> tuple[Array, FileFormatError | None]:
        cells, fault = list(map(str, rows.times)), None
        if not cells:
            return np.zeros(0), None
        while True:  # a stamp before the one that was found may have a fault of another kind
            try:
                stamps, aware = parse_timestamps(cells, self._columns.zone)
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
        stamps, change = self._without_hidden_change(stamps, rows)
        t = (stamps - self._origin) // NANOSECONDS_PER_SECOND + (
            (stamps - self._origin) % NANOSECONDS_PER_SECOND
        ) / NANOSECONDS_PER_SECOND
        return t.astype(np.float64), change or fault

    def _without_hidden_change(
        self, stamps: Nanoseconds, rows: ParsedRows
    ) -> tuple[Nanoseconds, FileFormatError | None]:
        """The stamps up to where clocks without a zone may have been put forward."""
        joined = np.concatenate([self._last_stamp, stamps])
        self._usual = self._usual or median_step(joined)
        self._last_stamp = stamps[-1:]
        place = hidden_clock_change(joined, self._usual) if not self._aware and self._columns.zone is None else None
        if place is None or not self._usual:
            return stamps, None
        row = place - (len(joined) - len(stamps))
        return stamps[:row], FileFormatError(
            f"{self._title}, line {rows.line(row)}: the time is an hour further on than usual: a gap, or clocks put "
            'forward? Say in which zone they are, as in zone="Europe/Berlin", or zone="UTC" if they are never changed'
        )

    def _in_order(self, t: Array, rows: ParsedRows) -> tuple[Array, FileFormatError | None]:
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


# MERGED ltinet.tables.reading
# Gaps in tables: filled by the last value or by straight lines over time, or left as NaN, which splits a record.

LONGEST_GAP = 1_000_000
"""Rows that wait for the value after a gap."""


@final
@dataclass(frozen=True)
class Samples:
    """Times `(T,)`, values `(T, k)` with NaN for gaps, and the line of each row."""

    t: Array
    values: Array
    lines: NDArray[np.int64]

    def part(self, begin: int, end: int | None = None) -> "Samples":
        """Some of the rows."""
        return Samples(self.t[begin:end], self.values[begin:end], self.lines[begin:end])


@final
class GapFiller:
    """Fills gaps in what comes chunk by chunk; rows whose gaps are still open wait until a value follows."""

    def __init__(self, policy: Gaps, names: tuple[str, ...], title: str) -> None:
        self._policy, self._names, self._title = policy, names, title
        self._waiting: Samples | None = None  # the last complete row and those after it
        self._n_answered = 0  # rows of these that were given out already: 0 or 1
        self.n_filled = 0
        self.n_split = 0
        """Rows with a gap that was left."""

    def fill(self, samples: Samples) -> Samples:
        """The rows that are complete now."""
        has_gaps = bool(np.isnan(samples.values).any())
        if self._policy == "split":
            self.n_split += int(np.isnan(samples.values).any(axis=1).sum())
            return samples
        if self._policy == "error" or (not has_gaps and (self._waiting is None or len(self._waiting.t) == 1)):
            self._remember(samples.part(max(len(samples.t) - 1, 0)))
            return samples
        joined = samples if self._waiting is None else _joined(self._waiting, samples)
        begin = self._n_answered
        gaps = np.isnan(joined.values)
        self._refuse_open(gaps[0], joined.lines[0], "no value comes before it")
        known = _last_known(gaps)
        end = len(joined.t) if self._policy == "hold" else int(known[-1].min()) + 1
        filled = joined.values.copy()
        for column in range(filled.shape[1]):
            own = gaps[:end, column]
            if self._policy == "hold":
                filled[:end, column] = joined.values[known[:end, column], column]
            elif own.any():
                with_value = np.flatnonzero(~gaps[:, column])
                filled[:end, column][own] = np.interp(
                    joined.t[:end][own], joined.t[with_value], joined.values[with_value, column]
                )
        self.n_filled += int(gaps[begin:end].sum())
        # The row before those that wait is complete, and what lines begin at. Values after it stay as they came.
        rest = joined.part(end - 1)
        anchor = Samples(rest.t, np.concatenate([filled[end - 1 : end], rest.values[1:]]), rest.lines)
        self._remember(anchor)
        return Samples(joined.t, filled, joined.lines).part(begin, end)

    def finish(self) -> None:
        """Refuse rows that still wait."""
        if self._waiting is not None and len(self._waiting.t) > self._n_answered:
            place = self._n_answered
            gap = np.isnan(self._waiting.values[place:]).any(axis=1)
            row = place + int(np.argmax(gap))
            self._refuse_open(np.isnan(self._waiting.values[row]), self._waiting.lines[row], "no value follows it")

    def told(self) -> tuple[str, ...]:
        """What was done."""
        if self.n_split:
            return (f"{format_count(self.n_split, 'row')} with gaps left out",)
        if not self.n_filled:
            return ()
        way = "the value before" if self._policy == "hold" else "straight lines"
        return (f"{format_count(self.n_filled, 'gap')} filled by {way}",)

    def _remember(self, waiting: Samples) -> None:
        if len(waiting.t) > LONGEST_GAP:
            raise FileFormatError(
                f"{self._title}, line {waiting.lines[1]}: a gap begins that is longer than {LONGEST_GAP} rows; fill it "
                'with gaps="hold", or leave its column out with columns="…"'
            )
        if len(waiting.t):
            self._waiting, self._n_answered = waiting, 1

    def _refuse_open(self, gaps: NDArray[np.bool_], line: int, why: str) -> None:
        if gaps.any():
            name = quote_cell(self._names[int(np.argmax(gaps))])
            raise FileFormatError(
                f"{self._title}, line {line}, column {name}: this gap cannot be filled, since {why}; give a value or "
                "remove the line"
            )


def _joined(first: Samples, second: Samples) -> Samples:
    return Samples(
        np.concatenate([first.t, second.t]),
        np.concatenate([first.values, second.values]),
        np.concatenate([first.lines, second.lines]),
    )


def _last_known(gaps: NDArray[np.bool_]) -> NDArray[np.intp]:
    """For each cell the last row, up to its own, in which its column has a value."""
    rows = np.where(gaps, 0, np.arange(len(gaps))[:, None])
    return np.asarray(np.maximum.accumulate(rows, axis=0))


# MERGED ltinet.tables.reading
# A table from its first line to its last, chunk after chunk: form, rows, times, gaps.


@final
@dataclass(frozen=True)
class TableChunk:
    """Times `(T,)` and values `(T, k)` of rows that follow each other."""

    t: Array
    values: Array


@final
class TableReader:
    """A table that is being read: its form is known from its beginning, its rows come when they are asked for."""

    def __init__(self, stream: BinaryIO, *, title: str, options: TableOptions) -> None:
        self.title, self._options = title, options
        self._blocks = read_blocks(stream, title=title, encoding=options.encoding)
        head, self._form = self._beginning()
        lines = head.content.split(b"\n", self._form.first_line - 1)
        self._first = TextBlock(lines[-1], self._form.first_line)
        self._clock = TimeReader(self._form, options)
        self._gaps = GapFiller(options.gaps, self._form.columns.value_names, title)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the values."""
        return self._form.columns.value_names

    @property
    def start(self) -> datetime | None:
        """The first time where times are stamps; known with the first chunk."""
        return self._clock.start

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the table; complete when all of it has been read."""
        return (*self._form.notes, *self._clock.told(), *self._gaps.told())

    def chunks(self) -> Iterator[TableChunk]:
        """The rows in the order in which they stand, as they come.

        Raises:
            FileFormatError: a row is at fault; all rows before it have been given.
        """
        n_rows = 0
        for block in self._all_blocks():
            self._form = _with_decimal_mark(self._form, block)
            rows = parse_rows(block, self._form, self._options.gaps)
            t, fault = self._clock.read(rows)
            complete = self._filled(t, rows)
            if len(complete.t):
                n_rows += len(complete.t)
                yield TableChunk(complete.t, complete.values)
            if fault is not None:
                raise fault
        self._gaps.finish()
        if not n_rows:
            raise FileFormatError(f"{self.title} has a header but no samples; at least one line of numbers must follow")

    def _filled(self, t: Array, rows: ParsedRows) -> Samples:
        lines = np.arange(rows.first_line, rows.first_line + len(t)) if rows.lines is None else np.array(rows.lines)
        return self._gaps.fill(Samples(t, rows.values[: len(t)], lines[: len(t)].astype(np.int64)))

    def _all_blocks(self) -> Iterator[TextBlock]:
        if self._first.content:
            yield self._first
        yield from self._blocks

    def _beginning(self) -> tuple[TextBlock, TableFormat]:
        """What has come so far, and its form; a stream may begin slowly, and a header alone says too little."""
        content = b""
        while True:
            block = next(self._blocks, None)
            content += b"" if block is None else block.content
            try:
                return TextBlock(content, 1), detect_format(TextBlock(content, 1), self._options, self.title)
            except NoRowsError:
                if block is None or len(content) >= HEAD_BYTES:
                    raise


def _with_decimal_mark(form: TableFormat, block: TextBlock) -> TableFormat:
    """The form with the decimal mark that this block has, if none was known so far."""
    delimiter = form.dialect.delimiter
    if form.dialect.decimal is not None or not (b"." in block.content or b"," in block.content):
        return form
    if delimiter == "," and b'"' not in block.content:
        return form.with_decimal(".")
    try:
        lines = split_lines(block.content.decode(), delimiter, block.first_line)
    except ValueError:
        return form  # the row by row reader says what is wrong
    read = (*form.columns.values, *(() if form.columns.time is None else (form.columns.time,)))
    rows = [[line.cells[k] for k in read if k < len(line.cells)] for line in lines if not line.is_comment]
    place = f"{form.title}, from line {block.first_line} on:"
    return form.with_decimal(detect_decimal(rows, delimiter, place))
