"""Tables as programs write them, drawn by seed: spreadsheets, loggers, LabVIEW, MATLAB, pandas; and what each holds.

Every table knows the numbers that it was made from, so that whoever reads it can be told whether it did so rightly.
`options` are those that decide where the text alone does not; `refused` says that without them nothing may be read.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

ROWS = 12


@dataclass(frozen=True)
class RealTable:
    """A file, what it holds, and what must be said to read it."""

    kind: str
    content: bytes
    t: np.ndarray
    values: np.ndarray
    options: dict[str, Any] = field(default_factory=dict)
    refused: str | None = None
    """What the refusal names when the options are not given."""


@dataclass(frozen=True)
class Drawn:
    """Numbers to write: times in seconds, values, names, and the generator for everything else."""

    rng: np.random.Generator
    t: np.ndarray
    values: np.ndarray
    names: list[str]


def draw(rng: np.random.Generator) -> Drawn:
    n_rows, n_values = int(rng.integers(4, ROWS)), int(rng.integers(1, 4))
    step = float(rng.choice([0.001, 0.01, 0.25, 1.0, 60.0]))
    t = np.round(step * np.arange(n_rows), 6)
    if rng.random() < 0.3:
        t = np.round(np.cumsum(rng.uniform(0.5, 1.5, n_rows)) * step, 6)
    values = np.round(rng.standard_normal((n_rows, n_values)) * 10.0 ** rng.integers(-1, 3), int(rng.integers(2, 6)))
    pool = ["Force (N)", "u", "Torque [Nm]", "Druck", "Spannung (V)", "temp_1", "Weg in mm", "flow/l"]
    return Drawn(rng, t, values, list(rng.choice(pool, n_values, replace=False)))


def number(value: float, decimal: str = ".", form: str | None = None) -> str:
    text = repr(float(value)) if form is None else format(value, form)
    return text.replace(".", decimal)


def lines(rows: list[list[str]], delimiter: str, *, end: str = "\n", last: bool = True) -> str:
    return end.join(delimiter.join(row) for row in rows) + (end if last else "")


def body(drawn: Drawn, decimal: str = ".", form: str | None = None) -> list[list[str]]:
    table = np.column_stack([drawn.t, drawn.values])
    return [[number(value, decimal, form) for value in row] for row in table]


def excel_german(drawn: Drawn) -> RealTable:
    """Semicolons, decimal commas, CRLF, often a byte-order mark; sometimes empty rows of semicolons below."""
    rows = [["Zeit (s)", *drawn.names], *body(drawn, ",", ".6f")]
    if drawn.rng.random() < 0.4:
        rows += [[""] * len(rows[0])] * 2
    mark = b"\xef\xbb\xbf" if drawn.rng.random() < 0.5 else b""
    exact = np.round(drawn.values, 6)
    return RealTable("Excel, German", mark + lines(rows, ";", end="\r\n").encode(), drawn.t, exact)


def excel_german_old(drawn: Drawn) -> RealTable:
    """The same in the code page of old Windows."""
    rows = [["Zeit", *drawn.names[:-1], "Kühlwasser (°C)"], *body(drawn, ",", ".6f")]
    content = lines(rows, ";", end="\r\n").encode("cp1252")
    exact = np.round(drawn.values, 6)
    return RealTable("Excel, cp1252", content, drawn.t, exact, {"encoding": "cp1252"}, 'encoding="cp1252"')


def excel_english(drawn: Drawn) -> RealTable:
    rows = [["Time", *(f'"{name}"' for name in drawn.names)], *body(drawn)]
    return RealTable("Excel, English", lines(rows, ",", end="\r\n").encode("utf-8-sig"), drawn.t, drawn.values)


def excel_tabs(drawn: Drawn) -> RealTable:
    """Write what spreadsheets call Unicode text: UTF-16 with tabs."""
    content = lines([["Time (s)", *drawn.names], *body(drawn)], "\t", end="\r\n").encode("utf-16")
    return RealTable("Excel, UTF-16", content, drawn.t, drawn.values, {"encoding": "utf-16"}, 'encoding="utf-16"')


def thousands(drawn: Drawn) -> RealTable:
    """Numbers as a German cell format shows them."""
    values = np.round(np.abs(drawn.values) + 1234.5, 2)
    shown = [[f"{value:,.2f}".replace(",", "_").replace(".", ",").replace("_", ".") for value in row] for row in values]
    rows = [["Zeit", *drawn.names], *([number(t, ","), *row] for t, row in zip(drawn.t, shown, strict=True))]
    return RealTable("thousands", lines(rows, ";").encode(), drawn.t, values, {"thousands": "."}, 'thousands="."')


def three_digits(drawn: Drawn) -> RealTable:
    """1,234 in every cell: nobody can tell."""
    values = np.round(np.abs(drawn.values) % 8.0 + 1.0, 3)
    rows = [["t", *drawn.names], *([str(k), *(number(v, ",", ".3f") for v in row)] for k, row in enumerate(values))]
    t = np.arange(len(values), dtype=float)
    return RealTable("1,234", lines(rows, ";").encode(), t, values, {"decimal": ","}, 'decimal=","')


def american_dates(drawn: Drawn) -> RealTable:
    """Dates whose order only their writer knows."""
    rows = [["Date", *drawn.names], *([f"0{k % 9 + 1}/02/2024", *row[1:]] for k, row in enumerate(body(drawn)))]
    t = 0.5 * np.arange(len(drawn.t))
    return RealTable("dates", lines(rows, ",").encode(), t, drawn.values, {"dt": 0.5}, "dt=")


def logger_iso(drawn: Drawn) -> RealTable:
    """Stamps in ISO 8601 with a zone, `T` or a blank between, comments above."""
    zone = str(drawn.rng.choice(["Z", "+00:00", "+02:00", "-0530"]))
    between = str(drawn.rng.choice(["T", " "]))
    start = datetime(2024, 10, 27, 0, 30, tzinfo=UTC)
    stamps = [(start + timedelta(seconds=float(t))).strftime(f"%Y-%m-%d{between}%H:%M:%S.%f") for t in drawn.t]
    rows = [["timestamp", *drawn.names], *([s + zone, *row[1:]] for s, row in zip(stamps, body(drawn), strict=True))]
    head = "# Logger 3000, serial 4711\n# rate: 100 Hz\n"
    return RealTable("logger, ISO", (head + lines(rows, ",")).encode(), drawn.t - drawn.t[0], drawn.values)


def logger_local(drawn: Drawn) -> RealTable:
    """Local times without a zone over the night in which clocks are put forward."""
    start = datetime(2024, 3, 31, 0, 30, tzinfo=UTC)
    t = 600.0 * np.arange(12)
    values = np.resize(drawn.values, (12, drawn.values.shape[1]))
    ahead = [1 if (start + timedelta(seconds=s)).hour < 1 else 2 for s in t]
    stamps = [
        (start + timedelta(seconds=s, hours=h)).strftime("%Y-%m-%d %H:%M:%S") for s, h in zip(t, ahead, strict=True)
    ]
    rows = [["Zeitstempel", *drawn.names], *([s, *map(number, row)] for s, row in zip(stamps, values, strict=True))]
    options = {"zone": "Europe/Berlin"}
    return RealTable("logger, local", lines(rows, ";").encode(), t, values, options, 'zone="Europe/Berlin"')


def logger_milliseconds(drawn: Drawn) -> RealTable:
    """Whole milliseconds, said so in the header or in a row of units."""
    t = np.round(drawn.t * 1000.0)
    units = drawn.rng.random() < 0.5
    rows = [[str(int(ms)), *row[1:]] for ms, row in zip(t, body(drawn), strict=True)]
    if units:
        rows = [["Time", *(f"ch{k}" for k in range(len(drawn.names)))], ["ms", *(["V"] * len(drawn.names))], *rows]
    else:
        rows = [[str(drawn.rng.choice(["Time (ms)", "t [ms]", "time_ms", "t/ms"])), *drawn.names], *rows]
    return RealTable("milliseconds", lines(rows, "\t" if units else ",").encode(), t / 1000.0, drawn.values)


def logger_epoch(drawn: Drawn) -> RealTable:
    """Milliseconds since 1970 under a name that does not say so."""
    ms = 1714560000000 + np.round(drawn.t * 1000.0).astype(np.int64)
    rows = [["timestamp", *drawn.names], *([str(own), *row[1:]] for own, row in zip(ms, body(drawn), strict=True))]
    return RealTable(
        "epoch", lines(rows, ",").encode(), ms / 1000.0, drawn.values, {"time_unit": "ms"}, 'time_unit="ms"'
    )


def logger_gaps(drawn: Drawn) -> RealTable:
    """A sensor that now and then says nothing."""
    hole = str(drawn.rng.choice(["", "NaN", "NA", "-", "#NV"]))
    rows = body(drawn)
    place = int(drawn.rng.integers(1, len(rows) - 1))
    rows[place][-1] = hole
    values = drawn.values.copy()
    values[place, -1] = values[place - 1, -1]
    text = lines([["time", *drawn.names], *rows], ";").encode()
    return RealTable("gaps", text, drawn.t, values, {"gaps": "hold"}, 'gaps="hold"')


def logger_blanks(drawn: Drawn) -> RealTable:
    """Columns of equal width, blanks between."""
    rows = [["%", "time", *(f"ch{k}" for k in range(len(drawn.names)))]]
    rows += [[f"{float(cell):14.6e}" for cell in row] for row in body(drawn)]
    exact = [[float(f"{value:14.6e}") for value in row] for row in drawn.values]
    t = [float(f"{value:14.6e}") for value in drawn.t]
    return RealTable("blanks", lines(rows, " ").encode(), np.array(t), np.array(exact))


def without_time(drawn: Drawn) -> RealTable:
    """Samples of a fixed rate, without times."""
    rows = [drawn.names, *(row[1:] for row in body(drawn))]
    t = 0.01 * np.arange(len(drawn.t))
    delimiter = "," if len(drawn.names) > 1 else ";"
    return RealTable("no times", lines(rows, delimiter).encode(), t, drawn.values, {"dt": 0.01}, "dt=")


def two_times(drawn: Drawn) -> RealTable:
    """A clock and the seconds since the start."""
    stamps = [f"2024-05-01T12:{k:02d}:00Z" for k in range(len(drawn.t))]
    rows = [["Timestamp", "Elapsed (s)", *drawn.names]]
    rows += [[s, *row] for s, row in zip(stamps, body(drawn), strict=True)]
    names = {"time": "Elapsed (s)", "columns": [3 + k for k in range(len(drawn.names))]}
    return RealTable("two times", lines(rows, ",").encode(), drawn.t, drawn.values, names, "time=")


def totals(drawn: Drawn) -> RealTable:
    """A line of sums at the end."""
    rows = [["Zeit", *drawn.names], *body(drawn, ","), ["Summe", *(number(v, ",") for v in drawn.values.sum(axis=0))]]
    return RealTable("totals", lines(rows, ";").encode(), drawn.t, drawn.values, {}, "'Summe' is not a real number")


def labview(drawn: Drawn) -> RealTable:
    """A measurement file: a long preamble, tabs, a column for comments that is empty."""
    decimal = str(drawn.rng.choice([".", ","]))
    n = len(drawn.names)
    head = [["LabVIEW Measurement"], ["Writer_Version", "2"], ["Separator", "Tab"], ["Decimal_Separator", decimal]]
    head += [["Date", "2024/05/01"], ["Time", "12:00:00" + decimal + "123"], ["***End_of_Header***"], [""]]
    head += [["Channels", str(n)], ["Samples", *(["12"] * n)], ["X0", *([f"0{decimal}0"] * n)]]
    head += [["Delta_X", *([f"0{decimal}001"] * n)], ["***End_of_Header***"]]
    names = [["X_Value", *(f"Channel {k}" for k in range(n)), "Comment"]]
    rows = [[*row, ""] for row in body(drawn, decimal, ".6f")]
    content = lines(head + names + rows, "\t", end="\r\n").encode()
    options = {"columns": [2 + k for k in range(n)]}
    return RealTable("LabVIEW", content, drawn.t, np.round(drawn.values, 6), options, "columns=")


def matlab(drawn: Drawn) -> RealTable:
    """`writetable`: plain names, 15 digits, `NaN` for what is missing."""
    rows = [["Time", *(f"Var{k + 2}" for k in range(len(drawn.names)))]]
    rows += [[f"{value:.15g}" for value in row] for row in np.column_stack([drawn.t, drawn.values])]
    return RealTable("MATLAB", lines(rows, ",").encode(), drawn.t, drawn.values)


def matlab_timetable(drawn: Drawn) -> RealTable:
    """`writetimetable`: durations with their unit in each cell."""
    rows = [["Time", *(f"Var{k + 1}" for k in range(len(drawn.names)))]]
    rows += [[f"{t:g} sec", *row[1:]] for t, row in zip(drawn.t, body(drawn), strict=True)]
    t = 0.5 * np.arange(len(drawn.t))
    return RealTable("MATLAB durations", lines(rows, ",").encode(), t, drawn.values, {"dt": 0.5}, "sec'")


def numpy_savetxt(drawn: Drawn) -> RealTable:
    stream = io.BytesIO()
    table = np.column_stack([drawn.t, drawn.values])
    header = ",".join(["t", *(f"u{k + 1}" for k in range(len(drawn.names)))])
    np.savetxt(stream, table, delimiter=",", header=header)
    return RealTable("NumPy", stream.getvalue(), drawn.t, drawn.values)


def numpy_plain(drawn: Drawn) -> RealTable:
    """Numbers and nothing else."""
    stream = io.BytesIO()
    np.savetxt(stream, np.column_stack([drawn.t, drawn.values]))
    options = {"header": False, "time": 1}
    return RealTable("no header", stream.getvalue(), drawn.t, drawn.values, options, "header=False")


def pandas_index(drawn: Drawn) -> RealTable:
    """`to_csv` with the index that only counts, which has no name."""
    rows = [["", "time", *drawn.names], *([str(k), *row] for k, row in enumerate(body(drawn)))]
    options = {"columns": [3 + k for k in range(len(drawn.names))]}
    return RealTable("pandas, index", lines(rows, ",").encode(), drawn.t, drawn.values, options, "columns=")


def pandas_dates(drawn: Drawn) -> RealTable:
    """`to_csv` of a frame with dates as its index, which has no name."""
    start = datetime(2024, 5, 1, 12, tzinfo=UTC)
    stamps = [str(start + timedelta(seconds=float(t))) for t in drawn.t]
    rows = [["", *drawn.names], *([s, *row[1:]] for s, row in zip(stamps, body(drawn), strict=True))]
    return RealTable("pandas, dates", lines(rows, ",").encode(), drawn.t - drawn.t[0], drawn.values)


def repeated_names(drawn: Drawn) -> RealTable:
    rows = [["t", *(["ch"] * (len(drawn.names) + 1))], *([*row, "0.0"] for row in body(drawn))]
    options = {"columns": [2 + k for k in range(len(drawn.names))]}
    return RealTable("repeated names", lines(rows, ";").encode(), drawn.t, drawn.values, options, "columns=")


def quoted(drawn: Drawn) -> RealTable:
    """Everything in quotes, decimal commas between commas."""
    rows = [["t", *(f"ch{k}" for k in range(len(drawn.names)))], *body(drawn, ",", ".6f")]
    text = lines([[f'"{cell}"' for cell in row] for row in rows], ",")
    return RealTable("quoted", text.encode(), drawn.t, np.round(drawn.values, 6))


KINDS: tuple[Callable[[Drawn], RealTable], ...] = (
    excel_german, excel_german_old, excel_english, excel_tabs, thousands, three_digits, american_dates, logger_iso,
    logger_local, logger_milliseconds, logger_epoch, logger_gaps, logger_blanks, without_time, two_times, totals,
    labview, matlab, matlab_timetable, numpy_savetxt, numpy_plain, pandas_index, pandas_dates, repeated_names, quoted,
)  # fmt: skip


def real_table(seed: int) -> RealTable:
    """One of the kinds after the other."""
    return KINDS[seed % len(KINDS)](draw(np.random.default_rng(seed)))
