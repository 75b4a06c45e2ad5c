"""A folder with a system, its network and a table of inputs, and the program to run in it."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from processes import INPUTS, TIMES, Result, Run, csv_text, installed_program, launch, run_in_process

import ltinet


@pytest.fixture(scope="session")
def system() -> ltinet.StateSpace:
    """Two inputs, three outputs, real eigenvalues and pairs."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((6, 6)) - 3.0 * np.eye(6)
    return ltinet.StateSpace(A, rng.standard_normal((6, 2)), rng.standard_normal((3, 6)), rng.standard_normal((3, 2)))


@pytest.fixture(scope="session")
def net(system: ltinet.StateSpace) -> ltinet.DynamicNetwork:
    return ltinet.construct(system)


@pytest.fixture
def folder(tmp_path: Path, system: ltinet.StateSpace, net: ltinet.DynamicNetwork) -> Path:
    """Hold system.npz, net.safetensors and u.csv."""
    ltinet.save_system(system, tmp_path / "system.npz")
    net.save(tmp_path / "net.safetensors")
    (tmp_path / "u.csv").write_text(csv_text(TIMES, INPUTS))
    return tmp_path


@pytest.fixture
def run(folder: Path) -> Run:
    """Run the installed program in the folder, as a process; its streams are pipes."""

    def run_program(*arguments: str, stdin: bytes = b"", environment: dict[str, str] | None = None) -> Result:
        process = launch([*installed_program(), *arguments], cwd=folder, environment=environment)
        out, err = process.communicate(stdin, timeout=100)
        return Result(process.returncode, out, err)

    return run_program


@pytest.fixture
def run_here(folder: Path) -> Run:
    """Do the same in this process, a hundred times as fast."""
    return partial(run_in_process, cwd=folder)
