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


def list_variables(path: Path) -> list[str]:
    """List the names of the variables without reading them."""
    return list(_format_of(path).list_variables(path))


def read(path: Path, names: Collection[str], *, max_bytes: float = DEFAULT_MAX_BYTES) -> dict[str, Any]:
    """Read those of `names` that exist, dense or sparse.

    Raises ValueError if the file is damaged or a variable is not numeric, SizeLimitError if they exceed `max_bytes`.
    """
    return dict(_format_of(path).read(path, names, max_bytes=max_bytes))


def read_texts(path: Path, name: str) -> list[str]:
    """Read a cell array of texts, or the rows of a character matrix; raise ValueError for other variables."""
    return list(_format_of(path).read_texts(path, name))


def _format_of(path: Path) -> ModuleType:
    if mat73.is_hdf5(path):
        return mat73
    with open_regular(path) as file:
        return mat4 if mat4.is_version_4(file.bytes_at(0, min(file.length, 4))) else mat5
