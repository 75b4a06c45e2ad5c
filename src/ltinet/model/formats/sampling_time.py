"""Models in discrete time, told by the sampling time beside their matrices, under any of the names in use."""

from collections.abc import Collection
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ltinet.errors import InvalidSystemError
from ltinet.model.formats.limits import DEFAULT_MAX_BYTES
from ltinet.model.formats.opening import one_line
from ltinet.shown import shown, shown_path

_NAMES = ("Ts", "dt", "Td", "sampling_time", "sample_time", "SampleTime")


class Readable(Protocol):
    """A format of files with variables."""

    def list_variables(self, path: Path) -> list[str]:
        """Name the variables without reading them."""

    def read(self, path: Path, names: Collection[str], *, max_bytes: float) -> dict[str, Any]:
        """Read those of `names` that are there."""

    def read_texts(self, path: Path, name: str) -> list[str]:
        """The texts of a variable that is a list of them; ValueError if it is none."""


def sampling_time(file_format: Readable, path: Path, variables: Collection[str], *, beside: str = "") -> float | None:
    """The time step of a model in discrete time, None in continuous time, for which zero and MATLAB's [] stand.

    It is looked for as a variable and, where the matrices are fields of a struct, `beside` them.

    Raises:
        InvalidSystemError: there are several steps, or one that is not a positive number, such as MATLAB's -1.
    """
    found: dict[str, float] = {}
    known = dict.fromkeys((*_NAMES, *(beside + name for name in _NAMES)))
    for name in (name for name in known if name in variables):
        try:
            value = np.asarray(file_format.read(path, [name], max_bytes=DEFAULT_MAX_BYTES)[name])
        except ValueError as error:
            value = np.array(one_line(error))
        if value.dtype.kind in "biufc" and not np.any(value):
            continue
        step = float(value.item()) if value.dtype.kind in "iuf" and value.size == 1 else np.nan
        if not 0.0 < step < np.inf:
            told = f"{value.item():g}" if value.dtype.kind in "biuf" and value.size == 1 else shown(value)
            raise InvalidSystemError(
                f"{shown_path(path)} has {name} = {told}, which is no time step; give it: load_system(path, dt=0.1), "
                f"or dt=0 if the model is continuous in time and {name} means something else"
            )
        found[name] = step
    if len(set(found.values())) > 1:
        told = ", ".join(f"{name} = {step:g}" for name, step in found.items())
        raise InvalidSystemError(
            f"{shown_path(path)} has several time steps ({told}); say which: load_system(path, dt=0.1), or dt=0 for "
            "continuous time"
        )
    return next(iter(found.values()), None)
