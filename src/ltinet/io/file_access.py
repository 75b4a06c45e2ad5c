"""Access to files that are not trusted: regular files, size limits and validated sparse indices.

Only regular files are opened, since a pipe would block and a device may never end, and no read goes beyond the length
at opening. A file of some kilobytes can claim, or inflate to, more than any memory holds: every array is claimed from
an allowance of `max_bytes` before it is read. Indices of sparse matrices are checked before SciPy uses them, because a
row number beyond the last row would write into foreign memory. Every failure of a reader becomes one `FileFormatError`
or `InvalidSystemError` that names the file.
"""

import errno
import math
import os
import stat
from collections.abc import Iterator, Sequence, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ltinet._util.text import format_path, sanitize
from ltinet.errors import FileFormatError, InvalidSystemError, LtinetError


class SizeLimitError(ValueError):
    """Arrays of a file that exceed `max_bytes`; the message names the array and how to raise the limit."""


class UnsupportedVariableError(ValueError):
    """Variable that is intact, but holds no real numbers."""


def complex_matrix_error(name: str) -> UnsupportedVariableError:
    """Return the error for a complex matrix, whose imaginary part other libraries drop silently."""
    return UnsupportedVariableError(
        f"{name} is complex, but systems must be real; save {name}.real (in MATLAB: real({name})) if the imaginary part is "
        "not needed"
    )


DEFAULT_MAX_BYTES = 2 * 1024**3
"""2 GiB: a dense A of 16,000 states, or a sparse one of several million."""

MAX_AXES = 32
"""Largest number of axes in all versions of NumPy."""

_MAX_VARIABLES = 100_000  # listing millions of empty variables would take minutes
_BYTES_PER_NUMBER = 8
_BYTES_PER_ENTRY = 24  # row, column and value of an entry; also covers two copies of a row pointer
_MAX_POSITIONS = 2**63 - 1  # positions are numbered by 64-bit integers to detect duplicates
_MAX_BYTES = 2**62  # upper limit of max_bytes, since array offsets are 64-bit integers
_MAX_DEFLATE_RATIO = 1032  # largest expansion by deflate, a property of the format
_INFLATION_MARGIN = 1024  # bytes, for headers and rounding


@final
class SizeAllowance:
    """Number of bytes of arrays that may still be read from a file; each array is claimed before it is read."""

    def __init__(self, max_bytes: float) -> None:
        self.max_bytes = min(max_bytes, _MAX_BYTES)
        self._claimed = 0

    def claim(self, shape: Sequence[int], noun: str) -> None:
        """Reserve memory for an array of float64, the type of all dense matrices after conversion.

        Axes of length zero count as 1, because NumPy multiplies the other lengths all the same. Raises SizeLimitError
        if the allowance is exceeded, ValueError if the array has too many axes or a negative length.
        """
        if len(shape) > MAX_AXES or any(size < 0 for size in shape):
            raise ValueError(f"{noun} claims the shape {sanitize(tuple(shape))}")
        count = math.prod(max(size, 1) for size in shape)
        self.claim_bytes(_BYTES_PER_NUMBER * count, f"{noun} ({format_shape(shape)})")

    def claim_sparse(self, shape: Sequence[int], n_entries: int, noun: str) -> None:
        """Reserve memory for a sparse matrix: entries with their indices, and the pointers of rows and columns.

        Empty rows need memory, too, as soon as the matrix is converted to compressed rows. Raises SizeLimitError if the
        allowance is exceeded, ValueError if the matrix does not have two axes, has a negative length, or has too many
        positions for 64-bit indices.
        """
        if len(shape) != 2 or min(*shape, n_entries) < 0 or math.prod(shape) > _MAX_POSITIONS:
            raise ValueError(f"{noun} claims the shape {sanitize(tuple(shape))} with {n_entries} entries")
        self.claim_bytes(_BYTES_PER_ENTRY * (sum(shape) + n_entries), f"{noun} ({format_shape(shape)}, sparse)")

    def claim_bytes(self, count: int, noun: str) -> None:
        """Reserve `count` bytes; raise SizeLimitError if the allowance is exceeded."""
        self._claimed += count
        self.require(self._claimed, noun)

    def require(self, count: int, noun: str) -> None:
        """Raise SizeLimitError if a part of `count` bytes exceeds the limit by itself; nothing is reserved."""
        if count > self.max_bytes:
            raise SizeLimitError(
                f"with {noun} its arrays take {_format_bytes(count)}, and max_bytes allows {_format_bytes(self.max_bytes)}; "
                f"if you trust the file, allow more: max_bytes={_round_up(count)}"
            )


def parse_size_limit(max_bytes: Any) -> SizeAllowance:
    """Return the allowance for the `max_bytes` of a caller; raise FileFormatError if it is not a number of bytes."""
    try:
        if not isinstance(max_bytes, bool | str) and float(max_bytes) >= 0.0:
            return SizeAllowance(max_bytes)
    except (TypeError, ValueError, OverflowError):
        pass
    raise FileFormatError(
        f"max_bytes is {sanitize(repr(max_bytes))}; give a number of bytes, such as {DEFAULT_MAX_BYTES}"
    )


def require_plausible_inflation(claimed: int, compressed: int, noun: str) -> None:
    """Raise ValueError for an inflated size that deflate cannot produce, before memory is allocated for it."""
    if claimed > max_inflated_size(compressed):
        raise ValueError(f"{noun} claims {claimed} bytes, but is compressed to {compressed}, too few for that")


def max_inflated_size(compressed: int) -> int:
    """Return the largest number of bytes that `compressed` bytes can inflate to."""
    return _MAX_DEFLATE_RATIO * compressed + _INFLATION_MARGIN


def require_variable_limit(variables: Sized) -> None:
    """Raise ValueError for a file with too many variables."""
    if len(variables) > _MAX_VARIABLES:
        raise ValueError(f"it holds more than {_MAX_VARIABLES} variables")


def format_shape(shape: Sequence[int]) -> str:
    """Format a shape as 3×4."""
    return sanitize("×".join(map(str, shape)) or "one number")


def _format_bytes(count: float) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count:g} bytes"


def _round_up(count: int) -> int:
    """Return a number that is easy to type, with a margin for further arrays."""
    step = int(10 ** (len(str(count)) - 1))
    return (count // step + 1) * step


_MAX_REASON_LENGTH = 400  # characters


@final
class RegularFile:
    """Regular file open for reading; reads outside its length at opening are refused."""

    def __init__(self, stream: BinaryIO, length: int) -> None:
        self.stream = stream
        self.length = length

    def bytes_at(self, start: int, count: int) -> bytes:
        """Return `count` bytes from position `start`; raise ValueError if the file does not have them."""
        if start < 0 or count < 0 or start + count > self.length:
            raise ValueError(f"it has {self.length} bytes but would need {count} from byte {start} on")
        self.stream.seek(start)
        content = self.stream.read(count)
        if len(content) != count:
            raise ValueError("it became shorter while it was read")
        return content


@contextmanager
def open_regular(path: Path) -> Iterator[RegularFile]:
    """Open a regular file; raise FileFormatError if it is missing, a folder, a pipe, a device or a socket."""
    require_regular(path, file_mode(path))
    try:
        # O_NONBLOCK: if a pipe has replaced the file by now, opening it does not wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise FileFormatError(_path_error_text(path, error)) from error
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        require_regular(path, status.st_mode)
        yield RegularFile(stream, status.st_size)


def as_path(path: object) -> Path:
    """Return the path of a caller; raise FileFormatError if it is not a path."""
    if isinstance(path, str | os.PathLike):
        try:
            return Path(path)
        except TypeError:  # a PathLike may also give bytes
            pass
    raise FileFormatError(f"path must be text or a pathlib.Path, got {sanitize(repr(path))}")


def file_mode(path: Path) -> int:
    """Return `st_mode` of a path after following links; raise FileFormatError if the path does not exist."""
    try:
        return os.stat(path).st_mode
    except (OSError, ValueError) as error:  # the second for a path with a NUL in it
        raise FileFormatError(_path_error_text(path, error)) from error


def require_regular(path: Path, mode: int) -> None:
    """Refuse paths that are not regular files: opening a pipe blocks, and opening a device may have side effects."""
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise FileFormatError(f"{format_path(path)} is a folder, not a file; give a file in it")
    kinds = {stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket"}
    kind = next((name for is_kind, name in kinds.items() if is_kind(mode)), "a device")
    raise FileFormatError(f"{format_path(path)} is {kind}, not a file; write its content to a file first")


@contextmanager
def translate_read_errors(path: object) -> Iterator[None]:
    """Convert every exception of the body to one error that names the file.

    Readers of damaged files fail in many ways: invalid archives, text instead of numbers, sizes that overflow. Raises
    FileFormatError if the file is damaged, too large or of another format; InvalidSystemError if a variable does not
    hold real numbers.
    """
    try:
        yield
    except LtinetError:
        raise
    except UnsupportedVariableError as error:
        raise InvalidSystemError(f"{format_path(path)}: {error}") from None
    except SizeLimitError as error:
        raise FileFormatError(f"{format_path(path)} cannot be read: {error}") from None
    except MemoryError as error:
        raise FileFormatError(f"{format_path(path)} cannot be read: there is not enough memory for it") from error
    except Exception as error:
        raise FileFormatError(
            f"{format_path(path)} cannot be read: {error_text(error)}; it may be damaged or of another kind"
        ) from error


def error_text(error: BaseException) -> str:
    """Return the message of an exception on one line, without control characters."""
    return sanitize(" ".join(str(error).split()), longest=_MAX_REASON_LENGTH) or type(error).__name__


def error_reason(error: BaseException) -> str:
    """Return the reason of a failed read or write, in the words of the operating system if it gives one."""
    return getattr(error, "strerror", None) or error_text(error)


def _path_error_text(path: Path, error: Exception) -> str:
    name, number = format_path(path), getattr(error, "errno", None)
    match number:
        case errno.ENOENT | errno.ENOTDIR:
            return f"there is no file {name}; check the name{_current_folder()}"
        case errno.ELOOP:
            return f"{name} cannot be read: it is a link that leads back to itself; give the file itself"
        case errno.ENAMETOOLONG:
            return f"{name} cannot be read: the name of {len(str(path))} characters is too long; check the path"
    return f"{name} cannot be read: {error_reason(error)}; check the path and its permissions"


def _current_folder() -> str:
    try:
        return f", or the folder you are in ({format_path(Path.cwd())})"
    except OSError:  # the folder was removed
        return ""


Integers = NDArray[np.int64]


def csc_from_columns(data: NDArray[Any], rows: Integers, starts: Integers, *, shape: tuple[int, ...], name: str) -> Any:
    """Build a matrix in compressed columns after checking all indices; spare space behind the last entry is ignored.

    Raises ValueError if an index is out of range, entries are missing, or a position occurs twice.
    """
    n_rows, n_columns = shape
    if len(starts) != n_columns + 1 or starts[0] != 0 or np.any(starts[1:] < starts[:-1]):
        raise ValueError(f"{name} has invalid pointers of its {n_columns} columns")
    count = int(starts[-1])
    if count > min(len(rows), len(data)):
        raise ValueError(f"{name} has {min(len(rows), len(data))} entries, but its columns need {count}")
    columns = np.repeat(np.arange(n_columns), np.diff(starts))
    _require_valid_indices(rows[:count], columns, shape, name)
    return sparse.csc_array((data[:count], rows[:count], starts), shape=(n_rows, n_columns))


def coo_from_entries(
    data: NDArray[Any], rows: Integers, columns: Integers, *, shape: tuple[int, ...], name: str
) -> Any:
    """Build a matrix from entries with zero-based indices; raise ValueError for invalid or duplicate positions."""
    _require_valid_indices(rows, columns, shape, name)
    return sparse.coo_array((data, (rows, columns)), shape=shape)


def _require_valid_indices(rows: Integers, columns: Integers, shape: tuple[int, ...], name: str) -> None:
    n_rows, n_columns = shape
    outside = (rows < 0) | (rows >= n_rows) | (columns < 0) | (columns >= n_columns)
    if np.any(outside):
        row, column = (int(indices[np.argmax(outside)]) + 1 for indices in (rows, columns))
        raise ValueError(f"{name} is {n_rows}×{n_columns} and has an entry in row {row}, column {column}")
    positions = columns * n_rows + rows  # below 2⁶³, as `SizeAllowance.claim_sparse` ensures
    ordered = positions if np.all(np.diff(positions) > 0) else np.sort(positions)
    duplicates = np.flatnonzero(np.diff(ordered) == 0)
    if len(duplicates):
        column, row = divmod(int(ordered[duplicates[0]]), n_rows)
        raise ValueError(f"{name} has two entries in row {row + 1}, column {column + 1}")
