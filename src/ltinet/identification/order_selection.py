"""Candidate models of many orders and methods, and the choice of an order by hold-out error and BIC.

For the order every candidate is fitted to the first two thirds of the records and tested on the rest. The order with the
smallest hold-out error is too high more often than not, since one more state costs little. Among all orders that are as good
there, within half a percent or the effect of chance, the Bayesian information criterion on the training samples
decides: a state that barely matters changes errors by less than half a percent, and its likelihood by far more than
chance does. The choice is made on whitened records, where errors are meaningful however strongly the noise is
correlated.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from scipy import linalg

from ltinet._util.floating_point import Array
from ltinet.identification.innovations import InnovationModel, decompose_predictor, refine_prediction_error
from ltinet.identification.linear_parameters import (
    N_TRENDS,
    DrivenModel,
    Trend,
    fit_initial_condition,
    fit_inputs,
    simulate_record,
)
from ltinet.identification.modal_model import ModalModel, undriven_modal_model
from ltinet.identification.output_error import REFINEMENT_TOLERANCE, is_noise_free, refine_output_error
from ltinet.identification.preprocessing import apply_filter, detrend, whiten
from ltinet.identification.records import Record, n_samples
from ltinet.identification.subspace import HankelFactor, Method, compress_hankel, decompose_subspace, has_enough_columns
from ltinet.systems.matrices import Matrix

_FEWEST_FOLDS = 3  # for a standard error
_N_STARTS = 10  # of simulations of growing modes in the held-out samples of every record
N_PARTS = (2, 3)
"""Numbers of contiguous parts of every record that are held out one after the other."""
_HOLDOUT_RATIO = 1.0 / (N_PARTS[-1] - 1.0)  # test samples by training samples of the last fold
_MAX_GROWTH_EXPONENT = 15.0  # log of the growth of a mode over a record, e^15 = 3e6: no measurement has that range
# The same in a loop, which keeps the outputs small: e^30 = 1e13, with which three digits of a simulation are left.
_MAX_LOOP_EXPONENT = 30.0
_ERROR_FLOOR = 1e-9  # of the outputs: smaller errors are taken for equal; a converter of 24 bits resolves 6e-8
TOLERATED = 0.005
"""Relative difference of hold-out errors that does not justify a larger order.

Empirical, from random systems; a tenth or ten times of it pass `tests/unit/identification`.
"""
_SELECTION_DEVIATIONS = 4.0  # standard deviations: the best of a hundred models is as much better in 0.3 % of cases
# Orders around the one chosen before refinement that are refined: two above, and lower ones until two are worse, since
# a pair counts two states and a single state may not help.
_N_ORDERS_ABOVE = 2
_N_WORSE_ORDERS = 2


@dataclass(frozen=True, eq=False)
class EstimationSettings:
    """Settings that all models of one identification share."""

    n_inputs: int
    feedthrough: bool
    trend: Trend
    linear: bool
    """True for a first-order hold."""
    scale: Array
    """Size of each output, `(p,)`."""
    stable: bool
    """True where growing modes of models fitted to simulated outputs are mirrored."""
    may_grow: bool
    """True where modes of predictor-based models may grow."""
    longest: int
    """Number of samples of the longest record, over which the growth of modes is limited."""

    @property
    def n_direct(self) -> int:
        """Number of inputs with a direct path to the outputs."""
        return self.n_inputs if self.feedthrough else 0


Family = Literal["simulation", "filtered", "predictor"]
"""How B and D are found: from simulated outputs, those of records sent through a noise filter, one-step predictions."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """Model with its method, and its squared errors on the held-out samples of all folds, `(p,)`."""

    order: int
    method: Method
    block_rows: int
    family: Family
    is_refined: bool
    fitted: tuple[DrivenModel | InnovationModel, ...]
    """Models of the folds as their family fits them."""
    driven: tuple[DrivenModel, ...] = ()
    """These models with starts and trends of the training records."""
    is_whitened: bool = False
    """True where A and C come from whitened records and B and D do not."""
    errors: Array = field(default_factory=lambda: np.zeros(0))
    parts: Array = field(default_factory=lambda: np.zeros((0, 2)))
    """Mean squared errors of every fold before and after the noise filter, of outputs in their units `(folds, 2)`."""


@dataclass(frozen=True, eq=False)
class Fold:
    """Samples of records to which models are fitted, and those held out, on which they are tested."""

    train: tuple[Record, ...]
    """Records without the held-out samples at their ends; in the middle their outputs are NaN."""
    pieces: tuple[Record, ...]
    """Runs of samples to which models are fitted."""
    test: tuple[Record, ...]
    """Held-out samples of every record."""
    positions: tuple[int, ...]
    """First held-out sample of every record, counted from the first one in `train`."""


def split_records(records: tuple[Record, ...]) -> tuple[Fold, ...]:
    """Return folds, each without one contiguous part of every record: halves and thirds; the last holds out the ends."""
    return tuple(_held_out(records, number, count) for count in N_PARTS for number in range(count))


def is_informative(fold: Fold, block_rows: int) -> bool:
    """Return whether pieces of a fold are long enough for a number of block rows, and every input moves in one."""
    moves = np.max([np.ptp(piece.u, axis=0) for piece in fold.pieces], axis=0) > 0.0
    return bool(np.all(moves)) and has_enough_columns(fold.pieces, block_rows)


def _held_out(records: tuple[Record, ...], number: int, count: int) -> Fold:
    """Return the fold that holds out one of several parts of equal length of every record."""
    train, pieces, test, positions = [], [], [], []
    for record in records:
        n, length = len(record), len(record) // count
        end = n - (count - 1 - number) * length
        begin = end - length if number else 0
        parts = [part for part in (record.part(slice(0, begin)), record.part(slice(end, n))) if len(part)]
        pieces += parts
        test.append(record.part(slice(begin, end)))
        positions.append(begin or begin - end)
        if len(parts) == 1:
            train.append(parts[0])
        else:
            y = record.y.copy()
            y[begin:end] = np.nan
            train.append(Record(record.u, y))
    return Fold(tuple(train), tuple(pieces), tuple(test), tuple(positions))


def whiten_fold(fold: Fold, coefficients: Array) -> Fold:
    """Return a fold of the ends with whitened records, without those of which a part is shorter than the filter."""
    parts = zip(fold.train, fold.test, strict=True)
    pairs = [pair for pair in parts if min(map(len, pair)) >= len(coefficients)]
    train, test = (whiten(tuple(pair[side] for pair in pairs), coefficients) for side in (0, 1))
    return Fold(train, train, test, tuple(map(len, train)))


# Candidates.


def generate_candidates(
    folds: Sequence[Fold],
    settings: EstimationSettings,
    noise_filter: Array,
    *,
    family: Family = "simulation",
    block_rows: Sequence[int],
    methods: Sequence[Method],
    orders: Sequence[int],
    is_whitened: bool = False,
) -> list[Candidate]:
    """Return candidates of a family that all folds have, for all methods, numbers of block rows and orders."""
    models: dict[tuple[int, Method, int], list[Any]] = {}
    for fold in folds:
        if family == "predictor":
            for order in orders:
                for n_rows, model in predictor_models(fold.pieces, settings, block_rows, order):
                    models.setdefault((order, "pbsid", n_rows), []).append(model)
            continue
        records = fold.train if family == "simulation" else whiten(fold.pieces, noise_filter)
        pieces = whiten(fold.pieces, noise_filter) if is_whitened or family == "filtered" else fold.pieces
        for order, method, n_rows, A, C in subspace_models(pieces, block_rows, methods, orders, settings.trend):
            driven = fit_driven_model(A, C, records, settings)
            if driven is not None:
                models.setdefault((order, method, n_rows), []).append(driven)
    candidates = []
    for (order, method, n_rows), fitted in models.items():
        candidate = Candidate(order, method, n_rows, family, False, tuple(fitted), is_whitened=is_whitened)
        candidates += _tested(candidate, folds, settings, noise_filter)
    return candidates


def refine_candidate(
    candidate: Candidate, folds: Sequence[Fold], settings: EstimationSettings, noise_filter: Array
) -> list[Candidate]:
    """Return the candidate after refinement, better or not, in a list; it is empty where refinement gave no model."""
    refined: list[DrivenModel | InnovationModel] = []
    for model, fold in zip(candidate.fitted, folds, strict=True):
        better: DrivenModel | InnovationModel | None
        if isinstance(model, InnovationModel):
            better = refine_prediction_error(model, fold.pieces, settings.feedthrough, settings.trend)
        else:
            records = fold.train if candidate.family == "simulation" else whiten(fold.pieces, noise_filter)
            better = refine_model(model, records, settings)
        if better is None:
            return []
        refined.append(better)
    return _tested(replace(candidate, is_refined=True, fitted=tuple(refined)), folds, settings, noise_filter)


def predictor_models(
    records: tuple[Record, ...], settings: EstimationSettings, block_rows: Sequence[int], order: int
) -> Iterator[tuple[int, InnovationModel]]:
    """Yield block rows and predictor-based subspace models, without those that the records do not determine."""
    for factor in _hankel_factors(records, block_rows, settings.trend):
        try:
            decomposition = decompose_predictor(factor, feedthrough=settings.feedthrough)
            if order <= decomposition.largest_order:
                yield factor.block_rows, decomposition.model(order)
        except linalg.LinAlgError:  # innovations that are rounding
            continue


def with_starts(
    fitted: DrivenModel | InnovationModel, records: tuple[Record, ...], settings: EstimationSettings
) -> DrivenModel | None:
    """Return a model with starts, and offsets where it is stable, fitted to records; None where it diverges."""
    if isinstance(fitted, InnovationModel):
        modes = fitted.modes()
        model = None if modes is None else modes[0]
    else:
        model = fitted.model
    if model is None or not np.all(np.isfinite(model.poles)) or not (settings.may_grow or model.is_stable):
        return None
    if diverges(model, settings, _MAX_LOOP_EXPONENT if isinstance(fitted, InnovationModel) else _MAX_GROWTH_EXPONENT):
        return None
    # A growing free response fits any offset: the means of the records, which are subtracted, have to do.
    trend = settings.trend if model.is_stable else "none"
    pairs = [fit_initial_condition(model, record, trend=trend, scale=settings.scale) for record in records]
    starts = tuple(start for start, _ in pairs)
    if trend != settings.trend:
        still = np.zeros((len(settings.scale), N_TRENDS[settings.trend]))
        starts = tuple(replace(start, trends=still) for start in starts)
    return DrivenModel(model, starts, np.sum([errors for _, errors in pairs], axis=0))


def restarted(
    candidate: Candidate, folds: Sequence[Fold], settings: EstimationSettings, noise_filter: Array
) -> Candidate | None:
    """Return a candidate with the errors of simulations that start anew in every block, for growing modes."""
    tested = _tested(candidate, folds, settings, noise_filter, n_starts=_N_STARTS)
    return tested[0] if tested else None


def _tested(
    candidate: Candidate,
    folds: Sequence[Fold],
    settings: EstimationSettings,
    noise_filter: Array,
    *,
    n_starts: int = 1,
) -> list[Candidate]:
    """Return the candidate with its errors in a list, which is empty where a model of a fold is missing or diverges."""
    driven, tests = [], []
    for fitted, fold in zip(candidate.fitted, folds, strict=False):
        if candidate.family == "simulation" and isinstance(fitted, DrivenModel):
            model: DrivenModel | None = fitted
        else:
            model = with_starts(fitted, fold.train, settings)
        test = None if model is None else holdout_errors(model, fold, settings, noise_filter, n_starts)
        if model is not None and test is not None:
            driven.append(model)
            tests.append(test)
    if len(tests) < len(folds):
        return []
    errors, parts = zip(*tests, strict=True)
    return [replace(candidate, driven=tuple(driven), errors=np.sum(errors, axis=0), parts=np.array(parts))]


def subspace_models(
    records: tuple[Record, ...],
    block_rows: Sequence[int],
    methods: Sequence[Method],
    orders: Sequence[int],
    trend: Trend,
) -> Iterator[tuple[int, Method, int, Matrix, Matrix]]:
    """Yield order, method, block rows, A and C; the records are compressed once, with the most block rows.

    Block rows for which the records are too short, as whitened parts between gaps may be, yield nothing.
    """
    for factor in _hankel_factors(records, block_rows, trend):
        for method in methods:
            decomposition = decompose_subspace(factor, method)
            for order in orders:
                if order <= decomposition.largest_order:
                    A, C = decomposition.model(order)
                    if np.all(np.isfinite(A)):
                        yield order, method, factor.block_rows, A, C


def _hankel_factors(records: tuple[Record, ...], block_rows: Sequence[int], trend: Trend) -> Iterator[HankelFactor]:
    """Yield factors for all block rows for which the records are long enough, compressed once."""
    usable = [n_rows for n_rows in block_rows if records and has_enough_columns(records, n_rows)]
    if usable:
        factor = compress_hankel(detrend(records, trend), max(usable))
        yield from (factor.with_block_rows(n_rows) for n_rows in usable)


def fit_driven_model(
    A: Matrix, C: Matrix, records: tuple[Record, ...], settings: EstimationSettings
) -> DrivenModel | None:
    """Return the model with B and D from the records, None where it diverges."""
    model = undriven_modal_model(A, C, n_inputs=records[0].u.shape[1], linear=settings.linear)
    if settings.stable:
        # Mirror growing modes at the unit circle, λ/|λ|² = 1/λ̄, where they decay as fast.
        size = np.abs(model.poles)
        growing = size > 1.0
        model = replace(model, poles=np.where(growing, model.poles / np.where(growing, size, 1.0) ** 2, model.poles))
    if diverges(model, settings):
        return None
    try:
        return fit_inputs(model, records, feedthrough=settings.feedthrough, trend=settings.trend, scale=settings.scale)
    except linalg.LinAlgError:  # regressors that overflow
        return None


def holdout_errors(
    driven: DrivenModel, fold: Fold, settings: EstimationSettings, noise_filter: Array, n_starts: int = 1
) -> tuple[Array, Array] | None:
    """Return squared errors on the held-out samples `(p,)`, with trends continued and starts fitted.

    They are scaled by N/(N − number of fitted states per output), as if nothing had been fitted to these samples. Beside
    them are the mean squared errors before and after the noise filter `(2,)`. None if they are not finite.
    """
    model = driven.model
    if diverges(model, settings, _MAX_LOOP_EXPONENT):
        return None
    errors, squares_before, squares_after = [], [], []
    for train, test, position, start in zip(fold.train, fold.test, fold.positions, driven.starts, strict=True):
        if not len(test):  # of a part between gaps of a few samples
            continue
        rest = Record(test.u, test.y - extrapolate_trends(start.trends, len(train), position, len(test)))
        cuts = np.linspace(0, len(rest), min(n_starts, max(1, len(rest) // (4 * max(model.order, 1)))) + 1).astype(int)
        runs = []
        for first, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            run = rest.part(slice(first, end))
            begin, squares = fit_initial_condition(model, run, trend="none", scale=settings.scale)
            errors.append(squares)
            runs.append((run.y - simulate_record(model, run, begin)) / settings.scale)
        residuals = np.concatenate(runs)
        white = apply_filter(residuals, noise_filter[: max(1, len(rest) // 2)])
        squares_before.append((residuals**2).mean(axis=1))
        squares_after.append((white**2).mean(axis=1))
    n = n_samples(fold.test)
    freedom = n - model.order * len(errors) / model.n_outputs
    factor = n / freedom if freedom > 0.0 else np.inf
    total = np.sum(errors, axis=0) * factor
    means = factor * np.array([np.concatenate(squares_before).mean(), np.concatenate(squares_after).mean()])
    return (total, means) if np.all(np.isfinite(total)) and np.all(np.isfinite(means)) else None


def extrapolate_trends(trends: Array, length: int, position: int, n_after: int) -> Array:
    """Continue trends `(p, 0 to 2)` of a record to n samples from a position on, `(n_after, p)`."""
    ramp = (position + np.arange(n_after)) / max(length - 1, 1)
    return np.stack([np.ones(n_after), ramp], axis=1)[:, : trends.shape[1]] @ trends.T


def refine_model(
    driven: DrivenModel,
    records: tuple[Record, ...],
    settings: EstimationSettings,
    *,
    tolerance: float = REFINEMENT_TOLERANCE,
) -> DrivenModel | None:
    """Refine with outputs in units of their errors; None where a mode then diverges, or grows although it must not."""
    n = n_samples(records)
    if is_noise_free(driven, n, settings.scale):  # the error is rounding of compressed records
        return None
    scale = np.maximum(np.sqrt(driven.errors / n), 1e-12 * settings.scale)
    refined = refine_output_error(
        driven,
        records,
        n_direct=settings.n_direct,
        trend=settings.trend,
        scale=scale,
        tolerance=tolerance,
    )
    if refined is None or diverges(refined.model, settings) or (settings.stable and not refined.model.is_stable):
        return None
    return refined


def diverges(model: ModalModel, settings: EstimationSettings, limit: float = _MAX_GROWTH_EXPONENT) -> bool:
    """Return whether a mode grows over the longest record by more than a limit, that of the range of measurements."""
    return bool(np.log(max(np.abs(model.poles).max(initial=0.0), 1e-300)) * settings.longest > limit)


# Choice of the order.


def select_order(candidates: Sequence[Candidate], fold: Fold, settings: EstimationSettings) -> int:
    """Choose an order by the candidates, then by refined ones of the orders around it.

    Errors of subspace models differ by chance more than those of refined ones, and may point several states too high:
    two orders above the first choice are refined, and lower ones until two in a row are worse.
    """
    n_train, n_test = n_samples(fold.train), n_samples(fold.test)

    def lowest_bic(group: Sequence[Candidate]) -> int:
        best = best_by_order(group, relative_scores(group, settings, n_test))
        orders = admissible_orders(best, n_train, n_test)
        return min(orders, key=lambda order: _bic(best[order][0], settings, n_train))

    def refined(order: int) -> Candidate:
        return [*refine_candidate(best[order][0], (fold,), settings, np.ones(1)), best[order][0]][0]

    best = best_by_order(candidates, relative_scores(candidates, settings, n_test))
    first = lowest_bic(candidates)
    pool = [refined(order) for order in [order for order in best if order >= first][: 1 + _N_ORDERS_ABOVE]]
    n_worse = 0
    for order in sorted((order for order in best if order < first), reverse=True):
        pool.append(refined(order))
        n_worse = n_worse + 1 if lowest_bic(pool) > order else 0
        if n_worse == _N_WORSE_ORDERS:
            break
    return lowest_bic(pool)


def relative_scores(candidates: Sequence[Candidate], settings: EstimationSettings, n_test: int) -> Array:
    """Return the test error of every candidate, each output in units of the smallest error of all candidates."""
    errors = np.array([candidate.errors for candidate in candidates])
    floor = n_test * (_ERROR_FLOOR * settings.scale) ** 2
    best = np.maximum(errors.min(axis=0), floor)
    return np.asarray(np.sqrt((np.maximum(errors, floor) / best).mean(axis=1)))


def advantage(challenger: Candidate, other: Candidate) -> tuple[float, float]:
    """Return by how much a candidate is better than another over all folds, and the standard error of that.

    The difference of a fold is the logarithm of the ratio of mean squared errors, before and after the noise filter.
    Errors within a fold have their model in common, so that the standard error is that of folds and not of samples;
    with fewer than three of them it is infinite.
    """
    if len(other.parts) < _FEWEST_FOLDS:
        return 0.0, np.inf
    floor = _ERROR_FLOOR**2
    differences = np.log((other.parts + floor) / (challenger.parts + floor)).sum(axis=1)
    return float(differences.mean()), float(differences.std(ddof=1)) / np.sqrt(len(differences))


def best_by_order(candidates: Sequence[Candidate], scores: Array) -> dict[int, tuple[Candidate, float]]:
    """Return the best candidate of every order, with its score."""
    best: dict[int, tuple[Candidate, float]] = {}
    for candidate, score in zip(candidates, scores.tolist(), strict=True):
        if candidate.order not in best or score < best[candidate.order][1]:
            best[candidate.order] = (candidate, score)
    return dict(sorted(best.items()))


def admissible_orders(best: dict[int, tuple[Candidate, float]], n_train: int, n_test: int) -> list[int]:
    """Return the orders with test errors that are not significantly larger than the smallest one, ascending.

    Parameters that explain nothing change the error on N test samples, relative to itself, by about
    √(count · N/N_train)/N by chance; the best of many models has been lucky, so that four of these are tolerated.
    Where the best model itself has another error on test samples than on training samples, the two parts of the record
    differ, as those of a nonlinear plant do, and the relative difference is tolerated as well.
    """
    lead_order, (leader, least) = min(best.items(), key=lambda item: item[1][1])
    model = leader.driven[0].model
    per_state, n = model.n_inputs + model.n_outputs, n_test * model.n_outputs
    train, test = leader.driven[0].errors / n_train, leader.errors / n_test
    nonzero = train > 0.0
    difference = abs(float(np.sqrt((test[nonzero] / train[nonzero]).mean())) - 1.0) if nonzero.any() else 0.0

    def limit(order: int) -> float:
        by_chance = _SELECTION_DEVIATIONS * np.sqrt(max(lead_order - order, 0) * per_state * _HOLDOUT_RATIO) / n
        return float((1.0 + max(TOLERATED, by_chance, difference)) * least)

    return sorted(order for order, (_, score) in best.items() if score <= limit(order))


def _bic(candidate: Candidate, settings: EstimationSettings, n_train: int) -> float:
    """Return −2 log likelihood of the training samples, each output with its own noise, plus log N per parameter."""
    model = candidate.driven[0].model
    errors = np.maximum(candidate.driven[0].errors, n_train * (_ERROR_FLOOR * settings.scale) ** 2)
    count = candidate.order * (model.n_inputs + model.n_outputs)
    return float(n_train * np.log(errors).sum() + count * np.log(n_train * model.n_outputs))
