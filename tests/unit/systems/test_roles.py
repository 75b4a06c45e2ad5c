"""Hypothesis: matrices are found in structs and under other names; what is ambiguous is refused with the way out."""

from contextlib import suppress

import h5py
import numpy as np
import pytest
import scipy.io

import ltinet
from ltinet.errors import FileFormatError, InvalidSystemError

RNG = np.random.default_rng(3)
A, B, C, D = (RNG.standard_normal(shape) for shape in ((3, 3), (3, 2), (1, 3), (1, 2)))
SYSTEM = ltinet.StateSpace(A, B, C, D)


def _save_73(path, content):
    """As MATLAB 7.3 does: a struct is a group, an array is stored transposed."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in content.items():
            if isinstance(value, dict):
                group = file.create_group(name)
                group.attrs["MATLAB_class"] = np.bytes_("struct")
                for field, own in value.items():
                    group.create_dataset(field, data=np.atleast_2d(own).T).attrs["MATLAB_class"] = np.bytes_("double")
            else:
                file.create_dataset(name, data=np.atleast_2d(value).T).attrs["MATLAB_class"] = np.bytes_("double")


def _save_5(path, content):
    scipy.io.savemat(path, content)


def _save_7(path, content):
    scipy.io.savemat(path, content, do_compression=True)


SAVE = pytest.mark.parametrize("save", [_save_5, _save_7, _save_73])
CAPITAL, SMALL = {"A": A, "B": B, "C": C, "D": D}, {"a": A, "b": B, "c": C, "d": D}


@SAVE
@pytest.mark.parametrize(
    "content", [CAPITAL, SMALL, {"sys": CAPITAL}, {"sys": SMALL}, {"k": 2.0, "plant": SMALL, "other": {"A": A}}]
)
def test_the_usual_names_are_found(tmp_path, save, content):
    save(tmp_path / "x.mat", content)
    assert ltinet.load_system(tmp_path / "x.mat") == SYSTEM


@SAVE
def test_plain_matrices_win_over_a_struct(tmp_path, save):
    save(tmp_path / "x.mat", {**CAPITAL, "sys": {"A": -A, "B": B, "C": C}})
    assert ltinet.load_system(tmp_path / "x.mat") == SYSTEM


@SAVE
def test_other_names_are_given(tmp_path, save):
    save(tmp_path / "x.mat", {"Amat": A, "in": {"B": B}, "Cmat": C, "Dmat": D})
    names = {"A": "Amat", "B": "in.B", "C": "Cmat", "D": "Dmat"}
    assert ltinet.load_system(tmp_path / "x.mat", names=names) == SYSTEM


@SAVE
def test_several_systems_are_refused_with_the_option(tmp_path, save):
    save(tmp_path / "x.mat", {"one": CAPITAL, "two": SMALL})
    with pytest.raises(FileFormatError, match=r'several systems \(one, two\).*names=\{"A": "one\.A", "B": "one\.B"'):
        ltinet.load_system(tmp_path / "x.mat")
    assert ltinet.load_system(tmp_path / "x.mat", names={k: f"two.{k.lower()}" for k in "ABCD"}) == SYSTEM


@SAVE
def test_names_that_fit_by_size_are_suggested(tmp_path, save):
    save(tmp_path / "x.mat", {"Amat": A, "Bmat": B, "Cmat": C})
    with pytest.raises(FileFormatError, match=r'names=\{"A": "Amat", "B": "Bmat", "C": "Cmat"\}.*--matrix A=Amat'):
        ltinet.load_system(tmp_path / "x.mat")


@SAVE
def test_two_square_matrices_are_no_suggestion(tmp_path, save):
    save(tmp_path / "x.mat", {"Amat": A, "Qmat": A, "Bmat": B, "Cmat": C})
    with pytest.raises(FileFormatError, match="give it: load_system"):
        ltinet.load_system(tmp_path / "x.mat")


@SAVE
@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({"Q": "A"}, "the matrices are A, B, C, D, E"),
        ({"A": "none"}, "has no none, which names gives for A"),
        (5, "got 5"),
    ],
)
def test_names_that_cannot_be_are_told(tmp_path, save, names, words):
    save(tmp_path / "x.mat", CAPITAL)
    with pytest.raises(FileFormatError, match=words):
        ltinet.load_system(tmp_path / "x.mat", names=names)


@SAVE
def test_a_sampling_time_in_the_struct_is_the_systems(tmp_path, save):
    save(tmp_path / "x.mat", {"sys": {**CAPITAL, "Ts": 0.25}})
    assert ltinet.load_system(tmp_path / "x.mat").dt == 0.25
    save(tmp_path / "y.mat", {"sys": {**CAPITAL, "Ts": -1.0}})
    with pytest.raises(InvalidSystemError, match=r"sys\.Ts = -1"):
        ltinet.load_system(tmp_path / "y.mat")


def test_a_field_that_is_no_matrix_is_told(tmp_path):
    scipy.io.savemat(tmp_path / "x.mat", {"sys": {"A": "text", "B": B, "C": C}})
    with pytest.raises(InvalidSystemError, match=r"sys\.A is text"):
        ltinet.load_system(tmp_path / "x.mat")


def test_npz_archives_take_names_too(tmp_path):
    np.savez(tmp_path / "x.npz", Amat=A, b=B, C=C, D=D)
    assert ltinet.load_system(tmp_path / "x.npz", names={"A": "Amat", "B": "b"}) == SYSTEM


@pytest.mark.parametrize("save", [_save_5, _save_7, _save_73])
def test_damaged_structs_are_the_same_or_refused(tmp_path, save):
    """Whatever three bytes of a file become, it loads as a system or is refused by one of our errors."""
    path = tmp_path / "x.mat"
    save(path, {"sys": CAPITAL, "k": 2.0})
    content, rng = path.read_bytes(), np.random.default_rng(5)
    for _ in range(150):
        damaged = bytearray(content)
        for place in rng.integers(0, len(content), 3):
            damaged[place] = rng.integers(0, 256)
        path.write_bytes(bytes(damaged))
        with suppress(ltinet.LtinetError):
            assert isinstance(ltinet.load_system(path), ltinet.StateSpace)
