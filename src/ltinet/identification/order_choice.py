"""Which order: the smallest whose errors on unseen samples are within half a percent of the best.

The best itself is too high more often than not, since one state more costs little. Both are told on whitened records,
where errors on unseen samples mean something however long the noise lasts.
"""

from collections.abc import Sequence

import numpy as np

from ltinet.arrays import Array
from ltinet.identification.candidates import Candidate, Halves, Setting, improved

TOLERATED = 0.005  # of the error on unseen samples
_FLOOR = 1e-9  # of the outputs: errors below are taken for equal, nothing is measured better
_SHARE = 0.5  # unseen samples by seen ones
_REFINED = 4  # orders up to the chosen one that are looked at again after refinement


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


def smallest_good(best: dict[int, tuple[Candidate, float]], n_unseen: int) -> int:
    """The smallest order within the tolerance, or within what chance gives an order with that many more parameters.

    Parameters that explain nothing change the error on N unseen samples, relative to itself, by chance: by about
    √(count · N/N_seen)/N, of which two are tolerated.
    """
    first, (leader, least) = min(best.items(), key=lambda item: item[1][1])
    model = leader.linear.model
    per_state, n = model.n_inputs + model.n_outputs, n_unseen * model.n_outputs

    def limit(order: int) -> float:
        by_chance = 2.0 * np.sqrt(max(first - order, 0) * per_state * _SHARE) / n
        return float((1.0 + max(TOLERATED, by_chance)) * least)

    return min(order for order, (_, value) in best.items() if value <= limit(order))


def chosen_order(found: Sequence[Candidate], parts: Halves, setting: Setting) -> int:
    """By candidates as they are, then among the orders just below by refined ones."""
    n_unseen = sum(len(own) for own in parts.unseen)
    best = best_of_orders(found, scores(found, setting, n_unseen))
    first = smallest_good(best, n_unseen)
    nearby = [order for order in best if first - _REFINED < order <= first]
    again = [improved(best[order][0], parts, setting) or best[order][0] for order in nearby]
    score = scores(again, setting, n_unseen)
    return smallest_good(best_of_orders(again, score), n_unseen)
