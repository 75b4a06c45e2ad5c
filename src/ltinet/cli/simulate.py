"""Command `ltinet simulate`: outputs of a system or network for a table of inputs, also while the table arrives.

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

from ltinet._util.floating_point import Array
from ltinet._util.progress import track_progress
from ltinet._util.text import format_count
from ltinet.cli import io
from ltinet.cli import options as tables
from ltinet.cli.options import option
from ltinet.cli.samples import (
    Samples,
    open_samples,
    output_format,
    parse_initial_state,
    read_whole_table,
    state_source,
)
from ltinet.cli.sources import MatrixNames, complete_source, read_system_or_network
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import InvalidSignalError, SimulationError
from ltinet.export.sample_files import ROWS_PER_CHUNK, WRITERS, csv_line, csv_rows
from ltinet.signals.conversion import match_columns
from ltinet.signals.sampled import Hold, SampledSignal
from ltinet.signals.times import TimeAxis, grid_tolerance, resampled_times, uniform_step
from ltinet.simulation.api import resolve_hold
from ltinet.simulation.engines import ENGINES
from ltinet.simulation.options import DEGREES
from ltinet.simulation.solution import Solution
from ltinet.simulation.stepper import Stepper
from ltinet.state_space import StateSpace
from ltinet.tables.options import TableOptions
from ltinet.tables.reading import TableChunk, TableReader
from ltinet.tables.source import BLOCK_BYTES

Model = StateSpace | DynamicNetwork
_EXTRA_ROWS = 2  # rows kept beyond those needed: rounding may move a delayed row past the next one


def simulate_stream(
    model: Model, chunks: Iterable[TableChunk], *, hold: Hold | None, x0: Array | None
) -> Iterator[tuple[Array, Array]]:
    """Yield times and outputs of each chunk as soon as it arrives.

    Raise `SimulationError` if outputs overflow, after yielding those before.
    """
    run = _StreamRun(model, hold, x0)
    for chunk in chunks:
        y = run.outputs(chunk)
        index = first_nonfinite_index(y)
        yield chunk.t[:index], y[:index]
        if index is not None:
            raise overflow_error(float(chunk.t[index]))


def first_nonfinite_index(y: Array) -> int | None:
    """Return the first time index of outputs `(..., T, p)` at which one is not finite, None if all are finite."""
    finite = np.isfinite(y).all(axis=-1)
    return None if finite.all() else int(np.argmin(finite.reshape(-1, finite.shape[-1]).all(axis=0)))


def overflow_error(t: float) -> SimulationError:
    """Return the error for outputs that are not finite from a time on."""
    return SimulationError(
        f"the outputs overflow at t = {t:g}; the model is unstable or the inputs are too large: end earlier or scale "
        "the inputs"
    )


@final
class _StreamRun:
    """Run over chunks of rows, with the state at the last row.

    The first chunk is run on its own. If more follow, even times continue with a stepper, which keeps its state in its
    own coordinates; other times restart from the state at the end of an earlier chunk.
    """

    def __init__(self, model: Model, hold: Hold | None, x0: Array | None) -> None:
        self._model, self._x0 = model, x0
        settings = model.signal_settings
        self._hold: Hold = resolve_hold(hold, settings, model.dt)
        self._longest_input_delay = float(settings.array("input_delay", model.n_inputs).max(initial=0.0))
        self._longest_output_delay = float(settings.array("output_delay", model.n_outputs).max(initial=0.0))
        self._first: TableChunk | None = None  # until the second chunk shows whether times are even
        self._stepper: Stepper | None = None
        self._grid = (0.0, 0.0, 0)  # first time, step, number of rows so far
        self._rows: TableChunk | None = None  # rows that a restart needs
        self._ends: list[tuple[float, Array | None]] = []  # ends of chunks to restart from, with their states

    def outputs(self, chunk: TableChunk) -> Array:
        """Return outputs `(T, p)` at the times of the next chunk."""
        if self._rows is None:
            solution = self._model.simulate(chunk.values, chunk.t, x0=self._x0, hold=self._hold)
            self._first, self._rows = chunk, chunk
            self._ends = [(float(chunk.t[0]), self._x0)]
            self._add_end(float(chunk.t[-1]), solution.trajectory.user_states(chunk.t[-1:])[0])
            return np.asarray(solution.y)
        if self._first is not None:
            self._start_stepper(self._first, chunk)
            self._first = None
        self._rows = TableChunk(
            np.concatenate([self._rows.t, chunk.t]), np.concatenate([self._rows.values, chunk.values])
        )
        if self._stepper is not None and self._continues_grid(chunk.t):
            y = next(self._stepper.run([chunk.values]))
            x = self._stepper.x
        else:
            self._stepper = None
            y, x = self._restart(chunk, self._rows)
        self._add_end(float(chunk.t[-1]), x)
        return np.asarray(y)

    def _start_stepper(self, first: TableChunk, second: TableChunk) -> None:
        """Start a stepper if the times so far are even, and run it over the first chunk again to get its state."""
        step = uniform_step(np.concatenate([first.t, second.t]))
        if step is not None:
            self._stepper = self._model.stepper(step if self._model.dt is None else None, hold=self._hold, x0=self._x0)
            next(self._stepper.run([first.values]))
            self._grid = (float(first.t[0]), step, len(first.t))

    def _continues_grid(self, t: Array) -> bool:
        """Return whether times continue the even grid of earlier rows, up to rounding."""
        begin, step, n_rows = self._grid
        expected = begin + step * np.arange(n_rows, n_rows + len(t), dtype=np.float64)
        if np.abs(t - expected).max() <= grid_tolerance(begin, float(t[-1]), step):
            self._grid = (begin, step, n_rows + len(t))
            return True
        return False

    def _restart(self, chunk: TableChunk, rows: TableChunk) -> tuple[Array, Array]:
        """Return outputs at the times of the chunk and the state at its end, from an earlier state."""
        begin, x = self._ends[0]
        t = np.concatenate([[begin], chunk.t])
        signal = SampledSignal(rows.t, rows.values, hold=self._hold)
        solution = self._model.simulate(signal, t, x0=x)
        return np.asarray(solution.y[1:]), solution.trajectory.user_states(t[-1:])[0]

    def _add_end(self, end: float, x: Array) -> None:
        """Store the end of a chunk with its state, and drop ends and rows that no restart needs."""
        assert self._rows is not None  # noqa: S101 - for mypy: rows have come
        self._ends.append((end, x))
        n_old = sum(time <= end - self._longest_output_delay for time, _ in self._ends)
        self._ends = self._ends[max(n_old - 1, 0) :]
        since = self._ends[0][0] - self._longest_input_delay
        t = self._rows.t
        first = int(np.searchsorted(t, since, side="left")) - _EXTRA_ROWS
        if first > 0:
            first = int(np.searchsorted(t, t[first], side="left"))  # both rows of a jump
            self._rows = TableChunk(t[first:].copy(), self._rows.values[first:].copy())


if TYPE_CHECKING:
    EngineName = str
else:
    EngineName = Literal[tuple(ENGINES)]  # so that the command line lists them

Table = Annotated[str, option("FILE", "Table of inputs, or -.", "--input", "-i")]
Format = Annotated[
    str | None,
    option("csv|npz|mat", "Format of the output.", "--format", default="by the name of the output, csv for -"),
]
HoldOption = Annotated[
    Hold | None,
    option(
        None,
        "Input between samples: linear, or constant (zero-order hold).",
        default="that of the model, else linear; zero in discrete time",
    ),
]
InitialState = Annotated[
    str | None, option("STATE", "Initial state of the system: 1,0,-2, or a .npz or .mat file with x0.", default="zero")
]
Picture = Annotated[str | None, option("FILE", "Picture of the outputs: .png, .svg or .pdf.", "--plot")]
Resample = Annotated[
    float | None, option("STEP", "Time step of the outputs; inputs stay as they are.", default="times of the table")
]
Engine = Annotated[
    EngineName, option(None, "In closed form, or with an ODE solver (the paper's Algorithms 3 and A.1).", default=True)
]
Method = Annotated[str | None, option("|".join(DEGREES), "ODE solver: method.", default="DOP853")]
Rtol = Annotated[float | None, option(None, "ODE solver: relative tolerance.", default="1e-8")]
Atol = Annotated[float | None, option(None, "ODE solver: absolute tolerance.", default="1e-10")]


def simulate(  # noqa: PLR0913
    net: Annotated[str, typer.Argument(metavar="MODEL", hidden=True, autocompletion=complete_source)],
    table: Table,
    *,
    output: Annotated[
        str | None, option("FILE", "Table of outputs.", "--output", "-o", default="-, none with --plot")
    ] = None,
    picture: Picture = None,
    file_format: Format = None,
    hold: HoldOption = None,
    x0: InitialState = None,
    resample: Resample = None,
    engine: Engine = "exact",
    method: Method = None,
    rtol: Rtol = None,
    atol: Atol = None,
    matrix: MatrixNames = None,
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
    day_first: tables.DayFirst = None,
) -> None:
    """Simulate a system or network for a table of inputs.

    MODEL is a system (.mat, .npz, a folder of Matrix Market files, example:NAME), or a network (.safetensors).

    The table is a CSV file, as spreadsheets and loggers write them, with a column of times; the others are the inputs,
    matched by the names of the model's inputs, else by order. A time given twice marks a jump. Ambiguous tables are
    rejected; the error names the option to set. A .npz or .mat file with arrays t and u is accepted, too. The output has
    the columns t, y1, y2, …, or the model's names of outputs, or the arrays t and y. Piped input is processed as it
    arrives.
    """
    if net == io.STANDARD_STREAM == table:
        raise typer.BadParameter("only one of them can come from standard input", param_hint="'MODEL' / '--input'")
    reading = TableOptions(
        delimiter, decimal, thousands, header, time, time_unit, zone, dt, gaps, encoding=encoding, day_first=day_first
    )
    options = tables.table_options(reading, columns)
    settings = {"method": method, "rtol": rtol, "atol": atol}
    solver: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
    if solver and engine == "exact":
        raise typer.BadParameter(
            "the exact engine has no solver; add --engine per_neuron or --engine per_interval",
            param_hint=" / ".join(f"'--{name}'" for name in solver),
        )
    if engine != "exact":
        solver["engine"] = engine
    target = output or (io.STANDARD_STREAM if picture is None else None)
    sources = {"the table of inputs": table, "the model": net, **state_source(x0)}
    kind = _check_targets(target, picture, file_format, sources)
    model = read_system_or_network(net, matrix)
    if isinstance(model, StateSpace) and engine != "exact":
        raise typer.BadParameter(
            f"the engine {engine} needs a network; write one with ltinet construct, or leave the option out",
            param_hint="'--engine'",
        )
    run: dict[str, Any] = {"x0": None if x0 is None else parse_initial_state(x0, model.n_states), "hold": hold}
    with tables.typed_option_names(), open_samples(table, options) as source:
        in_chunks = (
            engine == "exact"
            and not (isinstance(model, StateSpace) and model.sparse is not None)
            and picture is None
            and resample is None
            and _writes_in_chunks(table, target, kind)
        )
        if in_chunks and isinstance(source, TableReader):
            n_samples = _stream(model, source, str(target), run)
        else:
            samples = source if isinstance(source, Samples) else _read(source, model, table)
            shows_progress = engine != "exact"  # ODE solvers count their layers
            with nullcontext() if shows_progress else io.show_status(f"simulating {source.title}"):
                solution = _simulate_samples(model, samples, {**run, **solver}, resample)
            if picture is not None:
                # Unnamed inputs get the names of the table's columns.
                table_names = source.names if isinstance(source, TableReader) else None
                inputs = table_names if _input_names(model) is None else model.input_names
                unit = source.time_unit if isinstance(source, TableReader) else None
                names = model.output_names
                io.write_picture(picture, lambda: solution.plot(names=names, input_names=inputs, time_unit=unit))
            n_samples = len(solution.t) if target is None else _write(target, kind, solution, model.output_names)
        notes = source.notes if isinstance(source, TableReader) else ()
    written = ", ".join(name for name in (target, picture) if name is not None)
    for line in (*notes, f"{n_samples} samples of {format_count(model.n_outputs, 'output')} written to {written}"):
        if target != io.STANDARD_STREAM:
            io.print_note(line)


def _check_targets(target: str | None, picture: str | None, file_format: str | None, sources: dict[str, str]) -> str:
    """Check before any work that table and picture can be written; return the format of the table."""
    kind = "csv" if target is None else output_format(target, file_format)
    if picture is not None:
        if picture == target or (io.is_stream(picture) and target == io.STANDARD_STREAM):
            raise typer.BadParameter("picture and table need different files", param_hint="'--plot' / '--output'")
        io.check_picture_target(picture, sources)
    if target is not None:
        io.check_target(target, sources, is_text=kind == "csv")
    return kind


def _writes_in_chunks(table: str, output: str | None, kind: str) -> bool:
    """Return whether rows are written as they are computed, since the user sees them before the last one is there.

    For a file that is read in one block all outputs are written at once, so that an error in it leaves nothing written.
    """
    if output is None or kind != "csv":
        return False
    return io.is_stream(table) or (io.is_stream(output) and Path(table).stat().st_size > BLOCK_BYTES)


def _stream(model: Model, source: TableReader, output: str, run: dict[str, Any]) -> int:
    _select_inputs(source, model)
    chunks, n_samples = source.chunks(), 0

    def pieces() -> Iterator[bytes]:
        nonlocal n_samples
        for t, y in simulate_stream(model, chunks, **run):
            header = b"" if n_samples else csv_line(["t", *model.output_names])
            n_samples += len(t)
            yield header + b"".join(csv_rows(np.column_stack([t, y])))

    io.write_chunks(output, _with_progress(pieces(), None, f"simulating {source.title}", output))
    return n_samples


def _read(source: TableReader, model: Model, table: str) -> Samples:
    _select_inputs(source, model)
    samples = read_whole_table(source, table)
    return Samples(source.title, samples.t, samples.values)


def _select_inputs(source: TableReader, model: Model) -> None:
    """Select the columns of named inputs, so that others may hold anything; else columns are taken in their order."""
    names = _input_names(model)
    if names is not None and len(source.names) > len(names) and set(names) <= set(source.names):
        source.select([source.names.index(name) for name in names])  # beside measured outputs, for example
        return
    _check_input_count(len(source.names), source.title, model)
    columns = None if names is None else match_columns(source.names, names, source.title)
    if columns is not None:
        source.select(columns)


def _input_names(model: Model) -> tuple[str, ...] | None:
    """Return the names of the inputs, None if they are unnamed."""
    system = model if isinstance(model, StateSpace) else model.system
    return None if system is None else system.matrices.names.inputs


def _write(output: str, kind: str, result: Solution, names: Sequence[str]) -> int:
    if kind != "csv" or result.y.ndim > 2:
        io.write_output(output, lambda path: WRITERS[kind](path, result.t, result.y))
    else:
        rows = csv_rows(np.column_stack([result.t, result.y]))
        lines = _with_progress(rows, len(result.t) // ROWS_PER_CHUNK + 1, "writing", output)
        io.write_chunks(output, chain([csv_line(["t", *names])], lines))
    return len(result.t)


def _with_progress(pieces: Iterable[bytes], total: int | None, noun: str, output: str) -> Iterable[bytes]:
    """Add a progress bar, unless the rows themselves go to the terminal."""
    return pieces if output == io.STANDARD_STREAM else track_progress(pieces, total=total, noun=noun)


def _simulate_samples(model: Model, samples: Samples, options: dict[str, Any], resample: float | None) -> Solution:
    """Simulate the samples; with `resample` the outputs are those at even times, and the inputs stay as they are."""
    _check_input_count(samples.values.shape[-1], samples.title, model)
    u: Any = samples.values
    try:
        t = TimeAxis.of(samples.t).t
        if resample is not None:
            u = SampledSignal(t, u, hold=resolve_hold(options["hold"], model.signal_settings, model.dt))
            t, options = resampled_times(t, resample), {**options, "hold": None}
        solution = model.simulate(u, t, **options)
    except InvalidSignalError as error:
        raise InvalidSignalError(f"{samples.title}: {str(error).replace('resample is', '--resample is')}") from None
    index = first_nonfinite_index(solution.y)
    if index is not None:
        raise overflow_error(float(solution.t[index]))
    return solution


def _check_input_count(n_channels: int, title: str, model: Model) -> None:
    if n_channels != model.n_inputs:
        raise InvalidSignalError(
            f"{title} has {format_count(n_channels, 'input column')} besides the time, but the model has "
            f"{format_count(model.n_inputs, 'input')}; give one column for each, or choose columns with --columns"
        )
