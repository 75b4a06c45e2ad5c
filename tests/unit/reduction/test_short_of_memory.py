"""Hypothesis: a reduction that does not fit into memory ends in one clear error, whatever failed first."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]

CHILD = """
import resource, sys
import numpy as np
import scipy.sparse.linalg
import ltinet
from mechanical_models import membrane
calls = {
    "symmetric": lambda: ltinet.reduce(ltinet.named_system("heat_plate", n=90_000), tolerance=1e-4),
    "dissipative": lambda: ltinet.reduce(
        ltinet.named_system("convection_diffusion_plate", n=90_000, V=10.0), tolerance=1e-4),
    "mechanical": lambda: ltinet.reduce(membrane(300, alpha=1.0, beta=1e-3), order=10),
}
ltinet.reduce(ltinet.named_system("heat_plate", n=400), order=4)  # all that is imported when it is needed
size = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize")) * 1024
limit = size + int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    calls[sys.argv[1]]()
except ltinet.InvalidSystemError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are Linux's")
@pytest.mark.parametrize(
    ("kind", "room"), [("symmetric", 60_000_000), ("dissipative", 120_000_000), ("mechanical", 90_000_000)]
)
def test_one_clear_error(kind: str, room: int) -> None:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", CHILD, kind, str(room)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])},
    )
    assert done.returncode == 0, done.stderr
    told = [
        line for line in done.stdout.splitlines() if line != "Not enough memory to perform factorization."
    ]  # SuperLU
    assert len(told) == 1
    assert "memory" in told[0]
