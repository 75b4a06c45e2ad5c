"""Ten million samples identified: seconds, and memory beyond the record.

Each is a program of its own, since peaks never fall: python -m benchmarks.measure.long_identification 10000000 chosen
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
from scipy import signal

import ltinet
from benchmarks.measure.memory import peak
from benchmarks.support.settings import Settings
from benchmarks.support.table import Cell, Table
from benchmarks.support.timing import seconds

SAMPLES = (100_000, 1_000_000, 10_000_000)
ORDERS = ("given", "chosen")
_ORDER, _BLOCK_ROWS, _NOISE = 4, 15, 0.1


def measure(settings: Settings) -> list[Table]:
    """One row for each number of samples, the order given and chosen, where Linux shows the peak of a process."""
    chosen = SAMPLES[:1] if settings.quick else SAMPLES
    known = Path("/proc/self/status").exists()
    rows = [_row(count, order) for count in chosen for order in ORDERS] if known else []
    columns = {
        "samples": "samples",
        "order": "order",
        "found": "order found",
        "seconds": "seconds",
        "beyond": "beyond the record, MB",
    }
    note = (
        f"One input and one output of a system of order {_ORDER}, {100 * _NOISE:.0f} % of white noise, {_BLOCK_ROWS} "
        "block rows; everything else as it is by default, refinement and confidence included."
    )
    return [Table("long_identification", "Millions of samples identified", note, columns, rows)]


def _row(n_samples: int, order: str) -> dict[str, Cell]:
    command = [sys.executable, "-m", "benchmarks.measure.long_identification", str(n_samples), order]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own program
    found, taken, beyond = done.stdout.split()
    return {
        "samples": n_samples,
        "order": order,
        "found": int(found),
        "seconds": float(taken),
        "beyond": float(beyond),
    }


def run(n_samples: int, order: int | None) -> tuple[int, float, float]:
    """The order, seconds and MB of one call."""
    random = np.random.default_rng(0)
    u = random.standard_normal(n_samples)
    poles = np.array([0.9 * np.exp(0.4j), 0.9 * np.exp(-0.4j), 0.8 * np.exp(1.2j), 0.8 * np.exp(-1.2j)])
    y = signal.lfilter([0.0, 1.0, 0.5], np.poly(poles).real, u)
    y += _NOISE * np.std(y) * random.standard_normal(n_samples)
    before, found = peak(), []
    taken = seconds(lambda: found.append(ltinet.identify(u, y, dt=1.0, order=order, block_rows=_BLOCK_ROWS).order))
    return found[-1], taken, peak() - before


if __name__ == "__main__":
    print(*run(int(sys.argv[1]), None if sys.argv[2:] == ["chosen"] else _ORDER))
