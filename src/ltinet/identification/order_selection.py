"""Candidate models of many orders and methods, and the choice of an order by hold-out error and BIC.

Every candidate is fitted to the first two thirds of the records and tested on the rest. The order with the smallest
hold-out error is too high more often than not, since one more state costs little. Among all orders that are as good
there, within half a percent or the effect of chance, the Bayesian information criterion on the training samples
decides: a state that barely matters changes errors by less than half a percent, and its likelihood by far more than
chance does. The choice is made on whitened records, where errors are meaningful however strongly the noise is
correlated.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from ltinet._util.floating_point import Array
from ltinet.identification.linear_parameters import DrivenModel, Trend, fit_initial_condition, fit_inputs
from ltinet.identification.modal_model import ModalModel, undriven_modal_model
from ltinet.identification.output_error import REFINEMENT_TOLERANCE, is_noise_free, refine_output_error
from ltinet.identification.preprocessing import detrend, whiten
from ltinet.identification.records import Record, n_samples
from ltinet.identification.subspace import Method, compress_hankel, decompose_subspace, has_enough_columns
from ltinet.systems.matrices import Matrix

_HOLDOUT_SHARE = 1.0 / 3.0  # of each record: its end
_HOLDOUT_RATIO = _HOLDOUT_SHARE / (1.0 - _HOLDOUT_SHARE)  # test samples by training samples
_MAX_GROWTH_EXPONENT = 15.0  # log of the growth of a mode over a record, e^15 = 3e6: no measurement has that range
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

    feedthrough: bool
    trend: Trend
    linear: bool
    """True for a first-order hold."""
    scale: Array
    """Size of each output, `(p,)`."""
    stable: bool
    """True where growing modes are mirrored."""
    longest: int
    """Number of samples of the longest record, over which the growth of modes is limited."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """Model with its method, and its squared errors on the test samples, `(p,)`."""

    order: int
    method: Method
    block_rows: int
    is_whitened: bool
    """True where A and C come from whitened records."""
    is_refined: bool
    errors: Array
    driven: DrivenModel


@dataclass(frozen=True, eq=False)
class TrainTestSplit:
    """Beginnings of the records, to which models are fitted, and their ends, on which they are tested."""

    train: tuple[Record, ...]
    test: tuple[Record, ...]


def split_records(records: tuple[Record, ...]) -> TrainTestSplit:
    """Split each record into training and test samples."""
    cuts = [len(record) - int(_HOLDOUT_SHARE * len(record)) for record in records]
    train = tuple(record.part(slice(0, cut)) for record, cut in zip(records, cuts, strict=True))
    test = tuple(record.part(slice(cut, len(record))) for record, cut in zip(records, cuts, strict=True))
    return TrainTestSplit(train, test)


def whiten_split(split: TrainTestSplit, coefficients: Array) -> TrainTestSplit:
    """Return whitened records, without those of which a part is shorter than the filter."""
    parts = zip(split.train, split.test, strict=True)
    pairs = [pair for pair in parts if min(map(len, pair)) >= len(coefficients)]
    return TrainTestSplit(*(whiten(tuple(pair[side] for pair in pairs), coefficients) for side in (0, 1)))


# Candidates.


def generate_candidates(
    split: TrainTestSplit,
    settings: EstimationSettings,
    *,
    block_rows: Sequence[int],
    methods: Sequence[Method],
    orders: Sequence[int],
    whitened: tuple[Record, ...] | None = None,
) -> list[Candidate]:
    """Return candidates of all methods, numbers of block rows and orders; A and C from `whitened` where given."""
    candidates = []
    models = subspace_models(whitened or split.train, block_rows, methods, orders, settings.trend)
    for order, method, n_rows, A, C in models:
        driven = fit_driven_model(A, C, split.train, settings)
        errors = None if driven is None else holdout_errors(driven, split, settings)
        if driven is not None and errors is not None:
            candidates.append(Candidate(order, method, n_rows, whitened is not None, False, errors, driven))
    return candidates


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
    block_rows = [n_rows for n_rows in block_rows if records and has_enough_columns(records, n_rows)]
    if not block_rows:
        return
    factor = compress_hankel(detrend(records, trend), max(block_rows))
    for n_rows in block_rows:
        narrow_factor = factor.with_block_rows(n_rows)
        for method in methods:
            decomposition = decompose_subspace(narrow_factor, method)
            for order in orders:
                if order <= decomposition.largest_order:
                    A, C = decomposition.model(order)
                    if np.all(np.isfinite(A)):
                        yield order, method, n_rows, A, C


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


def holdout_errors(driven: DrivenModel, split: TrainTestSplit, settings: EstimationSettings) -> Array | None:
    """Return squared errors on the test samples, with trends continued and starts fitted; None if not finite.

    They are scaled by N/(N − number of fitted states per output), as if nothing had been fitted to the test samples.
    """
    model = driven.model
    if diverges(model, settings):
        return None
    errors = []
    for train, test, start in zip(split.train, split.test, driven.starts, strict=True):
        if not len(test):  # of a part between gaps of a few samples
            continue
        rest = Record(test.u, test.y - extrapolate_trends(start.trends, len(train), len(test)))
        errors.append(fit_initial_condition(model, rest, trend="none", scale=settings.scale)[1])
    n = n_samples(split.test)
    freedom = n - model.order * len(errors) / model.n_outputs
    total = np.sum(errors, axis=0) * (n / freedom if freedom > 0.0 else np.inf)
    return total if np.all(np.isfinite(total)) else None


def extrapolate_trends(trends: Array, n_before: int, n_after: int) -> Array:
    """Continue trends `(p, 0 to 2)` of a record of `n_before` samples over those after it, `(n_after, p)`."""
    ramp = (n_before + np.arange(n_after)) / max(n_before - 1, 1)
    return np.stack([np.ones(n_after), ramp], axis=1)[:, : trends.shape[1]] @ trends.T


def refine_candidate(candidate: Candidate, split: TrainTestSplit, settings: EstimationSettings) -> Candidate | None:
    """Return the candidate after refinement, better or not; None where refinement gave no model."""
    driven = refine_model(candidate.driven, split.train, settings)
    errors = None if driven is None else holdout_errors(driven, split, settings)
    if driven is None or errors is None:
        return None
    return replace(candidate, driven=driven, errors=errors, is_refined=True)


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
        feedthrough=settings.feedthrough,
        trend=settings.trend,
        scale=scale,
        tolerance=tolerance,
    )
    if refined is None or diverges(refined.model, settings) or (settings.stable and not refined.model.is_stable):
        return None
    return refined


def diverges(model: ModalModel, settings: EstimationSettings) -> bool:
    """Return whether a mode grows over the longest record by more than the range of any measurement."""
    return bool(np.log(max(np.abs(model.poles).max(initial=0.0), 1e-300)) * settings.longest > _MAX_GROWTH_EXPONENT)


# Choice of the order.


def select_order(candidates: Sequence[Candidate], split: TrainTestSplit, settings: EstimationSettings) -> int:
    """Choose an order by the candidates, then by refined ones of the orders around it.

    Errors of subspace models differ by chance more than those of refined ones, and may point several states too high:
    two orders above the first choice are refined, and lower ones until two in a row are worse.
    """
    n_train, n_test = n_samples(split.train), n_samples(split.test)

    def lowest_bic(group: Sequence[Candidate]) -> int:
        best = best_by_order(group, relative_scores(group, settings, n_test))
        orders = admissible_orders(best, n_train, n_test)
        return min(orders, key=lambda order: _bic(best[order][0], settings, n_train))

    def refined(order: int) -> Candidate:
        return refine_candidate(best[order][0], split, settings) or best[order][0]

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
    model = leader.driven.model
    per_state, n = model.n_inputs + model.n_outputs, n_test * model.n_outputs
    train, test = leader.driven.errors / n_train, leader.errors / n_test
    nonzero = train > 0.0
    difference = abs(float(np.sqrt((test[nonzero] / train[nonzero]).mean())) - 1.0) if nonzero.any() else 0.0

    def limit(order: int) -> float:
        by_chance = _SELECTION_DEVIATIONS * np.sqrt(max(lead_order - order, 0) * per_state * _HOLDOUT_RATIO) / n
        return float((1.0 + max(TOLERATED, by_chance, difference)) * least)

    return sorted(order for order, (_, score) in best.items() if score <= limit(order))


def _bic(candidate: Candidate, settings: EstimationSettings, n_train: int) -> float:
    """Return −2 log likelihood of the training samples, each output with its own noise, plus log N per parameter."""
    model = candidate.driven.model
    errors = np.maximum(candidate.driven.errors, n_train * (_ERROR_FLOOR * settings.scale) ** 2)
    count = candidate.order * (model.n_inputs + model.n_outputs)
    return float(n_train * np.log(errors).sum() + count * np.log(n_train * model.n_outputs))
