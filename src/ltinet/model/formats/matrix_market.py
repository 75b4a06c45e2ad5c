"""A folder with one Matrix Market text file per matrix: A.mtx, B.mtx, C.mtx and, where present, D.mtx and E.mtx."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import scipy  # which loads scipy.io when it is first used

from ltinet.model.matrices import Matrix

_ENDINGS = (".mtx", ".mtx.gz")


def variable_of(path: Path) -> str:
    """Name the matrix that a file holds: "A" for A.mtx and A.mtx.gz, "" for a file of another kind."""
    return next((path.name.removesuffix(ending) for ending in _ENDINGS if path.name.endswith(ending)), "")


def list_variables(path: Path) -> list[str]:
    """Name the matrices in the folder."""
    return sorted(filter(None, map(variable_of, path.iterdir())))


def read(path: Path, names: Collection[str]) -> dict[str, Any]:
    """Read those of `names` that are there, plain or gzipped."""
    matrices = {}
    for name in names:
        files = [path / (name + ending) for ending in _ENDINGS if (path / (name + ending)).is_file()]
        if len(files) > 1:
            raise ValueError(f"it holds {name} twice, as {files[0].name} and {files[1].name}; remove one")
        if files:
            matrices[name] = _read_matrix(files[0])
    return matrices


def write(path: Path, matrices: Mapping[str, Matrix]) -> None:
    """Create the folder and its files, with enough digits to restore every bit."""
    path.mkdir()
    for name, matrix in matrices.items():
        # Written here because scipy.io.mmwrite (1.17) never returns from a matrix without rows. repr() is the shortest
        # text that reads back as the same number; the format runs down the columns.
        with (path / f"{name}.mtx").open("w", encoding="ascii", newline="\n") as stream:
            stream.write("%%MatrixMarket matrix array real general\n{} {}\n".format(*matrix.shape))
            stream.writelines(f"{entry!r}\n" for entry in matrix.ravel(order="F").tolist())


def _read_matrix(file: Path) -> Any:
    try:
        return scipy.io.mmread(str(file))
    except Exception as error:
        raise ValueError(f"{file.name}: {error}") from error
