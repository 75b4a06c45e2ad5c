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
from ltinet.identification.records import NO_RUN_MESSAGE, parse_experiments, require_channels
from ltinet.signals.conversion import order_inputs
from ltinet.signals.sampled import Hold, SampledSignal
from ltinet.signals.times import TimeAxis, as_time_step
from ltinet.simulation.api import resolve_hold
from ltinet.simulation.solution import Solution
from ltinet.systems.signal_settings import SignalSettings

_MAX_STATES = 500  # states whose free responses are simulated to fit the first state; empirical: some seconds
_CHUNK_SIZE = 2**25  # numbers of free responses in memory at a time


class SimulationModel(Protocol):
    """Protocol of systems and networks that can be simulated."""

    @property
    def n_states(self) -> int:
        """Number of states."""

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs."""

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs."""

    @property
    def signal_settings(self) -> SignalSettings:
        """Delays, operating point, hold and sample time."""

    @property
    def dt(self) -> float | None:
        """Time step of a model in discrete time; None in continuous time."""

    @property
    def simulate(self) -> Callable[..., Solution]:
        """Function that simulates inputs u at times t."""


class RecordComparison(NamedTuple):
    """Measured and simulated outputs of a record, `(T, p)`, NaN where a sample is missing or not simulated."""

    t: Array
    measured: Array
    simulated: Array
    fits: Array
    """Fits in percent, `(p,)`."""
    seams: tuple[float, ...]
    """Times after gaps, at which simulation starts again."""


class _Run(NamedTuple):
    """Consecutive samples without a gap."""

    t: Array
    u: Array
    y: Array


def compare_record(
    model: SimulationModel, u: Any, y: Any, *, t: ArrayLike | None, dt: float | None, from_rest: bool, hold: Hold | None
) -> RecordComparison:
    """Return a record beside the simulated outputs, and the fit of every output; arguments are those of `fit`."""
    held = resolve_hold(hold, model.signal_settings, model.dt)
    if not from_rest and model.n_states > _MAX_STATES:
        raise InvalidSignalError(
            f"fitting the first state takes {model.n_states} simulations, one for each state; give from_rest=True, or "
            "reduce the model first"
        )
    errors, squares = np.zeros(model.n_outputs), np.zeros(model.n_outputs)
    runs = list(_runs(model, u, y, t, dt))
    if not runs:
        raise InvalidSignalError(NO_RUN_MESSAGE)
    simulated = [_simulate_run(model, run, hold=held, from_rest=from_rest) for run in runs]
    for run, outputs in zip(runs, simulated, strict=True):
        run_errors, run_squares = _sums(run.y, outputs)
        errors, squares = errors + run_errors, squares + run_squares
    still = np.flatnonzero(squares == 0.0)
    if len(still):
        raise InvalidSignalError(f"y[:, {still[0]}] never changes, so that its fit is undefined; leave this output out")
    fits = np.asarray(100.0 * (1.0 - np.sqrt(errors / squares)))
    times, measured = np.concatenate([run.t for run in runs]), np.concatenate([run.y for run in runs])
    seams = tuple(float(run.t[0]) for run in runs[1:])
    return RecordComparison(times, measured, np.concatenate(simulated), fits, seams)


def _runs(model: SimulationModel, u: Any, y: Any, t: ArrayLike | None, dt: float | None) -> Iterator[_Run]:
    """Yield the runs between gaps of all experiments, with their times."""
    if not isinstance(u, list | tuple):
        count = len(np.asarray(getattr(y, "values", y)))
        u = order_inputs(u, model.input_names, are_given=True, n_times=count)
    if not isinstance(y, list | tuple):
        y = order_inputs(y, model.output_names, are_given=True, n_times=len(np.asarray(getattr(y, "values", y))))
    experiments = parse_experiments(u, y)
    if t is not None and dt is not None:
        raise InvalidSignalError("both t and dt are given; give the times, or the time between samples")
    known_step = model.signal_settings.sample_time if model.dt is None else model.dt
    if t is None and dt is None and known_step is None:
        raise InvalidSignalError(
            "the model has no sample time; give the times of the samples as t, or the time between them as dt"
        )
    step = None if t is not None else as_time_step(dt if dt is not None else known_step, "dt")
    for record, parts in experiments:
        require_channels(record, model.n_inputs, model.n_outputs)
        times: Array = TimeAxis.of(t).t if step is None else np.asarray(step * np.arange(len(record)), np.float64)
        if len(times) != len(record):
            raise InvalidSignalError(f"t has {len(times)} times and u has {len(record)} samples; give one for each")
        for part in parts:
            yield _Run(times[part], record.u[part], record.y[part])


def _simulate_run(model: SimulationModel, run: _Run, *, hold: Hold, from_rest: bool) -> Array:
    """Return the outputs of the model, `(T, p)`, NaN where they depend on inputs from before the run."""
    settings, t, p = model.signal_settings, run.t, model.n_outputs
    if from_rest:
        return _require_finite(model.simulate(run.u, t, hold=hold).y)
    rounding = 8.0 * EPS * float(np.abs(t).max())
    delay = float(settings.array("input_delay", model.n_inputs).max(initial=0.0))
    first = int(np.searchsorted(t, t[0] + delay - rounding))
    if first >= len(t):
        raise InvalidSignalError(
            f"a run of the record from {t[0]:g} to {t[-1]:g} is shorter than the input delay, {delay:g}; give a longer "
            "one"
        )
    times, y = t[first:], run.y[first:]
    forced = _require_finite(model.simulate(SampledSignal(t, run.u, hold=hold), times).y)
    known = times[:, None] >= times[0] + settings.array("output_delay", p) - rounding
    simulated = np.full(run.y.shape, np.nan)
    simulated[first:] = np.where(known, forced, np.nan)
    if not model.n_states:
        return simulated
    squares = _sums(run.y, simulated)[1]
    scale = np.sqrt(np.where(squares > 0.0, squares, 1.0))
    columns = np.concatenate([response / scale for response in _free_responses(model, times)], axis=0)
    columns[:, ~known] = 0.0
    matrix = columns.reshape(model.n_states, -1).T
    x = scaled_least_squares(matrix, np.where(known, (y - forced) / scale, 0.0).ravel())
    simulated[first:] += (matrix @ x).reshape(y.shape) * scale
    return simulated


def _require_finite(y: Array) -> Array:
    if not np.isfinite(y).all():
        raise SimulationError("the simulated outputs overflow; the model is unstable, or the record too long for it")
    return y


def _free_responses(model: SimulationModel, t: Array) -> Iterator[Array]:
    """Yield the outputs from unit states without input, `(k, T, p)`, some states at a time."""
    n, m, p, settings = model.n_states, model.n_inputs, model.n_outputs, model.signal_settings
    chunk = max(1, _CHUNK_SIZE // (len(t) * max(m, p, 1)))
    for begin in range(0, n, chunk):
        states = np.eye(n)[begin : begin + chunk]
        u = np.broadcast_to(settings.array("u0", m), (len(states), len(t), m))
        yield model.simulate(u, t, x0=states, hold="zero").y - settings.array("y0", p)


def _sums(y: Array, simulated: Array) -> tuple[Array, Array]:
    """Return Σ (y − ŷ)² and Σ (y − mean)² of every output where it is simulated."""
    known = ~np.isnan(simulated)
    mean = np.where(known, y, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    errors = np.where(known, y - simulated, 0.0)
    return (errors**2).sum(axis=0), (np.where(known, y - mean, 0.0) ** 2).sum(axis=0)
