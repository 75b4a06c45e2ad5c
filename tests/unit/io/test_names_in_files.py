"""Hypothesis: names beside the matrices of a file reach the system, and those of a system reach the file."""

import h5py
import numpy as np
import pytest
import scipy.io
from hypothesis import given, settings
from hypothesis import strategies as st

import ltinet
from ltinet import StateSpace, load_system, save_system
from support.tiers import n_examples

A, B, C = -np.eye(3), np.ones((3, 2)), np.ones((1, 3))
MATRICES = {"A": A, "B": B, "C": C}
INPUTS, OUTPUTS = ["Force (N)", "Temperature (°C)"], ["Δx ⟂ (µm)"]
NAME = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=30)
KINDS = {"npz": "x.npz", "mat 5": "x.mat", "mat 7.3": "x.mat"}


def cells(*texts):
    return np.array([[text] for text in texts], dtype=object)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=n_examples(30), deadline=None)
@given(inputs=st.lists(NAME, min_size=2, max_size=2, unique=True), outputs=NAME, states=st.none() | st.just("abc"))
def test_what_is_saved_comes_back(kind, inputs, outputs, states, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / KINDS[kind]
    system = StateSpace(A, B, C, inputs=inputs, outputs=[outputs], states=states and list(states))
    save_system(system, path, mat_version="7.3" if kind == "mat 7.3" else "5")
    back = load_system(path)
    assert (back.input_names, back.output_names, back.state_names) == (
        system.input_names,
        system.output_names,
        system.state_names,
    )
    assert back == system


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("in_struct", [True, False])
@pytest.mark.parametrize("rows", ["cells", "characters"])
def test_matlab_files_bring_names(tmp_path, in_struct, rows, compressed):
    names = {"InputName": cells(*INPUTS) if rows == "cells" else INPUTS, "OutputName": cells(*OUTPUTS)}
    content = MATRICES | names
    scipy.io.savemat(tmp_path / "m.mat", {"sys": content} if in_struct else content, do_compression=compressed)
    system = load_system(tmp_path / "m.mat")
    assert list(system.input_names) == INPUTS
    assert list(system.output_names) == OUTPUTS
    assert system.state_names == ("x1", "x2", "x3")
    assert list(ltinet.construct(system).input_names) == INPUTS


def test_units_stand_behind_names_and_what_has_none_is_numbered(tmp_path):
    names = {"InputName": cells("Force", ""), "InputUnit": cells("N", ""), "StateName": cells("x", "x", "v")}
    scipy.io.savemat(tmp_path / "m.mat", {"sys": MATRICES | names | {"OutputName": cells("")}})
    system = load_system(tmp_path / "m.mat")
    assert system.input_names == ("Force (N)", "u2")
    assert system.state_names == ("x(1)", "x(2)", "v")
    assert system.output_names == ("y1",)
    assert system.matrices.names.outputs is None


def test_version_73_as_matlab_writes_it(tmp_path):
    """Cells are references into a group of MATLAB's own; an empty text is marked, and has its shape for numbers."""
    with h5py.File(tmp_path / "m.mat", "w", userblock_size=512) as file:
        group = file.create_group("sys")
        for name, matrix in MATRICES.items():
            group.create_dataset(name, data=matrix.T)
        references = np.empty((1, 2), dtype=h5py.ref_dtype)
        filled = file.create_dataset("#refs#/a", data=np.array([[ord(sign)] for sign in "Kraft (N)"], dtype=np.uint16))
        filled.attrs["MATLAB_class"] = np.bytes_("char")
        empty = file.create_dataset("#refs#/b", data=np.zeros(2, dtype=np.uint64))
        empty.attrs["MATLAB_class"], empty.attrs["MATLAB_empty"] = np.bytes_("char"), np.uint8(1)
        references[0] = [filled.ref, empty.ref]
        group.create_dataset("InputName", data=references).attrs["MATLAB_class"] = np.bytes_("cell")
    assert load_system(tmp_path / "m.mat").input_names == ("Kraft (N)", "u2")


@pytest.mark.parametrize(
    "names",
    [
        cells("one"),  # of two inputs
        cells("one", "two", "three"),
        cells("one", np.eye(2)),
        cells("one", cells("two")),
        np.eye(2),
        cells("one", "a\nb"),
        cells("one", "x" * 300),
    ],
    ids=["few", "many", "numbers", "nested", "a matrix", "two lines", "long"],
)
def test_what_is_no_list_of_names_leaves_the_system_alone(tmp_path, names):
    scipy.io.savemat(tmp_path / "m.mat", MATRICES | {"InputName": names})
    assert load_system(tmp_path / "m.mat").input_names == ("u1", "u2")
    if names.dtype != object:
        np.savez(tmp_path / "m.npz", **MATRICES, InputName=names)
        assert load_system(tmp_path / "m.npz").input_names == ("u1", "u2")


def test_every_cut_of_the_names_is_survived_or_refused(tmp_path):
    scipy.io.savemat(tmp_path / "m.mat", MATRICES | {"InputName": cells(*INPUTS)}, do_compression=False)
    content = (tmp_path / "m.mat").read_bytes()
    rng = np.random.default_rng(4)
    begin = content.index(b"InputName")
    for _ in range(200):
        damaged = bytearray(content)
        for place in rng.integers(begin, len(content), 3):
            damaged[place] = rng.integers(256)
        (tmp_path / "d.mat").write_bytes(damaged)
        try:
            system = load_system(tmp_path / "d.mat")
        except ltinet.LtinetError:
            continue
        np.testing.assert_array_equal(system.A, A)
