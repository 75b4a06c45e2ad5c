"""Ten million uneven times: seconds, and memory beyond input and result.

Each length is a program of its own, since peaks never fall: python -m benchmarks.measure.long_uneven building 10000000
"""

import subprocess
import sys
from pathlib import Path

import numpy as np

import ltinet
from benchmarks.measure.memory import peak
from benchmarks.support.cases import DT
from benchmarks.support.settings import Settings
from benchmarks.support.systems import DATA
from benchmarks.support.table import Cell, Table
from benchmarks.support.timing import seconds
from ltinet.signals.sampled import Hold

TIMES = (100_000, 1_000_000, 10_000_000)
HOLDS = ("linear", "zero")
MEGABYTE = 2.0**20


def measure(settings: Settings) -> list[Table]:
    """One row for each number of times and hold, where Linux shows the peak of a process."""
    known = DATA.is_dir() and Path("/proc/self/status").exists()
    chosen = TIMES[:1] if settings.quick else TIMES
    rows = [_row(count, hold) for count in chosen for hold in HOLDS] if known else []
    columns = {"times": "times", "hold": "hold", "seconds": "seconds", "beyond": "beyond input and result, MB"}
    note = (
        "The building data set (n = 48) at times whose distances are drawn from U[0.5, 1.5]·0.01, normal input; one "
        "call, preparation included."
    )
    return [Table("long_uneven", "Millions of uneven times", note, columns, rows)]


def _row(n_times: int, hold: str) -> dict[str, Cell]:
    command = [sys.executable, "-m", "benchmarks.measure.long_uneven", "building", str(n_times), hold]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own program
    taken, beyond = map(float, done.stdout.split())
    return {"times": n_times, "hold": hold, "seconds": taken, "beyond": beyond}


def run(name: str, n_times: int, hold: Hold) -> tuple[float, float]:
    """Seconds and MB of one call."""
    net = ltinet.construct(ltinet.load_system(DATA / f"{name}.mat"))
    random = np.random.default_rng(0)
    t = random.uniform(0.5 * DT, 1.5 * DT, n_times)
    np.cumsum(t, out=t)
    u = random.standard_normal((n_times, net.n_inputs))
    before = peak()
    taken = seconds(lambda: net.simulate(u, t, hold=hold).y)
    return taken, peak() - before - 8.0 * n_times * net.n_outputs / MEGABYTE


if __name__ == "__main__":
    print(*run(sys.argv[1], int(sys.argv[2]), "zero" if sys.argv[3:] == ["zero"] else "linear"))
