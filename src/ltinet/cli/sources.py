"""Systems and networks by the name that a user types: a file, a folder, `-`, or a built-in example."""

from pathlib import Path

from ltinet.cli.streams import readable
from ltinet.dynamic_network import DynamicNetwork
from ltinet.errors import FileFormatError
from ltinet.loading import load
from ltinet.shown import shown_path
from ltinet.state_space import StateSpace, load_system, named_system

NETWORK_SUFFIX = ".safetensors"
_EXAMPLE = "example:"


def read_system(name: str) -> StateSpace:
    """The system in a file or folder, on standard input, or built in as `example:NAME`."""
    if name.startswith(_EXAMPLE):
        return named_system(name.removeprefix(_EXAMPLE))
    with readable(name) as path:
        if path.suffix.lower() == NETWORK_SUFFIX:
            raise FileFormatError(f"{shown_path(path)} is a network; give the system that it is to be constructed from")
        return load_system(path)


def read_network(name: str) -> DynamicNetwork:
    """The network in a file or on standard input."""
    with readable(name) as path:
        if path.is_dir() or path.suffix.lower() in (".mat", ".npz"):
            raise FileFormatError(
                f"{shown_path(path)} is not a network; construct one first: ltinet construct {shown_path(name)} -o "
                f"{shown_path(_name_for(name))}"
            )
        return load(path)


def read_system_or_network(name: str) -> StateSpace | DynamicNetwork:
    """Either of them, told apart by the suffix."""
    if name.startswith(_EXAMPLE):
        return read_system(name)
    with readable(name) as path:
        return load(path) if path.suffix.lower() == NETWORK_SUFFIX else load_system(path)


def _name_for(name: str) -> str:
    return "net.safetensors" if name == "-" else f"{Path(name).stem}.safetensors"
