"""How long `import ltinet` takes beyond what every user of NumPy and SciPy has imported already."""

import subprocess
import sys

import numpy as np

from benchmarks.support.settings import Settings
from benchmarks.support.table import Cell, Table
from benchmarks.support.timing import Spread

PROGRAM = """
import numpy, scipy.linalg, sys, time
before, begin = len(sys.modules), time.perf_counter()
import ltinet
print(time.perf_counter() - begin, len(sys.modules) - before)
"""


def measure(settings: Settings) -> list[Table]:
    """One row; every import in a new process."""
    runs = [_import() for _ in range(2 if settings.quick else 9)]
    row: dict[str, Cell] = {
        "what": "`import ltinet`",
        "seconds": Spread.of([run[0] for run in runs]).as_cell(),
        "modules": int(np.median([run[1] for run in runs])),
    }
    columns = {"what": "", "seconds": "seconds", "modules": "modules"}
    note = "Beyond `numpy` and `scipy.linalg`, in new processes, with files in the cache of the operating system."
    return [Table("import_time", "Import", note, columns, [row])]


def _import() -> tuple[float, int]:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)  # noqa: S603
    time, modules = done.stdout.split()
    return float(time), int(modules)
