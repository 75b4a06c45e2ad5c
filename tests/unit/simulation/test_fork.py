"""Hypothesis: a child forked while threads construct and simulate can do both.

No lock of ours may be held across a fork: nobody would ever release it in the child. A child that waits for one is
ended by its alarm, which shows in its exit status.
"""

import os
import signal
import subprocess
import sys
import threading

import pytest

from ltinet._util.cache import cached_property

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
CHILDREN, SECONDS = 12, 20
PROGRAM = """
import os, signal, sys, threading, time
import numpy as np
import ltinet

A = np.random.default_rng(0).standard_normal((12, 12)) - 5.0 * np.eye(12)
t = np.cumsum(np.random.default_rng(1).uniform(0.005, 0.015, 1000))

def work():
    net = ltinet.construct((A, np.ones((12, 1)), np.ones((1, 12))))
    net.simulate(np.sin(t), t).states
    net.simulate(np.sin(t), 0.01 * np.arange(len(t))).error_bound()

def for_ever():
    while True:
        work()

for _ in range(2):
    threading.Thread(target=for_ever, daemon=True).start()
work()
stuck = 0
for _ in range({children}):
    time.sleep(0.003)
    child = os.fork()
    if child == 0:
        signal.alarm({seconds})
        work()
        os._exit(0)
    stuck += os.waitpid(child, 0)[1] != 0
print(stuck)
os._exit(0)
"""


@pytest.mark.slow
def test_forked_child_simulates_after_threads_of_its_parent():
    program = PROGRAM.format(children=CHILDREN, seconds=SECONDS)
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True, timeout=250
    )
    assert done.stdout.split() == ["0"]


class Slow:
    """Object with a cached property that is computed until an event is set."""

    def __init__(self, started, end):
        self.started, self.end = started, end

    def compute(self):
        self.started.set()
        self.end.wait(SECONDS)
        return 1


def test_property_being_computed_does_not_block_the_child():

    class Own(Slow):
        value = cached_property(Slow.compute)

    started, end = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: Own(started, end).value)
    thread.start()
    started.wait(SECONDS)
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS // 4)
        ended = threading.Event()
        ended.set()
        os._exit(Own(threading.Event(), ended).value)
    status = os.waitpid(child, 0)[1]
    end.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 1
