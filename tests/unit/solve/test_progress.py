"""Hypothesis: who waits long at a terminal sees a bar; who does not, or is a program, sees nothing."""

import os
import pty
import subprocess
import sys

import pytest

RUN = """
import sys, time
from ltinet.solve.progress import counted

def slowly(n, seconds):
    for item in range(n):
        time.sleep(seconds)
        yield item

print(list(counted(slowly({n}, {seconds}), total={n}, noun="layers")))
"""
BLINK, WAIT = {"n": 4, "seconds": 0.01}, {"n": 4, "seconds": 0.7}


def _run(script, *, terminal):
    """Run a program whose error stream is a terminal or a pipe; return its output, and what went to the errors."""
    if not terminal:
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, capture_output=True, check=True, timeout=60)  # noqa: S603 - our own program
        return done.stdout.decode(), done.stderr.decode()
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        seen = _all_of(ours)
        output = process.stdout.read().decode()
    os.close(ours)
    assert process.returncode == 0, seen
    return output, seen


def _all_of(descriptor):
    """What comes from a pseudo-terminal until its other side is closed, which Linux tells by an error."""
    parts = []
    try:
        while part := os.read(descriptor, 4096):
            parts.append(part)
    except OSError:
        pass
    return b"".join(parts).decode()


def test_a_long_run_shows_a_bar_on_a_terminal_and_clears_it():
    output, seen = _run(RUN.format(**WAIT), terminal=True)
    assert output == "[0, 1, 2, 3]\n"
    assert "layers" in seen
    assert "3/4" in seen
    assert "\x1b[2K" in seen[seen.rindex("layers") :]  # the line is erased


def test_one_long_item_shows_a_bar_too():
    _, seen = _run(RUN.format(n=1, seconds=2.8), terminal=True)
    assert "0/1" in seen


@pytest.mark.parametrize(("run", "terminal"), [(BLINK, True), (WAIT, False)], ids=["short", "no terminal"])
def test_nothing_is_shown_to_those_who_do_not_wait_or_look(run, terminal):
    assert _run(RUN.format(**run), terminal=terminal) == ("[0, 1, 2, 3]\n", "")


SIMULATE = """
import time
import numpy as np, ltinet
net = ltinet.construct((-np.diag([1.0, 2.0, 3.0]), np.ones((3, 1)), np.ones((1, 3))))

def method(neuron):
    time.sleep(0.9)  # once per neuron: a long run without the work
    return "DOP853"

print(net.simulate([0.0, 1.0], [0.0, 1.0], engine="neurons", method=method, n_jobs={n_jobs}).y.shape)
"""


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_simulation_counts_its_layers(n_jobs):
    output, seen = _run(SIMULATE.format(n_jobs=n_jobs), terminal=True)
    assert output == "(2, 1)\n"
    assert "/3" in seen
