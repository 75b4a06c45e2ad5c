"""Models of many orders, by several methods, each judged on samples that it has not seen."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from ltinet.arrays import Array
from ltinet.identification.hankel import Compressed, compressed
from ltinet.identification.linear_part import Linear, Trend, fitted_inputs, fitted_start
from ltinet.identification.modal_model import ModalModel, modes_of
from ltinet.identification.polishing import is_clean
from ltinet.identification.record import Record, n_samples
from ltinet.identification.refinement import refined
from ltinet.identification.subspace import Method, subspace
from ltinet.identification.trends import level
from ltinet.model.matrices import Matrix

_TESTED = 1.0 / 3.0  # of each record: its end
_GROWTH = 15.0  # exponent of what an unstable mode may grow by over a record: nobody measures more


@dataclass(frozen=True, eq=False)
class Setting:
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
    linear: Linear


@dataclass(frozen=True, eq=False)
class Halves:
    """The records without their ends, and their ends."""

    seen: tuple[Record, ...]
    unseen: tuple[Record, ...]


def halves(records: tuple[Record, ...]) -> Halves:
    """Records cut for a test on samples that were not seen."""
    cuts = [len(own) - int(_TESTED * len(own)) for own in records]
    seen = tuple(own.part(slice(0, cut)) for own, cut in zip(records, cuts, strict=True))
    unseen = tuple(own.part(slice(cut, len(own))) for own, cut in zip(records, cuts, strict=True))
    return Halves(seen, unseen)


def subspace_models(
    seen: tuple[Record, ...], block_rows: Sequence[int], methods: Sequence[Method], orders: Sequence[int], trend: Trend
) -> Iterator[tuple[int, Method, int, Matrix, Matrix]]:
    """Order, method, block rows, A and C; the records are compressed once, at the most block rows."""
    most: Compressed = compressed(level(seen, trend), max(block_rows))
    for own_rows in block_rows:
        data = most.narrowed(own_rows)
        for method in methods:
            found = subspace(data, method)
            for order in orders:
                if order <= found.largest_order:
                    A, C = found.model(order)
                    if np.all(np.isfinite(A)):
                        yield order, method, own_rows, A, C


def driven(A: Matrix, C: Matrix, records: tuple[Record, ...], setting: Setting) -> Linear | None:
    """The model with B and D from the records, None where it grows beyond all that was measured."""
    model = modes_of(A, C, n_inputs=records[0].u.shape[1], linear=setting.linear)
    model = mirrored(model) if setting.stable else model
    if grows(model, setting):
        return None
    try:
        return fitted_inputs(model, records, feedthrough=setting.feedthrough, trend=setting.trend, scale=setting.scale)
    except linalg.LinAlgError:  # what grows this much has no digits
        return None


def tested(model: Linear, parts: "Halves", setting: Setting) -> Array | None:
    """Squared errors on the ends of the records, where trends go on and starts are fitted; None if no numbers.

    They are those of samples that nothing was fitted to: every state of a start takes one away.
    """
    if grows(model.model, setting):
        return None
    found = []
    for seen, unseen, start in zip(parts.seen, parts.unseen, model.starts, strict=True):
        rest = Record(unseen.u, unseen.y - continued(start.trends, len(seen), len(unseen)))
        found.append(fitted_start(model.model, rest, trend="none", scale=setting.scale)[1])
    n = sum(len(own) for own in parts.unseen)
    left = n - model.model.order * len(parts.unseen) / model.model.n_outputs
    errors = np.sum(found, axis=0) * (n / left if left > 0.0 else np.inf)
    return errors if np.all(np.isfinite(errors)) else None


def continued(trends: Array, n_before: int, n_samples: int) -> Array:
    """Trends `(p, 0 to 2)` of a record of `n_before` samples over those after it, `(n_samples, p)`."""
    ramp = (n_before + np.arange(n_samples)) / max(n_before - 1, 1)
    return np.stack([np.ones(n_samples), ramp], axis=1)[:, : trends.shape[1]] @ trends.T


def candidates(
    parts: Halves,
    setting: Setting,
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
        linear = driven(A, C, parts.seen, setting)
        errors = None if linear is None else tested(linear, parts, setting)
        if linear is not None and errors is not None:
            found.append(Candidate(order, method, own_rows, source is not None, False, errors, linear))
    return found


def improved(candidate: Candidate, parts: Halves, setting: Setting) -> Candidate | None:
    """The candidate after refinement, None where that gave no model; whether it is better is for others to say."""
    found = refined_within(candidate.linear, parts.seen, setting)
    errors = None if found is None else tested(found, parts, setting)
    if found is None or errors is None:
        return None
    return replace(candidate, linear=found, errors=errors, is_refined=True)


def refined_within(linear: Linear, records: tuple[Record, ...], setting: Setting) -> Linear | None:
    """Refinement with outputs in units of their errors, refused where a mode then grows that must not."""
    n = n_samples(records)
    if is_clean(linear, n, setting.scale):  # what is left is rounding, which a compressed record cannot tell
        return None
    scale = np.maximum(np.sqrt(linear.errors / n), 1e-12 * setting.scale)
    found = refined(linear, records, feedthrough=setting.feedthrough, trend=setting.trend, scale=scale)
    if found is None or grows(found.model, setting):
        return None
    return None if setting.stable and not found.model.is_stable else found


def grows(model: ModalModel, setting: Setting) -> bool:
    """Whether a mode grows over a record beyond all that was measured."""
    return bool(np.log(max(np.abs(model.poles).max(initial=0.0), 1e-300)) * setting.longest > _GROWTH)


def mirrored(model: ModalModel) -> ModalModel:
    """Modes that grow mirrored at the unit circle, where they decay as fast."""
    size = np.abs(model.poles)
    outside = size > 1.0
    return replace(model, poles=np.where(outside, model.poles / np.where(outside, size, 1.0) ** 2, model.poles))
