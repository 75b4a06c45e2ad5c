"""Estimation of a model from records: options, choice of method, block rows and order, refinement.

All choices are made on the ends of the records, which the compared models have not been fitted to; the chosen model
is then computed once more from all samples. Where the options leave nothing to choose, the one specified model is
computed from all samples at once. Warnings on the result (instability, poor fits, coarse quantisation) are collected
here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ltinet._util.floating_point import Array
from ltinet._util.text import sanitize
from ltinet.errors import InvalidSignalError
from ltinet.identification.diagnostics import CandidateSummary
from ltinet.identification.linear_parameters import (
    DrivenModel,
    Trend,
    compute_regressors,
    fit_inputs,
    simulated_outputs,
)
from ltinet.identification.modal_model import ModalModel
from ltinet.identification.order_selection import (
    Candidate,
    EstimationSettings,
    TrainTestSplit,
    fit_driven_model,
    generate_candidates,
    refine_candidate,
    refine_model,
    relative_scores,
    select_order,
    split_records,
    subspace_models,
)
from ltinet.identification.output_error import polish
from ltinet.identification.preprocessing import detrend, estimate_delays, fit_autoregression, whiten
from ltinet.identification.records import Record, n_samples
from ltinet.identification.subspace import METHODS, Method, compress_hankel, decompose_subspace
from ltinet.signals.arrays import as_real_array

# MERGED ltinet.identification.estimation
# The whole way from records to a model: which method, how many block rows, which order, refined or not.
#
# All of it is decided on the ends of the records, which the models compared have not seen; then the winner is computed
# once more from all samples.

_N_REFINED = 3  # candidates of the chosen order that are refined
_N_STARTS = 4  # models of all samples, beside the winner, that refinement begins with
_CANDIDATE_BLOCK_ROWS = (10, 15, 25)
_MAX_HANKEL_ROWS = 1000  # of the Hankel matrix, where block rows are chosen here
_MAX_SELECTION_SAMPLES = 2**16  # samples of each record at most with which choices are made
_DIVERGENT_MESSAGE = (
    "every model that was found grows beyond all numbers within the record; is u what drove y, and in its order? try "
    "stable=True, another order or block_rows"
)
_CANDIDATE_ORDERS = (*range(1, 13), *range(14, 25, 2), 28, 32, 36, 40)


class DivergentModelError(InvalidSignalError):
    """No model of the records can be simulated over them."""


@dataclass(frozen=True, eq=False)
class EstimationOptions:
    """What the user decided; None where the records decide."""

    orders: tuple[int, ...] | None
    methods: tuple[Method, ...]
    block_rows: int | None
    refine: bool

    @property
    def first_methods(self) -> tuple[Method, ...]:
        """Those by which an order is chosen; the others are tried with this order."""
        is_given = self.orders is not None and len(self.orders) == 1
        return ("moesp",) if "moesp" in self.methods and not is_given else self.methods

    @property
    def decide_everything(self) -> bool:
        """Whether nothing is left to be decided on unseen samples."""
        return bool(self.block_rows and self.orders and len(self.orders) == len(self.methods) == 1 and not self.refine)


@dataclass(frozen=True, eq=False)
class Estimate:
    """A model of all records, what was tried on the way, and how it was chosen."""

    linear: DrivenModel
    method: Method
    block_rows: int
    is_refined: bool
    from_whitened: bool
    candidates: tuple[CandidateSummary, ...]
    singular_values: Array
    n_used_for_choice: int
    error: float
    """Of the winner on the ends of records that it had not seen, relative to the outputs."""


def estimate(
    records: tuple[Record, ...],
    wishes: EstimationOptions,
    setting: EstimationSettings,
    tell: Callable[[str], None] = lambda _: None,
) -> Estimate:
    """The best model that the wishes allow; `tell` hears of every step as it begins.

    Raises:
        InvalidSignalError: the records are too short, or no model of them is one that can be simulated.
    """
    if wishes.decide_everything:
        return _estimate_as_specified(records, wishes, setting)
    some = tuple(own.part(slice(0, _MAX_SELECTION_SAMPLES)) for own in records)
    parts = split_records(some)
    rows = candidate_block_rows(parts.seen, wishes)
    orders = wishes.orders or _CANDIDATE_ORDERS
    tell(f"models of {len(orders)} orders" if len(orders) > 1 else f"models of order {orders[0]}")
    plain = generate_candidates(parts, setting, block_rows=rows, methods=wishes.first_methods, orders=orders)
    if not plain:
        raise DivergentModelError(_DIVERGENT_MESSAGE)
    leader = plain[int(np.argmin(relative_scores(plain, setting, n_samples(parts.unseen))))]
    coefficients = _whitening_filter(leader, parts)
    white = TrainTestSplit(*(tuple(whiten(own, coefficients) for own in some) for some in (parts.seen, parts.unseen)))
    tell("the order")
    order = _select_order_whitened(plain, leader, white, rows, wishes, setting)
    tell(f"models of order {order}, refined" if wishes.refine else f"models of order {order}")
    others = tuple(own for own in wishes.methods if own not in wishes.first_methods)
    plain += generate_candidates(parts, setting, block_rows=rows, methods=others, orders=(order,))
    pool = [own for own in plain if own.order == order]
    if "moesp" in wishes.methods:
        pool += generate_candidates(
            parts, setting, block_rows=rows, methods=("moesp",), orders=(order,), source=white.seen
        )
    pool = pool or [min(plain, key=lambda own: abs(own.order - order))]
    best, pool = _select_best(pool, parts, setting, refine=wishes.refine)
    tell(f"order {order} from all samples")
    source = tuple(whiten(own, coefficients) for own in some) if best.is_whitened else records
    closest = _reestimate(best, source, records, setting, RefinementStarts(rows, wishes.methods))
    final = _polished(closest, records, setting) if wishes.refine else closest
    told = _summarize_candidates(plain, pool, setting, n_samples(parts.unseen))
    return Estimate(
        final,
        best.method,
        best.block_rows,
        best.is_refined or final is not closest,
        best.is_whitened,
        told,
        decompose_subspace(compress_hankel(detrend(records, setting.trend), best.block_rows), best.method).values,
        n_samples(some),
        _relative_error(best, setting, n_samples(parts.unseen)),
    )


def _estimate_as_specified(
    records: tuple[Record, ...], wishes: EstimationOptions, setting: EstimationSettings
) -> Estimate:
    """The one model that is left by the wishes, from all samples."""
    candidate_block_rows(records, wishes)
    rows, (method,), (order,) = wishes.block_rows or 0, wishes.methods, wishes.orders or (0,)
    found = decompose_subspace(compress_hankel(detrend(records, setting.trend), rows), method)
    if order > found.largest_order:
        raise InvalidSignalError(
            f"{rows} block rows tell up to {found.largest_order} states and order is {order}; give more block_rows"
        )
    # Outputs in the user's own units, as SLICOT takes them: whoever decides everything decides these too.
    own = replace(setting, scale=np.full_like(setting.scale, np.sqrt(np.mean(setting.scale**2))))
    linear = fit_driven_model(*found.model(order), records, own)
    if linear is None:
        raise DivergentModelError(_DIVERGENT_MESSAGE)
    error = float(np.sqrt((linear.errors / (n_samples(records) * setting.scale**2)).mean()))
    return Estimate(linear, method, rows, False, False, (), found.values, n_samples(records), error)


def finds_unstable_model(records: tuple[Record, ...], block_rows: int, order: int, trend: Trend) -> bool:
    """Whether a subspace method, left alone, finds a model that is not stable."""
    return any(
        np.abs(np.linalg.eigvals(A)).max(initial=0.0) > 1.0
        for _, _, _, A, _ in subspace_models(records, (block_rows,), METHODS, (order,), trend)
    )


def candidate_block_rows(seen: tuple[Record, ...], wishes: EstimationOptions) -> tuple[int, ...]:
    """How many block rows: as many as were asked for, or a few that the records are long enough for.

    Raises:
        InvalidSignalError: they are not long enough for any.
    """
    m, p = seen[0].u.shape[1], seen[0].y.shape[1]
    smallest_order = min(wishes.orders or (1,))
    least = max(2, -(-smallest_order // p) + 1)

    def fits(s: int) -> bool:
        columns = sum(max(0, len(own) - 2 * s + 1) for own in seen)
        return bool(columns >= 2 * s * (m + p))

    if wishes.block_rows is not None:
        wanted: tuple[int, ...] = (wishes.block_rows,)
    else:
        wanted = tuple(s for s in _CANDIDATE_BLOCK_ROWS if s >= least and 2 * s * (m + p) <= _MAX_HANKEL_ROWS)
        wanted = tuple(s for s in wanted if fits(s)) or _largest_feasible(
            least, max(_CANDIDATE_BLOCK_ROWS[0], least), fits
        )
    if not wanted or not all(fits(s) for s in wanted):
        s = wishes.block_rows or least
        needed = -(-3 * (2 * s * (m + p) + 2 * s - 1) // 2)
        raise InvalidSignalError(
            f"the longest record has {max(len(own) for own in seen) * 3 // 2} samples; {s} block rows of {m} inputs "
            f"and {p} outputs need about {needed}: record for longer, or use fewer channels"
            + (", fewer block_rows" if wishes.block_rows else "")
        )
    return wanted


def _largest_feasible(least: int, most: int, fits: Callable[[int], bool]) -> tuple[int, ...]:
    return next(((s,) for s in range(most, least - 1, -1) if fits(s)), ())


def _whitening_filter(leader: Candidate, parts: TrainTestSplit) -> Array:
    """What whitens the residuals of the best candidate."""
    best, residuals = leader.linear, []
    for record, start in zip(parts.seen, best.starts, strict=True):
        own = compute_regressors(best.model, record)
        residuals.append(own.outputs - simulated_outputs(own, best.model, start))
    return fit_autoregression(residuals)


def _select_order_whitened(
    plain: Sequence[Candidate],
    leader: Candidate,
    white: TrainTestSplit,
    rows: tuple[int, ...],
    wishes: EstimationOptions,
    setting: EstimationSettings,
) -> int:
    orders = wishes.orders or _CANDIDATE_ORDERS
    if len(orders) == 1:
        return orders[0]
    # The best of records as they are has states for the noise as well: without it there are hardly more.
    most = max(min(orders), leader.order + leader.order // 2 + 2)
    few = tuple(own for own in orders if own <= most)
    found = generate_candidates(white, setting, block_rows=rows, methods=wishes.first_methods, orders=few)
    if not found:
        return min(own.order for own in plain)
    return select_order(found, white, setting)


def _select_best(
    pool: list[Candidate], parts: TrainTestSplit, setting: EstimationSettings, *, refine: bool
) -> tuple[Candidate, list[Candidate]]:
    """The candidate with the smallest error on unseen samples, after some of them were refined."""
    n_unseen = n_samples(parts.unseen)
    if refine:
        leading = np.argsort(relative_scores(pool, setting, n_unseen), kind="stable")[:_N_REFINED]
        for place in leading.tolist():
            better = refine_candidate(pool[place], parts, setting)
            pool = pool if better is None else [*pool, better]
    return pool[int(np.argmin(relative_scores(pool, setting, n_unseen)))], pool


def _reestimate(
    best: Candidate,
    source: tuple[Record, ...],
    records: tuple[Record, ...],
    setting: EstimationSettings,
    starts: "RefinementStarts",
) -> DrivenModel:
    """The winner computed from all samples: by its method anew; refined from several starts, the closest of all."""
    found = _driven_models(source, (best.block_rows,), (best.method,), best.order, records, setting)
    if best.is_refined or not found:
        model = best.linear.model
        found.append(
            fit_inputs(model, records, feedthrough=setting.feedthrough, trend=setting.trend, scale=setting.scale)
        )
    if best.is_refined and n_samples(records) <= _MAX_SELECTION_SAMPLES:
        others = _driven_models(records, starts.rows, starts.methods, best.order, records, setting)
        found += sorted(others, key=lambda own: _total_error(own, setting))[:_N_STARTS]
        better = [refine_model(own, records, setting) for own in found]
        found += [own for own in better if own is not None]
    return min(found, key=lambda own: _total_error(own, setting))


class RefinementStarts(NamedTuple):
    """By what refinement may begin."""

    rows: tuple[int, ...]
    methods: tuple[Method, ...]


def _driven_models(
    source: tuple[Record, ...],
    rows: tuple[int, ...],
    methods: tuple[Method, ...],
    order: int,
    records: tuple[Record, ...],
    setting: EstimationSettings,
) -> list[DrivenModel]:
    found = subspace_models(source, rows, methods, (order,), setting.trend)
    models = (fit_driven_model(A, C, records, setting) for _, _, _, A, C in found)
    return [own for own in models if own is not None]


def _polished(linear: DrivenModel, records: tuple[Record, ...], setting: EstimationSettings) -> DrivenModel:
    return polish(linear, records, feedthrough=setting.feedthrough, trend=setting.trend, scale=setting.scale)


def _total_error(linear: DrivenModel, setting: EstimationSettings) -> float:
    return float((linear.errors / setting.scale**2).sum())


def _summarize_candidates(
    plain: Sequence[Candidate], pool: Sequence[Candidate], setting: EstimationSettings, n_unseen: int
) -> tuple[CandidateSummary, ...]:
    lines = []
    for own in (*plain, *(c for c in pool if c.is_whitened or c.is_refined)):
        error = _relative_error(own, setting, n_unseen)
        lines.append(CandidateSummary(own.order, own.method, own.block_rows, own.is_refined, own.is_whitened, error))
    return tuple(lines)


def _relative_error(own: Candidate, setting: EstimationSettings, n_unseen: int) -> float:
    return float(np.sqrt((own.errors / (n_unseen * setting.scale**2)).mean()))


# MERGED ltinet.identification.estimation
# What users ask of an identification, checked.

_MAX_DELAY = 18  # samples that are looked for


def validate_estimation_options(order: Any, method: Any, block_rows: Any, refine: Any) -> EstimationOptions:
    """Orders, methods and block rows as numbers."""
    if method not in ("auto", *METHODS):
        raise InvalidSignalError(f'method is {sanitize(repr(method))}; it must be "auto", "moesp", "n4sid" or "cva"')
    orders = None if order is None else _whole_numbers(order)
    if orders is not None and (not orders or orders[0] < 1):
        raise InvalidSignalError(f"order is {sanitize(repr(order))}; give a number of states from 1 on, or several")
    rows = () if block_rows is None else _whole_numbers(block_rows)
    if block_rows is not None and (len(rows) != 1 or np.ndim(block_rows) or rows[0] < 2):
        raise InvalidSignalError(f"block_rows is {sanitize(repr(block_rows))}; give a whole number from 2 on")
    methods = METHODS if method == "auto" else (method,)
    return EstimationOptions(orders, methods, rows[0] if rows else None, validate_flag(refine, "refine"))


def validate_flag(value: Any, name: str) -> bool:
    """True or False, and nothing that is only taken for one."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidSignalError(f"{name} is {sanitize(repr(value))}; it must be True or False")
    return bool(value)


def validate_choice(value: Any, name: str, words: tuple[Any, ...]) -> None:
    """Refuse what is none of the words."""
    if not any(type(value) is type(own) and value == own for own in words):
        told = [f'"{own}"' if isinstance(own, str) else str(own) for own in words]
        raise InvalidSignalError(f"{name} is {sanitize(repr(value))}; it must be {', '.join(told[:-1])} or {told[-1]}")


def _whole_numbers(values: Any) -> tuple[int, ...]:
    """Ascending, each once; nothing where they are no whole numbers."""
    try:
        array = np.atleast_1d(np.asarray(values))
    except (TypeError, ValueError):
        return ()
    return tuple(sorted({int(n) for n in array.tolist()})) if array.ndim == 1 and array.dtype.kind in "iu" else ()


def resolve_delays(delay: Any, records: tuple[Record, ...]) -> tuple[int, ...]:
    """Samples for every input, found in the records where that was asked for."""
    m = records[0].u.shape[1]
    if isinstance(delay, str) and delay == "auto":
        return estimate_delays(records, most=_MAX_DELAY)
    shortest = min(map(len, records))
    try:
        given = np.broadcast_to(np.asarray(delay), (m,)) if np.ndim(delay) == 0 else np.asarray(delay)
    except (TypeError, ValueError):  # lists of different lengths
        given = np.zeros(0)
    if given.shape != (m,) or given.dtype.kind not in "iu" or np.any(given < 0) or np.any(given >= shortest):
        raise InvalidSignalError(
            f'delay is {sanitize(repr(delay))}; give "auto", or whole samples, one or {m} of them, fewer than the '
            f"{shortest} of the shortest experiment"
        )
    return tuple(int(own) for own in given)


def validate_points(values: ArrayLike, name: str) -> Array:
    """Frequencies or times `(k,)`."""
    numbers = np.atleast_1d(as_real_array(values, name))
    if numbers.ndim != 1 or not np.all(numbers >= 0.0) or not np.all(np.isfinite(numbers)):
        raise InvalidSignalError(f"{name} is {sanitize(repr(values))}; give a list of finite numbers from 0 on")
    return numbers


# MERGED ltinet.identification.estimation
# What a person should know before trusting an identified model.

_POOR_FIT = 50.0  # %: a fit below is told
_LONGEST_GROWTH = 1e-9


def model_warnings(
    model: ModalModel, records: tuple[Record, ...], *, fits: Array, n_doubled: int, notes: tuple[str, ...]
) -> tuple[str, ...]:
    """Warnings about a model and the records that it was found in."""
    told = [note for note in notes if "outlier" in note]
    growing = np.abs(model.poles) > 1.0 + _LONGEST_GROWTH
    if growing.any():
        told.append(f"the model is unstable, |λ| up to {np.abs(model.poles).max():.6g} at samples; stable=True mirrors")
    if n_doubled:
        told.append(
            f"{n_doubled} negative real pole(s) at samples became pairs at half the sampling frequency: another order, "
            "or a shorter dt, may explain the records better"
        )
    poor = np.flatnonzero(fits < _POOR_FIT)
    if len(poor):
        told.append(f"output {poor[0] + 1} is explained by {fits[poor[0]]:.0f} % only")
    steps = [_n_levels(np.concatenate([own.y[:, j] for own in records])) for j in range(model.n_outputs)]
    coarse = [j for j, count in enumerate(steps) if count < 16]
    if coarse:
        told.append(f"output {coarse[0] + 1} has {steps[coarse[0]]} different values only: a coarse converter?")
    return tuple(told)


def subsample_note(found: Estimate, records: tuple[Record, ...]) -> tuple[str, ...]:
    """A note where choices were made with some of the samples only."""
    n = n_samples(records)
    if found.n_used_for_choice == n:
        return ()
    return (f"method, block rows, order and refinement were decided on {found.n_used_for_choice} of {n} samples",)


def _n_levels(values: Array) -> int:
    return len(np.unique(values[: 2**14]))
