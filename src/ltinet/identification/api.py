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

from ltinet._util.text import sanitize
from ltinet.errors import InvalidSignalError
from ltinet.identification.diagnostics import (
    CandidateSummary,
    RecordDiagnostics,
    ResponseDiagnostics,
    compute_fits,
    drift_warning,
)
from ltinet.identification.estimation import (
    estimate,
    model_warnings,
    resolve_delays,
    validate_choice,
    validate_estimation_options,
    validate_flag,
)
from ltinet.identification.frequency_fit import fit_response
from ltinet.identification.linear_parameters import N_TRENDS, Trend
from ltinet.identification.modal_model import modal_model_of_system, to_continuous_time
from ltinet.identification.order_selection import EstimationSettings
from ltinet.identification.output_error import leading_part
from ltinet.identification.preprocessing import choose_units
from ltinet.identification.records import Record, n_samples, shift_records, validate_timed_records
from ltinet.identification.result import IdentificationResult
from ltinet.signals.sampled import Hold, validate_hold
from ltinet.state_space import StateSpace
from ltinet.systems.signal_names import NamesLike, SignalNames
from ltinet.systems.signal_settings import SignalSettings
from ltinet.systems.system_matrices import SystemMatrices

_VECTOR_FITTING = "vector fitting"
_SLOPES_NOTE = "identified with linear trends; their slopes are not part of the model"


def identify(  # noqa: PLR0913
    u: Any,
    y: Any,
    *,
    dt: float | None = None,
    t: ArrayLike | Sequence[ArrayLike] | None = None,
    resample: float | None = None,
    order: int | Sequence[int] | None = None,
    method: Literal["auto", "moesp", "n4sid", "cva", "pbsid"] = "auto",
    block_rows: int | None = None,
    trend: Trend = "constant",
    delay: int | Sequence[int] | Literal["auto"] = "auto",
    feedthrough: bool = True,
    hold: Hold = "zero",
    stable: bool | Literal["auto"] = "auto",
    refine: bool = True,
    callback: Callable[[str], None] | None = None,
) -> IdentificationResult:
    """Identify a continuous-time system from measured inputs and outputs.

    Subspace methods give the poles, least squares on the simulated outputs the other parameters, and an output-error
    refinement is kept where it predicts test samples better. Options that are not given are decided on such samples.

    Parameters
    ----------
    u
        Inputs `(T, m)` or `(T,)`: an array, table or DataFrame, or a list with one for each experiment. NaN marks
        missing samples, which split a record into experiments.
    y
        Outputs `(T, p)` or `(T,)`, likewise.
    dt
        Time between samples.
    t
        Times of the samples, evenly spaced, instead of dt; for experiments those of the first, or a list of those of
        each.
    resample
        Step to which a record with uneven times t is resampled, about the usual step of t. Outputs are interpolated
        linearly; inputs keep their last value under zero hold and are interpolated under linear hold. Changes faster
        than the step are lost or folded to low frequencies.
    order
        Number of states, or several to choose from; by default up to 40, as far as the records allow.
    method
        Subspace method. "pbsid" is predictor-based: it is valid in closed loops, with inputs under zero hold.
    block_rows
        Number of block rows of the Hankel matrix; by default chosen among 10, 15 and 25.
    trend
        "none" for records as they are; "constant" subtracts the means of inputs and estimates offsets of outputs;
        "linear" estimates slopes as well.
    delay
        Input delays in samples, one number or one for each input; "auto" estimates them.
    feedthrough
        False for D = 0.
    hold
        Inputs between samples: "zero" for steps, as most actuators make them, "linear" for lines.
    stable
        True mirrors growing poles, False keeps them; "auto" keeps them, with a warning, where this predicts test
        samples far better.
    refine
        False skips the output-error refinement.
    callback
        Function of one text, such as `print`, that is called with the name of every step as it begins.

    Returns
    -------
    IdentificationResult
        System with its diagnostics.

    Raises
    ------
    InvalidSignalError
        If the records are invalid, or too short; the message says what would help.

    """
    linear = validate_hold(hold) == "linear"
    step, data = validate_timed_records(u, y, dt=dt, t=t, resample=resample, linear=linear)
    options = validate_estimation_options(order, method, block_rows, refine)
    validate_choice(trend, "trend", tuple(N_TRENDS))
    validate_choice(stable, "stable", (True, False, "auto"))
    feedthrough = validate_flag(feedthrough, "feedthrough")
    if callback is not None and not callable(callback):
        raise InvalidSignalError(f"callback is {sanitize(repr(callback))}; give a function of one text, such as print")
    # Records around their means, in units near 1, without delays.
    u_mean, y_mean = (
        np.asarray(sum(getattr(record, name).sum(axis=0) for record in data.records) / n_samples(data.records))
        if trend != "none"
        else np.zeros(getattr(data.records[0], name).shape[1])
        for name in "uy"
    )
    units = choose_units(data.records, equal=not options.is_complete)
    centered = tuple(units.scaled(Record(record.u - u_mean, record.y - y_mean)) for record in data.records)
    scale = np.std(np.concatenate([record.y for record in centered]), axis=0)
    mirror = stable is True or (stable == "auto" and not options.is_complete)
    settings = EstimationSettings(
        len(u_mean), feedthrough, trend, linear, scale, mirror, stable is not True, max(map(len, centered))
    )
    delays, delay_ranges = resolve_delays(delay, centered, settings)
    records = shift_records(centered, delays)
    best = estimate(records, options, settings, callback or (lambda _: None), stable=stable)
    # The continuous-time system in the units of the user.
    squares = sum(((record.y - record.y.mean(axis=0)) ** 2).sum(axis=0) for record in records)
    fits = np.asarray(100.0 * (1.0 - np.sqrt(best.driven.errors / squares)))
    driven = units.restored(best.driven)
    model = driven.model
    continuous = to_continuous_time(model, step)
    n_outputs = model.n_outputs
    constants = [start.trends[:, 0] if start.trends.size else np.zeros(n_outputs) for start in driven.starts]
    output_offsets = np.asarray(np.mean(constants, axis=0) + y_mean)
    names = SignalNames.of(data.inputs, data.outputs, None)
    matrices = SystemMatrices(continuous.A, continuous.B, continuous.C, continuous.D, names=names)
    hold = "linear" if linear else "zero"
    signal_settings = SignalSettings.of(
        n_inputs=model.n_inputs,
        n_outputs=n_outputs,
        input_delay=[step * samples for samples in delays],
        u0=u_mean,
        y0=output_offsets,
        hold=hold,
        sample_time=step,
        notes=(_SLOPES_NOTE,) if trend == "linear" else (),
    )
    warnings = model_warnings(model, records, fits=fits, n_doubled=continuous.n_doubled, notes=data.notes)
    if trend != "linear":
        warnings += drift_warning(
            np.asarray(np.linalg.eigvals(continuous.A), dtype=np.complex128),
            step * n_samples(records),
            np.asarray(fits),
        )
    # Copies of the beginnings, so that long records can be released.
    parts = [leading_part(record, start) for record, start in zip(records, best.driven.starts, strict=True)]
    beginnings = tuple(Record(record.u.copy(), record.y.copy()) for record, _ in parts)
    return IdentificationResult(
        system=StateSpace.of(matrices, settings=signal_settings),
        dt=step,
        hold=hold,
        delay=delays,
        method=best.method,
        block_rows=best.block_rows,
        refined=best.is_refined,
        trend=trend,
        input_offsets=u_mean,
        output_offsets=output_offsets,
        fits=fits,
        fit_warnings=warnings,
        notes=(*data.notes, *best.notes),
        candidates=best.candidates,
        singular_values=best.singular_values,
        order=model.order,
        modes=model,
        diagnostics=RecordDiagnostics(
            modes=model,
            driven=replace(best.driven, starts=tuple(start for _, start in parts)),
            noise=best.noise,
            noise_filter=best.noise_filter,
            records=beginnings,
            share=n_samples(beginnings) / n_samples(records),
            units=units,
            feedthrough=feedthrough,
            trend=trend,
            dt=step,
            delay=delays,
            input_offsets=u_mean,
            output_offsets=output_offsets,
            levels=y_mean,
        ),
        time_unit=None if t is None else data.time_unit,
        family=best.family,
        delay_ranges=delay_ranges,
    )


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
    """Identify a continuous-time system from a measured frequency response.

    Vector fitting gives poles that all channels share, Gramians over the measured range truncate the model to its
    order, and a refinement minimizes its error.

    Parameters
    ----------
    omega
        Frequencies `(K,)` in rad/s, not negative.
    H
        Response, `(K,)` for one input and output, else `(K, outputs, inputs)`.
    order
        Number of states, or a range of them; by default the smallest that predicts held-out frequencies.
    stable
        True mirrors growing poles, False keeps them; "auto" keeps them, with a warning, where a stable model is worse
        by more than 5 %.
    feedthrough
        False for D = 0.
    weights
        Weight of each frequency, `(K,)` or as H: 1/|H| for noise that is proportional to the response.
    inputs
        Names of the inputs.
    outputs
        Names of the outputs.

    Returns
    -------
    IdentificationResult
        System with its diagnostics.

    Raises
    ------
    InvalidSignalError
        If the data are invalid, or too few for the order.

    """
    fit = fit_response(omega, H, order=order, stable=stable, feedthrough=feedthrough, weights=weights)
    A, B, C, D = fit.model.A, fit.model.B, fit.model.C, fit.model.D
    p, m = D.shape
    modes = modal_model_of_system(A, B, C, D)
    diagnostics = ResponseDiagnostics(fit, modes, feedthrough)
    candidates = (
        CandidateSummary(it.order, _VECTOR_FITTING, 0, True, "simulation", it.held_out) for it in fit.candidates
    )
    return IdentificationResult(
        system=StateSpace(A, B, C, D, inputs=inputs, outputs=outputs),
        dt=None,
        hold=None,
        delay=(0,) * m,
        method=_VECTOR_FITTING,
        block_rows=0,
        refined=True,
        trend="none",
        input_offsets=np.zeros(m),
        output_offsets=np.zeros(p),
        fits=compute_fits(diagnostics.compared(None, None)),
        fit_warnings=fit.warnings,
        notes=(),
        candidates=tuple(candidates),
        singular_values=np.zeros(0),
        order=fit.model.n_states,
        modes=modes,
        diagnostics=diagnostics,
    )
