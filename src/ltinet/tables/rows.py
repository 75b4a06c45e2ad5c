"""A block read row by row: slower than a parser in C, and able to say which cell of which line is at fault."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from ltinet.arrays import Array
from ltinet.errors import FileFormatError
from ltinet.tables.cells import (
    cut,
    has_a_unit,
    is_comment,
    is_gap,
    is_grouped,
    is_stamp,
    number_text,
    shown_cell,
    without_thousands,
)
from ltinet.tables.dialect import Dialect
from ltinet.tables.form import Form, wrong_count
from ltinet.tables.numbers import plain_numbers, plain_stamped
from ltinet.tables.options import Gaps
from ltinet.tables.source import Block, n_lines


@final
@dataclass(frozen=True)
class Rows:
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


def rows_of(block: Block, form: Form, gaps: Gaps) -> Rows:
    """The rows of a block, by the fastest way that can read them."""
    return _plain(block, form) or _one_by_one(block, form, gaps)


def _plain(block: Block, form: Form) -> Rows | None:
    columns, n_columns = form.columns, form.n_columns
    times: Array | list[str] = []
    if columns.is_stamped and columns.time is not None:
        found = plain_stamped(block.content, form.dialect, n_columns, columns.time)
        if found is None:
            return None
        times, table = found
    else:
        numbers = plain_numbers(block.content, form.dialect, n_columns)
        if numbers is None:
            return None
        table = numbers
        if columns.time is not None:
            times = np.ascontiguousarray(table[:, columns.time])
    if len(table) != n_lines(
        block.content
    ):  # there are blank lines, so that rows do not tell the numbers of their lines
        return None
    first, last = (columns.values[0], columns.values[-1]) if columns.values else (0, -1)
    in_order = columns.values == tuple(range(first, last + 1))
    return Rows(times, table[:, first : last + 1] if in_order else table[:, columns.values], None, block.first_line)


def _one_by_one(block: Block, form: Form, gaps: Gaps) -> Rows:
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
    return Rows(read, table, lines, block.first_line, fault)


def _row(line: str, form: Form, gaps: Gaps, place: str) -> tuple[float | str, list[float]] | None:
    """The time and the values of a line; None for a line of nothing but delimiters, as spreadsheets append them."""
    try:
        cells = cut(line, form.dialect.delimiter)
    except ValueError:
        raise FileFormatError(f"{place}: this is not CSV: a quote is opened and not closed in this line") from None
    if len(cells) > 1 and not any(cells):
        return None
    if len(cells) != form.n_columns:
        raise FileFormatError(wrong_count(place, cells, form.columns.names))
    columns = form.columns
    for column in columns.empty:
        if cells[column]:
            raise FileFormatError(
                f"{place} has {shown_cell(cells[column])} in column {column + 1}, which has no name; name it"
            )
    time: float | str = 0.0
    if columns.time is not None:
        where = f"{place}, column {shown_cell(columns.names[columns.time])}"
        time = _time(cells[columns.time], form, where)
    return time, [_value(cells[k], form.dialect, gaps, place, columns.names[k]) for k in columns.values]


def _time(cell: str, form: Form, where: str) -> float | str:
    if is_gap(cell):
        raise FileFormatError(f"{where}: {_emptiness(cell)}; every row needs its time: fill it or remove the line")
    if not form.columns.is_stamped:
        return _number(cell, form.dialect, where)
    if not is_stamp(cell):
        raise FileFormatError(f"{where}: {shown_cell(cell)} is not a time in ISO 8601, as in 2024-05-01T12:00:00Z")
    return cell


def _value(cell: str, dialect: Dialect, gaps: Gaps, place: str, name: str) -> float:
    if not is_gap(cell):
        return _number(cell, dialect, f"{place}, column {shown_cell(name)}")
    if gaps == "error":
        raise FileFormatError(
            f"{place}, column {shown_cell(name)}: {_emptiness(cell)}; to fill gaps say how, "
            'gaps="hold" (the last value) or gaps="linear"; of measurements gaps="split" leaves such rows out; to '
            'leave the column out choose others with columns="…"'
        )
    return math.nan


def _emptiness(cell: str) -> str:
    return f"{shown_cell(cell)} is no number" if cell else "the cell is empty"


def _number(cell: str, dialect: Dialect, where: str) -> float:
    text = number_text(without_thousands(cell, dialect.thousands), dialect.mark)
    if text is None:
        raise FileFormatError(f"{where}: {shown_cell(cell)} is not a real number{_hint(cell, dialect)}")
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
