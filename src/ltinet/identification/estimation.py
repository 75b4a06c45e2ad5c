"""The whole way from records to a model: which method, how many block rows, which order, refined or not.

All of it is decided on the ends of the records, which the models compared have not seen; then the winner is computed
once more from all samples.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.errors import InvalidSignalError
from ltinet.identification.candidates import (
    Candidate,
    Halves,
    Setting,
    candidates,
    driven,
    halves,
    improved,
    refined_within,
    subspace_models,
)
from ltinet.identification.evidence import Tried
from ltinet.identification.hankel import compressed
from ltinet.identification.linear_part import Linear, Trend, all_outputs, fitted_inputs
from ltinet.identification.order_choice import chosen_order, scores
from ltinet.identification.polishing import polished
from ltinet.identification.record import Record, n_samples
from ltinet.identification.sequences import sequences
from ltinet.identification.subspace import METHODS, Method, subspace
from ltinet.identification.trends import level
from ltinet.identification.whitening import autoregression, whitened

_REFINED = 3  # candidates of the chosen order that are refined
_STARTS = 4  # models of all samples, beside the winner, that refinement begins with
_TRIED_ROWS = (10, 15, 25)
_MOST_ROWS = 1000  # of the Hankel matrix, where block rows are chosen here
_PART = 2**16  # samples of each record at most with which choices are made
_GROWS = (
    "every model that was found grows beyond all numbers within the record; is u what drove y, and in its order? try "
    "stable=True, another order or block_rows"
)
_ORDERS = (*range(1, 13), *range(14, 25, 2), 28, 32, 36, 40)


class GrowsError(InvalidSignalError):
    """No model of the records can be simulated over them."""


@dataclass(frozen=True, eq=False)
class Wishes:
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

    linear: Linear
    method: Method
    block_rows: int
    is_refined: bool
    from_whitened: bool
    tried: tuple[Tried, ...]
    singular_values: Array
    n_used_for_choice: int
    error: float
    """Of the winner on the ends of records that it had not seen, relative to the outputs."""


def estimate(records: tuple[Record, ...], wishes: Wishes, setting: Setting) -> Estimate:
    """The best model that the wishes allow.

    Raises:
        InvalidSignalError: the records are too short, or no model of them is one that can be simulated.
    """
    if wishes.decide_everything:
        return _as_wished(records, wishes, setting)
    some = tuple(own.part(slice(0, _PART)) for own in records)
    parts = halves(some)
    rows = rows_to_try(parts.seen, wishes)
    orders = wishes.orders or _ORDERS
    plain = candidates(parts, setting, block_rows=rows, methods=wishes.first_methods, orders=orders)
    if not plain:
        raise GrowsError(_GROWS)
    leader = plain[int(np.argmin(scores(plain, setting, n_samples(parts.unseen))))]
    coefficients = _filter(leader, parts)
    white = Halves(*(tuple(whitened(own, coefficients) for own in some) for some in (parts.seen, parts.unseen)))
    order = _order(plain, leader, white, rows, wishes, setting)
    others = tuple(own for own in wishes.methods if own not in wishes.first_methods)
    plain += candidates(parts, setting, block_rows=rows, methods=others, orders=(order,))
    pool = [own for own in plain if own.order == order]
    if "moesp" in wishes.methods:
        pool += candidates(parts, setting, block_rows=rows, methods=("moesp",), orders=(order,), source=white.seen)
    pool = pool or [min(plain, key=lambda own: abs(own.order - order))]
    best, pool = _winner(pool, parts, setting, refine=wishes.refine)
    source = tuple(whitened(own, coefficients) for own in some) if best.is_whitened else records
    closest = _from_all(best, source, records, setting, Starts(rows, wishes.methods))
    final = _polished(closest, records, setting) if wishes.refine else closest
    told = _told(plain, pool, setting, n_samples(parts.unseen))
    return Estimate(
        final,
        best.method,
        best.block_rows,
        best.is_refined or final is not closest,
        best.is_whitened,
        told,
        subspace(compressed(level(records, setting.trend), best.block_rows), best.method).values,
        n_samples(some),
        _relative(best, setting, n_samples(parts.unseen)),
    )


def _as_wished(records: tuple[Record, ...], wishes: Wishes, setting: Setting) -> Estimate:
    """The one model that is left by the wishes, from all samples."""
    rows_to_try(records, wishes)
    rows, (method,), (order,) = wishes.block_rows or 0, wishes.methods, wishes.orders or (0,)
    found = subspace(compressed(level(records, setting.trend), rows), method)
    if order > found.largest_order:
        raise InvalidSignalError(
            f"{rows} block rows tell up to {found.largest_order} states and order is {order}; give more block_rows"
        )
    # Outputs in the user's own units, as SLICOT takes them: whoever decides everything decides these too.
    own = replace(setting, scale=np.full_like(setting.scale, np.sqrt(np.mean(setting.scale**2))))
    linear = driven(*found.model(order), records, own)
    if linear is None:
        raise GrowsError(_GROWS)
    error = float(np.sqrt((linear.errors / (n_samples(records) * setting.scale**2)).mean()))
    return Estimate(linear, method, rows, False, False, (), found.values, n_samples(records), error)


def any_grows(records: tuple[Record, ...], block_rows: int, order: int, trend: Trend) -> bool:
    """Whether a subspace method, left alone, finds a model that is not stable."""
    return any(
        np.abs(np.linalg.eigvals(A)).max(initial=0.0) > 1.0
        for _, _, _, A, _ in subspace_models(records, (block_rows,), METHODS, (order,), trend)
    )


def rows_to_try(seen: tuple[Record, ...], wishes: Wishes) -> tuple[int, ...]:
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
        wanted = tuple(s for s in _TRIED_ROWS if s >= least and 2 * s * (m + p) <= _MOST_ROWS)
        wanted = tuple(s for s in wanted if fits(s)) or _most_that_fit(least, max(_TRIED_ROWS[0], least), fits)
    if not wanted or not all(fits(s) for s in wanted):
        s = wishes.block_rows or least
        needed = -(-3 * (2 * s * (m + p) + 2 * s - 1) // 2)
        raise InvalidSignalError(
            f"the longest record has {max(len(own) for own in seen) * 3 // 2} samples; {s} block rows of {m} inputs "
            f"and {p} outputs need about {needed}: record for longer, or use fewer channels"
            + (", fewer block_rows" if wishes.block_rows else "")
        )
    return wanted


def _most_that_fit(least: int, most: int, fits: Callable[[int], bool]) -> tuple[int, ...]:
    return next(((s,) for s in range(most, least - 1, -1) if fits(s)), ())


def _filter(leader: Candidate, parts: Halves) -> Array:
    """What whitens the residuals of the best candidate."""
    best, residuals = leader.linear, []
    for record, start in zip(parts.seen, best.starts, strict=True):
        own = sequences(best.model, record)
        residuals.append(own.outputs - all_outputs(own, best.model, start))
    return autoregression(residuals)


def _order(
    plain: Sequence[Candidate],
    leader: Candidate,
    white: Halves,
    rows: tuple[int, ...],
    wishes: Wishes,
    setting: Setting,
) -> int:
    orders = wishes.orders or _ORDERS
    if len(orders) == 1:
        return orders[0]
    # The best of records as they are has states for the noise as well: without it there are hardly more.
    most = max(min(orders), leader.order + leader.order // 2 + 2)
    few = tuple(own for own in orders if own <= most)
    found = candidates(white, setting, block_rows=rows, methods=wishes.first_methods, orders=few)
    if not found:
        return min(own.order for own in plain)
    return chosen_order(found, white, setting)


def _winner(
    pool: list[Candidate], parts: Halves, setting: Setting, *, refine: bool
) -> tuple[Candidate, list[Candidate]]:
    """The candidate with the smallest error on unseen samples, after some of them were refined."""
    n_unseen = n_samples(parts.unseen)
    if refine:
        leading = np.argsort(scores(pool, setting, n_unseen), kind="stable")[:_REFINED]
        for place in leading.tolist():
            better = improved(pool[place], parts, setting)
            pool = pool if better is None else [*pool, better]
    return pool[int(np.argmin(scores(pool, setting, n_unseen)))], pool


def _from_all(
    best: Candidate, source: tuple[Record, ...], records: tuple[Record, ...], setting: Setting, starts: "Starts"
) -> Linear:
    """The winner computed from all samples: by its method anew; refined from several starts, the closest of all."""
    found = _driven_by(source, (best.block_rows,), (best.method,), best.order, records, setting)
    if best.is_refined or not found:
        model = best.linear.model
        found.append(
            fitted_inputs(model, records, feedthrough=setting.feedthrough, trend=setting.trend, scale=setting.scale)
        )
    if best.is_refined and n_samples(records) <= _PART:
        others = _driven_by(records, starts.rows, starts.methods, best.order, records, setting)
        found += sorted(others, key=lambda own: _size(own, setting))[:_STARTS]
        better = [refined_within(own, records, setting) for own in found]
        found += [own for own in better if own is not None]
    return min(found, key=lambda own: _size(own, setting))


class Starts(NamedTuple):
    """By what refinement may begin."""

    rows: tuple[int, ...]
    methods: tuple[Method, ...]


def _driven_by(
    source: tuple[Record, ...],
    rows: tuple[int, ...],
    methods: tuple[Method, ...],
    order: int,
    records: tuple[Record, ...],
    setting: Setting,
) -> list[Linear]:
    found = subspace_models(source, rows, methods, (order,), setting.trend)
    models = (driven(A, C, records, setting) for _, _, _, A, C in found)
    return [own for own in models if own is not None]


def _polished(linear: Linear, records: tuple[Record, ...], setting: Setting) -> Linear:
    return polished(linear, records, feedthrough=setting.feedthrough, trend=setting.trend, scale=setting.scale)


def _size(linear: Linear, setting: Setting) -> float:
    return float((linear.errors / setting.scale**2).sum())


def _told(plain: Sequence[Candidate], pool: Sequence[Candidate], setting: Setting, n_unseen: int) -> tuple[Tried, ...]:
    lines = []
    for own in (*plain, *(c for c in pool if c.is_whitened or c.is_refined)):
        error = _relative(own, setting, n_unseen)
        lines.append(Tried(own.order, own.method, own.block_rows, own.is_refined, own.is_whitened, error))
    return tuple(lines)


def _relative(own: Candidate, setting: Setting, n_unseen: int) -> float:
    return float(np.sqrt((own.errors / (n_unseen * setting.scale**2)).mean()))
