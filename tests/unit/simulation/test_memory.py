"""Hypothesis: outputs take the memory of inputs and outputs; a stream takes that of one chunk."""

import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import ltinet

CHUNK = 100_000
STREAM = """
import sys
import numpy as np, ltinet

def peak():
    # getrusage would count what the process that started this one had before.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

path, steps = sys.argv[1], [int(count) for count in sys.argv[2:]]
net = ltinet.construct(ltinet.load_system(path))
random = np.random.default_rng(0)
for count in steps:
    chunks = (random.standard_normal(({chunk}, net.n_inputs)) for _ in range(count // {chunk}))
    total = sum(len(y) for y in net.simulate_stream(chunks, 0.01))
    assert total == count
    print(peak())
"""


@pytest.mark.slow
def test_memory_of_a_stream_is_independent_of_its_length(data_dir):
    """Peak memory of a process after ten million steps and after a hundred thousand, for a real system."""
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of a process is read where Linux shows it")
    command = [sys.executable, "-c", STREAM.format(chunk=CHUNK), str(data_dir / "building.mat"), "100000", "10000000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own program
    short, long = (int(kilobytes) * 1024 for kilobytes in done.stdout.split())
    assert long < 300e6
    assert long - short < 4e6  # the outputs alone are 79 MB


def test_sample_by_sample_nothing_grows():
    net = _slow_network(48)
    stepper = net.stepper(0.1)
    random = np.random.default_rng(0)
    for u in random.standard_normal(100):
        stepper.step(u)
    tracemalloc.start()
    try:
        for u in random.standard_normal(1000).tolist():
            stepper.step(u)
        before, _ = tracemalloc.get_traced_memory()
        for u in random.standard_normal(5000).tolist():
            stepper.step(u)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # One number kept for each step would be 40 kB; a list of 5000 numbers replaced one of 1000, and was released.
    assert after - before < 10_000


@pytest.mark.parametrize("hold", ["linear", "zero"])
@pytest.mark.parametrize("even", [True, False])
def test_outputs_do_not_store_all_states(hold, even):
    """One input, one output, 200 states: 12,000 more times add far less memory than their states."""
    n, fewer, more = 200, 4_000, 16_000
    net = _slow_network(n)
    peaks = []
    for n_times in (fewer, more):
        t = 0.01 * np.arange(n_times)
        if not even:
            t[1:-1] += np.random.default_rng(1).uniform(-0.004, 0.004, n_times - 2)
        u = np.sin(t)
        tracemalloc.start()
        try:
            y = net.simulate(u, t, hold=hold).y
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert y.shape == (n_times, 1)
    assert peaks[1] - peaks[0] < 0.25 * 8 * (more - fewer) * n


# What is worked on at a time has a fixed size, beside which these results are large.
MANY = 400_000
AT_MOST = 3.0  # times the result, which is part of it


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("face", ["states", "sorted", "any order"])
@pytest.mark.parametrize("even", [True, False], ids=["even", "uneven"])
def test_states_and_dense_output_have_small_overhead(even, face):
    n, n_times = (20, MANY // 2) if face == "states" else (4, 2_000)
    random = np.random.default_rng(0)
    t = 0.01 * np.arange(n_times) + (0.0 if even else random.uniform(0.0, 0.004, n_times))
    solution = _slow_network(n).simulate(np.sin(t), t)
    queries = random.uniform(t[0], t[-1], 5 * MANY)
    if face == "sorted":
        queries.sort()
    tracemalloc.start()
    try:
        result = solution.states if face == "states" else solution(queries)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < AT_MOST * result.nbytes, peak / result.nbytes


def _slow_network(n):
    """A network of n first-order neurons, one input and one output."""
    return ltinet.construct((-np.diag(np.linspace(0.1, 3.0, n)), np.ones((n, 1)), np.ones((1, n))))
