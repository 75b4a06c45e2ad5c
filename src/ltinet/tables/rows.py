"""Parsing of blocks of rows: a fast path for plain numbers, and a slow one that locates the faulty cell.

The fast path is the C parser of NumPy, or of pyarrow where it is installed. It is used only for blocks without any
characters but those of plain numbers and ISO time stamps, and what either parser refuses is read again row by row, so
that both give the same array, bit by bit, or the same error.
"""

import io
import math
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, final

import numpy as np

from ltinet._util.floating_point import Array
from ltinet.errors import FileFormatError
from ltinet.tables.cells import (
    Dialect,
    has_a_unit,
    is_comment,
    is_gap,
    is_grouped,
    is_timestamp,
    number_text,
    quote_cell,
    split_cells,
    without_thousands,
)
from ltinet.tables.format_detection import TableFormat, cell_count_message
from ltinet.tables.options import Gaps
from ltinet.tables.source import TextBlock, count_lines

# MERGED ltinet.tables.rows
# Plain blocks of numbers by a parser in C: NumPy's, or pyarrow's where it is installed.
#
# Both are asked only for blocks that have no signs but those of plain numbers, and what either refuses is read again row
# by row, which decides: so both give the same array, bit by bit, or the same refusal.

_PLAIN = b"0123456789+-.eE \n"
_STAMPS = b"T:Zz"
_LONGEST_STAMP = 44
_WORTH_ARROW = 1 << 18  # bytes; to import it takes as long as NumPy takes for a few million


def parse_plain(content: bytes, dialect: Dialect, n_columns: int) -> Array | None:
    """All cells `(rows, n_columns)` of a block; None if it must be read row by row."""
    ready = _prepared(content, dialect, b"")
    if ready is None:
        return None
    table = _by_arrow(ready, dialect, n_columns) if len(ready) >= _WORTH_ARROW else None
    if table is None:
        table = _by_numpy(ready, dialect, n_columns)
    return table if table is not None and np.isfinite(table).all() else None


def parse_stamped(content: bytes, dialect: Dialect, n_columns: int, time: int) -> tuple[list[str], Array] | None:
    """The column of stamps as text and all others as numbers; None if it must be read row by row.

    The table `(rows, n_columns)` has zeros where the stamps are.
    """
    ready = _prepared(content, dialect, _STAMPS)
    if ready is None or dialect.delimiter == " " or n_columns < 2:
        return None
    kinds = [(str(k), f"U{_LONGEST_STAMP}" if k == time else "f8") for k in range(n_columns)]
    try:
        found = np.loadtxt(_lines(ready), dtype=kinds, delimiter=dialect.delimiter, comments=None, ndmin=1)
    except ValueError:
        return None
    stamps = [stamp.strip() for stamp in found[str(time)].tolist()]
    table = np.column_stack([np.zeros(len(found)) if k == time else found[str(k)] for k in range(n_columns)])
    if not np.isfinite(table).all() or any(len(stamp) >= _LONGEST_STAMP - 1 for stamp in stamps):
        return None
    return stamps, table


@cache
def import_pyarrow() -> Any:
    """The package pyarrow with its parts for tables, None where it is not installed."""
    if find_spec("pyarrow") is None:
        return None
    import pyarrow
    import pyarrow.csv

    return pyarrow


def _prepared(content: bytes, dialect: Dialect, more: bytes) -> bytes | None:
    """The block with decimal points, if it has nothing but plain numbers; None otherwise."""
    delimiter = dialect.delimiter.encode()
    allowed = _PLAIN + delimiter + more
    if dialect.mark == ",":
        if delimiter == b"," or b"." in content or dialect.thousands is not None:
            return None
        content = content.replace(b",", b".")
    elif dialect.thousands is not None:
        return None
    return content if not content.translate(None, allowed) and not content.isspace() else None


def _lines(content: bytes) -> list[str]:
    return content.decode("ascii").split("\n")


def _by_numpy(content: bytes, dialect: Dialect, n_columns: int) -> Array | None:
    delimiter = None if dialect.delimiter == " " else dialect.delimiter
    try:
        table = np.loadtxt(_lines(content), delimiter=delimiter, comments=None, ndmin=2)
    except ValueError:
        return None
    return table if table.shape[1] == n_columns else None


def _by_arrow(content: bytes, dialect: Dialect, n_columns: int) -> Array | None:
    package = import_pyarrow()
    if package is None or dialect.delimiter == " ":
        return None
    names = [str(k) for k in range(n_columns)]
    csv = package.csv
    try:
        found = csv.read_csv(
            io.BytesIO(content),
            read_options=csv.ReadOptions(column_names=names, use_threads=False, block_size=len(content) + 1),
            parse_options=csv.ParseOptions(delimiter=dialect.delimiter, quote_char=False),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(names, package.float64()), null_values=[], check_utf8=False
            ),
        )
    except package.ArrowInvalid:
        return None
    table = np.empty((found.num_rows, n_columns))
    for place, column in enumerate(found.columns):
        if column.null_count:
            return None
        # By its buffers: to_numpy would import pandas, where that is installed, which takes a second.
        chunks = [
            np.frombuffer(chunk.buffers()[1], dtype=np.float64)[chunk.offset : chunk.offset + len(chunk)]
            for chunk in column.chunks
        ]
        table[:, place] = np.concatenate(chunks)
    return table


# MERGED ltinet.tables.rows
# A block read row by row: slower than a parser in C, and able to say which cell of which line is at fault.


@final
@dataclass(frozen=True)
class ParsedRows:
    """Rows up to the first fault of a block, if there is one."""

    times: Array | list[str]
    """Numbers as they were written, or stamps."""
    values: Array
    """`(rows, columns)`, NaN for gaps."""
    lines: list[int] | None
    """The number of the line of each row; None where lines follow each other from `first_line`."""
    first_line: int
    fault: FileFormatError | None = None

    def line(self, row: int) -> int:
        """The number of a row's line."""
        return self.first_line + row if self.lines is None else self.lines[row]


def parse_rows(block: TextBlock, form: TableFormat, gaps: Gaps) -> ParsedRows:
    """The rows of a block, by the fastest way that can read them."""
    return _plain(block, form) or _one_by_one(block, form, gaps)


def _plain(block: TextBlock, form: TableFormat) -> ParsedRows | None:
    columns, n_columns = form.columns, form.n_columns
    times: Array | list[str] = []
    if columns.is_stamped and columns.time is not None:
        found = parse_stamped(block.content, form.dialect, n_columns, columns.time)
        if found is None:
            return None
        times, table = found
    else:
        numbers = parse_plain(block.content, form.dialect, n_columns)
        if numbers is None:
            return None
        table = numbers
        if columns.time is not None:
            times = np.ascontiguousarray(table[:, columns.time])
    if len(table) != count_lines(
        block.content
    ):  # there are blank lines, so that rows do not tell the numbers of their lines
        return None
    first, last = (columns.values[0], columns.values[-1]) if columns.values else (0, -1)
    in_order = columns.values == tuple(range(first, last + 1))
    return ParsedRows(
        times, table[:, first : last + 1] if in_order else table[:, columns.values], None, block.first_line
    )


def _one_by_one(block: TextBlock, form: TableFormat, gaps: Gaps) -> ParsedRows:
    times: list[float | str] = []
    values: list[list[float]] = []
    lines: list[int] = []
    fault = None
    for number, line in enumerate(block.content.decode().split("\n"), block.first_line):
        if not line.strip() or is_comment(line):
            continue
        try:
            row = _row(line, form, gaps, f"{form.title}, line {number}")
        except FileFormatError as error:
            fault = error
            break
        if row is not None:
            times.append(row[0])
            values.append(row[1])
            lines.append(number)
    table = np.array(values, dtype=np.float64).reshape(len(values), len(form.columns.values))
    stamps = [str(stamp) for stamp in times]
    read = stamps if form.columns.is_stamped else np.array(times, dtype=np.float64)
    return ParsedRows(read, table, lines, block.first_line, fault)


def _row(line: str, form: TableFormat, gaps: Gaps, place: str) -> tuple[float | str, list[float]] | None:
    """The time and the values of a line; None for a line of nothing but delimiters, as spreadsheets append them."""
    try:
        cells = split_cells(line, form.dialect.delimiter)
    except ValueError:
        raise FileFormatError(f"{place}: this is not CSV: a quote is opened and not closed in this line") from None
    if len(cells) > 1 and not any(cells):
        return None
    if len(cells) != form.n_columns:
        raise FileFormatError(cell_count_message(place, cells, form.columns.names))
    columns = form.columns
    for column in columns.empty:
        if cells[column]:
            raise FileFormatError(
                f"{place} has {quote_cell(cells[column])} in column {column + 1}, which has no name; name it"
            )
    time: float | str = 0.0
    if columns.time is not None:
        where = f"{place}, column {quote_cell(columns.names[columns.time])}"
        time = _time(cells[columns.time], form, where)
    return time, [_value(cells[k], form.dialect, gaps, place, columns.names[k]) for k in columns.values]


def _time(cell: str, form: TableFormat, where: str) -> float | str:
    if is_gap(cell):
        raise FileFormatError(f"{where}: {_emptiness(cell)}; every row needs its time: fill it or remove the line")
    if not form.columns.is_stamped:
        return _number(cell, form.dialect, where)
    if not is_timestamp(cell):
        raise FileFormatError(f"{where}: {quote_cell(cell)} is not a time in ISO 8601, as in 2024-05-01T12:00:00Z")
    return cell


def _value(cell: str, dialect: Dialect, gaps: Gaps, place: str, name: str) -> float:
    if not is_gap(cell):
        return _number(cell, dialect, f"{place}, column {quote_cell(name)}")
    if gaps == "error":
        raise FileFormatError(
            f"{place}, column {quote_cell(name)}: {_emptiness(cell)}; to fill gaps say how, "
            'gaps="hold" (the last value) or gaps="linear"; of measurements gaps="split" leaves such rows out; to '
            'leave the column out choose others with columns="…"'
        )
    return math.nan


def _emptiness(cell: str) -> str:
    return f"{quote_cell(cell)} is no number" if cell else "the cell is empty"


def _number(cell: str, dialect: Dialect, where: str) -> float:
    text = number_text(without_thousands(cell, dialect.thousands), dialect.mark)
    if text is None:
        raise FileFormatError(f"{where}: {quote_cell(cell)} is not a real number{_hint(cell, dialect)}")
    number = float(text)
    if not math.isfinite(number):
        raise FileFormatError(f"{where}: the number is not finite; numbers end at 1.8e308")
    return number


def _hint(cell: str, dialect: Dialect) -> str:
    """What may help: another decimal mark, or to say what separates thousands."""
    mark = next((sign for sign in cell if sign in ".,' "), "")
    if is_grouped(cell) and (mark in "' " or ("." in cell and "," in cell) or cell.count(dialect.mark) != 1):
        return f'; if {mark!r} separates thousands, say so with thousands="{mark}"'
    other = "," if dialect.mark == "." else "."
    if number_text(cell, other) is not None:
        return f'; the decimal mark is {dialect.mark!r} here: if it is {other!r}, say so with decimal="{other}"'
    if cell.casefold().lstrip("+-") in ("inf", "infinity"):
        return ": the number is not finite"
    if has_a_unit(cell):
        return "; leave the number alone in its cell, and put what stands beside it into the header"
    return "; remove what is no row of the table"
