"""Names of inputs, outputs and states beside the matrices of a file, as MATLAB and others call such variables."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from ltinet.errors import InvalidSystemError
from ltinet.model.formats.sampling_time import Readable
from ltinet.model.names import Names, SignalNames, names_or_numbers

VARIABLES = {"inputs": "InputName", "outputs": "OutputName", "states": "StateName"}
"""What the variables are called in files that are written here: as MATLAB calls the properties of its models."""
_OTHERS = {"inputs": "input_names", "outputs": "output_names", "states": "state_names"}
_UNITS = {"inputs": "InputUnit", "outputs": "OutputUnit", "states": "StateUnit"}


def signal_names(
    file_format: Readable, path: Path, variables: Collection[str], *, beside: str, counts: Mapping[str, int]
) -> SignalNames:
    """The names in a file, where it has as many of them as the system has inputs, outputs or states.

    They are texts of their own or, where the matrices are fields of a struct, `beside` them. What is no list of names
    that could be used is left alone: the system is there without it.
    """
    found = {}
    for kind, count in counts.items():
        names = _texts(file_format, path, variables, (beside + VARIABLES[kind], beside + _OTHERS[kind]), count)
        if names is None or not any(name.strip() for name in names):  # MATLAB has empty texts where nobody named them
            continue
        units = _texts(file_format, path, variables, (beside + _UNITS[kind],), count)
        with suppress(InvalidSystemError):  # control characters, or a text of many lines
            found[kind] = _usable(names, units, kind)
    return SignalNames(**found)


def _texts(
    file_format: Readable, path: Path, variables: Collection[str], known: Collection[str], count: int
) -> list[str] | None:
    for name in (name for name in known if name in variables):
        with suppress(Exception):  # no texts, or damaged, which every format says in its own way
            texts = file_format.read_texts(path, name)
            if len(texts) == count:
                return texts
    return None


def _usable(names: list[str], units: list[str] | None, kind: str) -> Names:
    """Names with their units; numbers for what has none, and of what comes twice a number behind it, as in MATLAB."""
    numbered = names_or_numbers(None, kind, len(names))
    full = [name.strip() or own for name, own in zip(names, numbered, strict=True)]
    if units is not None:
        full = [f"{name} ({unit.strip()})" if unit.strip() else name for name, unit in zip(full, units, strict=True)]
    unique = tuple(
        f"{name}({full[:place].count(name) + 1})" if full.count(name) > 1 else name for place, name in enumerate(full)
    )
    return getattr(SignalNames(**{kind: unique}), kind) or ()
