"""Command `ltinet compare`: the fit of a model to a table of measurements, and a picture of both."""

from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from ltinet._util.floating_point import Array
from ltinet._util.text import format_count, sanitize
from ltinet.cli import options as tables
from ltinet.cli.io import (
    STANDARD_STREAM,
    check_target,
    display_name,
    draw_headless,
    picture_suffix,
    print_note,
    refuse_overwriting,
    refuse_terminal,
    show_status,
    write_output,
    write_stdout,
)
from ltinet.cli.options import parse_names
from ltinet.cli.samples import open_samples, read_whole_table
from ltinet.cli.sources import read_system_or_network, refuse_discrete_time
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import FileFormatError, InvalidSignalError
from ltinet.plotting import draw_measured, save_figure
from ltinet.plotting.figures import require_matplotlib
from ltinet.signals.sampled import Hold
from ltinet.simulation.api import resolve_hold
from ltinet.state_space import StateSpace
from ltinet.systems.signal_names import UNNAMED
from ltinet.tables.options import TableOptions
from ltinet.tables.reading import TableReader
from ltinet.tables.table import Table

if TYPE_CHECKING:
    from ltinet.identification.record_comparison import RecordComparison

Inputs = Annotated[
    str | None,
    typer.Option(metavar="NAMES", show_default="those of the model", help="Columns of the inputs: Force,2."),
]
Outputs = Annotated[
    str | None,
    typer.Option(metavar="NAMES", show_default="those of the model", help="Columns of the measured outputs: y1,y2."),
]
FromRest = Annotated[
    bool, typer.Option("--from-rest", help="Begin at the operating point instead of fitting the first state.")
]
HoldOption = Annotated[
    Hold | None,
    typer.Option(show_default="that of the model, else linear", help="The input between samples: lines, or steps."),
]
Picture = Annotated[
    str | None,
    typer.Option(
        "--plot", metavar="FILE", show_default=False, help="A picture of measured and simulated: .png, .svg or .pdf."
    ),
]


def compare(  # noqa: PLR0913 - every option of the command is a parameter
    net: Annotated[str, typer.Argument(metavar="NET", hidden=True)],
    data: Annotated[str, typer.Argument(metavar="DATA", hidden=True)],
    *,
    inputs: Inputs = None,
    outputs: Outputs = None,
    from_rest: FromRest = False,
    hold: HoldOption = None,
    picture: Picture = None,
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
    """Compare a model with measured inputs and outputs.

    NET is a network, or a system file; DATA is a CSV file with the measured inputs and outputs. Printed is the fit of
    each output: 100 % for a perfect model, 0 % for one that is no better than the mean. Outputs are simulated from the
    inputs alone; only the state at the first sample is fitted. Delays, operating point and hold are those of the model.
    """
    from ltinet.identification.record_comparison import compare_record  # here: other commands need not wait for it

    if net == STANDARD_STREAM == data:
        raise typer.BadParameter("only one of them can come from standard input", param_hint="'NET' / 'DATA'")
    reading = TableOptions(delimiter, decimal, thousands, header, time, time_unit, zone, dt, gaps, encoding=encoding)
    tables.table_options(reading, None)
    if picture is not None:
        _check_picture(picture, {"the model": net, "the table": data})
    model = read_system_or_network(net)
    refuse_discrete_time(model, net, "a comparison")
    table = _table(data, reading, model, inputs, outputs)
    u, y = table.values[:, : model.n_inputs], table.values[:, model.n_inputs :]
    try:
        with show_status(f"simulating {display_name(data)}"):
            found = compare_record(model, u, y, t=table.t, dt=None, from_rest=from_rest, hold=hold)
    except InvalidSignalError as error:
        told = str(error).replace("from_rest=True", "--from-rest")
        raise InvalidSignalError(f"{display_name(data)}: {told}") from None
    for line in table.notes:
        print_note(line)
    start = "from rest" if from_rest else "first state fitted"
    told = f"{format_count(len(found.t), 'sample')}, {resolve_hold(hold, model.signal_settings)} hold, {start}"
    rows = [f"{fit:8.2f} %  {sanitize(name)}" for fit, name in zip(found.fits, model.output_names, strict=True)]
    if picture != STANDARD_STREAM:
        write_stdout("\n".join([f"fit to {display_name(data)} ({told})", *rows]) + "\n")
    if picture is not None:
        _draw(picture, found, model.output_names)
        if picture != STANDARD_STREAM:
            print_note(f"picture written to {picture}")


def _check_picture(picture: str, sources: dict[str, str]) -> None:
    """Refuse, before the work, a place that cannot be written."""
    picture_suffix(picture)
    require_matplotlib()
    check_target(picture)
    refuse_overwriting(picture, sources)
    refuse_terminal(picture)


def _table(
    data: str, options: TableOptions, model: StateSpace | DynamicNetwork, inputs: str | None, outputs: str | None
) -> Table:
    """Return the columns of inputs and then those of outputs, both in the order of the model."""
    system = model if isinstance(model, StateSpace) else model.system
    names = UNNAMED if system is None else system.matrices.names
    chosen = []
    for given, known, count, noun in (
        (inputs, names.inputs, model.n_inputs, "input"),
        (outputs, names.outputs, model.n_outputs, "output"),
    ):
        columns = parse_names(given) or list(known or ())
        if not columns:
            raise FileFormatError(f"the model has no names of {noun}s; name their columns with --{noun}s")
        if len(columns) != count:
            raise FileFormatError(
                f"--{noun}s has {format_count(len(columns), 'column')}, but the model has {format_count(count, noun)}; give "
                "one column for each"
            )
        # Columns that are called as the channels of the model are taken by name, others in their order.
        by_name = known is not None and sorted(columns) == sorted(known)
        chosen += list(known or ()) if by_name else columns
    try:
        with (
            tables.typed_option_names(),
            open_samples(data, options.with_columns(chosen)) as source,
        ):
            if not isinstance(source, TableReader):
                raise FileFormatError(
                    f"{source.title} holds arrays; give a table with inputs and outputs, as in a .csv"
                )
            return read_whole_table(source, data)
    except FileFormatError as error:
        raise FileFormatError(str(error).replace("columns asks", "--inputs and --outputs ask")) from None


def _draw(picture: str, found: "RecordComparison", names: tuple[str, ...]) -> None:
    """Draw measured and simulated outputs; lines end where the record has a gap."""
    t, measured, simulated = _parted(found)
    with show_status("drawing"):
        figure = draw_headless(
            lambda: draw_measured(t, measured, simulated, fits=found.fits.tolist(), names=names, seams=found.seams)
        )
        write_output(picture, lambda path: save_figure(figure, path), suffix=picture_suffix(picture))


def _parted(found: "RecordComparison") -> tuple[Array, Array, Array]:
    """Return times, measured and simulated outputs with a row of NaN before each seam."""
    places = np.searchsorted(found.t, found.seams)
    t = np.insert(found.t, places, found.t[places])
    return t, np.insert(found.measured, places, np.nan, axis=0), np.insert(found.simulated, places, np.nan, axis=0)
