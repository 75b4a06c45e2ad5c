"""The options of the command line that say how a table is to be read, by the names that `read_table` has for them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Annotated, Literal

import typer

from ltinet.errors import FileFormatError
from ltinet.tables.options import Gaps, TableOptions, checked

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
    with in_words_of_the_command_line():
        return checked(options.with_columns(chosen))


@contextmanager
def in_words_of_the_command_line() -> Iterator[None]:
    """Complaints name options as they are typed: `--time-unit "ms"`, not `time_unit="ms"`."""
    try:
        yield
    except FileFormatError as error:
        told = _OPTION.sub(lambda found: f'--{found[1].replace("_", "-")} "', str(error))
        raise type(error)(told.replace("header=False", "--no-header")) from None
