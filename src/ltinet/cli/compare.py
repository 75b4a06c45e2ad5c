"""Command `ltinet compare`: the fit of a model to a table of measurements, and a picture of both."""

from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from ltinet._util.text import format_count, sanitize
from ltinet.cli import io
from ltinet.cli import options as tables
from ltinet.cli.options import flag, option, parse_names
from ltinet.cli.samples import read_columns
from ltinet.cli.sources import read_system_or_network
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import FileFormatError, InvalidSignalError
from ltinet.plotting import draw_measured
from ltinet.signals.sampled import Hold
from ltinet.simulation.api import resolve_hold
from ltinet.state_space import StateSpace
from ltinet.systems.signal_names import UNNAMED
from ltinet.tables.options import TableOptions
from ltinet.tables.table import Table

if TYPE_CHECKING:
    from ltinet.identification.record_comparison import RecordComparison

_BAD_FIT = -100.0  # %: errors twice as large as the measurements; gives a note only
Inputs = Annotated[
    str | None, option("NAMES", "Input columns, names or numbers: Force,2.", default="those of the model")
]
Outputs = Annotated[
    str | None, option("NAMES", "Output columns, names or numbers: y1,y2.", default="those of the model")
]
FromRest = Annotated[bool, flag("--from-rest", "Start at the operating point instead of fitting the initial state.")]
HoldOption = Annotated[
    Hold | None, option(None, "Input between samples: linear or constant.", default="that of the model, else linear")
]
Picture = Annotated[
    str | None, option("FILE", "Picture of measured and simulated outputs: .png, .svg, .pdf.", "--plot")
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
    day_first: tables.DayFirst = None,
) -> None:
    """Compare a model with measured inputs and outputs.

    NET is a network or system file; DATA is a CSV file with the measured inputs and outputs. Prints the fit of each
    output: 100 % for a perfect model, 0 % for one that is no better than the mean. Outputs are simulated from the
    inputs; only the initial state is fitted. Delays, operating point and hold are those of the model.
    """
    from ltinet.identification.record_comparison import compare_record  # imported here to keep other commands fast

    if net == io.STANDARD_STREAM == data:
        raise typer.BadParameter("only one of them can come from standard input", param_hint="'NET' / 'DATA'")
    reading = TableOptions(
        delimiter, decimal, thousands, header, time, time_unit, zone, dt, gaps, encoding=encoding, day_first=day_first
    )
    tables.table_options(reading, None)
    if picture is not None:
        io.check_picture_target(picture, {"the model": net, "the table": data})
    model = read_system_or_network(net)
    table = _table(data, reading, model, inputs, outputs)
    u, y = table.values[:, : model.n_inputs], table.values[:, model.n_inputs :]
    try:
        with io.show_status(f"simulating {io.display_name(data)}"):
            comparison = compare_record(model, u, y, t=table.t, dt=None, from_rest=from_rest, hold=hold)
    except InvalidSignalError as error:
        message = str(error).replace("from_rest=True", "--from-rest")
        raise InvalidSignalError(f"{io.display_name(data)}: {message}") from None
    for line in table.notes:
        io.print_note(line)
    start = "from rest" if from_rest else "initial state fitted"
    held = f"{resolve_hold(hold, model.signal_settings)} hold" if model.dt is None else f"dt = {model.dt:g}"
    settings = f"{format_count(len(comparison.t), 'sample')}, {held}, {start}"
    rows = [f"{fit:8.2f} %  {sanitize(name)}" for fit, name in zip(comparison.fits, model.output_names, strict=True)]
    if picture != io.STANDARD_STREAM:
        io.write_stdout("\n".join([f"fit to {io.display_name(data)} ({settings})", *rows]) + "\n")
    if comparison.fits.min() < _BAD_FIT:
        io.print_note(
            "the model is far worse than the mean of the measurements: are the columns in the right order and in the units of "
            "the model?"
        )
    if picture is not None:
        _draw(picture, comparison, model.output_names, table.time_unit)
        if picture != io.STANDARD_STREAM:
            io.print_note(f"picture written to {picture}")


def _table(
    data: str, options: TableOptions, model: StateSpace | DynamicNetwork, inputs: str | None, outputs: str | None
) -> Table:
    """Return the columns of inputs and then those of outputs, both in the order of the model."""
    system = model if isinstance(model, StateSpace) else model.system
    names = UNNAMED if system is None else system.matrices.names
    selected = []
    for given, known, count, noun in (
        (inputs, names.inputs, model.n_inputs, "input"),
        (outputs, names.outputs, model.n_outputs, "output"),
    ):
        columns = parse_names(given) or list(known or ())
        if not columns:
            raise FileFormatError(f"the model has no {noun} names; name the {noun} columns with --{noun}s")
        if len(columns) != count:
            raise FileFormatError(
                f"--{noun}s has {format_count(len(columns), 'column')}, but the model has {format_count(count, noun)}; give "
                "one column for each"
            )
        # Columns with the names of the model's channels are matched by name, others by their order.
        by_name = known is not None and sorted(columns) == sorted(known)
        selected += list(known or ()) if by_name else columns
    return read_columns(data, options.with_columns(selected))


def _draw(picture: str, comparison: "RecordComparison", names: tuple[str, ...], time_unit: str | None) -> None:
    """Draw measured and simulated outputs; a row of NaN before each seam ends the lines at gaps of the record."""
    gaps = np.searchsorted(comparison.t, comparison.seams)
    t = np.insert(comparison.t, gaps, comparison.t[gaps])
    measured, simulated = (np.insert(y, gaps, np.nan, axis=0) for y in (comparison.measured, comparison.simulated))
    fits, seams = comparison.fits.tolist(), comparison.seams
    io.write_picture(
        picture,
        lambda: draw_measured(t, measured, simulated, fits=fits, names=names, seams=seams, time_unit=time_unit),
    )
