"""Hypothesis: no test can hang, whether it waits in Python or in C; and the others are run all the same."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"
TESTS = """
import time

def test_that_waits():
    time.sleep(1000.0)

def test_in_c():
    sum(range(10**13))  # no signal is looked at before it is done

def test_that_passes():
    pass
"""


@pytest.mark.slow
def test_a_test_that_hangs_fails_alone(tmp_path):
    shutil.copy(CONFTEST, tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntimeout = 4\ntimeout_method = signal\n")
    (tmp_path / "test_hanging.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "1", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": str(CONFTEST.parent)}  # conftest.py imports `support`
    done = subprocess.run(  # noqa: S603
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 1
    assert "FAILED test_hanging.py::test_that_waits - Failed: Timeout" in done.stdout
    assert "crashed while running 'test_hanging.py::test_in_c'" in done.stdout
    assert "2 failed, 1 passed" in done.stdout
