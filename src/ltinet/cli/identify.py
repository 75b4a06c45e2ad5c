"""Command `ltinet identify`: a model identified from a table of measurements, written as a network file or a report."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from ltinet._util.text import format_path, sanitize
from ltinet.cli import io
from ltinet.cli import options as tables
from ltinet.cli.options import flag, option, parse_names
from ltinet.cli.samples import read_columns
from ltinet.cli.sources import check_network_target
from ltinet.errors import FileFormatError, InvalidSignalError
from ltinet.plotting.figures import require_matplotlib
from ltinet.signals.sampled import Hold
from ltinet.tables.options import TableOptions
from ltinet.tables.table import Table

_MAX_STATES = 1000  # accepted by --order: no record determines more
_NUMBERS = re.compile(r"\d{1,9}(,\d{1,9})*", re.ASCII)
_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})", re.ASCII)
_STABLE: dict[str, bool | Literal["auto"]] = {"auto": "auto", "yes": True, "no": False}
_OPTION_NAMES = {  # arguments in Python, options here
    "stable=True": "--stable yes", "block_rows": "--block-rows", "resample=": "--resample ", "resample is": "--resample is",
    "the table or arrays": "the table", "give dt if": "give --dt if",
}  # fmt: skip

Data = Annotated[list[str], typer.Argument(metavar="DATA...", hidden=True)]
Inputs = Annotated[str, option("NAMES", "Input columns, names or numbers: Force,2.")]
Outputs = Annotated[str, option("NAMES", "Output columns, names or numbers: y1,y2.")]
Target = Annotated[str | None, option("NET", "Network file to write, or -.", "--output", "-o", default="none")]
Report = Annotated[
    str | None, option("FILE", "Report with numbers and pictures to write: .html.", "--report", default="none")
]
Order = Annotated[str | None, option("N", "Number of states: 4; or candidates: 2-8 or 2,4,6.", default="automatic")]
Method = Annotated[Literal["auto", "moesp", "n4sid", "cva"], option(None, "Subspace method.", default=True)]
BlockRows = Annotated[int | None, option("S", "Number of block rows of the Hankel matrix.", default="automatic")]
TrendOption = Annotated[
    Literal["none", "constant", "linear"], option(None, "Trend to remove from the outputs.", default=True)
]
Delay = Annotated[str, option("N", "Input delay in samples: auto, 3, or one per input: 0,3.", default=True)]
HoldOption = Annotated[Hold, option(None, "Input between samples: constant (zero-order hold) or linear.", default=True)]
Stable = Annotated[
    Literal["auto", "yes", "no"],
    option(None, "Unstable poles: reflect (yes), keep (no), or decide automatically.", default=True),
]
Resample = Annotated[
    float | None, option("STEP", "Time step to which a table with uneven times is resampled.", default="none")
]
Refine = Annotated[bool, flag("--refine/--no-refine", "Refine the model by minimizing the output error.")]


def identify(  # noqa: PLR0913
    data: Data,
    inputs: Inputs,
    outputs: Outputs,
    *,
    target: Target = None,
    report: Report = None,
    order: Order = None,
    method: Method = "auto",
    block_rows: BlockRows = None,
    trend: TrendOption = "constant",
    delay: Delay = "auto",
    hold: HoldOption = "zero",
    stable: Stable = "auto",
    refine: Refine = True,
    delimiter: tables.Delimiter = None,
    decimal: tables.Decimal = None,
    thousands: tables.Thousands = None,
    header: tables.Header = None,
    time: tables.Time = None,
    time_unit: tables.TimeUnit = None,
    zone: tables.Zone = None,
    dt: tables.Dt = None,
    resample: Resample = None,
    gaps: tables.RecordGaps = "error",
    encoding: tables.Encoding = "utf-8",
    day_first: tables.DayFirst = None,
) -> None:
    """Identify a system from measured inputs and outputs.

    DATA is a CSV file, as spreadsheets and loggers write them, or several, one for each experiment. The unit of a
    column may be left out, as in --inputs valve for "valve (%)". Uneven times need --resample. Prints the result; with -o
    its network is written, and `ltinet compare NET OTHER` prints its fit to another table.
    """
    from ltinet.identification.api import identify as identify_system  # imported here to keep other commands fast

    _check_targets(target, report, data)
    n_inputs = len(parse_names(inputs) or ())
    orders, delays = _orders(order), _delays(delay)
    reading = TableOptions(
        delimiter, decimal, thousands, header, time, time_unit, zone, dt, gaps, encoding=encoding, day_first=day_first
    )
    options = tables.table_options(reading, f"{inputs},{outputs}")
    records = [read_columns(name, options) for name in data]
    title = ", ".join(map(io.display_name, data))
    try:
        with io.show_status(f"identifying from {sum(len(record.t) for record in records)} samples") as show:
            result = identify_system(
                [_select_columns(record, slice(None, n_inputs)) for record in records],
                [_select_columns(record, slice(n_inputs, None)) for record in records],
                t=[record.t for record in records],
                resample=resample,
                order=orders,
                method=method,
                block_rows=block_rows,
                trend=trend,
                delay=delays,
                hold=hold,
                stable=_STABLE[stable],
                refine=refine,
                callback=show,
            )
    except InvalidSignalError as error:
        raise InvalidSignalError(f"{title}: {_typed_option_names(str(error))}") from None
    for record in records:
        for line in record.notes:
            io.print_note(line)
    # The result goes to standard error where the network takes standard output.
    summary = _typed_option_names(str(result))
    if target == io.STANDARD_STREAM:
        typer.echo(summary, err=True)
    else:
        io.write_stdout(f"{summary}\n")
    if target is not None:
        io.write_output(target, result.net.save)
        io.print_note(f"network of {result.net.n_neurons} neurons written to {target}")
    if report is not None:
        io.use_headless_backend()
        with io.show_status("drawing the report"):
            io.write_output(report, lambda path: result.report(path, title=title))
        io.print_note(f"report written to {report}")


def _check_targets(target: str | None, report: str | None, data: list[str]) -> None:
    """Check before any work that network and report can be written."""
    sources = {"the table" if len(data) == 1 else f"table {number}": name for number, name in enumerate(data, start=1)}
    if data.count(io.STANDARD_STREAM) > 1:
        raise typer.BadParameter("only one of them can come from standard input", param_hint="'DATA'")
    if report is not None:
        if report == io.STANDARD_STREAM or Path(report).suffix.lower() not in (".html", ".htm"):
            raise FileFormatError(f"{format_path(report)} is not the name of a report; it must end in .html")
        require_matplotlib()
        io.check_target(report, sources)
    if target is not None:
        check_network_target(target, sources)


def _orders(text: str | None) -> int | list[int] | None:
    """Return the orders of 4, 2,4,6 or 2-8."""
    if text is None:
        return None
    between = _RANGE.fullmatch(text)
    if between:
        orders = list(range(int(between[1]), min(int(between[2]), _MAX_STATES + 1) + 1))
    else:
        orders = [int(part) for part in text.split(",")] if _NUMBERS.fullmatch(text) else []
    if not orders or min(orders) < 1 or max(orders) > _MAX_STATES:
        raise typer.BadParameter(
            f"{sanitize(repr(text))} is not a number of states; give an integer from 1 to {_MAX_STATES}, such as 4, or "
            "several, such as 2-8 or 2,4,6",
            param_hint="'--order'",
        )
    return orders if len(orders) > 1 else orders[0]


def _delays(text: str) -> int | list[int] | Literal["auto"]:
    if text == "auto":
        return "auto"
    if not _NUMBERS.fullmatch(text):
        raise typer.BadParameter(
            f"{sanitize(repr(text))} is not a delay; give auto, a number of samples, such as 3, or one for each input, "
            "such as 0,3",
            param_hint="'--delay'",
        )
    delays = [int(part) for part in text.split(",")]
    return delays if len(delays) > 1 else delays[0]


def _select_columns(table: Table, columns: slice) -> Table:
    return replace(table, values=table.values[:, columns], names=table.names[columns], notes=())


def _typed_option_names(text: str) -> str:
    for argument, typed in _OPTION_NAMES.items():
        text = text.replace(argument, typed)
    return text
