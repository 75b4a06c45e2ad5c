"""Where the program reads and writes: files, pipes and devices, and `-` for standard input and output.

A file appears whole or not at all. Into a pipe or a device goes what is complete before the first byte is written; only
tables that are simulated as they arrive leave row after row.
"""

import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, BinaryIO

import typer

from ltinet.atomic import written_whole
from ltinet.errors import FileFormatError, LtinetError
from ltinet.shown import shown_path

STANDARD = "-"
_NOBODY_READS = 141  # what a shell reports of a program that SIGPIPE ended
_SIGNATURES = {b"PK\x03\x04": ".npz", b"MATLAB": ".mat", b"\x89HDF": ".mat"}


@contextmanager
def readable(name: str) -> Iterator[Path]:
    """Give a path to read from; what comes through a pipe is put into a file first, since its readers seek in it.

    The file has the suffix that its content suggests, `.csv` if it suggests none.
    """
    path = Path(name)
    if not is_stream(name):
        yield path
        return
    with incoming(name) as (stream, _), spooled(stream.read(), title_of(name)) as file:
        yield file


def title_of(name: str) -> str:
    """What to call it in messages."""
    return "standard input" if name == STANDARD else shown_path(name)


@contextmanager
def incoming(name: str) -> Iterator[tuple[BinaryIO, str]]:
    """A pipe or a device to read from, and the suffix that its first bytes suggest; they are not taken from it.

    Raises:
        FileFormatError: nothing comes.
    """
    with ExitStack() as stack:
        opened = _standard_input() if name == STANDARD else stack.enter_context(Path(name).open("rb"))
        stream = opened if hasattr(opened, "peek") else io.BufferedReader(opened)  # type: ignore[type-var]
        beginning = stream.peek(16)
        if not beginning:
            raise FileFormatError(f"{title_of(name)} is empty; check the program before the pipe")
        yield stream, _suffix_of(beginning)


@contextmanager
def spooled(content: bytes, title: str) -> Iterator[Path]:
    """A file with this content, for as long as it is needed; complaints about it name the title."""
    with tempfile.TemporaryDirectory(prefix="ltinet-") as folder:
        file = Path(folder) / f"input{_suffix_of(content)}"
        file.write_bytes(content)
        with _called(title, instead_of=file):
            yield file


def check_target(target: str) -> None:
    """Refuse a place that cannot be written to, before the work is done rather than after.

    Raises:
        FileFormatError: it is a folder, or lies in a folder that does not exist.
    """
    path = Path(target)
    if target == STANDARD:
        return
    if path.is_dir():
        raise FileFormatError(
            f"{shown_path(target)} is a folder; give a file in it, for example {shown_path(path / 'name')}"
        )
    if not path.parent.is_dir():
        raise FileFormatError(
            f"{shown_path(target)} cannot be written: there is no folder {shown_path(path.parent)}; create it first"
        )


def is_stream(name: str) -> bool:
    """Whether the name stands for a pipe or a device, which is not replaced but written into."""
    path = Path(name)
    return name == STANDARD or (path.exists() and not path.is_file() and not path.is_dir())


def deliver(target: str, write: Callable[[Path], None], *, suffix: str = "") -> None:
    """Let `write` make a file, with this suffix if the target is a stream and has none, and bring it to the target.

    Raises:
        FileFormatError: the file system or the reader of the pipe refuses.
    """
    path = Path(target)
    try:
        if not is_stream(target):
            with written_whole(path) as staged, _called(shown_path(target), instead_of=staged):
                write(staged)
            return
        content = _content_of(write, suffix)
    except OSError as error:
        raise FileFormatError(f"{shown_path(target)} cannot be written: {error.strerror or error}") from None
    deliver_pieces(target, [content])


def deliver_pieces(target: str, pieces: Iterable[bytes]) -> None:
    """Write what comes, piece by piece: into a stream at once, into a file that appears when all of it has come.

    Raises:
        FileFormatError: the file system or the reader of the pipe refuses; or whatever fails to make the next piece.
    """
    if target == STANDARD:
        for piece in pieces:
            send(piece)
        return
    try:
        if is_stream(target):
            with Path(target).open("wb", buffering=0) as stream:
                _write_all(stream, pieces)
            return
        with written_whole(Path(target)) as staged, staged.open("wb") as file:
            _write_all(file, pieces)
    except BrokenPipeError:
        raise typer.Exit(_NOBODY_READS) from None
    except OSError as error:
        raise FileFormatError(f"{shown_path(target)} cannot be written: {error.strerror or error}") from None


def _write_all(stream: IO[bytes], pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        rest = memoryview(piece)
        while rest:  # a pipe may take less than all
            rest = rest[stream.write(rest) :]


def send(content: str | bytes) -> None:
    """Write to standard output and flush it, so that what fails fails here."""
    if sys.stdout is None:
        raise FileFormatError("standard output is closed; give a file with -o")
    rest = memoryview(content.encode(sys.stdout.encoding, "replace") if isinstance(content, str) else content)
    try:
        sys.stdout.flush()
        while rest:  # with PYTHONUNBUFFERED a pipe may take less than all, and says how much
            rest = rest[sys.stdout.buffer.write(rest) :]
        sys.stdout.flush()
    except OSError as error:
        # Python would try again to write what is left in the buffer when it ends, and print a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise typer.Exit(_NOBODY_READS) from None
        raise FileFormatError(f"standard output cannot be written: {error.strerror}") from None


def refuse_terminal(target: str) -> None:
    """Binary content on a terminal helps nobody."""
    if target == STANDARD and sys.stdout is not None and sys.stdout.isatty():
        raise FileFormatError("binary content is not for a terminal; name a file with -o, or pipe it on")


@contextmanager
def _called(title: str, *, instead_of: Path) -> Iterator[None]:
    """Complaints name the file as the user does, not the one that stands in for it."""
    try:
        yield
    except LtinetError as error:
        raise type(error)(str(error).replace(str(instead_of), title)) from None


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise FileFormatError("standard input is closed; name a file")
    return sys.stdin.buffer


def _suffix_of(content: bytes) -> str:
    if content[8:9] == b"{":  # eight bytes with the length of the header, and a header in JSON
        return ".safetensors"
    return next((suffix for mark, suffix in _SIGNATURES.items() if content.startswith(mark)), ".csv")


def _content_of(write: Callable[[Path], None], suffix: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="ltinet-") as folder:
        path = Path(folder) / f"output{suffix}"
        write(path)
        return path.read_bytes()
