"""Hypothesis: no path falls back to a slow loop.

What is counted are instructions of the Python interpreter, in all libraries: the same on every machine, busy or not.
Work inside NumPy is invisible to that count; `make bench` compares it with bare matrix products, where clocks belong.
"""

import subprocess
import sys

import numpy as np
import pytest

import ltinet
from ltinet.simulation import grids, recurrence

LONG = 100_000
# Measured 1 500 to 14 000 where everything is array operations; the shortest loop over 10⁵ samples has a million.
PER_CALL = 100_000
# One product a block of samples: 11 instructions, here for blocks of two samples, and for each query between samples.
PER_SAMPLE = 20
# Libraries that only some calls need, and that would make every import slow.
NOT_WITH_IMPORT = ("control", "dask", "h5py", "joblib", "matplotlib", "pandas", "rich", "sklearn", "typer")
NOT_WITH_IMPORT_EITHER = (
    "scipy.fft",
    "scipy.integrate",
    "scipy.optimize",
    "scipy.signal",
    "scipy.special",
    "scipy.stats",
)
# Rooms of our own that are entered by one of their names, or by a call.
WINGS = (
    "identification",
    "reduction",
    "tables",
    "export.c",
    "export.fmu.export",
    "export.onnx",
    "explorer.files",
    "nn",
)


@pytest.mark.parametrize("hold", ["linear", "zero"])
@pytest.mark.parametrize(
    ("channels", "coupled"), [(1, False), (60, False), (1, True)], ids=["one input", "many inputs", "one coupled layer"]
)
def test_a_long_signal_takes_few_instructions(channels, coupled, hold):
    net, t, u = long_work(channels, coupled=coupled)
    limit = PER_CALL if channels == 1 else PER_SAMPLE * len(t)
    assert instructions(lambda: net.simulate(u, t, hold=hold).y) < limit


def test_states_and_dense_output_take_few_instructions():
    net, t, u = long_work(1)
    assert instructions(lambda: net.simulate(u[:20_000], t[:20_000]).states) < PER_CALL
    assert instructions(lambda: net.simulate(u[:20_000], t[:20_000])(t[:19_999] + 0.003)) < PER_SAMPLE * 20_000


def test_a_stream_takes_few_instructions():
    net, _, u = long_work(1)
    assert instructions(lambda: list(net.simulate_stream([u], 0.01))) < PER_CALL


def test_a_batch_takes_no_more_instructions_than_one_input():
    net, t, u = long_work(1)
    one, many = u[:1000], u.reshape(100, 1000, 1)
    net.simulate(one, t[:1000])
    alone = instructions(lambda: net.simulate(one, t[:1000]).y)
    assert instructions(lambda: net.simulate(many, t[:1000]).y) < 2 * alone


def test_uneven_times_take_few_instructions():
    """Measured 12 000."""
    net, t, u = long_work(1)
    n_times = LONG // 5
    uneven = t[:n_times] + np.random.default_rng(1).uniform(0.0, 0.004, n_times)
    net.simulate(u[:n_times], uneven)
    assert instructions(lambda: net.simulate(u[:n_times], uneven).y) < PER_CALL


def test_uneven_times_of_a_large_coupled_layer_take_few_instructions_a_sample():
    """Its states go one after the other, since products of its matrices would cost more; measured 23."""
    net, t, u = long_work(1, coupled=True)
    n_times = LONG // 20
    uneven = t[:n_times] + np.random.default_rng(1).uniform(0.0, 0.004, n_times)
    net.simulate(u[:n_times], uneven)
    assert instructions(lambda: net.simulate(u[:n_times], uneven).y) < 40 * n_times


def test_a_streaming_step_takes_few_instructions():
    """Measured 103; 822 with NumPy 1, whose `errstate` is written in Python. A loop over states has thousands."""
    net, _, _ = long_work(1)
    stepper = net.stepper(0.01)
    stepper.step([1.0])
    few = 500 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 1200
    assert instructions(lambda: stepper.step([1.0])) < few


def test_construction_does_not_loop_over_pairs_of_states():
    """Measured 30 000 for n = 200, which has 40 000 pairs of states; a loop over them has ten times as many."""
    A = np.random.default_rng(0).standard_normal((200, 200))
    assert instructions(lambda: ltinet.construct((A, np.eye(200)[:, :1], np.eye(200)[:1]))) < 200_000


def test_a_loop_over_samples_is_found(monkeypatch):
    """The guard sees what it guards against: blocks of one step, walked one by one."""
    walk_one_by_one(monkeypatch)
    net, t, u = long_work(1)
    fifth = LONG // 5  # enough to be found, and five times faster to count
    assert instructions(lambda: net.simulate(u[:fifth], t[:fifth]).y) > PER_CALL


def test_import_is_light():
    program = "import sys, numpy, scipy.linalg; import ltinet; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    modules = done.stdout.split()
    assert not {name.split(".")[0] for name in modules} & set(NOT_WITH_IMPORT)
    assert not set(modules) & {*NOT_WITH_IMPORT_EITHER, *(f"ltinet.{room}" for room in WINGS)}


def walk_one_by_one(monkeypatch):
    """Blocks of one step, without runs and without convolution."""
    monkeypatch.setattr(grids, "_MAX_WIDTH", 1)
    monkeypatch.setattr(grids, "_MAX_MARKOV_NUMBERS", 0)
    monkeypatch.setattr(recurrence, "run_length", lambda *_, **__: 1)
    monkeypatch.setattr(recurrence, "_MAX_REDUCTION_STATES", 0)


def long_work(channels, *, coupled=False):
    """A network of 40 slow states, times and an input; prepared by one call."""
    random = np.random.default_rng(0)
    n = 40
    A = random.standard_normal((n, n)) / np.sqrt(n)
    A -= (np.max(np.linalg.eigvals(A).real) + 0.1) * np.eye(n)
    B, C = random.standard_normal((n, channels)), random.standard_normal((channels, n))
    net = ltinet.construct((A, B, C), n_layers=1 if coupled else None)
    n_times = LONG if channels == 1 else LONG // 10
    t, u = 0.01 * np.arange(n_times), random.standard_normal((n_times, channels))
    net.simulate(u, t)
    return net, t, u


def instructions(call):
    """Count the instructions of the interpreter that a call executes, in all libraries.

    Those of a second call: the first one imports what is imported on first use, and Python 3.12 reports instructions
    only where `sys.settrace` is called after a frame has asked for them.
    """
    count = 0

    def trace(frame, event, _):
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    previous = sys.gettrace()
    for _ in range(2):
        count = 0
        sys.settrace(trace)
        try:
            call()
        finally:
            sys.settrace(previous)
    return count
