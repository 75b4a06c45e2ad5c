"""Hypothesis: DataFrames come in and go out with their numbers, names and times."""

import io

import numpy as np
import pytest

import ltinet
from ltinet import FileFormatError, read_table

pd = pytest.importorskip("pandas")
VALUES = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])


@pytest.mark.parametrize(
    "index",
    [
        pd.Index([0.0, 0.5, 1.5], name="t"),
        pd.Index([0.0, 0.5, 1.5]),
        pd.Index([0, 500, 1500], name="time (ms)"),
        pd.to_timedelta([0.0, 0.5, 1.5], unit="s"),
        pd.to_datetime(["2024-05-01T12:00:00", "2024-05-01T12:00:00.5", "2024-05-01T12:00:01.5"], format="ISO8601"),
        pd.to_datetime(["2024-05-01T12:00:00Z", "2024-05-01T12:00:00.5Z", "2024-05-01T12:00:01.5Z"], format="ISO8601"),
    ],
    ids=["named", "numbers", "unit", "durations", "dates", "dates with a zone"],
)
def test_the_index_has_the_times(index) -> None:
    table = read_table(pd.DataFrame(VALUES, index=index, columns=["Force (N)", "b"]))
    np.testing.assert_array_equal(table.t, [0.0, 0.5, 1.5])
    np.testing.assert_array_equal(table.values, VALUES)
    assert table.names == ("Force (N)", "b")
    assert (table.start is not None) == isinstance(index, pd.DatetimeIndex)


def test_a_column_has_the_times_where_the_index_only_counts() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "time": [0.0, 0.1]})
    assert read_table(frame).names == ("a",)
    assert read_table(frame.rename(columns={"time": "x"}), time="x").t.tolist() == [0.0, 0.1]
    assert read_table(frame[["a"]], dt=0.5).t.tolist() == [0.0, 0.5]
    with pytest.raises(FileFormatError, match="only counts rows"):
        read_table(frame[["a"]])


def test_gaps_and_text_in_frames() -> None:
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0], "s": ["x", "y", "z"]}, index=[0.0, 1.0, 2.0])
    with pytest.raises(FileFormatError, match="'s' holds"):
        read_table(frame)
    with pytest.raises(FileFormatError, match="row 1, column 'a' is a gap"):
        read_table(frame, columns="a")
    assert read_table(frame, columns="a", gaps="linear").values.ravel().tolist() == [1.0, 2.0, 3.0]


def test_what_pandas_writes_is_read_as_it_was() -> None:
    frame = pd.DataFrame(VALUES, index=pd.Index([0.0, 0.5, 1.5], name="t"), columns=["a", "b"])
    table = read_table(io.BytesIO(frame.to_csv().encode()))
    np.testing.assert_array_equal(table.values, VALUES)
    assert table.names == ("a", "b")


def test_a_solution_as_a_frame() -> None:
    net = ltinet.construct(([[-1.0]], [[1.0]], [[1.0], [2.0]]))
    frame = pd.DataFrame({"u": [0.0, 1.0, 1.0]}, index=pd.Index([0.0, 0.5, 1.5], name="t"))
    table = read_table(frame)
    solution = net.simulate(table.values, table.t)
    back = solution.to_frame()
    assert list(back.columns) == ["y1", "y2"]
    assert back.index.name == "t"
    np.testing.assert_array_equal(back.to_numpy(), solution.y)
    np.testing.assert_array_equal(back.index.to_numpy(), table.t)
    np.testing.assert_array_equal(net.simulate(frame["u"], table.t).y, solution.y)
    np.testing.assert_array_equal(net.simulate(frame, table.t).y, solution.y)
    with pytest.raises(FileFormatError, match="batch"):
        net.simulate(np.zeros((2, 3, 1)), table.t).to_frame()
