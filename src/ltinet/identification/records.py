"""Records of experiments: evenly spaced samples of inputs and outputs, validated and split at gaps.

A `Record` holds inputs u `(T, m)` and outputs y `(T, p)` without missing samples. `ExperimentData` is made from
arrays, tables, DataFrames or lists of these; runs of samples between gaps (NaN) become experiments of their own,
channels that never change or repeat another channel are rejected, and outliers are reported.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ltinet._util.floating_point import Array
from ltinet._util.text import format_count
from ltinet.errors import InvalidSignalError
from ltinet.signals.arrays import as_real_array
from ltinet.signals.conversion import NamedColumns
from ltinet.signals.times import GRID_TOLERANCE, TimeAxis, as_time_step, resampled_times
from ltinet.systems.signal_names import Names

# Samples between two gaps. A run of fewer than the model has states says nothing about B and D. Median errors of impulse
# responses are 9.4, 8.9, 10.0 and 10.7 % for 5, 10, 20 and 30 (python -m benchmarks.constants MIN_SAMPLES).
MIN_SAMPLES = 10
_PROPORTIONAL_TOLERANCE = 1e-12  # of the largest value: channels that differ by some thousand roundings at most
_OUTLIER_RATIO = 1e3  # times the third quartile of the distances from the median; decides a note only
_ROUNDED_TIMES = 0.01  # of a step: deviations that are rounding of the times; decides a message only
_COARSE_STEP = 3.0  # times the usual step: a larger one gives a note only
NO_RUN_MESSAGE = f"no {MIN_SAMPLES} samples follow each other without a gap (NaN); fill gaps, or give a longer record"


@dataclass(frozen=True, eq=False)
class Record:
    """Inputs `(T, m)` and outputs `(T, p)` of one experiment without gaps."""

    u: Array
    y: Array

    def __len__(self) -> int:
        return len(self.u)

    def part(self, rows: slice) -> "Record":
        """Return a range of the samples."""
        return Record(self.u[rows], self.y[rows])

    def shifted(self, delays: tuple[int, ...]) -> "Record":
        """Return the record with each input delayed by its number of samples, without samples that lack an input."""
        longest = max(delays, default=0)
        if not longest:
            return self
        u = np.stack([self.u[longest - d : len(self) - d, j] for j, d in enumerate(delays)], axis=1)
        return Record(u, self.y[longest:])


def shift_records(records: tuple[Record, ...], delays: tuple[int, ...]) -> tuple[Record, ...]:
    """Return records with delayed inputs, without those of which fewer than MIN_SAMPLES samples would be left.

    Raises InvalidSignalError where none is left.
    """
    longest = max(delays, default=0)
    if not longest:
        return records
    kept = tuple(record.shifted(delays) for record in records if len(record) - longest >= MIN_SAMPLES)
    if not kept:
        raise InvalidSignalError(
            f"the longest record has {max(map(len, records))} samples without a gap, and the inputs are delayed by "
            f"{longest}; give a longer record, or a shorter delay"
        )
    return kept


def n_samples(records: tuple[Record, ...]) -> int:
    """Return the number of samples of all experiments."""
    return sum(map(len, records))


class ExperimentData(NamedTuple):
    """Experiments, and the names of their channels where they came with names."""

    records: tuple[Record, ...]
    inputs: Names | None
    outputs: Names | None
    notes: tuple[str, ...]
    time_unit: str | None = None
    """Unit of the times of a table."""


def validate_records(u: Any, y: Any, conversions: Sequence[Callable[[Record], Record]] = ()) -> ExperimentData:
    """Return experiments from arrays `(T,)` or `(T, channels)`, tables, DataFrames, or lists of these.

    `conversions` change the first experiments before they are split at their gaps.

    Raises InvalidSignalError where they are not numeric, not finite or inconsistent, or only short runs are left.
    """
    records: list[Record] = []
    n_gaps = 0
    for number, (given, _) in enumerate(parse_experiments(u, y)):
        record = conversions[number](given) if number < len(conversions) else given
        n_gaps += int(np.isnan(record.u).any(axis=1).sum() + np.isnan(record.y).any(axis=1).sum())
        records += [record.part(rows) for rows in _find_runs(record)]
    if not records:
        raise InvalidSignalError(NO_RUN_MESSAGE)
    notes = []
    if n_gaps:
        notes.append(f"{format_count(n_gaps, 'sample')} with NaN: {format_count(len(records), 'experiment')} between")
    for name in ("u", "y"):
        _reject_uninformative_channels(np.concatenate([getattr(record, name) for record in records]), name)
    notes += _outlier_notes(records)
    first_u, first_y = (u[0], y[0]) if _is_experiment_list(u) else (u, y)
    units = {getattr(first, "time_unit", None) for first in (first_u, first_y)} - {None}
    return ExperimentData(tuple(records), _names(first_u), _names(first_y), tuple(notes), next(iter(units), None))


def parse_experiments(u: Any, y: Any) -> list[tuple[Record, list[slice]]]:
    """Return experiments from arrays, tables, DataFrames or lists of these, each with its runs between gaps.

    Raises InvalidSignalError where they are not numeric, infinite, or inconsistent.
    """
    several = _is_experiment_list(u)
    if several != _is_experiment_list(y):
        raise InvalidSignalError("one of u and y is a list of experiments and the other is not; give both as lists")
    pairs = list(zip(u, y, strict=False)) if several else [(u, y)]
    if several and len(u) != len(y):
        raise InvalidSignalError(f"u has {len(u)} experiments and y has {len(y)}; give one y for each u")
    experiments: list[tuple[Record, list[slice]]] = []
    for number, (one_u, one_y) in enumerate(pairs):
        suffix = f"[{number}]" if several else ""
        record = _record(one_u, one_y, suffix)
        first = experiments[0][0] if experiments else record
        if (record.u.shape[1], record.y.shape[1]) != (first.u.shape[1], first.y.shape[1]):
            raise InvalidSignalError(
                f"u{suffix} or y{suffix} has other channels than the experiments before it; give all experiments the "
                "same channels"
            )
        experiments.append((record, list(_find_runs(record))))
    return experiments


def require_channels(record: Record, n_inputs: int, n_outputs: int) -> None:
    """Raise InvalidSignalError where a record has other channels than the model."""
    if (record.u.shape[1], record.y.shape[1]) != (n_inputs, n_outputs):
        raise InvalidSignalError(
            f"u and y have {record.u.shape[1]} and {record.y.shape[1]} channels; the model has {n_inputs} inputs "
            f"and {n_outputs} outputs"
        )


def validate_timed_records(
    u: Any, y: Any, *, dt: Any, t: Any, resample: Any, linear: bool
) -> tuple[float, ExperimentData]:
    """Return the time between samples and the experiments, resampled to even times where `resample` is a step.

    t has the times of the record, or of the first experiment, or is a list with those of each experiment. Outputs are
    resampled by linear interpolation, and so are inputs with linear hold; those with zero hold keep their last value.
    A time within GRID_TOLERANCE of a step from a sample is that of the sample. A NaN becomes a gap that reaches to the
    samples beside it.

    Raises InvalidSignalError where neither or both of dt and t are given, a step is not valid, or times are uneven and
    not resampled.
    """
    if (dt is None) == (t is None):
        raise InvalidSignalError("give the time between samples as dt, or the times as t; one of them and not both")
    if t is None:
        if resample is not None:
            raise InvalidSignalError("resample needs the times of the samples; give them as t instead of dt")
        return as_time_step(dt, "dt"), validate_records(u, y)
    n_experiments = len(u) if _is_experiment_list(u) else 1
    axes = [TimeAxis.of(times) for times in (t if _is_experiment_list(t) else [t])]
    if _is_experiment_list(t) and len(axes) != n_experiments:
        raise InvalidSignalError(
            f"t has {format_count(len(axes), 'record')} of times and u has {n_experiments}; give times for each"
        )
    if resample is None:
        return _common_step(axes), validate_records(u, y, [partial(_with_length, len(axis.t)) for axis in axes])
    if len(axes) != n_experiments:
        raise InvalidSignalError(
            "resample needs the times of all samples; give t as a list of the times of each experiment"
        )
    grids = [resampled_times(axis.t, resample) for axis in axes]
    conversions = [partial(_resampled, axis.t, grid, linear=linear) for axis, grid in zip(axes, grids, strict=True)]
    data = validate_records(u, y, conversions)
    steps, method = np.concatenate([np.diff(axis.t) for axis in axes]), "interpolated" if linear else "held"
    note = (
        f"{sum(len(axis.t) for axis in axes)} samples at steps of {steps.min():.3g} to {steps.max():.3g} resampled to "
        f"{sum(map(len, grids))} at steps of {float(resample):g}: inputs {method}, outputs interpolated"
    )
    usual = float(np.median(steps))
    coarse = float(resample) > _COARSE_STEP * usual
    lost = (
        (f"the step is {float(resample) / usual:.3g} times the usual one: faster changes are lost",) if coarse else ()
    )
    return float(resample), data._replace(notes=(note, *lost, *data.notes))


def _common_step(axes: list[TimeAxis]) -> float:
    """Return the step of even times, which all experiments have in common."""
    steps = []
    for axis in axes:
        if axis.step is None and len(axis.t) == 1:
            raise InvalidSignalError("t has 1 time, which has no step; give the times of all samples, or dt")
        if axis.step is None:
            raise InvalidSignalError(_describe_uneven_times(axis.t))
        steps.append(axis.step)
    if max(steps) - min(steps) > GRID_TOLERANCE * min(steps):
        raise InvalidSignalError(
            f"the experiments have time steps of {min(steps):g} and {max(steps):g}; resample them with "
            f"resample={min(steps):g}, for example"
        )
    return steps[0]


def _describe_uneven_times(t: Array) -> str:
    """Return the error message for uneven times: one given twice, rows left out of even ones, or neither."""
    steps = np.diff(t)
    usual = float(np.median(steps))
    resampling = f"resample the table or arrays with resample={usual:.3g}"
    repeated = np.flatnonzero(steps == 0.0)
    if len(repeated):
        k = int(repeated[0])
        return f"samples {k + 1} and {k + 2} have the same time, {t[k]:.10g}; remove one of them"
    n_steps = np.round(steps / usual)
    if np.all(n_steps >= 1.0) and np.all(np.abs(steps - n_steps * usual) <= _ROUNDED_TIMES * usual):
        k = int(np.argmax(n_steps > 1.0))
        if n_steps[k] > 1.0:
            return (
                f"{format_count(int(n_steps.sum()) - len(steps), 'sample')} missing between times at steps of {usual:.3g}, "
                f"the first after sample {k + 1} at {t[k]:.10g}; add rows with their times and empty cells, as gaps, or "
                f"{resampling}"
            )
    return (
        f"the times are not evenly spaced; {resampling} (the steps are {steps.min():.3g} to {steps.max():.3g}), or give dt "
        "if only the times are rounded"
    )


def _with_length(n_times: int, record: Record) -> Record:
    """Return the record; raise InvalidSignalError if it has another number of samples."""
    if len(record) != n_times:
        raise InvalidSignalError(f"t has {n_times} times and u has {len(record)} samples; give one for each")
    return record


def _resampled(times: Array, even: Array, record: Record, *, linear: bool) -> Record:
    """Return the record at even times."""
    _with_length(len(times), record)
    u, y = (np.stack([np.interp(even, times, x) for x in it.T], axis=1) for it in (record.u, record.y))
    if linear:
        return Record(u, y)
    tolerance = GRID_TOLERANCE * (even[1] - even[0]) if len(even) > 1 else 0.0
    return Record(record.u[np.searchsorted(times, even + tolerance, side="right") - 1], y)


def _plain_values(value: Any) -> Any:
    return value.values if isinstance(value, NamedColumns) or hasattr(value, "iloc") else value


def _is_experiment_list(value: Any) -> bool:
    """Return whether a value is a list of experiments, and not one of rows of numbers."""
    if not isinstance(value, list | tuple) or not value or np.ndim(_plain_values(value[0])) == 0:
        return False
    return any(isinstance(row, np.ndarray) or np.ndim(_plain_values(row)) > 1 for row in value)


def _record(u: Any, y: Any, suffix: str) -> Record:
    inputs, outputs = _channels(u, f"u{suffix}"), _channels(y, f"y{suffix}")
    if len(inputs) != len(outputs):
        raise InvalidSignalError(
            f"u{suffix} has {format_count(len(inputs), 'sample')} and y{suffix} has {len(outputs)}; give one y for each u, "
            "time along the first axis"
        )
    for values, name in ((inputs, "u"), (outputs, "y")):
        if values.shape[1] > len(values):
            raise InvalidSignalError(
                f"{name}{suffix} has {values.shape[1]} channels and {format_count(len(values), 'sample')}; time comes "
                f"first: pass {name}.T if channels do"
            )
    return Record(inputs, outputs)


def _channels(value: Any, name: str) -> Array:
    array = as_real_array(_plain_values(value), name)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or not array.size:
        raise InvalidSignalError(f"{name} has shape {np.shape(value)}; give samples (T,) or (T, channels)")
    if np.isinf(array).any():
        raise InvalidSignalError(f"{name} has infinite entries; mark missing samples with NaN")
    return array


def _find_runs(record: Record) -> Iterator[slice]:
    """Yield runs of at least MIN_SAMPLES samples without NaN."""
    missing = np.isnan(record.u).any(axis=1) | np.isnan(record.y).any(axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate([[True], missing, [True]]).astype(np.int8)))
    for begin, end in edges.reshape(-1, 2).tolist():
        if end - begin >= MIN_SAMPLES:
            yield slice(begin, end)


def _reject_uninformative_channels(values: Array, name: str) -> None:
    """Reject channels that never change, and channels that are proportional to another one."""
    still = np.flatnonzero(np.ptp(values, axis=0) == 0.0)
    if len(still):
        raise InvalidSignalError(
            f"{name}[:, {still[0]}] is {values[0, still[0]] + 0.0:g} at every sample; a channel that never changes "
            "carries no information: leave it out"
        )
    centered = values - values.mean(axis=0)
    centered /= np.abs(centered).max(axis=0)
    products = centered.T @ centered
    for j in range(centered.shape[1]):
        for i in range(j):
            scale = products[i, j] / products[i, i]
            if np.abs(centered[:, j] - scale * centered[:, i]).max() <= _PROPORTIONAL_TOLERANCE:
                ratio = scale * np.ptp(values[:, j]) / np.ptp(values[:, i])
                raise InvalidSignalError(
                    f"{name}[:, {j}] is {ratio:.3g} times {name}[:, {i}] at every sample; leave one out"
                )


def _outlier_notes(records: list[Record]) -> list[str]:
    """Return notes on outliers, samples so far from all others that they dominate a least-squares fit."""
    notes = []
    for name in ("u", "y"):
        values = np.concatenate([getattr(record, name) for record in records])
        distance = np.abs(values - np.median(values, axis=0))
        spread = np.maximum(np.quantile(distance, 0.75, axis=0), 1e-300)
        for channel in range(values.shape[1]):
            far = np.flatnonzero(distance[:, channel] > _OUTLIER_RATIO * spread[channel])
            if 0 < len(far) < 0.01 * len(values) + 1:
                notes.append(
                    f"{name}[{far[0]}, {channel}] is {values[far[0], channel]:.3g}, {_OUTLIER_RATIO:g} times farther out "
                    "than most samples: an outlier? mark it with NaN"
                )
    return notes


def _names(value: Any) -> Names | None:
    if isinstance(value, NamedColumns):
        return tuple(value.names)
    if hasattr(value, "iloc") and hasattr(value, "columns"):
        return tuple(str(column) for column in value.columns)
    name = getattr(value, "name", None)
    return (str(name),) if name is not None and hasattr(value, "iloc") else None
