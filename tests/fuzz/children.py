"""Loads files in forked children, which may die, hang or run out of memory without taking anything with them."""

import os
import resource
import select
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fuzz.formats import Format
from ltinet.errors import LtinetError

LOADED, REFUSED, RAW, WRONG, DEATH, HANG = "loaded", "refused", "raw", "wrong", "death", "hang"
BAD = (DEATH, HANG, RAW, WRONG)
SECONDS = 10.0
MEMORY = 6 << 30
"""Of address space, of which Python with its libraries takes one: what max_bytes allows by default fits, twice."""


@dataclass
class Tally:
    """How many files ended in which way, and the first of each bad way."""

    counts: Counter = field(default_factory=Counter)
    cases: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def add(self, index: int, outcome: str, remark: str) -> None:
        """Count one file."""
        self.counts[outcome] += 1
        if outcome in BAD:
            self.cases.setdefault(outcome, []).append((index, remark))


def mutated(form: Format, seeds: list, *, seed: int, index: int) -> object:
    """The file of this number: always the same one."""
    rng = np.random.default_rng([seed, *form.name.encode(), index])
    return form.change(seeds[index % len(seeds)], rng)


def run(form: Format, *, count: int, seed: int) -> Tally:
    """Load `count` changed files; children are replaced when they end before all is done."""
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="ltinet-fuzz-") as folder:
        seeds = form.seeds(Path(folder))
        index = 0
        while index < count:
            for done, outcome, remark in _in_a_child(form, seeds, range(index, count), Path(folder), seed):
                tally.add(done, outcome, remark)
                index = done + 1
    return tally


def _in_a_child(form: Format, seeds: list, indices: range, folder: Path, seed: int) -> Iterator[tuple[int, str, str]]:
    """Number, outcome and remark of one file after the other, until all are done or the child is not there any more."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(form, seeds, indices, folder, seed, writing)
    os.close(writing)
    left, is_late = list(indices), False
    for line in _lines(reading):
        if line is None:
            is_late = True
            os.kill(child, signal.SIGKILL)
            break
        outcome, remark = line.split(" ", 1)
        yield left.pop(0), outcome, remark
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if left:
        how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit code {os.WEXITSTATUS(status)}"
        yield (left[0], HANG, f"over {SECONDS:g} s") if is_late else (left[0], DEATH, how)


def _lines(reading: int) -> Iterator[str | None]:
    """What the child reports, line by line; None when it takes too long, and the end when it is gone."""
    pending = b""
    while True:
        if not select.select([reading], [], [], SECONDS)[0]:
            yield None
            return
        more = os.read(reading, 1 << 16)
        if not more:
            return
        *whole, pending = (pending + more).split(b"\n")
        yield from (line.decode() for line in whole)


def _work(form: Format, seeds: list, indices: range, folder: Path, seed: int, writing: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    try:
        for index in indices:
            file = mutated(form, seeds, seed=seed, index=index)
            outcome, remark = outcome_of(form, file, folder)
            os.write(writing, f"{outcome} {' '.join(remark.split())[:300]}\n".encode("utf-8", "replace"))
    except BaseException:  # a fault of this program, not of the one under test
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(70)
    os._exit(0)


def outcome_of(form: Format, file: object, folder: Path) -> tuple[str, str]:
    path = form.store(file, folder)
    try:
        found = form.load(path)
    except LtinetError as error:
        return (REFUSED, "") if str(error).isprintable() else (RAW, f"control characters: {error!r}")
    except BaseException as error:
        return RAW, f"{type(error).__name__}: {error}"
    return (LOADED, "") if form.agrees(found, file, path) else (WRONG, repr(found))
