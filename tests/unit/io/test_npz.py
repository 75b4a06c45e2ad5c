"""NumPy's archives: what NumPy writes is read, and nothing that an archive says of itself is believed."""

import io
import struct
import zipfile
import zlib

import numpy as np
import pytest

from ltinet.errors import FileFormatError, InvalidSystemError
from ltinet.files import load_system
from ltinet.io import npz
from ltinet.io.file_access import SizeAllowance

RNG = np.random.default_rng(0)
ARRAYS = {
    "c_order": RNG.standard_normal((4, 3)),
    "fortran_order": np.asfortranarray(RNG.standard_normal((4, 3))),
    "big_endian": RNG.standard_normal((4, 3)).astype(">f8"),
    "single": RNG.standard_normal((4, 3)).astype(np.float32),
    "half": RNG.standard_normal((4, 3)).astype(np.float16),
    "complex": np.array([[1j]]),
    "boolean": np.array([[True, False]]),
    "integers": np.arange(6, dtype=">i2").reshape(2, 3),
    "unsigned": np.arange(6, dtype=np.uint64),
    "number": np.array(3.5),
    "vector": np.arange(5.0),
    "cube": RNG.standard_normal((2, 3, 4)),
    "nothing": np.zeros((0, 3)),
}


def saved(save=np.savez, **arrays):
    stream = io.BytesIO()
    save(stream, **arrays)
    return stream.getvalue()


def array_file(header, content=bytes(72), version=(1, 0)):
    """An array as NumPy writes it, whatever its header says."""
    text = header.encode("latin-1")
    size = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + size + text + content


def archive(**members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return stream.getvalue()


@pytest.fixture
def load(tmp_path):
    def load_bytes(data, **options):
        (tmp_path / "s.npz").write_bytes(data)
        return load_system(tmp_path / "s.npz", **{"B": np.eye(3), "C": np.eye(3)} | options)

    return load_bytes


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_every_array_of_numbers_is_read_as_numpy_reads_it(tmp_path, save):
    path = tmp_path / "s.npz"
    path.write_bytes(saved(save, **ARRAYS))
    assert npz.list_variables(path) == list(ARRAYS)
    for name, array in npz.read(path, ARRAYS).items():
        assert array.shape == ARRAYS[name].shape
        assert array.dtype == ARRAYS[name].dtype
        np.testing.assert_array_equal(array, ARRAYS[name])


HEADERS = {
    "fewer rows than numbers": "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }",
    "more rows than numbers": "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 3), }",
    "a negative row": "{'descr': '<f8', 'fortran_order': False, 'shape': (-3, 3), }",
    "rows in words": "{'descr': '<f8', 'fortran_order': False, 'shape': (True, 3), }",
    "rows with a zero before": "{'descr': '<f8', 'fortran_order': False, 'shape': (03, 3), }",
    "a number as shape": "{'descr': '<f8', 'fortran_order': False, 'shape': (9), }",
    "two shapes": "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 3), 'shape': (9, 1), }",
    "no shape": "{'descr': '<f8', 'fortran_order': False, }",
    "more keys": "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 3), 'more': 1, }",
    "no comma": "{'descr': '<f8' 'fortran_order': False, 'shape': (3, 3), }",
    "code": "{'descr': __import__('os'), 'fortran_order': False, 'shape': (3, 3), }",
    "deep": "(" * 5000,
    "many signs": "{'descr': " + "-" * 9000 + "1}",
    "nothing": "",
    "a blank of another alphabet": "{'descr': '<f8', 'fortran_order': False, 'shape': (3,\xa03), }",
    "native order": "{'descr': '=f8', 'fortran_order': False, 'shape': (3, 3), }",
    "an object": "{'descr': '|O', 'fortran_order': False, 'shape': (3, 3), }",
}


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)], ids=str)
def test_headers_that_lie_or_are_none_are_refused(load, name, version):
    with pytest.raises((FileFormatError, InvalidSystemError), match=r"s\.npz.* A "):
        load(archive(A=array_file(HEADERS[name], version=version)))


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)], ids=str)
def test_headers_as_other_programs_write_them_are_read(load, version):
    header = "{\"shape\":(3,3,) ,\n 'fortran_order' : True,'descr':'<f8'}"
    content = np.arange(9.0).tobytes()
    np.testing.assert_array_equal(
        load(archive(A=array_file(header, content, version))).A, np.arange(9.0).reshape(3, 3).T
    )


def test_lengths_of_python_2_are_read(load):
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (3L, 3L), }"
    np.testing.assert_array_equal(
        load(archive(A=array_file(header, np.arange(9.0).tobytes()))).A, np.arange(9.0).reshape(3, 3)
    )


def test_header_longer_than_its_array_is_refused(load):
    content = bytearray(array_file("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3), }", b""))
    assert npz.parse_array(bytes(content), "A", SizeAllowance(1000)).shape == (0, 3)
    content[8] += 1
    with pytest.raises(FileFormatError, match="the header of A is not that of an array"):
        load(archive(A=bytes(content)))


@pytest.mark.parametrize("dtype", ["|S3", "<U3", "<M8[s]", "<f16", "<c32", "|V8"])
def test_types_that_are_no_real_numbers_are_named(load, dtype):
    with pytest.raises(InvalidSystemError, match=r"s\.npz: A has (the type|numbers of type)"):
        load(archive(A=array_file(f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': (3, 3), }}")))
    with pytest.raises(InvalidSystemError, match=r"s\.npz: A is a table"):
        load(archive(A=array_file("{'descr': [('x', '<f8')], 'fortran_order': False, 'shape': (9,), }")))


def test_what_is_neither_true_nor_false_is_refused(load):
    """NumPy takes such a byte for a number here and for true there."""
    header = "{'descr': '|b1', 'fortran_order': False, 'shape': (3, 3), }"
    assert load(archive(A=array_file(header, bytes([0, 1] * 4 + [1])))).A.sum() == 5
    with pytest.raises(FileFormatError, match="neither true nor false"):
        load(archive(A=array_file(header, bytes([0, 1] * 4 + [2]))))


def test_no_room_is_made_for_what_an_archive_claims(load):
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (30000, 30000), }"
    with pytest.raises(
        FileFormatError, match=r"A \(30000×30000\) its arrays take 7\.2 GB, and max_bytes allows 2\.147 GB"
    ):
        load(archive(A=array_file(header)))
    for shape in ("(0, 99999999999999)", "(9999999999, 9999999999, 0)"):  # nothing in them, but NumPy multiplies all
        with pytest.raises(FileFormatError, match=r"max_bytes"):
            load(archive(A=array_file(header.replace("(30000, 30000)", shape), b"")))


def test_a_bomb_is_not_inflated(load):
    """Eighty megabytes of zeros in as many kilobytes."""
    bomb = saved(np.savez_compressed, A=np.zeros((3200, 3200)))
    assert len(bomb) < 100_000
    with pytest.raises(FileFormatError, match=r"A its arrays take 81\.92 MB, and max_bytes allows 10 MB"):
        load(bomb, max_bytes=10**7)


WHOLE = saved(np.savez_compressed, A=np.diag([1.0, 2.0, 3.0]))
DIRECTORY = WHOLE.find(b"PK\1\2")
END = WHOLE.find(b"PK\5\6")


def changed(position, form, value):
    data = bytearray(WHOLE)
    struct.pack_into(form, data, position, value)
    return bytes(data)


ARCHIVES = {
    "cut off": WHOLE[:-1],
    "with something behind": WHOLE + b"x",
    "with something before": b"x" + WHOLE,
    "another count of members": changed(END + 10, "<H", 2),
    "another size of the list": changed(END + 12, "<I", 7),
    "another place of the list": changed(END + 16, "<I", 7),
    "one of several parts": changed(END + 4, "<H", 1),
    "a comment that is not there": changed(END + 20, "<H", 9),
    "encrypted": changed(DIRECTORY + 8, "<H", 1),
    "another packing": changed(DIRECTORY + 10, "<H", 12),
    "another checksum": changed(DIRECTORY + 16, "<I", 0),
    "compressed to less": changed(DIRECTORY + 20, "<I", 20),
    "compressed to more": changed(DIRECTORY + 20, "<I", 10**6),
    "shorter": changed(DIRECTORY + 24, "<I", 100),
    "longer": changed(DIRECTORY + 24, "<I", 201),
    "far longer": changed(DIRECTORY + 24, "<I", 2**32 - 2),
    "longer than 32 bits, without saying": changed(DIRECTORY + 24, "<I", 2**32 - 1),
    "a name without end": changed(DIRECTORY + 28, "<H", 60_000),
    "a longer comment": changed(DIRECTORY + 32, "<H", 1),
    "another place": changed(DIRECTORY + 42, "<I", 1),
    "a place behind the end": changed(DIRECTORY + 42, "<I", 10**6),
    "no list": WHOLE.replace(b"PK\1\2", b"PK\1\3"),
    "no member": WHOLE.replace(b"PK\3\4", b"PK\3\5"),
    "a NUL in the name": WHOLE.replace(b"A.npy", b"A.np\0"),
    "another name": WHOLE.replace(b"A.npy", b"B.npy", 1),
    "no end": WHOLE[:END],
    "nothing": b"",
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_archives_that_contradict_themselves_are_refused(load, name):
    assert load(WHOLE).n_states == 3
    with pytest.raises(FileFormatError, match=r"s\.npz cannot be read"):
        load(ARCHIVES[name])


def test_archives_with_a_comment_are_read(load):
    assert load(changed(END + 20, "<H", 4) + b"text").n_states == 3


def test_a_member_that_is_there_twice_is_refused(load):
    stream = io.BytesIO()
    content = array_file("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 3), }")
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("A.npy", content)
        with pytest.warns(UserWarning, match="Duplicate name"):
            file.writestr("A.npy", content)
    with pytest.raises(FileFormatError, match="it holds A twice"):
        load(stream.getvalue())


def test_numbers_beyond_32_bits_are_read_from_their_own_field(load):
    """As archives beyond 4 GB have them; Python's reader says that this one is right."""
    content = array_file("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 3), }", np.arange(9.0).tobytes())
    local = struct.pack("<4s5H3I2H", b"PK\3\4", 45, 0, 0, 0, 0, zlib.crc32(content), *[2**32 - 1] * 2, 5, 0) + b"A.npy"
    extra = struct.pack("<HHQQQ", 1, 24, len(content), len(content), 0)
    sizes = [2**32 - 1] * 2
    head = (b"PK\1\2", 45, 45, 0, 0, 0, 0, zlib.crc32(content), *sizes, 5, len(extra), 0, 0, 0, 0, 2**32 - 1)
    entry = struct.pack("<4s6H3I5H2I", *head) + b"A.npy" + extra
    start = len(local) + len(content)
    record = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, len(entry), start)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, start + len(entry), 1)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 2**32 - 1, 2**32 - 1, 0)
    data = local + content + entry + record + locator + end
    assert zipfile.ZipFile(io.BytesIO(data)).read("A.npy") == content
    np.testing.assert_array_equal(load(data).A, np.arange(9.0).reshape(3, 3))
    for position in (start + 60, start + len(entry) + 30, start + len(entry) + 60):
        damaged = bytearray(data)
        damaged[position] ^= 0x40
        with pytest.raises(FileFormatError):
            load(bytes(damaged))


def test_names_of_arrays_are_shown_without_control_characters(load):
    with pytest.raises(FileFormatError, match=r"it holds \\x1b\[31mred") as caught:
        load(archive(**{"\x1b[31mred": array_file("")}))
    assert str(caught.value).isprintable()
