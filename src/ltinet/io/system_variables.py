"""Meaning of the variables in a system file: matrices, time step, names and signal settings.

Matrices are A, B, C, D and E, the same in lower case, or fields of one struct (`sys.A`). The time step is Ts, dt, Td,
sampling_time, sample_time or SampleTime. Names are InputName, OutputName and StateName, with units in InputUnit and so
on. `InputDelay` and `OutputDelay` are delays, in discrete time in samples as in MATLAB; `InputOffset` and
`OutputOffset` the operating point; `InterSample` the hold ("zoh" or "foh"); `DataSampleTime` the sample time of the
data.
"""

from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ltinet._util.text import format_names, format_path, sanitize
from ltinet.errors import FileFormatError, InvalidSystemError
from ltinet.io.file_access import DEFAULT_MAX_BYTES, error_text
from ltinet.systems.matrices import shape_of
from ltinet.systems.signal_names import Names, SignalNames, names_or_defaults
from ltinet.systems.signal_settings import SignalSettings

# MERGED ltinet.io.system_variables
# Models in discrete time, told by the sampling time beside their matrices, under any of the names in use.

_TIME_STEP_NAMES = ("Ts", "dt", "Td", "sampling_time", "sample_time", "SampleTime")


class ReadableFormat(Protocol):
    """A format of files with variables."""

    def list_variables(self, path: Path) -> list[str]:
        """Name the variables without reading them."""

    def read(self, path: Path, names: Collection[str], *, max_bytes: float) -> dict[str, Any]:
        """Read those of `names` that are there."""

    def read_texts(self, path: Path, name: str) -> list[str]:
        """The texts of a variable that is a list of them; ValueError if it is none."""


def read_time_step(
    file_format: ReadableFormat, path: Path, variables: Collection[str], *, beside: str = ""
) -> float | None:
    """The time step of a model in discrete time, None in continuous time, for which zero and MATLAB's [] stand.

    It is looked for as a variable and, where the matrices are fields of a struct, `beside` them.

    Raises:
        InvalidSystemError: there are several steps, or one that is not a positive number, such as MATLAB's -1.
    """
    found: dict[str, float] = {}
    known = dict.fromkeys((*_TIME_STEP_NAMES, *(beside + name for name in _TIME_STEP_NAMES)))
    for name in (name for name in known if name in variables):
        try:
            value = np.asarray(file_format.read(path, [name], max_bytes=DEFAULT_MAX_BYTES)[name])
        except ValueError as error:
            value = np.array(error_text(error))
        if value.dtype.kind in "biufc" and not np.any(value):
            continue
        step = float(value.item()) if value.dtype.kind in "iuf" and value.size == 1 else np.nan
        if not 0.0 < step < np.inf:
            told = f"{value.item():g}" if value.dtype.kind in "biuf" and value.size == 1 else sanitize(value)
            raise InvalidSystemError(
                f"{format_path(path)} has {name} = {told}, which is no time step; give it: load_system(path, dt=0.1), "
                f"or dt=0 if the model is continuous in time and {name} means something else"
            )
        found[name] = step
    if len(set(found.values())) > 1:
        told = ", ".join(f"{name} = {step:g}" for name, step in found.items())
        raise InvalidSystemError(
            f"{format_path(path)} has several time steps ({told}); say which: load_system(path, dt=0.1), or dt=0 for "
            "continuous time"
        )
    return next(iter(found.values()), None)


# MERGED ltinet.io.system_variables
# Which variable of a file is which matrix: by name, in a struct, or as somebody who knows the file says.

MATRIX_NAMES = ("A", "B", "C", "D", "E")
_REQUIRED_MATRICES = ("A", "B", "C")
_MAX_INSPECTED, _MAX_INSPECTED_BYTES = 100, 2**26  # variables of a file that has no A, and the most that one may take


def match_matrices(
    path: Path, variables: Collection[str], names: Mapping[str, str] | None, *, supplied: Collection[str] = ()
) -> dict[str, str]:
    """The variable that is A, that is B, …; those that the file lacks are left out.

    Without `names` these are A, B, C, D, E; where there is no A, nor one that is `supplied`, the same in small letters,
    or the fields of the one struct that has an A, B and C (`sys.A`, `sys.a`).

    Raises:
        FileFormatError: a name that was given is no matrix or not in the file, or several structs would do.
    """
    given = _validate_matrix_names(path, variables, names)
    found = {role: role for role in MATRIX_NAMES if role in variables}
    if not any("A" in own for own in (found, given, supplied)):
        found = (
            _lowercase_variables(variables, "")
            if _is_complete(_lowercase_variables(variables, ""))
            else _match_struct_fields(path, variables, given)
        )
    return found | given


def struct_prefix(found: Mapping[str, str]) -> str:
    """The struct that A comes from, with its dot, or nothing: a sampling time stands beside A."""
    owner, dot, _ = found.get("A", "").rpartition(".")
    return owner + dot


def guess_matrices(file_format: ReadableFormat, path: Path, variables: Collection[str]) -> dict[str, str]:
    """What A, and B and C, could be by their sizes, where exactly one square matrix is there; nothing elsewhere."""
    shapes: dict[str, tuple[int, ...]] = {}
    for name in list(variables)[:_MAX_INSPECTED]:
        with suppress(Exception):  # no numbers, too large or damaged, which every format says in its own way
            shapes[name] = shape_of(file_format.read(path, [name], max_bytes=_MAX_INSPECTED_BYTES)[name], name)
    square = [name for name, shape in shapes.items() if len(shape) == 2 and shape[0] == shape[1] > 1]
    if len(square) != 1:
        return {}
    n = shapes[square[0]][0]
    tall = [name for name, shape in shapes.items() if len(shape) == 2 and shape[0] == n > shape[1] >= 1]
    wide = [name for name, shape in shapes.items() if len(shape) == 2 and shape[1] == n > shape[0] >= 1]
    if len(tall) != 1 or len(wide) != 1:
        return {"A": square[0]}
    return {"A": square[0], "B": tall[0], "C": wide[0]}


def _validate_matrix_names(path: Path, variables: Collection[str], names: Mapping[str, str] | None) -> dict[str, str]:
    if names is None:
        return {}
    if not isinstance(names, Mapping) or not all(isinstance(own, str) for own in (*names, *names.values())):
        raise FileFormatError(f'names is {sanitize(repr(names))}; give variables by matrix, such as {{"A": "Amat"}}')
    for role, name in names.items():
        if role not in MATRIX_NAMES:
            raise FileFormatError(f"names has {sanitize(repr(role))}; the matrices are {', '.join(MATRIX_NAMES)}")
        if name not in variables:
            raise FileFormatError(
                f"{format_path(path)} has no {sanitize(name)}, which is to be {role}; it holds {format_names(variables)}"
            )
    return dict(names)


def _match_struct_fields(path: Path, variables: Collection[str], given: Mapping[str, str]) -> dict[str, str]:
    owners = dict.fromkeys(name.rpartition(".")[0] for name in variables if "." in name)
    fitting = {}
    for owner in owners:
        capital = {role: f"{owner}.{role}" for role in MATRIX_NAMES if f"{owner}.{role}" in variables}
        fields = capital if _is_complete(capital) else _lowercase_variables(variables, f"{owner}.")
        if _is_complete(fields):
            fitting[owner] = fields
    if len(fitting) > 1 and not given:
        first = next(iter(fitting.values()))
        example = ", ".join(f'"{role}": "{sanitize(name)}"' for role, name in first.items())
        raise FileFormatError(
            f"{format_path(path)} holds several systems ({format_names(fitting)}); say which: names={{{example}}}"
        )
    return next(iter(fitting.values()), {}) if len(fitting) == 1 else {}


def _lowercase_variables(variables: Collection[str], prefix: str) -> dict[str, str]:
    return {role: prefix + role.lower() for role in MATRIX_NAMES if prefix + role.lower() in variables}


def _is_complete(found: Mapping[str, str]) -> bool:
    return all(role in found for role in _REQUIRED_MATRICES)


# MERGED ltinet.io.system_variables
# Names of inputs, outputs and states beside the matrices of a file, as MATLAB and others call such variables.

NAME_VARIABLES = {"inputs": "InputName", "outputs": "OutputName", "states": "StateName"}
"""What the variables are called in files that are written here: as MATLAB calls the properties of its models."""
_ALTERNATIVE_NAMES = {"inputs": "input_names", "outputs": "output_names", "states": "state_names"}
_UNIT_VARIABLES = {"inputs": "InputUnit", "outputs": "OutputUnit", "states": "StateUnit"}


def read_signal_names(
    file_format: ReadableFormat, path: Path, variables: Collection[str], *, beside: str, counts: Mapping[str, int]
) -> SignalNames:
    """The names in a file, where it has as many of them as the system has inputs, outputs or states.

    They are texts of their own or, where the matrices are fields of a struct, `beside` them. What is no list of names
    that could be used is left alone: the system is there without it.
    """
    found = {}
    for kind, count in counts.items():
        names = _read_matching_texts(
            file_format, path, variables, (beside + NAME_VARIABLES[kind], beside + _ALTERNATIVE_NAMES[kind]), count
        )
        if names is None or not any(name.strip() for name in names):  # MATLAB has empty texts where nobody named them
            continue
        units = _read_matching_texts(file_format, path, variables, (beside + _UNIT_VARIABLES[kind],), count)
        with suppress(InvalidSystemError):  # control characters, or a text of many lines
            found[kind] = _complete_names(names, units, kind)
    return SignalNames(**found)


def _read_matching_texts(
    file_format: ReadableFormat, path: Path, variables: Collection[str], known: Collection[str], count: int
) -> list[str] | None:
    for name in (name for name in known if name in variables):
        with suppress(Exception):  # no texts, or damaged, which every format says in its own way
            texts = file_format.read_texts(path, name)
            if len(texts) == count:
                return texts
    return None


def _complete_names(names: list[str], units: list[str] | None, kind: str) -> Names:
    """Names with their units; numbers for what has none, and of what comes twice a number behind it, as in MATLAB."""
    numbered = names_or_defaults(None, kind, len(names))
    full = [name.strip() or own for name, own in zip(names, numbered, strict=True)]
    if units is not None:
        full = [f"{name} ({unit.strip()})" if unit.strip() else name for name, unit in zip(full, units, strict=True)]
    unique = tuple(
        f"{name}({full[:place].count(name) + 1})" if full.count(name) > 1 else name for place, name in enumerate(full)
    )
    return getattr(SignalNames(**{kind: unique}), kind) or ()


# MERGED ltinet.io.system_variables
# Delays, operating point, hold and sample time beside the matrices of a file, called as in MATLAB where it has a name.
#
# `InputDelay` and `OutputDelay` are properties of MATLAB's models: in units of time, of models in discrete time in
# samples. `InputOffset` and `OutputOffset` are the operating point, `InterSample` is the hold ("zoh" or "foh"), and
# `DataSampleTime` the sample time of the data.

_NUMERIC_SETTINGS = {
    "input_delay": "InputDelay",
    "output_delay": "OutputDelay",
    "u0": "InputOffset",
    "y0": "OutputOffset",
    "sample_time": "DataSampleTime",
}
_HOLD_VARIABLE = "InterSample"
_NOTES_VARIABLE = "SignalRemarks"  # name since version 0.2; part of the file format
_HOLDS = {"zoh": "zero", "foh": "linear"}
_UNSUPPORTED_DELAYS = ("ioDelay", "IODelay", "InternalDelay", "iodelay")


def settings_variables(
    settings: SignalSettings, dt: float | None
) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, list[str]]]:
    """Return the variables of a file that hold these settings: numbers as columns, and texts."""
    numbers = {}
    for name, variable in _NUMERIC_SETTINGS.items():
        own = getattr(settings, name)
        if own is not None:
            column = np.atleast_1d(np.array(own, dtype=np.float64))[:, None]
            is_in_samples = dt is not None and name.endswith("delay")
            numbers[variable] = np.round(column / dt) if is_in_samples and dt is not None else column
    texts = {}
    if settings.hold is not None:
        texts[_HOLD_VARIABLE] = [own for own, hold in _HOLDS.items() if hold == settings.hold]
    if settings.notes and not settings.is_default:
        texts[_NOTES_VARIABLE] = list(settings.notes)
    return numbers, texts


def read_settings(
    file_format: ReadableFormat,
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
    for name in _present_variables(_UNSUPPORTED_DELAYS, variables, beside):
        if np.any(_read_values(file_format, path, name)):
            raise InvalidSystemError(
                f"{format_path(path)} has {name}, delays between single inputs and outputs or inside the model, which "
                "ltinet does not have; approximate them first, as with pade() in MATLAB"
            )
    given: dict[str, Any] = {}
    for setting, variable in _NUMERIC_SETTINGS.items():
        for name in _present_variables((variable,), variables, beside):
            values = _read_values(file_format, path, name)
            if values.size and np.any(values):
                in_samples = dt is not None and setting.endswith("delay")
                given[setting] = (values * dt if in_samples and dt is not None else values).tolist()
    if "sample_time" in given:
        given["sample_time"] = given["sample_time"][0]
    for name in _present_variables((_HOLD_VARIABLE,), variables, beside):
        holds = {_HOLDS[own] for own in _read_stripped_texts(file_format, path, name) if own in _HOLDS}
        if len(holds) == 1:
            given["hold"] = holds.pop()
    for name in _present_variables((_NOTES_VARIABLE,), variables, beside):
        given["notes"] = [own for own in _read_stripped_texts(file_format, path, name) if own.isprintable()]
    return SignalSettings.of(n_inputs=n_inputs, n_outputs=n_outputs, **given)


def _present_variables(names: Collection[str], variables: Collection[str], beside: str) -> list[str]:
    return [own for own in dict.fromkeys((*names, *(beside + name for name in names))) if own in variables]


def _read_values(file_format: ReadableFormat, path: Path, name: str) -> np.ndarray[Any, Any]:
    """Return the numbers of a variable in one row; nothing where it holds something else."""
    try:
        found = np.asarray(file_format.read(path, [name], max_bytes=DEFAULT_MAX_BYTES)[name])
    except (ValueError, KeyError):
        return np.zeros(0)
    return found.ravel().astype(np.float64) if found.dtype.kind in "biuf" else np.zeros(0)


def _read_stripped_texts(file_format: ReadableFormat, path: Path, name: str) -> list[str]:
    try:
        return [own.strip() for own in file_format.read_texts(path, name)]
    except Exception:  # no texts, or damaged, which every format says in its own way
        return []
