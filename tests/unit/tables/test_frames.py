"""Hypothesis: DataFrames come in and go out with their numbers, names and times."""

import io
import warnings

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
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = read_table(pd.DataFrame(VALUES, index=index, columns=["Force (N)", "b"]))
    np.testing.assert_array_equal(table.t, [0.0, 0.5, 1.5])
    np.testing.assert_array_equal(table.values, VALUES)
    assert table.names == ("Force (N)", "b")
    assert (table.start is not None) == isinstance(index, pd.DatetimeIndex)


def test_time_column_of_frame() -> None:
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


def test_pandas_csv_round_trip() -> None:
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


@pytest.mark.parametrize("row", [0, 1, 2])
@pytest.mark.parametrize(
    "times",
    [
        pd.to_datetime(["2024-05-01", "2024-05-02", "2024-05-03"]),
        pd.to_timedelta([0.0, 0.5, 1.5], unit="s"),
        pd.Index([0.0, 0.5, 1.5]),
        pd.array([0, 1, 2], dtype="Int64"),
    ],
    ids=["dates", "durations", "numbers", "whole numbers"],
)
def test_a_row_without_a_time_is_refused(times, row: int) -> None:
    """As whole nanoseconds no time is a number like others: the smallest there is."""
    column = pd.Series(times).copy()
    column[row] = None
    frame = pd.DataFrame({"t": column, "u": [1.0, 2.0, 3.0]})
    for own in (frame, frame.set_index("t")):
        with pytest.raises(FileFormatError, match=f"row {row} has no time"):
            read_table(own)


def test_frame_rejects_repeated_names_and_epoch_times() -> None:
    twice = pd.DataFrame(VALUES, index=[0.0, 0.5, 1.5], columns=["u", "u"])
    with pytest.raises(FileFormatError, match="more than one column is called 'u'"):
        read_table(twice)
    assert read_table(twice, columns=[2]).values[:, 0].tolist() == VALUES[:, 1].tolist()
    since = pd.DataFrame({"u": [1.0, 2.0]}, index=[1714560000000, 1714560001000])
    with pytest.raises(FileFormatError, match="since 1970"):
        read_table(since)
    assert np.ptp(read_table(since, time_unit="ms").t) == 1.0
    with pytest.raises(FileFormatError, match="no rows"):
        read_table(since[:0])


def test_dt_skips_time_column() -> None:
    assert read_table(pd.DataFrame({"t": [0.0, 7.0], "u": [1.0, 2.0]}), dt=0.5).names == ("u",)


def test_a_series_is_a_table_of_one_column() -> None:
    table = read_table(pd.Series([1.0, 2.0], index=[0.0, 0.5], name="Force (N)"))
    assert (table.names, table.t.tolist(), table.values.tolist()) == (("Force (N)",), [0.0, 0.5], [[1.0], [2.0]])
    assert read_table(pd.Series([1.0, 2.0]), dt=1.0).names == ("u1",)


def test_response_frames() -> None:
    single = ltinet.StateSpace(-1.0, 1.0, 1.0).step_response()
    np.testing.assert_array_equal(single.to_frame().to_numpy(), single.y[0])
    several = ltinet.StateSpace(-np.eye(2), np.eye(2), np.eye(2))
    assert several.step_response(input=1).to_frame().shape[1] == 2
    with pytest.raises(FileFormatError, match=r"step_response\(input=0\)"):
        several.step_response().to_frame()
