"""The installed program as a process, its result, and the tables it reads and writes."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

RNG = np.random.default_rng(5)
TIMES = np.cumsum(RNG.uniform(0.05, 0.3, 12))
INPUTS = RNG.standard_normal((12, 2))
PIPE_SIZE = 1 << 16


class Result(NamedTuple):
    """How a process ended and what it said."""

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
    return subprocess.Popen(  # noqa: S603 - the commands are the tests' own
        command, **pipes | options, env=own, pipesize=PIPE_SIZE
    )


def csv_text(t: np.ndarray, values: np.ndarray, name: str = "u") -> str:
    """Write a table independently of the program: repr() of every number."""
    header = ",".join(["t", *(f"{name}{k + 1}" for k in range(values.shape[1]))])
    lines = [",".join(repr(float(number)) for number in (time, *row)) for time, row in zip(t, values, strict=True)]
    return "\n".join([header, *lines, ""])


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below the folder, hidden ones too; folders count with empty content."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}
