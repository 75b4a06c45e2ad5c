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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, TextIO

import typer
from rich.markup import escape

from ltinet._util.atomic_files import atomic_path
from ltinet._util.progress import ProgressCallback, start_after_delay, stderr_console
from ltinet._util.text import escape_control_characters, format_path, sanitize
from ltinet.errors import FileFormatError, LtinetError
from ltinet.plotting.figures import PICTURE_FORMATS, draw_offscreen, require_matplotlib, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STANDARD_STREAM = "-"
_EXIT_BROKEN_PIPE = 141  # what a shell reports of a program that SIGPIPE ended
_FILE_SIGNATURES = {b"PK\x03\x04": ".npz", b"MATLAB": ".mat", b"\x89HDF": ".mat"}  # first bytes of each format


@contextmanager
def open_as_path(name: str) -> Iterator[Path]:
    """Yield a path to read from; piped input is stored in a temporary file first, since its readers seek in it.

    That file gets the suffix that its content suggests, `.csv` by default.
    """
    path = Path(name)
    if not is_stream(name):
        yield path
        return
    with open_stream(name) as (stream, _), temporary_input(stream.read(), display_name(name)) as file:
        yield file


def display_name(name: str) -> str:
    """Return the name of a source for messages."""
    return "standard input" if name == STANDARD_STREAM else format_path(name)


@contextmanager
def open_stream(name: str) -> Iterator[tuple[BinaryIO, str]]:
    """Yield a pipe or device to read from, and the suffix that its first bytes suggest; these stay in the stream.

    Raise `FileFormatError` if it is empty.
    """
    with ExitStack() as stack:
        if name == STANDARD_STREAM and sys.stdin is None:
            raise FileFormatError("standard input is closed; name a file")
        opened = sys.stdin.buffer if name == STANDARD_STREAM else stack.enter_context(Path(name).open("rb"))
        stream = opened if hasattr(opened, "peek") else io.BufferedReader(opened)  # type: ignore[type-var]
        beginning = stream.peek(16)
        if not beginning:
            raise FileFormatError(f"{display_name(name)} is empty; check the program before the pipe")
        yield stream, _suffix_of(beginning)


@contextmanager
def temporary_input(content: bytes, title: str) -> Iterator[Path]:
    """Yield a temporary file with this content; error messages about it name the title instead."""
    with tempfile.TemporaryDirectory(prefix="ltinet-") as folder:
        file = Path(folder) / f"input{_suffix_of(content)}"
        file.write_bytes(content)
        with _renamed_in_errors(title, instead_of=file):
            yield file


def check_target(target: str, sources: Mapping[str, str] | None = None, *, is_text: bool = False) -> None:
    """Check before any work that a target can be written, is not a file that the command reads, and suits a terminal.

    `sources` maps a noun for each file that is read, as in "the table", to its name. Raise `FileFormatError` otherwise.
    """
    path = Path(target)
    if target != STANDARD_STREAM:
        if path.is_dir():
            raise FileFormatError(
                f"{format_path(target)} is a folder; give a file in it, for example {format_path(path / 'name')}"
            )
        if not path.parent.is_dir():
            raise FileFormatError(
                f"{format_path(target)} cannot be written: there is no folder {format_path(path.parent)}; create it first"
            )
    refuse_overwriting(target, sources or {})
    if target == STANDARD_STREAM and not is_text and sys.stdout is not None and sys.stdout.isatty():
        raise FileFormatError("binary output cannot be shown on a terminal; name a file with -o, or use a pipe")


def is_stream(name: str) -> bool:
    """Return whether a name stands for a pipe or a device, which is written into instead of replaced."""
    path = Path(name)
    return name == STANDARD_STREAM or (path.exists() and not path.is_file() and not path.is_dir())


def write_output(target: str, write: Callable[[Path], None], *, suffix: str = "") -> None:
    """Let `write` create a file and move it to the target; for a stream, write its content at once.

    `suffix` is that of the temporary file for a stream. Raise `FileFormatError` if the target cannot be written.
    """
    path = Path(target)
    try:
        if not is_stream(target):
            with atomic_path(path) as staged, _renamed_in_errors(format_path(target), instead_of=staged):
                write(staged)
            return
        with tempfile.TemporaryDirectory(prefix="ltinet-") as folder:
            path = Path(folder) / f"output{suffix}"
            write(path)
            content = path.read_bytes()
    except OSError as error:
        raise FileFormatError(f"{format_path(target)} cannot be written: {error.strerror or error}") from None
    write_chunks(target, [content])


def write_chunks(target: str, pieces: Iterable[bytes]) -> None:
    """Write pieces of bytes: into a stream as they come, into a file that appears when all have been written.

    Raise `FileFormatError` if the target cannot be written, and any error raised while the next piece is computed.
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
        while rest:  # a pipe may take a part only
            rest = rest[stream.write(rest) :]


def write_stdout(content: str | bytes) -> None:
    """Write to standard output and flush it, so that failures are raised here."""
    if sys.stdout is None:
        raise FileFormatError("standard output is closed; give a file with -o")
    rest = memoryview(content.encode(sys.stdout.encoding, "replace") if isinstance(content, str) else content)
    try:
        sys.stdout.flush()
        while rest:  # with PYTHONUNBUFFERED a pipe may take a part only, and returns its size
            rest = rest[sys.stdout.buffer.write(rest) :]
        sys.stdout.flush()
    except OSError as error:
        # At exit Python would write the rest of the buffer again, fail and print a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise typer.Exit(_EXIT_BROKEN_PIPE) from None
        raise FileFormatError(f"standard output cannot be written: {error.strerror}") from None


@contextmanager
def _renamed_in_errors(title: str, *, instead_of: Path) -> Iterator[None]:
    """Replace the path of a temporary file in error messages by the name that the user gave."""
    try:
        yield
    except LtinetError as error:
        raise type(error)(str(error).replace(str(instead_of), title)) from None


def _suffix_of(content: bytes) -> str:
    if content[8:9] == b"{":  # safetensors: eight bytes with the length of the header, then the header in JSON
        return ".safetensors"
    return next((suffix for mark, suffix in _FILE_SIGNATURES.items() if content.startswith(mark)), ".csv")


def refuse_overwriting(target: str, sources: Mapping[str, str]) -> None:
    """Raise `FileFormatError` if the target is one of the sources, compared by device and inode.

    A folder stands for the files in it.
    """
    written = next(_identities(target, sys.stdout), None)
    for noun, source in sources.items():
        if written is not None and written in _identities(source, sys.stdin):
            title = "standard output goes to" if target == STANDARD_STREAM else f"{format_path(target)} is"
            origin = "through standard input" if source == STANDARD_STREAM else format_path(source)
            raise FileFormatError(
                f"{title} the file that {noun} comes from, {origin}; writing would destroy it: name another file with -o"
            )


def _identities(name: str, standard: TextIO | None) -> Iterator[tuple[int, int]]:
    """Yield device and inode of a file, or of those in a folder; none for pipes, devices and what does not exist."""
    try:
        if name == STANDARD_STREAM and standard is None:  # a closed stream
            return
        status = os.fstat(standard.fileno()) if name == STANDARD_STREAM and standard is not None else os.stat(name)
    except (OSError, ValueError):
        return
    if stat.S_ISREG(status.st_mode):
        yield status.st_dev, status.st_ino
    elif stat.S_ISDIR(status.st_mode):
        for file in Path(name).iterdir():
            if file.is_file():
                yield file.stat().st_dev, file.stat().st_ino


def check_picture_target(picture: str, sources: Mapping[str, str]) -> None:
    """Check before any work that a picture can be drawn and written."""
    picture_suffix(picture)
    require_matplotlib()
    check_target(picture, sources)


@contextmanager
def show_status(message: str) -> Iterator[ProgressCallback]:
    """Show a status line after one second of waiting; yields a function that appends the current step to it."""
    console = stderr_console()
    if console is None:
        yield lambda step: None  # noqa: ARG005 - no terminal
        return
    status = console.status(escape(escape_control_characters(message)))
    with start_after_delay(status.start, status.stop):
        yield lambda step: status.update(escape(escape_control_characters(f"{message}: {step}")))


def print_note(message: str) -> None:
    """Print a note on the terminal; nothing is printed where standard error is not one."""
    console = stderr_console()
    if console is not None:
        console.print(escape_control_characters(message), markup=False, highlight=False, soft_wrap=True)


def picture_suffix(output: str, file_format: str | None = None) -> str:
    """Return the suffix of a picture: that of the file, or the format of a stream, PNG by default.

    Raise `FileFormatError` if it is not a picture format, or if file and format do not agree.
    """
    return f".{resolve_format(output, file_format, PICTURE_FORMATS, default='png')}"


def resolve_format(target: str, file_format: str | None, known: Sequence[str], *, default: str) -> str:
    """Return the format to write: that of the suffix, or the option --format for a stream.

    Raise `FileFormatError` if the format is not known, or if suffix and option do not agree.
    """
    if is_stream(target):
        if file_format is not None and file_format not in known:
            raise FileFormatError(f"--format is {sanitize(repr(file_format))}; known formats are {', '.join(known)}")
        return file_format or default
    suffix = Path(target).suffix.lower().removeprefix(".")
    if suffix not in known:
        raise FileFormatError(f"{format_path(target)} has an unknown suffix; known formats are {', '.join(known)}")
    if file_format is not None and suffix != file_format:
        raise FileFormatError(
            f"{format_path(target)} and --format {sanitize(file_format)} do not agree; --format is for standard output"
        )
    return suffix


def draw_headless(draw: Callable[[], Any]) -> "Figure":
    """Return the figure of the Axes that `draw` returns, without a display."""
    use_headless_backend()
    return draw_offscreen(draw)


def write_picture(picture: str, draw: Callable[[], Any]) -> None:
    """Write the figure of the Axes that `draw` returns, without a display."""
    with show_status("drawing"):
        figure = draw_headless(draw)
        write_output(picture, lambda path: save_figure(figure, path), suffix=picture_suffix(picture))


def use_headless_backend() -> None:
    """Select the backend of matplotlib that needs no display."""
    require_matplotlib()
    import matplotlib as mpl

    mpl.use("Agg")
