"""A table as arrays, and the door through which one is read."""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, final

import numpy as np

from ltinet.arrays import Array
from ltinet.errors import FileFormatError
from ltinet.shown import count_of, shown_path
from ltinet.tables.frames import arrays_of_frame, is_frame
from ltinet.tables.options import Column, Gaps, TableOptions, checked
from ltinet.tables.reading import Chunk, Reading


@final
@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Times t `(T,)` and values `(T, k)`, one column for each of the names."""

    t: Array
    """Times, in seconds where the table says what they are in or has stamps, and as they stand otherwise."""
    values: Array
    names: tuple[str, ...]
    start: datetime | None
    """The moment that times are counted from, where they were stamps."""
    remarks: tuple[str, ...]
    """What was done to the table: lines left out, units changed, gaps filled."""

    def __repr__(self) -> str:
        return f"Table({count_of(len(self.t), 'row')}, names={list(self.names)!r})"


def read_table(  # noqa: PLR0913 - every option is a keyword of this one door
    source: str | PathLike[str] | BinaryIO | Any,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    header: bool | None = None,
    time: Column | None = None,
    time_unit: str | None = None,
    zone: str | None = None,
    dt: float | None = None,
    gaps: Gaps = "error",
    columns: Sequence[Column] | Column | None = None,
    encoding: str = "utf-8",
) -> Table:
    """Read a table of samples as loggers, spreadsheets and other programs write them; nothing is guessed.

    Found by itself: what separates columns and marks decimals, the header and a row of units below it, comments (# or
    %), the column of times by its name or its ISO 8601 stamps, units of time in its name. What can be read in two ways
    is refused, with the option that decides.

    Args:
        source: a path, a stream of bytes, or a pandas DataFrame or Series, its index the times unless `time` names one.
        delimiter: "," ";" "|" "tab" or "space".
        decimal: "." or ",".
        thousands: what separates thousands, which are refused without it.
        header: False if there is none, True if the first row is one though it looks like numbers.
        time: the column of times, by name or by number from 1.
        time_unit: what times are in, whatever the header says: s, ms, us, ns, min, h or d; they become seconds.
        zone: the zone of stamps that have none: "UTC", "+01:00", "Europe/Berlin".
        dt: the step of evenly spaced rows, instead of a column of times.
        gaps: what to do with cells without a value: "error", fill them by "hold" (the last value) or "linear" (lines
            between values), or "split": they are NaN, at which `identify` and `fit` split a record.
        columns: the columns of values, by name or number, in the order in which they are wanted; all if left out.
        encoding: of the text.

    Raises:
        FileFormatError: there is no such table, or more than one way to read it; the message names the line.
    """
    options = checked(
        TableOptions(
            delimiter, decimal, thousands, header, time, time_unit, zone, dt, gaps, encoding=encoding
        ).with_columns(columns)
    )
    if is_frame(source):
        return Table(*arrays_of_frame(source, options))
    with opened(source) as (stream, title):
        return gathered(Reading(stream, title=title, options=options))


def gathered(reading: Reading, watched: Callable[[Iterable[Chunk]], Iterable[Chunk]] = lambda chunks: chunks) -> Table:
    """All that is left of a table; `watched` sees the chunks as they come."""
    chunks = list(watched(reading.chunks()))
    t = np.concatenate([chunk.t for chunk in chunks])
    values = np.concatenate([chunk.values for chunk in chunks])
    return Table(t, values, reading.names, reading.start, reading.remarks)


@contextmanager
def opened(source: str | PathLike[str] | BinaryIO) -> Iterator[tuple[BinaryIO, str]]:
    """A stream of bytes, and what to call it."""
    if not isinstance(source, str | PathLike):
        if not hasattr(source, "read"):
            raise FileFormatError(
                f"a {type(source).__name__} is no table; give a path, a stream of bytes, a DataFrame or a Series"
            )
        if isinstance(source, io.TextIOBase):
            raise FileFormatError("the stream is one of text; give one of bytes, as open(path, 'rb') does")
        yield source, shown_path(getattr(source, "name", "the stream"))
        return
    path, title = Path(source), shown_path(source)
    if path.is_dir():
        raise FileFormatError(f"{title} is a folder, not a table")
    try:
        stream = path.open("rb")
    except FileNotFoundError:
        raise FileFormatError(f"there is no file {title}") from None
    except OSError as error:
        raise FileFormatError(f"{title} cannot be read: {error.strerror or error}") from None
    with stream:
        yield stream, title
