"""Identification of continuous-time systems from records or from a frequency response.

`identify` combines subspace methods, least squares on simulated outputs and an output-error refinement;
`identify_frequency` uses vector fitting and Gramians over the measured range. Options left open are decided by the
error on samples or frequencies that were held out.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.floating_point import Array
from ltinet._util.text import sanitize
from ltinet.errors import InvalidSignalError
from ltinet.identification.diagnostics import (
    CandidateSummary,
    CovarianceData,
    RecordDiagnostics,
    ResponseDiagnostics,
    covariance_data,
)
from ltinet.identification.estimation import (
    DivergentModelError,
    Estimate,
    EstimationOptions,
    estimate,
    finds_unstable_model,
    model_warnings,
    resolve_delays,
    subsample_note,
    validate_choice,
    validate_estimation_options,
    validate_flag,
)
from ltinet.identification.frequency_fit import fit_response
from ltinet.identification.linear_parameters import N_TRENDS, Trend
from ltinet.identification.modal_model import modal_model_of_system, to_continuous_time
from ltinet.identification.order_selection import EstimationSettings
from ltinet.identification.preprocessing import ChannelUnits, choose_units
from ltinet.identification.records import ExperimentData, Record, n_samples, resolve_time_step, validate_records
from ltinet.identification.result import IdentificationResult
from ltinet.signals.sampled import Hold, validate_hold
from ltinet.state_space import StateSpace
from ltinet.systems.signal_names import NamesLike, SignalNames
from ltinet.systems.signal_settings import SignalSettings
from ltinet.systems.system_matrices import SystemMatrices

# MERGED ltinet.identification.api
# From measured records, or a measured frequency response, to a continuous-time system: the doors.

_SUFFICIENT_ERROR = 0.02  # of the outputs: with a smaller error on unseen samples a stable model explains all there is
_UNSTABLE_ERROR_RATIO = 0.5  # of the error of a stable model
_VECTOR_FITTING = "vector fitting"
_SLOPES_NOTE = "identified with linear trends; their slopes are not part of the model"


def identify(  # noqa: PLR0913
    u: Any,
    y: Any,
    *,
    dt: float | None = None,
    t: ArrayLike | None = None,
    order: int | Sequence[int] | None = None,
    method: Literal["auto", "moesp", "n4sid", "cva"] = "auto",
    block_rows: int | None = None,
    trend: Trend = "constant",
    delay: int | Sequence[int] | Literal["auto"] = "auto",
    feedthrough: bool = True,
    hold: Hold = "zero",
    stable: bool | Literal["auto"] = "auto",
    refine: bool = True,
    callback: Callable[[str], None] | None = None,
) -> IdentificationResult:
    """Find the continuous-time system behind measured inputs and outputs.

    Subspace methods give poles, least squares on the simulated outputs the rest, and an output-error refinement is kept
    where it predicts samples better that it has not seen. Whatever is not given is decided on such samples too.

    Args:
        u: inputs `(T, m)` or `(T,)`: arrays, tables, DataFrames, or a list of them, one for each experiment. NaN marks
            missing samples, which split a record into experiments.
        y: outputs `(T, p)` or `(T,)`, likewise.
        dt: time between samples.
        t: the times themselves, instead of dt; they must be evenly spaced.
        order: number of states; several to choose from; all up to 40 that records allow if left out.
        method: which subspace method.
        block_rows: of the Hankel matrix; some are tried if left out.
        trend: "none" takes records as they are, "constant" counts inputs from their means and estimates offsets of
            outputs, "linear" slopes as well.
        delay: samples by which inputs come late, one number or one for each; "auto" looks for them.
        feedthrough: whether inputs may act on outputs at once.
        hold: what inputs do between samples: "zero" for steps, as most actuators do, "linear" for lines.
        stable: True mirrors poles that grow, False keeps them; "auto" keeps them, with a warning, where that predicts
            unseen samples far better.
        refine: whether to try the output-error refinement.
        callback: called with the name of every step as it begins, `print` for one: a choice among many models of long
            records takes its time.

    Raises:
        InvalidSignalError: the records cannot be used, or say too little; the message says what would help.
    """
    step = resolve_time_step(dt, t)
    given = validate_records(u, y)
    if t is not None and np.size(t) != given.n_given:
        raise InvalidSignalError(f"t has {np.size(t)} times and u has {given.n_given} samples; give one for each")
    linear = validate_hold(hold) == "linear"
    wishes = validate_estimation_options(order, method, block_rows, refine)
    validate_choice(trend, "trend", tuple(N_TRENDS))
    validate_choice(stable, "stable", (True, False, "auto"))
    feedthrough = validate_flag(feedthrough, "feedthrough")
    offsets = _channel_means(given.records, "u") if trend != "none" else np.zeros(given.records[0].u.shape[1])
    levels = _channel_means(given.records, "y") if trend != "none" else np.zeros(given.records[0].y.shape[1])
    units = choose_units(given.records)
    centred = tuple(units.scaled(Record(own.u - offsets, own.y - levels)) for own in given.records)
    tell = _validate_callback(callback)
    delays = resolve_delays(delay, centred)
    shifted = tuple(own.shifted(delays) for own in centred)
    scale = np.std(np.concatenate([own.y for own in shifted]), axis=0)
    mirrors = stable is True or (stable == "auto" and not wishes.decide_everything)
    setting = EstimationSettings(feedthrough, trend, linear, scale, mirrors, max(map(len, shifted)))
    found = _estimate_model(shifted, wishes, setting, tell, may_mirror=stable == "auto")
    if stable == "auto" and mirrors and found.error > _SUFFICIENT_ERROR:
        found = _prefer_unstable_if_better(found, shifted, wishes, replace(setting, stable=False))
    seen = covariance_data(found.linear, shifted, feedthrough=feedthrough, trend=trend, gain=units.gain)
    return _make_result(found, units, shifted, step, delays, (offsets, levels), given, seen)


def identify_frequency(
    omega: ArrayLike,
    H: ArrayLike,
    *,
    order: int | range | None = None,
    stable: bool | Literal["auto"] = "auto",
    feedthrough: bool = True,
    weights: ArrayLike | None = None,
    inputs: NamesLike = None,
    outputs: NamesLike = None,
) -> IdentificationResult:
    """Find the continuous-time system behind a measured frequency response.

    Vector fitting gives poles that all channels share, Gramians over the measured range cut the model to its order, and
    a refinement brings it as close as it can come.

    Args:
        omega: frequencies `(K,)` in rad/s, 0 and above.
        H: the response, `(K,)` for one input and output, else `(K, outputs, inputs)`.
        order: number of states, or a range of them; the smallest that predicts frequencies held out if left out.
        stable: True mirrors poles that grow, False keeps them; "auto" keeps them where a stable model is worse by more
            than 5 %, with a warning.
        feedthrough: whether inputs may act on outputs at once.
        weights: how much each frequency counts, `(K,)` or as H: 1/|H| for noise that is a share of the response.
        inputs: names of the inputs.
        outputs: names of the outputs.

    Raises:
        InvalidSignalError: the data cannot be used; the message says why.
    """
    found = fit_response(omega, H, order=order, stable=stable, feedthrough=feedthrough, weights=weights)
    p, m = found.D.shape
    modes = modal_model_of_system(found.A, found.B, found.C, found.D)
    diagnostics = ResponseDiagnostics(found, modes, feedthrough)
    candidates = (
        CandidateSummary(own.order, _VECTOR_FITTING, 0, True, False, own.held_out) for own in found.candidates
    )
    return IdentificationResult(
        system=StateSpace(found.A, found.B, found.C, found.D, inputs=inputs, outputs=outputs),
        dt=None,
        hold=None,
        delay=(0,) * m,
        method=_VECTOR_FITTING,
        block_rows=0,
        refined=True,
        trend="none",
        input_offsets=np.zeros(m),
        output_offsets=np.zeros(p),
        fits=diagnostics.fit(None, None),
        fit_warnings=found.warnings,
        notes=(),
        candidates=tuple(candidates),
        singular_values=np.zeros(0),
        order=found.order,
        modes=modes,
        diagnostics=diagnostics,
    )


def _estimate_model(
    records: tuple[Record, ...],
    wishes: EstimationOptions,
    setting: EstimationSettings,
    tell: Callable[[str], None],
    *,
    may_mirror: bool,
) -> Estimate:
    """The estimate; where all that was asked for grows beyond all numbers, and it may, with poles mirrored."""
    try:
        return estimate(records, wishes, setting, tell)
    except DivergentModelError:
        if setting.stable or not may_mirror:
            raise
        return estimate(records, wishes, replace(setting, stable=True), tell)


def _prefer_unstable_if_better(
    found: Estimate, records: tuple[Record, ...], wishes: EstimationOptions, setting: EstimationSettings
) -> Estimate:
    """The stable model, unless one that grows predicts unseen samples far better: an unstable plant in a loop."""
    if not finds_unstable_model(records, found.block_rows, found.linear.model.order, setting.trend):
        return found
    try:
        free = estimate(records, wishes, setting)
    except DivergentModelError:  # none that may grow can be simulated: the stable one stands
        return found
    return free if not free.linear.model.is_stable and free.error < _UNSTABLE_ERROR_RATIO * found.error else found


def _make_result(
    found: Estimate,
    units: ChannelUnits,
    records: tuple[Record, ...],
    dt: float,
    delays: tuple[int, ...],
    offsets: tuple[Array, Array],
    given: ExperimentData,
    seen: CovarianceData,
) -> IdentificationResult:
    spread = sum(((one.y - one.y.mean(axis=0)) ** 2).sum(axis=0) for one in records)
    fits = 100.0 * (1.0 - np.sqrt(found.linear.errors / spread))
    restored = units.restored(found.linear)
    model = restored.model
    own = to_continuous_time(model, dt)
    level = np.mean(
        [start.trends[:, 0] if start.trends.size else np.zeros(model.n_outputs) for start in restored.starts],
        axis=0,
    )
    total = np.asarray(level + offsets[1])
    matrices = SystemMatrices(
        own.A, own.B, own.C, own.D, names=SignalNames.of(given.inputs, given.outputs, None)
    )  # fmt: skip
    settings = SignalSettings.of(
        n_inputs=model.n_inputs,
        n_outputs=model.n_outputs,
        input_delay=[dt * samples for samples in delays],
        u0=offsets[0],
        y0=total,
        hold="linear" if model.linear else "zero",
        sample_time=dt,
        notes=(_SLOPES_NOTE,) if seen.trend == "linear" else (),
    )
    diagnostics = RecordDiagnostics(model, seen, units, dt, delays, seen.trend, offsets[0], total, offsets[1])
    return IdentificationResult(
        system=StateSpace.of(matrices, settings=settings),
        dt=dt,
        hold="linear" if model.linear else "zero",
        delay=delays,
        method=found.method,
        block_rows=found.block_rows,
        refined=found.is_refined,
        trend=seen.trend,
        input_offsets=offsets[0],
        output_offsets=total,
        fits=np.asarray(fits),
        fit_warnings=model_warnings(model, records, fits=np.asarray(fits), n_doubled=own.n_doubled, notes=given.notes),
        notes=(*given.notes, *subsample_note(found, records)),
        candidates=found.candidates,
        singular_values=found.singular_values,
        order=model.order,
        modes=model,
        diagnostics=diagnostics,
    )


def _validate_callback(callback: Callable[[str], None] | None) -> Callable[[str], None]:
    if callback is None:
        return lambda _: None
    if not callable(callback):
        raise InvalidSignalError(f"callback is {sanitize(repr(callback))}; give a function of one text, such as print")
    return callback


def _channel_means(records: tuple[Record, ...], name: Literal["u", "y"]) -> Array:
    return np.asarray(sum(getattr(own, name).sum(axis=0) for own in records) / n_samples(records))
