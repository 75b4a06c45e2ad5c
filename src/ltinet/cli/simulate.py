"""Command `ltinet simulate`: outputs of a network for a table of inputs, also while the table arrives.

A streamed run holds one chunk of rows in memory and continues from the last chunk in one of two ways. At even times
a stepper continues, which keeps delayed signals in buffers. At other times the run restarts at the end t_c of an
earlier chunk from the state there. An output delayed by σ is that of the core at t − σ, so t_c is the last such end
that lies at least σ before the next row; an input delayed by τ acts from t_c on with its values from t_c − τ on, so
rows since then are kept.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, final

import numpy as np
import typer

from ltinet._util.floating_point import EPS, Array
from ltinet._util.progress import track_progress
from ltinet._util.text import format_count
from ltinet.cli import options as tables
from ltinet.cli.io import (
    STANDARD_STREAM,
    check_target,
    draw_headless,
    is_stream,
    picture_suffix,
    print_note,
    refuse_overwriting,
    refuse_terminal,
    show_status,
    write_chunks,
    write_output,
)
from ltinet.cli.samples import Samples, format_of, is_state_file, open_samples, parse_initial_state, read_whole_table
from ltinet.cli.sources import read_network
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidSignalError, SimulationError
from ltinet.export.sample_files import WRITERS, csv_header, csv_rows
from ltinet.plotting import save_figure
from ltinet.plotting.figures import require_matplotlib
from ltinet.signals.conversion import match_columns
from ltinet.signals.sampled import Hold, SampledSignal
from ltinet.signals.times import uniform_step
from ltinet.simulation.api import resolve_hold
from ltinet.simulation.engines import ENGINES
from ltinet.simulation.options import DEGREES
from ltinet.simulation.solution import Solution
from ltinet.simulation.stepper import Stepper
from ltinet.tables.options import TableOptions
from ltinet.tables.reading import TableChunk, TableReader
from ltinet.tables.source import BLOCK_BYTES
from ltinet.tables.writing import ROWS_PER_CHUNK

# As for the times of a whole table: rounding of each, and little compared with the step.
_ROUNDING, _SHARE = 8.0, 1e-6
_MARGIN = 2  # rows that are kept beyond those that are needed: rounding may move a late row past the next one


def simulate_stream(
    network: DynamicNetwork, chunks: Iterable[TableChunk], *, hold: Hold | None, x0: Array | None
) -> Iterator[tuple[Array, Array]]:
    """Times and outputs of chunk after chunk, each as soon as it has come.

    Raises:
        SimulationError: outputs leave the range of double precision; those before have been given.
    """
    run = _StreamRun(network, hold, x0)
    for chunk in chunks:
        y = run.outputs(chunk)
        place = first_nonfinite_time(y)
        yield chunk.t[:place], y[:place]
        if place is not None:
            raise overflow_message(float(chunk.t[place]))


def first_nonfinite_time(y: Array) -> int | None:
    """The first time `(..., T, p)` at which an output is not finite, None if all are."""
    finite = np.isfinite(y).all(axis=-1)
    return None if finite.all() else int(np.argmin(finite.reshape(-1, finite.shape[-1]).all(axis=0)))


def overflow_message(t: float) -> SimulationError:
    """What to say of outputs that are not finite."""
    return SimulationError(
        f"the outputs are beyond the range of double precision from t = {t:g} on; the network is unstable or the "
        "inputs too large: end earlier or scale the inputs"
    )


@final
class _StreamRun:
    """What is known at the last row.

    The first chunk is run as if it were all. If more come, even times go on with a stepper, which keeps its state in
    its own coordinates; others begin anew from the state at the end of an earlier chunk.
    """

    def __init__(self, network: DynamicNetwork, hold: Hold | None, x0: Array | None) -> None:
        self._network, self._x0 = network, x0
        settings = network.signal_settings
        self._hold: Hold = resolve_hold(hold, settings)
        self._longest_input_delay = float(settings.array("input_delay", network.n_inputs).max(initial=0.0))
        self._longest_output_delay = float(settings.array("output_delay", network.n_outputs).max(initial=0.0))
        self._first: TableChunk | None = None  # until it is known whether times are even
        self._stepper: Stepper | None = None
        self._grid = (0.0, 0.0, 0)  # the first time, the step, the rows so far
        self._rows: TableChunk | None = None  # those that a new beginning needs
        self._ends: list[tuple[float, Array | None]] = []  # ends of chunks to begin at, with their states

    def outputs(self, chunk: TableChunk) -> Array:
        """Outputs `(T, p)` at the times of the chunk."""
        if self._rows is None:
            solution = self._network.simulate(chunk.values, chunk.t, x0=self._x0, hold=self._hold)
            self._first, self._rows = chunk, chunk
            self._ends = [(float(chunk.t[0]), self._x0)]
            self._keep(float(chunk.t[-1]), solution.trajectory.user_states(chunk.t[-1:])[0])
            return np.asarray(solution.y)
        if self._first is not None:
            self._begin_steps(self._first, chunk)
            self._first = None
        self._rows = TableChunk(
            np.concatenate([self._rows.t, chunk.t]), np.concatenate([self._rows.values, chunk.values])
        )
        if self._stepper is not None and self._goes_on(chunk.t):
            y = next(self._stepper.run([chunk.values]))
            x = self._stepper.x
        else:
            self._stepper = None
            y, x = self._anew(chunk, self._rows)
        self._keep(float(chunk.t[-1]), x)
        return np.asarray(y)

    def _begin_steps(self, first: TableChunk, second: TableChunk) -> None:
        """Take steps if the times so far are even, and go through the first chunk once more: its state is needed."""
        step = uniform_step(np.concatenate([first.t, second.t]))
        if step is not None:
            self._stepper = self._network.stepper(step, hold=self._hold, x0=self._x0)
            next(self._stepper.run([first.values]))
            self._grid = (float(first.t[0]), step, len(first.t))

    def _goes_on(self, t: Array) -> bool:
        """Whether the times stand on the grid of those before, each where rounding puts it."""
        begin, step, n_rows = self._grid
        expected = begin + step * np.arange(n_rows, n_rows + len(t), dtype=np.float64)
        bound = min(_ROUNDING * EPS * max(abs(begin), abs(float(t[-1]))), _SHARE * step)
        if np.abs(t - expected).max() <= bound:
            self._grid = (begin, step, n_rows + len(t))
            return True
        return False

    def _anew(self, chunk: TableChunk, rows: TableChunk) -> tuple[Array, Array]:
        """Outputs at the times of the chunk and the state at its end, from the state at an earlier end on."""
        begin, x = self._ends[0]
        t = np.concatenate([[begin], chunk.t])
        signal = SampledSignal(rows.t, rows.values, hold=self._hold)
        solution = self._network.simulate(signal, t, x0=x)
        return np.asarray(solution.y[1:]), solution.trajectory.user_states(t[-1:])[0]

    def _keep(self, end: float, x: Array) -> None:
        """Keep this end and its state, and of what came before only what a new beginning needs."""
        assert self._rows is not None  # noqa: S101 - for mypy: rows have come
        self._ends.append((end, x))
        n_old = sum(own <= end - self._longest_output_delay for own, _ in self._ends)
        self._ends = self._ends[max(n_old - 1, 0) :]
        since = self._ends[0][0] - self._longest_input_delay
        t = self._rows.t
        first = int(np.searchsorted(t, since, side="left")) - _MARGIN
        if first > 0:
            first = int(np.searchsorted(t, t[first], side="left"))  # both rows of a jump
            self._rows = TableChunk(t[first:].copy(), self._rows.values[first:].copy())


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


def simulate(  # noqa: PLR0913
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
    if net == STANDARD_STREAM == table:
        raise typer.BadParameter("only one of them can come from standard input", param_hint="'NET' / '--input'")
    reading = TableOptions(delimiter, decimal, thousands, header, time, time_unit, zone, dt, gaps, encoding=encoding)
    options = tables.table_options(reading, columns)
    solver = _given_solver_options(engine, {"method": method, "rtol": rtol, "atol": atol})
    target = output or (STANDARD_STREAM if picture is None else None)
    sources = {"the table of inputs": table, "the network": net}
    if x0 is not None and is_state_file(x0):
        sources["the initial state"] = x0
    kind = _checked_targets(target, picture, file_format, sources)
    network = read_network(net)
    run = {"x0": None if x0 is None else parse_initial_state(x0, network.n_states), "hold": hold}
    with tables.typed_option_names(), open_samples(table, options) as source:
        if (
            engine == "exact"
            and isinstance(source, TableReader)
            and picture is None
            and _writes_in_chunks(table, target, kind)
        ):
            n_samples = _stream(network, source, str(target), run)
        else:
            whole = source if isinstance(source, Samples) else _read(source, network, table)
            told_by_engine = engine != "exact"  # solvers count their layers
            with nullcontext() if told_by_engine else show_status(f"simulating {source.title}"):
                solution = _simulate_samples(network, whole, {**run, "engine": engine, **solver})
            if picture is not None:
                _draw(picture, solution, network, source.names if isinstance(source, TableReader) else None)
            n_samples = len(solution.t) if target is None else _write(target, kind, solution, network.output_names)
        told = source.notes if isinstance(source, TableReader) else ()
    written = ", ".join(name for name in (target, picture) if name is not None)
    for line in (*told, f"{n_samples} samples of {format_count(network.n_outputs, 'output')} written to {written}"):
        if target != STANDARD_STREAM:
            print_note(line)


def _checked_targets(target: str | None, picture: str | None, wanted: str | None, sources: dict[str, str]) -> str:
    """The kind of table that is written, csv where there is none; places that cannot be written are refused."""
    kind = "csv" if target is None else format_of(target, wanted)
    if picture is not None:
        picture_suffix(picture)
        require_matplotlib()
        if picture == target or (is_stream(picture) and target == STANDARD_STREAM):
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
    with show_status("drawing"):
        figure = draw_headless(lambda: solution.plot(names=network.output_names, input_names=inputs))
        write_output(picture, lambda path: save_figure(figure, path), suffix=picture_suffix(picture))


def _writes_in_chunks(table: str, output: str | None, kind: str) -> bool:
    """Whether somebody waits for the first rows before the last ones are there.

    A file that is read at once is answered at once, and a fault in it leaves nothing written.
    """
    if output is None or kind != "csv":
        return False
    return is_stream(table) or (is_stream(output) and Path(table).stat().st_size > BLOCK_BYTES)


def _stream(network: DynamicNetwork, source: TableReader, output: str, run: dict[str, Any]) -> int:
    places, n_samples = _input_columns(source, network), 0

    def pieces() -> Iterator[bytes]:
        nonlocal n_samples
        for t, y in simulate_stream(network, _reordered_chunks(source, places), **run):
            header = b"" if n_samples else csv_header(network.output_names)
            n_samples += len(t)
            yield header + b"".join(csv_rows(t, y))

    write_chunks(output, _with_progress(pieces(), None, f"simulating {source.title}", output))
    return n_samples


def _read(source: TableReader, network: DynamicNetwork, table: str) -> Samples:
    places = _input_columns(source, network)
    whole = read_whole_table(source, table)
    return Samples(source.title, whole.t, whole.values if places is None else whole.values[:, places])


def _reordered_chunks(source: TableReader, places: list[int] | None) -> Iterable[TableChunk]:
    """The chunks of a table with a column for each input, in the order of the inputs."""
    chunks = source.chunks()
    return chunks if places is None else (TableChunk(chunk.t, chunk.values[:, places]) for chunk in chunks)


def _input_columns(source: TableReader, network: DynamicNetwork) -> list[int] | None:
    """Where the columns of the inputs stand, if these were given names; None for their order."""
    names = _input_names(network)
    if names is not None and len(source.names) > len(names) and set(names) <= set(source.names):
        return [source.names.index(name) for name in names]  # measured outputs stand beside the inputs, for example
    _refuse_other_counts(len(source.names), source.title, network)
    return None if names is None else match_columns(source.names, names, source.title)


def _input_names(network: DynamicNetwork) -> tuple[str, ...] | None:
    """The names that the inputs were given, None where they were not."""
    return None if network.system is None else network.system.matrices.names.inputs


def _write(output: str, kind: str, result: Solution, names: Sequence[str]) -> int:
    if kind != "csv" or result.y.ndim > 2:
        write_output(output, lambda path: WRITERS[kind](path, result.t, result.y))
    else:
        lines = _with_progress(csv_rows(result.t, result.y), len(result.t) // ROWS_PER_CHUNK + 1, "writing", output)
        write_chunks(output, chain([csv_header(names)], lines))
    return len(result.t)


def _with_progress(pieces: Iterable[bytes], total: int | None, noun: str, output: str) -> Iterable[bytes]:
    """The pieces, with a bar for those who wait, unless the rows themselves go to the terminal."""
    return pieces if output == STANDARD_STREAM else track_progress(pieces, total=total, noun=noun)


def _given_solver_options(engine: str, solver: dict[str, Any]) -> dict[str, Any]:
    """The options of the solver that were given; none of them is for the exact engine."""
    given = {name: value for name, value in solver.items() if value is not None}
    if given and engine == "exact":
        raise typer.BadParameter(
            "the exact engine has no solver; add --engine per_neuron or --engine per_interval",
            param_hint=" / ".join(f"'--{name}'" for name in given),
        )
    return given


def _simulate_samples(network: DynamicNetwork, samples: Samples, options: dict[str, Any]) -> Solution:
    _refuse_other_counts(samples.values.shape[-1], samples.title, network)
    try:
        solution = network.simulate(samples.values, samples.t, **options)
    except InvalidSignalError as error:
        raise InvalidSignalError(f"{samples.title}: {error}") from None
    place = first_nonfinite_time(solution.y)
    if place is not None:
        raise overflow_message(float(solution.t[place]))
    return solution


def _refuse_other_counts(n_channels: int, title: str, network: DynamicNetwork) -> None:
    if n_channels != network.n_inputs:
        raise InvalidSignalError(
            f"{title} has {format_count(n_channels, 'input column')} beside the time, but the network has "
            f"{format_count(network.n_inputs, 'input')}; give one column for each, or choose columns with --columns"
        )
