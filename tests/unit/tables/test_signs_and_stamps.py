"""Hypothesis: numbers and dates as spreadsheets of all countries write them are read, or the first fault is named."""

import io
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from ltinet import FileFormatError, read_table

BERLIN = ZoneInfo("Europe/Berlin")
# What may stand in a column of times, and whether it can be read there.
STAMPS = {
    "2024-10-27 01:10:00": True,
    "2024-10-27 01:40:00": True,
    "2024-10-27 02:10:00": False,  # comes twice
    "2024-10-27 03:10:00": True,
    "2024-03-31 02:10:00": False,  # never comes
    "2024-10-27 01:99:00": False,
    "1066-10-14 09:00:00": False,
    "2024-10-27T01:50:00Z": False,  # beside others without a zone
}


def read(text: str, **options: object):
    return read_table(io.BytesIO(text.encode()), **options)


@pytest.mark.parametrize("seed", range(60))
def test_first_stamp_fault_is_reported(seed: int) -> None:
    """Each kind of fault is found by another pass over the stamps, and passes must not outrun each other."""
    rng = np.random.default_rng(seed)
    stamps = ["2024-10-27 01:00:00", *rng.choice(list(STAMPS), size=6).tolist()]
    usable = [True] + [STAMPS[stamp] for stamp in stamps[1:]]
    rows = "".join(f"{stamp},1\n" for stamp in stamps)
    moments = [datetime.fromisoformat(s).replace(tzinfo=BERLIN) for s, fine in zip(stamps, usable, strict=True) if fine]
    begin = next((k for k, fine in enumerate(usable) if not fine), len(stamps))
    seconds = [(moment - moments[0]).total_seconds() for moment in moments[:begin]]
    fallen = next(
        (k for k in range(1, begin) if seconds[k] < seconds[k - 1] or seconds[: k + 1].count(seconds[k]) > 2), begin
    )
    if fallen == len(stamps):
        np.testing.assert_array_equal(read(f"time,u\n{rows}", zone="Europe/Berlin").t, seconds)
    else:
        with pytest.raises(FileFormatError, match=rf"line {fallen + 2}\b"):
            read(f"time,u\n{rows}", zone="Europe/Berlin")


def test_dates_alone_begin_at_midnight() -> None:
    rng = np.random.default_rng(3)
    days = [date(1999, 1, 1) + timedelta(days=int(k)) for k in np.sort(rng.choice(20_000, size=300, replace=False))]
    table = read("Date,u\n" + "".join(f"{day.isoformat()},{k}\n" for k, day in enumerate(days)))
    np.testing.assert_array_equal(table.t, [(day - days[0]).total_seconds() for day in days])
    assert table.start == datetime(days[0].year, days[0].month, days[0].day)


@pytest.mark.parametrize("offset", ["+24:00", "-99", "+01:60"])
def test_offsets_of_no_zone_are_refused(offset: str) -> None:
    with pytest.raises(FileFormatError, match=r"line 3.*: .* is not a time in ISO 8601"):
        read(f"time,u\n2024-05-01T12:00:00+01:00,1\n2024-05-01T12:30:00{offset},2\n")


def test_date_column_is_not_time() -> None:
    table = read("t,u,calibrated\n0,1,2024-01-01\n1,2,2024-01-02\n", columns="u")
    np.testing.assert_array_equal(table.values, [[1.0], [2.0]])


@pytest.mark.parametrize("blank", ["\u00a0", "\u202f", " "])
@pytest.mark.parametrize("minus", ["-", "\u2212"])
def test_spreadsheet_blanks_and_signs(blank: str, minus: str) -> None:
    rng = np.random.default_rng(5)
    values = np.round(rng.standard_normal(200) * 10.0 ** rng.integers(0, 9, 200), 2)
    cells = [f"{value:,.2f}".replace(",", blank).replace(".", ",").replace("-", minus) for value in values]
    text = "Zeit;u\n" + "".join(f"{k};{cell}\n" for k, cell in enumerate(cells))
    np.testing.assert_array_equal(read(text, thousands=" ").values[:, 0], values)
    with pytest.raises(FileFormatError, match=r'thousands=" "'):
        read(text)


def test_bars_separate_columns() -> None:
    table = read("t|u|v\n0|1,5|2\n1|2,5|3\n")
    np.testing.assert_array_equal(table.values, [[1.5, 2.0], [2.5, 3.0]])


@pytest.mark.parametrize("cell", ["50 N", "50%", "$50", "€ 1.5", "-3.5 mm/s", "1e3 Pa", "20°C", "1.5 V"])
def test_number_with_unit_message(cell: str) -> None:
    with pytest.raises(FileFormatError, match="leave the number alone in its cell"):
        read(f"t;u\n0;{cell}\n1;{cell}\n", decimal=".")


def test_apostrophe_thousands() -> None:
    with pytest.raises(FileFormatError, match='thousands="\'"'):
        read("t;u\n0;1'234.5\n1;2'234.5\n")
