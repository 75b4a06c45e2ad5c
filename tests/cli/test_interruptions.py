"""Hypothesis: a full disk and an interrupted run leave no half-written file, no process and no traceback."""

import io
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from processes import Run, contents, installed_program, launch

import ltinet

PATIENCE = 100.0  # seconds for what takes one on an idle machine
CONSTRUCT = ("construct", "system.npz", "-o")
SIMULATE = ("simulate", "net.safetensors", "-i", "u.csv", "-o")


needs_full_device = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")


@needs_full_device
def test_a_full_device(run_here: Run, folder: Path) -> None:
    before = contents(folder)
    code, out, err = run_here(*CONSTRUCT, "/dev/full")
    assert err == b"ltinet: /dev/full cannot be written: No space left on device\n"
    assert (code, out) == (2, b"")
    assert contents(folder) == before


@pytest.mark.slow
@needs_full_device
def test_standard_output_on_a_full_device(folder: Path) -> None:
    """As a process: the interpreter writes what is left in its buffers when it ends."""
    before = contents(folder)
    with Path("/dev/full").open("wb") as full:
        process = launch([*installed_program(), *SIMULATE, "-"], stdout=full, cwd=folder)
        _, err = process.communicate(timeout=PATIENCE)
    assert err == b"ltinet: standard output cannot be written: No space left on device\n"
    assert process.returncode == 2
    assert contents(folder) == before


@pytest.mark.parametrize(
    "command", [pytest.param(CONSTRUCT, id="network"), pytest.param(SIMULATE, id="table", marks=pytest.mark.slow)]
)
def test_a_file_that_may_not_grow(command: tuple[str, ...], folder: Path) -> None:
    """A limit on the size of files fails in the middle of writing, as a full disk does, and needs no rights to set."""
    resource = pytest.importorskip("resource", reason="no limits on sizes of files here")
    target = folder / f"old{'.safetensors' if command is CONSTRUCT else '.csv'}"
    target.write_text("kept")
    before = contents(folder)
    limit = 200
    process = launch(
        [*installed_program(), *command, target.name],
        cwd=folder,
        environment={"COVERAGE_PROCESS_CONFIG": "", "COVERAGE_PROCESS_START": ""},  # its own file would be cut off too
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    _, err = process.communicate(timeout=PATIENCE)
    assert re.fullmatch(rf"ltinet: {target.name} cannot be written.*File too large.*\n", err.decode())
    assert process.returncode == 2
    assert contents(folder) == before


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 16 kB, where that is allowed."""
    place, mount = tmp_path / "tiny", shutil.which("mount")
    place.mkdir()
    if mount is None or launch([mount, "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(place)]).wait(PATIENCE) != 0:
        pytest.skip("mounting a file system is not allowed here")
    yield place
    launch(["umount", str(place)]).wait(PATIENCE)


def test_a_full_disk(tiny_disk: Path, run_here: Run, folder: Path) -> None:
    (tiny_disk / "filling").write_bytes(bytes(12000))
    for command, name in ((CONSTRUCT, "net.safetensors"), (SIMULATE, "y.csv")):
        table = "t,u1,u2\n" + "".join(f"{k},{k},1\n" for k in range(300))
        (folder / "u.csv").write_text(table)
        ltinet.save_system(ltinet.named_system("mass_spring_damper"), folder / "system.npz")
        code, _, err = run_here(*command, str(tiny_disk / name))
        assert re.fullmatch(rf"ltinet: {tiny_disk / name} cannot be written.*No space left.*\n", err.decode())
        assert code == 2
        assert contents(tiny_disk).keys() == {"filling"}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(run_here: Run, folder: Path) -> None:
    folder.chmod(0o500)
    try:
        code, _, err = run_here(*SIMULATE, "y.csv")
    finally:
        folder.chmod(0o700)
    assert err.decode() == "ltinet: y.csv cannot be written: Permission denied\n"
    assert code == 2


# The program, which makes a file when it first enters a function of that name: not yet, while it is being imported,
# and long before the work is done. SciPy's solvers are imported beforehand, since C code that is interrupted while it
# is imported answers in words of its own.
AT_WORK = """
import pathlib, sys
import scipy.integrate
from ltinet.cli.app import main

def profile(frame, event, _):
    if event == "call" and frame.f_code.co_name == {function!r}:
        sys.setprofile(None)
        pathlib.Path({sign!r}).touch()

sys.argv[0] = "ltinet"
sys.setprofile(profile)
main()
"""


@pytest.mark.slow
def test_an_interrupted_construction(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    n = 700
    stream = io.BytesIO()
    np.savez(stream, A=np.random.default_rng(0).standard_normal((n, n)), B=np.ones((n, 1)), C=np.ones((1, n)))
    sign = tmp_path_factory.mktemp("sign") / "begun"
    program = AT_WORK.format(function="candidate_forms", sign=str(sign))
    command = [sys.executable, "-c", program, "construct", "-", "-o", "net.safetensors"]
    interrupted(command, stdin=stream.getvalue(), folder=folder, sign=sign)


@pytest.mark.slow
def test_an_interrupted_simulation(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Solvers at the limit of double precision take far longer than anyone waits."""
    rows = "".join(f"{k},{k % 7},1\n" for k in range(20000))
    sign = tmp_path_factory.mktemp("sign") / "begun"
    program = AT_WORK.format(function="solve_layer", sign=str(sign))
    solver = ["--engine", "per_neuron", "--rtol", "1e-13", "--atol", "1e-15"]
    command = [sys.executable, "-c", program, "simulate", "net.safetensors", "-i", "-", *solver, "-o", "y.csv"]
    interrupted(command, stdin=b"t,a,b\n" + rows.encode(), folder=folder, sign=sign)


@pytest.mark.slow
def test_an_interrupted_reduction(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """When shifts are taken: many factorisations are still to come, and a file of that name is there already."""
    (folder / "small.safetensors").write_text("kept")
    sign = tmp_path_factory.mktemp("sign") / "begun"
    program = AT_WORK.format(function="extend_basis", sign=str(sign))
    wish = ["reduce", "example:heat_plate,n=40000", "--tolerance", "1e-8", "-o", "small.safetensors"]
    interrupted([sys.executable, "-c", program, *wish], stdin=b"", folder=folder, sign=sign)


def interrupted(command: list[str], *, stdin: bytes, folder: Path, sign: Path) -> None:
    """Interrupt the program when it has read its input and says that it is at work."""
    if not hasattr(os, "killpg"):
        pytest.skip("no groups of processes that a signal reaches here")
    before = contents(folder)
    process = launch(
        command,
        cwd=folder,
        start_new_session=True,
        # Without this the signal is ignored where the tests are a shell's background job.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        process.stdin.write(stdin)
        process.stdin.close()
        process.stdin = None  # or `communicate` would flush it
        deadline = time.monotonic() + PATIENCE
        while not sign.exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert (out, err) == (b"", b"ltinet: interrupted\n")
    assert process.returncode == 130
    assert contents(folder) == before
    with pytest.raises(ProcessLookupError):  # nobody is left in its group
        os.killpg(process.pid, 0)
