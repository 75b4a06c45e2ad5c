"""Matrix Market text is read strictly: every entry is a number in its place, or the line that is not is named."""

import gzip
import io

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmread, mmwrite

from ltinet.errors import FileFormatError, InvalidSystemError
from ltinet.files import load_system, save_system
from ltinet.io import matrix_market

HEAD = "%%MatrixMarket matrix "
RNG = np.random.default_rng(0)


def read(folder, text, *, name="A.mtx", **options):
    content = text if isinstance(text, bytes) else text.encode()
    (folder / name).write_bytes(content)
    found = matrix_market.read(folder, ["A"], **options)["A"]
    return found.toarray() if sparse.issparse(found) else found


GOOD = {
    "dense": ("array real general\n2 3\n1\n2\n3\n4\n5\n6\n", [[1, 3, 5], [2, 4, 6]]),
    "numbers of every kind": ("array real general\n4 1\n-1.5e-3\n+2.\n.5\n1E2\n", [[-1.5e-3], [2], [0.5], [100]]),
    "comments and blank lines": ("array real general\n% one\n\n%two\n 1 \t2 \n\n3\n\n 4\t\n\n", [[3, 4]]),
    "lines as Windows ends them": ("array real general\r\n1 2\r\n3\r\n4\r\n", [[3, 4]]),
    "no end of the last line": ("array real general\n1 2\n3\n4", [[3, 4]]),
    "integers": ("array integer general\n1 2\n-3\n007\n", [[-3, 7]]),
    "symmetric": ("array real symmetric\n2 2\n1\n2\n3\n", [[1, 2], [2, 3]]),
    "skew": ("array real skew-symmetric\n3 3\n1\n2\n3\n", [[0, -1, -2], [1, 0, -3], [2, 3, 0]]),
    "sparse": ("coordinate real general\n2 3 2\n1 3 5\n2 1 -1\n", [[0, 0, 5], [-1, 0, 0]]),
    "pattern": ("coordinate pattern general\n2 2 2\n1 2\n2 1\n", [[0, 1], [1, 0]]),
    "sparse symmetric": ("coordinate real symmetric\n2 2 2\n1 1 4\n2 1 3\n", [[4, 3], [3, 0]]),
    "sparse skew": ("coordinate integer skew-symmetric\n2 2 1\n2 1 3\n", [[0, -3], [3, 0]]),
    "upper case": ("ARRAY Real GENERAL\n1 1\n2\n", [[2]]),
    "double and unsigned": ("array unsigned-integer general\n1 1\n2\n", [[2]]),
    "no rows": ("array real general\n0 3\n", np.zeros((0, 3))),
    "no columns": ("array real general\n3 0\n", np.zeros((3, 0))),
    "nothing": ("coordinate real general\n0 0 0\n", np.zeros((0, 0))),
    "no entries": ("coordinate real general\n2 2 0\n", np.zeros((2, 2))),
    "nothing skew": ("array real skew-symmetric\n0 0\n", np.zeros((0, 0))),
}


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzipped"])
def test_what_the_format_allows_is_read(tmp_path, name, packed):
    text, expected = GOOD[name]
    content = (HEAD + text).encode()
    found = read(tmp_path, gzip.compress(content) if packed else content, name="A.mtx.gz" if packed else "A.mtx")
    assert found.shape == np.shape(expected)
    np.testing.assert_array_equal(found, expected)


BAD = {
    "a word in a number": ("array real general\n1 1\n2abc\n", "line 3 is '2abc'"),
    "a decimal comma": ("array real general\n1 1\n-1,5\n", "line 3 is '-1,5'"),
    "a NUL": ("array real general\n1 1\n1\x002\n", r"line 3 is '1\\\\x002'"),
    "an escape": ("array real general\n1 1\n\x1b[2J\n", r"line 3 is '\\\\x1b\[2J'"),
    "not a number": ("array real general\n1 1\nnan\n", "line 3 is 'nan'"),
    "infinite": ("array real general\n1 1\ninf\n", "line 3 is 'inf'"),
    "underscores": ("array real general\n1 1\n1_0\n", "line 3 is '1_0'"),
    "Fortran's exponent": ("array real general\n1 1\n1d0\n", "line 3 is '1d0'"),
    "two on a line": ("array real general\n1 2\n1 2\n", "line 3 is '1 2', not one number|ends after 1"),
    "two signs": ("array real general\n1 1\n--1\n", "line 3 is '--1', not one number"),
    "half an exponent": ("array real general\n2 1\n1\n1e\n", "line 4 is '1e'"),
    "a point": ("array real general\n1 1\n.\n", "line 3 is '.'"),
    "a fraction as integer": ("array integer general\n1 1\n1.5\n", "line 3 is '1.5'"),
    "an integer without end": ("array integer general\n1 1\n" + "9" * 400 + "\n", "line 3 is '999"),
    "too few": ("array real general\n2 2\n1\n2\n3\n", "claims 4 entries, and ends after 3|too short"),
    "too many": ("array real general\n1 1\n1\n2\n", "claims 1 entries, and more follows"),
    "something after nothing": ("array real general\n0 0\n1\n", "claims 0 entries, and more follows"),
    "a comment among numbers": ("array real general\n1 1\n% here\n1\n", "line 3 is '% here'"),
    "negative size": ("array real general\n-1 1\n1\n", "line 2 is '-1 1', not the size"),
    "fractional size": ("array real general\n1.0 1\n1\n", "line 2 is '1.0 1', not the size"),
    "three sizes": ("array real general\n1 1 1\n1\n", "not the size"),
    "two sizes": ("coordinate real general\n1 1\n1 1 1\n", "not the size"),
    "no size": ("array real general\n", "ends before the size"),
    "only comments": ("array real general\n% a\n% b\n", "ends before the size"),
    "a size without end": ("array real general\n" + "9" * 30 + " 1\n", "not the size"),
    "symmetric but not square": ("array real symmetric\n1 2\n1\n", "it is symmetric, but 1×2"),
    "row 0": ("coordinate real general\n2 2 1\n0 1 1\n", "row 0, column 1"),
    "row beyond the last": ("coordinate real general\n2 2 1\n3 1 1\n", "row 3, column 1"),
    "column beyond the last": ("coordinate real general\n2 2 1\n1 9999999999 1\n", "column 9999999999"),
    "a row beyond all integers": ("coordinate real general\n2 2 1\n99999999999999999999 1 1\n", "line 3 is"),
    "an entry of four": ("coordinate real general\n2 2 1\n1 1 1 1\n", "line 3 is '1 1 1 1', not a row, a column and"),
    "an entry of two": ("coordinate real general\n2 2 2\n1 1 1\n2 2\n", "line 4 is '2 2'"),
    "a value in a pattern": ("coordinate pattern general\n2 2 1\n1 1 1\n", "not a row and a column"),
    "one place twice": ("coordinate real general\n2 2 2\n1 1 1\n1 1 2\n", "two entries in row 1, column 1"),
    "more entries than places": ("coordinate real general\n1 1 2\n1 1 1\n1 1 2\n", "1×1 and claims 2"),
    "above the diagonal": ("coordinate real symmetric\n2 2 1\n1 2 1\n", "outside the lower triangle"),
    "on the diagonal of a skew one": ("coordinate real skew-symmetric\n2 2 1\n1 1 1\n", "outside the lower triangle"),
    "a dense pattern": ("array pattern general\n1 1\n1\n", "array pattern general, which is not known"),
    "a vector": ("array quaternion general\n1 1\n1\n", "which is not known"),
    "a symmetry": ("array real circular\n1 1\n1\n", "which is not known"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzipped"])
def test_what_the_format_does_not_allow_is_named(tmp_path, name, packed):
    text, reason = BAD[name]
    content = (HEAD + text).encode()
    (tmp_path / ("A.mtx.gz" if packed else "A.mtx")).write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(FileFormatError, match=rf"cannot be read: A\.mtx[.gz]*: .*({reason})") as caught:
        load_system(tmp_path, B=[[1.0]], C=[[1.0]])
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("line", ["", "hello", "%%MatrixMarket", "%%MatrixMarket vector array real general", "\0"])
def test_other_texts_are_not_taken_for_it(tmp_path, line):
    with pytest.raises(ValueError, match=r"first line|not known here"):
        read(tmp_path, line + "\n1 1\n1\n")


def test_complex_matrices_are_told_of(tmp_path):
    (tmp_path / "A.mtx").write_text(HEAD + "array complex general\n1 1\n1 0\n")
    with pytest.raises(InvalidSystemError, match=r"A is complex.*A\.real"):
        load_system(tmp_path, B=[[1.0]], C=[[1.0]])


def test_no_room_is_made_for_what_a_line_claims(tmp_path):
    (tmp_path / "A.mtx").write_text(HEAD + "coordinate real general\n300000000 300000000 1\n1 1 1\n")
    with pytest.raises(
        FileFormatError, match=r"A \(300000000×300000000, sparse\) its arrays take 14\.4 GB.*max_bytes=2"
    ):
        load_system(tmp_path, B=[[1.0]], C=[[1.0]])
    for layout, sizes in {"array": "9000 9000", "coordinate": "9000 9000 80000000"}.items():
        (tmp_path / "A.mtx").write_text(HEAD + f"{layout} real general\n{sizes}\n1\n")
        with pytest.raises(FileFormatError, match="the file is too short"):
            load_system(tmp_path, B=[[1.0]], C=[[1.0]])


@pytest.mark.slow
def test_bombs_of_blank_lines_and_comments_are_not_read_to_their_end(tmp_path):
    head = (HEAD + "array real general\n").encode()
    for content in (
        head + b"%\n" * 10**7,
        head + b"1 1\n1\n" + b"\n" * 10**7,
        head + b"%" * 10**7,
        HEAD.encode() * 10**6,
    ):
        (tmp_path / "A.mtx.gz").write_bytes(gzip.compress(content))
        with pytest.raises(ValueError, match=r"comments|more follows|a line of more than|first line"):
            matrix_market.read(tmp_path, ["A"])


def test_gzipped_text_may_come_in_parts_but_must_be_whole(tmp_path):
    text = (HEAD + "array real general\n1 2\n3\n4\n").encode()
    whole = gzip.compress(text)
    assert read(tmp_path, gzip.compress(text[:20]) + gzip.compress(text[20:]), name="A.mtx.gz").tolist() == [[3, 4]]
    for damaged in (whole[:-1], whole[:20], b"", whole[:-8] + bytes(8), whole + b"more", text, whole + whole):
        with pytest.raises(Exception, match=r"A\.mtx\.gz"):
            read(tmp_path, damaged, name="A.mtx.gz")


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize("form", [np.asarray, sparse.coo_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.uint8])
def test_what_scipy_writes_is_read_as_scipy_reads_it(tmp_path, symmetry, form, dtype):
    matrix = np.round(10 * RNG.random((30, 30))).astype(dtype)
    matrix[RNG.random((30, 30)) < 0.5] = 0
    if symmetry != "general":
        if symmetry == "skew-symmetric" and dtype == np.uint8:
            pytest.skip("there are no negative ones")
        matrix = np.tril(matrix, -1 if symmetry == "skew-symmetric" else 0)
        matrix = matrix + (-1 if symmetry == "skew-symmetric" else 1) * np.tril(matrix, -1).T
    stream = io.BytesIO()
    mmwrite(stream, form(matrix), symmetry=symmetry, precision=17 if dtype == np.float64 else None)
    expected = mmread(io.BytesIO(stream.getvalue()))
    np.testing.assert_array_equal(
        read(tmp_path, stream.getvalue()), expected.toarray() if form is not np.asarray else expected
    )


@pytest.mark.slow
def test_many_portions_are_read_as_one(tmp_path):
    """Text is taken in portions of a megabyte, which end anywhere."""
    matrix = RNG.standard_normal((400, 400))
    save_system((matrix, np.zeros((400, 0)), np.zeros((0, 400))), tmp_path / "folder")
    assert (tmp_path / "folder" / "A.mtx").stat().st_size > 2 << 20
    np.testing.assert_array_equal(matrix_market.read(tmp_path / "folder", ["A"])["A"], matrix)
    entries = matrix.tolist()  # of which repr() is the number alone
    numbers = "\n".join(f"{i + 1} {j + 1} {entries[i][j]!r}" for i in range(400) for j in range(400))
    text = HEAD + f"coordinate real general\n400 400 160000\n{numbers}\n"
    np.testing.assert_array_equal(read(tmp_path, text), matrix)
    wrong = text.replace(f"400 400 {entries[399][399]!r}", "400 400 x")
    with pytest.raises(ValueError, match="line 160002 is '400 400 x'"):
        read(tmp_path, wrong)
