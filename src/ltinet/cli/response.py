"""Command `ltinet response`: step, impulse, Bode and Nyquist responses as a picture, a table, or numbers on the screen."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray

from ltinet._util.display import text_table
from ltinet._util.floating_point import Array
from ltinet._util.text import sanitize
from ltinet.cli import io
from ltinet.cli.options import option, parse_channel
from ltinet.cli.sources import MatrixNames, SourceName, read_system_or_network
from ltinet.dynamic_network import DynamicNetwork
from ltinet.export.sample_files import WRITERS, csv_line, csv_rows
from ltinet.io import mat5, npz
from ltinet.plotting import draw_responses, save_figure
from ltinet.plotting.figures import PICTURE_FORMATS
from ltinet.plotting.frequency_response import unwrapped_phase
from ltinet.simulation.solution import Solution
from ltinet.state_space import StateSpace

_MAX_ROWS = 40  # printed on the terminal
_STEP_NUMBERS = ("final value", "rise time", "settling time", "overshoot", "undershoot", "peak", "peak time")


def write_time_response(target: str, kind: str, solution: Solution, request: "_ResponseRequest") -> None:
    """Write times and responses: a CSV column for each pair, in other files the arrays t and y as `Solution` has them.

    Without a chosen input y is `(m, T, p)`, one response to each input.
    """
    if kind != "csv":
        io.write_output(target, lambda path: WRITERS[kind](path, solution.t, solution.y))
        return
    y = solution.y if request.input is None else solution.y[None]
    _write_csv(target, ["t", *request.pair_names], np.column_stack([solution.t, *y]))


def write_frequency_response(target: str, kind: str, request: "_ResponseRequest") -> None:
    """Write angular frequencies and H `(K, p, m)`: a CSV has two columns for each pair, other files omega and H.

    The columns are |H| and its phase in degrees, unwrapped after removing delays, or for a Nyquist plot real and
    imaginary parts.
    """
    system, in_plane = request.system, request.kind == "nyquist"
    omega = np.asarray(system.plot.frequencies())
    H = request.select(system.frequency_response(omega))
    delays = request.select(system.signal_settings.total_delay(system.n_outputs, system.n_inputs))
    if kind != "csv":
        module, values = (npz, omega) if kind == "npz" else (mat5, omega[:, None])
        io.write_output(target, lambda path: module.write(path, {"omega": values, "H": H}))
        return
    parts = ("real", "imaginary") if in_plane else ("magnitude", "phase")
    pairs = request.pair_names
    header = ["omega", *(f"{part} {pair}" if len(pairs) > 1 else part for pair in pairs for part in parts)]
    columns = [omega]
    for column, row in product(range(H.shape[2]), range(H.shape[1])):
        h = H[:, row, column]
        columns += [h.real, h.imag] if in_plane else [np.abs(h), unwrapped_phase(h, omega * delays[row, column])]
    _write_csv(target, header, np.column_stack(columns))


def format_response_numbers(request: "_ResponseRequest") -> str:
    """Return a table of characteristic numbers with a row for each pair of input and output; "–" if undefined.

    Step responses have final value, rise time, …; Bode plots DC gain and bandwidth.
    """
    system = request.system
    if request.kind == "step":
        info = system.step_info()
        names = ("dead time", *_STEP_NUMBERS) if np.any(info.dead_time) else _STEP_NUMBERS
        numbers = {name: getattr(info, name.replace(" ", "_")) for name in names}
    else:
        with warnings.catch_warnings(action="ignore"):  # of integrators, whose bandwidth is undefined
            numbers = {"DC gain": system.dcgain(), "bandwidth": system.bandwidth()}
    heading = {"overshoot": "overshoot %", "undershoot": "undershoot %", "bandwidth": "bandwidth (rad/time)"}
    rows = []
    for row, column in request.pairs[:_MAX_ROWS]:
        title = sanitize(f"{request.input_names[column]} → {request.names[row]}")
        values = (table[row, column] for table in numbers.values())
        rows.append((title, *("–" if np.isnan(value) else f"{value:.5g}" for value in values)))
    table = text_table(("", *(heading.get(name, name) for name in numbers)), rows)
    n_more = len(request.pairs) - _MAX_ROWS
    return f"{table}\n… and {n_more} more; choose with --input and --output" if n_more > 0 else table


def _write_csv(target: str, header: Sequence[str], table: Array) -> None:
    io.write_chunks(target, chain([csv_line(header)], csv_rows(table)))


Kind = Literal["step", "impulse", "bode", "nyquist"]
_IN_TIME = ("step", "impulse")
_IN_NUMBERS = ("step", "bode")


@dataclass(frozen=True)
class _ResponseRequest:
    """Response to compute: a system, the kind, and one input or output of it, or all of them (None)."""

    system: StateSpace | DynamicNetwork
    kind: Kind
    names: list[str]
    input_names: list[str]
    output: int | None
    input: int | None

    @property
    def is_all(self) -> bool:
        """True if all inputs and outputs are chosen."""
        return self.output is self.input is None

    @property
    def selected_names(self) -> list[str]:
        """Names of the chosen outputs."""
        return self.names[_index_slice(self.output)]

    @property
    def selected_input_names(self) -> list[str]:
        """Names of the chosen inputs."""
        return self.input_names[_index_slice(self.input)]

    @property
    def pair_names(self) -> list[str]:
        """Names of the chosen pairs, by inputs; those of the outputs if there is one input."""
        names, input_names = self.selected_names, self.selected_input_names
        if len(input_names) == 1:
            return names
        return [f"{name} from {source}" for source in input_names for name in names]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Chosen pairs of output and input, by inputs."""
        rows, columns = range(len(self.names)), range(len(self.input_names))
        chosen = rows[_index_slice(self.output)], columns[_index_slice(self.input)]
        return [(row, column) for column in chosen[1] for row in chosen[0]]

    def select(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the chosen entries of an array `(..., p, m)`."""
        return values[..., _index_slice(self.output), _index_slice(self.input)]


def response(
    file: SourceName,
    *,
    kind: Annotated[
        Kind, option(None, "Response over time, or frequency response as Bode or Nyquist plot.", default=True)
    ] = "step",
    input: Annotated[str | None, option("N", "One input: 1, 2, … or u1, u2, …", "--input", default="all")] = None,
    channel: Annotated[str | None, option("N", "One output: 1, 2, … or y1, y2, …", "--output", default="all")] = None,
    target: Annotated[
        str | None,
        option(
            "FILE", "Picture (.png, .svg, .pdf) or table (.csv, .npz, .mat) to write.", "-o", "--out", default="print"
        ),
    ] = None,
    file_format: Annotated[
        str | None, option("KIND", "Format of output to -: csv, npz, mat, png, …", "--format", default="csv")
    ] = None,
    matrix: MatrixNames = None,
) -> None:
    """Compute step, impulse, Bode or Nyquist responses.

    FILE is a network (.safetensors) or a system: a .mat or .npz file, a folder of Matrix Market files, or a built-in
    system such as example:heat_rod. Times and frequencies are chosen automatically. Without -o rise time, settling time
    and overshoot (step), or DC gain and bandwidth (bode) are printed.
    """
    file_format = _resolve_format(target, file_format, kind)
    if target is not None:
        io.check_target(target, {"the system": file}, is_text=file_format in ("csv", "svg"))
    request = _build_request(read_system_or_network(file, matrix), kind, input, channel)
    if target is None:
        io.write_stdout(format_response_numbers(request) + "\n")
        return
    _write(request, target, file_format)


def _resolve_format(target: str | None, file_format: str | None, kind: Kind) -> str:
    """Return the format to write: that of the suffix, or of --format for a stream; "" to print numbers."""
    if target is None:
        if kind not in _IN_NUMBERS or file_format is not None:
            raise typer.BadParameter(
                f"name a picture or a table to write, as in -o {kind}.png or -o {kind}.csv", param_hint="'-o'"
            )
        return ""
    return io.resolve_format(target, file_format, (*WRITERS, *PICTURE_FORMATS), default="csv")


def _build_request(
    system: StateSpace | DynamicNetwork, kind: Kind, input: str | None, output: str | None
) -> _ResponseRequest:
    names, input_names = list(system.output_names), list(system.input_names)
    if output is not None and Path(output).suffix.lower().removeprefix(".") in (*WRITERS, *PICTURE_FORMATS):
        raise typer.BadParameter(
            f"{sanitize(output)} looks like a file: --output chooses one output of the system, -o names the file",
            param_hint="'--output'",
        )
    row = parse_channel(output, names, option="--output", noun="output")
    column = parse_channel(input, input_names, option="--input", noun="input")
    return _ResponseRequest(system, kind, names, input_names, row, column)


def _write(request: _ResponseRequest, target: str, file_format: str) -> None:
    """Compute the response and write it as a picture or a table."""
    system, solution = request.system, None
    with io.show_status(f"computing the {request.kind} response of {system.n_states} states"):
        if request.kind in _IN_TIME and not (file_format in PICTURE_FORMATS and request.is_all):
            respond = system.step_response if request.kind == "step" else system.impulse_response
            solution = respond(input=request.input, output=request.output)
        if file_format in PICTURE_FORMATS:
            figure = io.draw_headless(lambda: _draw(request, solution))
            io.write_output(target, lambda path: save_figure(figure, path), suffix=f".{file_format}")
        elif solution is not None:
            write_time_response(target, file_format, solution, request)
        else:
            write_frequency_response(target, file_format, request)
    if target != io.STANDARD_STREAM:
        notes = () if solution is None else solution.notes
        for line in (*notes, f"{request.kind} response written to {target}"):
            io.print_note(line)


def _draw(request: _ResponseRequest, solution: Solution | None) -> Any:
    """Draw the responses of a solution, or all chosen pairs as the library does."""
    plots = replace(request.system.plot, names=request.names, input_names=request.input_names)
    if solution is not None:
        final = request.select(request.system.dcgain()) if request.kind == "step" else None
        names, input_names = request.selected_names, request.selected_input_names
        return draw_responses(
            solution.t, solution.y, final=final, names=names, input_names=input_names, notes=solution.notes
        )
    if request.kind in _IN_TIME:
        return plots.step() if request.kind == "step" else plots.impulse()
    pairs = None if request.is_all else request.pairs
    return plots.bode(pairs=pairs) if request.kind == "bode" else plots.nyquist(pairs=pairs)


def _index_slice(index: int | None) -> slice:
    """Return the slice of one index, or of all for None."""
    return slice(None) if index is None else slice(index, index + 1)
