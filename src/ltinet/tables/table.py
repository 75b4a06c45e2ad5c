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
from ltinet._util.text import format_count, format_path, install_hint
from ltinet.errors import FileFormatError, MissingDependencyError
from ltinet.tables.cells import quote_cell
from ltinet.tables.format_detection import column_position, detect_time_unit, reject_repeated_name, unused_times
from ltinet.tables.options import Column, Gaps, TableOptions, validate_options
from ltinet.tables.reading import GapFiller, Samples, TableChunk, TableReader
from ltinet.tables.timestamps import is_time_name, reject_epoch_numbers, to_seconds_factors

_TITLE = "the DataFrame"


@final
@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Table of samples, one column of values for each name.

    Parameters
    ----------
    t
        Times `(T,)`, in seconds where their unit is known or they are stamps, and as they stand otherwise.
    values
        Values `(T, k)`.
    names
        Names of the values.
    start
        Origin of the times, where they were stamps.
    notes
        Changes made to the table: lines left out, units converted, gaps filled.
    time_unit
        Unit of t for the axes of plots: "s" where the unit of the times is known or they were stamps.

    """

    t: Array
    values: Array
    names: tuple[str, ...]
    start: datetime | None
    notes: tuple[str, ...]
    time_unit: str | None = None

    def __repr__(self) -> str:
        return f"Table({format_count(len(self.t), 'row')}, names={list(self.names)!r})"


def read_table(  # noqa: PLR0913 - one keyword for each option
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
    day_first: bool | None = None,
) -> Table:
    """Read a table of samples from a CSV file, a stream or a DataFrame.

    The delimiter, the decimal mark, the header with a row of units below it, comments (# or %), the time column (by
    its name or its dates with times of day) and the unit of time are detected. A table that can be read in more than one way
    is rejected with an error that names the deciding option.

    Parameters
    ----------
    source
        Path, binary stream, or pandas DataFrame or Series, whose index holds the times unless `time` names a column.
    delimiter
        "," ";" "|" "tab" or "space".
    decimal
        Decimal mark, "." or ",".
    thousands
        Separator of thousands; numbers with separators are rejected without it.
    header
        False if there is no header, True if the first row is one although it looks like numbers.
    time
        Time column, by name (a unit at its end may be left out) or by number from 1. A column called "T" is taken for
        a temperature unless it is named here.
    time_unit
        Unit of the times, whatever the header says: s, ms, us, ns, min, h or d; they are converted to seconds.
    zone
        Zone of time stamps without one: "UTC", "+01:00", "Europe/Berlin".
    dt
        Step of evenly spaced rows, a number or its text, instead of a time column.
    gaps
        Treatment of cells without a value: "error", filling by "hold" (the last value) or "linear" (interpolation), or
        "split", which leaves NaN, at which `identify` and `fit` split a record.
    columns
        Value columns, by name or number, in the requested order; all by default. Other columns may hold anything.
    encoding
        Encoding of the text.
    day_first
        Order of day and month in dates such as 01.03.2026 or 3/1/2026: True for 1 March of the first, False for
        3 January. By default decided by a day above 12 among the first rows; other dates are rejected.

    Returns
    -------
    Table
        Times, values, names and notes on what was changed.

    Raises
    ------
    FileFormatError
        If there is no table, or more than one way to read it; the message names the line.

    """
    given = TableOptions(
        delimiter, decimal, thousands, header, time, time_unit, zone, dt, gaps, encoding=encoding, day_first=day_first
    )
    options = validate_options(given.with_columns(columns))
    if all(
        hasattr(source, name) for name in ("index", "to_numpy", "iloc")
    ):  # a DataFrame or a Series, or one like them
        return _table_from_frame(source, options)
    with open_source(source) as (stream, title):
        return collect_table(TableReader(stream, title=title, options=options))


def collect_table(
    reader: TableReader, observe: Callable[[Iterable[TableChunk]], Iterable[TableChunk]] = lambda chunks: chunks
) -> Table:
    """Read all chunks of a table; `observe` wraps the iterator over them, for a progress display."""
    chunks = list(observe(reader.chunks()))
    t = np.concatenate([chunk.t for chunk in chunks])
    values = np.concatenate([chunk.values for chunk in chunks])
    return Table(t, values, reader.names, reader.start, reader.notes, reader.time_unit)


@contextmanager
def open_source(source: str | PathLike[str] | BinaryIO) -> Iterator[tuple[BinaryIO, str]]:
    """Open a source as a binary stream, and yield it with its name for messages."""
    if not isinstance(source, str | PathLike):
        if not hasattr(source, "read"):
            raise FileFormatError(
                f"a {type(source).__name__} is not a table; give a path, a binary stream, a DataFrame or a Series"
            )
        if isinstance(source, io.TextIOBase):
            raise FileFormatError("the stream is a text stream; give a binary one, as open(path, 'rb') does")
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


# pandas.


def to_data_frame(t: Array, values: Array, names: Sequence[str]) -> Any:
    """Return a DataFrame with the times as its index, called t.

    Raises MissingDependencyError without pandas, and FileFormatError for a batch of signals.
    """
    try:
        import pandas as pd
    except ImportError:
        raise MissingDependencyError(f"DataFrames need pandas; {install_hint('tables')}") from None
    if values.ndim > 2 and values.size != values.shape[-2] * values.shape[-1]:
        raise FileFormatError(
            f"a batch of shape {values.shape} does not fit a DataFrame; select one signal of it, of responses one "
            "input, as in step_response(input=0)"
        )
    return pd.DataFrame(values.reshape(values.shape[-2:]), index=pd.Index(t, name="t"), columns=list(names))


def _table_from_frame(frame: Any, options: TableOptions) -> Table:
    """Return the table of a DataFrame or a Series.

    The times are the index unless an option names a column or a step; where the index only counts the rows, a column
    with the name of a time is taken. Raises FileFormatError where there are no times, or columns are not numeric.
    """
    if not hasattr(frame, "columns"):  # a Series
        frame = frame.to_frame("u1" if frame.name is None else frame.name)
    names = [str(name) for name in frame.columns]
    time = _time_column(frame, names, options)
    notes: tuple[str, ...] = ()
    time_unit = None
    if options.dt is not None:
        t, start = options.dt * np.arange(len(frame), dtype=np.float64), None
        notes = tuple(unused_times([*names, str(frame.index.name or "")], options.dt))
    else:
        times, title = (frame.index, frame.index.name or "") if time is None else (frame.iloc[:, time], names[time])
        t, start, time_unit, notes = _convert_times(times, str(title), options)
    chosen = _value_columns(names, time, options)
    values = _values(frame, names, chosen)
    descends = t[1:] < t[:-1]
    if descends.any():
        raise FileFormatError(
            f"{_TITLE}, row {int(np.argmax(descends)) + 1}: times must not descend; sort the frame first"
        )
    value_names = tuple(names[place] for place in chosen)
    gaps = GapFiller(options.gaps, value_names, _TITLE)
    if options.gaps == "error" and np.isnan(values).any():
        row, column = np.argwhere(np.isnan(values))[0].tolist()
        raise FileFormatError(
            f"{_TITLE}, row {row}, column {quote_cell(value_names[column])} is a gap; fill gaps with "
            'gaps="hold" (the last value) or gaps="linear", or leave them as NaN with gaps="split"'
        )
    filled = gaps.fill(Samples(t, values, np.arange(len(t))))
    gaps.finish()
    return Table(filled.t, filled.values, value_names, start, (*notes, *gaps.notes), time_unit)


def _time_column(frame: Any, names: Sequence[str], options: TableOptions) -> int | None:
    """Return the position of the time column, None for the index."""
    if options.time is not None:
        return column_position(options.time, names, "time", _TITLE)
    counts_rows = type(frame.index).__name__ == "RangeIndex" and not is_time_name(str(frame.index.name or ""))
    if options.dt is not None or not counts_rows:
        return None
    times = [place for place, name in enumerate(names) if is_time_name(name)]
    if len(times) == 1:
        return times[0]
    raise FileFormatError(
        f"{_TITLE} has {len(times)} columns with the name of a time, and its index only counts rows; set the "
        'times as its index, or name a column, as in time="t"'
    )


def _value_columns(names: Sequence[str], time: int | None, options: TableOptions) -> list[int]:
    """Return the positions of the value columns; those with a common name can be chosen by number only."""
    if options.columns is not None:
        return [column_position(column, names, "columns", _TITLE) for column in options.columns]
    is_even = options.dt is not None
    chosen = [k for k, name in enumerate(names) if k != time and not (is_even and is_time_name(name))]
    for place in chosen:
        reject_repeated_name(place, names, _TITLE)
    return chosen


def _convert_times(
    values: Any, name: str, options: TableOptions
) -> tuple[Array, datetime | None, str | None, tuple[str, ...]]:
    """Return times, in seconds where their unit is known, their origin where they are stamps, "s" or None, and notes."""
    kind = str(values.dtype)
    if values.isna().any():
        raise FileFormatError(f"{_TITLE}, row {int(np.argmax(values.isna()))} has no time; remove the row")
    if not len(values):
        raise FileFormatError(f"{_TITLE} has no rows; at least one is needed")
    if kind.startswith("datetime64"):
        stamps = values.to_numpy(dtype="datetime64[ns]").astype(np.int64)
        first = values[0] if not hasattr(values, "iloc") else values.iloc[0]
        note = "times counted in seconds from the first"
        return (stamps - stamps[0]) / 1e9, first.to_pydatetime(warn=False), "s", (note,)
    if kind.startswith("timedelta64"):
        spans = np.asarray(values.to_numpy(), dtype="timedelta64[ns]").astype(np.int64)
        return spans / 1e9, None, "s", ()
    if values.dtype.kind not in "iuf":
        raise FileFormatError(
            f"{_TITLE}: times of type {kind} are not supported; give numbers, or pandas.to_datetime of them"
        )
    unit = detect_time_unit(name, "", options, _TITLE)
    factor, divisor = (1.0, 1.0) if unit is None else to_seconds_factors(unit)
    notes = () if unit in (None, "s") else (f"times in {unit} brought to seconds",)
    t = np.asarray(values.to_numpy(), dtype=np.float64) * factor / divisor
    if unit is None:
        reject_epoch_numbers(float(t[0]), f"{_TITLE}, row 0")
    return t, None, None if unit is None else "s", notes


def _values(frame: Any, names: Sequence[str], chosen: Sequence[int]) -> Array:
    values = np.empty((len(frame), len(chosen)))
    for place, number in enumerate(chosen):
        column = frame.iloc[:, number]
        if getattr(column.dtype, "kind", "O") not in "biuf":
            raise FileFormatError(
                f"{_TITLE}: the column {quote_cell(names[number])} holds {column.dtype}, not numbers; leave it out with "
                'columns="…" or convert it with pandas.to_numeric'
            )
        values[:, place] = column.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.isinf(values).any():
        raise FileFormatError(f"{_TITLE}, row {np.argwhere(np.isinf(values))[0, 0]} has a number that is not finite")
    return values
