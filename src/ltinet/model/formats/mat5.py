"""MATLAB's own binary files of versions 5 to 7, by a small strict reader; SciPy writes them.

SciPy's reader trusts what it reads: nested cells end in a crash, row numbers of sparse matrices write anywhere. Here
variables that hold numbers are read, and such fields of structs; all others are passed over by their length.
"""

import math
import struct
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import scipy  # which loads scipy.io when it is first used: half of the time that importing ltinet would take

from ltinet.model.formats.limits import DEFAULT_MAX_BYTES, Allowance, require_few, times
from ltinet.model.formats.mat5_elements import (
    COMPRESSED,
    HEAD,
    MATRIX,
    Elements,
    Header,
    Order,
    inflated,
    inflated_head,
)
from ltinet.model.formats.opening import OpenedFile, opened
from ltinet.model.formats.refusals import UnusableError, is_complex
from ltinet.model.formats.sparse_columns import from_columns
from ltinet.model.matrices import Matrix
from ltinet.model.sparse_matrices import SparseMatrix
from ltinet.shown import shown

_HEADER_SIZE = 128
_VERSION = 0x0100
_CELL, _STRUCT, _TEXT, _SPARSE = 1, 2, 4, 5
_MOST_TEXTS = 100_000
_NUMERIC = range(6, 16)
_OTHERS = {1: "a cell array", 2: "a struct", 3: "an object", 4: "text", 16: "a function", 17: "an object"}


class _Variable(NamedTuple):
    header: Header
    start: int
    length: int
    is_compressed: bool


def list_variables(path: Path) -> list[str]:
    """Name the variables without reading them, and the fields of structs as `sys.A`."""
    with opened(path) as file:
        order = _byte_order(file)
        found = _variables(file, order)
        return [*found, *_fields_of_structs(file, found, order, Allowance(DEFAULT_MAX_BYTES))]


def read(path: Path, names: Collection[str], *, max_bytes: float = DEFAULT_MAX_BYTES) -> dict[str, Any]:
    """Read those of `names` that are there, dense or sparse.

    Raises:
        ValueError: the file is damaged, or one of them holds no numbers.
        BeyondLimitError: they take more than `max_bytes`.
    """
    allowance = Allowance(max_bytes)
    with opened(path) as file:
        order = _byte_order(file)
        found = _variables(file, order)
        wanted = {name: _matrix(file, found[name], order, allowance) for name in names if name in found}
        owners = {name.partition(".")[0] for name in names if name not in found}
        structs = {name: found[name] for name in owners if name in found}
        fields = _fields_of_structs(file, structs, order, allowance)
        return wanted | {name: _field(name, fields[name], order, allowance) for name in names if name in fields}


def read_texts(path: Path, name: str) -> list[str]:
    """The texts of a cell array, or the rows of a matrix of characters.

    Raises:
        ValueError: the variable is neither, or damaged.
    """
    allowance = Allowance(DEFAULT_MAX_BYTES)
    with opened(path) as file:
        order = _byte_order(file)
        found = _variables(file, order)
        if name in found:
            return _texts(_content(file, found[name], order, allowance), found[name].header, order)
        owner = name.partition(".")[0]
        fields = _fields_of_structs(file, {owner: found[owner]}, order, allowance) if owner in found else {}
        elements = Elements(fields.get(name, b""), order)
        return _texts(elements, elements.header(), order)


def write(
    target: Path | BinaryIO,
    matrices: Mapping[str, Matrix | SparseMatrix],
    texts: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write a version 5 file, which Octave, Julia and every MATLAB read; texts become cell arrays."""
    place: Any = str(target) if isinstance(target, Path) else target  # SciPy's stubs know only paths
    variables: dict[str, Any] = dict(matrices)
    variables |= {name: np.array([[text] for text in own], dtype=object) for name, own in (texts or {}).items()}
    scipy.io.savemat(place, variables, appendmat=False, format="5", do_compression=True)


def _byte_order(file: OpenedFile) -> Order:
    version, mark = struct.unpack("<H2s", file.bytes_at(124, 4))
    order: Order = "<" if mark == b"IM" else ">"
    if mark not in (b"IM", b"MI"):
        raise ValueError("it has no header of a MATLAB file")
    if order == ">":
        version = int.from_bytes(version.to_bytes(2, "little"), "big")
    if version != _VERSION:
        raise ValueError(f"it has version {version >> 8}.{version & 0xFF} of MATLAB's format, which is not known here")
    return order


def _variables(file: OpenedFile, order: Order) -> dict[str, _Variable]:
    """All variables by name; MATLAB's own bookkeeping has none and is left out."""
    found: dict[str, _Variable] = {}
    position = _HEADER_SIZE
    while position < file.length:
        require_few(found)
        kind, length = struct.unpack(f"{order}II", file.bytes_at(position, 8))
        start = position + 8
        if kind not in (MATRIX, COMPRESSED) or start + length > file.length:
            raise ValueError(f"at byte {position} there is no variable, or only a part of one")
        head = file.bytes_at(start, min(length, HEAD))
        header = Elements(inflated_head(head, order) if kind == COMPRESSED else head, order).header()
        if header.name in found:
            raise ValueError(f"it holds {shown(header.name)} twice")
        if header.name:
            found[header.name] = _Variable(header, start, length, kind == COMPRESSED)
        position = start + length
    return found


def _fields_of_structs(
    file: OpenedFile, variables: Mapping[str, _Variable], order: Order, allowance: Allowance
) -> dict[str, bytes]:
    """The fields of all structs with one element, as `sys.A`."""
    found: dict[str, bytes] = {}
    for name, variable in variables.items():
        if variable.header.kind == _STRUCT and math.prod(variable.header.shape) == 1:
            with suppress(ValueError):  # what is no proper struct has no fields, and other variables may be fine
                fields = _content(file, variable, order, allowance).fields()
                found |= {f"{name}.{field}": content for field, content in fields.items()}
            require_few(found)
    return found


def _field(name: str, content: bytes, order: Order, allowance: Allowance) -> Any:
    """The matrix in a field; MATLAB writes nothing at all for an empty one."""
    if not content:
        return np.zeros((0, 0))
    elements = Elements(content, order)
    header = elements.header()._replace(name=name)
    _require_numbers(header, allowance)
    return _numbers(elements, header, allowance)


def _texts(elements: Elements, header: Header, order: Order) -> list[str]:
    """The texts of a cell array of texts, or the rows of one text; nothing is nested any further."""
    count = math.prod(header.shape)
    if header.kind == _TEXT:
        n_rows = header.shape[0]
        text = elements.characters() if count else ""
        if count > _MOST_TEXTS or len(text) != count:
            raise ValueError(f"{header.name} is a text of another length than it claims")
        return [text[row::n_rows].rstrip() for row in range(n_rows)]
    if header.kind != _CELL or count > _MOST_TEXTS:
        raise UnusableError(f"{header.name} is no list of texts")
    found = []
    for content in elements.cells(count):
        cell = Elements(content, order)
        own = cell.header() if content else None
        if own is None or 0 in own.shape:  # an empty matrix stands for an empty text
            found.append("")
        elif own.kind == _TEXT:
            found.append(cell.characters())
        else:
            raise UnusableError(f"{header.name} is no list of texts")
    return found


def _matrix(file: OpenedFile, variable: _Variable, order: Order, allowance: Allowance) -> Any:
    _require_numbers(variable.header, allowance)
    return _numbers(_content(file, variable, order, allowance), variable.header, allowance)


def _require_numbers(header: Header, allowance: Allowance) -> None:
    name, kind, shape, _ = header
    if kind != _SPARSE and kind not in _NUMERIC:
        raise UnusableError(f"{name} is {_OTHERS.get(kind, 'of an unknown class')}, not a matrix of numbers")
    if header.is_complex:
        raise is_complex(name)
    if kind == _SPARSE:  # how many entries it has is seen when they are read, within what is allowed for their bytes
        allowance.claim_sparse(shape, 0, name)
    else:
        allowance.claim(shape, name)


def _content(file: OpenedFile, variable: _Variable, order: Order, allowance: Allowance) -> Elements:
    """What follows the header of a variable."""
    name = variable.header.name
    allowance.require(variable.length, name)
    content = file.bytes_at(variable.start, variable.length)
    if variable.is_compressed:
        content = inflated(content, order, allowance=allowance, name=name)
    elements = Elements(content, order)
    if elements.header() != variable.header:
        raise ValueError(f"{name} changed while it was read")
    return elements


def _numbers(elements: Elements, header: Header, allowance: Allowance) -> Any:
    return _sparse(elements, header, allowance) if header.kind == _SPARSE else _full(elements, header)


def _full(elements: Elements, header: Header) -> Any:
    numbers = _data(elements, header)
    if len(numbers) != math.prod(header.shape):
        raise ValueError(f"{header.name} is {times(header.shape)} and has {len(numbers)} numbers")
    return numbers.reshape(header.shape, order="F")


def _sparse(elements: Elements, header: Header, allowance: Allowance) -> Any:
    rows, starts = elements.indices(), elements.indices()
    allowance.claim_sparse((0, 0), len(rows), header.name)
    return from_columns(_data(elements, header), rows, starts, shape=header.shape, name=header.name)


def _data(elements: Elements, header: Header) -> Any:
    numbers = elements.numbers()
    if not elements.is_at_end:
        raise ValueError(f"something follows the numbers of {header.name}")
    return numbers
