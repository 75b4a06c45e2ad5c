"""Sparse models go through every format as they are, and small files do not make large arrays of them."""

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite, savemat

from ltinet import FileFormatError, InvalidSystemError, StateSpace, as_state_space, load_system, save_system
from ltinet.systems.sparse_descriptor import MAX_DENSE_STATES

N = MAX_DENSE_STATES + 400  # beyond what is filled in: whatever tried would fail
TARGETS = {"s.mat": {}, "s73.mat": {"mat_version": "7.3"}, "s.npz": {}, "folder": {}}


def model(**more):
    rng = np.random.default_rng(8)
    A = sparse.random_array((N, N), density=1.0 / N, random_state=rng) - sparse.eye_array(N)
    return StateSpace(A, np.eye(N, 2), np.eye(1, N, 5), [[1.0, 1e-300]], **more)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(
    "more", [{}, {"E": sparse.diags_array(np.arange(1.0, N + 1.0)), "dt": 0.25}], ids=["A", "A, E, dt"]
)
def test_every_format_keeps_every_bit_of_a_sparse_model(tmp_path, name, more):
    if "73" in name:
        pytest.importorskip("h5py")
    system = model(**more)
    save_system(system, tmp_path / name, **TARGETS[name])
    again = load_system(tmp_path / name)
    assert again == system
    assert again.sparse.n_nonzeros == system.sparse.n_nonzeros
    assert (again.sparse.E is None) == (system.sparse.E is None)


def test_a_sparse_matrix_of_whole_numbers_and_one_without_entries(tmp_path):
    A = sparse.csc_array(-np.eye(3, dtype=np.int16))
    savemat(tmp_path / "s.mat", {"A": A, "B": np.ones((3, 1)), "C": sparse.csc_array((1, 3)), "E": sparse.csc_array(A)})
    system = load_system(tmp_path / "s.mat")
    assert system.sparse.A.dtype == np.float64
    assert system.poles().tolist() == [1.0, 1.0, 1.0]
    empty = StateSpace(sparse.csr_array((4, 4)), np.ones(4), np.ones(4))
    for name, options in TARGETS.items():
        save_system(empty, tmp_path / f"empty{name}", **options)
        assert load_system(tmp_path / f"empty{name}") == empty


def test_sparse_inputs_and_outputs_that_are_filled_in_count_as_arrays(tmp_path):
    wide = sparse.csc_array((N, 10**6))
    savemat(tmp_path / "s.mat", {"A": sparse.eye_array(N), "B": wide, "C": np.ones((1, N))}, do_compression=True)
    assert (tmp_path / "s.mat").stat().st_size < 200_000
    with pytest.raises(FileFormatError, match=rf"B \({N}×1000000\) its arrays take 27.* GB"):
        load_system(tmp_path / "s.mat")


def test_a_D_that_is_left_out_counts_as_well(tmp_path):
    many = 2**26 + 1
    matrices = {"A": sparse.eye_array(3), "B": np.ones((3, 2)), "C": sparse.csc_array((many, 3))}
    savemat(tmp_path / "s.mat", matrices)
    with pytest.raises(FileFormatError, match=rf"D \({many}×2\) its arrays take 2\.684 GB"):
        load_system(tmp_path / "s.mat")
    with pytest.raises(FileFormatError, match=rf"D \({many}×1\) its arrays take"):
        load_system(tmp_path / "s.mat", B=np.ones((3, 1)), max_bytes=2_000_000_000)


def test_a_dense_A_has_its_sparse_E_filled_in(tmp_path):
    (tmp_path / "m").mkdir()
    mmwrite(tmp_path / "m" / "A.mtx", -np.eye(3))
    mmwrite(tmp_path / "m" / "E.mtx", sparse.coo_array(2.0 * np.eye(3)))
    system = load_system(tmp_path / "m", B=np.ones(3), C=np.ones(3))
    assert system.sparse is None
    assert system.poles().tolist() == [-0.5, -0.5, -0.5]


PARTS = {"A.data": [1.0, 2.0], "A.indices": [0, 1], "A.indptr": [0, 1, 2], "A.shape": [2, 2]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A.indices": [0, 7]}, "an entry in row 8, column 2"),
        ({"A.indices": [0, -1]}, "an entry in row 0"),
        ({"A.indptr": [0, 1, 9]}, "its columns need 9"),
        ({"A.indptr": [0, 2, 1]}, "invalid pointers"),
        ({"A.indices": [0.0, 1.0]}, "A.indices is not a list of whole numbers"),
        ({"A.shape": [2, 2, 2]}, "not a sparse matrix"),
        ({"A.shape": [2, -2]}, "claims the shape"),
        ({"A.shape": [10**9, 10**9]}, "max_bytes allows"),
        ({"A.indptr": None}, "has no A"),
        ({"A.data": [1j, 2.0]}, "complex"),
    ],
)
def test_damaged_sparse_matrices_of_archives_are_refused(tmp_path, change, message):
    arrays = {name: np.array(own) for name, own in (PARTS | change).items() if own is not None}
    np.savez(tmp_path / "s.npz", B=np.ones((2, 1)), C=np.ones((1, 2)), **arrays)
    with pytest.raises((FileFormatError, InvalidSystemError), match=message):
        load_system(tmp_path / "s.npz")


def test_models_of_pymor_stay_sparse():
    iosys = pytest.importorskip("pymor.models.iosys")
    A, E = -sparse.eye_array(N, format="csc"), 2.0 * sparse.eye_array(N, format="csc")
    model = iosys.LTIModel.from_matrices(sparse.csc_matrix(A), np.eye(N, 1), np.eye(1, N), E=sparse.csc_matrix(E))
    system = as_state_space(model)
    assert system.sparse.n_nonzeros == N
    assert np.array_equal(system.frequency_response([0.0]), [[[1.0]]])
