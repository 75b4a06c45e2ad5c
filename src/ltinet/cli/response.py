"""`ltinet response`: how a system answers a step, an impulse or an oscillation, as a picture, table or numbers."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray

from ltinet.cli.channels import channel_names, chosen_channel
from ltinet.cli.messages import remark, working
from ltinet.cli.overwriting import refuse_overwriting
from ltinet.cli.pictures import drawn
from ltinet.cli.response_tables import response_numbers, write_frequencies, write_times
from ltinet.cli.sources import MatrixNames, SourceName, read_system_or_network, refuse_discrete_time
from ltinet.cli.streams import STANDARD, check_target, deliver, is_stream, refuse_terminal, send
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import FileFormatError
from ltinet.export.sample_files import WRITERS
from ltinet.plotting import draw_responses, save_figure
from ltinet.plotting.canvas import FORMATS
from ltinet.shown import shown, shown_path
from ltinet.solve.solution import Solution
from ltinet.state_space import StateSpace

Kind = Literal["step", "impulse", "bode", "nyquist"]
_IN_TIME = ("step", "impulse")
_IN_NUMBERS = ("step", "bode")


@dataclass(frozen=True)
class _Asked:
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
    asked = _asked(read_system_or_network(file, matrix), kind, input, channel)
    if kind in _IN_TIME or target is None:
        what = f"a {kind} response" if kind in _IN_TIME else "a bandwidth"
        refuse_discrete_time(asked.system, file, what, besides="Bode and Nyquist, with -o, take it as it is")
    if target is None:
        send(_numbers(asked) + "\n")
        return
    _write(asked, target, wanted)


def _format_for(target: str | None, wanted: str | None, kind: Kind) -> str:
    """The suffix says what is written; a stream has none."""
    known = (*WRITERS, *FORMATS)
    if target is None:
        if kind not in _IN_NUMBERS or wanted is not None:
            raise typer.BadParameter(
                f"name a picture or a table to write, as in -o {kind}.png or -o {kind}.csv", param_hint="'-o'"
            )
        return ""
    if is_stream(target):
        if wanted is not None and wanted not in known:
            raise FileFormatError(f"--format is {shown(repr(wanted))}; known are {', '.join(known)}")
        return wanted or "csv"
    suffix = Path(target).suffix.lower().removeprefix(".")
    if suffix not in known:
        raise FileFormatError(f"{shown_path(target)} is of an unknown kind; known are {', '.join(known)}")
    if wanted is not None and suffix != wanted:
        raise FileFormatError(
            f"{shown_path(target)} and --format {shown(wanted)} do not agree; --format is for standard output"
        )
    return suffix


def _asked(system: StateSpace | DynamicNetwork, kind: Kind, input: str | None, output: str | None) -> _Asked:
    plots = system.plot
    names = channel_names(system.n_outputs, "y", plots.names)
    input_names = channel_names(system.n_inputs, "u", plots.input_names)
    if output is not None and Path(output).suffix.lower().removeprefix(".") in (*WRITERS, *FORMATS):
        raise typer.BadParameter(
            f"{shown(output)} looks like a file: --output chooses one output of the system, -o names the file",
            param_hint="'--output'",
        )
    row = chosen_channel(output, names, option="--output", noun="output")
    column = chosen_channel(input, input_names, option="--input", noun="input")
    return _Asked(system, kind, names, input_names, row, column)


def _write(asked: _Asked, target: str, wanted: str) -> None:
    remarks: tuple[str, ...] = ()
    with working(f"computing the {asked.kind} response of {asked.system.n_states} states"):
        if asked.kind in _IN_TIME and not (wanted in FORMATS and asked.input is asked.output is None):
            solution = _over_time(asked)
            remarks = solution.remarks
        else:
            solution = None
        if wanted in FORMATS:
            figure = drawn(lambda: _draw(asked, solution))
            deliver(target, lambda path: save_figure(figure, path), suffix=f".{wanted}")
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
    if target != STANDARD:
        for line in (*remarks, f"{asked.kind} response written to {target}"):
            remark(line)


def _over_time(asked: _Asked) -> Solution:
    respond = asked.system.step_response if asked.kind == "step" else asked.system.impulse_response
    return respond(input=asked.input, output=asked.output)


def _over_frequency(asked: _Asked) -> tuple[NDArray[np.float64], NDArray[np.complex128]]:
    omega = np.asarray(asked.system.plot.frequencies())
    H = asked.system.frequency_response(omega)
    return omega, H[:, _places(asked.output)][:, :, _places(asked.input)]


def _draw(asked: _Asked, solution: Solution | None) -> Any:
    """All pairs as the library draws them, or those that were chosen."""
    plots = replace(asked.system.plot, names=asked.names, input_names=asked.input_names)
    if solution is not None:
        names, input_names = _of(asked.names, asked.output), _of(asked.input_names, asked.input)
        final = asked.system.dcgain()[_places(asked.output)][:, _places(asked.input)] if asked.kind == "step" else None
        return draw_responses(
            solution.t, solution.y, final=final, names=names, input_names=input_names, remarks=solution.remarks
        )
    if asked.kind in _IN_TIME:
        return plots.step() if asked.kind == "step" else plots.impulse()
    rows = range(len(asked.names))[_places(asked.output)]
    columns = range(len(asked.input_names))[_places(asked.input)]
    is_all = asked.output is asked.input is None
    pairs = None if is_all else [(row, column) for row in rows for column in columns]
    return plots.bode(pairs=pairs) if asked.kind == "bode" else plots.nyquist(pairs=pairs)


def _numbers(asked: _Asked) -> str:
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
