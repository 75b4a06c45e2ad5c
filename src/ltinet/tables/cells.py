"""Cells and dialect of a table: splitting of lines, classification of cells, delimiter and decimal mark.

A cell is a number, a gap, a time stamp or other text. The decimal mark is detected in the rows; cells that can be
read in two ways are rejected.
"""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from ltinet._util.text import sanitize
from ltinet.errors import FileFormatError

DELIMITER_NAMES = {";": "';'", "\t": "tab", ",": "','", "|": "'|'", " ": "space"}
"""Names of the delimiters that are detected, in the order in which they are tried."""
NUMBER_PATTERN = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_ZONE = r"(Z|z|UTC|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?"
TIMESTAMP_PATTERN = re.compile(
    rf"(\d{{4}}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d(?::\d\d(?:[.,]\d{{1,9}})?)?) ?{_ZONE})?", re.ASCII
)
"""ISO 8601: date, time of day, zone; the zone may be missing, or both it and the time of day."""
LOCAL_TIMESTAMP_PATTERN = re.compile(
    r"(\d{1,2}[./-](?:\d{1,2}|[A-Za-z]{3})[./-]\d{4}|\d{4}[./-]\d{1,2}[./-]\d{1,2})"
    rf"(?:(?:[Tt]|,? )(\d{{1,2}})(:\d\d(?::\d\d(?:[.,]\d{{1,9}})?)?)(?: ?([AaPp])\.?[Mm]\.?)? ?{_ZONE})?",
    re.ASCII,
)
"""Date with the day, the month or the year first; hour, rest of the time of day, A or P of a.m. or p.m., zone."""
_GAPS = frozenset(("", "nan", "na", "n/a", "#n/a", "#nv", "null", "none", "nil", "-", "--", "---", "nat"))
_GROUPED = re.compile(r"[+\-\u2212]?[1-9]\d{0,2}(?:(?P<mark>[.,' ])\d{3})(?:(?P=mark)\d{3})*(?:[.,]\d+)?", re.ASCII)
DATE_PATTERN = re.compile(r"\d{1,4}[./-](?:\d{1,2}|[A-Za-z]{3,9})[./-]\d{1,4}\b.*", re.ASCII)
"""Date in any notation, also with a year of two digits."""
CLOCK_PATTERN = re.compile(r"\d{1,3}:\d\d(?::\d\d)?(?:[.,]\d+)?(?:\s*[AaPp]\.?[Mm]\.?)?", re.ASCII)
"""Time of day without a date."""
UNIT_PATTERN = re.compile(
    r"[^\w+-]?\s*[+-]?\d[\d.,]*(?:[eE][+-]?\d+)?\s*[^\d\s.,;:+-][^\d;:]{0,7}|[^\w\s+-]\s*[+-]?\d[\d.,]*"
)
"""Number with a unit, a currency or a percent sign beside it."""
_BLANKS = str.maketrans("\u00a0\u202f\u2007", "   ")  # no-break spaces, with which spreadsheets separate thousands
_MINUS = "\u2212"  # minus sign, which spreadsheets of some countries write for "-"
_MAX_QUOTED = 30  # characters of a cell in an error message


def split_cells(line: str, delimiter: str) -> list[str]:
    """Split a line into cells, without quotes and surrounding blanks; no-break spaces become blanks.

    Raises ValueError where a quote is opened and not closed.
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
    """Return whether the line is a comment: it begins with # or %."""
    return line.lstrip().startswith(("#", "%"))


def number_text(cell: str, decimal: str) -> str | None:
    """Return the cell with a decimal point if it is a number with this decimal mark, otherwise None."""
    if cell.startswith(_MINUS):
        cell = f"-{cell[1:]}"
    if decimal == ",":
        if "." in cell or cell.endswith(",") or ",e" in cell.casefold():
            return None
        cell = cell.replace(",", ".")
    return cell if NUMBER_PATTERN.fullmatch(cell) else None


def remove_thousands(cell: str, mark: str | None) -> str:
    """Remove separators of thousands where each stands before three digits; return other cells unchanged."""
    match = _GROUPED.fullmatch(cell) if mark is not None and mark in cell else None
    return cell.replace(match["mark"], "") if match and match["mark"] == mark else cell


def is_grouped(cell: str) -> bool:
    """Return whether the first mark in a cell may separate thousands, as in 1,234 or 1.234,5."""
    return _GROUPED.fullmatch(cell) is not None


def is_gap(cell: str) -> bool:
    """Return whether a cell marks a missing value: empty, NaN, NA, #NV, null, a dash."""
    return cell.casefold() in _GAPS


def is_timestamp(cell: str) -> bool:
    """Return whether a cell is a date with a year of four digits, with or without a time of day."""
    return any(pattern.fullmatch(cell) is not None for pattern in (TIMESTAMP_PATTERN, LOCAL_TIMESTAMP_PATTERN))


def is_datetime(cell: str) -> bool:
    """Return whether a cell is a date with a time of day; no column of values has such cells."""
    matches = (TIMESTAMP_PATTERN.fullmatch(cell), LOCAL_TIMESTAMP_PATTERN.fullmatch(cell))
    return any(match is not None and match[2] is not None for match in matches)


def is_data_cell(cell: str) -> bool:
    """Return whether a cell belongs to a row of data rather than a header: a number in any notation, a date, a time."""
    return (
        number_text(cell, ".") is not None
        or number_text(cell, ",") is not None
        or any(pattern.fullmatch(cell) for pattern in (TIMESTAMP_PATTERN, _GROUPED, DATE_PATTERN, CLOCK_PATTERN))
    )


def quote_cell(cell: str) -> str:
    """Return the cell in quotes, shortened and without control characters, for a message."""
    return f"'{sanitize(cell, longest=_MAX_QUOTED)}'"


@final
@dataclass(frozen=True)
class Dialect:
    """Notation of cells and numbers; `decimal` is None until a decimal mark has occurred."""

    delimiter: str
    decimal: str | None
    thousands: str | None = None

    @property
    def mark(self) -> str:
        """Decimal mark; a point until one has occurred."""
        return self.decimal or "."


def _decimal_marks(rows: Sequence[Sequence[str]], delimiter: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return an example of each mark that is certainly a decimal mark, and of each that may separate thousands."""
    certain: dict[str, str] = {}
    ambiguous: dict[str, str] = {}
    for row in rows:
        for cell in row:
            for mark in ".,":
                if mark in cell and mark not in certain and number_text(cell, mark) is not None:
                    (ambiguous if is_grouped(cell) else certain).setdefault(mark, cell)
    if delimiter == "," and "." in ambiguous:
        certain.setdefault(".", ambiguous.pop("."))
    return certain, ambiguous


def detect_decimal(
    rows: Sequence[Sequence[str]], delimiter: str, place: str, others: Sequence[Sequence[str]] = ()
) -> str | None:
    """Return the decimal mark in these rows, None if no number has one; `others` decide where they are ambiguous.

    A mark that always stands before exactly three digits is ambiguous, since it may separate thousands. In tables
    with commas between the columns points are taken for decimal marks in any case, since 1.234 for a thousand does not
    occur there, and a comma within a cell requires quotes.

    Raises FileFormatError where the mark is ambiguous, or where both occur.
    """
    certain, ambiguous = _decimal_marks(rows, delimiter)
    if ambiguous and not certain:
        elsewhere, _ = _decimal_marks(others, delimiter)
        certain = elsewhere if len(elsewhere) == 1 else {}
    if len(certain) == 2:
        first, second = (quote_cell(certain[mark]) for mark in ".,")
        raise FileFormatError(
            f"{place} numbers are written both as {first} and as {second}; export it with one decimal mark, or name "
            'the mark with decimal="." or decimal=",", which rejects the other where it stands'
        )
    if certain:
        return next(iter(certain))
    if ambiguous:
        mark, cell = next(iter(ambiguous.items()))
        raise FileFormatError(
            f"{place} {quote_cell(cell)} may be a little or a lot more than one; decide with "
            f'decimal="{mark}", or thousands="{mark}" if it separates thousands'
        )
    return None
