"""Conversion of user input to signals: arrays, functions, splines, dictionaries, tables and DataFrames.

Named inputs are brought into the order of the network's inputs. Input that cannot be interpreted without guessing is
rejected; where u and t seem to be exchanged (python-control takes t first), the message says so.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ltinet._util.text import format_count, format_names, sanitize, suggest_names
from ltinet.errors import InvalidSignalError
from ltinet.signals.arrays import Values, as_real_array
from ltinet.signals.function import FunctionSignal
from ltinet.signals.polynomial import PolynomialSignal
from ltinet.signals.sampled import Hold, SampledSignal
from ltinet.signals.signal import Signal
from ltinet.signals.times import TimeAxis

# Exchanged arguments


def suggest_swapped_arguments(error: InvalidSignalError, u: Any) -> InvalidSignalError:
    """Return an error about t, extended by a hint that u comes first if the value of u could be times.

    python-control takes t first. Values that do not ascend strictly in one channel cannot be times.
    """
    try:
        values = np.asarray(None if callable(u) else u)
        ascends = values.ndim == 1 and len(values) > 1 and bool(np.all(values[1:] > values[:-1]))
    except (TypeError, ValueError, RuntimeError):
        return error
    hint = "u ascends as times do; were u and t exchanged? The order is simulate(u, t)"
    return InvalidSignalError(f"{error}. {hint}") if ascends else error


# Named inputs

Names = tuple[str, ...]
_MAX_LISTED_NAMES = 5  # unknown names in one message


@runtime_checkable
class NamedColumns(Protocol):
    """Table with times `(T,)`, values `(T, k)` and one name for each column."""

    t: Values
    names: Names
    values: Values


def order_inputs(u: Any, names: Names, *, are_given: bool, n_times: int) -> Any:
    """Return u with one channel for each input, in the order of their names; u without names is returned as it is.

    A dictionary has samples `(..., T)`, a number or a function of time for each input. Columns of a table or a
    DataFrame are ordered by `match_columns` if the user gave names of inputs, otherwise they keep their order. Raises
    InvalidSignalError if names are missing, unknown, or contradict the order of columns.
    """
    if u is None or isinstance(u, list):
        return u
    if isinstance(u, Mapping):
        return _from_mapping(u, names, n_times)
    if hasattr(u, "columns") and hasattr(u, "iloc"):
        indices = match_columns([str(column) for column in u.columns], names, "the DataFrame") if are_given else None
        return u if indices is None else u.iloc[:, indices]
    if isinstance(u, NamedColumns):
        indices = match_columns(u.names, names, "the table") if are_given else None
        return u.values if indices is None else u.values[:, indices]
    return u


def match_columns(columns: Sequence[str], inputs: Names, title: str) -> list[int] | None:
    """Return for each input the index of the column with its name; None if columns are to be taken in their order.

    Raises InvalidSignalError if a column has the name of an input but stands at the position of another one.
    """
    if len(columns) != len(inputs) or tuple(columns) == inputs:
        return None
    if set(columns) == set(inputs):
        return [columns.index(name) for name in inputs]
    for index, column in enumerate(columns):
        if column in inputs and inputs[index] != column:
            others = [name for name in inputs if name not in columns]
            raise InvalidSignalError(
                f"{title}: column {index + 1} is named like input {inputs.index(column) + 1}, {sanitize(repr(column))}, and "
                f"no column is named {sanitize(repr(others[0]))}; name all columns like the inputs, or give them in the "
                "order of the inputs under other names"
            )
    return None


def _from_mapping(u: Mapping[Any, Any], names: Names, n_times: int) -> Any:
    """Return the samples or the function of a dictionary of inputs."""
    missing, unknown = [name for name in names if name not in u], [name for name in u if name not in names]
    if missing or unknown:
        lacking = [f"it lacks {format_names([repr(name) for name in missing])}"] if missing else []
        strange = [
            f"{sanitize(repr(name))} is not an input ({suggest_names(name, names)})"
            for name in unknown[:_MAX_LISTED_NAMES]
        ]
        raise InvalidSignalError(f"u does not name every input once: {'; '.join([*strange, *lacking])}")
    values = [u[name] for name in names]
    if any(callable(value) for value in values):
        return _function_of(values, names)
    samples = [_named_samples(value, name, n_times) for name, value in zip(names, values, strict=True)]
    try:
        broadcast = np.broadcast_arrays(*samples, np.empty(n_times))
    except ValueError:
        shapes = ", ".join(f"{sanitize(name)} {array.shape}" for name, array in zip(names, samples, strict=True))
        raise InvalidSignalError(
            f"the batches of u have different shapes: {shapes}; give the same batch for all inputs"
        ) from None
    return np.stack(broadcast[:-1], axis=-1) if names else np.empty((n_times, 0))


def _function_of(values: Sequence[Any], names: Names) -> Callable[[Any], Any]:
    """Return all inputs as one function of time; numbers are constant."""
    for name, value in zip(names, values, strict=True):
        if not callable(value) and np.ndim(value):
            raise InvalidSignalError(
                f"u has samples of {sanitize(repr(name))} and a function of time for another input; give samples or "
                "numbers for all, or functions or numbers for all"
            )
    constants = [None if callable(value) else float(as_real_array(value, "u")) for value in values]

    def inputs(t: Any) -> list[Any]:
        return [f(t) if constant is None else constant for f, constant in zip(values, constants, strict=True)]

    return inputs


def _named_samples(value: Any, name: str, n_times: int) -> Values:
    """Return the samples of one input, `(..., T)`, or a number."""
    samples = as_real_array(value, f"u[{sanitize(repr(name))}]")
    if samples.ndim and samples.shape[-1] != n_times:
        raise InvalidSignalError(
            f"u[{sanitize(repr(name))}] has shape {samples.shape}, but there are {n_times} times; give (T,), or a number "
            "for a constant"
        )
    return samples


# Signals


def is_piecewise_polynomial(u: Any) -> bool:
    """Return whether u is a PPoly of SciPy; scipy.interpolate is slow to import and must be loaded if u is one."""
    interpolate = sys.modules.get("scipy.interpolate")
    return interpolate is not None and isinstance(u, interpolate.PPoly)


# Predicates and conversions to signals; the first that matches is used.
CONVERTERS: tuple[tuple[Callable[[Any], bool], Callable[[Any, int], Signal]], ...] = (
    (is_piecewise_polynomial, lambda u, _: PolynomialSignal.of(u)),
    (callable, lambda u, n_inputs: FunctionSignal(u, n_inputs=n_inputs)),
)

_MEMBERS = sorted(name for kind in Signal.__mro__ for name in vars(kind) if not name.startswith("_"))


def as_signal(u: Any, axis: TimeAxis, *, n_inputs: int, hold: Hold) -> Signal:
    """Return a signal for samples at the given times, a function of time, a signal itself, or None for zero input."""
    t = axis.t
    if u is None:
        return SampledSignal(axis, np.zeros((len(t), n_inputs)), hold=hold)
    signal = _convert(u, axis, n_inputs=n_inputs, hold=hold)
    if signal.n_inputs != n_inputs:
        shape = f" (shape {np.shape(u)})" if isinstance(signal, SampledSignal) and signal is not u else ""
        raise InvalidSignalError(
            f"u has {format_count(signal.n_inputs, 'channel')}{shape} but the network has {format_count(n_inputs, 'input')}; "
            "its last axis must have one entry per input"
        )
    if getattr(signal, "axis", None) is not axis and (t[0] < signal.start or t[-1] > signal.stop):
        raise InvalidSignalError(
            f"the times reach from {t[0]:g} to {t[-1]:g}, but u is defined from {signal.start:g} to {signal.stop:g} only; "
            "give times within this range"
        )
    return signal


def _convert(u: Any, axis: TimeAxis, *, n_inputs: int, hold: Hold) -> Signal:
    """Return the signal that u is, or is converted to."""
    # The check for the members of a signal takes longer than a short run: it is skipped for arrays.
    if not isinstance(u, (np.ndarray, list)):
        if isinstance(u, Signal):
            return u
        for fits, make in CONVERTERS:
            if fits(u):
                return make(u, n_inputs)
        if hasattr(u, "value") and hasattr(u, "n_inputs"):
            missing = [name for name in _MEMBERS if not hasattr(u, name)]
            raise InvalidSignalError(f"u is a {type(u).__name__} without members of a signal: {', '.join(missing)}")
    return SampledSignal(axis, u, hold=hold)
