"""Which order: of those that unseen samples do not speak against, the one that seen samples ask for.

The best on unseen samples is too high more often than not, since one state more costs little. Of all that are as good
there, within half a percent or what chance makes of it, the one counts whose states are worth their parameters on the
samples that they were fitted to (BIC): a state that is just seen changes errors by less than half a percent, and its
likelihood by far more than chance does. All of it is told on whitened records, where errors mean something however long
the noise lasts.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.identification.candidates import Candidate, Halves, Setting, improved
from ltinet.identification.record import n_samples

TOLERATED = 0.005  # of the error on unseen samples
_FLOOR = 1e-9  # of the outputs: errors below are taken for equal, nothing is measured better
_LUCK = 4.0  # deviations by which the best of a few dozen models may seem better than it is
_SHARE = 0.5  # unseen samples by seen ones
_ABOVE = 2  # orders above the one that candidates point at which are looked at after refinement
_WORSE = 2  # orders below in a row that are worse: no smaller one will do


class Counts(NamedTuple):
    """Samples that models were fitted to, and those that they had not seen."""

    seen: int
    unseen: int


def scores(found: Sequence[Candidate], setting: Setting, n_unseen: int) -> Array:
    """The error of every candidate, outputs in units of the smallest error that any of them has there."""
    errors = np.array([own.errors for own in found])
    floor = n_unseen * (_FLOOR * setting.scale) ** 2
    best = np.maximum(errors.min(axis=0), floor)
    return np.asarray(np.sqrt((np.maximum(errors, floor) / best).mean(axis=1)))


def best_of_orders(found: Sequence[Candidate], score: Array) -> dict[int, tuple[Candidate, float]]:
    """For every order its best candidate, with its score."""
    best: dict[int, tuple[Candidate, float]] = {}
    for own, value in zip(found, score.tolist(), strict=True):
        if own.order not in best or value < best[own.order][1]:
            best[own.order] = (own, value)
    return dict(sorted(best.items()))


def good_orders(best: dict[int, tuple[Candidate, float]], counts: Counts) -> list[int]:
    """Orders whose errors on unseen samples are no argument against them, ascending.

    Parameters that explain nothing change the error on N unseen samples, relative to itself, by chance: by about
    √(count · N/N_seen)/N. The best of many models has been lucky: four of these are tolerated. And where the best model
    itself errs by another size on unseen samples than on seen ones, the two parts of the record are not alike, as those
    of a plant that is not linear are, and errors there are known to that share only.
    """
    first, (leader, least) = min(best.items(), key=lambda item: item[1][1])
    model = leader.linear.model
    per_state, n = model.n_inputs + model.n_outputs, counts.unseen * model.n_outputs
    unlike = abs(_unseen_by_seen(leader, counts) - 1.0)

    def limit(order: int) -> float:
        by_chance = _LUCK * np.sqrt(max(first - order, 0) * per_state * _SHARE) / n
        return float((1.0 + max(TOLERATED, by_chance, unlike)) * least)

    return sorted(order for order, (_, value) in best.items() if value <= limit(order))


def _unseen_by_seen(own: Candidate, counts: Counts) -> float:
    """The size of errors on unseen samples by that on seen ones."""
    seen, unseen = own.linear.errors / counts.seen, own.errors / counts.unseen
    known = seen > 0.0
    return float(np.sqrt((unseen[known] / seen[known]).mean())) if known.any() else 1.0


def chosen_order(found: Sequence[Candidate], parts: Halves, setting: Setting) -> int:
    """By candidates as they are, then by refined ones of the orders around: two above, and down to where all are worse.

    Errors of subspace models differ by chance more than refined ones do, and may point too high by several states.
    """
    counts = Counts(n_samples(parts.seen), n_samples(parts.unseen))
    best = best_of_orders(found, scores(found, setting, counts.unseen))
    first = _cheapest(best, setting, counts)
    above = [order for order in best if order >= first][: 1 + _ABOVE]
    again = [_refined(best[order][0], parts, setting) for order in above]
    n_worse = 0
    for order in sorted((own for own in best if own < first), reverse=True):
        again.append(_refined(best[order][0], parts, setting))
        told = best_of_orders(again, scores(again, setting, counts.unseen))
        n_worse = n_worse + 1 if _cheapest(told, setting, counts) > order else 0
        if n_worse == _WORSE:
            break
    return _cheapest(best_of_orders(again, scores(again, setting, counts.unseen)), setting, counts)


def _cheapest(best: dict[int, tuple[Candidate, float]], setting: Setting, counts: Counts) -> int:
    return min(good_orders(best, counts), key=lambda order: _price(best[order][0], setting, counts.seen))


def _price(own: Candidate, setting: Setting, n_seen: int) -> float:
    """−2 log likelihood of the seen samples, outputs with noise of their own, and log N for every parameter (BIC)."""
    model = own.linear.model
    errors = np.maximum(own.linear.errors, n_seen * (_FLOOR * setting.scale) ** 2)
    count = own.order * (model.n_inputs + model.n_outputs)
    return float(n_seen * np.log(errors).sum() + count * np.log(n_seen * model.n_outputs))


def _refined(own: Candidate, parts: Halves, setting: Setting) -> Candidate:
    return improved(own, parts, setting) or own
