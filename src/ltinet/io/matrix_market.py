"""Folders of Matrix Market text files: A.mtx, B.mtx, C.mtx and, where present, D.mtx and E.mtx.

Files may be gzipped and are read in blocks of lines, so that no file must fit into memory as text. The reader accepts
real matrices, dense ("array") and sparse ("coordinate"), and is strict: SciPy's reader takes `2abc` for 2 and `-1,5`
for −1, divides by a number of rows that may be zero, and does not survive a NUL. Numbers are written with `repr`, the
shortest text that restores every bit.
"""

import gzip
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from os.path import lexists
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ltinet._util.text import sanitize
from ltinet.io.file_access import (
    DEFAULT_MAX_BYTES,
    RegularFile,
    SizeAllowance,
    SizeLimitError,
    UnsupportedVariableError,
    complex_matrix_error,
    coo_from_entries,
    format_shape,
    max_inflated_size,
    open_regular,
)
from ltinet.systems.matrices import Matrix, SparseMatrix

_BLOCK_SIZE = 1 << 20  # bytes
_MAX_LINE_LENGTH = 1 << 16  # bytes


@final
class LineReader:
    r"""Reader of lines that end in \n or \r\n: one by one, then the rest in blocks of whole lines."""

    def __init__(self, stream: BinaryIO | gzip.GzipFile, max_remaining: int) -> None:
        self._stream = stream
        self.max_remaining = max_remaining
        """Upper bound on the number of remaining bytes, from the length of the file."""
        self.number = 0
        """Number of lines before the next one, for messages."""

    def next_line(self) -> bytes | None:
        """Return the next line without its end, or None at the end of the file."""
        line = self._stream.readline(_MAX_LINE_LENGTH)
        self._require_whole(line)
        self.max_remaining -= len(line)
        self.number += 1
        return line.removesuffix(b"\n").removesuffix(b"\r") if line else None

    def portions(self) -> Iterator[bytes]:
        r"""Iterate over the rest in blocks of whole lines, separated by \n; `number` counts the lines before each block."""
        while portion := self._stream.read(_BLOCK_SIZE):
            if not portion.endswith(b"\n"):
                rest = self._stream.readline(_MAX_LINE_LENGTH)
                self._require_whole(rest)
                portion += rest
            portion = portion.removesuffix(b"\n").replace(b"\r\n", b"\n").removesuffix(b"\r")
            yield portion
            self.number += portion.count(b"\n") + 1

    def _require_whole(self, line: bytes) -> None:
        if len(line) == _MAX_LINE_LENGTH and not line.endswith(b"\n"):
            raise ValueError(f"it has a line of more than {_MAX_LINE_LENGTH} characters")


def read_lines(file: RegularFile, *, is_compressed: bool) -> LineReader:
    """Return the lines of a file; a gzipped file is inflated block by block."""
    if not is_compressed:
        return LineReader(file.stream, file.length)
    return LineReader(gzip.GzipFile(fileobj=file.stream), max_inflated_size(file.length))


_BANNER_START = b"%%matrixmarket"
_FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")
_MAX_COMMENT_BYTES = 1 << 24
_MAX_SIZE_DIGITS = 18  # numbers with more digits may not fit into 64 bits
_MAX_BYTES_PER_ENTRY = 256  # on average, with blank lines; three numbers of 17 digits take 70
_NUMBER_CHARACTERS = b"0123456789+-.eE \t"
_EXPECTED = ("a line of numbers", "one number", "a row and a column", "a row, a column and a number")
_Number: TypeAlias = Callable[[bytes], float]


class _Banner(NamedTuple):
    is_sparse: bool
    number: _Number | None
    symmetry: str


def parse_matrix(lines: LineReader, allowance: SizeAllowance, *, name: str) -> Any:
    """Parse a matrix, dense or sparse.

    Raises ValueError with the line number if the text is damaged, SizeLimitError if the matrix exceeds the allowance.
    """
    form = _parse_banner(lines.next_line(), name)
    sizes = _parse_sizes(lines, form)
    shape = (sizes[0], sizes[1])
    count = _n_entries(sizes, form)
    if form.is_sparse:
        allowance.claim_sparse(shape, 0, name)
    else:
        allowance.claim(shape, name)
    if form.symmetry != "general" and shape[0] != shape[1]:
        raise ValueError(f"it is {form.symmetry}, but {format_shape(shape)}")
    min_length = 4 if form.is_sparse else 2  # of an entry: digits and line ends; the last line may lack its end
    if min_length * count > lines.max_remaining + 1:
        raise ValueError(f"it claims {count} entries, for which the file is too short")
    if not form.is_sparse:
        return _parse_dense(lines, form, shape, count)
    allowance.claim_sparse((0, 0), count if form.symmetry == "general" else 2 * count, name)
    return _parse_sparse(lines, form, shape, count)


def _parse_banner(line: bytes | None, name: str) -> _Banner:
    words = (line or b"").lower().split()
    if len(words) != 5 or words[0] != _BANNER_START:
        raise ValueError("its first line is not that of a Matrix Market file")
    kind, layout, field, symmetry = (sanitize(word.decode("latin-1")) for word in words[1:])
    if field == "complex" or symmetry == "hermitian":
        raise complex_matrix_error(name)
    known = kind == "matrix" and layout in ("array", "coordinate") and field in _FIELDS and symmetry in _SYMMETRIES
    if not known or (layout == "array" and field == "pattern"):
        raise ValueError(f"its first line says {kind} {layout} {field} {symmetry}, which is not known here")
    number = None if field == "pattern" else int if "integer" in field else float
    return _Banner(layout == "coordinate", number, symmetry)


def _parse_sizes(lines: LineReader, form: _Banner) -> list[int]:
    """Parse rows, columns and, for a sparse matrix, entries from the first line that is neither comment nor blank."""
    before = lines.max_remaining
    while (line := lines.next_line()) is not None:
        if line.startswith(b"%") or not line.strip(b" \t"):
            if before - lines.max_remaining > _MAX_COMMENT_BYTES:
                raise ValueError(f"it has more than {_MAX_COMMENT_BYTES} characters of comments")
            continue
        words = line.replace(b"\t", b" ").split(b" ")
        sizes = [int(word) for word in words if word and word.isdigit() and len(word) <= _MAX_SIZE_DIGITS]
        if len(sizes) != len([word for word in words if word]) or len(sizes) != (3 if form.is_sparse else 2):
            raise ValueError(f"line {lines.number} is {_quote_line(line)}, not the size of the matrix")
        return sizes
    raise ValueError("it ends before the size of the matrix")


def _n_entries(sizes: Sequence[int], form: _Banner) -> int:
    """Return the number of stored entries; of dense symmetric matrices only the lower triangle is stored."""
    rows, columns = sizes[:2]
    if not form.is_sparse:
        whole = {"general": rows * columns, "symmetric": rows * (rows + 1) // 2}
        return whole.get(form.symmetry, rows * (rows - 1) // 2)
    if sizes[2] > rows * columns:
        raise ValueError(f"it is {rows}×{columns} and claims {sizes[2]} entries")
    return sizes[2]


def _parse_dense(lines: LineReader, form: _Banner, shape: tuple[int, int], count: int) -> NDArray[np.float64]:
    number = form.number or float
    entries = np.empty(count)
    for first, portion, text in _entry_blocks(lines, count):
        try:
            entries[first : first + len(portion)] = list(map(number, portion))
        except (ValueError, OverflowError):
            raise _line_error(text, (number,), lines.number) from None
    if form.symmetry == "general":
        return entries.reshape(shape, order="F")
    is_skew = form.symmetry == "skew-symmetric"  # its zero diagonal is not stored
    matrix = np.zeros(shape)
    columns, rows = np.triu_indices(shape[0], 1 if is_skew else 0)  # the lower triangle, down its columns
    matrix[columns, rows] = -entries if is_skew else entries
    matrix[rows, columns] = entries
    return matrix


def _parse_sparse(lines: LineReader, form: _Banner, shape: tuple[int, int], count: int) -> Any:
    rows, columns, values = np.empty(count, np.int64), np.empty(count, np.int64), np.ones(count)
    targets = (rows, columns) if form.number is None else (rows, columns, values)
    numbers: tuple[_Number, ...] = (int, int) if form.number is None else (int, int, form.number)
    for first, portion, text in _entry_blocks(lines, count):
        try:
            columns_of_text = zip(*(line.split() for line in portion), strict=True)
            for target, number, cells in zip(targets, numbers, columns_of_text, strict=True):
                target[first : first + len(portion)] = list(map(number, cells))
        except (ValueError, OverflowError):
            raise _line_error(text, numbers, lines.number) from None
    rows, columns = rows - 1, columns - 1
    if form.symmetry == "general":
        return coo_from_entries(values, rows, columns, shape=shape, name="it")
    is_skew = form.symmetry == "skew-symmetric"
    if np.any(rows <= columns if is_skew else rows < columns):
        raise ValueError(f"it is {form.symmetry} and has an entry outside the lower triangle")
    below = rows != columns
    mirrored = -values[below] if is_skew else values[below]
    both = np.append(rows, columns[below]), np.append(columns, rows[below])
    return coo_from_entries(np.append(values, mirrored), *both, shape=shape, name="it")


def _entry_blocks(lines: LineReader, count: int) -> Iterator[tuple[int, list[bytes], bytes]]:
    """Iterate over blocks of entries: number of entries before, non-blank lines, and the text of the block.

    Raises ValueError if there are not exactly `count` entries, or characters that no number has.
    """
    first, length = 0, 0
    for text in lines.portions():
        if text.translate(None, _NUMBER_CHARACTERS + b"\n"):
            raise _line_error(text, (), lines.number)
        length += len(text)
        portion = [line for line in text.split(b"\n") if line and not line.isspace()]
        if first + len(portion) > count or length > _MAX_BYTES_PER_ENTRY * (count + _MAX_BYTES_PER_ENTRY):
            raise ValueError(f"it claims {count} entries, and more follows")
        if portion:
            yield first, portion, text
        first += len(portion)
    if first < count:
        raise ValueError(f"it claims {count} entries, and ends after {first}")


def _line_error(text: bytes, numbers: Sequence[_Number], before: int) -> ValueError:
    """Return the error for the first line that cannot be parsed; `before` lines precede the text."""
    for number, line in enumerate(text.split(b"\n"), start=before + 1):
        cells = line.split()
        is_text = line.translate(None, _NUMBER_CHARACTERS)
        if is_text or (cells and numbers and not _can_read(cells, numbers)):
            return ValueError(f"line {number} is {_quote_line(line)}, not {_EXPECTED[len(numbers)]}")
    return ValueError(f"after line {before} there are entries that are not numbers")


def _can_read(cells: Sequence[bytes], numbers: Sequence[_Number]) -> bool:
    try:
        values = [float(number(cell)) for number, cell in zip(numbers, cells, strict=True)]
    except (ValueError, OverflowError):
        return False
    return len(values) == 1 or max(map(abs, values[:2])) < 2.0**63  # rows and columns must fit into 64 bits


def _quote_line(line: bytes) -> str:
    return repr(sanitize(line.decode("latin-1"), longest=30))


_SUFFIXES = (".mtx", ".mtx.gz")


def variable_of(path: Path) -> str:
    """Return the matrix that a file holds: "A" for A.mtx and A.mtx.gz, "" for other files."""
    return next((path.name.removesuffix(suffix) for suffix in _SUFFIXES if path.name.endswith(suffix)), "")


def list_variables(path: Path) -> list[str]:
    """List the names of the matrices in the folder."""
    return sorted(filter(None, map(variable_of, path.iterdir())))


def read(path: Path, names: Collection[str], *, max_bytes: float = DEFAULT_MAX_BYTES) -> dict[str, Any]:
    """Read those of `names` that exist, plain or gzipped.

    Raises ValueError if a file is damaged or a matrix exists twice, SizeLimitError if they exceed `max_bytes`.
    """
    matrices, allowance = {}, SizeAllowance(max_bytes)
    for name in names:
        files = [path / (name + suffix) for suffix in _SUFFIXES if lexists(path / (name + suffix))]
        if len(files) > 1:
            raise ValueError(f"it holds {name} twice, as {files[0].name} and {files[1].name}; remove one")
        if files:
            matrices[name] = _read_matrix(files[0], name, allowance)
    return matrices


def read_texts(path: Path, name: str) -> list[str]:
    """Raise UnsupportedVariableError: these files hold numbers only."""
    raise UnsupportedVariableError(f"{name} in {path.name} is not a list of texts")


def contents(matrices: Mapping[str, Matrix | SparseMatrix]) -> dict[str, bytes]:
    """Return the files of a folder by name; the text restores every bit."""
    return {f"{name}.mtx": _format_matrix(matrix).encode("ascii") for name, matrix in matrices.items()}


def _format_matrix(matrix: Matrix | SparseMatrix) -> str:
    if isinstance(matrix, SparseMatrix):
        entries = sparse.coo_array(matrix)
        head = "%%MatrixMarket matrix coordinate real general\n{} {} {}\n".format(*matrix.shape, entries.nnz)
        places = zip((entries.row + 1).tolist(), (entries.col + 1).tolist(), entries.data.tolist(), strict=True)
        return head + "".join(f"{row} {column} {value!r}\n" for row, column, value in places)
    # scipy.io.mmwrite (1.17) does not terminate for a matrix without rows. repr() is the shortest text that restores the
    # number; the format is column-major.
    head = "%%MatrixMarket matrix array real general\n{} {}\n".format(*matrix.shape)
    return head + "".join(f"{entry!r}\n" for entry in matrix.ravel(order="F").tolist())


def _read_matrix(path: Path, name: str, allowance: SizeAllowance) -> Any:
    with open_regular(path) as file:
        try:
            return parse_matrix(read_lines(file, is_compressed=path.suffix == ".gz"), allowance, name=name)
        except (SizeLimitError, UnsupportedVariableError):
            raise
        except Exception as error:
            raise ValueError(f"{path.name}: {error}") from error
