"""The same calls with one BLAS thread and with as many as users have who set nothing: threads are for where they pay.

A process of each kind does one call at a time, as lines on its input ask: python -m benchmarks.measure.default_threads
"""

import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np

import ltinet
from benchmarks.support.cases import Case, simulation_cases
from benchmarks.support.settings import Settings
from benchmarks.support.table import Cell, Table
from benchmarks.support.timing import Spread, seconds

KINDS = ("even times", "uneven times", "construction", "first result")
ROUNDS, QUICK_ROUNDS = 9, 2
CALLS = 3  # of which the fastest counts: a call of a millisecond is easily interrupted
SETTINGS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def measure(settings: Settings) -> list[Table]:
    """One row per case and kind of work."""
    cases = [case.name for case in simulation_cases(quick=settings.quick)]
    kinds = KINDS[:1] if settings.quick else KINDS
    one, default = _worker(threads="1"), _worker(threads=None)
    try:
        rows = [
            _row(name, kind, one, default, rounds=QUICK_ROUNDS if settings.quick else ROUNDS)
            for name in cases
            for kind in kinds
        ]
    finally:
        for worker in (one, default):
            worker.communicate()
    columns = {"case": "case", "kind": "what", "one": "one thread, ms", "default": "default, ms", "ratio": "ratio"}
    note = (
        "Milliseconds of a call with one BLAS thread, as everywhere else on this page, and with as many as BLAS takes "
        f"by itself; both processes take turns, {ROUNDS} rounds of the fastest of {CALLS} calls. Ratio: default / one "
        "thread, of the medians; smaller is faster."
    )
    return [Table("default_threads", "Threads by default", note, columns, rows)]


def _row(
    name: str, kind: str, one: subprocess.Popen[str], default: subprocess.Popen[str], *, rounds: int
) -> dict[str, Cell]:
    request = f"{name}\t{kind}\n"
    times = [(_asked(one, request), _asked(default, request)) for _ in range(rounds + 1)]
    alone, shared = (Spread.of(list(own)) for own in zip(*times[1:], strict=True))  # the first round prepares
    return {
        "case": name,
        "kind": kind,
        "one": alone.scaled(1e3).as_cell(),
        "default": shared.scaled(1e3).as_cell(),
        "ratio": shared.median / alone.median,
    }


def _worker(*, threads: str | None) -> subprocess.Popen[str]:
    inherited = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    limits = {} if threads is None else dict.fromkeys(SETTINGS, threads)
    command = [sys.executable, "-m", "benchmarks.measure.default_threads"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=inherited | limits)  # noqa: S603 - our own


def _asked(worker: subprocess.Popen[str], request: str) -> float:
    if worker.stdin is None or worker.stdout is None:
        raise RuntimeError("the process has no pipes")
    worker.stdin.write(request)
    worker.stdin.flush()
    return float(worker.stdout.readline())


def _call(case: Case, net: ltinet.DynamicNetwork, kind: str) -> Callable[[], object]:
    """What is measured."""
    if kind == "even times":
        return lambda: net.simulate(case.u, case.t).y
    if kind == "uneven times":
        t = np.cumsum(np.random.default_rng(1).uniform(0.5, 1.5, case.n_steps)) * case.step
        return lambda: net.simulate(case.u, t).y
    if kind == "construction":
        return lambda: ltinet.construct(case.system)
    return lambda: ltinet.construct(case.system).simulate(case.u, case.t).y


def answer() -> None:
    """Seconds of a call, for every line that asks for one."""
    cases = {case.name: case for case in simulation_cases(quick=False)}
    known: dict[str, ltinet.DynamicNetwork] = {}
    for line in sys.stdin:
        name, kind = line.rstrip("\n").split("\t")
        if name not in known:
            known = {name: cases[name].construct()}
        call = _call(cases[name], known[name], kind)
        print(min(seconds(call) for _ in range(CALLS)), flush=True)


if __name__ == "__main__":
    answer()
