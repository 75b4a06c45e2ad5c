"""Records of experiments: evenly spaced samples of inputs and outputs, validated and split at gaps.

A `Record` holds inputs u `(T, m)` and outputs y `(T, p)` without missing samples. `ExperimentData` is made from
arrays, tables, DataFrames or lists of these; runs of samples between gaps (NaN) become experiments of their own,
channels that never change or repeat another channel are rejected, and outliers are reported.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.floating_point import Array
from ltinet._util.text import format_count
from ltinet.errors import InvalidSignalError
from ltinet.signals.arrays import as_real_array
from ltinet.signals.conversion import NamedColumns
from ltinet.signals.times import TimeAxis
from ltinet.systems.signal_names import Names

# MERGED ltinet.identification.records
# One experiment: evenly spaced samples of inputs and outputs without gaps.


@dataclass(frozen=True, eq=False)
class Record:
    """Inputs `(T, m)` and outputs `(T, p)` of one experiment."""

    u: Array
    y: Array

    def __len__(self) -> int:
        return len(self.u)

    def part(self, own: slice) -> "Record":
        """Some samples that follow each other."""
        return Record(self.u[own], self.y[own])

    def shifted(self, delays: tuple[int, ...]) -> "Record":
        """The record with every input as many samples later as it is delayed; samples without an input are left out."""
        longest = max(delays, default=0)
        if not longest:
            return self
        u = np.stack([self.u[longest - d : len(self) - d, j] for j, d in enumerate(delays)], axis=1)
        return Record(u, self.y[longest:])


def n_samples(records: tuple[Record, ...]) -> int:
    """Samples of all experiments."""
    return sum(len(own) for own in records)


# MERGED ltinet.identification.records
# What a user calls a record becomes experiments without gaps, with their names, or an error that says what to do.

_MIN_SAMPLES = 10  # samples of an experiment between two gaps: shorter ones say nothing
_EQUAL = 1e-12  # of the largest: channels that differ by rounding
_OUTLIER = 1e3  # times the spread of most samples of a channel


class ExperimentData(NamedTuple):
    """Experiments, and names of channels where they came with some."""

    records: tuple[Record, ...]
    inputs: Names | None
    outputs: Names | None
    notes: tuple[str, ...]
    n_given: int
    """Samples of the first experiment, gaps included."""


def validate_records(u: Any, y: Any) -> ExperimentData:
    """Experiments from arrays `(T,)` or `(T, channels)`, tables, DataFrames, or lists of these.

    Raises:
        InvalidSignalError: they are no numbers, do not fit each other, are infinite, or nothing is left between gaps.
    """
    records: list[Record] = []
    n_gaps = 0
    for record, parts in parse_experiments(u, y):
        n_gaps += int(np.isnan(record.u).any(axis=1).sum() + np.isnan(record.y).any(axis=1).sum())
        records += [record.part(own) for own in parts]
    if not records:
        raise InvalidSignalError(
            f"no {_MIN_SAMPLES} samples follow each other without a gap (NaN); fill gaps, or give a longer record"
        )
    notes = (
        [f"{format_count(n_gaps, 'sample')} with NaN: {format_count(len(records), 'experiment')} between"]
        if n_gaps
        else []
    )
    _require_movement(records)
    notes += _outliers(records)
    first_u, first_y = (u[0], y[0]) if _are_several(u) else (u, y)
    names = _names(first_u), _names(first_y)
    return ExperimentData(tuple(records), *names, tuple(notes), len(_plain(first_u)))


def parse_experiments(u: Any, y: Any) -> list[tuple[Record, list[slice]]]:
    """Experiments from arrays, tables, DataFrames or lists of these, each with its runs of samples between gaps.

    Raises:
        InvalidSignalError: they are no numbers, do not fit each other, or are infinite.
    """
    several = _are_several(u)
    if several != _are_several(y):
        raise InvalidSignalError("one of u and y is a list of experiments and the other is not; give both as lists")
    pairs = list(zip(u, y, strict=False)) if several else [(u, y)]
    if several and len(u) != len(y):
        raise InvalidSignalError(f"u has {len(u)} experiments and y has {len(y)}; give one y for each u")
    found: list[tuple[Record, list[slice]]] = []
    for number, (one_u, one_y) in enumerate(pairs):
        place = f"[{number}]" if several else ""
        record = _record(one_u, one_y, place)
        first = found[0][0] if found else record
        if (record.u.shape[1], record.y.shape[1]) != (first.u.shape[1], first.y.shape[1]):
            raise InvalidSignalError(f"u{place} or y{place} has other channels than the experiments before it")
        found.append((record, list(_between_gaps(record))))
    return found


def _are_several(value: Any) -> bool:
    """Whether this is a list of experiments."""
    return isinstance(value, list | tuple) and len(value) > 0 and np.ndim(_plain(value[0])) > 0 and not _is_rows(value)


def resolve_time_step(dt: Any, t: ArrayLike | None) -> float:
    """The distance of samples, from dt or from times.

    Raises:
        InvalidSignalError: neither or both are given, dt is no positive number, or times are not even.
    """
    if (dt is None) == (t is None):
        raise InvalidSignalError("give the time between samples as dt, or the times as t; one of them and not both")
    if t is not None:
        axis = TimeAxis.of(t)
        if axis.step is None:
            raise InvalidSignalError(
                "the times are not evenly spaced; resample first: te = np.linspace(t[0], t[-1], len(t)), then "
                "np.interp(te, t, u[:, j]) for every channel of u and y"
            )
        return axis.step
    try:
        step = float(dt)
    except (TypeError, ValueError):
        step = np.nan
    if not 0.0 < step < np.inf:
        raise InvalidSignalError(f"dt is {dt!r}; give the time between two samples, a positive number")
    return step


def _plain(value: Any) -> Any:
    return value.values if isinstance(value, NamedColumns) or hasattr(value, "iloc") else value


def _is_rows(value: Any) -> bool:
    """Whether a list holds samples and not experiments: rows of numbers, all of one length and few."""
    return all(not isinstance(row, np.ndarray) and np.ndim(_plain(row)) <= 1 for row in value)


def _record(u: Any, y: Any, place: str) -> Record:
    inputs, outputs = (_channels(value, f"{name}{place}") for value, name in ((u, "u"), (y, "y")))
    if len(inputs) != len(outputs):
        raise InvalidSignalError(
            f"u{place} has {format_count(len(inputs), 'sample')} and y{place} has {len(outputs)}; give one y for each u, "
            "time along the first axis"
        )
    for own, name in ((inputs, "u"), (outputs, "y")):
        if own.shape[1] > len(own):
            raise InvalidSignalError(
                f"{name}{place} has {own.shape[1]} channels and {format_count(len(own), 'sample')}; time comes first: pass "
                f"{name}.T if channels do"
            )
    return Record(inputs, outputs)


def _channels(value: Any, name: str) -> Array:
    array = as_real_array(_plain(value), name)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or not array.size:
        raise InvalidSignalError(f"{name} has shape {np.shape(value)}; give samples (T,) or (T, channels)")
    if np.isinf(array).any():
        raise InvalidSignalError(f"{name} has infinite entries; mark what is missing with NaN")
    return array


def _between_gaps(record: Record) -> Iterator[slice]:
    """Runs of samples without NaN that are long enough to say something."""
    missing = np.isnan(record.u).any(axis=1) | np.isnan(record.y).any(axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate([[True], missing, [True]]).astype(np.int8)))
    for begin, end in edges.reshape(-1, 2).tolist():
        if end - begin >= _MIN_SAMPLES:
            yield slice(begin, end)


def _require_movement(records: list[Record]) -> None:
    """Refuse channels that never change: nothing can be learnt from them."""
    for name in ("u", "y"):
        values = np.concatenate([getattr(own, name) for own in records])
        still = np.flatnonzero(np.ptp(values, axis=0) == 0.0)
        if len(still):
            what = f"{name}[:, {still[0]}] is {values[0, still[0]] + 0.0:g} at every sample"
            raise InvalidSignalError(f"{what}; a channel that never changes says nothing: leave it out")
        _refuse_copies(values, name)


def _refuse_copies(values: Array, name: str) -> None:
    """Refuse channels that are multiples of each other: what belongs to which cannot be told."""
    centred = values - values.mean(axis=0)
    centred /= np.abs(centred).max(axis=0)
    products = centred.T @ centred
    for j in range(centred.shape[1]):
        for i in range(j):
            scale = products[i, j] / products[i, i]
            if np.abs(centred[:, j] - scale * centred[:, i]).max() <= _EQUAL:
                ratio = scale * np.ptp(values[:, j]) / np.ptp(values[:, i])
                raise InvalidSignalError(
                    f"{name}[:, {j}] is {ratio:.3g} times {name}[:, {i}] at every sample; leave one out"
                )


def _outliers(records: list[Record]) -> list[str]:
    """Samples so far from all others that a least-squares fit is about them alone."""
    told = []
    for name in ("u", "y"):
        values = np.concatenate([getattr(own, name) for own in records])
        distance = np.abs(values - np.median(values, axis=0))
        spread = np.maximum(np.quantile(distance, 0.75, axis=0), 1e-300)
        for channel in range(values.shape[1]):
            far = np.flatnonzero(distance[:, channel] > _OUTLIER * spread[channel])
            if 0 < len(far) < 0.01 * len(values) + 1:
                told.append(
                    f"{name}[{far[0]}, {channel}] is {values[far[0], channel]:.3g}, {_OUTLIER:g} times farther out "
                    "than most samples: an outlier? mark it with NaN"
                )
    return told


def _names(value: Any) -> Names | None:
    if isinstance(value, NamedColumns):
        return tuple(value.names)
    if hasattr(value, "iloc") and hasattr(value, "columns"):
        return tuple(str(column) for column in value.columns)
    name = getattr(value, "name", None)
    return (str(name),) if name is not None and hasattr(value, "iloc") else None
