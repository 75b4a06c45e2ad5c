"""Parsing of blocks of rows: a fast path for plain numbers, and a slow one that locates the faulty cell.

The fast path is the C parser of NumPy, or of pyarrow where it is installed. It is used only for blocks without any
characters but those of plain numbers and ISO time stamps, and what either parser rejects is read again row by row, so
that both give the same array, bit by bit, or the same error.
"""

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, final

import numpy as np

from ltinet._util.floating_point import Array
from ltinet.errors import FileFormatError
from ltinet.tables.cells import (
    UNIT_PATTERN,
    Dialect,
    is_comment,
    is_gap,
    is_grouped,
    is_timestamp,
    number_text,
    quote_cell,
    remove_thousands,
    split_cells,
)
from ltinet.tables.format_detection import TableFormat, cell_count_message
from ltinet.tables.options import Gaps
from ltinet.tables.source import TextBlock, count_lines

_PLAIN = b"0123456789+-.eE \n"
_STAMPS = b"T:Zz/AaPpMm"
_POINT = "\x01"  # stands for a point where commas are decimal marks; no number has it
_LONGEST_STAMP = 44  # characters; longer than any stamp that can be parsed
_MIN_ARROW_BYTES = 1 << 18  # importing pyarrow takes as long as NumPy takes for a few million bytes


@final
@dataclass(frozen=True)
class ParsedRows:
    """Rows of a block up to its first fault, if there is one."""

    times: Array | list[str]
    """Numbers as written, or time stamps."""
    values: Array
    """`(rows, columns)`, NaN for gaps."""
    lines: list[int] | None
    """Line number of each row; None where the lines follow each other from `first_line`."""
    first_line: int
    fault: FileFormatError | None = None

    def line(self, row: int) -> int:
        """Return the line number of a row."""
        return self.first_line + row if self.lines is None else self.lines[row]


def parse_rows(block: TextBlock, form: TableFormat, gaps: Gaps) -> ParsedRows:
    """Parse the rows of a block by a C parser where possible, otherwise row by row."""
    return _parse_fast(block, form) or _parse_row_by_row(block, form, gaps)


# Fast path.


def _parse_fast(block: TextBlock, form: TableFormat) -> ParsedRows | None:
    """Parse the rows of a block by pyarrow or NumPy; return None if it must be read row by row."""
    columns, dialect = form.columns, form.dialect
    kept = sorted(columns.used)
    content = _select_cells(block.content, form, kept)
    stamps = [kept.index(k) for k in columns.times] if columns.is_stamped else []
    text = None if content is None else _plain_text(content, dialect, _STAMPS if stamps else b"")
    if text is None:
        return None
    table = None if stamps else _parse_by_arrow(text, dialect, len(kept))
    times: Array | list[str] = []
    if table is None:
        parsed = _parse_by_numpy(text, dialect, len(kept), stamps)
        if parsed is None:
            return None
        times, table = parsed
    if not np.isfinite(table).all() or len(table) != count_lines(block.content):  # blank lines shift line numbers
        return None
    if columns.time is not None and not stamps:
        times = np.ascontiguousarray(table[:, kept.index(columns.time)])
    places = [kept.index(k) for k in columns.values]
    first, last = (places[0], places[-1]) if places else (0, -1)
    in_order = places == list(range(first, last + 1))
    values = table[:, first : last + 1] if in_order else table[:, places]
    return ParsedRows(times, values, None, block.first_line)


def _select_cells(content: bytes, form: TableFormat, kept: Sequence[int]) -> bytes | None:
    """Return the rows with these columns only, None where the delimiter alone does not separate cells."""
    if len(kept) == form.n_columns:
        return content
    delimiter = form.dialect.delimiter.encode()
    if form.columns.empty or delimiter == b" " or any(mark in content for mark in (b'"', b"#", b"%")):
        return None
    rows = [line.split(delimiter) for line in content.rstrip(b"\n").split(b"\n")]
    if any(len(cells) != form.n_columns for cells in rows):
        return None
    return b"\n".join([delimiter.join([cells[k] for k in kept]) for cells in rows]) + b"\n"


def _parse_by_numpy(
    text: bytes, dialect: Dialect, n_columns: int, stamps: Sequence[int]
) -> tuple[list[str], Array] | None:
    """Return the columns of stamps as text in one, and a table `(rows, n_columns)` with zeros in their places."""
    if stamps and dialect.delimiter == " ":  # a blank may stand between date and time
        return None
    kinds = [(str(k), f"U{_LONGEST_STAMP}" if k in stamps else "f8") for k in range(n_columns)]
    delimiter = None if dialect.delimiter == " " else dialect.delimiter
    try:
        rows = np.loadtxt(text.decode("ascii").split("\n"), dtype=kinds, delimiter=delimiter, comments=None, ndmin=1)
    except ValueError:
        return None
    table = np.column_stack([np.zeros(len(rows)) if k in stamps else rows[str(k)] for k in range(n_columns)])
    parts = [[cell.strip().replace(_POINT, ".") for cell in rows[str(k)].tolist()] for k in stamps]
    if any(len(cell) >= _LONGEST_STAMP - 1 for part in parts for cell in part):
        return None
    cells = [" ".join(row) for row in zip(*parts, strict=True)]
    return (cells, table) if all(map(is_timestamp, cells)) else None


@cache
def import_pyarrow() -> Any:
    """Return the package pyarrow with its CSV reader, None where it is not installed."""
    if find_spec("pyarrow") is None:
        return None
    import pyarrow
    import pyarrow.csv

    return pyarrow


def _plain_text(content: bytes, dialect: Dialect, more: bytes) -> bytes | None:
    """Return the block with decimal points if it has only characters of plain numbers and `more`, otherwise None."""
    delimiter = dialect.delimiter.encode()
    if dialect.thousands is not None:
        return None
    if dialect.mark == ",":
        if delimiter == b"," or (b"." in content and not more) or _POINT.encode() in content:
            return None
        content = content.translate(bytes.maketrans(b".,", f"{_POINT}.".encode()))
        more += _POINT.encode()
    return content if not content.translate(None, _PLAIN + delimiter + more) and not content.isspace() else None


def _parse_by_arrow(content: bytes, dialect: Dialect, n_columns: int) -> Array | None:
    package = import_pyarrow() if len(content) >= _MIN_ARROW_BYTES else None
    if package is None or dialect.delimiter == " ":
        return None
    names = [str(k) for k in range(n_columns)]
    csv = package.csv
    types = dict.fromkeys(names, package.float64())
    try:
        parsed = csv.read_csv(
            io.BytesIO(content),
            read_options=csv.ReadOptions(column_names=names, use_threads=False, block_size=len(content) + 1),
            parse_options=csv.ParseOptions(delimiter=dialect.delimiter, quote_char=False),
            convert_options=csv.ConvertOptions(column_types=types, null_values=[], check_utf8=False),
        )
    except package.ArrowInvalid:
        return None
    table = np.empty((parsed.num_rows, n_columns))
    for place, column in enumerate(parsed.columns):
        if column.null_count:
            return None
        # Read from the buffers: to_numpy would import pandas, where that is installed, which takes a second.
        chunks = [
            np.frombuffer(chunk.buffers()[1], dtype=np.float64)[chunk.offset : chunk.offset + len(chunk)]
            for chunk in column.chunks
        ]
        table[:, place] = np.concatenate(chunks)
    return table


# Slow path.


def _parse_row_by_row(block: TextBlock, form: TableFormat, gaps: Gaps) -> ParsedRows:
    times: list[float | str] = []
    values: list[list[float]] = []
    lines: list[int] = []
    fault = None
    for number, line in enumerate(block.content.decode().split("\n"), block.first_line):
        if not line.strip() or is_comment(line):
            continue
        try:
            row = _parse_row(line, form, gaps, f"{form.title}, line {number}")
        except FileFormatError as error:
            fault = error
            break
        if row is not None:
            times.append(row[0])
            values.append(row[1])
            lines.append(number)
    table = np.array(values, dtype=np.float64).reshape(len(values), len(form.columns.values))
    is_stamped = form.columns.is_stamped
    column = [str(stamp) for stamp in times] if is_stamped else np.array(times, dtype=np.float64)
    return ParsedRows(column, table, lines, block.first_line, fault)


def _parse_row(line: str, form: TableFormat, gaps: Gaps, place: str) -> tuple[float | str, list[float]] | None:
    """Return the time and the values of a line; None for delimiters only, which spreadsheets append."""
    try:
        cells = split_cells(line, form.dialect.delimiter)
    except ValueError:
        raise FileFormatError(f"{place}: this is not CSV: a quote is opened and not closed in this line") from None
    if len(cells) > 1 and not any(cells):
        return None
    columns = form.columns
    if len(cells) != form.n_columns:
        raise FileFormatError(cell_count_message(place, cells, len(columns.names)))
    for column in columns.empty:
        if cells[column]:
            raise FileFormatError(
                f"{place} has {quote_cell(cells[column])} in column {column + 1}, which has no name; name it"
            )
    time: float | str = 0.0
    if columns.time is not None:
        time = _parse_time([cells[k] for k in columns.times], form, place, columns.names[columns.time])
    return time, [_parse_value(cells[k], form.dialect, gaps, place, columns.names[k]) for k in columns.values]


def _parse_time(parts: Sequence[str], form: TableFormat, place: str, name: str) -> float | str:
    """Return a number, or a stamp of which date and time of day may be in two cells."""
    for part in filter(is_gap, parts):
        raise FileFormatError(
            f"{_where(place, name)}: {_describe_gap(part)}; every row needs its time: fill it or remove the line"
        )
    cell = " ".join(parts)
    if not form.columns.is_stamped:
        return _parse_number(cell, form.dialect, place, name)
    if not is_timestamp(cell):
        raise FileFormatError(
            f"{_where(place, name)}: {quote_cell(cell)} is not a time in ISO 8601, as in 2024-05-01T12:00:00Z"
        )
    return cell


def _parse_value(cell: str, dialect: Dialect, gaps: Gaps, place: str, name: str) -> float:
    if not is_gap(cell):
        return _parse_number(cell, dialect, place, name)
    if gaps == "error":
        raise FileFormatError(
            f"{_where(place, name)}: {_describe_gap(cell)}; fill gaps with "
            'gaps="hold" (the last value) or gaps="linear", leave such rows out of measurements with gaps="split", or '
            'leave the column out by choosing others with columns="…"'
        )
    return math.nan


def _where(place: str, name: str) -> str:
    return f"{place}, column {quote_cell(name)}"


def _describe_gap(cell: str) -> str:
    return f"{quote_cell(cell)} is not a number" if cell else "the cell is empty"


def _parse_number(cell: str, dialect: Dialect, place: str, name: str) -> float:
    text = number_text(remove_thousands(cell, dialect.thousands), dialect.mark)
    if text is None:
        raise FileFormatError(
            f"{_where(place, name)}: {quote_cell(cell)} is not a real number{_number_hint(cell, dialect)}"
        )
    number = float(text)
    if not math.isfinite(number):
        raise FileFormatError(f"{_where(place, name)}: the number is not finite; the largest is 1.8e308")
    return number


def _number_hint(cell: str, dialect: Dialect) -> str:
    """Return a remedy for a cell that is not a number: another decimal mark, or a separator of thousands."""
    mark = next((sign for sign in cell if sign in ".,' "), "")
    if is_grouped(cell) and (mark in "' " or ("." in cell and "," in cell) or cell.count(dialect.mark) != 1):
        return f'; if {mark!r} separates thousands, give thousands="{mark}"'
    other = "," if dialect.mark == "." else "."
    if number_text(cell, other) is not None:
        return f'; the decimal mark is {dialect.mark!r} here: if it is {other!r}, give decimal="{other}"'
    if cell.casefold().lstrip("+-") in ("inf", "infinity"):
        return ": the number is not finite"
    if UNIT_PATTERN.fullmatch(cell):
        return "; leave the number alone in its cell, and put what stands beside it into the header"
    return (
        '; correct it, or empty the cell and choose with gaps="…" how gaps are filled; if the line is not a row of the '
        "table, remove it"
    )
