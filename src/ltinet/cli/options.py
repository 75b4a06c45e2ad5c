"""Parsing of options that several commands share: channels by name or number from 1, and how a table is read.

Error messages about tables are translated from the arguments of `read_table` to options as the user typed them.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Annotated, Literal

import typer

from ltinet._util.text import format_names, sanitize
from ltinet.errors import FileFormatError
from ltinet.tables.options import Gaps, TableOptions, validate_options


def channel_names(count: int, letter: str, known: Sequence[str] | None = None) -> list[str]:
    """The names that are known, or u1, u2, … and y1, y2, …, as tables have them."""
    return list(known) if known is not None else [f"{letter}{place + 1}" for place in range(count)]


def parse_channel(text: str | None, names: Sequence[str], *, option: str, noun: str) -> int | None:
    """The place of a channel from 0 on, None for all of them.

    Raises:
        typer.BadParameter: there is no such one.
    """
    if text is None:
        return None
    if text in names:
        return names.index(text)
    if text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= len(names):
        return int(text) - 1
    numbered = f"a number from 1 to {len(names)}, or one of " if len(names) > 1 else ""
    raise typer.BadParameter(
        f"{sanitize(repr(text))} is no {noun} of this system; give {numbered}{format_names(names)}, or leave it out",
        param_hint=f"'{option}'",
    )


def parse_names(text: str | None) -> list[str] | None:
    """Names with commas between them; one with a comma of its own stands in quotation marks, as in CSV."""
    if text is None:
        return None
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]


_FOUND = "found in the table"
Delimiter = Annotated[
    str | None, typer.Option(metavar="SIGN", show_default=_FOUND, help="Table: what separates columns: , ; tab space.")
]
Decimal = Annotated[str | None, typer.Option(metavar=".|,", show_default=_FOUND, help="Table: the decimal mark.")]
Thousands = Annotated[
    str | None, typer.Option(metavar="SIGN", show_default="refused", help="Table: what separates thousands.")
]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", show_default=_FOUND, help="Table: whether its first row has names."),
]
Time = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", show_default="by its name", help="Table: the times, by name or number from 1."),
]
TimeUnit = Annotated[
    str | None,
    typer.Option(metavar="UNIT", show_default=_FOUND, help="Table: what times are in: s, ms, us, ns, min, h, d."),
]
Zone = Annotated[
    str | None,
    typer.Option(metavar="ZONE", show_default="none", help="Table: of times without one: UTC, +01:00, Europe/Berlin."),
]
Dt = Annotated[
    float | None, typer.Option("--dt", metavar="STEP", show_default="none", help="Table: even rows without times.")
]
FillGaps = Annotated[
    Literal["error", "hold", "linear"],
    typer.Option(help="Table: refuse missing values, hold the last one, or draw lines."),
]
RecordGaps = Annotated[
    Gaps,
    typer.Option(help="Table: refuse missing values, hold the last one, draw lines, or split the record there."),
]
ChosenColumns = Annotated[
    str | None,
    typer.Option(metavar="NAMES", show_default="all", help="Table: the inputs, names or numbers: 2,3 or Force,Torque."),
]
Encoding = Annotated[str, typer.Option(metavar="NAME", help="Table: how its text is encoded.")]
_OPTION = re.compile(rf'\b({"|".join(field.name for field in fields(TableOptions))})="')


def table_options(options: TableOptions, columns: str | None) -> TableOptions:
    """The options, checked, with the columns as they were typed."""
    chosen = None if columns is None else [name.strip() for name in columns.split(",")]
    with typed_option_names():
        return validate_options(options.with_columns(chosen))


@contextmanager
def typed_option_names() -> Iterator[None]:
    """Complaints name options as they are typed: `--time-unit "ms"`, not `time_unit="ms"`."""
    try:
        yield
    except FileFormatError as error:
        told = _OPTION.sub(lambda found: f'--{found[1].replace("_", "-")} "', str(error))
        raise type(error)(told.replace("header=False", "--no-header")) from None
