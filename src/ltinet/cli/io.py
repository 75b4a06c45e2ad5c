"""Input and output of the commands: files, pipes, `-` for standard streams, pictures, and messages on the terminal.

A file is written atomically. Output to a pipe or a device is complete before its first byte is written; only tables
that are simulated as they arrive leave row by row. No command overwrites a file that it reads, which is decided by
device and inode, so that links and redirections are recognised. Progress and notes are shown only on a terminal.
"""

import io
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, TextIO

import typer
from rich.markup import escape

from ltinet._util.atomic_files import atomic_path
from ltinet._util.progress import ProgressCallback, start_after_delay, stderr_console
from ltinet._util.text import escape_control_characters, format_path, sanitize
from ltinet.errors import FileFormatError, LtinetError
from ltinet.plotting.figures import PICTURE_FORMATS, draw_offscreen, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STANDARD_STREAM = "-"
_EXIT_BROKEN_PIPE = 141  # what a shell reports of a program that SIGPIPE ended
_SIGNATURES = {b"PK\x03\x04": ".npz", b"MATLAB": ".mat", b"\x89HDF": ".mat"}


@contextmanager
def open_as_path(name: str) -> Iterator[Path]:
    """Give a path to read from; what comes through a pipe is put into a file first, since its readers seek in it.

    The file has the suffix that its content suggests, `.csv` if it suggests none.
    """
    path = Path(name)
    if not is_stream(name):
        yield path
        return
    with open_stream(name) as (stream, _), temporary_input(stream.read(), display_name(name)) as file:
        yield file


def display_name(name: str) -> str:
    """What to call it in messages."""
    return "standard input" if name == STANDARD_STREAM else format_path(name)


@contextmanager
def open_stream(name: str) -> Iterator[tuple[BinaryIO, str]]:
    """A pipe or a device to read from, and the suffix that its first bytes suggest; they are not taken from it.

    Raises:
        FileFormatError: nothing comes.
    """
    with ExitStack() as stack:
        opened = _standard_input() if name == STANDARD_STREAM else stack.enter_context(Path(name).open("rb"))
        stream = opened if hasattr(opened, "peek") else io.BufferedReader(opened)  # type: ignore[type-var]
        beginning = stream.peek(16)
        if not beginning:
            raise FileFormatError(f"{display_name(name)} is empty; check the program before the pipe")
        yield stream, _suffix_of(beginning)


@contextmanager
def temporary_input(content: bytes, title: str) -> Iterator[Path]:
    """A file with this content, for as long as it is needed; complaints about it name the title."""
    with tempfile.TemporaryDirectory(prefix="ltinet-") as folder:
        file = Path(folder) / f"input{_suffix_of(content)}"
        file.write_bytes(content)
        with _renamed_in_errors(title, instead_of=file):
            yield file


def check_target(target: str) -> None:
    """Refuse a place that cannot be written to, before the work is done rather than after.

    Raises:
        FileFormatError: it is a folder, or lies in a folder that does not exist.
    """
    path = Path(target)
    if target == STANDARD_STREAM:
        return
    if path.is_dir():
        raise FileFormatError(
            f"{format_path(target)} is a folder; give a file in it, for example {format_path(path / 'name')}"
        )
    if not path.parent.is_dir():
        raise FileFormatError(
            f"{format_path(target)} cannot be written: there is no folder {format_path(path.parent)}; create it first"
        )


def is_stream(name: str) -> bool:
    """Whether the name stands for a pipe or a device, which is not replaced but written into."""
    path = Path(name)
    return name == STANDARD_STREAM or (path.exists() and not path.is_file() and not path.is_dir())


def write_output(target: str, write: Callable[[Path], None], *, suffix: str = "") -> None:
    """Let `write` make a file, with this suffix if the target is a stream and has none, and bring it to the target.

    Raises:
        FileFormatError: the file system or the reader of the pipe refuses.
    """
    path = Path(target)
    try:
        if not is_stream(target):
            with atomic_path(path) as staged, _renamed_in_errors(format_path(target), instead_of=staged):
                write(staged)
            return
        content = _content_of(write, suffix)
    except OSError as error:
        raise FileFormatError(f"{format_path(target)} cannot be written: {error.strerror or error}") from None
    write_chunks(target, [content])


def write_chunks(target: str, pieces: Iterable[bytes]) -> None:
    """Write what comes, piece by piece: into a stream at once, into a file that appears when all of it has come.

    Raises:
        FileFormatError: the file system or the reader of the pipe refuses; or whatever fails to make the next piece.
    """
    if target == STANDARD_STREAM:
        for piece in pieces:
            write_stdout(piece)
        return
    try:
        if is_stream(target):
            with Path(target).open("wb", buffering=0) as stream:
                _write_all(stream, pieces)
            return
        with atomic_path(Path(target)) as staged, staged.open("wb") as file:
            _write_all(file, pieces)
    except BrokenPipeError:
        raise typer.Exit(_EXIT_BROKEN_PIPE) from None
    except OSError as error:
        raise FileFormatError(f"{format_path(target)} cannot be written: {error.strerror or error}") from None


def _write_all(stream: IO[bytes], pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        rest = memoryview(piece)
        while rest:  # a pipe may take less than all
            rest = rest[stream.write(rest) :]


def write_stdout(content: str | bytes) -> None:
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
            raise typer.Exit(_EXIT_BROKEN_PIPE) from None
        raise FileFormatError(f"standard output cannot be written: {error.strerror}") from None


def refuse_terminal(target: str) -> None:
    """Binary content on a terminal helps nobody."""
    if target == STANDARD_STREAM and sys.stdout is not None and sys.stdout.isatty():
        raise FileFormatError("binary content is not for a terminal; name a file with -o, or pipe it on")


@contextmanager
def _renamed_in_errors(title: str, *, instead_of: Path) -> Iterator[None]:
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


_Identity = tuple[int, int]


def refuse_overwriting(target: str, sources: Mapping[str, str]) -> None:
    """Refuse a target that is one of the files read, by their identity and not by their names.

    `sources` says what each of them is, for the message. A folder stands for the files in it.

    Raises:
        FileFormatError: it is.
    """
    written = next(_identities(target, sys.stdout), None)
    for what, source in sources.items():
        if written is not None and written in _identities(source, sys.stdin):
            title = "standard output goes to" if target == STANDARD_STREAM else f"{format_path(target)} is"
            raise FileFormatError(
                f"{title} the file that {what} comes from, {_source_title(source)}; writing would destroy it: name another "
                "file with -o"
            )


def _identities(name: str, standard: TextIO | None) -> Iterator[_Identity]:
    """Device and number of a file, or of those in a folder; nothing for pipes, devices and what is not there."""
    try:
        found = os.fstat(_descriptor(standard)) if name == STANDARD_STREAM else os.stat(name)
    except (OSError, ValueError):
        return
    if stat.S_ISREG(found.st_mode):
        yield found.st_dev, found.st_ino
    elif stat.S_ISDIR(found.st_mode):
        for file in Path(name).iterdir():
            if file.is_file():
                yield file.stat().st_dev, file.stat().st_ino


def _descriptor(stream: TextIO | None) -> int:
    if stream is None:
        raise io.UnsupportedOperation("closed")  # an OSError, as for a stream that is no file
    return stream.fileno()


def _source_title(source: str) -> str:
    return "through standard input" if source == STANDARD_STREAM else format_path(source)


@contextmanager
def show_status(message: str) -> Iterator[ProgressCallback]:
    """Show that something is going on, to those who have waited for a second; a function to call with every step."""
    console = stderr_console()
    if console is None:
        yield lambda step: None  # noqa: ARG005 - nobody to tell
        return
    status = console.status(escape(escape_control_characters(message)))
    with start_after_delay(status.start, status.stop):
        yield lambda step: status.update(escape(escape_control_characters(f"{message}: {step}")))


@contextmanager
def show_reduction_progress(message: str) -> Iterator[Callable[[int, float], None]]:
    """A function to call with the number of shifts and the relative bound, which those who look on see fall."""
    console = stderr_console()
    if console is None:
        yield lambda n_shifts, bound: None  # noqa: ARG005 - nobody to tell
        return
    text = escape(escape_control_characters(message))
    status = console.status(text)
    with start_after_delay(status.start, status.stop):
        yield lambda n_shifts, bound: status.update(f"{text}: {n_shifts} shifts, error ≤ {bound:.1e} of the gain")


def print_note(message: str) -> None:
    """Say what was done."""
    console = stderr_console()
    if console is not None:
        console.print(escape_control_characters(message), markup=False, highlight=False, soft_wrap=True)


def picture_suffix(output: str, wanted: str | None = None) -> str:
    """The suffix says what is written; a stream has none, and is PNG unless something else is wanted.

    Raises:
        FileFormatError: it is no kind of picture, or two are asked for.
    """
    known = ", ".join(PICTURE_FORMATS)
    if is_stream(output):
        chosen = wanted or "png"
        if chosen not in PICTURE_FORMATS:
            raise FileFormatError(f"--format is {sanitize(repr(chosen))}; known are {known}")
        return f".{chosen}"
    suffix = Path(output).suffix.lower()
    if suffix.removeprefix(".") not in PICTURE_FORMATS:
        raise FileFormatError(f"{format_path(output)} is of an unknown kind; known are {known}")
    if wanted is not None and suffix != f".{wanted}":
        raise FileFormatError(
            f"{format_path(output)} and --format {sanitize(wanted)} do not agree; --format is for standard output"
        )
    return suffix


def draw_headless(draw: Callable[[], Any]) -> "Figure":
    """The figure of the Axes that `draw` returns, where there may be no display at all."""
    use_headless_backend()
    return draw_offscreen(draw)


def use_headless_backend() -> None:
    """Let matplotlib look for none."""
    require_matplotlib()
    import matplotlib as mpl

    mpl.use("Agg")
