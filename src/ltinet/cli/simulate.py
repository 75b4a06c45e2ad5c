"""`ltinet simulate`: from a table of inputs to a table of outputs."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ltinet.cli import table_options as tables
from ltinet.cli.initial_state import checked_initial_state, is_file
from ltinet.cli.messages import remark, working
from ltinet.cli.overwriting import refuse_overwriting
from ltinet.cli.pictures import drawn, picture_suffix
from ltinet.cli.samples import Samples, format_of, opened_samples, read_whole
from ltinet.cli.sources import read_network
from ltinet.cli.streaming import beyond_range, first_beyond_range, streamed
from ltinet.cli.streams import STANDARD, check_target, deliver, deliver_pieces, is_stream, refuse_terminal
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidSignalError
from ltinet.export.sample_files import WRITERS, csv_header, csv_rows
from ltinet.plotting import save_figure
from ltinet.plotting.canvas import require_matplotlib
from ltinet.progress import counted
from ltinet.shown import count_of
from ltinet.signals.by_name import places_of
from ltinet.signals.sampled import Hold
from ltinet.solve.engines import ENGINES
from ltinet.solve.solution import Solution
from ltinet.solve.solvers.options import DEGREES
from ltinet.tables.options import TableOptions
from ltinet.tables.reading import Chunk, Reading
from ltinet.tables.source import BLOCK
from ltinet.tables.writing import ROWS

if TYPE_CHECKING:
    EngineName = str
else:
    EngineName = Literal[tuple(ENGINES)]  # those that there are: the command line lists them and refuses others

Table = Annotated[
    str, typer.Option("--input", "-i", metavar="FILE", show_default=False, help="The table of inputs, or -.")
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="csv|npz|mat",
        show_default="by the name of the output, csv for -",
        help="The kind of the output.",
    ),
]
HoldOption = Annotated[
    Hold | None,
    typer.Option(
        show_default="that of the model, else linear",
        help="The input between samples: straight lines, or steps (zero-order hold).",
    ),
]
InitialState = Annotated[
    str | None,
    typer.Option(
        metavar="STATE",
        show_default="zero",
        help="The state of the system at the first time: numbers as in 1,0,-2, or a .npz or .mat file with x0.",
    ),
]
Picture = Annotated[
    str | None,
    typer.Option("--plot", metavar="FILE", show_default=False, help="A picture of the outputs: .png, .svg or .pdf."),
]
Engine = Annotated[
    EngineName,
    typer.Option(help="In closed form, or with a solver for each neuron (the paper's Algorithms 3 and A.1)."),
]
Method = Annotated[
    str | None, typer.Option(metavar="|".join(DEGREES), show_default="DOP853", help="Solver engines: the method.")
]
Rtol = Annotated[float | None, typer.Option(show_default="1e-8", help="Solver engines: the relative tolerance.")]
Atol = Annotated[float | None, typer.Option(show_default="1e-10", help="Solver engines: the absolute tolerance.")]


def simulate(  # noqa: PLR0913 - every option of the command is a parameter
    net: Annotated[str, typer.Argument(metavar="NET", hidden=True)],
    table: Table,
    *,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", show_default="-, none with --plot", help="The table of outputs."
        ),
    ] = None,
    picture: Picture = None,
    file_format: Format = None,
    hold: HoldOption = None,
    x0: InitialState = None,
    engine: Engine = "exact",
    method: Method = None,
    rtol: Rtol = None,
    atol: Atol = None,
    delimiter: tables.Delimiter = None,
    decimal: tables.Decimal = None,
    thousands: tables.Thousands = None,
    header: tables.Header = None,
    time: tables.Time = None,
    time_unit: tables.TimeUnit = None,
    zone: tables.Zone = None,
    dt: tables.Dt = None,
    gaps: tables.FillGaps = "error",
    columns: tables.ChosenColumns = None,
    encoding: tables.Encoding = "utf-8",
) -> None:
    """Run a network: outputs at the times of a table of inputs.

    NET is a file that `ltinet construct` wrote.

    The table is a CSV file, as spreadsheets and loggers write them, with a column of times; the others are the inputs,
    by name where they are called as those of the network, else in their order. A time given twice marks a jump. What
    can be read in two ways is refused with the option that decides. It may also be a .npz or .mat file with arrays t
    and u. The outputs have the columns t, y1, y2, …, or the names that the network has for them, or the arrays t and y.
    What comes through a pipe is answered as it arrives.
    """
    if net == STANDARD == table:
        raise typer.BadParameter("only one of them can come from standard input", param_hint="'NET' / '--input'")
    reading = TableOptions(delimiter, decimal, thousands, header, time, time_unit, zone, dt, gaps, encoding=encoding)
    options = tables.table_options(reading, columns)
    solver = _given(engine, {"method": method, "rtol": rtol, "atol": atol})
    target = output or (STANDARD if picture is None else None)
    sources = {"the table of inputs": table, "the network": net}
    if x0 is not None and is_file(x0):
        sources["the initial state"] = x0
    kind = _checked_targets(target, picture, file_format, sources)
    network = read_network(net)
    run = {"x0": None if x0 is None else checked_initial_state(x0, network.n_states), "hold": hold}
    with tables.in_words_of_the_command_line(), opened_samples(table, options) as source:
        if engine == "exact" and isinstance(source, Reading) and picture is None and _in_pieces(table, target, kind):
            n_samples = _stream(network, source, str(target), run)
        else:
            whole = source if isinstance(source, Samples) else _read(source, network, table)
            told_by_engine = engine != "exact"  # solvers count their layers
            with nullcontext() if told_by_engine else working(f"simulating {source.title}"):
                solution = _run(network, whole, {**run, "engine": engine, **solver})
            if picture is not None:
                _draw(picture, solution, network, source.names if isinstance(source, Reading) else None)
            n_samples = len(solution.t) if target is None else _write(target, kind, solution, network.output_names)
        told = source.remarks if isinstance(source, Reading) else ()
    written = ", ".join(name for name in (target, picture) if name is not None)
    for line in (*told, f"{n_samples} samples of {count_of(network.n_outputs, 'output')} written to {written}"):
        if target != STANDARD:
            remark(line)


def _checked_targets(target: str | None, picture: str | None, wanted: str | None, sources: dict[str, str]) -> str:
    """The kind of table that is written, csv where there is none; places that cannot be written are refused."""
    kind = "csv" if target is None else format_of(target, wanted)
    if picture is not None:
        picture_suffix(picture)
        require_matplotlib()
        if picture == target or (is_stream(picture) and target == STANDARD):
            raise typer.BadParameter("the picture and the table need two places", param_hint="'--plot' / '--output'")
        refuse_terminal(picture)
    for place in (target, picture):
        if place is not None:
            check_target(place)
            refuse_overwriting(place, sources)
    if kind != "csv" and target is not None:
        refuse_terminal(target)
    return kind


def _draw(picture: str, solution: Solution, network: DynamicNetwork, columns: tuple[str, ...] | None) -> None:
    """Draw outputs and inputs under their names; inputs that have none are called as the columns of the table."""
    inputs = columns if _input_names(network) is None else network.input_names
    with working("drawing"):
        figure = drawn(lambda: solution.plot(names=network.output_names, input_names=inputs))
        deliver(picture, lambda path: save_figure(figure, path), suffix=picture_suffix(picture))


def _in_pieces(table: str, output: str | None, kind: str) -> bool:
    """Whether somebody waits for the first rows before the last ones are there.

    A file that is read at once is answered at once, and a fault in it leaves nothing written.
    """
    if output is None or kind != "csv":
        return False
    return is_stream(table) or (is_stream(output) and Path(table).stat().st_size > BLOCK)


def _stream(network: DynamicNetwork, source: Reading, output: str, run: dict[str, Any]) -> int:
    places, n_samples = _places(source, network), 0

    def pieces() -> Iterator[bytes]:
        nonlocal n_samples
        for t, y in streamed(network, _placed(source, places), **run):
            header = b"" if n_samples else csv_header(network.output_names)
            n_samples += len(t)
            yield header + b"".join(csv_rows(t, y))

    deliver_pieces(output, _watched(pieces(), None, f"simulating {source.title}", output))
    return n_samples


def _read(source: Reading, network: DynamicNetwork, table: str) -> Samples:
    places = _places(source, network)
    whole = read_whole(source, table)
    return Samples(source.title, whole.t, whole.values if places is None else whole.values[:, places])


def _placed(source: Reading, places: list[int] | None) -> Iterable[Chunk]:
    """The chunks of a table with a column for each input, in the order of the inputs."""
    chunks = source.chunks()
    return chunks if places is None else (Chunk(chunk.t, chunk.values[:, places]) for chunk in chunks)


def _places(source: Reading, network: DynamicNetwork) -> list[int] | None:
    """Where the columns of the inputs stand, if these were given names; None for their order."""
    names = _input_names(network)
    if names is not None and len(source.names) > len(names) and set(names) <= set(source.names):
        return [source.names.index(name) for name in names]  # measured outputs stand beside the inputs, for example
    _refuse_other_counts(len(source.names), source.title, network)
    return None if names is None else places_of(source.names, names, source.title)


def _input_names(network: DynamicNetwork) -> tuple[str, ...] | None:
    """The names that the inputs were given, None where they were not."""
    return None if network.system is None else network.system.matrices.names.inputs


def _write(output: str, kind: str, result: Solution, names: Sequence[str]) -> int:
    if kind != "csv" or result.y.ndim > 2:
        deliver(output, lambda path: WRITERS[kind](path, result.t, result.y))
    else:
        lines = _watched(csv_rows(result.t, result.y), len(result.t) // ROWS + 1, "writing", output)
        deliver_pieces(output, chain([csv_header(names)], lines))
    return len(result.t)


def _watched(pieces: Iterable[bytes], total: int | None, noun: str, output: str) -> Iterable[bytes]:
    """The pieces, with a bar for those who wait, unless the rows themselves go to the terminal."""
    return pieces if output == STANDARD else counted(pieces, total=total, noun=noun)


def _given(engine: str, solver: dict[str, Any]) -> dict[str, Any]:
    """The options of the solver that were given; none of them is for the exact engine."""
    given = {name: value for name, value in solver.items() if value is not None}
    if given and engine == "exact":
        raise typer.BadParameter(
            "the exact engine has no solver; add --engine neurons or --engine intervals",
            param_hint=" / ".join(f"'--{name}'" for name in given),
        )
    return given


def _run(network: DynamicNetwork, samples: Samples, options: dict[str, Any]) -> Solution:
    _refuse_other_counts(samples.values.shape[-1], samples.title, network)
    try:
        solution = network.simulate(samples.values, samples.t, **options)
    except InvalidSignalError as error:
        raise InvalidSignalError(f"{samples.title}: {error}") from None
    place = first_beyond_range(solution.y)
    if place is not None:
        raise beyond_range(float(solution.t[place]))
    return solution


def _refuse_other_counts(n_channels: int, title: str, network: DynamicNetwork) -> None:
    if n_channels != network.n_inputs:
        raise InvalidSignalError(
            f"{title} has {count_of(n_channels, 'input column')} beside the time, but the network has "
            f"{count_of(network.n_inputs, 'input')}; give one column for each, or choose columns with --columns"
        )
