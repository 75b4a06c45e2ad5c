"""Hypothesis: who waits long at a terminal sees a bar; who does not, or is a program, sees nothing.

No clock decides: where a bar must appear, the work goes on only when it was seen, and where none may, the time before
one appears is without end.
"""

import os
import select
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from ltinet._util import progress
from ltinet.cli.io import show_status

PATIENCE = 100.0  # seconds before a test gives up on what takes two


class Terminal:
    """Our side of a pseudo-terminal."""

    def __init__(self, descriptor):
        self._descriptor = descriptor

    def until(self, word):
        """What comes up to the word, or all of it for None."""
        seen = b""
        while word is None or word not in seen:
            assert select.select([self._descriptor], [], [], PATIENCE)[0], f"{word} did not come after {seen}"
            try:
                part = os.read(self._descriptor, 4096)
            except OSError:  # how Linux tells that the other side was closed
                part = b""
            if not part:
                assert word is None, f"{word} did not come before the end: {seen}"
                break
            seen += part
        return seen.decode()


class OwnTerminal(Terminal):
    """That of the error stream of this process."""

    def __init__(self, descriptor, stream):
        super().__init__(descriptor)
        self._stream = stream

    def end(self):
        """What it saw since it was looked at, when nothing is written to it any more."""
        self._stream.close()
        return self.until(None)


@contextmanager
def _pair():
    """Both sides of a pseudo-terminal, of which the caller closes the second."""
    ours, theirs = pytest.importorskip("pty", reason="no pseudo-terminals here").openpty()
    try:
        yield ours, theirs
    finally:
        os.close(ours)


@contextmanager
def _own_terminal(patience):
    """A pseudo-terminal as the error stream of this process; inside of a test, since pytest sets it before."""
    with _pair() as (ours, theirs), open(theirs, "w") as stream, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERM", "xterm")
        patch.setenv("COLUMNS", "80")
        patch.setattr(sys, "stderr", stream)
        patch.setattr(progress, "_DELAY_SECONDS", patience)
        yield OwnTerminal(ours, stream)


@contextmanager
def _at_a_terminal(script):
    """A program whose error stream is a pseudo-terminal, and our side of that."""
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "80"}
    with (
        _pair() as (ours, theirs),
        subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=theirs, env=environment
        ) as process,
    ):
        os.close(theirs)
        try:
            yield process, Terminal(ours)
        finally:
            process.kill()


def test_a_long_run_shows_a_bar_on_a_terminal_and_clears_it():
    def items(terminal):
        for item in range(3):
            assert "layers" in terminal.until(f"{item}/3".encode())
            yield item

    with _own_terminal(0.1) as terminal:
        assert list(progress.track_progress(items(terminal), total=3, noun="layers")) == [0, 1, 2]
        seen = terminal.end()
    assert "\x1b[2K" in seen[seen.rfind("layers") + 1 :]  # the line is erased, and not drawn again


def test_nothing_is_shown_to_those_who_do_not_wait():
    with _own_terminal(1e6) as terminal:
        assert list(progress.track_progress(range(4), total=4, noun="layers")) == [0, 1, 2, 3]
        assert terminal.end() == ""


def test_nothing_is_shown_to_those_who_do_not_look(monkeypatch, capfd):
    def items():
        for item in range(4):
            time.sleep(0.3)
            yield item

    monkeypatch.setattr(progress, "_DELAY_SECONDS", 0.0)
    assert list(progress.track_progress(items(), total=4, noun="layers")) == [0, 1, 2, 3]
    assert capfd.readouterr() == ("", "")


# A long run without the work: it ends when the test has seen what it wants to see.
SIMULATE = """
import pathlib, time
import numpy as np, ltinet

net = ltinet.construct((-np.diag([1.0, 2.0, 3.0]), np.ones((3, 1)), np.ones((1, 3))))

def method(neuron):
    while not pathlib.Path({sign!r}).exists():
        time.sleep(0.05)
    return "DOP853"

print(net.simulate([0.0, 1.0], [0.0, 1.0], engine="per_neuron", method=method, n_jobs={n_jobs}).y.shape)
"""


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_simulation_counts_its_layers(n_jobs, tmp_path):
    sign = tmp_path / "seen"
    with _at_a_terminal(SIMULATE.format(n_jobs=n_jobs, sign=str(sign))) as (process, terminal):
        terminal.until(b"/3")
        sign.touch()
        seen = terminal.until(None)
        output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, seen
    assert output == b"(2, 1)\n"


def test_work_that_takes_long_is_named_and_cleared():
    with _own_terminal(0.1) as terminal:
        with show_status("reading [b]model[/b].mat"):
            terminal.until(b"reading [b]model[/b].mat")  # a name from anywhere is text, no markup
        assert "\x1b[2K" in terminal.end()


def test_work_that_is_soon_done_is_not_named():
    with _own_terminal(1e6) as terminal:
        with show_status("reading [b]model[/b].mat"):
            pass
        assert "reading" not in terminal.end()


def test_progress_is_written_on_request_where_there_is_no_terminal(monkeypatch, capfd):
    monkeypatch.setattr(progress, "_DELAY_SECONDS", 0.01)
    with progress.show_progress("reducing 9 states", True) as report:
        report(0.25, "5 shifts")
        seen, start = "", time.monotonic()
        while "left" not in seen and time.monotonic() < start + PATIENCE:
            time.sleep(0.01)
            seen += capfd.readouterr().err
    first = seen.splitlines()[0]
    assert first.startswith("reducing 9 states: 25 %, 5 shifts, 0 s, about 0 s left")
    assert "\x1b" not in seen


def test_progress_is_silent_unless_it_is_requested(monkeypatch, capfd):
    monkeypatch.setattr(progress, "_DELAY_SECONDS", 0.0)
    for choice in (None, False):
        with progress.show_progress("work", choice) as report:
            report(0.5)
            time.sleep(0.05)
    assert capfd.readouterr() == ("", "")


def test_callbacks_get_the_time_left(monkeypatch):
    clock = iter([0.0, 3.0, 8.0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(clock))
    states = []
    with progress.show_progress("work", states.append) as report:
        report(None, "first")
        report(0.25)
    assert states[0].remaining is None
    assert states[1].remaining == 24.0
    assert str(states[1]) == "work: 25 %, 8 s, about 24 s left"
    later = progress.ProgressState("work", 0.25, 13.0, waited=5.0)
    assert later.remaining == 19.0  # the estimate runs down until the next report


def test_a_line_on_a_terminal_is_erased_at_the_end():
    with _own_terminal(0.01) as terminal:
        with progress.show_progress("reducing\x1b[31m 9 states") as report:
            report(0.5)
            terminal.until(b"reducing?[31m 9 states: 50 %")
        assert terminal.end().endswith("\x1b[2K")
