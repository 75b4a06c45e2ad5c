"""CSV with a header and a time column, read strictly: what is not a number is named by its line and column.

Commas, semicolons and tabs may separate the columns, whichever the header has. A decimal comma is refused: whether
1,234 is a little or a lot more than one depends on who wrote it.
"""

import csv
import io
import re
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ltinet.arrays import Array
from ltinet.errors import FileFormatError
from ltinet.shown import shown, shown_names

_TIME = re.compile(r"(t|time)\s*([\[(].*[\])])?", re.IGNORECASE)  # a unit may follow: time [s]
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*")
_LONGEST_SHOWN = 30


def read_csv(path: Path, *, title: str) -> tuple[Array, Array]:
    """Times `(T,)` and the other columns `(T, channels)`.

    Raises:
        FileFormatError: it is not a table of finite numbers under a header that begins with the time.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # spreadsheets begin their files with a byte-order mark
    except UnicodeDecodeError:
        raise FileFormatError(f"{title} is not text in UTF-8; export it as CSV with this encoding") from None
    rows = _rows(text, title)
    _, header = next(rows, (0, []))
    if not header:
        raise FileFormatError(f"{title} is empty; expected is a header such as t,u1,u2 and a line for each time")
    names = _column_names(header, title)
    numbers, lines = array("d"), array("q")
    for line, row in rows:
        lines.append(line)
        numbers.extend(_numbers(row, names, f"{title}, line {line}"))
    if not lines:
        raise FileFormatError(f"{title} has a header but no samples; at least one line of numbers must follow")
    table = np.array(numbers).reshape(len(lines), len(names))
    if not np.isfinite(table).all():
        row_index, column = np.argwhere(~np.isfinite(table))[0].tolist()
        raise FileFormatError(
            f"{title}, line {lines[row_index]}, column {_shown(names[column])}: the number is not finite; replace NaN, "
            "infinities and numbers beyond 1.8e308"
        )
    return table[:, 0], table[:, 1:]


def _rows(text: str, title: str) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and cells of all lines that are not blank."""
    first = text.lstrip().partition("\n")[0]
    delimiter = next((mark for mark in ",;\t" if mark in first), ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                yield reader.line_num, row
    except csv.Error as error:
        raise FileFormatError(f"{title}, line {reader.line_num}: this is not CSV: {error}") from None


def _column_names(header: Sequence[str], title: str) -> list[str]:
    names = [name.strip() for name in header]
    names[0] = names[0].removeprefix("#").strip()  # NumPy's savetxt writes its header as a comment
    times = [name for name in names if _TIME.fullmatch(name)]
    if not _TIME.fullmatch(names[0]):
        if all(_is_number(name) for name in names):
            raise FileFormatError(f"{title} has no header: its first line is numbers; put one such as t,u1,u2 above")
        raise FileFormatError(
            f"{title}: the first column is called {_shown(names[0])}; it must be the time, called t or time, and "
            "commas must separate the columns"
        )
    if len(times) > 1:
        raise FileFormatError(f"{title} has {len(times)} time columns ({shown_names(times)}); leave only the first")
    if "" in names:
        raise FileFormatError(f"{title}, line 1: column {names.index('') + 1} has no name; name it or remove it")
    return names


def _numbers(row: Sequence[str], names: Sequence[str], place: str) -> list[float]:
    if len(row) != len(names):
        raise FileFormatError(
            f"{place} has {len(row)} cells but the header has {len(names)}; fill or remove cells, and write decimal "
            "points, not commas"
        )
    try:
        return [_number(cell) for cell in row]
    except ValueError:
        name, cell = next((name, cell) for name, cell in zip(names, row, strict=True) if not _is_number(cell))
    where = f"{place}, column {_shown(name)}"
    if not cell.strip():
        raise FileFormatError(f"{where}: the cell is empty; every time needs a value of every input")
    hint = "; write a decimal point, not a comma" if _DECIMAL_COMMA.fullmatch(cell) else ""
    raise FileFormatError(f"{where}: {_shown(cell)} is not a real number{hint}")


def _number(cell: str) -> float:
    if "_" in cell:  # Python reads 1_000 as a thousand, and is alone in this
        raise ValueError
    return float(cell)


def _is_number(cell: str) -> bool:
    try:
        _number(cell)
    except ValueError:
        return False
    return True


def _shown(cell: str) -> str:
    return f"'{shown(cell, longest=_LONGEST_SHOWN)}'"
