"""Uploaded tables: reading with the options of the page, messages with their labels, and a guess of inputs and outputs.

A name such as "valve" or "T (K)" decides the role of a column. Other columns are compared in pairs by Granger's test:
does the past of one column predict the next value of the other one better than the past of the latter alone? An output
is predicted by some column better than it predicts that column; an input predicts others only.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
from scipy import special

from ltinet._util.floating_point import Array
from ltinet._util.text import sanitize
from ltinet.errors import FileFormatError
from ltinet.signals.times import as_time_step
from ltinet.tables.table import Table, read_table

OPTION_LABELS = MappingProxyType(
    {
        "day_first": "Dates",
        "decimal": "Decimal mark",
        "thousands": "Thousands separator",
        "delimiter": "Column separator",
        "header": "Header",
        "time": "Time column",
        "time_unit": "Unit of times",
        "zone": "Time zone",
        "dt": "Time step",
        "columns": "Columns",
        "encoding": "Encoding",
        "resample": "Resample to step",
    }
)
"""Options of the page by the arguments of `read_table` and `identify`; missing values are always kept as NaN."""
_FLAGS = MappingProxyType({"true": True, "false": False})
_FLAG_WORDS = MappingProxyType(
    {"day_first=True": "Dates: day first", "day_first=False": "Dates: month first", "header=False": "Header: no"}
)
_SUGGESTION = re.compile(rf'\b({"|".join(OPTION_LABELS)})=("[^"]*"|\[[^\]]*\]|[\w.+-]*\w)')


def parse_reading_options(text: str) -> dict[str, Any]:
    """Return arguments of `read_table`, and of `identify` for resample, from `decimal=,&day_first=true`.

    Raise `FileFormatError` for an unknown option, `InvalidSignalError` for a step that is not positive.
    """
    options: dict[str, Any] = {}
    for key, value in parse_qsl(text):
        if key not in OPTION_LABELS:
            raise FileFormatError(f"there is no option {sanitize(key)} for tables; remove it")
        if key == "columns":
            options[key] = [name.strip() for name in value.split(",")]
        elif key == "resample":
            try:
                options[key] = as_time_step(float(value), key)
            except ValueError:
                raise FileFormatError(f"resample is {sanitize(repr(value))}; give a positive time step") from None
        else:
            options[key] = _FLAGS.get(value, value) if key in ("day_first", "header") else value
    return options


def read_uploaded_table(path: Path, options: str) -> Table:
    """Return the table, with NaN for missing values, which matter only in the columns that are used."""
    chosen = parse_reading_options(options)
    chosen.pop("resample", None)
    return read_table(path, gaps="split", **chosen)


def page_messages(text: str) -> str:
    """Return an error message with the labels of the page instead of arguments in Python."""
    for argument, words in _FLAG_WORDS.items():
        text = text.replace(argument, words)
    return _SUGGESTION.sub(_labelled_suggestion, text)


def _labelled_suggestion(match: re.Match[str]) -> str:
    value = match[2].strip('"[]').replace('"', "").replace(", ", ",")
    return f"{OPTION_LABELS[match[1]]}: {value}"


# Roles of columns.

_INPUT_WORDS = re.compile(
    r"u\d*|in(put)?\d*|eingang|valve|ventil|force|kraft|torque|drehmoment|heater|heizung|pwm|duty|command|cmd|"
    r"set ?point|sollwert|stellwert|stellgröße|actuator|excitation|pump|pumpe"
)
_OUTPUT_WORDS = re.compile(
    r"y\d*|out(put)?\d*|ausgang|t|temp(eratur(e)?)?|speed|drehzahl|velocity|geschwindigkeit|position|weg|displacement|"
    r"angle|winkel|level|füllstand|acceleration|beschleunigung|response|measured|messwert|istwert"
)
_N_LAGS = 4
_MAX_ROWS = 5000
_MAX_COLUMNS = 30  # of which all pairs are compared, within a second
_SIGNIFICANCE = 1e-5  # probability of a false positive for one pair, with 900 pairs about 1 %


def guess_roles(names: Sequence[str], values: Array) -> list[str]:
    """Return "drive" for inputs, "answer" for outputs and "" for unused columns.

    Where no input or no output is found, the last column without a role is the output and the others are inputs.
    """
    roles = [_role_of_name(name) for name in names]
    if any(role is None for role in roles) and len(names) <= _MAX_COLUMNS:
        past = _roles_from_past(values[:_MAX_ROWS])
        roles = [role if role is not None else guess for role, guess in zip(roles, past, strict=True)]
    rest = [place for place, role in enumerate(roles) if not role]
    if "answer" not in roles and rest and len(names) > 1:
        roles[rest.pop()] = "answer"
    if "drive" not in roles:
        for place in rest:
            roles[place] = "drive"
    return [role or "" for role in roles]


def _role_of_name(name: str) -> str | None:
    plain = re.sub(r"[\[(].*|[_\-/].*", "", name.casefold()).strip()
    if _INPUT_WORDS.fullmatch(plain):
        return "drive"
    return "answer" if _OUTPUT_WORDS.fullmatch(plain) else None


def _roles_from_past(values: Array) -> list[str | None]:
    """Return roles by Granger's test, None for columns that neither predict nor are predicted."""
    n_rows, n_columns = len(values) - _N_LAGS, values.shape[1]
    if n_rows <= 3 * _N_LAGS:
        return [None] * n_columns
    # Present values, and past values of each column `(rows, lags)`, in units of their spread.
    spread = np.nanstd(values, axis=0)
    changes = spread > 0.0
    scaled = (values - np.nanmean(values, axis=0)) / np.where(changes, spread, 1.0)
    past = np.stack([scaled[_N_LAGS - lag : len(values) - lag] for lag in range(1, _N_LAGS + 1)], axis=2)
    gain = np.zeros((n_columns, n_columns))  # log ratio of residual variances: the past of i for the present of j
    for i in np.flatnonzero(changes):
        for j in np.flatnonzero(changes):
            if i != j:
                gain[i, j] = _prediction_gain(scaled[_N_LAGS:, j], past[:, j], past[:, i])
    significant = gain > special.chdtri(_N_LAGS, _SIGNIFICANCE) / n_rows
    better = significant & (gain > gain.T)
    return ["answer" if better[:, j].any() else "drive" if significant[j].any() else None for j in range(n_columns)]


def _prediction_gain(present: Array, own_past: Array, other_past: Array) -> float:
    """Return the logarithm of the ratio of residual variances without and with the past of the other column."""
    rows = np.column_stack([present, np.ones(len(present)), own_past, other_past])
    rows = rows[np.isfinite(rows).all(axis=1)]
    if len(rows) <= rows.shape[1]:
        return 0.0
    variances = []
    for regressors in (rows[:, 1 : 2 + own_past.shape[1]], rows[:, 1:]):
        residual = rows[:, 0] - regressors @ np.linalg.lstsq(regressors, rows[:, 0])[0]
        variances.append(float(residual @ residual) + len(rows) * _ROUNDING)
    return float(np.log(variances[0] / variances[1]))


_ROUNDING = 1e-24  # variance of a residual that is rounding only, of values near 1
