"""Systems and networks by the name that a user types: a file, a folder, `-`, or a built-in example."""

import re
from pathlib import Path
from typing import Annotated

import typer

from ltinet.cli.examples import EXAMPLE as _EXAMPLE
from ltinet.cli.examples import built_in_system, completed_source
from ltinet.cli.messages import working
from ltinet.cli.streams import readable, title_of
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import FileFormatError, InvalidSystemError
from ltinet.loading import load
from ltinet.shown import shown, shown_path
from ltinet.state_space import StateSpace
from ltinet.systems import load_system

NETWORK_SUFFIX = ".safetensors"

# Advice of `load_system` is for Python and, after ", or", for the command line: what stands before is left out there.
_IN_PYTHON = (
    re.compile(r"give it: load_system\(path, .*?\), or (?=store)"),  # … has no C; give it: …, or store plain matrices
    re.compile(r"load_system\(path, names=\{.*?\}\), or on the command line "),  # …: …, or on the … --matrix A=Amat
)
SourceName = Annotated[str, typer.Argument(metavar="FILE", hidden=True, autocompletion=completed_source)]
MatrixNames = Annotated[
    list[str] | None,
    typer.Option(
        "--matrix", metavar="A=NAME", show_default=False, help="Which variable of FILE is A, B, …; once for each."
    ),
]


def read_system(name: str, matrix: list[str] | None = None) -> StateSpace:
    """The system in a file or folder, on standard input, or built in as `example:NAME`."""
    if name.startswith(_EXAMPLE):
        return built_in_system(name.removeprefix(_EXAMPLE))
    names = _matrix_names(matrix)
    with readable(name) as path:
        if path.suffix.lower() == NETWORK_SUFFIX:
            raise FileFormatError(f"{shown_path(path)} is a network; give the system that it is to be constructed from")
        with working(f"reading {shown_path(name)}"):
            return _load_system(path, names)


def _load_system(path: Path, names: dict[str, str] | None) -> StateSpace:
    """The system of a file; advice about it is for the command line."""
    try:
        return load_system(path, names=names)
    except FileFormatError as error:
        if path.is_dir() and not names and not list(path.glob("*.mtx*")):
            raise FileFormatError(
                f"{shown_path(path)} is a folder without matrices; give a .mat or .npz file, or a folder that holds "
                "A.mtx, B.mtx and C.mtx"
            ) from None
        raise FileFormatError(_for_the_command_line(str(error))) from None


def _for_the_command_line(advice: str) -> str:
    for pattern in _IN_PYTHON:
        advice = pattern.sub("", advice)
    return advice


def _matrix_names(given: list[str] | None) -> dict[str, str] | None:
    """The variables by matrix, from options such as A=Amat."""
    names: dict[str, str] = {}
    for text in given or []:
        role, equals, name = text.partition("=")
        if not equals or role in names:
            raise typer.BadParameter(
                f"{shown(text)} is not one matrix and its variable, such as A=Amat; give each matrix once",
                param_hint="'--matrix'",
            )
        names[role] = name
    return names or None


def read_network(name: str) -> DynamicNetwork:
    """The network in a file or on standard input."""
    if name.startswith(_EXAMPLE):
        stem = name.removeprefix(_EXAMPLE).partition(",")[0]
        raise FileFormatError(
            f"{shown(name)} is a system, not a network; construct one first: ltinet construct {shown(name)} -o "
            f"{shown(stem)}{NETWORK_SUFFIX}"
        )
    with readable(name) as path:
        if path.is_dir() or path.suffix.lower() in (".mat", ".npz"):
            raise FileFormatError(
                f"{shown_path(path)} is not a network; construct one first: ltinet construct {shown_path(name)} -o "
                f"{shown_path(_name_for(name))}"
            )
        with working(f"reading {shown_path(name)}"):
            return load(path)


def read_system_or_network(name: str, matrix: list[str] | None = None) -> StateSpace | DynamicNetwork:
    """Either of them, told apart by the suffix."""
    if name.startswith(_EXAMPLE):
        return read_system(name)
    with readable(name) as path:
        is_network = path.suffix.lower() == NETWORK_SUFFIX
        with working(f"reading {shown_path(name)}"):
            return load(path) if is_network else _load_system(path, _matrix_names(matrix))


def refuse_discrete_time(system: StateSpace | DynamicNetwork, name: str, what: str, *, besides: str = "") -> None:
    """Refuse a system in discrete time, with the way out.

    Raises:
        InvalidSystemError: it is one.
    """
    if isinstance(system, StateSpace) and system.dt is not None:
        raise InvalidSystemError(
            f"{title_of(name)} is discrete in time (dt = {system.dt:g}), and {what} needs continuous time; convert it "
            'first, in Python: ltinet.save_system(ltinet.load_system(path).to_continuous(), "continuous.mat")'
            f"{besides and f'; {besides}'}"
        )


def _name_for(name: str) -> str:
    return "net.safetensors" if name == "-" else f"{Path(name).stem}.safetensors"
