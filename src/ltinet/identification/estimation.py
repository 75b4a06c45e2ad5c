"""Estimation of a model from records: options, choice of order, method, block rows, refinement and family.

The order, and the best model that is fitted to simulated outputs, are chosen on the ends of the records. Models of
the two other families, those fitted to records after a noise filter and those of one-step predictions, replace it where
they are clearly better in cross-validation: all compared models are estimated without one half or third of the records
after the other, and simulate what was held out. Their mean squared errors, before and after the noise filter, are
compared fold by fold as logarithms of ratios; the mean of these has to exceed two standard errors of it and a tenth, and
errors on the ends of the records must not be larger by more than a tenth. In a closed loop, where the other families are
biased, predictor-based models alone compete, and win unless they are clearly worse.

The chosen model is then computed once more from all samples. Where the options leave nothing to choose, the one specified
model is computed from all samples at once. Warnings on the result (instability, poor fits, coarse quantization) are
collected here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.floating_point import Array
from ltinet._util.text import sanitize
from ltinet.errors import InvalidSignalError
from ltinet.identification.delay_estimation import DelayEstimate, estimate_delays
from ltinet.identification.diagnostics import CandidateSummary
from ltinet.identification.innovations import Innovations, refine_prediction_error
from ltinet.identification.linear_parameters import DrivenModel, fit_inputs, simulate_record
from ltinet.identification.modal_model import ModalModel
from ltinet.identification.order_selection import (
    Candidate,
    EstimationSettings,
    Family,
    Fold,
    advantage,
    fit_driven_model,
    generate_candidates,
    is_informative,
    predictor_models,
    refine_candidate,
    refine_model,
    relative_scores,
    restarted,
    select_order,
    split_records,
    subspace_models,
    whiten_fold,
    with_starts,
)
from ltinet.identification.output_error import polish
from ltinet.identification.preprocessing import detrend, fit_autoregression, whiten
from ltinet.identification.records import Record, n_samples
from ltinet.identification.residual_analysis import analyze_residuals
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
_NO_FILTER = np.ones(1)
_CLEAR = 2.0  # standard errors by which one model is clearly better than another
# Smallest difference of the logarithms, errors smaller by 2.5 % before and after the noise filter: a model of too small an
# order fits the frequencies that a noise filter leaves, and is as much better there as it is worse elsewhere. Empirical.
_WORTHWHILE = 0.1
_MOST_LOSS = (
    1.1  # ratio of errors on the ends of the records, before the noise filter, to those of the other model; empirical
)
_FEEDBACK_LEVEL = 0.01  # probability of an open loop with such residuals, from which on a closed loop is assumed
_STABILITY_MARGIN = 1e-9  # |λ| − 1 of a pole that gives no warning: rounding of an integrator; changes no result
_MIN_LEVELS = 16  # distinct values of an output, four bits; fewer give a warning, which changes no result
# Relative error on test samples below which a stable model leaves nothing for an unstable one to explain; empirical.
_SUFFICIENT_ERROR = 0.02
# Ratio of the errors of an unstable and a stable model below which "auto" takes the unstable one. Of eight unstable plants
# in loops 0, 2, 4 and 4 are found unstable with 0, 0.1, 0.25 and 0.5, and of eight stable ones none (python -m
# benchmarks.constants _UNSTABLE_ERROR_RATIO).
_UNSTABLE_ERROR_RATIO = 0.5
_CLOSED_LOOP_NOTE = "inputs follow the residuals: a closed loop, for which models of one-step predictions are valid"
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
    def subspace_methods(self) -> tuple[Method, ...]:
        """Methods for A and C; the first one chooses the order."""
        return tuple(method for method in self.methods if method != "pbsid")

    def families(self, *, linear: bool) -> tuple[Family, ...]:
        """Return the families that compete with models fitted to simulated outputs.

        Predictor-based models are those of inputs under zero hold.
        """
        filtered: tuple[Family, ...] = ("filtered",) if len(self.subspace_methods) == len(METHODS) else ()
        return (*filtered, "predictor") if "pbsid" in self.methods and not linear else filtered

    @property
    def is_complete(self) -> bool:
        """True where nothing is left to be chosen on test samples."""
        return bool(self.block_rows and self.orders and len(self.orders) == len(self.methods) == 1 and not self.refine)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Model of all records, with the choices made and the candidates they were made among."""

    driven: DrivenModel
    noise: Innovations | None
    """Noise, where the model is predictor-based."""
    noise_filter: Array | None
    """Filter of the records, where the model was fitted to filtered records."""
    method: Method
    block_rows: int
    family: Family
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
    is_settled = best.error <= _SUFFICIENT_ERROR or not best.driven.model.is_stable
    if stable != "auto" or not settings.stable or is_settled:
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
    folds = split_records(selection)
    rows = candidate_block_rows(folds[-1].train, options)
    found = _best_simulated(folds[-1], rows, options, settings, callback)
    best, listed, notes = found.best, found.candidates, list[str]()
    error, is_loop = _relative_error(best, settings, n_samples(folds[-1].test)), False
    if options.families(linear=settings.linear) and (error > _SUFFICIENT_ERROR or not options.subspace_methods):
        tests = analyze_residuals(found.residuals, [record.u for record in folds[-1].train])
        is_loop = bool(tests.chance_of_feedback.min() < _FEEDBACK_LEVEL)
        challenger, comparison = None, ""
        # With white residuals the smallest simulation error has the largest likelihood: no model of the noise is closer.
        if is_loop or not tests.is_white.all() or not options.subspace_methods:
            callback(f"models of order {best.order} with their noise")
            challenger, comparison = _best_challenger(
                best, folds, settings, options, found.noise_filter, rows, is_loop=is_loop
            )
        if challenger is not None:
            best = challenger
            listed.append(best)
            notes.append(comparison)
            error = _relative_error(best, settings, sum(n_samples(fold.test) for fold in folds))
    # The chosen model from all samples.
    callback(f"order {best.order} from all samples")
    final, noise = _reestimate(best, records, found.noise_filter, settings, rows, options)
    summaries = [_summary(it, settings, n_samples(folds[-1].test)) for it in listed]
    hankel = compress_hankel(detrend(records, settings.trend), best.block_rows)
    values = decompose_subspace(hankel, "moesp" if best.family == "predictor" else best.method).values
    n_used, n = n_samples(selection), n_samples(records)
    if n_used < n:
        notes.append(f"method, block rows, order and refinement were decided on {n_used} of {n} samples")
    if best.family == "predictor" and is_loop:
        notes.append(_CLOSED_LOOP_NOTE)
    used = found.noise_filter if best.family == "filtered" else None
    return Estimate(
        final,
        noise,
        used,
        best.method,
        best.block_rows,
        best.family,
        best.is_refined,
        tuple(summaries),
        values,
        tuple(notes),
        error,
    )


class _SimulatedModels(NamedTuple):
    """Models that are fitted to simulated outputs, the best of them, and the noise that they leave."""

    best: Candidate
    candidates: list[Candidate]
    residuals: list[Array]
    noise_filter: Array


def _best_simulated(
    fold: Fold,
    rows: tuple[int, ...],
    options: EstimationOptions,
    settings: EstimationSettings,
    callback: Callable[[str], None],
) -> _SimulatedModels:
    """Return the best model that is fitted to simulated outputs, and its order, by the ends of the records."""
    orders, methods = options.orders or _CANDIDATE_ORDERS, options.subspace_methods or METHODS
    callback(f"models of {len(orders)} orders" if len(orders) > 1 else f"models of order {orders[0]}")
    first = METHODS[:1] if "moesp" in methods and len(orders) > 1 else methods
    listed = generate_candidates([fold], settings, _NO_FILTER, block_rows=rows, methods=first, orders=orders)
    if not listed:
        raise DivergentModelError(_DIVERGENT_MESSAGE)
    n_test = n_samples(fold.test)
    leader = listed[int(np.argmin(relative_scores(listed, settings, n_test)))]
    starts = zip(fold.train, leader.driven[0].starts, strict=True)
    residuals = [record.y - simulate_record(leader.driven[0].model, record, start) for record, start in starts]
    noise_filter, order = fit_autoregression(residuals), orders[0]
    if len(orders) > 1:
        callback("the order")
        order = _choose_order(fold, leader.order, listed, noise_filter, rows, first, orders, settings)
    callback(f"models of order {order}, refined" if options.refine else f"models of order {order}")
    others = tuple(method for method in methods if method not in first)
    listed += generate_candidates([fold], settings, _NO_FILTER, block_rows=rows, methods=others, orders=(order,))
    if "moesp" in methods:
        listed += generate_candidates(
            [fold], settings, noise_filter, is_whitened=True, block_rows=rows, methods=METHODS[:1], orders=(order,)
        )
    pool = [candidate for candidate in listed if candidate.order == order]
    pool = pool or [min(listed, key=lambda candidate: abs(candidate.order - order))]
    if options.refine:
        refined = _refine_leading(pool, [fold], settings, _NO_FILTER)
        pool, listed = pool + refined, listed + refined
    best = pool[int(np.argmin(relative_scores(pool, settings, n_test)))]
    return _SimulatedModels(best, listed, residuals, noise_filter)


def _choose_order(
    fold: Fold,
    leading: int,
    plain: list[Candidate],
    noise_filter: Array,
    rows: tuple[int, ...],
    methods: tuple[Method, ...],
    orders: tuple[int, ...],
    settings: EstimationSettings,
) -> int:
    """Return an order, chosen by models of whitened records; `plain` are models of the records as they are."""
    white = whiten_fold(fold, noise_filter)
    # The best model of records that are not whitened has states for the noise as well: few more can be needed without.
    max_order = max(min(orders), leading + leading // 2 + 2)
    lower = tuple(order for order in orders if order <= max_order)
    group = generate_candidates([white], settings, _NO_FILTER, block_rows=rows, methods=methods, orders=lower)
    return select_order(group, white, settings) if group else select_order(plain, fold, settings)


def _refine_leading(
    pool: Sequence[Candidate], folds: Sequence[Fold], settings: EstimationSettings, noise_filter: Array
) -> list[Candidate]:
    """Return the best candidates of a pool after refinement."""
    n_test = sum(n_samples(fold.test) for fold in folds)
    ranking = np.argsort(relative_scores(pool, settings, n_test), kind="stable").tolist() if pool else []
    return [
        refined
        for index in ranking[:_N_REFINED]
        for refined in refine_candidate(pool[index], folds, settings, noise_filter)
    ]


def _best_challenger(
    best: Candidate,
    folds: Sequence[Fold],
    settings: EstimationSettings,
    options: EstimationOptions,
    noise_filter: Array,
    rows: tuple[int, ...],
    *,
    is_loop: bool,
) -> tuple[Candidate | None, str]:
    """Return the model of another family that is clearly better than `best`, None without one, with its advantage.

    In a closed loop a predictor-based model wins if it is not clearly worse, since the others are biased.
    """
    folds = [*(fold for fold in folds[:-1] if is_informative(fold, best.block_rows)), folds[-1]]
    common: dict[str, Any] = {"orders": (best.order,)}
    in_loop = is_loop or not options.subspace_methods
    here = generate_candidates(
        folds, settings, noise_filter, is_whitened=best.is_whitened, block_rows=(best.block_rows,),
        methods=(best.method,), **common,
    )  # fmt: skip
    if here and best.is_refined:
        refined = refine_candidate(here[0], folds, settings, noise_filter)
        here = refined or (here if in_loop else [])
    if not here:
        return None, ""
    winner, leading, comparison = None, 0.0, ""
    families = options.families(linear=settings.linear)
    for family in [it for it in families if it == "predictor" or not in_loop]:
        group = generate_candidates(
            folds, settings, noise_filter, family=family, block_rows=rows, methods=METHODS, **common
        )
        group += _refine_leading(group, folds, settings, noise_filter) if options.refine else []
        for candidate in group:
            own, other = candidate, here[0]
            if any(not driven.model.is_stable for driven in candidate.driven):
                own, other = (restarted(it, folds, settings, noise_filter) or it for it in (own, other))
            difference, deviation = advantage(own, other)
            needed = max(_CLEAR * deviation, _WORTHWHILE)
            if not options.subspace_methods:
                needed = -np.inf
            elif is_loop:
                needed = -_CLEAR * deviation
            elif own.parts[-1, 0] > _MOST_LOSS**2 * other.parts[-1, 0]:
                continue  # the ends of the records are closest to what follows: no clear loss there, whatever is gained
            if difference > needed and (winner is None or difference > leading):
                winner, leading = candidate, difference
                ratios = np.exp(0.5 * np.log(own.parts / other.parts).mean(axis=0))
                before, after = (100.0 * (ratio - 1.0) for ratio in ratios.tolist())
                comparison = (
                    f"errors on held-out samples are {before:+.1f} % before and {after:+.1f} % after the noise filter of "
                    "those of the best model that was fitted to simulated outputs"
                )
    return winner, comparison


def _summary(it: Candidate, settings: EstimationSettings, n_test: int) -> CandidateSummary:
    error = _relative_error(it, settings, n_test)
    return CandidateSummary(it.order, it.method, it.block_rows, it.is_refined, it.family, error)


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
    return Estimate(driven, None, None, method, rows, "simulation", False, (), decomposition.values, (), error)


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
    records: tuple[Record, ...],
    noise_filter: Array,
    settings: EstimationSettings,
    rows: tuple[int, ...],
    options: EstimationOptions,
) -> tuple[DrivenModel, Innovations | None]:
    """Compute the best candidate from all samples by its method; refine it from several starts, and take the closest."""
    if best.family == "predictor":
        for _, own in predictor_models(records, settings, (best.block_rows,), best.order):
            if best.is_refined:
                own = refine_prediction_error(own, records, settings.feedthrough, settings.trend) or own
            driven, modes = with_starts(own, records, settings), own.modes()
            if driven is not None and modes is not None:
                return driven, modes[1]
        raise DivergentModelError(_DIVERGENT_MESSAGE)
    is_filtered, methods = best.family == "filtered", options.subspace_methods
    source = whiten(records, noise_filter) if is_filtered else records

    def driven_models(
        pieces: tuple[Record, ...], rows: tuple[int, ...], methods: tuple[Method, ...]
    ) -> list[DrivenModel]:
        models = subspace_models(pieces, rows, methods, (best.order,), settings.trend)
        driven = (fit_driven_model(A, C, source, settings) for _, _, _, A, C in models)
        return [model for model in driven if model is not None]

    def total_error(driven: DrivenModel) -> float:
        return float((driven.errors / settings.scale**2).sum())

    pieces = whiten(records, noise_filter) if is_filtered or best.is_whitened else records
    pool = driven_models(pieces, (best.block_rows,), (best.method,))
    feedthrough, trend, scale = settings.feedthrough, settings.trend, settings.scale
    if best.is_refined or not pool:
        models = [driven.model for driven in best.driven]
        pool += [fit_inputs(it, source, feedthrough=feedthrough, trend=trend, scale=scale) for it in models]
    if best.is_refined and n_samples(records) <= _MAX_SELECTION_SAMPLES:
        pool += sorted(driven_models(source, rows, methods), key=total_error)[:_N_STARTS]
        refined = [refine_model(driven, source, settings) for driven in pool]
        pool += [driven for driven in refined if driven is not None]
    closest = min(pool, key=total_error)
    if is_filtered:
        closest = with_starts(closest, records, settings) or closest
    if options.refine:
        closest = polish(closest, records, n_direct=settings.n_direct, trend=trend, scale=scale)
    return closest, None


def _relative_error(candidate: Candidate, settings: EstimationSettings, n_test: int) -> float:
    return float(np.sqrt((candidate.errors / (n_test * settings.scale**2)).mean()))


# Validation of options.


def validate_estimation_options(order: Any, method: Any, block_rows: Any, refine: Any) -> EstimationOptions:
    """Check order, method, block rows and refine, and return them as options."""
    if method not in ("auto", *METHODS, "pbsid"):
        raise InvalidSignalError(
            f'method is {sanitize(repr(method))}; it must be "auto", "moesp", "n4sid", "cva" or "pbsid"'
        )
    orders = None if order is None else _distinct_integers(order)
    if orders is not None and (not orders or orders[0] < 1):
        raise InvalidSignalError(f"order is {sanitize(repr(order))}; it must be an integer of at least 1, or several")
    rows = () if block_rows is None else _distinct_integers(block_rows)
    if block_rows is not None and (len(rows) != 1 or np.ndim(block_rows) or rows[0] < 2):
        raise InvalidSignalError(f"block_rows is {sanitize(repr(block_rows))}; it must be an integer of at least 2")
    methods = (*METHODS, "pbsid") if method == "auto" else (method,)
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
