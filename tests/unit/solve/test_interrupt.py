"""Hypothesis: Ctrl-C ends a long parallel run at once, with KeyboardInterrupt, and leaves no worker behind."""

import os
import signal
import subprocess
import sys
import time

import pytest

psutil = pytest.importorskip("psutil", reason="psutil sees the worker processes; it comes with dask.distributed")

# Two tasks that take far longer than anyone waits. After the interrupt the program lives on, so that workers do not
# end merely because it does.
PROGRAM = """
import sys, time
import numpy as np, ltinet

def method(neuron):
    time.sleep(600.0)

net = ltinet.construct((-np.diag([1.0, 2.0]), np.ones((2, 1)), np.ones((1, 2))))
try:
    net.simulate([0.0, 1.0], [0.0, 1.0], engine="neurons", method=method, n_jobs=2)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.stdin.readline()
"""
PATIENCE = 60.0  # seconds for what takes one on an idle machine


def _workers(process):
    """Processes below one, less the tracker that joblib keeps for files in shared memory."""
    below = psutil.Process(process.pid).children(recursive=True)
    return [child for child in below if "resource_tracker" not in " ".join(child.cmdline())]


def _wait_for(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("to_all", [False, True], ids=["kill -INT", "Ctrl-C"])
def test_an_interrupt_ends_the_workers(to_all):
    """A terminal sends Ctrl-C to all processes of a group, `kill` to one."""
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            _wait_for(lambda: len(_workers(process)) == 2)
            workers = _workers(process)
            # They have been started; let them get to work, which sleeping in `method` shows by their standing still.
            _wait_for(lambda: all(_stands_still(worker) for worker in workers))
            begin = time.monotonic()
            (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
            assert process.stdout.readline() == b"interrupted\n"
            assert time.monotonic() - begin < 10.0
            _wait_for(lambda: not _workers(process))
            assert not any(worker.is_running() for worker in workers)
            _, errors = process.communicate(b"\n", timeout=PATIENCE)
            assert process.returncode == 0
            assert errors == b""
        finally:
            process.kill()


def _stands_still(worker):
    before = worker.cpu_times().user
    time.sleep(0.3)
    return worker.cpu_times().user == before > 0.3
