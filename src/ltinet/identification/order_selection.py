"""Candidate models of many orders and methods, and the choice of an order by hold-out error and BIC.

Every candidate is fitted to the first two thirds of the records and judged on the rest. The order with the smallest
hold-out error is too high more often than not, since one more state costs little. Among all orders that are as good
there, within half a percent or the effect of chance, the Bayesian information criterion on the fitted samples
decides. The choice is made on whitened records, where errors are meaningful however strongly the noise is correlated.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import linalg

from ltinet._util.floating_point import Array
from ltinet.identification.linear_parameters import DrivenModel, Trend, fit_initial_condition, fit_inputs
from ltinet.identification.modal_model import ModalModel, undriven_modal_model
from ltinet.identification.output_error import is_noise_free, refine_output_error
from ltinet.identification.preprocessing import detrend
from ltinet.identification.records import Record, n_samples
from ltinet.identification.subspace import HankelFactor, Method, compress_hankel, decompose_subspace
from ltinet.systems.matrices import Matrix

# MERGED ltinet.identification.order_selection
# Models of many orders, by several methods, each judged on samples that it has not seen.

_HOLDOUT_SHARE = 1.0 / 3.0  # of each record: its end
_MAX_GROWTH_EXPONENT = 15.0  # exponent of what an unstable mode may grow by over a record: nobody measures more


@dataclass(frozen=True, eq=False)
class EstimationSettings:
    """What all models of one identification have in common."""

    feedthrough: bool
    trend: Trend
    linear: bool
    scale: Array
    """The size of each output, `(p,)`."""
    stable: bool
    """Whether modes that grow are mirrored."""
    longest: int
    """Samples of the longest record: a mode must not grow beyond all that was measured over so many."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model, how it was found, and its squared errors on the samples that it was tested with, `(p,)`."""

    order: int
    method: Method
    block_rows: int
    is_whitened: bool
    """Whether A and C come from whitened records."""
    is_refined: bool
    errors: Array
    linear: DrivenModel


@dataclass(frozen=True, eq=False)
class TrainTestSplit:
    """The records without their ends, and their ends."""

    seen: tuple[Record, ...]
    unseen: tuple[Record, ...]


def split_records(records: tuple[Record, ...]) -> TrainTestSplit:
    """Records cut for a test on samples that were not seen."""
    cuts = [len(own) - int(_HOLDOUT_SHARE * len(own)) for own in records]
    seen = tuple(own.part(slice(0, cut)) for own, cut in zip(records, cuts, strict=True))
    unseen = tuple(own.part(slice(cut, len(own))) for own, cut in zip(records, cuts, strict=True))
    return TrainTestSplit(seen, unseen)


def subspace_models(
    seen: tuple[Record, ...], block_rows: Sequence[int], methods: Sequence[Method], orders: Sequence[int], trend: Trend
) -> Iterator[tuple[int, Method, int, Matrix, Matrix]]:
    """Order, method, block rows, A and C; the records are compressed once, at the most block rows."""
    most: HankelFactor = compress_hankel(detrend(seen, trend), max(block_rows))
    for own_rows in block_rows:
        data = most.narrowed(own_rows)
        for method in methods:
            found = decompose_subspace(data, method)
            for order in orders:
                if order <= found.largest_order:
                    A, C = found.model(order)
                    if np.all(np.isfinite(A)):
                        yield order, method, own_rows, A, C


def fit_driven_model(
    A: Matrix, C: Matrix, records: tuple[Record, ...], setting: EstimationSettings
) -> DrivenModel | None:
    """The model with B and D from the records, None where it grows beyond all that was measured."""
    model = undriven_modal_model(A, C, n_inputs=records[0].u.shape[1], linear=setting.linear)
    model = mirror_unstable_modes(model) if setting.stable else model
    if diverges(model, setting):
        return None
    try:
        return fit_inputs(model, records, feedthrough=setting.feedthrough, trend=setting.trend, scale=setting.scale)
    except linalg.LinAlgError:  # what grows this much has no digits
        return None


def holdout_errors(model: DrivenModel, parts: "TrainTestSplit", setting: EstimationSettings) -> Array | None:
    """Squared errors on the ends of the records, where trends go on and starts are fitted; None if no numbers.

    They are those of samples that nothing was fitted to: every state of a start takes one away.
    """
    if diverges(model.model, setting):
        return None
    found = []
    for seen, unseen, start in zip(parts.seen, parts.unseen, model.starts, strict=True):
        rest = Record(unseen.u, unseen.y - extrapolate_trends(start.trends, len(seen), len(unseen)))
        found.append(fit_initial_condition(model.model, rest, trend="none", scale=setting.scale)[1])
    n = sum(len(own) for own in parts.unseen)
    left = n - model.model.order * len(parts.unseen) / model.model.n_outputs
    errors = np.sum(found, axis=0) * (n / left if left > 0.0 else np.inf)
    return errors if np.all(np.isfinite(errors)) else None


def extrapolate_trends(trends: Array, n_before: int, n_samples: int) -> Array:
    """Trends `(p, 0 to 2)` of a record of `n_before` samples over those after it, `(n_samples, p)`."""
    ramp = (n_before + np.arange(n_samples)) / max(n_before - 1, 1)
    return np.stack([np.ones(n_samples), ramp], axis=1)[:, : trends.shape[1]] @ trends.T


def generate_candidates(
    parts: TrainTestSplit,
    setting: EstimationSettings,
    *,
    block_rows: Sequence[int],
    methods: Sequence[Method],
    orders: Sequence[int],
    source: tuple[Record, ...] | None = None,
) -> list[Candidate]:
    """Every method with every number of block rows and every order; A and C from `source` where it is given."""
    found = []
    models = subspace_models(source or parts.seen, block_rows, methods, orders, setting.trend)
    for order, method, own_rows, A, C in models:
        linear = fit_driven_model(A, C, parts.seen, setting)
        errors = None if linear is None else holdout_errors(linear, parts, setting)
        if linear is not None and errors is not None:
            found.append(Candidate(order, method, own_rows, source is not None, False, errors, linear))
    return found


def refine_candidate(candidate: Candidate, parts: TrainTestSplit, setting: EstimationSettings) -> Candidate | None:
    """The candidate after refinement, None where that gave no model; whether it is better is for others to say."""
    found = refine_model(candidate.linear, parts.seen, setting)
    errors = None if found is None else holdout_errors(found, parts, setting)
    if found is None or errors is None:
        return None
    return replace(candidate, linear=found, errors=errors, is_refined=True)


def refine_model(linear: DrivenModel, records: tuple[Record, ...], setting: EstimationSettings) -> DrivenModel | None:
    """Refinement with outputs in units of their errors, refused where a mode then grows that must not."""
    n = n_samples(records)
    if is_noise_free(linear, n, setting.scale):  # what is left is rounding, which a compressed record cannot tell
        return None
    scale = np.maximum(np.sqrt(linear.errors / n), 1e-12 * setting.scale)
    found = refine_output_error(linear, records, feedthrough=setting.feedthrough, trend=setting.trend, scale=scale)
    if found is None or diverges(found.model, setting):
        return None
    return None if setting.stable and not found.model.is_stable else found


def diverges(model: ModalModel, setting: EstimationSettings) -> bool:
    """Whether a mode grows over a record beyond all that was measured."""
    return bool(np.log(max(np.abs(model.poles).max(initial=0.0), 1e-300)) * setting.longest > _MAX_GROWTH_EXPONENT)


def mirror_unstable_modes(model: ModalModel) -> ModalModel:
    """Modes that grow mirrored at the unit circle, where they decay as fast."""
    size = np.abs(model.poles)
    outside = size > 1.0
    return replace(model, poles=np.where(outside, model.poles / np.where(outside, size, 1.0) ** 2, model.poles))


# MERGED ltinet.identification.order_selection
# Which order: of those that unseen samples do not speak against, the one that seen samples ask for.
#
# The best on unseen samples is too high more often than not, since one state more costs little. Of all that are as good
# there, within half a percent or what chance makes of it, the one counts whose states are worth their parameters on the
# samples that they were fitted to (BIC): a state that is just seen changes errors by less than half a percent, and its
# likelihood by far more than chance does. All of it is told on whitened records, where errors mean something however long
# the noise lasts.

TOLERATED = 0.005  # of the error on unseen samples
_FLOOR = 1e-9  # of the outputs: errors below are taken for equal, nothing is measured better
_SELECTION_DEVIATIONS = 4.0  # deviations by which the best of a few dozen models may seem better than it is
_HOLDOUT_RATIO = 0.5  # unseen samples by seen ones
_N_ORDERS_ABOVE = 2  # orders above the one that candidates point at which are looked at after refinement
_N_WORSE_ORDERS = 2  # orders below in a row that are worse: no smaller one will do


class SampleCounts(NamedTuple):
    """Samples that models were fitted to, and those that they had not seen."""

    seen: int
    unseen: int


def relative_scores(found: Sequence[Candidate], setting: EstimationSettings, n_unseen: int) -> Array:
    """The error of every candidate, outputs in units of the smallest error that any of them has there."""
    errors = np.array([own.errors for own in found])
    floor = n_unseen * (_FLOOR * setting.scale) ** 2
    best = np.maximum(errors.min(axis=0), floor)
    return np.asarray(np.sqrt((np.maximum(errors, floor) / best).mean(axis=1)))


def best_by_order(found: Sequence[Candidate], score: Array) -> dict[int, tuple[Candidate, float]]:
    """For every order its best candidate, with its score."""
    best: dict[int, tuple[Candidate, float]] = {}
    for own, value in zip(found, score.tolist(), strict=True):
        if own.order not in best or value < best[own.order][1]:
            best[own.order] = (own, value)
    return dict(sorted(best.items()))


def admissible_orders(best: dict[int, tuple[Candidate, float]], counts: SampleCounts) -> list[int]:
    """Orders whose errors on unseen samples are no argument against them, ascending.

    Parameters that explain nothing change the error on N unseen samples, relative to itself, by chance: by about
    √(count · N/N_seen)/N. The best of many models has been lucky: four of these are tolerated. And where the best model
    itself errs by another size on unseen samples than on seen ones, the two parts of the record are not alike, as those
    of a plant that is not linear are, and errors there are known to that share only.
    """
    first, (leader, least) = min(best.items(), key=lambda item: item[1][1])
    model = leader.linear.model
    per_state, n = model.n_inputs + model.n_outputs, counts.unseen * model.n_outputs
    unlike = abs(_holdout_ratio(leader, counts) - 1.0)

    def limit(order: int) -> float:
        by_chance = _SELECTION_DEVIATIONS * np.sqrt(max(first - order, 0) * per_state * _HOLDOUT_RATIO) / n
        return float((1.0 + max(TOLERATED, by_chance, unlike)) * least)

    return sorted(order for order, (_, value) in best.items() if value <= limit(order))


def _holdout_ratio(own: Candidate, counts: SampleCounts) -> float:
    """The size of errors on unseen samples by that on seen ones."""
    seen, unseen = own.linear.errors / counts.seen, own.errors / counts.unseen
    known = seen > 0.0
    return float(np.sqrt((unseen[known] / seen[known]).mean())) if known.any() else 1.0


def select_order(found: Sequence[Candidate], parts: TrainTestSplit, setting: EstimationSettings) -> int:
    """By candidates as they are, then by refined ones of the orders around: two above, and down to where all are worse.

    Errors of subspace models differ by chance more than refined ones do, and may point too high by several states.
    """
    counts = SampleCounts(n_samples(parts.seen), n_samples(parts.unseen))
    best = best_by_order(found, relative_scores(found, setting, counts.unseen))
    first = _lowest_bic(best, setting, counts)
    above = [order for order in best if order >= first][: 1 + _N_ORDERS_ABOVE]
    again = [_refined_or_same(best[order][0], parts, setting) for order in above]
    n_worse = 0
    for order in sorted((own for own in best if own < first), reverse=True):
        again.append(_refined_or_same(best[order][0], parts, setting))
        told = best_by_order(again, relative_scores(again, setting, counts.unseen))
        n_worse = n_worse + 1 if _lowest_bic(told, setting, counts) > order else 0
        if n_worse == _N_WORSE_ORDERS:
            break
    return _lowest_bic(best_by_order(again, relative_scores(again, setting, counts.unseen)), setting, counts)


def _lowest_bic(best: dict[int, tuple[Candidate, float]], setting: EstimationSettings, counts: SampleCounts) -> int:
    return min(admissible_orders(best, counts), key=lambda order: _bic(best[order][0], setting, counts.seen))


def _bic(own: Candidate, setting: EstimationSettings, n_seen: int) -> float:
    """−2 log likelihood of the seen samples, outputs with noise of their own, and log N for every parameter (BIC)."""
    model = own.linear.model
    errors = np.maximum(own.linear.errors, n_seen * (_FLOOR * setting.scale) ** 2)
    count = own.order * (model.n_inputs + model.n_outputs)
    return float(n_seen * np.log(errors).sum() + count * np.log(n_seen * model.n_outputs))


def _refined_or_same(own: Candidate, parts: TrainTestSplit, setting: EstimationSettings) -> Candidate:
    return refine_candidate(own, parts, setting) or own
