"""The package can be imported and used where modules, functions and signals of POSIX are missing, as on Windows."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "support" / "without_posix.py"


def test_the_package_works_without_posix(tmp_path: Path) -> None:
    command = [sys.executable, "-X", "warn_default_encoding", str(SCRIPT), str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", timeout=250, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("all of it works without POSIX\n")
