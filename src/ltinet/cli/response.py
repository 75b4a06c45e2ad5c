"""Command `ltinet response`: step, impulse, Bode and Nyquist responses as a picture, a table, or numbers on the screen."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray

from ltinet._util.floating_point import Array
from ltinet._util.text import format_path, sanitize
from ltinet.cli.io import (
    STANDARD_STREAM,
    check_target,
    draw_headless,
    is_stream,
    print_note,
    refuse_overwriting,
    refuse_terminal,
    show_status,
    write_chunks,
    write_output,
    write_stdout,
)
from ltinet.cli.options import channel_names, parse_channel
from ltinet.cli.sources import MatrixNames, SourceName, read_system_or_network, refuse_discrete_time
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import FileFormatError
from ltinet.export.sample_files import WRITERS
from ltinet.io import mat5, npz
from ltinet.plotting import draw_responses, save_figure
from ltinet.plotting.figures import PICTURE_FORMATS
from ltinet.plotting.frequency_response import unwrapped_phase
from ltinet.simulation.solution import Solution
from ltinet.state_space import StateSpace
from ltinet.tables.writing import format_rows

_SHOWN = 40  # rows that are printed
_STEP_NUMBERS = ("final value", "rise time", "settling time", "overshoot", "undershoot", "peak", "peak time")


def write_times(
    target: str, kind: str, solution: Solution, names: Sequence[str], input_names: Sequence[str], *, has_inputs: bool
) -> None:
    """Times and responses: a CSV column for each pair, in other files the arrays t and y as `Solution` has them.

    With `has_inputs` y is `(m, T, p)`, one response to each input.
    """
    if kind != "csv":
        write_output(target, lambda path: WRITERS[kind](path, solution.t, solution.y))
        return
    y = solution.y if has_inputs else solution.y[None]
    header = ["t", *_pair_names(names, input_names)]
    _write_csv(target, header, np.column_stack([solution.t, *y]))


def write_frequencies(
    target: str,
    kind: str,
    omega: Array,
    H: NDArray[np.complex128],
    names: Sequence[str],
    input_names: Sequence[str],
    *,
    in_plane: bool,
    delays: Array,
) -> None:
    """Angular frequencies and H `(K, p, m)`: a CSV has two columns for each pair, other files omega and H.

    These are |H| and its phase in degrees, continuous beside the `delays` `(p, m)`, or with `in_plane` the real and the
    imaginary part.
    """
    if kind == "npz":
        write_output(target, lambda path: _write_npz(path, omega, H))
        return
    if kind == "mat":
        write_output(target, lambda path: mat5.write(path, {"omega": omega[:, None], "H": H}))  # type: ignore[dict-item]
        return
    two = ("real", "imaginary") if in_plane else ("magnitude", "phase")
    pairs = _pair_names(names, input_names)
    header = ["omega", *(f"{part} {pair}" if len(pairs) > 1 else part for pair in pairs for part in two)]
    places = [(row, column) for column in range(len(input_names)) for row in range(len(names))]
    columns = [(H[:, row, column], omega * delays[row, column]) for row, column in places]
    parts = [(own.real, own.imag) if in_plane else (np.abs(own), unwrapped_phase(own, late)) for own, late in columns]
    _write_csv(target, header, np.column_stack([omega, *chain.from_iterable(parts)]))


def response_numbers(
    system: StateSpace | DynamicNetwork, kind: str, pairs: Mapping[tuple[int, int], str]
) -> str:  # fmt: skip
    """What one reads off a step response or a Bode plot, one row for each pair (output, input); "–" for what is not."""
    if kind == "step":
        info = system.step_info()
        names = ("dead time", *_STEP_NUMBERS) if np.any(info.dead_time) else _STEP_NUMBERS
        numbers = {name: getattr(info, name.replace(" ", "_")) for name in names}
    else:
        numbers = {"gain at rest": system.dcgain(), "bandwidth": system.bandwidth()}
    heading = {"overshoot": "overshoot %", "undershoot": "undershoot %", "bandwidth": "bandwidth (rad/time)"}
    rows = [("", *(heading.get(name, name) for name in numbers))]
    for (row, column), title in list(pairs.items())[:_SHOWN]:
        rows.append((sanitize(title), *(_shown_number(values[row, column]) for values in numbers.values())))
    widths = [max(len(cells[place]) for cells in rows) for place in range(len(rows[0]))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)) for cells in rows]
    if len(pairs) > _SHOWN:
        lines.append(f"… and {len(pairs) - _SHOWN} more; choose with --input and --output")
    return "\n".join(lines)


def _shown_number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.5g}"


def _pair_names(names: Sequence[str], input_names: Sequence[str]) -> list[str]:
    if len(input_names) == 1:
        return list(names)
    return [f"{name} from {source}" for source in input_names for name in names]


def _write_npz(path: Path, omega: Array, H: NDArray[np.complex128]) -> None:
    npz.write(path, {"omega": omega, "H": H})  # type: ignore[dict-item]


def _write_csv(target: str, header: Sequence[str], table: Array) -> None:
    first = io.StringIO()
    csv.writer(first, lineterminator="\n").writerow(header)
    write_chunks(target, chain([first.getvalue().encode()], format_rows(table)))


Kind = Literal["step", "impulse", "bode", "nyquist"]
_IN_TIME = ("step", "impulse")
_IN_NUMBERS = ("step", "bode")


@dataclass(frozen=True)
class _ResponseRequest:
    """What to answer: a system, and one input or output of it, or all of them (None)."""

    system: StateSpace | DynamicNetwork
    kind: Kind
    names: list[str]
    input_names: list[str]
    output: int | None
    input: int | None


def response(
    file: SourceName,
    *,
    kind: Annotated[Kind, typer.Option(help="After a step or an impulse; over frequency as Bode or Nyquist.")] = "step",
    input: Annotated[
        str | None, typer.Option("--input", metavar="N", show_default="all", help="One input: 1, 2, … or u1, u2, …")
    ] = None,
    channel: Annotated[
        str | None, typer.Option("--output", metavar="N", show_default="all", help="One output: 1, 2, … or y1, y2, …")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FILE",
            show_default="print",
            help="A picture (.png, .svg, .pdf) or a table (.csv, .npz, .mat).",
        ),
    ] = None,
    file_format: Annotated[
        str | None,
        typer.Option("--format", metavar="KIND", show_default="csv", help="What to write to -: csv, npz, mat, png, …"),
    ] = None,
    matrix: MatrixNames = None,
) -> None:
    """Show how a system answers: step, impulse, Bode, Nyquist.

    FILE is a network (.safetensors) or a system: a .mat or .npz file, a folder of Matrix Market files, or a built-in
    system such as example:heat_rod. Times and frequencies are chosen to suit it. Without -o rise time, settling time
    and overshoot (step), or gain at rest and bandwidth (bode) are printed.
    """
    wanted = _format_for(target, file_format, kind)
    if target is not None:
        check_target(target)
        refuse_overwriting(target, {"the system": file})
        if wanted not in ("csv", "svg"):
            refuse_terminal(target)
    asked = _build_request(read_system_or_network(file, matrix), kind, input, channel)
    if kind in _IN_TIME or target is None:
        what = f"a {kind} response" if kind in _IN_TIME else "a bandwidth"
        refuse_discrete_time(asked.system, file, what, besides="Bode and Nyquist, with -o, take it as it is")
    if target is None:
        write_stdout(_numbers(asked) + "\n")
        return
    _write(asked, target, wanted)


def _format_for(target: str | None, wanted: str | None, kind: Kind) -> str:
    """The suffix says what is written; a stream has none."""
    known = (*WRITERS, *PICTURE_FORMATS)
    if target is None:
        if kind not in _IN_NUMBERS or wanted is not None:
            raise typer.BadParameter(
                f"name a picture or a table to write, as in -o {kind}.png or -o {kind}.csv", param_hint="'-o'"
            )
        return ""
    if is_stream(target):
        if wanted is not None and wanted not in known:
            raise FileFormatError(f"--format is {sanitize(repr(wanted))}; known are {', '.join(known)}")
        return wanted or "csv"
    suffix = Path(target).suffix.lower().removeprefix(".")
    if suffix not in known:
        raise FileFormatError(f"{format_path(target)} is of an unknown kind; known are {', '.join(known)}")
    if wanted is not None and suffix != wanted:
        raise FileFormatError(
            f"{format_path(target)} and --format {sanitize(wanted)} do not agree; --format is for standard output"
        )
    return suffix


def _build_request(
    system: StateSpace | DynamicNetwork, kind: Kind, input: str | None, output: str | None
) -> _ResponseRequest:
    plots = system.plot
    names = channel_names(system.n_outputs, "y", plots.names)
    input_names = channel_names(system.n_inputs, "u", plots.input_names)
    if output is not None and Path(output).suffix.lower().removeprefix(".") in (*WRITERS, *PICTURE_FORMATS):
        raise typer.BadParameter(
            f"{sanitize(output)} looks like a file: --output chooses one output of the system, -o names the file",
            param_hint="'--output'",
        )
    row = parse_channel(output, names, option="--output", noun="output")
    column = parse_channel(input, input_names, option="--input", noun="input")
    return _ResponseRequest(system, kind, names, input_names, row, column)


def _write(asked: _ResponseRequest, target: str, wanted: str) -> None:
    notes: tuple[str, ...] = ()
    with show_status(f"computing the {asked.kind} response of {asked.system.n_states} states"):
        if asked.kind in _IN_TIME and not (wanted in PICTURE_FORMATS and asked.input is asked.output is None):
            solution = _over_time(asked)
            notes = solution.notes
        else:
            solution = None
        if wanted in PICTURE_FORMATS:
            figure = draw_headless(lambda: _draw(asked, solution))
            write_output(target, lambda path: save_figure(figure, path), suffix=f".{wanted}")
        elif solution is not None:
            columns = _of(asked.names, asked.output), _of(asked.input_names, asked.input)
            write_times(target, wanted, solution, *columns, has_inputs=asked.input is None)
        else:
            omega, H = _over_frequency(asked)
            columns = _of(asked.names, asked.output), _of(asked.input_names, asked.input)
            settings = asked.system.signal_settings
            delays = settings.total_delay(len(asked.names), len(asked.input_names))
            delays = delays[_places(asked.output)][:, _places(asked.input)]
            write_frequencies(target, wanted, omega, H, *columns, in_plane=asked.kind == "nyquist", delays=delays)
    if target != STANDARD_STREAM:
        for line in (*notes, f"{asked.kind} response written to {target}"):
            print_note(line)


def _over_time(asked: _ResponseRequest) -> Solution:
    respond = asked.system.step_response if asked.kind == "step" else asked.system.impulse_response
    return respond(input=asked.input, output=asked.output)


def _over_frequency(asked: _ResponseRequest) -> tuple[NDArray[np.float64], NDArray[np.complex128]]:
    omega = np.asarray(asked.system.plot.frequencies())
    H = asked.system.frequency_response(omega)
    return omega, H[:, _places(asked.output)][:, :, _places(asked.input)]


def _draw(asked: _ResponseRequest, solution: Solution | None) -> Any:
    """All pairs as the library draws them, or those that were chosen."""
    plots = replace(asked.system.plot, names=asked.names, input_names=asked.input_names)
    if solution is not None:
        names, input_names = _of(asked.names, asked.output), _of(asked.input_names, asked.input)
        final = asked.system.dcgain()[_places(asked.output)][:, _places(asked.input)] if asked.kind == "step" else None
        return draw_responses(
            solution.t, solution.y, final=final, names=names, input_names=input_names, notes=solution.notes
        )
    if asked.kind in _IN_TIME:
        return plots.step() if asked.kind == "step" else plots.impulse()
    rows = range(len(asked.names))[_places(asked.output)]
    columns = range(len(asked.input_names))[_places(asked.input)]
    is_all = asked.output is asked.input is None
    pairs = None if is_all else [(row, column) for row in rows for column in columns]
    return plots.bode(pairs=pairs) if asked.kind == "bode" else plots.nyquist(pairs=pairs)


def _numbers(asked: _ResponseRequest) -> str:
    rows = range(len(asked.names))[_places(asked.output)]
    columns = range(len(asked.input_names))[_places(asked.input)]
    pairs = {
        (row, column): f"{asked.input_names[column]} → {asked.names[row]}" for column in columns for row in rows
    }  # fmt: skip
    return response_numbers(asked.system, asked.kind, pairs)


def _places(chosen: int | None) -> slice:
    return slice(None) if chosen is None else slice(chosen, chosen + 1)


def _of(names: list[str], chosen: int | None) -> list[str]:
    return names[_places(chosen)]
