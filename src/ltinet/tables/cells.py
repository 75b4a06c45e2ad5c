"""Cells and dialect of a table: splitting of lines, classification of cells, delimiter and decimal mark.

A cell is a number, a gap, a time stamp or other text. The decimal mark is detected in the rows; cells that can be
read in two ways are refused.
"""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from ltinet._util.text import sanitize
from ltinet.errors import FileFormatError

# MERGED ltinet.tables.cells
# Cells: how a line is cut into them, and what one can be: a number, a gap, a time stamp, or other text.

COMMENTS = ("#", "%")
NUMBER_PATTERN = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
TIMESTAMP_PATTERN = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?) ?(Z|z|UTC|[+-]\d\d(?::?\d\d)?)?)?", re.ASCII
)
"""ISO 8601: the date, the time of day, the zone; the zone may be missing, or it and the time of day."""
_GAPS = frozenset(("", "nan", "na", "n/a", "#n/a", "#nv", "null", "none", "nil", "-", "--", "---", "nat"))
_GROUPED = re.compile(r"[+\-\u2212]?[1-9]\d{0,2}(?:(?P<mark>[.,' ])\d{3})(?:(?P=mark)\d{3})*(?:[.,]\d+)?", re.ASCII)
_DATE_LIKE = re.compile(r"\d{1,4}[./-](?:\d{1,2}|[A-Za-z]{3,9})[./-]\d{1,4}\b.*", re.ASCII)
_CLOCK_LIKE = re.compile(r"\d{1,3}:\d\d(?::\d\d)?(?:[.,]\d+)?(?:\s*[AaPp]\.?[Mm]\.?)?", re.ASCII)
_WITH_UNIT = re.compile(
    r"[^\w+-]?\s*[+-]?\d[\d.,]*(?:[eE][+-]?\d+)?\s*[^\d\s.,;:+-][^\d;:]{0,7}|[^\w\s+-]\s*[+-]?\d[\d.,]*"
)
_BLANKS = str.maketrans("\u00a0\u202f\u2007", "   ")  # which spreadsheets put between thousands
_MINUS = "\u2212"  # which spreadsheets of some countries write for "-"
_LONGEST_SHOWN = 30


def split_cells(line: str, delimiter: str) -> list[str]:
    """The cells of a line, without quotes and the blanks around them; blanks that must not break are blanks.

    Raises:
        ValueError: a quote is opened and not closed.
    """
    if not line.isascii():
        line = line.translate(_BLANKS)
    if '"' not in line:
        cells = line.split() if delimiter == " " else line.split(delimiter)
        return [cell.strip() for cell in cells]
    if line.count('"') % 2:
        raise ValueError(line)
    plain = " ".join(line.split()) if delimiter == " " else line
    return [cell.strip() for cell in next(csv.reader([plain], delimiter=delimiter, skipinitialspace=True))]


def is_comment(line: str) -> bool:
    """Whether the line is for people: it begins with # or %."""
    return line.lstrip().startswith(COMMENTS)


def number_text(cell: str, decimal: str) -> str | None:
    """The cell with a decimal point, if it is a number with this decimal mark; None if it is not."""
    if cell.startswith(_MINUS):
        cell = f"-{cell[1:]}"
    if decimal == ",":
        if "." in cell or cell.endswith(",") or ",e" in cell.casefold():
            return None
        cell = cell.replace(",", ".")
    return cell if NUMBER_PATTERN.fullmatch(cell) else None


def without_thousands(cell: str, mark: str | None) -> str:
    """The cell without separators of thousands where each stands before three digits; as it is otherwise."""
    found = _GROUPED.fullmatch(cell) if mark is not None and mark in cell else None
    return cell.replace(found["mark"], "") if found and found["mark"] == mark else cell


def is_grouped(cell: str) -> bool:
    """Whether the first mark in it may separate thousands, as in 1,234 or 1.234,5."""
    return _GROUPED.fullmatch(cell) is not None


def is_gap(cell: str) -> bool:
    """Whether the cell says that there is no value: empty, NaN, NA, #NV, null, a dash."""
    return cell.casefold() in _GAPS


def is_timestamp(cell: str) -> bool:
    """Whether it is a date in ISO 8601, with a time of day or without."""
    return TIMESTAMP_PATTERN.fullmatch(cell) is not None


def is_datetime(cell: str) -> bool:
    """Whether it is a date with a time of day in ISO 8601: no column of values has such cells."""
    found = TIMESTAMP_PATTERN.fullmatch(cell)
    return found is not None and found[2] is not None


def looks_like_a_date(cell: str) -> bool:
    """Whether it is a date in an order that only its writer knows, or a bare date."""
    return _DATE_LIKE.fullmatch(cell) is not None


def has_a_unit(cell: str) -> bool:
    """Whether it is a number with a unit, a currency or a percent sign beside it."""
    return _WITH_UNIT.fullmatch(cell) is not None


def looks_like_a_clock(cell: str) -> bool:
    """Whether it is a time of day without a date."""
    return _CLOCK_LIKE.fullmatch(cell) is not None


def is_data_cell(cell: str) -> bool:
    """Whether the cell belongs to a row of data and not to a header: a number in any notation, a date, a time."""
    return (
        number_text(cell, ".") is not None
        or number_text(cell, ",") is not None
        or is_timestamp(cell)
        or is_grouped(cell)
        or looks_like_a_date(cell)
        or looks_like_a_clock(cell)
    )


def quote_cell(cell: str) -> str:
    """The cell in quotes, cut short, fit for a message."""
    return f"'{sanitize(cell, longest=_LONGEST_SHOWN)}'"


# MERGED ltinet.tables.cells
# Delimiter and decimal mark, found in the rows; two ways to read them are one too many.

DELIMITER_CANDIDATES = (";", "\t", ",", "|", " ")
DELIMITER_NAMES = {",": "','", ";": "';'", "\t": "tab", "|": "'|'", " ": "space"}


@final
@dataclass(frozen=True)
class Dialect:
    """How cells and numbers are written; no decimal mark as long as none was seen."""

    delimiter: str
    decimal: str | None
    thousands: str | None = None

    @property
    def mark(self) -> str:
        """The decimal mark; a point where none was seen."""
        return self.decimal or "."


def detect_decimal(rows: Sequence[Sequence[str]], delimiter: str, place: str) -> str | None:
    """The decimal mark in these rows, None if no number has one.

    Where the columns are separated by commas, a comma in a cell can only stand in quotes. A mark that always stands
    before three digits may separate thousands instead, so that 1,234 is a little or a lot more than one. Points are
    taken for decimal ones where commas separate the columns: there nobody writes 1.234 for a thousand.

    Raises:
        FileFormatError: it is ambiguous, or both are there.
    """
    witnesses: dict[str, str] = {}
    doubtful: dict[str, str] = {}
    for row in rows:
        for cell in row:
            for mark in ".,":
                if mark in cell and mark not in witnesses and number_text(cell, mark) is not None:
                    (doubtful if is_grouped(cell) else witnesses).setdefault(mark, cell)
    if delimiter == "," and "." in doubtful:
        witnesses.setdefault(".", doubtful.pop("."))
    if len(witnesses) == 2:
        first, second = (quote_cell(witnesses[mark]) for mark in ".,")
        raise FileFormatError(
            f"{place} numbers are written both as {first} and as {second}; export it with one decimal mark, or say "
            'which it is, decimal="." or decimal=",", and the other is refused where it stands'
        )
    if witnesses:
        return next(iter(witnesses))
    if doubtful:
        mark, cell = next(iter(doubtful.items()))
        raise FileFormatError(
            f"{place} {quote_cell(cell)} may be a little or a lot more than one; say which with "
            f'decimal="{mark}", or thousands="{mark}" if it separates thousands'
        )
    return None
