"""Hypothesis: advice at the terminal is about what was typed there, in words of the command line."""

from pathlib import Path

import numpy as np
import pytest
from processes import Run


def complaint(result) -> str:
    assert (result.code, result.out) == (2, b"")
    return result.err.decode()


def test_an_initial_state_of_another_length(run_here: Run, folder: Path) -> None:
    command = ("simulate", "net.safetensors", "-i", "u.csv", "--x0")
    text = complaint(run_here(*command, "1,2,3"))
    assert text.startswith("ltinet: --x0 has 3 numbers, but the system has 6 states; give one for each")
    assert "u.csv" not in text
    assert "--x0 has numbers that are not finite" in complaint(run_here(*command, "1,2,3,nan,5,6"))
    np.savez(folder / "x0.npz", x0=np.zeros(1))
    assert "--x0 has 1 number, but" in complaint(run_here(*command, "x0.npz"))


@pytest.mark.parametrize("command", [["info"], ["response"], ["construct", "-o", "new.safetensors"]])
def test_files_without_matrices(run_here: Run, folder: Path, command: list[str]) -> None:
    (folder / "empty").mkdir()
    np.savez(folder / "half.npz", A=np.eye(2), B=np.ones((2, 1)))
    np.savez(folder / "other.npz", Amat=-np.eye(2), Bmat=np.ones((2, 1)), Cmat=np.ones((1, 2)))
    said = {name: complaint(run_here(command[0], name, *command[1:])) for name in ("empty", "half.npz", "other.npz")}
    assert "empty is a folder without matrices; give a .mat or .npz file, or a folder that holds A.mtx" in said["empty"]
    assert "half.npz has no C (it holds A, B); store plain matrices A, B, C" in said["half.npz"]
    assert "--matrix A=Amat" in said["other.npz"]
    assert not any("load_system" in text for text in said.values())


@pytest.mark.parametrize("example", ["example:heat_rod", "example:heat_rod,n_states=5"])
def test_a_built_in_system_is_no_network(run_here: Run, example: str) -> None:
    text = complaint(run_here("plot", example, "-o", "p.png"))
    assert (
        f"is a system, not a network; construct one first: ltinet construct {example} -o heat_rod.safetensors" in text
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("construct system.npz -o n.safetensors --max-condition abc", "'--max-condition': "),
        ("construct system.npz -o n.safetensors --layers 2.5", "'--layers': "),
        ("simulate net.safetensors -i u.csv --engine per_neuron --rtol small", "'--rtol': "),
    ],
)
def test_numbers_that_are_none(run_here: Run, arguments: str, said: str) -> None:
    text = complaint(run_here(*arguments.split()))
    assert said in text
    assert "Input should" not in text
    assert "parse" not in text
