"""Memory: what a call of `simulate` takes beyond its input, and the peak of a process that streams."""

import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np

import ltinet
from benchmarks.measure.scaling import oscillators
from benchmarks.support.cases import DT
from benchmarks.support.settings import Settings
from benchmarks.support.systems import DATA
from benchmarks.support.table import Cell, Table

STATES = (50, 200, 800, 2000)
STEPS = (1000, 10_000, 100_000, 1_000_000)
STREAMS = (100_000, 1_000_000, 10_000_000)
MEGABYTE = 2.0**20


def measure(settings: Settings) -> list[Table]:
    """Against the number of states, of steps, and of steps streamed."""
    few = 2 if settings.quick else 4
    by_states = [_row("n", n, n_states=n, n_steps=10_000) for n in STATES[:few]]
    by_steps = [_row("T", T, n_states=48, n_steps=T) for T in STEPS[:few]]
    known = DATA.is_dir() and Path("/proc/self/status").exists()
    streams = [_stream(count) for count in STREAMS[:few]] if known else []
    columns = {"what": "what grows", "size": "", "call": "a call of `simulate`, MB", "bound": "outputs alone, MB"}
    columns |= {"states": "states at all times would be, MB", "peak": "peak of the process, MB"}
    note = (
        "Largest memory in use during a prepared call with one input and one output, beyond what is there before it "
        "(10⁴ steps where n grows, 48 states where T grows). Streams: the building data set in chunks of 10⁵ samples, "
        "each length in a process of its own."
    )
    return [Table("memory", "Memory", note, columns, [*by_states, *by_steps, *streams])]


def _row(what: str, size: int, *, n_states: int, n_steps: int) -> dict[str, Cell]:
    net = ltinet.construct(oscillators(n_states))
    t, u = DT * np.arange(n_steps), np.random.default_rng(0).standard_normal((n_steps, 1))
    net.simulate(u, t)
    tracemalloc.start()
    try:
        net.simulate(u, t)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    bound, states = 8 * n_steps, 8 * n_steps * n_states
    return {
        "what": what,
        "size": size,
        "call": peak / MEGABYTE,
        "bound": bound / MEGABYTE,
        "states": states / MEGABYTE,
    }


def _stream(n_steps: int) -> dict[str, Cell]:
    command = [sys.executable, "-m", "benchmarks.measure.memory", "building", str(n_steps)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own program
    return {
        "what": "T, streamed",
        "size": n_steps,
        "bound": 8 * n_steps / MEGABYTE,
        "states": 8 * n_steps * 48 / MEGABYTE,
        "peak": float(done.stdout),
    }
