"""Delays, operating point, hold and sample time beside the matrices of a file, called as in MATLAB where it has a name.

`InputDelay` and `OutputDelay` are properties of MATLAB's models: in units of time, of models in discrete time in
samples. `InputOffset` and `OutputOffset` are the operating point, `InterSample` is the hold ("zoh" or "foh"), and
`DataSampleTime` the sample time of the data.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from ltinet.errors import InvalidSystemError
from ltinet.model.formats.limits import DEFAULT_MAX_BYTES
from ltinet.model.formats.sampling_time import Readable
from ltinet.model.signal_settings import SignalSettings
from ltinet.shown import shown_path

_NUMBERS = {
    "input_delay": "InputDelay",
    "output_delay": "OutputDelay",
    "u0": "InputOffset",
    "y0": "OutputOffset",
    "sample_time": "DataSampleTime",
}
_HOLD = "InterSample"
_REMARKS = "SignalRemarks"
_HOLDS = {"zoh": "zero", "foh": "linear"}
_WITHOUT_PLACE = ("ioDelay", "IODelay", "InternalDelay", "iodelay")


def settings_to_write(
    settings: SignalSettings, dt: float | None
) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, list[str]]]:
    """Return the variables of a file that hold these settings: numbers as columns, and texts."""
    numbers = {}
    for name, variable in _NUMBERS.items():
        own = getattr(settings, name)
        if own is not None:
            column = np.atleast_1d(np.array(own, dtype=np.float64))[:, None]
            is_in_samples = dt is not None and name.endswith("delay")
            numbers[variable] = np.round(column / dt) if is_in_samples and dt is not None else column
    texts = {}
    if settings.hold is not None:
        texts[_HOLD] = [own for own, hold in _HOLDS.items() if hold == settings.hold]
    if settings.remarks and not settings.is_default:
        texts[_REMARKS] = list(settings.remarks)
    return numbers, texts


def settings_in(
    file_format: Readable,
    path: Path,
    variables: Collection[str],
    *,
    beside: str,
    n_inputs: int,
    n_outputs: int,
    dt: float | None,
) -> SignalSettings:
    """Return the settings in a file, as variables of their own or beside the matrices in a struct.

    Raises
    ------
    InvalidSystemError
        They do not fit the system, or the file has delays inside the model, which have no place here.
    """
    for name in _variables(_WITHOUT_PLACE, variables, beside):
        if np.any(_values(file_format, path, name)):
            raise InvalidSystemError(
                f"{shown_path(path)} has {name}, delays between single inputs and outputs or inside the model, which "
                "ltinet does not have; approximate them first, as with pade() in MATLAB"
            )
    given: dict[str, Any] = {}
    for setting, variable in _NUMBERS.items():
        for name in _variables((variable,), variables, beside):
            values = _values(file_format, path, name)
            if values.size and np.any(values):
                in_samples = dt is not None and setting.endswith("delay")
                given[setting] = (values * dt if in_samples and dt is not None else values).tolist()
    if "sample_time" in given:
        given["sample_time"] = given["sample_time"][0]
    for name in _variables((_HOLD,), variables, beside):
        holds = {_HOLDS[own] for own in _texts(file_format, path, name) if own in _HOLDS}
        if len(holds) == 1:
            given["hold"] = holds.pop()
    for name in _variables((_REMARKS,), variables, beside):
        given["remarks"] = [own for own in _texts(file_format, path, name) if own.isprintable()]
    return SignalSettings.of(n_inputs=n_inputs, n_outputs=n_outputs, **given)


def _variables(names: Collection[str], variables: Collection[str], beside: str) -> list[str]:
    return [own for own in dict.fromkeys((*names, *(beside + name for name in names))) if own in variables]


def _values(file_format: Readable, path: Path, name: str) -> np.ndarray[Any, Any]:
    """Return the numbers of a variable in one row; nothing where it holds something else."""
    try:
        found = np.asarray(file_format.read(path, [name], max_bytes=DEFAULT_MAX_BYTES)[name])
    except (ValueError, KeyError):
        return np.zeros(0)
    return found.ravel().astype(np.float64) if found.dtype.kind in "biuf" else np.zeros(0)


def _texts(file_format: Readable, path: Path, name: str) -> list[str]:
    try:
        return [own.strip() for own in file_format.read_texts(path, name)]
    except Exception:  # no texts, or damaged, which every format says in its own way
        return []
