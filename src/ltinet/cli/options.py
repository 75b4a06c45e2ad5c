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


def channel_names(count: int, letter: str, names: Sequence[str] | None = None) -> list[str]:
    """Return the known names, or u1, u2, … and y1, y2, … as in tables."""
    return list(names) if names is not None else [f"{letter}{index + 1}" for index in range(count)]


def parse_channel(text: str | None, names: Sequence[str], *, option: str, noun: str) -> int | None:
    """Return the index of a channel, given by its name or its number from 1; None for all channels."""
    if text is None:
        return None
    if text in names:
        return names.index(text)
    if text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= len(names):
        return int(text) - 1
    numbered = f"a number from 1 to {len(names)}, or one of " if len(names) > 1 else ""
    raise typer.BadParameter(
        f"{sanitize(repr(text))} is not an {noun} of this system; give {numbered}{format_names(names)}, or omit it",
        param_hint=f"'{option}'",
    )


def parse_names(text: str | None) -> list[str] | None:
    """Split names at commas; a name that contains a comma stands in quotation marks, as in CSV."""
    if text is None:
        return None
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]


_DETECTED = "detected"
Delimiter = Annotated[
    str | None, typer.Option(metavar="SIGN", show_default=_DETECTED, help="Table: column separator: , ; tab space.")
]
Decimal = Annotated[str | None, typer.Option(metavar=".|,", show_default=_DETECTED, help="Table: decimal mark.")]
Thousands = Annotated[str | None, typer.Option(metavar="SIGN", show_default="none", help="Table: thousands separator.")]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", show_default=_DETECTED, help="Table: whether the first row holds names."),
]
Time = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", show_default="by its name", help="Table: time column, by name or number from 1."),
]
TimeUnit = Annotated[
    str | None,
    typer.Option(metavar="UNIT", show_default=_DETECTED, help="Table: unit of times: s, ms, us, ns, min, h, d."),
]
Zone = Annotated[
    str | None,
    typer.Option(
        metavar="ZONE", show_default="none", help="Table: time zone of dates without one: UTC, Europe/Berlin."
    ),
]
Dt = Annotated[
    float | None,
    typer.Option("--dt", metavar="STEP", show_default="none", help="Table: time step of rows without times."),
]
FillGaps = Annotated[
    Literal["error", "hold", "linear"],
    typer.Option(help="Table: missing values: reject, hold the last value, or interpolate."),
]
RecordGaps = Annotated[
    Gaps,
    typer.Option(help="Table: missing values: reject, hold the last value, interpolate, or split the record."),
]
ChosenColumns = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES", show_default="all", help="Table: input columns, names or numbers: 2,3 or Force,Torque."
    ),
]
Encoding = Annotated[str, typer.Option(metavar="NAME", help="Table: text encoding.")]
_OPTION = re.compile(rf'\b({"|".join(field.name for field in fields(TableOptions))})="')


def table_options(options: TableOptions, columns: str | None) -> TableOptions:
    """Return validated table options with the columns, separated by commas."""
    chosen = None if columns is None else [name.strip() for name in columns.split(",")]
    with typed_option_names():
        return validate_options(options.with_columns(chosen))


@contextmanager
def typed_option_names() -> Iterator[None]:
    """Write options in error messages as on the command line: `--time-unit "ms"`, not `time_unit="ms"`."""
    try:
        yield
    except FileFormatError as error:
        message = _OPTION.sub(lambda match: f'--{match[1].replace("_", "-")} "', str(error))
        raise type(error)(message.replace("header=False", "--no-header")) from None
