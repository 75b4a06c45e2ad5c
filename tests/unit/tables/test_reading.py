"""Hypothesis: a CSV file is read exactly or refused with the line and column at fault; what is written reads back."""

import io
from datetime import UTC, datetime, timedelta
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


def test_table_without_values(tmp_path: Path) -> None:
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
        (b"t,u\n0,nan\n", "line 2, column 'u': 'nan' is not a number"),
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


@pytest.mark.parametrize(
    ("content", "options", "t", "values"),
    [
        (b"Zeit;2020;2021\n0;1;2\n1;3;4\n", {"header": True}, [0, 1], [[1, 2], [3, 4]]),
        (b"0,1,2\n0,5,6\n1,7,8\n", {"header": True, "time": 1}, [0, 1], [[5, 6], [7, 8]]),
        (b"0,5,6\n1,7,8\n", {"header": False, "time": 1, "columns": 3}, [0, 1], [[6], [8]]),
        (b"a,t\n5,0\n6,1\n", {"time": "T"}, [0, 1], [[5], [6]]),
        (b"t,s,u\n0,ok,1\n1,ok,2\n", {"columns": ["u"]}, [0, 1], [[1], [2]]),
        (b"t;u\n0;1,234\n1;2,345\n", {"decimal": ","}, [0, 1], [[1.234], [2.345]]),
        (b"t;u\n0;1,234\n1;2,345\n", {"thousands": ","}, [0, 1], [[1234], [2345]]),
        (b"t;u\n0;1.234,5\n1;1\n", {"thousands": "."}, [0, 1], [[1234.5], [1]]),
        (b"t;u\n0;1'234.5\n1;1\n", {"thousands": "'"}, [0, 1], [[1234.5], [1]]),
        (b"t (cycles),u\n0,1\n60,2\n", {"time_unit": "min"}, [0, 3600], [[1], [2]]),
        (b"t u\n0 1\n1 2\n", {"delimiter": "space"}, [0, 1], [[1], [2]]),
        (b"time,u\n2024-05-01 12:00,1\n2024-05-01 13:00,2\n", {"zone": "+02:00"}, [0, 3600], [[1], [2]]),
    ],
)
def test_options_decide(content: bytes, options: dict, t: list, values: list) -> None:
    table = read_table(io.BytesIO(content), **options)
    np.testing.assert_array_equal(table.t, t)
    np.testing.assert_array_equal(table.values, values)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"delimiter": "!"}, "delimiter is '!'"),
        ({"decimal": ";"}, "decimal is ';'"),
        ({"gaps": "guess"}, "gaps is 'guess'"),
        ({"dt": -1.0}, "dt is -1.0"),
        ({"dt": 1.0, "time": 1}, "both dt and time"),
        ({"encoding": "klingon"}, "encoding is 'klingon'"),
        ({"zone": "Mars/Olympus"}, "zone is 'Mars/Olympus'"),
        ({"time": "x"}, "no column 'x'"),
        ({"columns": [1, 2]}, "columns must not contain the time column"),
        ({"time_unit": "fortnight"}, "time_unit is 'fortnight'"),
        ({"decimal": ",", "thousands": ","}, "they must differ"),
    ],
)
def test_invalid_options_of_tables(options: dict, expected: str) -> None:
    with pytest.raises(FileFormatError) as caught:
        read_table(io.BytesIO(b"t,u\n0,1\n1,2\n"), **options)
    assert expected in str(caught.value)


def test_stamps_keep_nanoseconds() -> None:
    table = read_table(io.BytesIO(b"time,u\n2024-05-01T12:00:00.000000001+02:00,1\n2024-05-01T10:00:01.5Z,2\n"))
    assert table.start == datetime(2024, 5, 1, 10, tzinfo=UTC)
    assert table.t.tolist() == [0.0, 1.499999999]


def test_clock_change_in_long_table() -> None:
    """Blocks are read one after the other; the hour is missing between two of them or within one."""
    start = datetime(2024, 3, 30, 0, 0)
    minutes = [k if k < 60 * 26 else k + 60 for k in range(60 * 48)]
    stamps = [(start + timedelta(minutes=own)).isoformat(sep=" ") for own in minutes]
    content = "Zeit;u\n" + "".join(f"{stamp};{k},5{'0' * 900}\n" for k, stamp in enumerate(stamps))
    with pytest.raises(FileFormatError, match=rf"line {60 * 26 + 2}: the time is an hour further on than usual"):
        read_table(io.BytesIO(content.encode()))
    table = read_table(io.BytesIO(content.encode()), zone="Europe/Berlin")
    np.testing.assert_array_equal(table.t, 60.0 * np.arange(60 * 48))
    assert read_table(io.BytesIO(content.encode()), zone="UTC").t[-1] == 60.0 * minutes[-1]


def test_blocks_fit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """However a long table is cut into blocks, it is the same table."""
    rng = np.random.default_rng(0)
    table = np.column_stack([np.arange(5000) / 7.0, rng.standard_normal((5000, 2))])
    content = b"t,a,b\r\n" + b"".join(b"%r,%r,%r\r\n" % tuple(row) for row in table.tolist())
    for size in (1000, 4097, 65536):
        monkeypatch.setattr("ltinet.tables.source.BLOCK_BYTES", size)
        read = read_table(io.BytesIO(content))
        assert np.column_stack([read.t, read.values]).tobytes() == table.tobytes()
    bad = content.replace(b"\r\n", b"\r\n\r\n", 1) + b"9999,x,1\r\n"
    with pytest.raises(FileFormatError, match="line 5003, column 'a': 'x'"):
        read_table(io.BytesIO(bad))
