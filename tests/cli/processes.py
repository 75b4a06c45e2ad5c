"""The program `ltinet`, in this process and as a process of its own, its result, and the tables it reads and writes."""

import contextlib
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple
from unittest.mock import patch

import numpy as np

from ltinet.cli.app import main

RNG = np.random.default_rng(5)
TIMES = np.cumsum(RNG.uniform(0.05, 0.3, 12))
INPUTS = RNG.standard_normal((12, 2))
PIPE_SIZE = 1 << 16


class Result(NamedTuple):
    """Exit code, standard output and standard error of one run of the program."""

    code: int
    out: bytes
    err: bytes


Run = Callable[..., Result]
Launch = Callable[..., "subprocess.Popen[bytes]"]


def installed_program() -> list[str]:
    """Give the script that was installed beside this Python, or the module where only the package is on the path."""
    script = shutil.which("ltinet", path=str(Path(sys.executable).parent))
    return [script] if script else [sys.executable, "-m", "ltinet"]


def launch(
    command: list[str], *, environment: dict[str, str] | None = None, **options: Any
) -> "subprocess.Popen[bytes]":
    """Start a process; its streams are pipes of 64 kB unless the options say otherwise."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    own = {**os.environ, "OPENBLAS_NUM_THREADS": "1", **(environment or {})}
    return subprocess.Popen(command, **pipes | options, env=own, pipesize=PIPE_SIZE)  # noqa: S603


def run_in_process(
    *arguments: str,
    cwd: Path,
    stdin: bytes | IO[bytes] = b"",
    stdout: IO[bytes] | None = None,
    stderr: IO[bytes] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Result:
    """Run the program in this process, where it is already imported, and put back all that it changes.

    Its streams are pipes, as those of `launch`. What it writes to a file of the caller is not in the result.
    """
    with ThreadPoolExecutor(3) as helpers:
        with ExitStack() as stack:
            if isinstance(stdin, bytes):
                source, sink = pipe()
                stack.enter_context(source)
                helpers.submit(feed, sink, stdin)
            else:
                source = stdin
            texts, ends = [], []
            for _ in range(2):
                reading, writing = pipe()
                ends.append(stack.enter_context(writing))
                texts.append(helpers.submit(read_all, reading))
            with (
                contextlib.chdir(cwd),
                patch.dict(os.environ, environment or {}),  # also undoes what the program itself sets
                patch.object(sys, "argv", ["ltinet", *arguments]),
                warnings.catch_warnings(),
                standard_streams(source, stdout or ends[0], stderr or ends[1]),
            ):
                code = exit_code(main)
        return Result(code, *(text.result() for text in texts))


def exit_code(program: Callable[[], None]) -> int:
    """Exit code of a program that ends with `sys.exit`; any other exception is a bug and is raised."""
    try:
        program()
    except SystemExit as ending:
        return int(ending.code or 0)
    raise AssertionError("the program returned without an exit code")


@contextmanager
def standard_streams(*files: IO[bytes]) -> Iterator[None]:
    """Connect descriptors 0, 1 and 2 to three files, with new streams of Python over them, as a new process has them.

    C code and child processes use the descriptors, and `/dev/stdin` is one of them; streams alone would not do.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    saved = [os.dup(descriptor) for descriptor in range(3)]
    try:
        for descriptor, file in enumerate(files):
            os.dup2(file.fileno(), descriptor)
        with (
            open(0, encoding="utf-8", closefd=False) as stdin,
            open(1, "w", encoding="utf-8", closefd=False) as stdout,
            open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False) as stderr,
            patch.multiple(sys, stdin=stdin, stdout=stdout, stderr=stderr),
        ):
            yield
    finally:
        for descriptor, before in enumerate(saved):
            os.dup2(before, descriptor)
            os.close(before)


def pipe() -> tuple[IO[bytes], IO[bytes]]:
    """Open a pipe: the end to read from and the end to write to."""
    reading, writing = os.pipe()
    return open(reading, "rb"), open(writing, "wb", buffering=0)


def feed(sink: IO[bytes], content: bytes) -> None:
    """Write the content to a pipe and close it; stop when its reader is gone."""
    rest = memoryview(content)
    with sink, suppress(BrokenPipeError):
        while rest:
            rest = rest[sink.write(rest) :]


def read_all(source: IO[bytes]) -> bytes:
    """Read a pipe to its end and close it."""
    with source:
        return source.read()


def csv_text(t: np.ndarray, values: np.ndarray, name: str = "u") -> str:
    """Write a table independently of the program: repr() of every number."""
    header = ",".join(["t", *(f"{name}{k + 1}" for k in range(values.shape[1]))])
    lines = [",".join(repr(float(number)) for number in (time, *row)) for time, row in zip(t, values, strict=True)]
    return "\n".join([header, *lines, ""])


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below the folder, hidden ones too; folders count with empty content."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}
