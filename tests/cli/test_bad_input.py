"""Hypothesis: bad input gives exit code 2 and one clear line on stderr, and changes nothing in the folder."""

import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from processes import Run, contents
from safetensors.numpy import save as save_tensors

import ltinet


def archive(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


class Case(NamedTuple):
    """A command, what its complaint must contain, and files that it needs; {} marks none."""

    arguments: str
    expected: str
    files: dict[str, bytes] = {}  # noqa: RUF012 - never changed
    stdin: bytes = b""


PICKLED = archive(t=np.arange(2.0), u=np.array([{}, {}]), A=np.array([{}]), B=np.ones(1), C=np.ones(1))
EYE = np.eye(2)
CONSTRUCT = "construct system.npz -o new.safetensors"
SIMULATE = "simulate net.safetensors -i u.csv"

CASES = {
    # the command itself
    "no such command": Case("frobnicate", "No such command 'frobnicate'"),
    "missing argument": Case("construct", "Missing argument 'FILE'"),
    "missing option": Case("simulate net.safetensors", "Missing option '--input'"),
    "unknown option": Case("info net.safetensors --frob", "No such option"),
    "unknown hold": Case(f"{SIMULATE} --hold cubic", "'cubic' is not one of 'linear', 'zero'"),
    "unknown engine": Case(f"{SIMULATE} --engine warp", "'warp' is not one of"),
    "number expected": Case(f"{CONSTRUCT} --layers two", "--layers"),
    "both ways to choose layers": Case(f"{CONSTRUCT} --layers 2 --max-condition 9", "one of them, not both"),
    "negative limit": Case(f"{CONSTRUCT} --max-condition -1", "--max-condition must be a number ≥ 1, got -1"),
    "limit not a number": Case(f"{CONSTRUCT} --max-condition nan", "--max-condition must be a number ≥ 1, got nan"),
    "no layers": Case(f"{CONSTRUCT} --layers 0", "--layers must be an integer ≥ 1, got 0"),
    "more layers than neurons": Case(f"{CONSTRUCT} --layers 7", "--layers is 7"),
    "solver option without solver": Case(f"{SIMULATE} --rtol 1e-3", "the exact engine has no solver"),
    "unknown method": Case(f"{SIMULATE} --engine per_neuron --method Euler", "method must be one of"),
    "negative tolerance": Case(f"{SIMULATE} --engine per_neuron --rtol -1", "rtol must be"),
    "both from standard input": Case("simulate - -i -", "only one of them"),
    "unknown example of the paper": Case("reproduce everything", "there is no example 'everything'"),
    "unknown picture": Case("plot net.safetensors --kind selfie -o p.png", "'selfie' is not one of"),
    # places to write to
    "output is a folder": Case(f"{SIMULATE} -o place.csv", "place.csv is a folder", {"place.csv/x": b""}),
    "output in no folder": Case("construct system.npz -o no/net.safetensors", "there is no folder no"),
    "output of unknown kind": Case(f"{SIMULATE} -o y.xlsx", "y.xlsx has an unknown suffix"),
    "unknown format": Case(f"{SIMULATE} --format xml", "--format is 'xml'"),
    "network under another name": Case("construct system.npz -o net.mat", "must end in .safetensors"),
    "format against the name": Case("plot net.safetensors -o p.png --format svg", "do not agree"),
    "picture of unknown kind": Case("plot net.safetensors -o p.docx", "p.docx has an unknown suffix"),
    "report into a file": Case("reproduce diffusion --out u.csv", "u.csv is a file"),
    # systems
    "no such system file": Case("info nowhere.mat", "there is no file nowhere.mat"),
    "no such example": Case("info example:warp", "unknown system 'warp'"),
    "system of unknown kind": Case("info s.xlsx", "s.xlsx is of an unknown kind", {"s.xlsx": b"PK"}),
    "damaged .mat": Case("info s.mat", "s.mat cannot be read", {"s.mat": b"MATLAB 5.0 MAT-file" + bytes(300)}),
    "pickled .npz": Case("info s.npz", "s.npz cannot be read", {"s.npz": PICKLED}),
    "system without C": Case("info s.npz", "has no C", {"s.npz": archive(A=EYE, B=EYE)}),
    "complex system": Case("info s.npz", "complex", {"s.npz": archive(A=1j * EYE, B=EYE, C=EYE)}),
    "system with NaN": Case("info s.npz", "A has", {"s.npz": archive(A=np.nan * EYE, B=EYE, C=EYE)}),
    "shapes that do not fit": Case("info s.npz", "B has shape", {"s.npz": archive(A=EYE, B=np.eye(3), C=EYE)}),
    "empty folder as system": Case("info market", "is a folder without matrices", {"market/readme": b""}),
    "network as system": Case("construct net.safetensors -o new.safetensors", "is a network"),
    "nothing on standard input": Case("info -", "standard input is empty"),
    "text on standard input": Case("construct - -o new.safetensors", "standard input is of an unknown", {}, b"hello"),
    # networks
    "no such network": Case("simulate nowhere.safetensors -i u.csv", "there is no file nowhere.safetensors"),
    "system as network": Case("plot system.npz -o p.png", "ltinet construct system.npz -o system.safetensors"),
    "folder as network": Case("plot . -o p.png", "is not a network"),
    "another safetensors file": Case(
        "info x.safetensors", "not an ltinet network", {"x.safetensors": save_tensors({"a": EYE})}
    ),
    # tables of inputs
    "no such table": Case("simulate net.safetensors -i nowhere.csv", "there is no file nowhere.csv"),
    "folder as table": Case("simulate net.safetensors -i .", "is a folder"),
    "table of unknown kind": Case("simulate net.safetensors -i u.xlsx", "unknown suffix", {"u.xlsx": b"PK"}),
    "bad cell": Case(SIMULATE, "u.csv, line 3, column 'b': 'x'", {"u.csv": b"t,a,b\n0,1,2\n1,2,x\n"}),
    "bad cell in a pipe": Case(
        "simulate net.safetensors -i -", "standard input, line 2, column 'a': '?'", {}, b"t,a,b\n0,?,2\n"
    ),
    "times that descend": Case(SIMULATE, "u.csv, line 3: t must not descend", {"u.csv": b"t,a,b\n1,1,2\n0,2,3\n"}),
    "too many channels": Case(SIMULATE, "u.csv has 3 input columns", {"u.csv": b"t,a,b,c\n1,1,2,3\n"}),
    "pickled table": Case("simulate net.safetensors -i u.npz", "u.npz cannot be read", {"u.npz": PICKLED}),
    "table without u": Case("simulate net.safetensors -i u.npz", "has no u", {"u.npz": archive(t=EYE[0])}),
    "complex table": Case("simulate net.safetensors -i u.npz", "real numbers", {"u.npz": archive(t=[0.0], u=1j * EYE)}),
    "too few times": Case(
        "simulate net.safetensors -i u.npz", "u.npz: u has shape", {"u.npz": archive(t=[0.0, 1.0], u=np.ones((3, 2)))}
    ),
    "times in a square": Case(
        "simulate net.safetensors -i u.npz", "t has shape (2, 2)", {"u.npz": archive(t=EYE, u=EYE)}
    ),
    "a number as input": Case("simulate net.safetensors -i u.npz", "1 input column ", {"u.npz": archive(t=0.0, u=1.0)}),
    "initial state not finite": Case(f"{SIMULATE} --x0 nan,0,0,0,0,0", "x0"),
    "initial state of words": Case(f"{SIMULATE} --x0 rest", "--x0 is 'rest'"),
    "initial state too short": Case(f"{SIMULATE} --x0 1,2", "--x0 has 2 numbers, but the system has 6 states"),
}  # fmt: skip


# The others are the same call in this process, which takes no second to start.
AS_PROCESSES = ["bad cell in a pipe", "unknown example of the paper"]


@pytest.mark.slow
@pytest.mark.parametrize("name", AS_PROCESSES)
def test_bad_input_gives_one_line_and_changes_nothing(name: str, run: Run, folder: Path) -> None:
    refuses(CASES[name], run, folder)


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_bad_input(name: str, run_here: Run, folder: Path) -> None:
    refuses(CASES[name], run_here, folder)


def test_damaged_networks(run_here: Run, folder: Path) -> None:
    whole = (folder / "net.safetensors").read_bytes()
    (folder / "net.safetensors").write_bytes(whole[:-1])
    refuses(Case(SIMULATE, "net.safetensors is not a readable safetensors file"), run_here, folder)
    (folder / "net.safetensors").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    refuses(Case(SIMULATE, "net.safetensors is damaged: its checksum does not match"), run_here, folder)


def test_outputs_beyond_double_precision(run_here: Run, folder: Path) -> None:
    ltinet.construct(([[700.0]], [[1.0, 1.0]], [[1.0]])).save(folder / "net.safetensors")
    (folder / "u.csv").write_text("t,a,b\n0,1,1\n1,1,1\n2,1,1\n")
    refuses(Case(f"{SIMULATE} -o y.csv", "overflows at t = "), run_here, folder)


def refuses(case: Case, run: Run, folder: Path) -> None:
    for place, content in case.files.items():
        (folder / place).parent.mkdir(exist_ok=True)
        (folder / place).write_bytes(content)
    before = contents(folder)
    code, out, err = run(*case.arguments.split(), stdin=case.stdin)
    complaint = err.decode()
    assert complaint.startswith("ltinet: ")
    assert complaint.endswith("\n")
    assert complaint.count("\n") == 1
    assert case.expected in complaint
    assert (code, out) == (2, b"")
    assert contents(folder) == before
