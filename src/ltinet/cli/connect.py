"""Command `ltinet connect`: systems connected by names as a TOML file says, written as a network.

    [systems]
    plant = "plant.npz"                     # a file beside the TOML file, or a built-in system
    controller = {kp = 2.0, ki = 0.5}       # arguments of ltinet.pid
    sensor = {num = [1], den = [0.1, 1]}    # arguments of ltinet.tf
    error = {sum = ["r", "-y"], output = "e"}
    pipe = {file = "pipe.npz", pade = 4}    # dead times replaced by Padé approximants of order 4

    [connections]                           # inputs and their sources
    "controller.u1" = "error.e"
    "plant.u1" = "controller.y1"
    "error.y" = "plant.y1"

    [inputs]
    r = "error.r"

    [outputs]
    y = "plant.y1"

Every table takes `pade`. Signals are written as for `ltinet.interconnect`. Without connections, inputs are connected to
outputs of the same name.
"""

import inspect
import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ltinet._util.text import format_path, sanitize, suggest_names
from ltinet.cli.io import open_as_path, print_note, show_status, write_output
from ltinet.cli.options import option
from ltinet.cli.sources import EXAMPLE_PREFIX, check_network_target, read_system_or_network
from ltinet.construction import construct
from ltinet.constructors import pid, tf, zpk
from ltinet.errors import FileFormatError, InvalidSystemError, PartitionError
from ltinet.interconnection.delays import pade
from ltinet.interconnection.interconnect import interconnect, summing_junction
from ltinet.network_builder import DEFAULT_MAX_CONDITION
from ltinet.state_space import StateSpace

_SECTIONS = ("systems", "connections", "inputs", "outputs")
_MAX_SIZE = 1 << 20  # bytes of a TOML file; thousands of connections fit


def connect(
    file: Annotated[str, typer.Argument(metavar="LOOP", help="TOML file of systems and connections.")],
    output: Annotated[str, option("NET", "Network file to write, or -.", "--output", "-o")],
    max_condition: Annotated[
        float, option("X", "Limit on cond(T), at least 1.", default=f"{DEFAULT_MAX_CONDITION:g}")
    ] = DEFAULT_MAX_CONDITION,
) -> None:
    """Connect systems by the names of their signals.

    The network of the whole is written.

    LOOP has the tables [systems], with files or coefficients by name, [connections], [inputs] and [outputs]; see the
    page "From plant to loop to board" of the documentation.
    """
    check_network_target(output, {"the description": file})
    with open_as_path(file) as path:
        description = _read_description(path)
        try:
            whole = _interconnection(description, Path(file).parent)
        except InvalidSystemError as error:
            raise InvalidSystemError(
                str(error).replace("ltinet.pade(system, order)", "pade = 4 in their tables")
            ) from None
    try:
        with show_status(f"constructing the network of {whole.n_states} states"):
            net = construct(whole, max_condition=max_condition)
    except PartitionError as error:
        raise PartitionError(str(error).replace("max_condition", "--max-condition")) from None
    write_output(output, net.save)
    print_note(f"{net.n_neurons} neurons in {net.n_layers} layers written to {output}")


def _read_description(path: Path) -> dict[str, dict[str, Any]]:
    """Return the tables of a TOML file; raise FileFormatError if it has others, or is not TOML."""
    name = format_path(path)
    try:
        with path.open("rb") as stream:
            content = stream.read(_MAX_SIZE + 1)
        if len(content) > _MAX_SIZE:
            raise FileFormatError(f"{name} has more than {_MAX_SIZE} bytes; a TOML file of connections is expected")
        description = tomllib.loads(content.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise FileFormatError(f"{name} is not a TOML file ({sanitize(error)})") from None
    for section, table in description.items():
        if section not in _SECTIONS:
            raise FileFormatError(f"{name} has a table {sanitize(section)}; {suggest_names(section, _SECTIONS)}")
        if not isinstance(table, dict):
            raise FileFormatError(f"{section} in {name} must be a table: [{section}]")
    for section in ("systems", "inputs", "outputs"):
        if not description.get(section):
            raise FileFormatError(f"{name} has no table [{section}]; it must have at least one entry")
    return description


def _interconnection(description: Mapping[str, Mapping[str, Any]], folder: Path) -> StateSpace:
    """Return the interconnection of the systems; relative paths start in `folder`."""
    systems = {name: _system(name, entry, folder) for name, entry in description["systems"].items()}
    connections = [[target, *_as_list(sources)] for target, sources in description.get("connections", {}).items()]
    inputs, outputs = description["inputs"], description["outputs"]
    return interconnect(
        systems,
        connections if "connections" in description else None,
        inputs=list(inputs),
        outputs=list(outputs),
        inplist=[_as_list(signals) for signals in inputs.values()],
        outlist=[_as_list(signals) for signals in outputs.values()],
    )


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _system(name: str, entry: Any, folder: Path) -> Any:
    """Return the system of an entry of [systems]: a file, a built-in system, or a table of coefficients."""
    entry = {"file": entry} if isinstance(entry, str) else entry
    if not isinstance(entry, dict):
        raise InvalidSystemError(
            f"system {sanitize(name)} must be a file or a table such as {{num = [1], den = [1, 1]}}, got "
            f"{sanitize(repr(entry))}"
        )
    arguments = {key: value for key, value in entry.items() if key != "pade"}
    for keys, build in _TABLES:
        if keys <= set(arguments):
            build = partial(_read, folder=folder) if build is _read else build
            try:
                inspect.signature(build).bind(**arguments)
            except TypeError as error:
                raise InvalidSystemError(f"system {sanitize(name)}: {sanitize(error)}") from None
            system = build(**arguments)
            return _with_pade(name, system, entry["pade"]) if "pade" in entry else system
    raise InvalidSystemError(
        f"system {sanitize(name)} has the keys {sanitize(', '.join(entry))}; accepted are {{num, den}}, {{zeros, poles, "
        "gain}, {kp, ki, kd, tf}, {sum, output} and {file}, and pade beside them"
    )


def _with_pade(name: str, system: Any, order: Any) -> StateSpace:
    """Return the system with Padé approximants of its dead times, and print up to which frequency they hold."""
    approximate = pade(system, order)
    for note in approximate.signal_settings.notes:
        print_note(f"system {sanitize(name)}: {note}")
    return approximate


def _read(file: Any, folder: Path) -> Any:
    if not isinstance(file, str):
        raise InvalidSystemError(f"file must be the name of a file, got {sanitize(repr(file))}")
    return read_system_or_network(file if file.startswith(EXAMPLE_PREFIX) else str(folder / file))


def _sum(sum: Any, output: Any = None, dt: Any = None) -> StateSpace:
    return summing_junction(sum, output, dt=dt)


_TABLES: tuple[tuple[set[str], Callable[..., Any]], ...] = (
    ({"num", "den"}, tf), ({"zeros", "poles", "gain"}, zpk), ({"kp"}, pid), ({"sum"}, _sum), ({"file"}, _read),
)  # fmt: skip
