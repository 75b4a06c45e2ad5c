"""Hypothesis: a user's program sees a type at every door, never `Any`, and what mypy is told is what happens."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import user_script

ROOT = Path(__file__).parents[2]


def test_the_script_runs() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    user_script.main()
    pyplot.close("all")


@pytest.mark.slow
def test_mypy_sees_every_type() -> None:
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "tests/architecture/user_script.py"]
    environment = os.environ | {"MYPYPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)  # noqa: S603 - mypy
    assert done.returncode == 0, done.stdout + done.stderr
