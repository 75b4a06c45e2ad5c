"""Strict reader of MATLAB files of versions 5 to 7, and a writer based on SciPy.

A file is a sequence of data elements, each a tag with type and length followed by data. Every length is checked against
the surrounding element, nesting is limited to a matrix and its parts, and compressed elements are inflated to the
length that they claim and no further. SciPy's reader trusts these lengths: nested cells crash it, and row numbers of
sparse matrices write outside their arrays. Numeric and sparse matrices, such fields of structs, and lists of text are
read; other variables are skipped by their length.
"""

import math
import struct
import zlib
from collections.abc import Collection, Container, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, TypeAlias, final

import numpy as np
import scipy  # loads scipy.io on first use, which takes half of the time of importing ltinet
from numpy.typing import NDArray

from ltinet._util.text import sanitize
from ltinet.io.file_access import (
    DEFAULT_MAX_BYTES,
    MAX_AXES,
    RegularFile,
    SizeAllowance,
    UnsupportedVariableError,
    complex_matrix_error,
    csc_from_columns,
    format_shape,
    open_regular,
    require_plausible_inflation,
    require_variable_limit,
)
from ltinet.systems.matrices import Matrix, SparseMatrix

ByteOrder: TypeAlias = Literal["<", ">"]

MI_MATRIX, MI_COMPRESSED = 14, 15
MAX_HEADER_BYTES = 4096
"""Number of bytes that always contain the header of a matrix: flags, at most 32 lengths, a name."""

_NUMBER_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_INT32, _UINT32, _INDEX_TYPES, _NAME_TYPES = 5, 6, (5, 6), (1, 2, 16)
_ENCODINGS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16"}  # by type of data
_MAX_FIELD_LENGTH = 64  # characters, the limit of MATLAB
_COMPLEX = 0x08
_OPAQUE = 17


class MatrixHeader(NamedTuple):
    """Header of a matrix element."""

    name: str
    kind: int
    """Class: 1 to 4 are cells, structs, objects and text, 5 is sparse, 6 to 15 are numeric."""
    shape: tuple[int, ...]
    is_complex: bool


@final
class ElementReader:
    """Cursor over the data elements of a block of bytes."""

    def __init__(self, content: bytes, order: ByteOrder) -> None:
        self._content = content
        self._order = order
        self._position = 0

    @property
    def is_at_end(self) -> bool:
        """True if the whole block was read."""
        return self._position >= len(self._content)

    def header(self) -> MatrixHeader:
        """Read the flags, the lengths of the axes and the name, with which every matrix begins."""
        flags = self._integers((_UINT32,))
        if len(flags) != 2:
            raise ValueError("a variable has invalid flags")
        kind, is_complex = int(flags[0]) & 0xFF, bool((int(flags[0]) >> 8) & _COMPLEX)
        if kind == _OPAQUE:  # a class object has no lengths
            return MatrixHeader(self._text(), kind, (), is_complex)
        shape = tuple(map(int, self._integers(_INDEX_TYPES)))
        if not 2 <= len(shape) <= MAX_AXES or min(shape) < 0:
            raise ValueError(f"a variable has {len(shape)} axes, or one of negative length")
        return MatrixHeader(self._text(), kind, shape, is_complex)

    def fields(self) -> dict[str, bytes]:
        """Read the fields of a struct with one element, each a matrix without its tag; empty ones have no bytes.

        Raises ValueError if the elements are not those of a struct.
        """
        lengths = self._integers((_INT32,))
        width = int(lengths[0]) if len(lengths) == 1 else 0
        text = self._text()
        if not 0 < width <= _MAX_FIELD_LENGTH or len(text) % width:
            raise ValueError("a struct has invalid field names")
        names = [text[begin : begin + width].split("\0")[0] for begin in range(0, len(text), width)]
        if len(set(names)) < len(names):
            raise ValueError("a struct has two fields of one name")
        return {name: self._next((MI_MATRIX,), "a field of a struct")[1] for name in names}

    def cells(self, count: int) -> list[bytes]:
        """Read the cells of a cell array, each a matrix without its tag; empty ones have no bytes.

        Raises ValueError if the elements are not those of a cell array.
        """
        return [self._next((MI_MATRIX,), "a cell")[1] for _ in range(count)]

    def characters(self) -> str:
        """Read the characters of a text in column-major order; raise ValueError for an unknown or invalid encoding."""
        kind, data = self._next(_ENCODINGS, "characters")
        order = {"<": "-le", ">": "-be"}[self._order] if _ENCODINGS[kind] == "utf-16" else ""
        return data.decode(_ENCODINGS[kind] + order)

    def indices(self) -> NDArray[np.int64]:
        """Read row indices or column pointers."""
        return self._integers(_INDEX_TYPES)

    def numbers(self) -> NDArray[Any]:
        """Read numbers in the type in which they are stored."""
        return self._as_array(*self._next(_NUMBER_TYPES, "numbers"))

    def _integers(self, kinds: tuple[int, ...]) -> NDArray[np.int64]:
        return self._as_array(*self._next(kinds, "whole numbers")).astype(np.int64)

    def _text(self) -> str:
        return self._next(_NAME_TYPES, "a name")[1].decode("latin-1")

    def _as_array(self, kind: int, data: bytes) -> NDArray[Any]:
        dtype = np.dtype(self._order + _NUMBER_TYPES[kind])
        if len(data) % dtype.itemsize:
            raise ValueError(f"{len(data)} bytes are not a multiple of {dtype.itemsize} bytes per number")
        return np.frombuffer(data, dtype).astype(dtype.newbyteorder("="), copy=False)

    def _next(self, kinds: Container[int], noun: str) -> tuple[int, bytes]:
        """Read type and data of the next element; raise ValueError if it is not of one of `kinds`.

        Data of up to four bytes may be stored in the tag itself; other data are padded to a multiple of eight bytes.
        """
        tag = self._take(8)
        kind, count = struct.unpack(f"{self._order}II", tag)
        if kind >> 16:
            kind, count = kind & 0xFFFF, kind >> 16
            if count > 4:
                raise ValueError(f"a short element claims {count} bytes and can hold 4")
            data = tag[4 : 4 + count]
        else:
            data = self._take(count)
            self._position += -count % 8  # the last element may lack its padding
        if kind not in kinds:
            raise ValueError(f"data of type {kind} stands where {noun} should")
        return kind, data

    def _take(self, count: int) -> bytes:
        stop = self._position + count
        if stop > len(self._content):
            raise ValueError("an element is longer than the variable that it belongs to")
        part = self._content[self._position : stop]
        self._position = stop
        return part


def inflate_header(compressed: bytes, order: ByteOrder) -> bytes:
    """Inflate the beginning of a compressed matrix, enough for its header, from the beginning of the compressed bytes."""
    machine = zlib.decompressobj()
    _matrix_length(machine.decompress(compressed, 8), order)
    return machine.decompress(machine.unconsumed_tail, MAX_HEADER_BYTES)


def inflate_matrix(compressed: bytes, order: ByteOrder, *, allowance: SizeAllowance, name: str) -> bytes:
    """Inflate a compressed matrix.

    Raises ValueError if its length or its checksum is wrong, SizeLimitError if its claimed length exceeds the
    allowance.
    """
    machine = zlib.decompressobj()
    count = _matrix_length(machine.decompress(compressed, 8), order)
    require_plausible_inflation(count, len(compressed), name)
    allowance.require(count, name)
    content = machine.decompress(machine.unconsumed_tail, count) if count else b""
    rest = machine.decompress(machine.unconsumed_tail, 1)  # also verifies the checksum
    if len(content) != count or rest or not machine.eof or machine.unused_data:
        raise ValueError(f"{name} is not compressed as it should be")
    return content


def _matrix_length(tag: bytes, order: ByteOrder) -> int:
    kind, count = struct.unpack(f"{order}II", tag) if len(tag) == 8 else (0, 0)
    if kind != MI_MATRIX:
        raise ValueError("a compressed element does not contain a variable")
    return int(count)


_HEADER_SIZE = 128
_VERSION = 0x0100
_CELL, _STRUCT, _CHAR, _SPARSE = 1, 2, 4, 5
_MAX_TEXTS = 100_000  # also limits the characters of a matrix
_NUMERIC = range(6, 16)
_CLASS_NAMES = {1: "a cell array", 2: "a struct", 3: "an object", 4: "text", 16: "a function", 17: "an object"}


class _Variable(NamedTuple):
    header: MatrixHeader
    start: int
    length: int
    is_compressed: bool


def list_variables(path: Path) -> list[str]:
    """List the names of the variables, and fields of structs as `sys.A`, without reading them."""
    with open_regular(path) as file:
        order = _byte_order(file)
        variables = _variables(file, order)
        return [*variables, *_fields_of_structs(file, variables, order, SizeAllowance(DEFAULT_MAX_BYTES))]


def read(path: Path, names: Collection[str], *, max_bytes: float = DEFAULT_MAX_BYTES) -> dict[str, Any]:
    """Read those of `names` that exist, dense or sparse.

    Raises ValueError if the file is damaged or a variable is not numeric, SizeLimitError if they exceed `max_bytes`.
    """
    allowance = SizeAllowance(max_bytes)
    with open_regular(path) as file:
        order = _byte_order(file)
        variables = _variables(file, order)
        values = {name: _matrix(file, variables[name], order, allowance) for name in names if name in variables}
        owners = {name.partition(".")[0] for name in names if name not in variables}
        structs = {name: variables[name] for name in owners if name in variables}
        fields = _fields_of_structs(file, structs, order, allowance)
        return values | {name: _field(name, fields[name], order, allowance) for name in names if name in fields}


def read_texts(path: Path, name: str) -> list[str]:
    """Read a cell array of texts, or the rows of a character matrix; raise ValueError for other variables."""
    allowance = SizeAllowance(DEFAULT_MAX_BYTES)
    with open_regular(path) as file:
        order = _byte_order(file)
        variables = _variables(file, order)
        if name in variables:
            return _texts(_content(file, variables[name], order, allowance), variables[name].header, order)
        owner = name.partition(".")[0]
        fields = _fields_of_structs(file, {owner: variables[owner]}, order, allowance) if owner in variables else {}
        elements = ElementReader(fields.get(name, b""), order)
        return _texts(elements, elements.header(), order)


def write(
    target: Path | BinaryIO,
    matrices: Mapping[str, Matrix | SparseMatrix],
    texts: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write a version 5 file, which Octave, Julia and every MATLAB can read; texts become cell arrays."""
    file: Any = str(target) if isinstance(target, Path) else target  # the stubs of SciPy accept only paths
    cells = {name: np.array([[text] for text in lines], dtype=object) for name, lines in (texts or {}).items()}
    scipy.io.savemat(file, {**matrices, **cells}, appendmat=False, format="5", do_compression=True)


def _byte_order(file: RegularFile) -> ByteOrder:
    version, mark = struct.unpack("<H2s", file.bytes_at(124, 4))
    order: ByteOrder = "<" if mark == b"IM" else ">"
    if mark not in (b"IM", b"MI"):
        raise ValueError("it has no header of a MATLAB file")
    if order == ">":
        version = int.from_bytes(version.to_bytes(2, "little"), "big")
    if version != _VERSION:
        raise ValueError(f"it has version {version >> 8}.{version & 0xFF} of MATLAB's format, which is not known here")
    return order


def _variables(file: RegularFile, order: ByteOrder) -> dict[str, _Variable]:
    """List all variables by name, without the unnamed ones that are internal to MATLAB."""
    variables: dict[str, _Variable] = {}
    position = _HEADER_SIZE
    while position < file.length:
        require_variable_limit(variables)
        kind, length = struct.unpack(f"{order}II", file.bytes_at(position, 8))
        start = position + 8
        if kind not in (MI_MATRIX, MI_COMPRESSED) or start + length > file.length:
            raise ValueError(f"at byte {position} there is no variable, or only a part of one")
        head = file.bytes_at(start, min(length, MAX_HEADER_BYTES))
        header = ElementReader(inflate_header(head, order) if kind == MI_COMPRESSED else head, order).header()
        if header.name in variables:
            raise ValueError(f"it holds {sanitize(header.name)} twice")
        if header.name:
            variables[header.name] = _Variable(header, start, length, kind == MI_COMPRESSED)
        position = start + length
    return variables


def _fields_of_structs(
    file: RegularFile, variables: Mapping[str, _Variable], order: ByteOrder, allowance: SizeAllowance
) -> dict[str, bytes]:
    """Return the fields of all structs with one element, as `sys.A`."""
    all_fields: dict[str, bytes] = {}
    for name, variable in variables.items():
        if variable.header.kind == _STRUCT and math.prod(variable.header.shape) == 1:
            with suppress(ValueError):  # a damaged struct has no fields; other variables may be intact
                fields = _content(file, variable, order, allowance).fields()
                all_fields |= {f"{name}.{field}": content for field, content in fields.items()}
            require_variable_limit(all_fields)
    return all_fields


def _field(name: str, content: bytes, order: ByteOrder, allowance: SizeAllowance) -> Any:
    """The matrix in a field; MATLAB writes nothing at all for an empty one."""
    if not content:
        return np.zeros((0, 0))
    elements = ElementReader(content, order)
    header = elements.header()._replace(name=name)
    _require_numbers(header, allowance)
    return _numbers(elements, header, allowance)


def _texts(elements: ElementReader, header: MatrixHeader, order: ByteOrder) -> list[str]:
    """Return the texts of a cell array, or the rows of a character matrix; nested cells are refused."""
    count = math.prod(header.shape)
    if header.kind == _CHAR:
        n_rows = header.shape[0]
        text = elements.characters() if count else ""
        if count > _MAX_TEXTS or len(text) != count:
            raise ValueError(f"{header.name} is a text whose length differs from its header")
        return [text[row::n_rows].rstrip() for row in range(n_rows)]
    if header.kind != _CELL or count > _MAX_TEXTS:
        raise UnsupportedVariableError(f"{header.name} is not a list of texts")
    texts = []
    for content in elements.cells(count):
        cell = ElementReader(content, order)
        cell_header = cell.header() if content else None
        if cell_header is None or 0 in cell_header.shape:  # an empty matrix is an empty text
            texts.append("")
        elif cell_header.kind == _CHAR:
            texts.append(cell.characters())
        else:
            raise UnsupportedVariableError(f"{header.name} is not a list of texts")
    return texts


def _matrix(file: RegularFile, variable: _Variable, order: ByteOrder, allowance: SizeAllowance) -> Any:
    _require_numbers(variable.header, allowance)
    return _numbers(_content(file, variable, order, allowance), variable.header, allowance)


def _require_numbers(header: MatrixHeader, allowance: SizeAllowance) -> None:
    name, kind, shape, _ = header
    if kind != _SPARSE and kind not in _NUMERIC:
        raise UnsupportedVariableError(
            f"{name} is {_CLASS_NAMES.get(kind, 'of an unknown class')}, not a matrix of numbers"
        )
    if header.is_complex:
        raise complex_matrix_error(name)
    if kind == _SPARSE:  # entries are claimed when they are read
        allowance.claim_sparse(shape, 0, name)
    else:
        allowance.claim(shape, name)


def _content(file: RegularFile, variable: _Variable, order: ByteOrder, allowance: SizeAllowance) -> ElementReader:
    """Return a reader of the elements behind the header of a variable."""
    name = variable.header.name
    allowance.require(variable.length, name)
    content = file.bytes_at(variable.start, variable.length)
    if variable.is_compressed:
        content = inflate_matrix(content, order, allowance=allowance, name=name)
    elements = ElementReader(content, order)
    if elements.header() != variable.header:
        raise ValueError(f"{name} changed while it was read")
    return elements


def _numbers(elements: ElementReader, header: MatrixHeader, allowance: SizeAllowance) -> Any:
    """Read a dense or a sparse matrix."""
    name, kind, shape, _ = header
    rows = starts = np.zeros(0, np.int64)
    if kind == _SPARSE:
        rows, starts = elements.indices(), elements.indices()
        allowance.claim_sparse((0, 0), len(rows), name)
    numbers = elements.numbers()
    if not elements.is_at_end:
        raise ValueError(f"something follows the numbers of {name}")
    if kind == _SPARSE:
        return csc_from_columns(numbers, rows, starts, shape=shape, name=name)
    if len(numbers) != math.prod(shape):
        raise ValueError(f"{name} is {format_shape(shape)} and has {len(numbers)} numbers")
    return numbers.reshape(shape, order="F")
