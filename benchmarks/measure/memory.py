"""The peak of a process that streams random samples through a system: a program of its own, since peaks never fall.

python -m benchmarks.measure.memory building 10000000
"""

import sys
from pathlib import Path

import numpy as np

import ltinet
from benchmarks.support.systems import DATA

CHUNK = 100_000
DT = 0.01


def stream(name: str, n_steps: int) -> None:
    """Run n_steps through a data set, a chunk at a time, keeping nothing."""
    net = ltinet.construct(ltinet.load_system(DATA / f"{name}.mat"))
    random = np.random.default_rng(0)
    chunks = (random.standard_normal((CHUNK, net.n_inputs)) for _ in range(n_steps // CHUNK))
    for y in net.simulate_stream(chunks, DT):
        assert y.shape == (CHUNK, net.n_outputs)


def peak() -> float:
    """Largest memory of this process so far in MB, from the kernel: getrusage would count that of the parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024.0 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    stream(sys.argv[1], int(sys.argv[2]))
    print(f"{peak():.1f}")
