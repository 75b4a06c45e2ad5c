"""Hypothesis: a program that is asked to stop leaves nothing behind, in its folder and among temporary files."""

import io
import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from processes import PIPE_SIZE, contents, installed_program, launch

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="signals of POSIX")
N_STATES = 700


def system_on_a_pipe() -> bytes:
    """Large enough that constructing its network takes longer than the test waits."""
    stream = io.BytesIO()
    A = np.random.default_rng(0).standard_normal((N_STATES, N_STATES))
    np.savez(stream, A=A, B=np.ones((N_STATES, 1)), C=np.ones((1, N_STATES)))
    return stream.getvalue()


def begin(folder: Path, *, ignored: bool = False) -> "subprocess.Popen[bytes]":
    """A program that has read its input into a temporary file and is at work."""
    (folder / "temporary").mkdir()
    number_of_ignored = signal.SIG_IGN if ignored else signal.SIG_DFL
    process = launch(
        [*installed_program(), "construct", "-", "-o", "net.safetensors"],
        cwd=folder,
        environment={"TMPDIR": str(folder / "temporary")},
        preexec_fn=lambda: [signal.signal(number, number_of_ignored) for number in (signal.SIGTERM, signal.SIGHUP)],
    )
    content = system_on_a_pipe()
    assert len(content) > 2 * PIPE_SIZE  # so that it must be running to take it
    process.stdin.write(content)
    process.stdin.close()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.4)
    return process


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("SIGTERM", 1),
        pytest.param("SIGTERM", 3, marks=pytest.mark.slow),
        pytest.param("SIGHUP", 1, marks=pytest.mark.slow),
        ("SIGHUP", 3),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_it_clears_away_and_ends_by_the_signal(folder: Path, name: str, times: int) -> None:
    number = getattr(signal, name)
    before = contents(folder) | {"temporary": b""}
    process = begin(folder)
    for _ in range(times):
        os.kill(process.pid, number)
    process.wait(60.0)
    assert process.returncode == -number
    assert process.stderr.read() == f"ltinet: stopped by {name}\n".encode()
    assert process.stdout.read() == b""
    assert contents(folder) == before


@pytest.mark.slow
def test_a_signal_that_is_ignored_stays_ignored(folder: Path) -> None:
    """As `nohup` has it."""
    process = begin(folder, ignored=True)
    os.kill(process.pid, signal.SIGHUP)
    process.wait(120.0)
    assert process.returncode == 0
    assert (folder / "net.safetensors").exists()
    assert not list((folder / "temporary").iterdir())
