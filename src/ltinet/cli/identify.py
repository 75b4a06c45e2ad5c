"""Command `ltinet identify`: a model identified from a table of measurements, written as a network file or a report."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ltinet._util.text import format_path, sanitize
from ltinet.cli import options as tables
from ltinet.cli.io import (
    STANDARD_STREAM,
    check_target,
    display_name,
    is_stream,
    print_note,
    refuse_overwriting,
    refuse_terminal,
    show_status,
    use_headless_backend,
    write_output,
    write_stdout,
)
from ltinet.cli.samples import open_samples, read_whole_table
from ltinet.cli.sources import NETWORK_SUFFIX
from ltinet.errors import FileFormatError, InvalidSignalError
from ltinet.plotting.figures import require_matplotlib
from ltinet.signals.sampled import Hold
from ltinet.signals.times import TimeAxis
from ltinet.tables.options import TableOptions
from ltinet.tables.reading import TableReader
from ltinet.tables.table import Table

if TYPE_CHECKING:
    from ltinet.identification.result import IdentificationResult

_MOST_STATES = 1000  # that can be asked for: no record says more
_NUMBERS = re.compile(r"\d{1,9}(,\d{1,9})*", re.ASCII)
_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})", re.ASCII)
_STABLE: dict[str, bool | Literal["auto"]] = {"auto": "auto", "yes": True, "no": False}
_WORDS = {"stable=True": "--stable yes", "block_rows": "--block-rows"}

Data = Annotated[str, typer.Argument(metavar="DATA", hidden=True)]
Inputs = Annotated[
    str, typer.Option(metavar="NAMES", show_default=False, help="Columns that drive, names or numbers: Force,2.")
]
Outputs = Annotated[
    str, typer.Option(metavar="NAMES", show_default=False, help="Columns that answer, names or numbers: y1,y2.")
]
Target = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="NET", show_default="none", help="The network file to write, or -."),
]
Report = Annotated[
    str | None,
    typer.Option("--report", metavar="FILE", show_default="none", help="A page with numbers and pictures: .html."),
]
Order = Annotated[
    str | None,
    typer.Option(metavar="N", show_default="chosen", help="Number of states: 4, or 2-8 or 2,4,6 to choose from."),
]
Method = Annotated[Literal["auto", "moesp", "n4sid", "cva"], typer.Option(help="The subspace method.")]
BlockRows = Annotated[
    int | None, typer.Option(metavar="S", show_default="chosen", help="Block rows of the Hankel matrix.")
]
TrendOption = Annotated[
    Literal["none", "constant", "linear"], typer.Option(help="What outputs have beside the system: offsets, slopes.")
]
Delay = Annotated[str, typer.Option(metavar="N", help="Samples by which inputs come late: auto, 3, or 0,3.")]
HoldOption = Annotated[Hold, typer.Option(help="Inputs between samples: steps (zero-order hold), or straight lines.")]
Stable = Annotated[
    Literal["auto", "yes", "no"], typer.Option(help="Mirror poles that grow, keep them, or as the data say.")
]
Refine = Annotated[bool, typer.Option("--refine/--no-refine", help="Whether to try the output-error refinement.")]


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
    gaps: tables.RecordGaps = "error",
    encoding: tables.Encoding = "utf-8",
) -> None:
    """Find the system behind measured inputs and outputs.

    DATA is a CSV file with evenly spaced times, as spreadsheets and loggers write them. What was found is printed, and
    its network written where -o says.
    """
    from ltinet.identification.api import identify as identify_system  # here: other commands need not wait for it

    _check_places(target, report, data)
    n_inputs = len(inputs.split(","))
    orders, delays = _orders(order), _delays(delay)
    reading = TableOptions(delimiter, decimal, thousands, header, time, time_unit, zone, dt, gaps, encoding=encoding)
    table = _table(data, tables.table_options(reading, f"{inputs},{outputs}"))
    u, y = _part(table, slice(None, n_inputs)), _part(table, slice(n_inputs, None))
    try:
        with show_status(f"identifying from {len(table.t)} samples") as tell:
            found = identify_system(
                u,
                y,
                dt=_step(table),
                order=orders,
                method=method,
                block_rows=block_rows,
                trend=trend,
                delay=delays,
                hold=hold,
                stable=_STABLE[stable],
                refine=refine,
                callback=tell,
            )
    except InvalidSignalError as error:
        raise InvalidSignalError(f"{display_name(data)}: {_typed_option_names(str(error))}") from None
    for line in table.notes:
        print_note(line)
    _deliver(found, target)
    if report is not None:
        use_headless_backend()
        with show_status("drawing the report"):
            write_output(report, lambda path: found.report(path, title=display_name(data)))
        print_note(f"report written to {report}")


def _check_places(target: str | None, report: str | None, data: str) -> None:
    """Refuse, before the work, places that cannot be written."""
    if target is not None and not is_stream(target) and Path(target).suffix.lower() != NETWORK_SUFFIX:
        raise FileFormatError(f"{format_path(target)} does not end in {NETWORK_SUFFIX}, as the file of a network does")
    if report is not None:
        if report == STANDARD_STREAM or Path(report).suffix.lower() not in (".html", ".htm"):
            raise FileFormatError(f"{format_path(report)} does not end in .html, as the file of a report does")
        require_matplotlib()
    for place in (target, report):
        if place is not None:
            check_target(place)
            refuse_overwriting(place, {"the table": data})
    if target is not None:
        refuse_terminal(target)


def _orders(text: str | None) -> int | list[int] | None:
    """From 4, 2,4,6 or 2-8."""
    if text is None:
        return None
    between = _RANGE.fullmatch(text)
    if between:
        orders = list(range(int(between[1]), min(int(between[2]), _MOST_STATES + 1) + 1))
    else:
        orders = [int(part) for part in text.split(",")] if _NUMBERS.fullmatch(text) else []
    if not orders or min(orders) < 1 or max(orders) > _MOST_STATES:
        raise typer.BadParameter(
            f"{sanitize(repr(text))} is no number of states; give one from 1 to {_MOST_STATES}, such as 4, or several, "
            "such as 2-8 or 2,4,6",
            param_hint="'--order'",
        )
    return orders if len(orders) > 1 else orders[0]


def _delays(text: str) -> int | list[int] | Literal["auto"]:
    if text == "auto":
        return "auto"
    if not _NUMBERS.fullmatch(text):
        raise typer.BadParameter(
            f"{sanitize(repr(text))} is no delay; give auto, samples for all inputs, such as 3, or for each, such as 0,3",
            param_hint="'--delay'",
        )
    delays = [int(part) for part in text.split(",")]
    return delays if len(delays) > 1 else delays[0]


def _table(data: str, options: TableOptions) -> Table:
    """The columns of inputs and then those of outputs, each of them once."""
    try:
        with tables.typed_option_names(), open_samples(data, options) as source:
            if not isinstance(source, TableReader):
                raise FileFormatError(
                    f"{source.title} holds arrays; give a table with inputs and outputs, as in a .csv"
                )
            return read_whole_table(source, data)
    except FileFormatError as error:
        raise FileFormatError(str(error).replace("columns asks", "--inputs and --outputs ask")) from None


def _part(table: Table, columns: slice) -> Table:
    return Table(table.t, table.values[:, columns], table.names[columns], table.start, ())


def _step(table: Table) -> float:
    """The distance of its rows in time."""
    step = TimeAxis.of(table.t).step
    if step is None or not step > 0.0:
        raise InvalidSignalError(
            "the times are not evenly spaced; resample the table first, in Python: te = np.linspace(t[0], t[-1], "
            "len(t)), then np.interp(te, t, column) for every column; if rows are even and times only rounded, give "
            "their step with --dt"
        )
    return step


def _deliver(found: "IdentificationResult", target: str | None) -> None:
    """Print what was found, on the error stream where the network takes the other, and write its network."""
    told = _typed_option_names(str(found))
    if target == STANDARD_STREAM:
        typer.echo(told, err=True)
    else:
        write_stdout(f"{told}\n")
    if target is not None:
        write_output(target, found.net.save)
        print_note(f"network of {found.net.n_neurons} neurons written to {target}")


def _typed_option_names(text: str) -> str:
    for python, typed in _WORDS.items():
        text = text.replace(python, typed)
    return text
