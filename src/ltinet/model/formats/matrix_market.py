"""A folder with one Matrix Market text file per matrix: A.mtx, B.mtx, C.mtx and, where present, D.mtx and E.mtx."""

from collections.abc import Collection, Mapping
from os.path import lexists
from pathlib import Path
from typing import Any

from scipy import sparse

from ltinet.model.formats.limits import DEFAULT_MAX_BYTES, Allowance
from ltinet.model.formats.market_text import parse_matrix
from ltinet.model.formats.opening import opened
from ltinet.model.formats.refusals import BeyondLimitError, UnusableError
from ltinet.model.formats.text_lines import lines_of
from ltinet.model.matrices import Matrix
from ltinet.model.sparse_matrices import SparseMatrix

_ENDINGS = (".mtx", ".mtx.gz")


def variable_of(path: Path) -> str:
    """Name the matrix that a file holds: "A" for A.mtx and A.mtx.gz, "" for a file of another kind."""
    return next((path.name.removesuffix(ending) for ending in _ENDINGS if path.name.endswith(ending)), "")


def list_variables(path: Path) -> list[str]:
    """Name the matrices in the folder."""
    return sorted(filter(None, map(variable_of, path.iterdir())))


def read(path: Path, names: Collection[str], *, max_bytes: float = DEFAULT_MAX_BYTES) -> dict[str, Any]:
    """Read those of `names` that are there, plain or gzipped.

    Raises:
        ValueError: a file is damaged, or a matrix is there twice.
        BeyondLimitError: the matrices take more than `max_bytes`.
    """
    matrices, allowance = {}, Allowance(max_bytes)
    for name in names:
        files = [path / (name + ending) for ending in _ENDINGS if lexists(path / (name + ending))]
        if len(files) > 1:
            raise ValueError(f"it holds {name} twice, as {files[0].name} and {files[1].name}; remove one")
        if files:
            matrices[name] = _read_matrix(files[0], name, allowance)
    return matrices


def read_texts(path: Path, name: str) -> list[str]:
    """There are none: files of this kind hold numbers.

    Raises:
        ValueError: always.
    """
    raise UnusableError(f"{name} in {path.name} is no list of texts")


def contents(matrices: Mapping[str, Matrix | SparseMatrix]) -> dict[str, bytes]:
    """The files of a folder by name, with enough digits to restore every bit."""
    return {f"{name}.mtx": _text_of(matrix).encode("ascii") for name, matrix in matrices.items()}


def _text_of(matrix: Matrix | SparseMatrix) -> str:
    if isinstance(matrix, SparseMatrix):
        return _sparse_text_of(matrix)
    # Written here because scipy.io.mmwrite (1.17) never returns from a matrix without rows. repr() is the shortest
    # text that reads back as the same number; the format runs down the columns.
    head = "%%MatrixMarket matrix array real general\n{} {}\n".format(*matrix.shape)
    return head + "".join(f"{entry!r}\n" for entry in matrix.ravel(order="F").tolist())


def _sparse_text_of(matrix: SparseMatrix) -> str:
    entries = sparse.coo_array(matrix)
    head = "%%MatrixMarket matrix coordinate real general\n{} {} {}\n".format(*matrix.shape, entries.nnz)
    places = zip((entries.row + 1).tolist(), (entries.col + 1).tolist(), entries.data.tolist(), strict=True)
    return head + "".join(f"{row} {column} {value!r}\n" for row, column, value in places)


def _read_matrix(path: Path, name: str, allowance: Allowance) -> Any:
    with opened(path) as file:
        try:
            return parse_matrix(lines_of(file, is_compressed=path.suffix == ".gz"), allowance, name=name)
        except (BeyondLimitError, UnusableError):
            raise
        except Exception as error:
            raise ValueError(f"{path.name}: {error}") from error
