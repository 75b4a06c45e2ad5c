"""The doors of system files: paths that are no files, models in discrete time, permissions, and what is said of all."""

import os
import socket
import stat

import h5py
import numpy as np
import pytest
from scipy.io import savemat

from ltinet._util import atomic_files
from ltinet.errors import FileFormatError, InvalidSystemError
from ltinet.files import load_system, save_system
from ltinet.state_space import StateSpace

A, B, C = np.diag([-1.0, -2.0]), np.ones((2, 1)), np.ones((1, 2))
SYSTEM = StateSpace(A, B, C)
KINDS = {"mat5": ("s.mat", "5"), "mat73": ("s.mat", "7.3"), "npz": ("s.npz", "5"), "matrix_market": ("s", "5")}


def save_with(folder, kind, **more):
    """A file with A, B, C and more, by the programs that people use."""
    variables = {"A": A, "B": B, "C": C} | more
    if kind == "npz":
        np.savez(folder / "s.npz", **variables)
    elif kind == "mat5":
        savemat(folder / "s.mat", variables)
    elif kind == "mat73":
        with h5py.File(folder / "s.mat", "w", userblock_size=512) as file:
            for name, value in variables.items():
                file[name] = np.atleast_2d(value).T
    else:
        save_system(SYSTEM, folder / "s")
        for name, value in more.items():
            text = f"%%MatrixMarket matrix array real general\n1 1\n{float(np.ravel(value)[0])!r}\n"
            (folder / "s" / f"{name}.mtx").write_text(text)
    return folder / KINDS[kind][0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["Ts", "dt", "Td", "sampling_time", "sample_time", "SampleTime"])
def test_a_model_in_discrete_time_is_known_by_its_time_step(tmp_path, kind, name):
    path = save_with(tmp_path, kind, **{name: 0.1})
    assert load_system(path) == StateSpace(SYSTEM.A, SYSTEM.B, SYSTEM.C, SYSTEM.D, dt=0.1)
    assert load_system(path, dt=0) == SYSTEM
    assert load_system(path, dt=0.2).dt == 0.2


@pytest.mark.parametrize("name", ["s.mat", "s.npz", "s"])
def test_a_time_step_comes_back_from_a_file(tmp_path, name):
    system = StateSpace(SYSTEM.A, SYSTEM.B, SYSTEM.C, SYSTEM.D, dt=0.1)
    for _ in range(2):  # the second time over the first
        save_system(system, tmp_path / name)
        assert load_system(tmp_path / name) == system
    save_system(SYSTEM, tmp_path / name)
    assert load_system(tmp_path / name) == SYSTEM


@pytest.mark.parametrize("kind", KINDS)
def test_two_time_steps_are_refused(tmp_path, kind):
    (tmp_path / "same").mkdir()
    assert load_system(save_with(tmp_path / "same", kind, Ts=0.1, dt=0.1)).dt == 0.1
    with pytest.raises(InvalidSystemError, match=r"several time steps \(Ts = 0\.1, dt = 0\.2\); select one"):
        load_system(save_with(tmp_path, kind, Ts=0.1, dt=0.2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", [0.0, -1.0, 1e-300], ids=str)
def test_zero_is_continuous_time_and_nothing_else_is(tmp_path, kind, step):
    path = save_with(tmp_path, kind, Ts=step)
    if step >= 0.0:
        assert load_system(path).dt == (step or None)
    else:  # MATLAB's way to say that nobody knows
        with pytest.raises(InvalidSystemError, match=r"invalid time step Ts = -1; pass .*dt="):
            load_system(path)
        assert load_system(path, dt=0.5).dt == 0.5


@pytest.mark.parametrize(
    ("value", "is_continuous"),
    [([], True), (np.zeros((1, 1)), True), (0, True), (False, True), ("0.1", False), ([0.1, 0.2], False),
     (1j, False), (np.nan, False)],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["mat5", "npz"])
def test_whatever_a_sampling_time_may_be(tmp_path, kind, value, is_continuous):
    path = save_with(tmp_path, kind, dt=value)
    if is_continuous:
        assert load_system(path) == SYSTEM
    else:
        with pytest.raises(InvalidSystemError, match=r"invalid time step dt = .*; pass .*or dt=0"):
            load_system(path)


def test_a_sampling_time_that_is_only_true_is_none(tmp_path):
    with pytest.raises(InvalidSystemError, match=r"invalid time step dt = 1;"):
        load_system(save_with(tmp_path, "npz", dt=True))


def test_a_sampling_time_that_could_run_code_is_not_read(tmp_path):
    np.savez(tmp_path / "s.npz", A=A, B=B, C=C, dt=np.array(None))
    with pytest.raises(InvalidSystemError, match=r"time step dt = .*object array"):
        load_system(tmp_path / "s.npz")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with a name")
@pytest.mark.parametrize("suffix", [".mat", ".npz"])
def test_what_is_no_file_is_refused_without_waiting(tmp_path, monkeypatch, suffix):
    monkeypatch.chdir(tmp_path)
    os.mkfifo(f"pipe{suffix}")
    (tmp_path / f"device{suffix}").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"socket{suffix}")
        for name in ("pipe", "socket", "device"):
            with pytest.raises(FileFormatError, match=rf"{name}{suffix} is a {name}, not a file"):
                load_system(f"{name}{suffix}")
            with pytest.raises(FileFormatError, match="a device or pipe cannot be replaced"):
                save_system(SYSTEM, f"{name}{suffix}")
    (tmp_path / "folder").mkdir()
    os.mkfifo("folder/A.mtx")
    with pytest.raises(FileFormatError, match=r"A\.mtx is a pipe, not a file"):
        load_system("folder")


@pytest.mark.parametrize(
    "name", ["a" * 300 + ".mat", "loop.mat", "nul\0.mat", "esc\x1b[2J.mat", "esc\x1b[2J/s.npz"], ids=repr
)
def test_paths_that_lead_nowhere_are_one_clear_line(tmp_path, name):
    (tmp_path / "loop.mat").symlink_to(tmp_path / "loop.mat")
    for call in (load_system, lambda path: save_system(SYSTEM, path)):
        if call is not load_system and name == "esc\x1b[2J.mat":
            continue  # which can be written
        with pytest.raises(FileFormatError) as caught:
            call(tmp_path / name)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 700
    assert os.listdir(tmp_path) == ["loop.mat"]


@pytest.mark.parametrize("path", [None, 5, b"s.mat", ["s.mat"]], ids=repr)
def test_what_is_no_path_is_said_to_be_none(path):
    for call in (load_system, lambda place: save_system(SYSTEM, place)):
        with pytest.raises(FileFormatError, match=r"path must be text or a pathlib\.Path"):
            call(path)


def test_a_file_that_may_not_be_read_is_named(tmp_path):
    path = tmp_path / "s.mat"
    save_system(SYSTEM, path)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(FileFormatError, match=r"s\.mat cannot be read: Permission denied"):
        load_system(path)


def test_the_folder_one_is_in_may_be_gone(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(FileFormatError, match=r"there is no file s\.mat; check the name$"):
        load_system("s.mat")


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nameless", [True, False], ids=["nameless", "named"])
def test_a_replaced_file_keeps_its_permissions_and_a_new_one_follows_the_umask(tmp_path, monkeypatch, kind, nameless):
    if not nameless:
        monkeypatch.delattr(atomic_files.os, "O_TMPFILE", raising=False)
    name, version = KINDS[kind]
    path, file = tmp_path / name, tmp_path / name / "A.mtx" if kind == "matrix_market" else tmp_path / name
    before = os.umask(0o027)
    try:
        save_system(SYSTEM, path, mat_version=version)
        assert stat.S_IMODE(file.stat().st_mode) == 0o640
        for mode in (0o600, 0o644):
            file.chmod(mode)
            if path.is_dir():
                path.chmod(0o711)
            save_system(SYSTEM, path, mat_version=version)
            assert stat.S_IMODE(file.stat().st_mode) == mode
            assert not path.is_dir() or stat.S_IMODE(path.stat().st_mode) == 0o711
    finally:
        os.umask(before)
    assert load_system(path) == SYSTEM
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("value", [-1, "many", None, np.nan, True], ids=repr)
def test_a_limit_that_is_no_number_of_bytes_is_refused(tmp_path, value):
    save_system(SYSTEM, tmp_path / "s.npz")
    with pytest.raises(FileFormatError, match=r"max_bytes is .*; give a number of bytes"):
        load_system(tmp_path / "s.npz", max_bytes=value)


@pytest.mark.parametrize("kind", KINDS)
def test_the_limit_counts_every_matrix_and_says_how_to_raise_it(tmp_path, kind):
    name, version = KINDS[kind]
    system = StateSpace(np.diag(-np.arange(1.0, 101.0)), np.ones((100, 2)), np.ones((3, 100)))
    save_system(system, tmp_path / name, mat_version=version)
    needed = 8 * (100 * 100 + 200 + 300 + 6)
    assert load_system(tmp_path / name, max_bytes=needed) == system
    assert load_system(tmp_path / name, max_bytes=np.inf) == system
    with pytest.raises(FileFormatError, match=r"with D .* take 84\.05 kB.* max_bytes=90000"):
        load_system(tmp_path / name, max_bytes=needed - 1)
