"""Hypothesis: whatever name or redirection leads to it, no command writes over a file that it reads."""

import os
from pathlib import Path

import numpy as np
import pytest
from processes import Run, contents

import ltinet

SIMULATE = ["simulate", "net.safetensors", "-i", "u.csv"]


def refused(result, folder: Path, before: dict[str, bytes]) -> None:
    code, out, err = result
    assert (code, out) == (2, b"")
    assert b"writing would destroy it" in err
    assert err.count(b"\n") == 1
    assert contents(folder) == before


def another_name(kind: str, file: Path) -> str:
    """A second way to a file of the folder, with the same suffix."""
    other = file.with_name(f"other{file.suffix}")
    if kind == "itself":
        return file.name
    if kind == "absolute":
        return str(file.resolve())
    if kind == "through a folder":
        (file.parent / "sub").mkdir()
        return f"sub/../{file.name}"
    if kind == "symbolic link":
        other.symlink_to(file.name)
    elif kind == "chain of links":
        file.with_name("first").symlink_to(file.resolve())
        other.symlink_to("first")
    elif kind == "linked folder":
        (file.parent / "elsewhere").symlink_to(".")
        return f"elsewhere/{file.name}"
    else:
        os.link(file, other)
    return other.name


NAMES = ["itself", "absolute", "through a folder", "symbolic link", "chain of links", "linked folder", "hard link"]


@pytest.mark.parametrize("kind", NAMES)
def test_the_table_of_inputs(kind: str, run_here: Run, folder: Path) -> None:
    output = another_name(kind, folder / "u.csv")
    before = contents(folder)
    refused(run_here(*SIMULATE, "-o", output), folder, before)


@pytest.mark.parametrize("kind", NAMES)
def test_the_other_way_round(kind: str, run_here: Run, folder: Path) -> None:
    table = another_name(kind, folder / "u.csv")
    before = contents(folder)
    refused(run_here("simulate", "net.safetensors", "-i", table, "-o", "u.csv"), folder, before)


@pytest.mark.parametrize("kind", NAMES)
def test_the_network(kind: str, run_here: Run, folder: Path) -> None:
    output = another_name(kind, folder / "net.safetensors")
    before = contents(folder)
    refused(run_here(*SIMULATE, "-o", output, "--format", "csv"), folder, before)


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_the_initial_state_the_system_and_what_is_drawn(link, run_here: Run, folder: Path) -> None:
    np.savez(folder / "start.npz", x0=np.ones(6))
    link(folder / "system.npz", folder / "system.safetensors")
    link(folder / "net.safetensors", folder / "picture.png")
    before = contents(folder)
    refused(run_here(*SIMULATE, "--x0", "start.npz", "-o", "start.npz"), folder, before)
    refused(run_here("construct", "system.npz", "-o", "system.safetensors"), folder, before)
    refused(run_here("plot", "net.safetensors", "-o", "picture.png"), folder, before)


def test_a_matrix_in_a_folder(run_here: Run, folder: Path, system: ltinet.StateSpace) -> None:
    ltinet.save_system(system, folder / "market")
    os.link(folder / "market" / "A.mtx", folder / "new.safetensors")
    before = contents(folder)
    refused(run_here("construct", "market", "-o", "new.safetensors"), folder, before)


@pytest.mark.parametrize("name", ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"])
def test_what_is_redirected_to_standard_input(name: str, run_here: Run, folder: Path) -> None:
    if name != "-" and not Path(name).exists():
        pytest.skip(f"there is no {name} here")
    before = contents(folder)
    with (folder / "u.csv").open("rb") as table:
        result = run_here("simulate", "net.safetensors", "-i", name, "-o", "u.csv", stdin=table)
    refused(result, folder, before)


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1"])
def test_standard_output_that_goes_back_into_the_table(name: str, run_here: Run, folder: Path) -> None:
    """As >> does; a shell's > has emptied the file before the program starts."""
    if name != "-" and not Path(name).exists():
        pytest.skip(f"there is no {name} here")
    before = contents(folder)
    with (folder / "u.csv").open("ab") as table:
        result = run_here(*SIMULATE, "--format", "csv", "-o", name, stdout=table)
    refused(result, folder, before)


def test_files_that_are_not_read_are_replaced_as_ever(run_here: Run, folder: Path) -> None:
    (folder / "y.csv").write_text("old")
    (folder / "copy.csv").write_bytes((folder / "u.csv").read_bytes())
    assert run_here(*SIMULATE, "-o", "y.csv").code == 0
    assert run_here(*SIMULATE, "-o", "copy.csv").code == 0
    assert (folder / "y.csv").read_bytes() == (folder / "copy.csv").read_bytes() != b"old"


def test_pipes_and_devices_on_both_sides_are_no_files(run_here: Run, folder: Path) -> None:
    table = (folder / "u.csv").read_bytes()
    done = run_here("simulate", "net.safetensors", "-i", "-", "-o", "-", stdin=table)
    assert done.code == 0
    assert done.out.startswith(b"t,y1")
    with Path(os.devnull).open("r+b", buffering=0) as null:
        done = run_here("info", "-", stdin=null, stdout=null)
    assert done.err == b"ltinet: standard input is empty; check the program before the pipe\n"
