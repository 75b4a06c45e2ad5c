"""Memory of a stream: ten million steps of a real system in chunks, one figure per number of steps.

Each count runs in a process of its own, since the peak of a process never falls. Run `python -m benchmarks.memory`.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import ltinet
from benchmarks.systems import DATA

COUNTS = (100_000, 1_000_000, 10_000_000)
CHUNK = 100_000
DT = 0.01


def stream(path: Path, n_steps: int) -> tuple[float, float]:
    """Seconds for n_steps of random input in chunks, and the peak of this process in MB."""
    net = ltinet.construct(ltinet.load_system(path))
    random = np.random.default_rng(0)
    chunks = (random.standard_normal((CHUNK, net.n_inputs)) for _ in range(n_steps // CHUNK))
    begin = time.perf_counter()
    for y in net.simulate_stream(chunks, DT):
        assert y.shape == (CHUNK, net.n_outputs)
    return time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def main() -> None:
    """Print a table of steps, seconds and peak memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, help="run this many steps in this process and print the figures")
    n_steps = parser.parse_args().steps
    path = DATA / "building.mat"
    if n_steps is not None:
        print("{:.2f} {:.1f}".format(*stream(path, n_steps)))
        return
    print(f"{'steps':>10} {'seconds':>8} {'peak MB':>8}   building, chunks of {CHUNK}")
    for count in COUNTS:
        command = [sys.executable, "-m", "benchmarks.memory", "--steps", str(count)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)  # noqa: S603 - this file
        seconds, peak = done.stdout.split()
        print(f"{count:>10} {seconds:>8} {peak:>8}")


if __name__ == "__main__":
    main()
