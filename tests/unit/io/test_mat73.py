"""MATLAB 7.3 files: what the HDF5 library writes is read without it, and nothing outside of the file is touched."""

import io

import h5py
import numpy as np
import pytest
from scipy import sparse

from fuzz import hdf5_files
from ltinet.errors import FileFormatError, InvalidSystemError
from ltinet.files import load_system
from ltinet.io import mat73
from ltinet.io.file_access import SizeLimitError
from ltinet.io.hdf5_structure import fletcher32, lookup3

RNG = np.random.default_rng(0)
FORMS = ["earliest", "v108", ("earliest", "v108")]


@pytest.fixture
def written(tmp_path):
    def write(fill, **options):
        path = tmp_path / "s.mat"
        with h5py.File(path, "w", **{"userblock_size": 512} | options) as file:
            fill(file)
        return path

    return write


DATA = {
    "double": RNG.standard_normal((5, 7)),
    "single": RNG.standard_normal((5, 7)).astype(np.float32),
    "half": RNG.standard_normal((5, 7)).astype(np.float16),
    "big_endian": RNG.standard_normal((5, 7)).astype(">f8"),
    "big_integers": np.arange(6, dtype=">i4").reshape(2, 3),
    "number": np.float64(2.5),
    "vector": np.arange(5.0),
    "cube": RNG.standard_normal((3, 4, 5)),
} | {
    f"{sign}int{bits}": np.array([[1, 2], [3, 100]], f"{sign}int{bits}")
    for sign in ("u", "")
    for bits in (8, 16, 32, 64)
}


@pytest.mark.parametrize("libver", FORMS, ids=str)
@pytest.mark.parametrize("userblock", [0, 512])
def test_every_type_of_numbers_is_read_as_the_library_reads_it(written, libver, userblock):
    # Groups of many members have a form of their own in the newer version.
    names = list(DATA)[:4] + list(DATA)[-4:] if libver == "v108" else list(DATA)
    path = written(
        lambda file: [file.create_dataset(n, data=DATA[n]) for n in names], libver=libver, userblock_size=userblock
    )
    assert sorted(mat73.list_variables(path)) == sorted(names)
    for name, array in mat73.read(path, names).items():
        np.testing.assert_array_equal(array, DATA[name].T)
        assert array.dtype == np.asarray(DATA[name]).dtype.newbyteorder("=")


FILTERS = {
    "gzip": {"compression": "gzip"},
    "gzip and shuffle": {"compression": "gzip", "shuffle": True},
    "all": {"compression": 9, "shuffle": True, "fletcher32": True},
    "checksum": {"fletcher32": True},
    "shuffle": {"shuffle": True},
    "none": {},
}


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("libver", FORMS[:2])
@pytest.mark.parametrize(
    ("shape", "chunks"),
    [((5, 7), (2, 3)), ((200, 90), (5, 7)), ((3, 3), (10, 10)), ((7,), (3,)), ((3, 4, 5), (2, 2, 2))],
)
def test_chunks_are_put_together(written, name, shape, chunks, libver):
    """Small ones, so many that their tree has several levels, and ones larger than the matrix."""
    data = RNG.standard_normal(shape)
    maximum = (None,) * len(shape)
    path = written(
        lambda file: file.create_dataset("A", data=data, chunks=chunks, maxshape=maximum, **FILTERS[name]),
        libver=libver,
    )
    np.testing.assert_array_equal(mat73.read(path, ["A"])["A"], data.T)


def test_a_damaged_chunk_is_noticed_by_its_checksum(written):
    data = RNG.standard_normal((4, 4))
    path = written(lambda file: file.create_dataset("A", data=data, chunks=(4, 4), fletcher32=True))
    content = path.read_bytes()
    at = content.find(data.tobytes())
    path.write_bytes(content[:at] + b"\0" + content[at + 1 :])
    with pytest.raises(ValueError, match="checksum of a chunk"):
        mat73.read(path, ["A"])


def test_checksums_are_those_of_their_inventors():
    """Values that Bob Jenkins printed in lookup3.c, and Fletcher's sums by their definition."""
    assert lookup3(b"") == 0xDEADBEEF
    assert lookup3(b"Four score and seven years ago") == 0x17770551
    for size in (1, 2, 3, 720, 721, 5001):
        content = RNG.bytes(size)
        padded = content + bytes(size % 2)
        first = second = 0
        for k in range(0, len(padded), 2):
            first = (first + int.from_bytes(padded[k : k + 2], "big")) % 65535
            second = (second + first) % 65535
        assert fletcher32(content) in {
            (a << 16) | b for a in (second, second or 65535) for b in (first, first or 65535)
        }


def test_what_was_never_written_is_zero_unless_the_file_says_otherwise(written):
    def fill(file):
        file.create_dataset("A", (3, 3), "f8")
        file.create_dataset("B", (3, 3), "f8", chunks=(2, 2))[0, 0] = 1.0
        file.create_dataset("C", (3, 3), "f8", fillvalue=2.0)

    path = written(fill)
    np.testing.assert_array_equal(mat73.read(path, ["A"])["A"], np.zeros((3, 3)))
    np.testing.assert_array_equal(mat73.read(path, ["B"])["B"], np.diag([1.0, 0.0, 0.0]))
    with pytest.raises(ValueError, match="C has missing chunks with a fill value other than zero"):
        mat73.read(path, ["C"])


def test_groups_of_many_members_are_listed(written):
    names = [f"x{index}" for index in RNG.permutation(2000)]
    path = written(lambda file: [file.create_dataset(name, data=float(name[1:])) for name in names], libver="earliest")
    assert mat73.list_variables(path) == sorted(names)
    assert mat73.read(path, ["x7", "x1999"]) == {"x7": 7.0, "x1999": 1999.0}


def test_forms_that_matlab_does_not_write_are_named_with_the_way_out(written):
    path = written(lambda file: [file.create_dataset(f"x{index}", data=1.0) for index in range(20)], libver="v108")
    with pytest.raises(FileFormatError, match=r"write it with libver='earliest', or as version 7"):
        load_system(path)
    path = written(lambda file: file.create_dataset("A", data=np.eye(3), chunks=(2, 2)), libver="latest")
    with pytest.raises(FileFormatError, match=r"write it with libver='earliest', or as version 7"):
        load_system(path)
    path = written(lambda file: file.create_dataset("A", data=np.eye(3), chunks=(2, 2), compression="lzf"))
    with pytest.raises(FileFormatError, match=r"the filter 32000"):
        load_system(path)


def outside(tmp_path):
    """Another file, with a matrix that must not be read."""
    with h5py.File(tmp_path / "other.mat", "w") as file:
        file["A"] = 7.0 * np.eye(3)
    (tmp_path / "raw").write_bytes(np.full(9, 7.0).tobytes())


LINKS = {
    "a link by name": lambda file, _: file.__setitem__("A", h5py.SoftLink("/B")),
    "a link to nothing": lambda file, _: file.__setitem__("A", h5py.SoftLink("/nowhere")),
    "a link into another file": lambda file, folder: file.__setitem__(
        "A", h5py.ExternalLink(f"{folder}/other.mat", "/A")
    ),
    "external storage": lambda file, folder: file.create_dataset(
        "A", (3, 3), "f8", external=[(f"{folder}/raw", 0, 72)]
    ),
    "a virtual dataset": lambda file, folder: file.create_virtual_dataset("A", virtual(folder)),
}


def virtual(folder):
    layout = h5py.VirtualLayout((3, 3), "f8")
    layout[...] = h5py.VirtualSource(f"{folder}/other.mat", "A", (3, 3))
    return layout


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("libver", ["earliest", "v108", "latest"])
def test_nothing_outside_of_the_file_is_read(written, tmp_path, name, libver):
    outside(tmp_path)
    if name == "a virtual dataset" and libver != "latest":
        pytest.skip("they came later")

    def fill(file):
        file["B"] = file["C"] = np.eye(3)
        LINKS[name](file, tmp_path)

    path = written(fill, libver=libver)
    with h5py.File(path) as file:
        assert name == "a link to nothing" or file["A"].shape == (3, 3)  # the library follows it
    with pytest.raises(FileFormatError, match=r"not followed|in another file|a virtual dataset"):
        load_system(path)
    assert "A" in mat73.list_variables(path)


def test_no_room_is_made_for_what_a_few_bytes_claim(written):
    path = written(lambda file: file.create_dataset("A", (30_000, 30_000), "f8", chunks=(10, 10), compression="gzip"))
    assert path.stat().st_size < 10_000
    with pytest.raises(
        FileFormatError, match=r"A \(30000×30000\) its arrays take 7\.2 GB, and max_bytes allows 2\.147 GB"
    ):
        load_system(path)
    path = written(lambda file: file.create_dataset("A", (3, 3), "f8", chunks=(20_000, 20_000), maxshape=(None, None)))
    with pytest.raises(SizeLimitError, match="one of its chunks"):
        mat73.read(path, ["A"])
    path = written(lambda file: file.create_dataset("A", data=np.zeros((3, 3)), chunks=(3, 3), compression="gzip"))
    with h5py.File(path, "r+") as file:
        import zlib

        file["A"].id.write_direct_chunk((0, 0), zlib.compress(bytes(10**7)))
    with pytest.raises(ValueError, match="not compressed as it should be"):
        mat73.read(path, ["A"])


def sparse_file(rows, starts, n_rows=3, dtype=np.uint64, **more):
    def fill(file):
        group = file.create_group("A")
        group.attrs["MATLAB_sparse"] = np.uint64(n_rows)
        parts = {
            "data": np.arange(1.0, len(rows) + 1),
            "ir": np.array(rows, dtype),
            "jc": np.array(starts, dtype),
        } | more
        for key, value in parts.items():
            if value is not None:
                group.create_dataset(key, data=value)
        file["B"] = file["C"] = np.eye(3)

    return fill


def test_sparse_matrices_are_read(written):
    matrix = sparse.random_array((40, 30), density=0.1, random_state=3, format="csc")
    path = written(sparse_file(matrix.indices, matrix.indptr, n_rows=40, data=matrix.data))
    np.testing.assert_array_equal(mat73.read(path, ["A"])["A"].toarray(), matrix.toarray())


@pytest.mark.parametrize(
    ("rows", "starts", "more", "reason"),
    [
        ([0, 1, 3], [0, 1, 2, 3], {}, "row 4, column 3"),
        ([0, 1, 100], [0, 1, 2, 3], {}, "row 101, column 3"),
        ([0, 1, 2**63 - 1], [0, 1, 2, 3], {}, "column 3"),
        ([0, 1, 2**64 - 1], [0, 1, 2, 3], {}, "row 0, column 3"),
        ([0, 1, 2], [0, 1, 2, 2**40], {}, "its columns need"),
        ([0, 1, 2], [0, 2, 1, 3], {}, "invalid pointers"),
        ([0, 1, 2], [0, 2**63 - 1, 2**63 + 5, 3], {}, "invalid pointers"),
        ([0, 1, 2], [], {}, "invalid pointers|claims the shape"),
        ([0, 1, 2], [0, 1, 2, 3], {"ir": None}, "it lacks ir"),
        ([0, 1, 2], [0, 1, 2, 3], {"data": None}, "it lacks data"),
        ([0, 1, 2], [0, 1, 2, 3], {"jc": None}, "it lacks jc"),
        ([0, 1, 2], [0, 1, 2, 3], {"ir": np.array([0.0, 1.0, 2.0])}, "not a list of whole numbers"),
        ([0, 1, 2], [0, 1, 2, 3], {"jc": np.array([[0, 1], [2, 3]])}, "not a list of whole numbers"),
        ([0, 1, 2], [0, 1, 2, 3], {"ir": None, "data": None}, "0 entries, but its columns need 3"),
        ([0, 0, 2], [0, 2, 2, 3], {}, "two entries in row 1, column 1"),
    ],
)
def test_indices_of_sparse_matrices_are_checked_before_they_are_used(written, rows, starts, more, reason):
    with pytest.raises(FileFormatError, match=reason):
        load_system(written(sparse_file(rows, starts, **more)))


def test_what_is_no_matrix_is_called_by_its_name(written):
    def fill(file):
        file["B"] = file["C"] = np.eye(3)
        file.create_dataset("A", data=np.array([[(0.0, 1.0)]], dtype=[("real", "f8"), ("imag", "f8")]))
        file.create_group("struct").attrs["MATLAB_class"] = np.bytes_("struct")
        file.create_dataset("cells", data=[file["B"].ref], dtype=h5py.ref_dtype).attrs["MATLAB_class"] = np.bytes_(
            "cell"
        )
        file.create_dataset("lists", data=["text"])

    path = written(fill)
    for name, reason in {
        "A": "is complex",
        "struct": "class struct",
        "cells": "class cell",
        "lists": "holds lists",
    }.items():
        with pytest.raises(ValueError, match=f"{name} .*{reason}"):
            mat73.read(path, [name])
    with pytest.raises(InvalidSystemError, match=r"s\.mat: A is complex.*A\.real"):
        load_system(path)


GROUP_INFO, FILL, LAYOUT = b"\x0a\x02\x00\x01\x00\x00", b"\x05\x02\x00\x01\x03\x0a", b"\x08\x12\x00\x00\x03\x01"


@pytest.mark.parametrize(
    ("message", "place", "value", "reason"),
    [
        pytest.param(GROUP_INFO, 5, 0x40, "marks", id="a group with a mark that nobody knows"),
        pytest.param(GROUP_INFO, 5, 0x01, "shorter", id="a group whose mark promises more"),
        pytest.param(GROUP_INFO, 0, 0x0B, "version 0 of filters", id="a group with filters"),
        pytest.param(FILL, 5, 0x4A, "marks", id="a fill value with a mark that nobody knows"),
        pytest.param(FILL, 5, 0x3A, "marks", id="a fill value that is there and is not"),
        pytest.param(LAYOUT, 22, 2, "both a matrix and a group", id="a part of a sparse matrix that is a group"),
    ],
)
def test_marks_that_the_library_refuses_are_refused(tmp_path, message, place, value, reason):
    stream = io.BytesIO()
    with h5py.File(stream, "w", userblock_size=512, libver="v108") as file:
        hdf5_files.fill_sparse(file)
    data = bytearray(stream.getvalue())
    path = tmp_path / "s.mat"
    path.write_bytes(hdf5_files.with_checksums(bytes(data)))
    load_system(path)
    data[data.index(message) + place] = value
    path.write_bytes(hdf5_files.with_checksums(bytes(data)))
    with pytest.raises(FileFormatError, match=reason):
        load_system(path)


def test_every_cut_is_noticed(written):
    path = written(
        lambda file: [file.create_dataset(name, data=np.eye(3), chunks=(2, 2), compression="gzip") for name in "ABC"]
    )
    content = path.read_bytes()
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        with pytest.raises(FileFormatError):
            load_system(path)
