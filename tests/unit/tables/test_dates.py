"""Hypothesis: dates with the day or the month first are read in the order that is certain, and refused otherwise."""

import io
from datetime import datetime, timedelta

import numpy as np
import pytest

from ltinet import FileFormatError, read_table

FORMATS = {
    "%d.%m.%Y %H:%M:%S": True,
    "%d/%m/%Y %H:%M": True,
    "%d-%m-%Y %H:%M:%S": True,
    "%m/%d/%Y %H:%M:%S": False,
    "%m/%d/%Y %I:%M:%S %p": False,
    "%m-%d-%Y %I:%M %p": False,
    "%Y/%m/%d %H:%M:%S": None,
    "%d-%b-%Y %H:%M:%S": None,
}


def read(text: str, **options: object):
    return read_table(io.BytesIO(text.encode()), **options)


def rows(stamps: list[str], head: str = "Time;u") -> str:
    return f"{head}\n" + "".join(f"{stamp};{k},5\n" for k, stamp in enumerate(stamps))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("day", [1, 12, 27])
def test_dates_are_read_in_the_given_order(form: str, day: int) -> None:
    rng = np.random.default_rng(day)
    minutes = np.sort(rng.choice(30_000, size=200, replace=False))
    moments = [datetime(2026, 3, day, 11) + timedelta(minutes=int(k)) for k in minutes]
    options = {} if FORMATS[form] is None else {"day_first": FORMATS[form]}
    table = read(rows([moment.strftime(form) for moment in moments]), zone="UTC", **options)
    np.testing.assert_array_equal(table.t, [(moment - moments[0]).total_seconds() for moment in moments])
    assert table.start is not None
    assert table.start.replace(tzinfo=None) == moments[0]
    np.testing.assert_array_equal(table.values[:, 0], np.arange(200) + 0.5)


@pytest.mark.parametrize("stamp", ["01.03.2026 08:00:00,000", "1/3/2026 8:00", "01-03-2026"])
def test_ambiguous_dates_are_refused_with_the_option(stamp: str) -> None:
    with pytest.raises(FileFormatError, match=r"line 2.*day_first=True.*day_first=False"):
        read(rows([stamp]))
    assert read(rows([stamp]), day_first=True).start == datetime(2026, 3, 1, 8 if " " in stamp else 0)
    assert read(rows([stamp]), day_first=False).start == datetime(2026, 1, 3, 8 if " " in stamp else 0)


@pytest.mark.parametrize(("stamps", "first"), [
    (["03.12.2025 08:00", "13.12.2025 08:00"], datetime(2025, 12, 3, 8)),
    (["12/03/2025 08:00", "12/13/2025 08:00"], datetime(2025, 12, 3, 8)),
])  # fmt: skip
def test_a_day_above_twelve_decides_for_all(stamps: list[str], first: datetime) -> None:
    table = read(rows(stamps))
    assert table.start == first
    np.testing.assert_array_equal(table.t, [0.0, 864000.0])


@pytest.mark.parametrize(
    ("stamps", "message"),
    [
        (["13/01/2026 08:00", "01/14/2026 08:00"], "line 3.*there is no time '01/14/2026 08:00'"),
        (["13/01/2026 08:00", "31/02/2026 08:00"], "line 3.*there is no time"),
        (["13/01/2026 13:00 PM"], "line 2.*there is no time"),
        (["13/01/26 08:00"], "line 2.*year in four digits"),
        (["2026-01-13 08:00", "2/1/2026 08:00"], "line 3.*day_first"),
    ],
)
def test_dates_that_do_not_exist_are_named(stamps: list[str], message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        read(rows(stamps))


def test_noon_and_midnight_of_twelve_hour_clocks() -> None:
    stamps = ["3/28/2026 12:00:00 AM", "3/28/2026 12:30 a.m.", "3/28/2026 12:00:00.5 PM", "3/28/2026 11:00 pm"]
    np.testing.assert_array_equal(read(rows(stamps)).t, [0.0, 1800.0, 43200.5, 82800.0])


def test_decimal_commas_and_milliseconds_of_a_german_table() -> None:
    table = read("Zeit;Ventil (%)\n01.03.2026 08:00:00,000;1,5\n01.03.2026 08:00:00,100;2,5\n", day_first=True)
    np.testing.assert_array_equal(table.t, [0.0, 0.1])
    np.testing.assert_array_equal(table.values, [[1.5], [2.5]])


def test_day_first_is_true_or_false() -> None:
    with pytest.raises(FileFormatError, match="day_first is 'yes'; it must be True or False"):
        read(rows(["13/01/2026"]), day_first="yes")


@pytest.mark.parametrize("name", ["Date/Time", "Date / Time", "Datum/Uhrzeit", "Date Time", "date_time"])
def test_columns_of_dates_with_times_are_recognised_by_their_name(name: str) -> None:
    assert read(f"{name};T\n1;2\n2;3\n").names == ("T",)


@pytest.mark.parametrize("stamp", ["13.03.2026 08:00:00", "2026-03-13 08:00:00,5"])
@pytest.mark.parametrize("cells", ["1.5;2,5", "1.5;2.5"])
def test_points_in_values_are_refused_beside_points_in_dates(stamp: str, cells: str) -> None:
    """Dots of dates pass the fast parser; those of values in a table with decimal commas must not."""
    text = f"Zeit;u;v\n13.03.2026 07:00:00;1,5;2,5\n{stamp};{cells}\n13.03.2026 09:00:00;1,5;2,5\n"
    with pytest.raises(FileFormatError, match=r"line 3.*decimal mark"):
        read(text, decimal=",")


@pytest.mark.parametrize(
    ("date", "clock", "delimiter", "day_first"),
    [
        ("%d.%m.%Y", "%H:%M:%S,%f", ";", True),
        ("%m/%d/%Y", "%I:%M:%S %p", "\t", False),
        ("%Y-%m-%d", "%H:%M:%S", ",", None),
        ("%Y-%m-%d", "%H:%M:%S.%f", " ", None),
        ("%Y/%m/%d", "%H:%M", ";", None),
    ],
)
def test_a_date_and_a_time_of_day_in_two_columns_are_one_time(
    date: str, clock: str, delimiter: str, day_first: bool | None
) -> None:
    moments = [datetime(2026, 3, 4, 23) + timedelta(minutes=7 * k) for k in range(60)]  # past midnight
    mark = "," if "," in clock else "."
    lines = [delimiter.join(["Uhrzeit", "u", "Datum"])]
    lines += [delimiter.join([m.strftime(clock), f"{k}{mark}5", m.strftime(date)]) for k, m in enumerate(moments)]
    for content in ("\n".join(lines), "\n".join([lines[0], "# a comment", *lines[1:]])):  # by both parsers
        table = read(content, day_first=day_first)
        np.testing.assert_array_equal(table.t, 420.0 * np.arange(60))
        assert table.start == moments[0]
        assert table.names == ("u",)
        np.testing.assert_array_equal(table.values[:, 0], np.arange(60) + 0.5)
        assert "times read from the columns 'Datum' and 'Uhrzeit'" in table.notes


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("2026-03-04;;1", r"line 3, column 'Date': the cell is empty; every row needs its time"),
        (";08:01:00;1", r"line 3, column 'Date': the cell is empty; every row needs its time"),
        ("2026-03-04;25:00:00;1", r"line 3: there is no time '2026-03-04 25:00:00'"),
        ("2026-03-04;08:00 oclock;1", r"line 3, column 'Date': '2026-03-04 08:00 oclock' is not a time"),
        ("04.03.26;08:01:00;1", r"line 3, column 'Date': '04.03.26 08:01:00' is not a time"),
    ],
)
def test_faults_of_two_columns_of_times_are_named(second: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        read(f"Date;Time;u\n2026-03-04;08:00:00;0\n{second}\n2026-03-04;08:02:00;0\n")


def test_two_columns_of_times_that_are_not_a_date_and_a_time_of_day_are_refused() -> None:
    with pytest.raises(FileFormatError, match=r"2 time columns, 'Date' and 'Time'.*time="):
        read("Date;Time;u\n2026-03-04;1.5;0\n2026-03-04;2.5;0\n")
    with pytest.raises(FileFormatError, match="year in four digits"):
        read("Date;Time;u\n04.03.26;08:00;0\n04.03.26;08:01;0\n")
