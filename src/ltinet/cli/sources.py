"""Sources of systems and networks: a file, a folder, `-`, or a built-in example such as `example:heat_rod,n_states=20`.

Shell completion of example names and parameters included.
"""

import inspect
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from ltinet._util.text import format_path, sanitize
from ltinet.cli.io import check_target, is_stream, open_as_path, show_status
from ltinet.cli.options import option
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import FileFormatError, InvalidSystemError
from ltinet.files import load, load_system, named_system
from ltinet.io.system_files import SYSTEM_SUFFIXES
from ltinet.state_space import StateSpace
from ltinet.systems.named_systems import NAMED_SYSTEMS

EXAMPLE_PREFIX = "example:"
_BASH_WORD_BREAKS = (":", "=")


def load_example(text: str) -> Any:
    """Return the built-in system or model with products of a name and parameters, which commas separate for shells.

    Raise `InvalidSystemError` for an unknown system or parameter and for values that do not fit.
    """
    name, *assignments = text.split(",")
    parameters: dict[str, int | float] = {}
    for assignment in assignments:
        key, equals, value = (part.strip() for part in assignment.partition("="))
        if not equals or not key or key in parameters:
            raise InvalidSystemError(
                f"{sanitize(repr(assignment))} is not a parameter with its value, given once, as in {_sample(name)}"
            )
        parameters[key] = _number(key, value)
    return named_system(name, **parameters)


def complete_source(incomplete: str) -> list[str]:
    """Return the completions of an argument: built-in systems and their parameters."""
    return [full for full in _completions(incomplete) if full.startswith(incomplete)]


def bash_completions() -> list[str] | None:
    """Return the completions of `example:heat_rod,n` in bash, None if another argument is completed.

    Bash splits words at colons and equals signs, and replaces only the part after the last of them. The word is joined
    again in the environment, where the completion of later arguments looks for it.
    """
    words, word_index = os.environ.get("COMP_WORDS", "").split(), os.environ.get("COMP_CWORD", "")
    if not os.environ.get("_LTINET_COMPLETE", "").endswith("bash") or not word_index.isdigit():
        return None
    start = next((at for at in range(len(words) - 1) if words[at : at + 2] == [EXAMPLE_PREFIX[:-1], ":"]), None)
    if start is None:
        return None
    stop = start + 1
    while stop < len(words) and (words[stop] in _BASH_WORD_BREAKS or words[stop - 1] in _BASH_WORD_BREAKS):
        stop += 1
    argument = "".join(words[start:stop])
    if start <= int(word_index) < stop:
        last_break = max(argument.rfind(mark) for mark in _BASH_WORD_BREAKS) + 1
        return [full[last_break:] for full in complete_source(argument)]
    os.environ["COMP_WORDS"] = " ".join([*words[:start], argument, *words[stop:]])
    os.environ["COMP_CWORD"] = str(int(word_index) - (stop - start - 1))
    return None


def _completions(argument: str) -> Iterator[str]:
    if not argument.startswith(EXAMPLE_PREFIX) or "," not in argument:
        yield from (f"{EXAMPLE_PREFIX}{name}" for name in NAMED_SYSTEMS)
        return
    complete, _, _ = argument.rpartition(",")
    name, *assignments = complete.removeprefix(EXAMPLE_PREFIX).split(",")
    if name in NAMED_SYSTEMS:
        used = {assignment.partition("=")[0] for assignment in assignments}
        yield from (f"{complete},{key}=" for key in _parameters(name) if key not in used)


def _number(key: str, value: str) -> int | float:
    for convert in (int, float):
        with suppress(ValueError):
            return convert(value)
    raise InvalidSystemError(f"{sanitize(key)} is {sanitize(repr(value))}; it must be a number")


def _parameters(name: str) -> dict[str, object]:
    return {key: parameter.default for key, parameter in inspect.signature(NAMED_SYSTEMS[name]).parameters.items()}


def _sample(name: str) -> str:
    known = name if name in NAMED_SYSTEMS else "heat_rod"
    key, value = next(iter(_parameters(known).items()))
    return f"{EXAMPLE_PREFIX}{known},{key}={value}"


NETWORK_SUFFIX = ".safetensors"

# Messages of `load_system` advise for Python first and, after ", or", for the command line: remove the former.
_PYTHON_ADVICE = (
    re.compile(r"give it: load_system\(path, .*?\), or (?=store)"),  # … has no C; give it: …, or store plain matrices
    re.compile(r"load_system\(path, names=\{.*?\}\), or on the command line "),  # …: …, or on the … --matrix A=Amat
)
SourceName = Annotated[str, typer.Argument(metavar="FILE", hidden=True, autocompletion=complete_source)]
MatrixNames = Annotated[
    list[str] | None, option("A=NAME", "Variable of FILE that is A, B, …; repeat for each.", "--matrix")
]


def read_system(name: str, matrix: list[str] | None = None) -> StateSpace | Any:
    """Return the system in a file or folder, on standard input, or built in as `example:NAME`."""
    if name.startswith(EXAMPLE_PREFIX):
        return _require_linear(load_example(name.removeprefix(EXAMPLE_PREFIX)), name)
    names = _matrix_names(matrix)
    with open_as_path(name) as path:
        if path.suffix.lower() == NETWORK_SUFFIX:
            raise FileFormatError(f"{format_path(path)} is a network; give the system to construct it from")
        with show_status(f"reading {format_path(name)}"):
            return _require_linear(_load_system(path, names), name)


def _require_linear(model: Any, name: str) -> Any:
    """Return a system or network; raise FileFormatError for models with products, which need Python."""
    if hasattr(model, "n_scheduling"):
        is_network = hasattr(model, "n_products")
        network = "ltinet.load(path)" if is_network else "ltinet.construct(ltinet.load_system(path))"
        raise FileFormatError(
            f"{format_path(name)} has products of signals, and this command is for linear models; use Python: "
            f"{network}.simulate(u, t)"
        )
    return model


def _load_system(path: Path, names: dict[str, str] | None) -> Any:
    """Return the system of a file; messages give advice for the command line."""
    try:
        return load_system(path, names=names)
    except FileFormatError as error:
        if path.is_dir() and not names and not list(path.glob("*.mtx*")):
            raise FileFormatError(
                f"{format_path(path)} is a folder without matrices; give a .mat or .npz file, or a folder that holds "
                "A.mtx, B.mtx and C.mtx"
            ) from None
        message = str(error)
        for pattern in _PYTHON_ADVICE:
            message = pattern.sub("", message)
        raise FileFormatError(message) from None


def _matrix_names(assignments: list[str] | None) -> dict[str, str] | None:
    """Return the variable of each matrix, from options such as A=Amat."""
    names: dict[str, str] = {}
    for text in assignments or []:
        role, equals, name = text.partition("=")
        if not equals or role in names:
            raise typer.BadParameter(
                f"{sanitize(text)} does not assign a variable to a matrix, as in A=Amat; give each matrix once",
                param_hint="'--matrix'",
            )
        names[role] = name
    return names or None


def read_network(name: str) -> DynamicNetwork | Any:
    """Return the network in a file or on standard input."""
    if name.startswith(EXAMPLE_PREFIX):
        stem = name.removeprefix(EXAMPLE_PREFIX).partition(",")[0]
        raise FileFormatError(
            f"{sanitize(name)} is a system, not a network; construct one first: ltinet construct {sanitize(name)} -o "
            f"{sanitize(stem)}{NETWORK_SUFFIX}"
        )
    with open_as_path(name) as path:
        if path.is_dir() or path.suffix.lower() in SYSTEM_SUFFIXES:
            raise FileFormatError(
                f"{format_path(path)} is not a network; construct one first: ltinet construct {format_path(name)} -o "
                f"{'net' if name == '-' else format_path(Path(name).stem)}{NETWORK_SUFFIX}"
            )
        with show_status(f"reading {format_path(name)}"):
            return _require_linear(load(path), name)


def read_system_or_network(name: str, matrix: list[str] | None = None) -> StateSpace | DynamicNetwork | Any:
    """Return a network if the file has its suffix, else a system; both are linear."""
    return _require_linear(read_any_model(name, matrix), name)


def read_any_model(name: str, matrix: list[str] | None = None) -> Any:
    """Return a network if the file has its suffix, else a system, each with or without products of signals."""
    if name.startswith(EXAMPLE_PREFIX):
        return load_example(name.removeprefix(EXAMPLE_PREFIX))
    with open_as_path(name) as path:
        is_network = path.suffix.lower() == NETWORK_SUFFIX
        with show_status(f"reading {format_path(name)}"):
            return load(path) if is_network else _load_system(path, _matrix_names(matrix))


def check_network_target(output: str, sources: Mapping[str, str]) -> None:
    """Check before any work that a network file can be written to the target."""
    if not is_stream(output) and Path(output).suffix.lower() != NETWORK_SUFFIX:
        raise FileFormatError(
            f"{format_path(output)} is not the name of a network file; it must end in {NETWORK_SUFFIX}"
        )
    check_target(output, sources)
