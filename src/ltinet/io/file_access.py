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

# MERGED ltinet.io.file_access
# Why a sound file is not read: what it holds is too large, or is something else than real numbers.


class SizeLimitError(ValueError):
    """The arrays of a file exceed `max_bytes`; the message says by which array and how to raise the limit."""


class UnsupportedVariableError(ValueError):
    """A variable is there and whole, but holds no real numbers."""


def complex_matrix_error(name: str) -> UnsupportedVariableError:
    """The refusal of a complex matrix; neighbouring libraries drop its imaginary part in silence."""
    return UnsupportedVariableError(
        f"{name} is complex, and only real numbers are of use here: save {name}.real (in MATLAB: real({name})) if that "
        "is meant"
    )


# MERGED ltinet.io.file_access
# How large the arrays of a file may be: a file of some kilobytes can claim, or unfold to, more than any memory has.

DEFAULT_MAX_BYTES = 2 * 1024**3
"""2 GiB: a dense A of 16,000 states, or a sparse one of some millions."""

MAX_AXES = 32
"""What every version of NumPy can hold."""

_MAX_VARIABLES = 100_000  # nobody has so many; millions of empty ones would take minutes to list
_BYTES_PER_NUMBER = 8
_BYTES_PER_ENTRY = 24  # row, column and value of an entry; two copies of where a row begins, as it is sorted, and more
_MAX_POSITIONS = 2**63 - 1  # each has a number of 64 bits, by which doubles are found
_MAX_BYTES = 2**62  # also without a limit: places in an array are counted in 64 bits
_MAX_DEFLATE_RATIO = 1032  # the most that deflate makes of one byte; by the format, whoever wrote it
_INFLATION_MARGIN = 1024  # below this, headers and rounding decide and not the ratio


@final
class SizeAllowance:
    """How many bytes of arrays may still come from one file; each is claimed before it is read."""

    def __init__(self, max_bytes: float) -> None:
        self.max_bytes = min(max_bytes, _MAX_BYTES)
        self._claimed = 0

    def claim(self, shape: Sequence[int], what: str) -> None:
        """Reserve room for an array of float64, which is what every dense one becomes in the end.

        An axis of length zero does not excuse the others: NumPy multiplies them all the same.

        Raises:
            BeyondLimitError: there is not so much room left.
            ValueError: the array has more axes than an array can have, or a negative one.
        """
        if len(shape) > MAX_AXES or any(size < 0 for size in shape):
            raise ValueError(f"{what} claims the shape {sanitize(tuple(shape))}")
        self.claim_bytes(
            _BYTES_PER_NUMBER * math.prod(max(size, 1) for size in shape), f"{what} ({format_shape(shape)})"
        )

    def claim_sparse(self, shape: Sequence[int], n_entries: int, what: str) -> None:
        """Reserve room for a sparse matrix: its entries with their places, and where its rows and columns begin.

        Rows that hold nothing take room, too, as soon as the matrix is sorted by rows.

        Raises:
            BeyondLimitError: there is not so much room left.
            ValueError: it does not have two axes, one is negative, or there are more places than can be counted.
        """
        if len(shape) != 2 or min(*shape, n_entries) < 0 or math.prod(shape) > _MAX_POSITIONS:
            raise ValueError(f"{what} claims the shape {sanitize(tuple(shape))} with {n_entries} entries")
        self.claim_bytes(_BYTES_PER_ENTRY * (sum(shape) + n_entries), f"{what} ({format_shape(shape)}, sparse)")

    def claim_bytes(self, count: int, what: str) -> None:
        """Reserve room for so many bytes."""
        self._claimed += count
        self.require(self._claimed, what)

    def require(self, count: int, what: str) -> None:
        """Refuse a part that alone would be too large, without reserving room for it."""
        if count > self.max_bytes:
            raise SizeLimitError(
                f"with {what} its arrays take {_format_bytes(count)}, and max_bytes allows {_format_bytes(self.max_bytes)}; "
                f"if you trust the file, allow more: max_bytes={_round_up(count)}"
            )


def parse_size_limit(max_bytes: Any) -> SizeAllowance:
    """The allowance that a caller gave.

    Raises:
        FileFormatError: it is not a number of bytes.
    """
    try:
        if not isinstance(max_bytes, bool | str) and float(max_bytes) >= 0.0:
            return SizeAllowance(max_bytes)
    except (TypeError, ValueError, OverflowError):
        pass
    raise FileFormatError(
        f"max_bytes is {sanitize(repr(max_bytes))}; give a number of bytes, such as {DEFAULT_MAX_BYTES}"
    )


def require_plausible_inflation(claimed: int, compressed: int, what: str) -> None:
    """Refuse a size that no compressed text of this length can unfold to, before room is made for it.

    Raises:
        ValueError: the size is beyond what deflate can do.
    """
    if claimed > max_inflated_size(compressed):
        raise ValueError(f"{what} claims {claimed} bytes, but is compressed to {compressed}, too few for that")


def max_inflated_size(compressed: int) -> int:
    """The most bytes that so many compressed ones can unfold to."""
    return _MAX_DEFLATE_RATIO * compressed + _INFLATION_MARGIN


def require_variable_limit(variables: Sized) -> None:
    """Refuse a file with more variables than anybody means.

    Raises:
        ValueError: there are too many.
    """
    if len(variables) > _MAX_VARIABLES:
        raise ValueError(f"it holds more than {_MAX_VARIABLES} variables")


def format_shape(shape: Sequence[int]) -> str:
    """A shape as people write it: 3×4."""
    return sanitize("×".join(map(str, shape)) or "one number")


def _format_bytes(count: float) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count:g} bytes"


def _round_up(count: int) -> int:
    """A number that is easy to type, with room for what comes after this array."""
    step = int(10 ** (len(str(count)) - 1))
    return (count // step + 1) * step


# MERGED ltinet.io.file_access
# Files as they are opened: regular ones only, and never read beyond the length that they had then.
#
# A pipe would block for ever, a device may never end, and a file that claims more than it holds is damaged: all of that
# is found here, before any reader of a format begins.

_MAX_REASON_LENGTH = 400


@final
class RegularFile:
    """A regular file, open for reading; every part that is asked for must lie within its length."""

    def __init__(self, stream: BinaryIO, length: int) -> None:
        self.stream = stream
        self.length = length

    def bytes_at(self, start: int, count: int) -> bytes:
        """`count` bytes from `start` on, all of them.

        Raises:
            ValueError: the file does not have them.
        """
        if start < 0 or count < 0 or start + count > self.length:
            raise ValueError(f"it has {self.length} bytes but would need {count} from byte {start} on")
        self.stream.seek(start)
        content = self.stream.read(count)
        if len(content) != count:
            raise ValueError("it became shorter while it was read")
        return content


@contextmanager
def open_regular(path: Path) -> Iterator[RegularFile]:
    """Open a regular file.

    Raises:
        FileFormatError: there is none under this name, or it is a folder, a pipe, a device or a socket.
    """
    require_regular(path, file_mode(path))
    try:
        # Should a pipe have taken the file's place by now, opening it this way does not wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise FileFormatError(_path_error_text(path, error)) from error
    with os.fdopen(descriptor, "rb") as stream:
        found = os.fstat(descriptor)
        require_regular(path, found.st_mode)
        yield RegularFile(stream, found.st_size)


def as_path(path: object) -> Path:
    """The path that a caller gave.

    Raises:
        FileFormatError: it is no path at all.
    """
    if isinstance(path, str | os.PathLike):
        try:
            return Path(path)
        except TypeError:  # a PathLike may also give bytes
            pass
    raise FileFormatError(f"a path is text or a pathlib.Path, and {sanitize(repr(path))} is neither")


def file_mode(path: Path) -> int:
    """What kind of thing lies at the path, links followed: `st_mode`.

    Raises:
        FileFormatError: nothing lies there, or the path leads nowhere.
    """
    try:
        return os.stat(path).st_mode
    except (OSError, ValueError) as error:  # the second for a path with a NUL in it
        raise FileFormatError(_path_error_text(path, error)) from error


def require_regular(path: Path, mode: int) -> None:
    """Refuse what is no file, before it is opened: opening a pipe blocks, opening a device may act on it."""
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise FileFormatError(f"{format_path(path)} is a folder, not a file; give a file in it")
    kinds = {stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket"}
    kind = next((name for is_kind, name in kinds.items() if is_kind(mode)), "a device")
    raise FileFormatError(f"{format_path(path)} is {kind}, not a file; put what comes from it into a file first")


@contextmanager
def translate_read_errors(path: object) -> Iterator[None]:
    """Whatever goes wrong while a file is read becomes one clear line about that file.

    Damaged files make readers fail in every way there is: bad archives, text that is no number, sizes that overflow.

    Raises:
        FileFormatError: the file is damaged, too large or of another kind.
        InvalidSystemError: the file is sound, but a variable holds something else than real numbers.
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
    """What an exception says, on one line and without control characters."""
    return sanitize(" ".join(str(error).split()), longest=_MAX_REASON_LENGTH) or type(error).__name__


def error_reason(error: BaseException) -> str:
    """Why a file cannot be read or written, in the words of the operating system where it has some."""
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
    except OSError:  # it was removed
        return ""


# MERGED ltinet.io.file_access
# Sparse matrices as files hold them: every index checked before anything is stored by it.
#
# SciPy converts sparse matrices without looking at their indices: one row number beyond the last row writes into memory
# that belongs to something else.

Integers = NDArray[np.int64]


def csc_from_columns(data: NDArray[Any], rows: Integers, starts: Integers, *, shape: tuple[int, ...], name: str) -> Any:
    """A matrix in compressed columns: those entries of `data` and `rows` that `starts` assigns to columns, checked.

    Writers may leave room behind the last entry; what is there is not looked at.

    Raises:
        ValueError: a row or a column does not exist, entries are missing, or one place is given twice.
    """
    n_rows, n_columns = shape
    if len(starts) != n_columns + 1 or starts[0] != 0 or np.any(starts[1:] < starts[:-1]):
        raise ValueError(f"{name} has {n_columns} columns, but not where each of them begins")
    count = int(starts[-1])
    if count > min(len(rows), len(data)):
        raise ValueError(f"{name} has {min(len(rows), len(data))} entries, but its columns need {count}")
    columns = np.repeat(np.arange(n_columns), np.diff(starts))
    _require_valid_indices(rows[:count], columns, shape, name)
    return sparse.csc_array((data[:count], rows[:count], starts), shape=(n_rows, n_columns))


def coo_from_entries(
    data: NDArray[Any], rows: Integers, columns: Integers, *, shape: tuple[int, ...], name: str
) -> Any:
    """A matrix given entry by entry, rows and columns counted from 0, checked.

    Raises:
        ValueError: a row or a column does not exist, or one place is given twice.
    """
    _require_valid_indices(rows, columns, shape, name)
    return sparse.coo_array((data, (rows, columns)), shape=shape)


def _require_valid_indices(rows: Integers, columns: Integers, shape: tuple[int, ...], name: str) -> None:
    n_rows, n_columns = shape
    outside = (rows < 0) | (rows >= n_rows) | (columns < 0) | (columns >= n_columns)
    if np.any(outside):
        row, column = (int(places[np.argmax(outside)]) + 1 for places in (rows, columns))
        raise ValueError(f"{name} is {n_rows}×{n_columns} and has an entry in row {row}, column {column}")
    places = columns * n_rows + rows  # below 2⁶³, as `Allowance.claim_sparse` saw
    order = places if np.all(np.diff(places) > 0) else np.sort(places)
    again = np.flatnonzero(np.diff(order) == 0)
    if len(again):
        column, row = divmod(int(order[again[0]]), n_rows)
        raise ValueError(f"{name} has two entries in row {row + 1}, column {column + 1}")
