"""Delimiter and decimal mark, found in the rows; two ways to read them are one too many."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from ltinet.errors import FileFormatError
from ltinet.tables.cells import is_grouped, number_text, shown_cell

CANDIDATES = (";", "\t", ",", "|", " ")
NAMES = {",": "','", ";": "';'", "\t": "tab", "|": "'|'", " ": "space"}


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


def decimal_of(rows: Sequence[Sequence[str]], delimiter: str, place: str) -> str | None:
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
        first, second = (shown_cell(witnesses[mark]) for mark in ".,")
        raise FileFormatError(
            f"{place} numbers are written both as {first} and as {second}; export it with one decimal mark, or say "
            'which it is, decimal="." or decimal=",", and the other is refused where it stands'
        )
    if witnesses:
        return next(iter(witnesses))
    if doubtful:
        mark, cell = next(iter(doubtful.items()))
        raise FileFormatError(
            f"{place} {shown_cell(cell)} may be a little or a lot more than one; say which with "
            f'decimal="{mark}", or thousands="{mark}" if it separates thousands'
        )
    return None
