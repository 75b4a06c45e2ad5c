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
from typing import Any, NamedTuple, Protocol

import numpy as np

from ltinet._util.text import format_names, format_path, sanitize
from ltinet.errors import FileFormatError, InvalidSystemError
from ltinet.io.file_access import DEFAULT_MAX_BYTES, error_text
from ltinet.systems.matrices import shape_of
from ltinet.systems.signal_names import Names, SignalNames, names_or_defaults
from ltinet.systems.signal_settings import SignalSettings

_TIME_STEP_NAMES = ("Ts", "dt", "Td", "sampling_time", "sample_time", "SampleTime")


class ReadableFormat(Protocol):
    """Format module that can read files with variables."""

    def list_variables(self, path: Path) -> list[str]:
        """List the names of the variables without reading them."""

    def read(self, path: Path, names: Collection[str], *, max_bytes: float) -> dict[str, Any]:
        """Read those of `names` that exist."""

    def read_texts(self, path: Path, name: str) -> list[str]:
        """Return the texts of a variable; raise ValueError if it is not a list of texts."""


class SystemFile(NamedTuple):
    """File with its variables; the prefix is that of the struct of the matrices, or ""."""

    file_format: ReadableFormat
    path: Path
    variables: Collection[str]
    prefix: str = ""

    def present(self, *names: str) -> list[str]:
        """Return those of `names` that are variables of the file or, with the prefix, fields of the struct."""
        known = dict.fromkeys((*names, *(self.prefix + name for name in names)))
        return [name for name in known if name in self.variables]

    def read(self, name: str, *, max_bytes: float = DEFAULT_MAX_BYTES) -> Any:
        """Read one variable."""
        return self.file_format.read(self.path, [name], max_bytes=max_bytes)[name]

    def numbers(self, name: str) -> np.ndarray[Any, Any]:
        """Return the numbers of a variable in one row; an empty array if it is not numeric."""
        try:
            values = np.asarray(self.read(name))
        except (ValueError, KeyError):
            return np.zeros(0)
        return values.ravel().astype(np.float64) if values.dtype.kind in "biuf" else np.zeros(0)

    def texts(self, name: str) -> list[str]:
        """Return the texts of a variable without outer blanks; an empty list if it does not hold texts."""
        try:
            return [text.strip() for text in self.file_format.read_texts(self.path, name)]
        except Exception:  # not texts, or damaged; every format has its own exceptions
            return []


def read_time_step(file: SystemFile) -> float | None:
    """Read the time step of a system in discrete time; None for continuous time, where it is missing, 0 or [].

    It is a variable of the file or, with the prefix, of the struct of the matrices. Raises InvalidSystemError if there
    are different time steps, or one that is not a positive number, such as -1 of MATLAB.
    """
    steps: dict[str, float] = {}
    for name in file.present(*_TIME_STEP_NAMES):
        try:
            value = np.asarray(file.read(name))
        except ValueError as error:
            value = np.array(error_text(error))
        if value.dtype.kind in "biufc" and not np.any(value):
            continue
        step = float(value.item()) if value.dtype.kind in "iuf" and value.size == 1 else np.nan
        if not 0.0 < step < np.inf:
            text = f"{value.item():g}" if value.dtype.kind in "biuf" and value.size == 1 else sanitize(value)
            raise InvalidSystemError(
                f"{format_path(file.path)} has the invalid time step {name} = {text}; pass load_system(path, dt=0.1), "
                f"or dt=0 if the model is in continuous time"
            )
        steps[name] = step
    if len(set(steps.values())) > 1:
        text = ", ".join(f"{name} = {step:g}" for name, step in steps.items())
        raise InvalidSystemError(
            f"{format_path(file.path)} has several time steps ({text}); select one: load_system(path, dt=0.1), or dt=0 for "
            "continuous time"
        )
    return next(iter(steps.values()), None)


MATRIX_NAMES = ("A", "B", "C", "D", "E")
_REQUIRED_MATRICES = ("A", "B", "C")
_MAX_INSPECTED, _MAX_INSPECTED_BYTES = 100, 2**26  # variables of a file without A, and bytes of each


def match_matrices(
    path: Path, variables: Collection[str], names: Mapping[str, str] | None, *, supplied: Collection[str] = ()
) -> dict[str, str]:
    """Return the variable that holds each matrix, without matrices that the file lacks.

    By default these are A to E. If there is no A, and none is `supplied`, they are a to e, or the fields of the only
    struct with A, B and C. Raises FileFormatError if `names` are not valid or several structs match.
    """
    names = _validate_matrix_names(path, variables, names)
    matches = {role: role for role in MATRIX_NAMES if role in variables}
    if not any("A" in roles for roles in (matches, names, supplied)):
        matches = _lowercase_variables(variables, "")
        if not _is_complete(matches):
            matches = _match_struct_fields(path, variables, names)
    return matches | names


def struct_prefix(variable_names: Mapping[str, str]) -> str:
    """Return the prefix of the struct that holds A, with its dot, or ""."""
    owner, dot, _ = variable_names.get("A", "").rpartition(".")
    return owner + dot


def guess_matrices(file: SystemFile) -> dict[str, str]:
    """Guess A, B and C by their shapes if the file has exactly one square matrix; otherwise return nothing."""
    shapes: dict[str, tuple[int, ...]] = {}
    for name in list(file.variables)[:_MAX_INSPECTED]:
        with suppress(Exception):  # not numeric, too large or damaged; every format has its own exceptions
            shapes[name] = shape_of(file.read(name, max_bytes=_MAX_INSPECTED_BYTES), name)
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
    if not isinstance(names, Mapping) or not all(isinstance(name, str) for name in (*names, *names.values())):
        raise FileFormatError(
            f'names must map matrices to variables, such as {{"A": "Amat"}}, got {sanitize(repr(names))}'
        )
    for role, name in names.items():
        if role not in MATRIX_NAMES:
            raise FileFormatError(f"names has {sanitize(repr(role))}; the matrices are {', '.join(MATRIX_NAMES)}")
        if name not in variables:
            raise FileFormatError(
                f"{format_path(path)} has no {sanitize(name)}, which names gives for {role}; it holds {format_names(variables)}"
            )
    return dict(names)


def _match_struct_fields(path: Path, variables: Collection[str], names: Mapping[str, str]) -> dict[str, str]:
    owners = dict.fromkeys(name.rpartition(".")[0] for name in variables if "." in name)
    structs = {}
    for owner in owners:
        capital = {role: f"{owner}.{role}" for role in MATRIX_NAMES if f"{owner}.{role}" in variables}
        fields = capital if _is_complete(capital) else _lowercase_variables(variables, f"{owner}.")
        if _is_complete(fields):
            structs[owner] = fields
    if len(structs) > 1 and not names:
        first = next(iter(structs.values()))
        example = ", ".join(f'"{role}": "{sanitize(name)}"' for role, name in first.items())
        raise FileFormatError(
            f"{format_path(path)} holds several systems ({format_names(structs)}); select one: names={{{example}}}"
        )
    return next(iter(structs.values())) if len(structs) == 1 else {}


def _lowercase_variables(variables: Collection[str], prefix: str) -> dict[str, str]:
    return {role: prefix + role.lower() for role in MATRIX_NAMES if prefix + role.lower() in variables}


def _is_complete(variable_names: Mapping[str, str]) -> bool:
    return all(role in variable_names for role in _REQUIRED_MATRICES)


NAME_VARIABLES = {"inputs": "InputName", "outputs": "OutputName", "states": "StateName"}
"""Variables of files written by ltinet, called as the properties of MATLAB models."""
_ALTERNATIVE_NAMES = {"inputs": "input_names", "outputs": "output_names", "states": "state_names"}
_UNIT_VARIABLES = {"inputs": "InputUnit", "outputs": "OutputUnit", "states": "StateUnit"}


def read_signal_names(file: SystemFile, counts: Mapping[str, int]) -> SignalNames:
    """Read the names of inputs, outputs and states: variables of the file or, with the prefix, of a struct.

    Names that are missing, not valid, or of the wrong number are ignored.
    """
    signal_names = {}
    for kind, count in counts.items():
        names = _read_matching_texts(file, (NAME_VARIABLES[kind], _ALTERNATIVE_NAMES[kind]), count)
        if not any(names):  # MATLAB stores empty texts for default names
            continue
        units = _read_matching_texts(file, (_UNIT_VARIABLES[kind],), count)
        with suppress(InvalidSystemError):  # control characters, or a text of many lines
            signal_names[kind] = _complete_names(names, units, kind)
    return SignalNames(**signal_names)


def _read_matching_texts(file: SystemFile, known: Collection[str], count: int) -> list[str]:
    """Return the first of the known lists of texts that has `count` of them, or an empty list."""
    lists = (file.texts(file.prefix + name) for name in known if file.prefix + name in file.variables)
    return next((texts for texts in lists if len(texts) == count), [])


def _complete_names(names: list[str], units: list[str], kind: str) -> Names:
    """Append units, number signals without names, and make equal names unique by a number, as MATLAB does."""
    numbered = names_or_defaults(None, kind, len(names))
    full = [name or default for name, default in zip(names, numbered, strict=True)]
    if units:
        full = [f"{name} ({unit})" if unit else name for name, unit in zip(full, units, strict=True)]
    unique = tuple(
        f"{name}({full[:index].count(name) + 1})" if full.count(name) > 1 else name for index, name in enumerate(full)
    )
    return getattr(SignalNames(**{kind: unique}), kind) or ()


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
    """Return the variables that hold settings in a file: columns of numbers, and texts."""
    numbers = {}
    for name, variable in _NUMERIC_SETTINGS.items():
        values = getattr(settings, name)
        if values is not None:
            column = np.atleast_1d(np.array(values, dtype=np.float64))[:, None]
            numbers[variable] = np.round(column / dt) if dt is not None and name.endswith("delay") else column
    texts = {}
    if settings.hold is not None:
        texts[_HOLD_VARIABLE] = [text for text, hold in _HOLDS.items() if hold == settings.hold]
    if settings.notes and not settings.is_default:
        texts[_NOTES_VARIABLE] = list(settings.notes)
    return numbers, texts


def read_settings(file: SystemFile, *, n_inputs: int, n_outputs: int, dt: float | None) -> SignalSettings:
    """Read settings: variables of the file or, with the prefix, of the struct of the matrices.

    Raises InvalidSystemError if they do not fit the system, or if the file has internal delays, which are not
    supported.
    """
    for name in file.present(*_UNSUPPORTED_DELAYS):
        if np.any(file.numbers(name)):
            raise InvalidSystemError(
                f"{format_path(file.path)} has {name}, delays between single inputs and outputs or inside the model, which "
                "ltinet does not support; approximate them first, as with pade() in MATLAB"
            )
    settings: dict[str, Any] = {}
    for setting, variable in _NUMERIC_SETTINGS.items():
        for name in file.present(variable):
            values = file.numbers(name)
            if values.size and np.any(values):
                scale = dt if dt is not None and setting.endswith("delay") else 1.0  # delays are stored in samples
                settings[setting] = (values * scale).tolist()
    if "sample_time" in settings:
        settings["sample_time"] = settings["sample_time"][0]
    for name in file.present(_HOLD_VARIABLE):
        holds = {_HOLDS[text] for text in file.texts(name) if text in _HOLDS}
        if len(holds) == 1:
            settings["hold"] = holds.pop()
    for name in file.present(_NOTES_VARIABLE):
        settings["notes"] = [text for text in file.texts(name) if text.isprintable()]
    return SignalSettings.of(n_inputs=n_inputs, n_outputs=n_outputs, **settings)
