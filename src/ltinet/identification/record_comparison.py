"""Comparison of a measured record with a model of any origin.

For each output

    fit = 100 (1 − ‖y − ŷ‖ / ‖y − mean(y)‖) %,

with ŷ simulated from the inputs alone. Only the state at the first sample is fitted, by least squares over all
outputs, each relative to its deviation from its mean; or the record begins at rest. Outputs that depend on inputs
from before the record are left out: those before t₀ plus the longest input delay and the output's own delay.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.floating_point import EPS, Array
from ltinet.errors import InvalidSignalError, SimulationError
from ltinet.identification.linear_parameters import scaled_least_squares
from ltinet.identification.records import parse_experiments
from ltinet.signals.conversion import order_inputs
from ltinet.signals.sampled import Hold, SampledSignal
from ltinet.signals.times import TimeAxis, as_time_step
from ltinet.simulation.api import resolve_hold
from ltinet.simulation.solution import Solution
from ltinet.systems.signal_settings import SignalSettings

# MERGED ltinet.identification.record_comparison
# How well a model explains a measured record: one definition for models of every origin.
#
# For each output
#
#     fit = 100 (1 − ‖y − ŷ‖ / ‖y − mean(y)‖) %,
#
# with ŷ simulated from the inputs alone. Nothing of the record but the state at its first sample is fitted, by least
# squares over all outputs, each relative to its deviation from its mean; or the record begins at rest. Outputs that
# inputs from before the record have a part in are left out: those before t₀ plus the longest input delay and the own
# output delay.

_MOST_STATES = 500  # for which a run from each is worth fitting the first state
_NUMBERS = 2**25  # of free responses that are computed together


class SimulationModel(Protocol):
    """A system or a network."""

    @property
    def n_states(self) -> int:
        """Number of states."""
        ...

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        ...

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        ...

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs."""
        ...

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs."""
        ...

    @property
    def signal_settings(self) -> SignalSettings:
        """Delays, operating point, hold and sample time."""
        ...

    @property
    def simulate(self) -> Callable[..., Solution]:
        """The outputs for inputs u at times t."""
        ...


class RecordComparison(NamedTuple):
    """A record beside what a model makes of its inputs, `(T, p)`, NaN where a sample is missing or not simulated."""

    t: Array
    measured: Array
    simulated: Array
    fits: Array
    """In percent, `(p,)`."""
    seams: tuple[float, ...]
    """Times at which another run without gaps begins."""


class _Run(NamedTuple):
    """Samples without a gap."""

    t: Array
    u: Array
    y: Array


def fit_percent(
    model: SimulationModel,
    u: Any,
    y: Any,
    *,
    t: ArrayLike | None,
    dt: float | None,
    from_rest: bool,
    hold: Hold | None,
) -> Array:
    """Return the fit of every output, `(p,)`, in percent; `StateSpace.fit` says what may be given."""
    return compare_record(model, u, y, t=t, dt=dt, from_rest=from_rest, hold=hold).fits


def compare_record(
    model: SimulationModel,
    u: Any,
    y: Any,
    *,
    t: ArrayLike | None,
    dt: float | None,
    from_rest: bool,
    hold: Hold | None,
) -> RecordComparison:
    """Return a record beside the simulated outputs, and the fit of every output; arguments are those of `fit`."""
    held = resolve_hold(hold, model.signal_settings)
    if not from_rest and model.n_states > _MOST_STATES:
        raise InvalidSignalError(
            f"to fit the first state of {model.n_states} states takes as many runs; give from_rest=True, or reduce the "
            "model first"
        )
    errors, spread = np.zeros(model.n_outputs), np.zeros(model.n_outputs)
    runs = list(_runs(model, u, y, t, dt))
    if not runs:
        raise InvalidSignalError(
            "no 10 samples follow each other without a gap (NaN); fill gaps, or give a longer record"
        )
    found = [_simulated(model, run, hold=held, from_rest=from_rest) for run in runs]
    for run, simulated in zip(runs, found, strict=True):
        own_errors, own_spread = _sums(run.y, simulated)
        errors, spread = errors + own_errors, spread + own_spread
    still = np.flatnonzero(spread == 0.0)
    if len(still):
        raise InvalidSignalError(
            f"y[:, {still[0]}] never changes, so that its fit is not defined; leave this output out"
        )
    fits = np.asarray(100.0 * (1.0 - np.sqrt(errors / spread)))
    times, measured = np.concatenate([own.t for own in runs]), np.concatenate([own.y for own in runs])
    seams = tuple(float(own.t[0]) for own in runs[1:])
    return RecordComparison(times, measured, np.concatenate(found), fits, seams)


def _runs(model: SimulationModel, u: Any, y: Any, t: ArrayLike | None, dt: float | None) -> Iterator[_Run]:
    """Experiments, and the runs between their gaps, with their times."""
    if not isinstance(u, list | tuple):
        count = len(np.asarray(getattr(y, "values", y)))
        u = order_inputs(u, model.input_names, are_given=True, n_times=count)
    if not isinstance(y, list | tuple):
        y = order_inputs(y, model.output_names, are_given=True, n_times=len(np.asarray(getattr(y, "values", y))))
    experiments = parse_experiments(u, y)
    if t is not None and dt is not None:
        raise InvalidSignalError("both t and dt are given; give the times, or the time between samples")
    if t is None and dt is None and model.signal_settings.sample_time is None:
        raise InvalidSignalError(
            "the model has no sample time; give the times of the samples as t, or the time between them as dt"
        )
    step = None if t is not None else as_time_step(dt if dt is not None else model.signal_settings.sample_time, "dt")
    for record, parts in experiments:
        wanted = model.n_inputs, model.n_outputs
        if (record.u.shape[1], record.y.shape[1]) != wanted:
            raise InvalidSignalError(
                f"u and y have {record.u.shape[1]} and {record.y.shape[1]} channels; the model has {wanted[0]} inputs "
                f"and {wanted[1]} outputs"
            )
        times: Array = TimeAxis.of(t).t if step is None else np.asarray(step * np.arange(len(record)), np.float64)
        if len(times) != len(record):
            raise InvalidSignalError(f"t has {len(times)} times and u has {len(record)} samples; give one for each")
        for part in parts:
            yield _Run(times[part], record.u[part], record.y[part])


def _simulated(model: SimulationModel, run: _Run, *, hold: Hold, from_rest: bool) -> Array:
    """Return the outputs of the model, `(T, p)`, NaN where inputs from before the run have a part in them."""
    settings, t, p = model.signal_settings, run.t, model.n_outputs
    if from_rest:
        return _finite(model.simulate(run.u, t, hold=hold).y)
    rounding = 8.0 * EPS * float(np.abs(t).max())
    late = float(settings.array("input_delay", model.n_inputs).max(initial=0.0))
    first = int(np.searchsorted(t, t[0] + late - rounding))
    if first >= len(t):
        raise InvalidSignalError(
            f"a run of the record from {t[0]:g} to {t[-1]:g} is shorter than the input delay, {late:g}; give a longer "
            "one"
        )
    times, y = t[first:], run.y[first:]
    forced = _finite(model.simulate(SampledSignal(t, run.u, hold=hold), times).y)
    waits = settings.array("output_delay", p)
    known = times[:, None] >= times[0] + waits - rounding
    simulated = np.full(run.y.shape, np.nan)
    simulated[first:] = np.where(known, forced, np.nan)
    if not model.n_states:
        return simulated
    spread = _sums(run.y, simulated)[1]
    scale = np.sqrt(np.where(spread > 0.0, spread, 1.0))
    columns = np.concatenate([own / scale for own in _free_responses(model, times)], axis=0)
    columns[:, ~known] = 0.0
    matrix = columns.reshape(model.n_states, -1).T
    x = scaled_least_squares(matrix, np.where(known, (y - forced) / scale, 0.0).ravel())
    simulated[first:] += (matrix @ x).reshape(y.shape) * scale
    return simulated


def _finite(y: Array) -> Array:
    if not np.isfinite(y).all():
        raise SimulationError("the simulated outputs overflow; the model is unstable, or the record too long for it")
    return y


def _free_responses(model: SimulationModel, t: Array) -> Iterator[Array]:
    """Return outputs without input from each unit state, `(k, T, p)`, some states at a time."""
    n, m, p, settings = model.n_states, model.n_inputs, model.n_outputs, model.signal_settings
    at_once = max(1, _NUMBERS // (len(t) * max(m, p, 1)))
    for begin in range(0, n, at_once):
        states = np.eye(n)[begin : begin + at_once]
        u = np.broadcast_to(settings.array("u0", m), (len(states), len(t), m))
        yield model.simulate(u, t, x0=states, hold="zero").y - settings.array("y0", p)


def _sums(y: Array, simulated: Array) -> tuple[Array, Array]:
    """Return Σ (y − ŷ)² and Σ (y − mean)² of every output where it is simulated."""
    known = ~np.isnan(simulated)
    mean = np.where(known, y, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    errors = np.where(known, y - simulated, 0.0)
    return (errors**2).sum(axis=0), (np.where(known, y - mean, 0.0) ** 2).sum(axis=0)
