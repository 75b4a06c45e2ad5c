"""Hypothesis: a CSV file is read exactly or refused with the line and column at fault; what is written reads back."""

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ltinet import FileFormatError, read_table
from ltinet.export.sample_files import write_csv

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(table=arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 4)), elements=FINITE))
def test_every_bit_comes_back(table: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "bits.csv"
    table[:, 0] = np.arange(len(table)) / 3.0
    write_csv(path, table[:, 0], table[:, 1:])
    read = read_table(path)
    assert np.column_stack([read.t, read.values]).tobytes() == table.tobytes()


@pytest.mark.parametrize(
    "content",
    [
        b"t,a,b\n0,1,2\n0.5,-3e2,4\n",
        b"\xef\xbb\xbft,a,b\r\n0,1,2\r\n0.5,-3e2,4\r\n",  # a spreadsheet's
        b"Time;a;b\n0;1;2\n0.5;-3e2;4",
        b"time [s]\ta\tb\n0\t1\t2\n0.5\t-3e2\t4\n",
        b"# t,a,b\n0,1,2\n0.5,-3e2,4\n",  # numpy.savetxt
        b'"t", "a" ,b\n\n 0 , 1,"2"\n   \n0.5,-300,+4.0\n\n',
        b"t,a,b\r0,1,2\r0.5,-3e2,4\r",
        b"t a b\n0 1 2\n0.5  -3e2 4\n",
        b"a,t,b\n1,0,2\n-3e2,0.5,4\n",
        b"t;a;b\n0,0;1;2\n0,5;-3e2;4,00\n",
        b"Zeit;a;b\nms;V;A\n0;1;2\n500;-3e2;4\n",
        b"% a rig\n% 2024\nTime (min),a,b\n0,1,2\n# in between\n0.008333333333333333,-3e2,4\n",
        b"t;a;b;\n0;1;2;\n0.5;-3e2;4;\n;;;\n",
    ],
    ids=[
        "plain",
        "BOM and CRLF",
        "semicolons",
        "tabs and a unit",
        "comment sign",
        "spaces and quotes",
        "CR",
        "blanks",
        "time in the middle",
        "decimal commas",
        "units",
        "comments",
        "trailing delimiters",
    ],
)
def test_what_programs_write_is_read(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_bytes(content)
    read = read_table(tmp_path / "u.csv")
    np.testing.assert_array_equal(read.t, [0.0, 0.5])
    np.testing.assert_array_equal(read.values, [[1.0, 2.0], [-300.0, 4.0]])


def test_times_alone_are_a_table_without_inputs(tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_text("t\n0\n1\n")
    read = read_table(tmp_path / "u.csv")
    assert (read.t.tolist(), read.values.shape) == ([0.0, 1.0], (2, 0))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"t,u\n", "no samples"),
        (b"0,1\n1,2\n", "no header"),
        (b"x,u\n0,1\n", "first column is called 'x'"),
        (b"t,time,u\n0,0,1\n", "2 time columns"),
        (b"t,u,\n0,1,2\n", "column 3 has no name"),
        (b"t,u\n0,1\n1,abc\n", "line 3, column 'u': 'abc' is not a real number"),
        (b"t,u\n\n0,1\n\nx,2\n", "line 5, column 't': 'x'"),
        (b"t,u\n0,1+2j\n", "is not a real number"),
        (b"t,u\n0,\n", "line 2, column 'u': the cell is empty"),
        (b"t,u,v\n0,1\n", "line 2 has 2 cells but the header has 3"),
        (b"t,u\n0,5,1\n", 'delimiter=";"'),
        (b"t,u\n0,nan\n", "line 2, column 'u': 'nan' is no number"),
        (b"t,u\n0,1\n1,1e999\n", "line 3, column 'u': the number is not finite"),
        (b"t,u\n0,1_000\n", "'1_000' is not a real number"),
        (b't,u\n0,"1\n2,3\n', "not CSV"),
        ("t,u\n0,1\n".encode("utf-16"), "not text in UTF-8"),
        (b"t,u\n0,\x001\n", "line 2"),
        (b"t,u\n0," + b"x" * 1000 + b"\n", "x…' is not"),
    ],
)
def test_what_is_wrong_is_named(content: bytes, expected: str) -> None:
    with pytest.raises(FileFormatError) as caught:
        read_table(io.BytesIO(content))
    assert str(caught.value).startswith("the stream")
    assert expected in str(caught.value)
    assert len(str(caught.value)) < 320
