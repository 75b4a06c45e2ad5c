"""NumPy's archives of arrays, read and written without pickle."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from ltinet.model.matrices import Matrix


def list_variables(path: Path) -> list[str]:
    """Name the arrays without reading them."""
    with path.open("rb") as stream, _archive(stream) as archive:
        return list(archive.files)


def read(path: Path, names: Collection[str]) -> dict[str, Any]:
    """Read those of `names` that are there; an array of Python objects is refused, since reading it could run code."""
    with path.open("rb") as stream, _archive(stream) as archive:
        return {name: archive[name] for name in names if name in archive.files}


def write(path: Path, matrices: Mapping[str, Matrix]) -> None:
    """Write a compressed archive."""
    arrays: dict[str, Any] = dict(matrices)
    with path.open("wb") as stream:
        np.savez_compressed(stream, **arrays)


def _archive(stream: IO[bytes]) -> Any:
    contents = np.load(stream, allow_pickle=False)
    if not isinstance(contents, np.lib.npyio.NpzFile):
        raise ValueError("it holds a single array (.npy), not an archive of named ones")
    return contents
