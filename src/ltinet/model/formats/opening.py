"""Files as they are opened: regular ones only, and never read beyond the length that they had then.

A pipe would block for ever, a device may never end, and a file that claims more than it holds is damaged: all of that
is found here, before any reader of a format begins.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, final

from ltinet.errors import FileFormatError, InvalidSystemError, LtinetError
from ltinet.model.formats.refusals import BeyondLimitError, UnusableError
from ltinet.shown import shown, shown_path

_LONGEST_REASON = 400


@final
class OpenedFile:
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
def opened(path: Path) -> Iterator[OpenedFile]:
    """Open a regular file.

    Raises:
        FileFormatError: there is none under this name, or it is a folder, a pipe, a device or a socket.
    """
    require_regular(path, mode_of(path))
    try:
        # Should a pipe have taken the file's place by now, opening it this way does not wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise FileFormatError(_about_path(path, error)) from error
    with os.fdopen(descriptor, "rb") as stream:
        found = os.fstat(descriptor)
        require_regular(path, found.st_mode)
        yield OpenedFile(stream, found.st_size)


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
    raise FileFormatError(f"a path is text or a pathlib.Path, and {shown(repr(path))} is neither")


def mode_of(path: Path) -> int:
    """What kind of thing lies at the path, links followed: `st_mode`.

    Raises:
        FileFormatError: nothing lies there, or the path leads nowhere.
    """
    try:
        return os.stat(path).st_mode
    except (OSError, ValueError) as error:  # the second for a path with a NUL in it
        raise FileFormatError(_about_path(path, error)) from error


def require_regular(path: Path, mode: int) -> None:
    """Refuse what is no file, before it is opened: opening a pipe blocks, opening a device may act on it."""
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise FileFormatError(f"{shown_path(path)} is a folder, not a file; give a file in it")
    kinds = {stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket"}
    kind = next((name for is_kind, name in kinds.items() if is_kind(mode)), "a device")
    raise FileFormatError(f"{shown_path(path)} is {kind}, not a file; put what comes from it into a file first")


@contextmanager
def refusing(path: object) -> Iterator[None]:
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
    except UnusableError as error:
        raise InvalidSystemError(f"{shown_path(path)}: {error}") from None
    except BeyondLimitError as error:
        raise FileFormatError(f"{shown_path(path)} cannot be read: {error}") from None
    except MemoryError as error:
        raise FileFormatError(f"{shown_path(path)} cannot be read: there is not enough memory for it") from error
    except Exception as error:
        raise FileFormatError(
            f"{shown_path(path)} cannot be read: {one_line(error)}; it may be damaged or of another kind"
        ) from error


def one_line(error: BaseException) -> str:
    """What an exception says, on one line and without control characters."""
    return shown(" ".join(str(error).split()), longest=_LONGEST_REASON) or type(error).__name__


def reason_of(error: BaseException) -> str:
    """Why a file cannot be read or written, in the words of the operating system where it has some."""
    return getattr(error, "strerror", None) or one_line(error)


def _about_path(path: Path, error: Exception) -> str:
    name, number = shown_path(path), getattr(error, "errno", None)
    match number:
        case errno.ENOENT | errno.ENOTDIR:
            return f"there is no file {name}; check the name{_current_folder()}"
        case errno.ELOOP:
            return f"{name} cannot be read: it is a link that leads back to itself; give the file itself"
        case errno.ENAMETOOLONG:
            return f"{name} cannot be read: the name of {len(str(path))} characters is too long; check the path"
    return f"{name} cannot be read: {reason_of(error)}; check the path and its permissions"


def _current_folder() -> str:
    try:
        return f", or the folder you are in ({shown_path(Path.cwd())})"
    except OSError:  # it was removed
        return ""
