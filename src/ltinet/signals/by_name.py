"""Inputs that come by name, a dictionary, a table or a DataFrame, as those that come in the order of the network."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ltinet.errors import InvalidSignalError
from ltinet.shown import near, shown, shown_names
from ltinet.signals.arrays import Values
from ltinet.signals.numbers import real_array

Names = tuple[str, ...]
_TOLD = 5  # unknown names in one message


@runtime_checkable
class NamedColumns(Protocol):
    """A table: values `(T, k)`, one column for each of the names."""

    names: Names
    values: Values


def in_order(u: Any, names: Names, *, are_given: bool, n_times: int) -> Any:
    """What came as u with one channel for each input, in the order of their names; what has no names stays as it is.

    A dictionary has samples `(..., T)`, a number or a function of time for each input. Columns of a table or a
    DataFrame are placed as `places_of` says if the names were given, and stay in their order if they only count.

    Raises:
        InvalidSignalError: names are missing, unknown, or contradict the order of columns.
    """
    if u is None or isinstance(u, list):
        return u
    if isinstance(u, Mapping):
        return _from_mapping(u, names, n_times)
    if hasattr(u, "columns") and hasattr(u, "iloc"):
        places = places_of([str(column) for column in u.columns], names, "the DataFrame") if are_given else None
        return u if places is None else u.iloc[:, places]
    if isinstance(u, NamedColumns):
        places = places_of(u.names, names, "the table") if are_given else None
        return u.values if places is None else u.values[:, places]
    return u


def places_of(columns: Sequence[str], inputs: Names, title: str) -> list[int] | None:
    """For each input the place of its column, where columns are called exactly as the inputs are; None for their order.

    Raises:
        InvalidSignalError: some are, but stand where another input would be taken from.
    """
    if len(columns) != len(inputs) or tuple(columns) == inputs:
        return None
    if set(columns) == set(inputs):
        return [columns.index(name) for name in inputs]
    for place, column in enumerate(columns):
        if column in inputs and inputs[place] != column:
            others = [name for name in inputs if name not in columns]
            raise InvalidSignalError(
                f"{title} has the column {shown(repr(column))} at place {place + 1}, which is the input "
                f"{inputs.index(column) + 1} of that name, and none called {shown(repr(others[0]))}; name all columns "
                "as the inputs are, or give them in their order"
            )
    return None


def _from_mapping(u: Mapping[Any, Any], names: Names, n_times: int) -> Any:
    missing, unknown = [name for name in names if name not in u], [name for name in u if name not in names]
    if missing or unknown:
        lacking = [f"it lacks {shown_names([repr(name) for name in missing])}"] if missing else []
        strange = [f"{shown(repr(name))} is no input ({near(name, names)})" for name in unknown[:_TOLD]]
        raise InvalidSignalError(f"u does not name every input once: {'; '.join([*strange, *lacking])}")
    values = [u[name] for name in names]
    if any(callable(value) for value in values):
        return _function_of(values, names)
    samples = [_samples(value, name, n_times) for name, value in zip(names, values, strict=True)]
    try:
        together = np.broadcast_arrays(*samples, np.empty(n_times))
    except ValueError:
        shapes = ", ".join(f"{shown(name)} {own.shape}" for name, own in zip(names, samples, strict=True))
        raise InvalidSignalError(f"the batches of u do not fit each other: {shapes}; give the same for all") from None
    return np.stack(together[:-1], axis=-1) if names else np.empty((n_times, 0))


def _function_of(values: Sequence[Any], names: Names) -> Callable[[Any], Any]:
    """All inputs as one function of time; numbers are constant."""
    for name, value in zip(names, values, strict=True):
        if not callable(value) and np.ndim(value):
            raise InvalidSignalError(
                f"u has samples of {shown(repr(name))} and a function of time for another input; give samples or "
                "numbers for all, or functions or numbers for all"
            )
    constants = [None if callable(value) else float(real_array(value, "u")) for value in values]

    def inputs(t: Any) -> list[Any]:
        return [f(t) if constant is None else constant for f, constant in zip(values, constants, strict=True)]

    return inputs


def _samples(value: Any, name: str, n_times: int) -> Values:
    own = real_array(value, f"u[{shown(repr(name))}]")
    if own.ndim and own.shape[-1] != n_times:
        raise InvalidSignalError(
            f"u[{shown(repr(name))}] has shape {own.shape}, but there are {n_times} times; give (T,), or a number "
            "that stays"
        )
    return own
