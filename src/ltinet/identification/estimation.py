"""Estimation of a model from records: options, choice of method, block rows and order, refinement.

All choices are made on the ends of the records, which the compared models have not been fitted to; the chosen model
is then computed once more from all samples. Where the options leave nothing to choose, the one specified model is
computed from all samples at once. Warnings on the result (instability, poor fits, coarse quantization) are collected
here.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.floating_point import Array
from ltinet._util.text import sanitize
from ltinet.errors import InvalidSignalError
from ltinet.identification.delay_estimation import DelayEstimate, estimate_delays
from ltinet.identification.diagnostics import CandidateSummary
from ltinet.identification.linear_parameters import DrivenModel, fit_inputs, simulate_record
from ltinet.identification.modal_model import ModalModel
from ltinet.identification.order_selection import (
    Candidate,
    EstimationSettings,
    fit_driven_model,
    generate_candidates,
    refine_candidate,
    refine_model,
    relative_scores,
    select_order,
    split_records,
    subspace_models,
    whiten_split,
)
from ltinet.identification.output_error import polish
from ltinet.identification.preprocessing import detrend, fit_autoregression, whiten
from ltinet.identification.records import Record, n_samples
from ltinet.identification.subspace import METHODS, Method, compress_hankel, decompose_subspace, has_enough_columns
from ltinet.signals.arrays import as_real_array

_N_REFINED = 3  # candidates of the chosen order that are refined, one for each subspace method
_N_STARTS = 4  # models of all samples, beside the best candidate, from which refinement starts
# Candidates among which test samples select. Median errors of impulse responses are 0.47, 0.39 and 0.35 % with 10, 15 and
# 25 alone, and 0.40 % with all (python -m benchmarks.constants _CANDIDATE_BLOCK_ROWS).
_CANDIDATE_BLOCK_ROWS = (10, 15, 25)
# Every order while one more is a large share of the states, then even ones, as oscillations come in pairs, and steps of 4.
_CANDIDATE_ORDERS = (*range(1, 13), *range(14, 25, 2), 28, 32, 36, 40)
_MAX_HANKEL_ROWS = 1000  # rows of the Hankel matrix where the number of block rows is chosen: a QR takes a second
_MAX_SELECTION_SAMPLES = 2**16  # samples of each record with which choices are made
_POOR_FIT = 50.0  # %: smaller fits give a warning; changes no result
_STABILITY_MARGIN = 1e-9  # |λ| − 1 of a pole that gives no warning: rounding of an integrator; changes no result
_MIN_LEVELS = 16  # distinct values of an output, four bits; fewer give a warning, which changes no result
# Relative error on test samples below which a stable model leaves nothing for an unstable one to explain; empirical.
_SUFFICIENT_ERROR = 0.02
# Ratio of the errors of an unstable and a stable model below which "auto" takes the unstable one. Of eight unstable plants
# in loops 0, 2, 4 and 4 are found unstable with 0, 0.1, 0.25 and 0.5, and of eight stable ones none (python -m
# benchmarks.constants _UNSTABLE_ERROR_RATIO).
_UNSTABLE_ERROR_RATIO = 0.5
_DIVERGENT_MESSAGE = (
    "every model diverges within the record; is u what drove y, and in its order? try stable=True, another order or "
    "block_rows"
)


class DivergentModelError(InvalidSignalError):
    """Error for records over which no model can be simulated without overflow."""


@dataclass(frozen=True, eq=False)
class EstimationOptions:
    """Options of the user; None where the records decide."""

    orders: tuple[int, ...] | None
    methods: tuple[Method, ...]
    block_rows: int | None
    refine: bool

    @property
    def first_methods(self) -> tuple[Method, ...]:
        """Methods with which the order is chosen; the others are used with this order only."""
        is_given = self.orders is not None and len(self.orders) == 1
        return ("moesp",) if "moesp" in self.methods and not is_given else self.methods

    @property
    def is_complete(self) -> bool:
        """True where nothing is left to be chosen on test samples."""
        return bool(self.block_rows and self.orders and len(self.orders) == len(self.methods) == 1 and not self.refine)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Model of all records, with the choices made and the candidates they were made among."""

    driven: DrivenModel
    method: Method
    block_rows: int
    is_refined: bool
    candidates: tuple[CandidateSummary, ...]
    singular_values: Array
    notes: tuple[str, ...]
    """Note where choices were made with some of the samples only."""
    error: float
    """Error of the best candidate on the test samples, relative to the outputs."""


def estimate(
    records: tuple[Record, ...],
    options: EstimationOptions,
    settings: EstimationSettings,
    callback: Callable[[str], None],
    *,
    stable: bool | Literal["auto"],
) -> Estimate:
    """Return the best model that the options allow; `callback` receives the name of every step as it begins.

    With `stable` "auto" this is the stable model, unless an unstable one predicts test samples far better, as for an
    unstable plant in a loop; where the options specify one model, it is mirrored only if it diverges. Raises
    InvalidSignalError where the records are too short, or every model of them diverges.
    """
    try:
        best = _estimate(records, options, settings, callback)
    except DivergentModelError:
        if settings.stable or stable != "auto":
            raise
        return _estimate(records, options, replace(settings, stable=True), callback)
    if stable != "auto" or not settings.stable or best.error <= _SUFFICIENT_ERROR:
        return best
    order = best.driven.model.order
    models = subspace_models(records, (best.block_rows,), METHODS, (order,), settings.trend)
    if all(np.abs(np.linalg.eigvals(A)).max(initial=0.0) <= 1.0 for _, _, _, A, _ in models):
        return best
    try:
        free = _estimate(records, options, replace(settings, stable=False), lambda _: None)
    except DivergentModelError:
        return best
    return free if not free.driven.model.is_stable and free.error < _UNSTABLE_ERROR_RATIO * best.error else best


def _estimate(
    records: tuple[Record, ...],
    options: EstimationOptions,
    settings: EstimationSettings,
    callback: Callable[[str], None],
) -> Estimate:
    """Return the best model, with growing modes mirrored or not."""
    if options.is_complete:
        return _estimate_as_specified(records, options, settings)
    selection = tuple(record.part(slice(0, _MAX_SELECTION_SAMPLES)) for record in records)
    split = split_records(selection)
    n_test = n_samples(split.test)
    rows = candidate_block_rows(split.train, options)
    orders = options.orders or _CANDIDATE_ORDERS
    # Candidates from the records as they are, and a filter that whitens the residuals of the best of them.
    callback(f"models of {len(orders)} orders" if len(orders) > 1 else f"models of order {orders[0]}")
    plain = generate_candidates(split, settings, block_rows=rows, methods=options.first_methods, orders=orders)
    if not plain:
        raise DivergentModelError(_DIVERGENT_MESSAGE)
    leader = plain[int(np.argmin(relative_scores(plain, settings, n_test)))]
    starts = zip(split.train, leader.driven.starts, strict=True)
    coefficients = fit_autoregression(
        [record.y - simulate_record(leader.driven.model, record, start) for record, start in starts]
    )
    white = whiten_split(split, coefficients)
    callback("the order")
    order = orders[0]
    if len(orders) > 1:
        # The best model of records that are not whitened has states for the noise as well: few more can be needed without.
        max_order = max(min(orders), leader.order + leader.order // 2 + 2)
        lower = tuple(order for order in orders if order <= max_order)
        group = generate_candidates(white, settings, block_rows=rows, methods=options.first_methods, orders=lower)
        order = select_order(group, white, settings) if group else min(candidate.order for candidate in plain)
    # Candidates of this order: of the other methods, from whitened records, and refined.
    callback(f"models of order {order}, refined" if options.refine else f"models of order {order}")
    others = tuple(method for method in options.methods if method not in options.first_methods)
    plain += generate_candidates(split, settings, block_rows=rows, methods=others, orders=(order,))
    pool = [candidate for candidate in plain if candidate.order == order]
    if "moesp" in options.methods and white.train:
        pool += generate_candidates(
            split, settings, block_rows=rows, methods=("moesp",), orders=(order,), whitened=white.train
        )
    pool = pool or [min(plain, key=lambda candidate: abs(candidate.order - order))]
    if options.refine:
        leading = np.argsort(relative_scores(pool, settings, n_test), kind="stable")[:_N_REFINED]
        refined = [refine_candidate(pool[index], split, settings) for index in leading.tolist()]
        pool += [candidate for candidate in refined if candidate is not None]
    best = pool[int(np.argmin(relative_scores(pool, settings, n_test)))]
    # The chosen model from all samples.
    callback(f"order {order} from all samples")
    source = whiten(selection, coefficients) if best.is_whitened else records
    closest = _reestimate(best, source, records, settings, rows, options.methods)
    final = closest
    if options.refine:
        final = polish(closest, records, feedthrough=settings.feedthrough, trend=settings.trend, scale=settings.scale)
    hankel = compress_hankel(detrend(records, settings.trend), best.block_rows)
    listed = (*plain, *(candidate for candidate in pool if candidate.is_whitened or candidate.is_refined))
    summaries = []
    for it in listed:
        error = _relative_error(it, settings, n_test)
        summaries.append(CandidateSummary(it.order, it.method, it.block_rows, it.is_refined, it.is_whitened, error))
    is_refined, values = best.is_refined or final is not closest, decompose_subspace(hankel, best.method).values
    n_used, n, error = n_samples(selection), n_samples(records), _relative_error(best, settings, n_test)
    note = f"method, block rows, order and refinement were decided on {n_used} of {n} samples"
    notes = (note,) if n_used < n else ()
    return Estimate(final, best.method, best.block_rows, is_refined, tuple(summaries), values, notes, error)


def _estimate_as_specified(
    records: tuple[Record, ...], options: EstimationOptions, settings: EstimationSettings
) -> Estimate:
    """Return the one model that the options specify, from all samples."""
    candidate_block_rows(records, options)
    rows, (method,), (order,) = options.block_rows or 0, options.methods, options.orders or (0,)
    decomposition = decompose_subspace(compress_hankel(detrend(records, settings.trend), rows), method)
    if order > decomposition.largest_order:
        raise InvalidSignalError(
            f"{rows} block rows determine up to {decomposition.largest_order} states and order is {order}; give more "
            "block_rows"
        )
    # Outputs share one scale, that of the user's units, as in SLICOT.
    scale = np.full_like(settings.scale, np.sqrt(np.mean(settings.scale**2)))
    driven = fit_driven_model(*decomposition.model(order), records, replace(settings, scale=scale))
    if driven is None:
        raise DivergentModelError(_DIVERGENT_MESSAGE)
    error = float(np.sqrt((driven.errors / (n_samples(records) * settings.scale**2)).mean()))
    return Estimate(driven, method, rows, False, (), decomposition.values, (), error)


def candidate_block_rows(records: tuple[Record, ...], options: EstimationOptions) -> tuple[int, ...]:
    """Return the number of block rows of the options, or several for which the records are long enough.

    The Hankel matrix needs as many columns as rows. Raises InvalidSignalError where the records are too short.
    """
    m, p = records[0].u.shape[1], records[0].y.shape[1]
    least = max(2, -(-min(options.orders or (1,)) // p) + 1)

    if options.block_rows is not None:
        rows = [options.block_rows] if has_enough_columns(records, options.block_rows) else []
    else:
        usual = [s for s in _CANDIDATE_BLOCK_ROWS if s >= least and 2 * s * (m + p) <= _MAX_HANKEL_ROWS]
        fewer = range(max(_CANDIDATE_BLOCK_ROWS[0], least), least - 1, -1)
        rows = [s for s in usual if has_enough_columns(records, s)]
        rows = rows or [s for s in fewer if has_enough_columns(records, s)][:1]
    if not rows:
        s = options.block_rows or least
        needed = 2 * s * (m + p) + 2 * s - 1
        raise InvalidSignalError(
            f"the samples used for estimation are too few: the longest record has {max(map(len, records))} of them, and "
            f"{s} block rows of {m} inputs and {p} outputs need about {needed}. Record for longer, or use fewer channels"
            + (", fewer block_rows" if options.block_rows else "")
        )
    return tuple(rows)


def _reestimate(
    best: Candidate,
    source: tuple[Record, ...],
    records: tuple[Record, ...],
    settings: EstimationSettings,
    rows: tuple[int, ...],
    methods: tuple[Method, ...],
) -> DrivenModel:
    """Compute the best candidate from all samples by its method; refine it from several starts, and take the closest."""

    def driven_models(
        source: tuple[Record, ...], rows: tuple[int, ...], methods: tuple[Method, ...]
    ) -> list[DrivenModel]:
        models = subspace_models(source, rows, methods, (best.order,), settings.trend)
        driven = (fit_driven_model(A, C, records, settings) for _, _, _, A, C in models)
        return [model for model in driven if model is not None]

    def total_error(driven: DrivenModel) -> float:
        return float((driven.errors / settings.scale**2).sum())

    pool = driven_models(source, (best.block_rows,), (best.method,))
    if best.is_refined or not pool:
        model, feedthrough, trend = best.driven.model, settings.feedthrough, settings.trend
        pool.append(fit_inputs(model, records, feedthrough=feedthrough, trend=trend, scale=settings.scale))
    if best.is_refined and n_samples(records) <= _MAX_SELECTION_SAMPLES:
        pool += sorted(driven_models(records, rows, methods), key=total_error)[:_N_STARTS]
        refined = [refine_model(driven, records, settings) for driven in pool]
        pool += [driven for driven in refined if driven is not None]
    return min(pool, key=total_error)


def _relative_error(candidate: Candidate, settings: EstimationSettings, n_test: int) -> float:
    return float(np.sqrt((candidate.errors / (n_test * settings.scale**2)).mean()))


# Validation of options.


def validate_estimation_options(order: Any, method: Any, block_rows: Any, refine: Any) -> EstimationOptions:
    """Check order, method, block rows and refine, and return them as options."""
    if method not in ("auto", *METHODS):
        raise InvalidSignalError(f'method is {sanitize(repr(method))}; it must be "auto", "moesp", "n4sid" or "cva"')
    orders = None if order is None else _distinct_integers(order)
    if orders is not None and (not orders or orders[0] < 1):
        raise InvalidSignalError(f"order is {sanitize(repr(order))}; it must be an integer of at least 1, or several")
    rows = () if block_rows is None else _distinct_integers(block_rows)
    if block_rows is not None and (len(rows) != 1 or np.ndim(block_rows) or rows[0] < 2):
        raise InvalidSignalError(f"block_rows is {sanitize(repr(block_rows))}; it must be an integer of at least 2")
    methods = METHODS if method == "auto" else (method,)
    return EstimationOptions(orders, methods, rows[0] if rows else None, validate_flag(refine, "refine"))


def validate_flag(value: Any, name: str) -> bool:
    """Check that a value is a bool, and not merely truthy."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidSignalError(f"{name} is {sanitize(repr(value))}; it must be True or False")
    return bool(value)


def validate_choice(value: Any, name: str, choices: tuple[Any, ...]) -> None:
    """Check that a value is one of several choices, and of its type."""
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        texts = [f'"{choice}"' if isinstance(choice, str) else str(choice) for choice in choices]
        raise InvalidSignalError(
            f"{name} is {sanitize(repr(value))}; it must be {', '.join(texts[:-1])} or {texts[-1]}"
        )


def _distinct_integers(values: Any) -> tuple[int, ...]:
    """Return distinct integers, ascending; an empty tuple where there are other values."""
    try:
        array = np.atleast_1d(np.asarray(values))
    except (TypeError, ValueError):
        return ()
    return tuple(sorted({int(n) for n in array.tolist()})) if array.ndim == 1 and array.dtype.kind in "iu" else ()


def resolve_delays(delay: Any, records: tuple[Record, ...], settings: EstimationSettings) -> DelayEstimate:
    """Return the delay of every input in samples, estimated where it is "auto"."""
    m = records[0].u.shape[1]
    if isinstance(delay, str) and delay == "auto":
        return estimate_delays(records, settings)
    shortest = min(map(len, records))
    try:
        delays = np.broadcast_to(np.asarray(delay), (m,)) if np.ndim(delay) == 0 else np.asarray(delay)
    except (TypeError, ValueError):  # lists of different lengths
        delays = np.zeros(0)
    if delays.shape != (m,) or delays.dtype.kind not in "iu" or np.any(delays < 0) or np.any(delays >= shortest):
        raise InvalidSignalError(
            f'delay is {sanitize(repr(delay))}; give "auto", or whole samples, one or {m} of them, fewer than the '
            f"{shortest} of the shortest experiment"
        )
    return DelayEstimate(tuple(map(int, delays)))


def validate_points(values: ArrayLike, name: str) -> Array:
    """Return frequencies or times as an array `(k,)` of finite numbers that are not negative."""
    numbers = np.atleast_1d(as_real_array(values, name))
    if numbers.ndim != 1 or not np.all(numbers >= 0.0) or not np.all(np.isfinite(numbers)):
        raise InvalidSignalError(f"{name} is {sanitize(repr(values))}; give a list of finite numbers from 0 on")
    return numbers


# Warnings on the result.


def model_warnings(
    model: ModalModel, records: tuple[Record, ...], *, fits: Array, n_doubled: int, notes: tuple[str, ...]
) -> tuple[str, ...]:
    """Return warnings about a model and the records that it was fitted to."""
    warnings = [note for note in notes if "outlier" in note]
    growth = np.abs(model.poles).max(initial=0.0)
    if growth > 1.0 + _STABILITY_MARGIN:
        warnings.append(f"the model is unstable, |λ| up to {growth:.6g} at samples; stable=True mirrors")
    if n_doubled:
        warnings.append(
            f"{n_doubled} negative real pole(s) at samples became pairs at half the sampling frequency: another order, "
            "or a shorter dt, may explain the records better"
        )
    poor = np.flatnonzero(fits < _POOR_FIT)
    if len(poor):
        warnings.append(f"output {poor[0] + 1} is explained by {fits[poor[0]]:.0f} % only")
    for output in range(model.n_outputs):
        n_levels = len(np.unique(np.concatenate([record.y[:, output] for record in records])[: 2**14]))
        if n_levels < _MIN_LEVELS:
            warnings.append(f"output {output + 1} has {n_levels} different values only: a coarse converter?")
            break
    return tuple(warnings)
