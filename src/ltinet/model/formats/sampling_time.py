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


def require_continuous_time(file_format: Readable, path: Path, variables: Collection[str]) -> None:
    """Refuse a model with a sampling time: run as a continuous one it would answer, and wrongly.

    Zero and MATLAB's [] stand for continuous time; anything else, also what is no number, does not.

    Raises:
        InvalidSystemError: it has one.
    """
    for name in (name for name in _NAMES if name in variables):
        try:
            value = np.asarray(file_format.read(path, [name], max_bytes=DEFAULT_MAX_BYTES)[name])
        except ValueError as error:
            value = np.array(one_line(error))
        if value.dtype.kind in "biufc" and not np.any(value):
            continue
        step = f"{value.item():g}" if value.dtype.kind in "biuf" and value.size == 1 else shown(value)
        raise InvalidSystemError(
            f"{shown_path(path)} is a model in discrete time ({name} = {step}); ltinet works with x' = A x + B u: save "
            f"the continuous-time model it was sampled from (in MATLAB: d2c); remove {name} if it means something else"
        )
