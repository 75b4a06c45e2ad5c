"""MATLAB `.mat` files of any version, recognised by their first bytes.

The functions have the signatures of every format module: `list_variables(path)`, `read(path, names)` and
`read_texts(path, name)`.
"""

from collections.abc import Collection
from pathlib import Path
from types import ModuleType
from typing import Any

from ltinet.io import mat4, mat5, mat73
from ltinet.io.file_access import DEFAULT_MAX_BYTES, open_regular

# MERGED ltinet.io.mat
# Which of MATLAB's three formats a `.mat` file is in, told by its first bytes.


def list_variables(path: Path) -> list[str]:
    """Name the variables without reading them."""
    names: list[str] = _format_of(path).list_variables(path)
    return names


def read(path: Path, names: Collection[str], *, max_bytes: float = DEFAULT_MAX_BYTES) -> dict[str, Any]:
    """Read those of `names` that are there, dense or sparse.

    Raises:
        ValueError: the file is damaged, or one of them holds no numbers.
        BeyondLimitError: they take more than `max_bytes`.
    """
    found: dict[str, Any] = _format_of(path).read(path, names, max_bytes=max_bytes)
    return found


def read_texts(path: Path, name: str) -> list[str]:
    """The texts of a cell array, or the rows of a matrix of characters.

    Raises:
        ValueError: the variable is neither, or damaged.
    """
    found: list[str] = _format_of(path).read_texts(path, name)
    return found


def _format_of(path: Path) -> ModuleType:
    if mat73.is_hdf5(path):
        return mat73
    with open_regular(path) as file:
        return mat4 if mat4.is_version_4(file.bytes_at(0, min(file.length, 4))) else mat5
