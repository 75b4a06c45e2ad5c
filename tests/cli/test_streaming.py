"""Hypothesis: rows that come through a pipe are answered as they come, with the numbers of the library."""

import os
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import pytest
from processes import Result, Run, csv_text, installed_program, launch, pipe, run_in_process

import ltinet

PATIENCE = 100.0  # seconds for what takes one on an idle machine
COMMAND = ("simulate", "net.safetensors", "-i", "-")


def lines_for(t: np.ndarray, u: np.ndarray) -> list[bytes]:
    return csv_text(t, u).encode().splitlines(keepends=True)


KINDS = ["even", "uneven", "jumps", "even, then not"]


def grid(kind: str, n_times: int) -> np.ndarray:
    if kind == "even":
        return 0.1 * np.arange(n_times)
    t = np.cumsum(np.random.default_rng(1).uniform(0.01, 0.2, n_times))
    if kind == "jumps":
        t[1::7] = t[0::7][: len(t[1::7])]
    if kind == "even, then not":
        t = 0.1 * np.arange(n_times)
        t[n_times // 2 :] += 0.033
    return np.sort(t)


class Conversation(NamedTuple):
    """The lines that answered the pieces of a table while the pipe stayed open, and how the program ended."""

    answers: list[bytes]
    result: Result


Pieces = Iterable[tuple[bytes, int]]  # some lines, and how many lines of answer to wait for


def talk(writing: IO[bytes], reading: IO[bytes], pieces: Pieces) -> tuple[list[bytes], bytes]:
    """Write each piece when the one before is answered; give the answers, and what comes after the end."""
    answers = []
    with writing, reading:
        for piece, n_answers in pieces:
            writing.write(piece)
            writing.flush()
            answers += [reading.readline() for _ in range(n_answers)]
        writing.close()
        return answers, reading.read()


def converse_here(folder: Path, pieces: Pieces, *options: str, model: str = "net.safetensors") -> Conversation:
    """Talk to the program in this process, from another thread."""
    (source, writing), (reading, target) = pipe(), pipe()
    with ThreadPoolExecutor(1) as other:
        answered = other.submit(talk, writing, reading, pieces)
        with source, target:
            command = ("simulate", model, "-i", "-")
            code, _, err = run_in_process(*command, *options, cwd=folder, stdin=source, stdout=target)
        answers, rest = answered.result()
    return Conversation(answers, Result(code, rest, err))


def converse(folder: Path, pieces: Pieces, *options: str) -> Conversation:
    """Talk to a process."""
    process = launch([*installed_program(), *COMMAND, *options], cwd=folder)
    answers, rest = talk(process.stdin, process.stdout, pieces)
    with process.stderr:
        err = process.stderr.read()
    return Conversation(answers, Result(process.wait(PATIENCE), rest, err))


@pytest.mark.parametrize(
    ("kind", "hold", "talk_to"),
    [
        ("even", "linear", converse),
        *((kind, "linear", partial(converse_here, model="system.npz")) for kind in ("even", "uneven")),
        *((kind, hold, converse_here) for kind in KINDS for hold in ("linear", "zero")),
    ],
)
def test_answers_come_before_the_next_rows(
    kind: str, hold: str, talk_to: Callable[..., Conversation], folder: Path
) -> None:
    """One row, then a few, then many: what was written is answered while the pipe stays open."""
    net = ltinet.load(folder / "net.safetensors")
    n_times = 300
    t, u = grid(kind, n_times), np.random.default_rng(2).standard_normal((n_times, 2))
    rows = lines_for(t, u)
    x0 = "0.1,0,0.5,0,2,-1"
    ends = (0, 2, 4, 12, 200, n_times + 1)
    pieces = [(b"".join(rows[begin:end]), end - begin) for begin, end in pairwise(ends)]
    answers, result = talk_to(folder, pieces, "--hold", hold, "--x0", x0)
    assert result == (0, b"", b"")
    assert answers[0] == b"t,y1,y2,y3\n"
    read = np.array([[float(cell) for cell in line.split(b",")] for line in answers[1:]])
    expected = net.simulate(u, t, hold=hold, x0=[float(part) for part in x0.split(",")])
    np.testing.assert_array_equal(read[:, 0], t)
    # Both runs round in each step; the bound is that of one of them.
    rounding = n_times * np.finfo(float).eps * np.abs(expected.y).max()
    assert np.all(np.abs(read[:, 1:] - expected.y) <= expected.error_bound() + rounding)


def test_rows_that_were_right_come_before_the_complaint(run_here: Run, folder: Path) -> None:
    t, u = grid("even", 50), np.ones((50, 2))
    rows = lines_for(t, u)
    code, out, err = run_here(*COMMAND, stdin=b"".join(rows) + b"5.0,1,what\n6.0,1,1\n")
    assert code == 2
    assert err.startswith(b"ltinet: standard input, line 52, column 'u2': 'what' is not a real number")
    assert err.count(b"\n") == 1
    net = ltinet.load(folder / "net.safetensors")
    assert out.decode() == csv_text(t, net.simulate(u, t).y, "y")


def test_a_third_row_of_one_time_is_refused_wherever_the_pipe_was_cut(folder: Path) -> None:
    pieces = [(b"t,a,b\n0,1,1\n1,1,1\n", 3), (b"1,2,2\n", 1), (b"1,3,3\n", 0)]
    _, (code, out, err) = converse_here(folder, pieces)
    assert (code, out) == (2, b"")
    assert b"line 5: the time 1.0 is given a third time" in err


def test_no_file_appears_where_a_line_is_bad(run_here: Run, folder: Path) -> None:
    code, _, err = run_here(*COMMAND, "-o", "y.csv", stdin=b"t,a,b\n0,1,1\n1,1,1\nx,1,1\n")
    assert code == 2
    assert b"line 4" in err
    assert not (folder / "y.csv").exists()


@pytest.mark.slow
@pytest.mark.parametrize("source", ["pipe", pytest.param("file", marks=pytest.mark.slow)])
def test_a_reader_that_has_seen_enough_ends_the_run(folder: Path, source: str) -> None:
    """The input goes on for ever, or would take long; the run ends when its reader does."""
    head, row = b"t,a,b\n", b"%d,0.1,0.2\n"
    rows = [row % k for k in range(200_000)]
    (folder / "long.csv").write_bytes(head + b"".join(rows))
    command = [*installed_program(), "simulate", "net.safetensors", "-i", "-" if source == "pipe" else "long.csv"]
    process = launch(command, cwd=folder)
    if source == "pipe":
        threading.Thread(target=_feed, args=(process.stdin, head + b"".join(rows)), daemon=True).start()
    assert process.stdout.readline() == b"t,y1,y2,y3\n"
    process.stdout.close()
    assert process.wait(PATIENCE) == 141
    assert process.stderr.read() == b""


def _feed(pipe, content: bytes) -> None:
    """Write for ever."""
    try:
        while True:
            pipe.write(content)
    except (BrokenPipeError, ValueError):
        pass


# The most memory that the process itself had: what the system tells of a child counts its parent's before the fork.
TELLING_MEMORY = """
import re, sys
from ltinet.cli.app import main
try:
    main()
finally:
    sys.stderr.write(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell the most memory there was")
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["even", "uneven"])
def test_memory_does_not_grow_with_the_stream(kind: str, folder: Path) -> None:
    most = []
    for n_times in (100_000, 400_000):
        table = b"".join([b"t,a,b\n", *(b"%r,0.25,0.5\n" % float(time) for time in grid(kind, n_times))])
        command = [sys.executable, "-c", TELLING_MEMORY, *COMMAND]
        with Path(os.devnull).open("wb") as nowhere:
            process = launch(command, cwd=folder, stdout=nowhere)
            _, told = process.communicate(table, timeout=PATIENCE)
        assert process.returncode == 0
        most.append(1024 * int(told))
    # All rows as numbers, in and out, would take 300,000 × 6 × 8 bytes more at least, and their text as much again.
    assert most[1] - most[0] < 300_000 * 6 * 8


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hold", ["linear", "zero"])
def test_late_inputs_and_outputs_are_answered_as_they_arrive(kind: str, hold: str, folder: Path) -> None:
    """Delays, operating point and hold of the model; one row, then a few, then many."""
    t, u = grid(kind, 300), np.random.default_rng(2).standard_normal((300, 2))
    mean = float(np.ptp(t)) / len(t)
    net = ltinet.load(folder / "net.safetensors").with_signal_settings(
        input_delay=[2.3 * mean, 31.0 * mean],
        output_delay=[0.0, 0.4 * mean, 17.0 * mean],
        u0=[1.0, 0.0],
        y0=[300.0, 0.0, 1.0],
        hold=hold,
    )
    net.save(folder / "net.safetensors")
    rows = lines_for(t, u)
    ends = (0, 2, 4, 12, 13, 40, 200, 201, 301)
    pieces = [(b"".join(rows[begin:end]), end - begin) for begin, end in pairwise(ends)]
    answers, result = converse_here(folder, pieces)
    assert result == (0, b"", b"")
    read = np.array([[float(cell) for cell in line.split(b",")] for line in answers[1:]])
    expected = net.simulate(u, t)
    np.testing.assert_allclose(read[:, 1:], expected.y, rtol=0.0, atol=1e-11 * np.abs(expected.y).max())
