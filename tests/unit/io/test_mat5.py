"""MATLAB files of versions 4 and 5: what SciPy and MATLAB write is read, what would harm is refused by its reason."""

import io
import struct
import zlib

import numpy as np
import pytest
from scipy import sparse
from scipy.io import loadmat, savemat

from ltinet.errors import FileFormatError, InvalidSystemError, LtinetError
from ltinet.files import load_system
from ltinet.io import mat4, mat5
from ltinet.io.file_access import SizeLimitError

EYE = np.eye(3)
RNG = np.random.default_rng(0)


def element(kind, content):
    return struct.pack("<II", kind, len(content)) + content + bytes(-len(content) % 8)


def numbers(values, dtype="i4"):
    kinds = {"i4": 5, "u4": 6, "f8": 9}
    return element(kinds[dtype], np.array(values, dtype=f"<{dtype}").tobytes())


def matrix(name, *parts, shape=(3, 3), kind=6):
    """A variable, whatever its parts say."""
    inside = numbers([kind, 0], "u4") + numbers(shape) + element(1, name.encode("latin-1")) + b"".join(parts)
    return struct.pack("<II", 14, len(inside)) + inside


def dense(name, values):
    return matrix(name, numbers(np.ravel(values, order="F"), "f8"), shape=np.shape(values))


def packed(variable):
    content = zlib.compress(variable)
    return struct.pack("<II", 15, len(content)) + content


def file_of(*variables):
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + b"".join(variables)


def system_with(A):
    return file_of(A, dense("B", EYE), dense("C", EYE))


def sparse_A(rows, starts, data=(1.0, 2.0, 3.0)):
    return matrix("A", numbers(rows), numbers(starts), numbers(data, "f8"), kind=5)


@pytest.fixture
def load(tmp_path):
    def load_bytes(data, **options):
        (tmp_path / "s.mat").write_bytes(data)
        return load_system(tmp_path / "s.mat", **options)

    return load_bytes


def test_the_builder_builds(load):
    A = sparse_A([0, 1, 2], [0, 1, 2, 3])
    for data in (system_with(A), system_with(packed(A))):
        np.testing.assert_array_equal(load(data).A, np.diag([1.0, 2.0, 3.0]))
        np.testing.assert_array_equal(loadmat(io.BytesIO(data))["A"].toarray(), np.diag([1.0, 2.0, 3.0]))


INDICES = {
    "one row too far": ([0, 1, 3], [0, 1, 2, 3], "row 4, column 3"),
    "far away": ([0, 1, 100], [0, 1, 2, 3], "row 101, column 3"),
    "before the first row": ([0, 1, -1], [0, 1, 2, 3], "row 0, column 3"),
    "the last integer": ([0, 1, 2**31 - 1], [0, 1, 2, 3], "row 2147483648"),
    "columns that end behind the entries": ([0, 1, 2], [0, 1, 2, 4], "3 entries, but its columns need 4"),
    "columns that end far behind": ([0, 1, 2], [0, 1, 2, 2**31 - 1], "its columns need 2147483647"),
    "columns that go back": ([0, 1, 2], [0, 2, 1, 3], "invalid pointers"),
    "columns that begin late": ([0, 1, 2], [1, 1, 2, 3], "invalid pointers"),
    "columns that begin before": ([0, 1, 2], [-1, 1, 2, 3], "invalid pointers"),
    "too few columns": ([0, 1, 2], [0, 1, 3], "invalid pointers"),
    "no columns": ([0, 1, 2], [], "invalid pointers"),
    "too few rows": ([0, 1], [0, 1, 2, 3], "2 entries, but its columns need 3"),
    "one place twice": ([0, 0, 2], [0, 2, 2, 3], "two entries in row 1, column 1"),
}


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("pack", [lambda variable: variable, packed], ids=["plain", "compressed"])
def test_indices_of_sparse_matrices_are_checked_before_they_are_used(load, name, pack):
    rows, starts, reason = INDICES[name]
    with pytest.raises(FileFormatError, match=rf"s\.mat cannot be read: A .*{reason}"):
        load(system_with(pack(sparse_A(rows, starts))))


def test_room_behind_the_last_entry_is_not_looked_at(load):
    """MATLAB reserves more than it needs; what lies there may be anything."""
    system = load(system_with(sparse_A([0, 1, 99, -5], [0, 1, 2, 2], (1.0, 2.0, np.nan, 4.0))))
    np.testing.assert_array_equal(system.A, np.diag([1.0, 2.0, 0.0]))


def test_rows_within_a_column_may_come_in_any_order(load):
    system = load(system_with(sparse_A([2, 0, 1], [0, 2, 2, 3])))
    np.testing.assert_array_equal(system.A, [[2.0, 0.0, 0.0], [0.0, 0.0, 3.0], [1.0, 0.0, 0.0]])


def nested_cells(depth):
    """Cells in cells; SciPy follows them until the stack ends."""
    inside = matrix("", numbers([1.0], "f8"), shape=(1, 1))
    for _ in range(depth):
        inside = matrix("", inside, shape=(1, 1), kind=1)
    return matrix("cells", inside, shape=(1, 1), kind=1)


def test_nested_cells_are_passed_over(load):
    cells = nested_cells(20_000)
    data = file_of(cells, packed(cells), dense("A", EYE), dense("B", EYE), dense("C", EYE))
    with pytest.raises(FileFormatError, match="it holds cells twice"):
        load(data)
    assert load(file_of(packed(cells), dense("A", EYE), dense("B", EYE), dense("C", EYE))).n_states == 3


def test_what_is_no_matrix_is_called_by_its_name(load):
    for kind, title in {
        1: "a cell array",
        2: "a struct",
        3: "an object",
        4: "text",
        16: "a function",
        99: "of an unknown",
    }.items():
        with pytest.raises(InvalidSystemError, match=rf"s\.mat: A is {title}"):
            load(system_with(matrix("A", kind=kind)))


DAMAGES = {
    "numbers missing": matrix("A", numbers([1.0] * 8, "f8")),
    "numbers too many": matrix("A", numbers([1.0] * 10, "f8")),
    "no numbers": matrix("A"),
    "negative rows": matrix("A", numbers([1.0] * 9, "f8"), shape=(-3, 3)),
    "one axis": matrix("A", numbers([1.0] * 9, "f8"), shape=(9,)),
    "forty axes": matrix("A", numbers([1.0], "f8"), shape=(1,) * 40),
    "a sparse cube": matrix("A", numbers([0]), numbers([0, 0]), numbers([1.0], "f8"), shape=(1, 1, 1), kind=5),
    "text for numbers": matrix("A", element(16, b"a" * 72)),
    "half a number": matrix("A", element(9, b"a" * 71)),
    "a part longer than the whole": matrix("A", struct.pack("<II", 9, 2**31)),
    "a short part of ten bytes": matrix("A", struct.pack("<II", (10 << 16) | 9, 0)),
    "something behind it": matrix("A", numbers([1.0] * 9, "f8"), numbers([1.0], "f8")),
    "no variable": struct.pack("<II", 9, 72) + bytes(72),
    "half a variable": dense("A", EYE)[:-8],
    "half a tag": b"\x0e\x00",
    "twice": dense("A", EYE) + dense("A", EYE),
    "bad compression": struct.pack("<II", 15, 30) + b"x\x9c" + bytes(28),
    "compressed text": struct.pack("<II", 15, len(zlib.compress(bytes(99)))) + zlib.compress(bytes(99)),
    "compressed and cut off": packed(dense("A", RNG.standard_normal((3, 3))))[:-4],
    "compressed with a rest": packed(dense("A", EYE) + b"rest"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_one_clear_line(load, name):
    for data in (file_of(dense("B", EYE), dense("C", EYE), DAMAGES[name]), system_with(DAMAGES[name])):
        with pytest.raises(FileFormatError, match=r"s\.mat cannot be read: ") as caught:
            load(data)
        assert str(caught.value).isprintable()


def test_no_room_is_made_for_what_the_file_only_claims(load):
    huge = matrix("A", numbers([1.0], "f8"), shape=(30_000, 30_000))
    for data in (system_with(huge), system_with(packed(huge))):
        with pytest.raises(
            FileFormatError, match=r"A \(30000×30000\) its arrays take 7\.2 GB, and max_bytes allows 2\.147 GB"
        ):
            load(data)
        with pytest.raises(FileFormatError, match="A is 30000×30000 and has 1 numbers"):
            load(data, max_bytes=1e12)
    claimed = zlib.compress(struct.pack("<II", 14, 2**31) + matrix("A", shape=(100, 100))[8:])
    with pytest.raises(FileFormatError, match="too few for that"):
        load(system_with(struct.pack("<II", 15, len(claimed)) + claimed))


def test_a_bomb_is_not_inflated(load):
    """Sixty megabytes of zeros in as many kilobytes."""
    bomb = packed(dense("A", np.zeros((2700, 2700))))
    assert len(bomb) < 100_000
    with pytest.raises(FileFormatError, match=r"max_bytes allows 10 MB; .* max_bytes=60000000"):
        load(system_with(bomb), max_bytes=10**7)


def test_all_matrices_count_together(tmp_path):
    savemat(tmp_path / "s.mat", {"A": np.zeros((100, 100)), "B": np.zeros((100, 100)), "C": np.zeros((100, 100))})
    assert len(mat5.read(tmp_path / "s.mat", "ABC", max_bytes=240_000)) == 3
    with pytest.raises(SizeLimitError, match="with C"):
        mat5.read(tmp_path / "s.mat", "ABC", max_bytes=239_999)


@pytest.mark.slow
def test_names_are_shown_without_control_characters_and_not_all_of_them(load):
    many = b"".join(dense(f"\x1b[31m{index:05}", [[1.0]]) for index in range(2000))
    with pytest.raises(FileFormatError, match=r"has no A \(it holds \\x1b\[31m00000, .*… and 1990 more\)") as caught:
        load(file_of(many))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 700
    with pytest.raises(FileFormatError, match="more than 100000 variables"):
        load(file_of(b"".join(dense(f"{index:x}", np.zeros((0, 0))) for index in range(100_002))))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("head", [b"", b"x" * 127, b"MATLAB 5.0".ljust(128), b"MATLAB 5.0".ljust(124) + b"\x00\x03IM"])
def test_other_files_are_not_taken_for_it(load, head, order):
    with pytest.raises(FileFormatError, match=r"s\.mat cannot be read"):
        load(head + order.encode() * 200)


VARIABLES = {
    "double": RNG.standard_normal((4, 3)),
    "single": RNG.standard_normal((4, 3)).astype(np.float32),
    "logical": RNG.standard_normal((2, 2)) > 0,
    "cube": RNG.standard_normal((2, 3, 4)),
    "row": np.arange(5.0)[None],
    "nothing": np.zeros((0, 3)),
    "whole": np.arange(300.0)[:, None],
    "sparse": sparse.random_array((20, 30), density=0.1, random_state=1, format="csc"),
    "empty_sparse": sparse.csc_array((3, 4)),
} | {
    f"{sign}int{bits}": np.array([[1, 2], [3, 100]], dtype=f"{sign}int{bits}")
    for sign in ("u", "")
    for bits in (8, 16, 32, 64)
}


@pytest.mark.parametrize("compressed", [True, False])
def test_every_type_that_scipy_writes_is_read_as_scipy_reads_it(tmp_path, compressed):
    path = tmp_path / "s.mat"
    others = {"text": "hello", "cells": np.array([["a", 1.0]], dtype=object), "struct": {"a": {"b": 1.0}}}
    savemat(path, VARIABLES | others, do_compression=compressed)
    assert mat5.list_variables(path) == [*VARIABLES, *others, "struct.a"]
    expected, found = loadmat(path), mat5.read(path, VARIABLES)
    for name, value in found.items():
        assert sparse.issparse(value) == sparse.issparse(expected[name])
        ours, theirs = (x.toarray() if sparse.issparse(x) else x for x in (value, expected[name]))
        assert ours.shape == theirs.shape
        np.testing.assert_array_equal(ours, theirs)


def test_real_files_are_read_as_scipy_reads_them(data_dir):
    for path in sorted(data_dir.glob("*.mat")):
        if path.stem == "helicopter_v73":
            continue
        expected = {name: value for name, value in loadmat(path).items() if not name.startswith("__")}
        assert set(mat5.list_variables(path)) == set(expected)
        for name, value in mat5.read(path, expected).items():
            ours, theirs = (x.toarray() if sparse.issparse(x) else x for x in (value, expected[name]))
            np.testing.assert_array_equal(ours, theirs)


def test_version_4_is_read_as_scipy_reads_it(tmp_path):
    path = tmp_path / "s.mat"
    variables = {name: VARIABLES[name] for name in ("double", "single", "row", "sparse", "uint8", "int16", "int32")}
    savemat(path, variables | {"text": "hello"}, format="4")
    assert mat4.list_variables(path) == [*variables, "text"]
    expected, found = loadmat(path), mat4.read(path, variables)
    for name in variables:
        ours, theirs = (x.toarray() if sparse.issparse(x) else x for x in (found[name], expected[name]))
        np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(ValueError, match="text is text, not a matrix"):
        mat4.read(path, ["text"])


def version_4(rows, columns, content, *, code=0, name=b"A\0", imaginary=0):
    return struct.pack("<5i", code, rows, columns, imaginary, len(name)) + name + content


VERSION_4 = {
    "too short": version_4(3, 3, bytes(64)),
    "too large": version_4(2**31 - 1, 2**31 - 1, bytes(72)),
    "negative": version_4(-3, -3, bytes(72)),
    "no end of the name": version_4(1, 1, bytes(8), name=b"AA"),
    "no name": version_4(1, 1, bytes(8), name=b"\0"),
    "endless name": struct.pack("<5i", 0, 1, 1, 0, 2**31 - 1) + b"A\0",
    "unknown numbers": version_4(1, 1, bytes(8), code=90),
    "of a VAX": version_4(1, 1, bytes(8), code=2000),
    "sparse with two columns": version_4(1, 2, bytes(16), code=2),
    "sparse without a size": version_4(0, 3, b"", code=2),
    "sparse and too far": version_4(2, 3, np.array([4.0, 3, 1, 3, 1, 0]).tobytes(), code=2),
    "sparse at NaN": version_4(2, 3, np.array([np.nan, 3, 1, 3, 1, 0]).tobytes(), code=2),
    "sparse at a half": version_4(2, 3, np.array([1.5, 3, 1, 3, 1, 0]).tobytes(), code=2),
    "sparse and huge": version_4(1, 3, np.array([3e4, 3e4, 0.0]).tobytes(), code=2),
}


@pytest.mark.parametrize("name", VERSION_4)
def test_damaged_files_of_version_4_are_one_clear_line(load, name):
    with pytest.raises(LtinetError, match=r"s\.mat"):
        load(VERSION_4[name], B=EYE, C=EYE)
