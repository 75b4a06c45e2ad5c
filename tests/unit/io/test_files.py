"""Every format gives back every bit, a file appears whole or not at all, every failure is one line with a way out."""

import builtins
import gzip
import io
import pickle
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from scipy.io import loadmat, mmwrite, savemat

from ltinet._util import atomic_files
from ltinet.errors import FileFormatError, InvalidSystemError, MissingDependencyError
from ltinet.files import load_system, save_system
from ltinet.io import mat73, npz
from ltinet.state_space import StateSpace
from support.tiers import n_examples

FORMATS = [("s.mat", "5"), ("s.mat", "7.3"), ("s.npz", "5"), ("s", "5")]
IDS = ["mat5", "mat73", "npz", "matrix_market"]
A = np.array([[-1.0, 2.0], [-3.0, 1 / 3]])
B = np.array([[1.0, 0.0, 0.1], [0.0, 2.0, 1e-300]])
C = np.array([[1.0, 5e-324]])
SYSTEM = StateSpace(A, B, C, [[1.7976931348623157e308, -1e-17, np.pi]])


def bits(system):
    return [(matrix.shape, matrix.tobytes()) for matrix in (system.A, system.B, system.C, system.D)]


@st.composite
def systems(draw):
    n, m, p = (draw(st.integers(0, 3)) for _ in range(3))
    numbers = st.floats(allow_nan=False, allow_infinity=False)
    return StateSpace(
        *(draw(arrays(np.float64, shape, elements=numbers)) for shape in ((n, n), (n, m), (p, n), (p, m)))
    )


@pytest.mark.parametrize(("name", "mat_version"), FORMATS, ids=IDS)
@given(system=systems())
@settings(max_examples=n_examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_round_trip_gives_back_every_bit(tmp_path, name, mat_version, system):
    save_system(system, tmp_path / name, mat_version=mat_version)
    assert bits(load_system(tmp_path / name)) == bits(system)


@pytest.mark.parametrize(("name", "mat_version"), FORMATS, ids=IDS)
def test_a_path_may_be_a_string_and_nothing_is_left_beside_the_file(tmp_path, name, mat_version):
    save_system((A, B, C), str(tmp_path / name), mat_version=mat_version)
    save_system(SYSTEM, str(tmp_path / name), mat_version=mat_version)  # replaces the first
    assert load_system(str(tmp_path / name)) == SYSTEM
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_real_systems_load(data_dir):
    for path in sorted(data_dir.glob("*.mat")):
        if path.stem != "helicopter_v73":
            system = load_system(path)
            assert system.n_states > 0
    building = load_system(data_dir / "building.mat")
    assert (building.n_states, building.n_inputs, building.n_outputs) == (48, 1, 1)
    np.testing.assert_array_equal(building.A, loadmat(data_dir / "building.mat")["A"].toarray())
    assert load_system(data_dir / "mr_demo.mat").D.any()


def test_a_real_system_without_outputs_says_so_and_takes_them(data_dir):
    path = data_dir / "helicopter_v73.mat"
    with pytest.raises(FileFormatError, match=r"has no C \(it holds A, B\).*C=np\.eye\(28\)"):
        load_system(path)
    system = load_system(path, C=np.eye(28))
    assert (system.n_states, system.n_inputs, system.n_outputs) == (28, 6, 28)
    with h5py.File(path) as file:
        np.testing.assert_array_equal(system.A, file["A"][()].T)  # MATLAB stores columns first
        np.testing.assert_array_equal(system.B, file["B"][()].T)


def test_keywords_replace_and_supply_matrices(tmp_path):
    savemat(tmp_path / "s.mat", {"A": A, "B": B, "C": C, "note": "hello"})
    assert load_system(tmp_path / "s.mat", B=2 * B, D=np.ones((1, 3)), E=2 * np.eye(2)) == StateSpace(
        A / 2, B, C, np.ones((1, 3))
    )
    np.savez(tmp_path / "s.npz", B=B)
    assert load_system(tmp_path / "s.npz", A=A, C=C) == StateSpace(A, B, C)
    np.savez(tmp_path / "s.npz", A=np.array([[object()]]), B=B, C=C)
    assert load_system(tmp_path / "s.npz", A=A) == StateSpace(A, B, C)  # what is replaced is not even read


def test_sparse_integer_and_descriptor_matrices_are_read(tmp_path):
    E = 2 * np.eye(2)
    expected = StateSpace(A, B, [[1, 2]], E=E)
    savemat(tmp_path / "s.mat", {"A": sparse.csc_array(A), "B": B, "C": np.uint8([[1, 2]]), "E": sparse.csc_array(E)})
    assert load_system(tmp_path / "s.mat") == expected
    folder = tmp_path / "folder"
    folder.mkdir()
    mmwrite(folder / "A.mtx", sparse.coo_array(A), precision=17)
    mmwrite(folder / "C.mtx", sparse.coo_array([[1, 2]]))
    mmwrite(folder / "E.mtx", E, symmetry="symmetric")
    buffer = io.BytesIO()
    mmwrite(buffer, B, precision=17)
    (folder / "B.mtx.gz").write_bytes(gzip.compress(buffer.getvalue()))
    (folder / "README").write_text("read me")
    assert load_system(folder) == expected


@pytest.mark.parametrize("empty", ["D", "E"])
def test_matlabs_empty_feedthrough_and_descriptor_matrices_are_none(tmp_path, empty):
    savemat(tmp_path / "s.mat", {"A": A, "B": B, "C": C, empty: np.zeros((0, 0))})
    assert load_system(tmp_path / "s.mat") == StateSpace(A, B, C)


def test_sparse_logical_and_empty_matrices_of_version_73_are_read(tmp_path):
    path = tmp_path / "s.mat"
    column = sparse.csc_array(A)
    with h5py.File(path, "w", userblock_size=512) as file:
        group = file.create_group("A")
        group.attrs["MATLAB_class"] = np.bytes_("double")
        group.attrs["MATLAB_sparse"] = np.uint64(2)
        for key, value in {"data": column.data, "ir": column.indices, "jc": column.indptr}.items():
            group.create_dataset(key, data=value)
        nothing = file.create_group("B")  # an all-zero sparse matrix has neither data nor ir
        nothing.attrs["MATLAB_sparse"] = np.uint64(2)
        nothing.create_dataset("jc", data=np.zeros(4, dtype=np.uint64))
        file.create_dataset("C", data=np.uint8([[1], [0]])).attrs["MATLAB_class"] = np.bytes_("logical")
        file.create_group("#refs#")
    assert load_system(path) == StateSpace(A, np.zeros((2, 3)), [[1, 0]])
    with h5py.File(path, "r+") as file:
        del file["C"]
        dataset = file.create_dataset("C", data=np.array([0, 2], dtype=np.uint64))
        dataset.attrs["MATLAB_empty"] = np.uint8(1)
    assert load_system(path).n_outputs == 0
    assert mat73.list_variables(path) == ["A", "B", "C"]


def test_version_73_files_carry_the_header_by_which_matlab_knows_them(tmp_path):
    save_system(SYSTEM, tmp_path / "s.mat", mat_version="7.3")
    head = (tmp_path / "s.mat").read_bytes()[:520]
    assert head.startswith(b"MATLAB 7.3 MAT-file")
    assert head[116:128] == bytes(8) + b"\x00\x02IM"
    assert head[512:] == b"\x89HDF\r\n\x1a\n"
    with h5py.File(tmp_path / "s.mat") as file:
        assert file["B"].shape == (3, 2)
        assert file["B"].attrs["MATLAB_class"] == b"double"
    with pytest.raises(NotImplementedError, match="HDF reader"):  # scipy recognises the version
        loadmat(tmp_path / "s.mat")


@pytest.mark.parametrize("mat_version", ["5", "7.3"])
def test_unusable_matrices_in_a_file_are_reported_with_file_and_name(tmp_path, mat_version):
    path = tmp_path / "s.mat"
    if mat_version == "5":
        savemat(path, {"A": A * 1j, "B": B, "C": C})
    else:
        with h5py.File(path, "w") as file:
            file["A"] = np.array([[(0.0, 1.0)]], dtype=[("real", "f8"), ("imag", "f8")])
            file["B"] = file["C"] = np.ones((1, 1))
    with pytest.raises(InvalidSystemError, match=r"s\.mat: A is complex.*A\.real"):
        load_system(path)
    with pytest.raises(InvalidSystemError, match=r"s\.mat: B has shape"):
        load_system(path, A=np.eye(3))


def test_matlab_cells_and_structs_are_not_matrices(tmp_path):
    savemat(tmp_path / "s.mat", {"A": {"field": 1.0}, "B": B, "C": C})
    with pytest.raises(InvalidSystemError, match=r"s\.mat: A is a struct, not a matrix"):
        load_system(tmp_path / "s.mat")
    with h5py.File(tmp_path / "t.mat", "w") as file:
        file.create_group("A")
        file["B"] = file["C"] = np.ones((1, 1))
    with pytest.raises(InvalidSystemError, match=r"t\.mat: A is of MATLAB class struct"):
        load_system(tmp_path / "t.mat")
    with h5py.File(tmp_path / "t.mat", "r+") as file:
        del file["A"]
        file.create_dataset("A", data=np.uint16([[65]])).attrs["MATLAB_class"] = np.bytes_("char")
    with pytest.raises(InvalidSystemError, match=r"A is of MATLAB class char"):
        load_system(tmp_path / "t.mat")


@pytest.mark.parametrize("missing", ["A", "B", "C"])
def test_a_missing_variable_is_named_and_the_others_listed(tmp_path, missing):
    matrices = {name: value for name, value in {"A": A, "B": B, "C": C, "hsv": B}.items() if name != missing}
    savemat(tmp_path / "s.mat", matrices)
    held = ", ".join(sorted(matrices))
    with pytest.raises(
        FileFormatError, match=rf"s\.mat has no {missing} \(it holds {held}\); give it: load_system\(path, {missing}="
    ):
        load_system(tmp_path / "s.mat")


@pytest.mark.parametrize(("name", "mat_version"), FORMATS[:3], ids=IDS[:3])
@pytest.mark.parametrize("keep", [0, 1, 100, 128, 300, 0.5, 0.9])
def test_truncated_files_are_refused_in_one_line(tmp_path, name, mat_version, keep):
    path = tmp_path / name
    save_system(SYSTEM, path, mat_version=mat_version)
    contents = path.read_bytes()
    path.write_bytes(contents[: keep if isinstance(keep, int) else int(keep * len(contents))])
    with pytest.raises(FileFormatError, match=r"cannot be read|has no [ABC]") as caught:
        load_system(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["s.mat", "s.npz", "s/A.mtx"])
@given(garbage=st.binary(max_size=300))
@settings(max_examples=n_examples(50), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_garbage_is_refused(tmp_path, name, garbage):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(garbage)
    with pytest.raises(FileFormatError):
        load_system(tmp_path / Path(name).parts[0])


class Exploit:
    def __reduce__(self):
        return Path.touch, (Path("executed"),)


def test_no_pickle_is_ever_loaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "s.npz", A=np.array([[Exploit()]], dtype=object), B=B, C=C)
    with pytest.raises(FileFormatError, match=r"s\.npz cannot be read: .*[Oo]bject array"):
        load_system(tmp_path / "s.npz")
    (tmp_path / "t.npz").write_bytes(pickle.dumps(Exploit()))
    with pytest.raises(FileFormatError, match=r"t\.npz cannot be read"):
        load_system(tmp_path / "t.npz")
    np.save(tmp_path / "u.npy", A)
    (tmp_path / "u.npy").rename(tmp_path / "u.npz")
    with pytest.raises(FileFormatError, match=r"single array \(\.npy\)"):
        load_system(tmp_path / "u.npz")
    assert not (tmp_path / "executed").exists()


def test_paths_that_lead_nowhere_are_refused_with_a_way_out(tmp_path):
    with pytest.raises(FileFormatError, match=r"there is no file .*none\.mat; check the name"):
        load_system(tmp_path / "none.mat")
    with pytest.raises(FileFormatError, match=r"has no A \(it holds nothing\)"):
        load_system(tmp_path)
    (tmp_path / "s.csv").write_text("1,2")
    with pytest.raises(FileFormatError, match=r"s\.csv is of an unknown kind; known are \.mat, \.npz"):
        load_system(tmp_path / "s.csv")
    (tmp_path / "A.mtx").write_text("")
    with pytest.raises(FileFormatError, match=r"A\.mtx is one matrix; pass the folder"):
        load_system(tmp_path / "A.mtx")
    (tmp_path / "A.mtx.gz").write_text("")
    with pytest.raises(FileFormatError, match=r"A twice, as A\.mtx and A\.mtx\.gz"):
        load_system(tmp_path)


def test_places_where_nothing_can_be_written_are_refused_with_a_way_out(tmp_path):
    with pytest.raises(FileFormatError, match=r"suffix '\.xyz'; known are \.mat, \.npz"):
        save_system(SYSTEM, tmp_path / "s.xyz")
    with pytest.raises(FileFormatError, match=r"there is no folder .*nowhere; create it first"):
        save_system(SYSTEM, tmp_path / "nowhere" / "s.mat")
    with pytest.raises(FileFormatError, match=r"mat_version must be .* got '6'"):
        save_system(SYSTEM, tmp_path / "s.mat", mat_version="6")
    (tmp_path / "plain").write_text("mine")
    with pytest.raises(FileFormatError, match=r"plain is a file.*pass another name"):
        save_system(SYSTEM, tmp_path / "plain")
    with pytest.raises(FileFormatError, match=r"holds other files \(plain, …\) and is not replaced"):
        save_system(SYSTEM, tmp_path)
    assert (tmp_path / "plain").read_text() == "mine"
    with pytest.raises(InvalidSystemError, match="not a system"):
        save_system("no system", tmp_path / "s.mat")


@pytest.mark.parametrize(("name", "mat_version"), FORMATS, ids=IDS)
def test_a_failure_halfway_leaves_what_was_there(tmp_path, monkeypatch, name, mat_version):
    save_system(SYSTEM, tmp_path / name, mat_version=mat_version)

    def disk_full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(atomic_files.os, "fsync", disk_full)
    with pytest.raises(FileFormatError, match=r"cannot be written: No space left on device; what was there.*unchanged"):
        save_system((A, B, C), tmp_path / name, mat_version=mat_version)
    assert load_system(tmp_path / name) == SYSTEM
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_a_folder_returns_when_the_new_one_cannot_take_its_place(tmp_path, monkeypatch):
    save_system(SYSTEM, tmp_path / "s")
    rename, calls = atomic_files.os.replace, []

    def second_rename_fails(source, target):
        calls.append(target)
        if len(calls) == 2:
            raise PermissionError("denied")
        rename(source, target)

    monkeypatch.setattr(atomic_files.os, "replace", second_rename_fails)
    with pytest.raises(FileFormatError, match="denied"):
        save_system((A, B, C), tmp_path / "s")
    assert load_system(tmp_path / "s") == SYSTEM


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "target.npz").write_bytes(b"")
    link = tmp_path / "link.npz"
    link.symlink_to(tmp_path / "target.npz")
    save_system(SYSTEM, link)
    assert link.is_symlink()
    assert load_system(tmp_path / "target.npz") == SYSTEM


def test_without_h5py_version_73_is_read_and_to_write_it_the_extra_is_named(tmp_path, monkeypatch):
    save_system(SYSTEM, tmp_path / "s.mat", mat_version="7.3")
    real_import = builtins.__import__

    def without_h5py(name, *args, **kwargs):
        if name == "h5py":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_h5py)
    assert load_system(tmp_path / "s.mat") == SYSTEM
    with pytest.raises(MissingDependencyError, match=r'pip install "ltinet\[hdf5\]"'):
        save_system(SYSTEM, tmp_path / "t.mat", mat_version="7.3")
    assert [entry.name for entry in tmp_path.iterdir()] == ["s.mat"]


def test_archives_are_plain_zip_files_of_arrays(tmp_path):
    save_system(SYSTEM, tmp_path / "s.npz")
    assert sorted(zipfile.ZipFile(tmp_path / "s.npz").namelist()) == ["A.npy", "B.npy", "C.npy", "D.npy"]
    assert sorted(npz.list_variables(tmp_path / "s.npz")) == ["A", "B", "C", "D"]
