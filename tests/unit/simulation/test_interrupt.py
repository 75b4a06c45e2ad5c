"""Hypothesis: Ctrl-C ends a long parallel run, with KeyboardInterrupt, and leaves no worker behind."""

import os
import select
import signal
import subprocess
import sys
import time

import pytest

psutil = pytest.importorskip("psutil", reason="psutil sees the worker processes; it comes with dask.distributed")

# Two tasks that take far longer than anyone waits; each says that it has begun. After the interrupt the program lives
# on, so that workers do not end merely because it does. At its end it waits for the thread that fed them: where the
# exit cuts that one short, between a semaphore and its entry in joblib's list of them, joblib warns of a leak.
PROGRAM = """
import os, pathlib, sys, threading, time
import numpy as np, ltinet

def method(neuron):
    pathlib.Path({folder!r}, str(os.getpid())).touch()
    time.sleep(6000.0)

net = ltinet.construct((-np.diag([1.0, 2.0]), np.ones((2, 1)), np.ones((1, 2))))
try:
    net.simulate([0.0, 1.0], [0.0, 1.0], engine="per_neuron", method=method, n_jobs=2)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.stdin.readline()
    for thread in threading.enumerate():
        if thread.name == "QueueFeederThread":
            thread.join()
"""
PATIENCE = 100.0  # seconds for what takes one on an idle machine, and 6000 if an interrupt does not end the tasks


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals of POSIX")
@pytest.mark.parametrize("to_all", [False, True], ids=["kill -INT", "Ctrl-C"])
def test_an_interrupt_ends_the_workers(to_all, tmp_path):
    """A terminal sends Ctrl-C to all processes of a group, `kill` to one."""
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", PROGRAM.format(folder=str(tmp_path))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # A shell's background job and what `nohup` starts ignore the signal, and so would all that they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            _wait_for(lambda: len(list(tmp_path.iterdir())) == 2)
            workers = _workers(process)
            assert len(workers) == 2
            (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
            assert _next_line(process.stdout) == b"interrupted\n"
            _wait_for(lambda: not _workers(process))
            assert not any(worker.is_running() for worker in workers)
            _, errors = process.communicate(b"\n", timeout=PATIENCE)
            assert process.returncode == 0
            assert errors == b"", errors.decode()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # with its workers, which would hold its streams open


def _workers(process):
    """Processes below one, less the tracker that joblib keeps for files in shared memory."""
    below = psutil.Process(process.pid).children(recursive=True)
    return [child for child in below if "resource_tracker" not in " ".join(child.cmdline())]


def _wait_for(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _next_line(stream):
    """Return the next message, or fail after a timeout."""
    ready, _, _ = select.select([stream], [], [], PATIENCE)
    assert ready, "nothing came"
    return stream.readline()
