"""Command `ltinet export`: a network as C code, FMU or ONNX graph, which runs without Python."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from ltinet._util.text import format_first_names, format_path
from ltinet.cli.io import print_note, refuse_overwriting, show_status
from ltinet.cli.options import flag, option
from ltinet.cli.samples import parse_initial_state, state_source
from ltinet.cli.sources import SourceName, read_network
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import FileFormatError
from ltinet.export.fmu.description import Version
from ltinet.export.manifest import Export
from ltinet.export.step_model import Precision
from ltinet.signals.sampled import Hold

Target = Literal["c", "fmu", "onnx"]
_WRITERS: dict[str, Callable[..., Export]] = {
    "c": DynamicNetwork.export_c,
    "fmu": DynamicNetwork.export_fmu,
    "onnx": DynamicNetwork.export_onnx,
}
_TARGETS_OF_OPTION = {
    "hold": ("c", "onnx"),
    "dtype": ("c", "onnx"),
    "prefix": ("c",),
    "user_states": ("c",),
    "version": ("fmu",),
    "compiler": ("fmu",),
}
_OPTION_NAMES = {"user_states": "--user-states", "version": "--fmi"}  # where it is not the name itself


def export(  # noqa: PLR0913 - every option of an export is a parameter of the command
    file: SourceName,
    to: Annotated[
        Target, option(None, "c: a folder with C99; fmu: an FMU for co-simulation; onnx: a graph.", default=True)
    ],
    output: Annotated[str, option("PATH", "Folder or file to write.", "--output", "-o")],
    dt: Annotated[
        float | None,
        option("DT", "Time step, in the model's unit of time.", default="that of a model in discrete time"),
    ] = None,
    hold: Annotated[
        Hold | None,
        option(None, "c, onnx: input between samples: constant or linear.", default="that of the model, else zero"),
    ] = None,
    dtype: Annotated[Precision | None, option(None, "c, onnx: precision of all numbers.", default="double")] = None,
    x0: Annotated[str | None, option("X", "Initial state: 1,0,-2, or a .npz or .mat file.", "--x0")] = None,
    prefix: Annotated[str | None, option("NAME", "c: prefix of files and identifiers.", default="model")] = None,
    user_states: Annotated[
        bool, flag("--user-states", "c: add a function that returns the states of the system.")
    ] = False,
    fmi: Annotated[Version | None, option(None, "fmu: version of FMI.", default="3.0")] = None,
    compiler: Annotated[str | None, option("CC", "fmu: C compiler; zig for ziglang.", default="any")] = None,
) -> None:
    """Write a network as C, FMU or ONNX, to run without Python.

    FILE is a network file, as `ltinet construct` writes it.
    """
    choices = {"hold": hold, "dtype": dtype, "prefix": prefix, "user_states": user_states or None}
    choices |= {"version": fmi, "compiler": compiler}
    options = {name: value for name, value in choices.items() if value is not None}
    for name in options:
        if to not in _TARGETS_OF_OPTION[name]:
            name_typed, targets = _OPTION_NAMES.get(name, f"--{name}"), " and ".join(_TARGETS_OF_OPTION[name])
            raise FileFormatError(f"{name_typed} is not for {to} but for {targets}; omit it, or choose another --to")
    refuse_overwriting(output, {"the network": file, **state_source(x0)})
    net = read_network(file)
    if dt is None and net.dt is None:
        raise typer.BadParameter("a network in continuous time needs a time step", param_hint="'--dt'")
    start = None if x0 is None else parse_initial_state(x0, net.n_states)
    before = {path.name for path in Path(output).iterdir()} if Path(output).is_dir() else set()
    with show_status(f"exporting {net.n_states} states"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # printed below
        written = _WRITERS[to](net, output, dt=dt, x0=start, **options)
    for line in written.notes:
        typer.echo(f"ltinet: {line}", err=True)
    print_note(f"{format_path(output)} written: {format_first_names(written.files)}")
    replaced = [str(name) for name in written.files if Path(name).name in before]
    if replaced:
        print_note(f"files of the same name in {format_path(output)} were replaced: {format_first_names(replaced)}")
