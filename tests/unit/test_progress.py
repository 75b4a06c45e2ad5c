"""Hypothesis: who waits long at a terminal sees a bar; who does not, or is a program, sees nothing.

No clock decides: where a bar must appear, the work goes on only when it was seen, and where none may, the time before
one appears is without end.
"""

import os
import select
import subprocess
import sys
from contextlib import contextmanager

import pytest

PATIENCE = 100.0  # seconds before a test gives up on what takes two
COUNT = """
import sys
from ltinet import progress

progress._PATIENCE = {patience}

def items():
    for item in range({n}):
        {wait}
        yield item

print(list(progress.counted(items(), total={n}, noun="layers")))
"""
FOR_A_LINE = "sys.stdin.readline()"


@contextmanager
def _at_a_terminal(script):
    """A program whose error stream is a pseudo-terminal, and our side of that."""
    pty = pytest.importorskip("pty", reason="no pseudo-terminals here")
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "80"}
    pipe = subprocess.PIPE
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", script], stdin=pipe, stdout=pipe, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        try:
            yield process, ours
        finally:
            process.kill()
            os.close(ours)


def _until(descriptor, word):
    """What comes from a pseudo-terminal up to the word, or all of it for None."""
    seen = b""
    while word is None or word not in seen:
        assert select.select([descriptor], [], [], PATIENCE)[0], f"{word} did not come after {seen}"
        try:
            part = os.read(descriptor, 4096)
        except OSError:  # how Linux tells that the other side was closed
            part = b""
        if not part:
            assert word is None, f"{word} did not come before the end: {seen}"
            break
        seen += part
    return seen.decode()


def _go_on(process):
    process.stdin.write(b"\n")
    process.stdin.flush()


def _end_of(process, ours):
    """What the program printed, and what its terminal saw last."""
    seen = _until(ours, None)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, seen
    return output.decode(), seen


def test_a_long_run_shows_a_bar_on_a_terminal_and_clears_it():
    with _at_a_terminal(COUNT.format(n=3, patience=0.1, wait=FOR_A_LINE)) as (process, ours):
        for count in (b"0/3", b"1/3", b"2/3"):
            assert "layers" in _until(ours, count)
            _go_on(process)
        output, seen = _end_of(process, ours)
    assert output == "[0, 1, 2]\n"
    assert "\x1b[2K" in seen[seen.rfind("layers") + 1 :]  # the line is erased, and not drawn again


def test_nothing_is_shown_to_those_who_do_not_wait():
    with _at_a_terminal(COUNT.format(n=4, patience=1e6, wait="pass")) as (process, ours):
        assert _end_of(process, ours) == ("[0, 1, 2, 3]\n", "")


def test_nothing_is_shown_to_those_who_do_not_look():
    command = [sys.executable, "-c", COUNT.format(n=4, patience=0.0, wait="__import__('time').sleep(0.3)")]
    done = subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE)  # noqa: S603 - our own program
    assert (done.stdout, done.stderr) == (b"[0, 1, 2, 3]\n", b"")


# A long run without the work: it ends when the test has seen what it wants to see.
SIMULATE = """
import pathlib, time
import numpy as np, ltinet

net = ltinet.construct((-np.diag([1.0, 2.0, 3.0]), np.ones((3, 1)), np.ones((1, 3))))

def method(neuron):
    while not pathlib.Path({sign!r}).exists():
        time.sleep(0.05)
    return "DOP853"

print(net.simulate([0.0, 1.0], [0.0, 1.0], engine="neurons", method=method, n_jobs={n_jobs}).y.shape)
"""


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_simulation_counts_its_layers(n_jobs, tmp_path):
    sign = tmp_path / "seen"
    with _at_a_terminal(SIMULATE.format(n_jobs=n_jobs, sign=str(sign))) as (process, ours):
        _until(ours, b"/3")
        sign.touch()
        output, _ = _end_of(process, ours)
    assert output == "(2, 1)\n"


WORK = """
import sys
from ltinet import progress
from ltinet.cli.messages import working

progress._PATIENCE = {patience}
with working("reading [b]model[/b].mat"):
    {wait}
print("done")
"""


def test_work_that_takes_long_is_named_and_cleared():
    with _at_a_terminal(WORK.format(patience=0.1, wait=FOR_A_LINE)) as (process, ours):
        _until(ours, b"reading [b]model[/b].mat")  # a name from anywhere is text, no markup
        _go_on(process)
        output, seen = _end_of(process, ours)
    assert output == "done\n"
    assert "\x1b[2K" in seen


def test_work_that_is_soon_done_is_not_named():
    with _at_a_terminal(WORK.format(patience=1e6, wait="pass")) as (process, ours):
        output, seen = _end_of(process, ours)
    assert output == "done\n"
    assert "reading" not in seen
