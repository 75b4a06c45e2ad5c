"""Tables of samples as arrays, and their exchange with pandas.

`read_table` reads text files, streams and DataFrames. pandas is imported only when a DataFrame is requested.
"""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, final

import numpy as np

from ltinet._util.floating_point import Array
from ltinet._util.text import format_count, format_path
from ltinet.errors import FileFormatError, MissingDependencyError
from ltinet.tables.cells import quote_cell
from ltinet.tables.format_detection import KNOWN_UNITS_TEXT, column_position
from ltinet.tables.options import Column, Gaps, TableOptions, validate_options
from ltinet.tables.reading import GapFiller, Samples, TableChunk, TableReader
from ltinet.tables.timestamps import in_seconds, is_time_name, refuse_epoch_numbers, unit_of, unit_text

# MERGED ltinet.tables.table
# pandas in and out: DataFrames as tables, samples as DataFrames. pandas is imported only when a frame is asked for.

_TITLE = "the DataFrame"


def is_data_frame(source: object) -> bool:
    """Whether it is a DataFrame or a Series, of pandas or in its manner."""
    return hasattr(source, "index") and hasattr(source, "to_numpy") and hasattr(source, "iloc")


def to_data_frame(t: Array, values: Array, names: Sequence[str]) -> Any:
    """A DataFrame with the times as its index, called t.

    Raises:
        MissingDependencyError: pandas is not installed.
        FileFormatError: the values are a batch, for which a frame has no place.
    """
    try:
        import pandas as pd
    except ImportError:
        raise MissingDependencyError("DataFrames need pandas; install ltinet[tables]") from None
    if values.ndim > 2 and values.size != values.shape[-2] * values.shape[-1]:
        raise FileFormatError(
            f"a batch of shape {values.shape} has no place in a DataFrame; take one of it, of responses by choosing an "
            "input, as in step_response(input=0)"
        )
    return pd.DataFrame(values.reshape(values.shape[-2:]), index=pd.Index(t, name="t"), columns=list(names))


def arrays_from_frame(frame: Any, options: TableOptions) -> tuple[Array, Array, tuple[str, ...], Any, tuple[str, ...]]:
    """Times, values, names, the moment that times are counted from, and notes.

    The index has the times unless an option names a column or a step; an index that only counts the rows does not, and
    a column with the name of a time is taken instead.

    Raises:
        FileFormatError: there are no times, or columns hold no numbers.
    """
    if not hasattr(frame, "columns"):  # a Series
        frame = frame.to_frame("u1" if frame.name is None else frame.name)
    names = [str(name) for name in frame.columns]
    time = _time_column(frame, names, options)
    notes: tuple[str, ...] = ()
    if options.dt is not None:
        t, start = options.dt * np.arange(len(frame), dtype=np.float64), None
    elif time is None:
        t, start, notes = _times(frame.index, str(frame.index.name or ""), options)
    else:
        t, start, notes = _times(frame.iloc[:, time], names[time], options)
    chosen = _chosen(names, time, options)
    values = _numbers(frame, names, chosen)
    _refuse_disorder(t)
    own = tuple(names[place] for place in chosen)
    gaps = GapFiller(options.gaps, own, _TITLE)
    if options.gaps == "error" and np.isnan(values).any():
        row, column = np.argwhere(np.isnan(values))[0].tolist()
        raise FileFormatError(
            f"{_TITLE}, row {row}, column {quote_cell(own[column])} is a gap; to fill gaps say how, "
            'gaps="hold" (the last value) or gaps="linear"; gaps="split" leaves them as NaN'
        )
    filled = gaps.fill(Samples(t, values, np.arange(len(t))))
    gaps.finish()
    return filled.t, filled.values, own, start, (*notes, *gaps.told())


def _time_column(frame: Any, names: Sequence[str], options: TableOptions) -> int | None:
    """The place of the column of times, None for the index."""
    if options.time is not None:
        return column_position(options.time, names, "time", _TITLE)
    counts_rows = type(frame.index).__name__ == "RangeIndex" and not is_time_name(str(frame.index.name or ""))
    if options.dt is not None or not counts_rows:
        return None
    found = [place for place, name in enumerate(names) if is_time_name(name)]
    if len(found) == 1:
        return found[0]
    raise FileFormatError(
        f"{_TITLE} has {len(found)} columns that are called as times are, and its index only counts rows; set the "
        'times as its index, or name a column, as in time="t"'
    )


def _chosen(names: Sequence[str], time: int | None, options: TableOptions) -> list[int]:
    """The places of the columns of values; two of one name are chosen by their numbers only."""
    if options.columns is not None:
        return [column_position(column, names, "columns", _TITLE) for column in options.columns]
    is_even = options.dt is not None
    found = [k for k, name in enumerate(names) if k != time and not (is_even and is_time_name(name))]
    for place in found:
        if names.count(names[place]) > 1:
            raise FileFormatError(
                f"{_TITLE}: more than one column is called {quote_cell(names[place])}; say by numbers which to take, "
                f'as in columns="{place + 1}"'
            )
    return found


def _times(values: Any, name: str, options: TableOptions) -> tuple[Array, Any, tuple[str, ...]]:
    kind = str(values.dtype)
    if values.isna().any():
        raise FileFormatError(f"{_TITLE}, row {int(np.argmax(values.isna()))} has no time; remove the row")
    if not len(values):
        raise FileFormatError(f"{_TITLE} has no rows; at least one is needed")
    if kind.startswith("datetime64"):
        stamps = values.to_numpy(dtype="datetime64[ns]").astype(np.int64)
        first = values[0] if not hasattr(values, "iloc") else values.iloc[0]
        return (stamps - stamps[0]) / 1e9, first.to_pydatetime(warn=False), ("times counted in seconds from the first",)
    if kind.startswith("timedelta64"):
        spans = np.asarray(values.to_numpy(), dtype="timedelta64[ns]").astype(np.int64)
        return spans / 1e9, None, ()
    if values.dtype.kind not in "iuf":
        raise FileFormatError(
            f"{_TITLE}: times of type {kind} are not known; give numbers, or pandas.to_datetime of them"
        )
    text = options.time_unit or unit_text(name)
    unit = None if text is None else unit_of(text)
    if text is not None and unit is None:
        raise FileFormatError(
            f'{_TITLE}: the unit {quote_cell(text)} is not known; give time_unit="s" ({KNOWN_UNITS_TEXT})'
        )
    factor, divisor = (1.0, 1.0) if unit is None else in_seconds(unit)
    notes = () if unit in (None, "s") else (f"times in {unit} brought to seconds",)
    t = np.asarray(values.to_numpy(), dtype=np.float64) * factor / divisor
    if text is None:
        refuse_epoch_numbers(float(t[0]), f"{_TITLE}, row 0")
    return t, None, notes


def _numbers(frame: Any, names: Sequence[str], chosen: Sequence[int]) -> Array:
    values = np.empty((len(frame), len(chosen)))
    for place, column in enumerate(chosen):
        own = frame.iloc[:, column]
        if getattr(own.dtype, "kind", "O") not in "biuf":
            raise FileFormatError(
                f"{_TITLE}: the column {quote_cell(names[column])} holds {own.dtype}, not numbers; leave it out with "
                'columns="…" or convert it with pandas.to_numeric'
            )
        values[:, place] = own.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.isinf(values).any():
        raise FileFormatError(f"{_TITLE}, row {np.argwhere(np.isinf(values))[0, 0]} has a number that is not finite")
    return values


def _refuse_disorder(t: Array) -> None:
    descends = t[1:] < t[:-1]
    if descends.any():
        raise FileFormatError(
            f"{_TITLE}, row {int(np.argmax(descends)) + 1}: times must not descend; sort the frame first"
        )


# MERGED ltinet.tables.table
# A table as arrays, and the door through which one is read.


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
    notes: tuple[str, ...]
    """What was done to the table: lines left out, units changed, gaps filled."""

    def __repr__(self) -> str:
        return f"Table({format_count(len(self.t), 'row')}, names={list(self.names)!r})"


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
    options = validate_options(
        TableOptions(
            delimiter, decimal, thousands, header, time, time_unit, zone, dt, gaps, encoding=encoding
        ).with_columns(columns)
    )
    if is_data_frame(source):
        return Table(*arrays_from_frame(source, options))
    with open_source(source) as (stream, title):
        return collect_table(TableReader(stream, title=title, options=options))


def collect_table(
    reading: TableReader, watched: Callable[[Iterable[TableChunk]], Iterable[TableChunk]] = lambda chunks: chunks
) -> Table:
    """All that is left of a table; `watched` sees the chunks as they come."""
    chunks = list(watched(reading.chunks()))
    t = np.concatenate([chunk.t for chunk in chunks])
    values = np.concatenate([chunk.values for chunk in chunks])
    return Table(t, values, reading.names, reading.start, reading.notes)


@contextmanager
def open_source(source: str | PathLike[str] | BinaryIO) -> Iterator[tuple[BinaryIO, str]]:
    """A stream of bytes, and what to call it."""
    if not isinstance(source, str | PathLike):
        if not hasattr(source, "read"):
            raise FileFormatError(
                f"a {type(source).__name__} is no table; give a path, a stream of bytes, a DataFrame or a Series"
            )
        if isinstance(source, io.TextIOBase):
            raise FileFormatError("the stream is one of text; give one of bytes, as open(path, 'rb') does")
        yield source, format_path(getattr(source, "name", "the stream"))
        return
    path, title = Path(source), format_path(source)
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
