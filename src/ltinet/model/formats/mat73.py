"""MATLAB's version 7.3 files: HDF5 behind a 512-byte header, every array stored transposed."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ltinet.errors import MissingDependencyError
from ltinet.model.matrices import Matrix

_HEADER_SIZE = 512
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_NUMERIC_CLASSES = {"double", "single", "logical"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


def is_hdf5(path: Path) -> bool:
    """Tell by the signature, at the start or behind MATLAB's header; works without h5py."""
    with path.open("rb") as stream:
        head = stream.read(_HEADER_SIZE + len(_SIGNATURE))
    return head.startswith(_SIGNATURE) or head[_HEADER_SIZE:] == _SIGNATURE


def list_variables(path: Path) -> list[str]:
    """Name the variables; groups such as `#refs#` are MATLAB's own bookkeeping."""
    with _h5py().File(path, "r") as file:
        return [name for name in file if not name.startswith("#")]


def read(path: Path, names: Collection[str]) -> dict[str, Any]:
    """Read those of `names` that are there, dense or sparse."""
    with _h5py().File(path, "r") as file:
        return {name: _read_variable(file[name], name) for name in names if name in file}


def write(path: Path, matrices: Mapping[str, Matrix]) -> None:
    """Write a file that MATLAB opens as its own."""
    with _h5py().File(path, "w", userblock_size=_HEADER_SIZE) as file:
        for name, matrix in matrices.items():
            # MATLAB has no empty dataset: it stores the shape instead, and marks it.
            data = matrix.T if matrix.size else np.array(matrix.shape, dtype=np.uint64)
            dataset = file.create_dataset(name, data=data)
            dataset.attrs["MATLAB_class"] = np.bytes_("double")
            if not matrix.size:
                dataset.attrs["MATLAB_empty"] = np.uint8(1)
    with path.open("r+b") as stream:
        text = b"MATLAB 7.3 MAT-file, written by ltinet, HDF5 schema 1.00 ."
        stream.write(text.ljust(116) + bytes(8) + b"\x00\x02IM")  # no subsystem; version 2.0; little-endian


def _h5py() -> Any:
    try:
        import h5py
    except ImportError:
        raise MissingDependencyError(
            'MATLAB 7.3 files are HDF5 and need h5py: pip install "ltinet[hdf5]", or save with -v7 in MATLAB'
        ) from None
    return h5py


def _read_variable(node: Any, name: str) -> Any:
    if "MATLAB_sparse" in node.attrs:
        return _read_sparse(node)
    if not hasattr(node, "dtype"):
        raise ValueError(f"{name} is a struct, not a matrix")
    kind = node.attrs.get("MATLAB_class", b"double")
    kind = kind.decode() if isinstance(kind, bytes) else str(kind)
    if kind not in _NUMERIC_CLASSES:
        raise ValueError(f"{name} is of MATLAB class {kind}, not a numeric matrix")
    data = node[()]
    if node.attrs.get("MATLAB_empty", 0):
        return np.zeros(tuple(int(size) for size in data))
    if data.dtype.names == ("real", "imag"):
        data = data["real"] + 1j * data["imag"]
    return np.asarray(data).T


def _read_sparse(group: Any) -> Any:
    """Compressed columns: `jc` counts, `ir` row numbers, `data`; the last two are left out when there is no entry."""
    column_starts = group["jc"][()]
    shape = (int(group.attrs["MATLAB_sparse"]), len(column_starts) - 1)
    if "data" not in group:
        return np.zeros(shape)
    data = group["data"][()]
    if data.dtype.names == ("real", "imag"):
        data = data["real"] + 1j * data["imag"]
    return sparse.csc_array((data, group["ir"][()].astype(np.int64), column_starts.astype(np.int64)), shape=shape)
