"""MATLAB files of version 7.3: HDF5 behind a header of 512 bytes, arrays stored transposed.

They are read by the strict HDF5 reader of this package and written by h5py (extra `ltinet[hdf5]`). Sparse matrices are
groups with `jc` (column starts), `ir` (row numbers) and `data`; cell arrays are lists of references into `#refs#`.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ltinet._util.text import install_hint, sanitize
from ltinet.errors import MissingDependencyError
from ltinet.io.file_access import (
    DEFAULT_MAX_BYTES,
    SizeAllowance,
    UnsupportedVariableError,
    csc_from_columns,
    open_regular,
)
from ltinet.io.hdf5_datasets import Attributes, is_dataset, read_attributes, read_dataset
from ltinet.io.hdf5_structure import SIGNATURE, SIGNATURE_OFFSETS, Hdf5File, Links, ObjectHeader, read_links
from ltinet.systems.matrices import Matrix, SparseMatrix

_HEADER_SIZE = 512
_MAX_TEXTS = 100_000
_REFERENCES_GROUP = "#refs#"
_NUMERIC_CLASSES = {"double", "single", "logical"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


def is_hdf5(path: Path) -> bool:
    """Return True if the file has the HDF5 signature at its start or behind the header of MATLAB."""
    with open_regular(path) as file:
        head = file.bytes_at(0, min(file.length, _HEADER_SIZE + len(SIGNATURE)))
    return any(head[offset:].startswith(SIGNATURE) for offset in SIGNATURE_OFFSETS)


def list_variables(path: Path) -> list[str]:
    """List the names of the variables, and fields of structs as `sys.A`; names with # are internal to MATLAB."""
    with open_regular(path) as file:
        container = Hdf5File(file)
        variables = _variables(container)
        names = [name for name in variables if not name.startswith("#")]
        return [*names, *(f"{name}.{field}" for name in names for field in _fields(container, variables[name]))]


def read(path: Path, names: Collection[str], *, max_bytes: float = DEFAULT_MAX_BYTES) -> dict[str, Any]:
    """Read those of `names` that exist, dense or sparse.

    Raises ValueError if the file is damaged or a variable is not numeric, SizeLimitError if they exceed `max_bytes`.
    """
    allowance = SizeAllowance(max_bytes)
    with open_regular(path) as file:
        container = Hdf5File(file)
        variables = _variables(container)
        values = {name: _variable(container, variables, name, allowance) for name in names if name in variables}
        for name in names:
            owner, _, field = name.partition(".")
            fields = _fields(container, variables[owner]) if name not in variables and owner in variables else {}
            if field in fields:
                values[name] = _variable(container, {name: fields[field]}, name, allowance)
        return values


def read_texts(path: Path, name: str) -> list[str]:
    """Read a cell array of texts, or the rows of a character matrix; raise ValueError for other variables."""
    allowance = SizeAllowance(DEFAULT_MAX_BYTES)
    with open_regular(path) as file:
        container = Hdf5File(file)
        variables = _variables(container)
        owner, _, field = name.partition(".")
        links = variables if name in variables else {name: _fields(container, variables.get(owner, ""))[field]}
        header = _member(container, links, name)
        if read_attributes(header).get("MATLAB_class") == "char":
            return _text_rows(container, header, name, allowance)
        if read_attributes(header).get("MATLAB_class") != "cell" or not is_dataset(header):
            raise UnsupportedVariableError(f"{name} is not a list of texts")
        addresses = read_dataset(container, header, allowance=allowance, name=name, references=True).T.ravel(order="F")
        if len(addresses) > _MAX_TEXTS:
            raise UnsupportedVariableError(f"{name} has {len(addresses)} texts")
        return ["".join(_text_rows(container, ObjectHeader(container, int(at)), name, allowance)) for at in addresses]


def _text_rows(container: Hdf5File, header: ObjectHeader, name: str, allowance: SizeAllowance) -> list[str]:
    """Return the rows of a character matrix, which is stored transposed as UTF-16 code units."""
    attributes = read_attributes(header)
    if attributes.get("MATLAB_class") != "char" and not attributes.get("MATLAB_empty", 0):
        raise UnsupportedVariableError(f"{name} is not a list of texts")
    data = read_dataset(container, header, allowance=allowance, name=name)
    if attributes.get("MATLAB_empty", 0):
        return [""]
    if data.dtype != np.uint16 or data.ndim != 2 or data.size > _MAX_TEXTS:
        raise UnsupportedVariableError(f"{name} has a text in a form that MATLAB does not write")
    return [row.astype("<u2").tobytes().decode("utf-16-le").rstrip() for row in data.T]


def write(
    target: BinaryIO,
    matrices: Mapping[str, Matrix | SparseMatrix],
    texts: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write a file that MATLAB can open; texts become cell arrays."""
    try:
        import h5py
    except ImportError:
        raise MissingDependencyError(
            f"writing MATLAB 7.3 files, which are HDF5, needs h5py; {install_hint('hdf5')}, or write version 5"
        ) from None
    with h5py.File(target, "w", userblock_size=_HEADER_SIZE) as file:
        for name, matrix in matrices.items():
            if isinstance(matrix, SparseMatrix):
                _write_sparse(file.create_group(name), matrix)
                continue
            # MATLAB stores the shape of an empty matrix instead of its values, with an attribute.
            data = matrix.T if matrix.size else np.array(matrix.shape, dtype=np.uint64)
            dataset = file.create_dataset(name, data=data)
            dataset.attrs["MATLAB_class"] = np.bytes_("double")
            if not matrix.size:
                dataset.attrs["MATLAB_empty"] = np.uint8(1)
        for name, lines in (texts or {}).items():
            _write_cells(file, name, lines, h5py.ref_dtype)
    text = b"MATLAB 7.3 MAT-file, written by ltinet, HDF5 schema 1.00 ."
    head = text.ljust(116) + bytes(8) + b"\x00\x02IM"  # no subsystem; version 2.0; little-endian
    target.seek(0)
    target.write(head)


def _write_sparse(group: Any, matrix: SparseMatrix) -> None:
    """Write a sparse matrix in compressed columns, as `_sparse` reads it."""
    columns = matrix.tocsc()
    group.attrs["MATLAB_class"], group.attrs["MATLAB_sparse"] = np.bytes_("double"), np.uint64(matrix.shape[0])
    parts = {"jc": columns.indptr.astype(np.uint64)}
    if columns.nnz:
        parts |= {"ir": columns.indices.astype(np.uint64), "data": columns.data}
    for name, values in parts.items():
        group.create_dataset(name, data=values)


def _write_cells(file: Any, name: str, texts: Sequence[str], reference: Any) -> None:
    """Write a cell array: references to its cells, which are stored in the group `#refs#`."""
    cells = file.require_group(_REFERENCES_GROUP)
    addresses = np.empty((1, len(texts)), dtype=reference)
    for index, text in enumerate(texts):
        characters = np.frombuffer(text.encode("utf-16-le"), "<u2")
        cell = cells.create_dataset(f"{name}_{index}", data=characters[:, None])
        cell.attrs["MATLAB_class"] = np.bytes_("char")
        cell.attrs["MATLAB_int_decode"] = np.int32(2)
        addresses[0, index] = cell.ref
    file.create_dataset(name, data=addresses, dtype=reference).attrs["MATLAB_class"] = np.bytes_("cell")


def _variables(container: Hdf5File) -> Links:
    links = read_links(container, ObjectHeader(container, container.root))
    if links is None:
        raise ValueError("its root is not a group of variables")
    return links


def _fields(container: Hdf5File, target: int | str) -> Links:
    """Return the fields of a struct with one element; an empty mapping for other variables."""
    if not isinstance(target, int):
        return {}
    header = ObjectHeader(container, target)
    if is_dataset(header) or "MATLAB_sparse" in read_attributes(header):
        return {}
    return read_links(container, header) or {}


def _variable(container: Hdf5File, links: Links, name: str, allowance: SizeAllowance) -> Any:
    header = _member(container, links, name)
    attributes, has_data = read_attributes(header), is_dataset(header)
    kind = attributes.get("MATLAB_class", "double" if has_data or "MATLAB_sparse" in attributes else "struct")
    if kind not in _NUMERIC_CLASSES:
        raise UnsupportedVariableError(f"{name} is of MATLAB class {sanitize(kind)}, not a numeric matrix")
    if "MATLAB_sparse" in attributes:
        return _sparse(container, header, attributes, allowance, name)
    if not has_data:
        raise ValueError(f"{name} is neither a matrix nor a struct")
    data = read_dataset(container, header, allowance=allowance, name=name)
    if not attributes.get("MATLAB_empty", 0):
        return data.T
    shape = tuple(map(int, data.ravel()))
    if data.dtype.kind not in "iu" or 0 not in shape:
        raise ValueError(f"{name} is marked as empty, and is not")
    allowance.claim(shape, name)
    return np.zeros(shape)


def _sparse(
    container: Hdf5File, header: ObjectHeader, attributes: Attributes, allowance: SizeAllowance, name: str
) -> Any:
    """Read a matrix in compressed columns: `jc`, `ir` and `data`; the last two are missing if there are no entries."""
    n_rows, links = attributes["MATLAB_sparse"], read_links(container, header)
    if not isinstance(n_rows, int) or n_rows < 0 or links is None:
        raise ValueError(f"{name} is sparse, but not as MATLAB writes it")
    starts = _whole_numbers(container, links, name, "jc", allowance)
    shape = (n_rows, len(starts) - 1)
    allowance.claim_sparse(shape, 0, name)  # entries are claimed when they are read
    if "data" not in links and "ir" not in links:
        return csc_from_columns(np.zeros(0), starts[:0], starts, shape=shape, name=name)
    rows = _whole_numbers(container, links, name, "ir", allowance)
    data = read_dataset(container, _member(container, links, "data"), allowance=allowance, name=f"{name}/data")
    return csc_from_columns(data.ravel(), rows, starts, shape=shape, name=name)


def _whole_numbers(container: Hdf5File, links: Links, name: str, part: str, allowance: SizeAllowance) -> Any:
    numbers = read_dataset(container, _member(container, links, part), allowance=allowance, name=f"{name}/{part}")
    if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
        raise ValueError(f"{name}/{part} is not a list of whole numbers")
    return numbers.astype(np.int64)


def _member(container: Hdf5File, links: Links, name: str) -> ObjectHeader:
    target = links.get(name)
    if target is None:
        raise ValueError(f"it lacks {name}")
    if isinstance(target, str):
        raise ValueError(f"{name} is {target}, which is not followed; store the matrix itself")
    return ObjectHeader(container, target)
