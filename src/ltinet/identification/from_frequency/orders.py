"""How many states: the smallest order that predicts frequencies which it was not fitted to as well as the best does."""

from dataclasses import dataclass, field

import numpy as np

from ltinet.identification.from_frequency.data import ScaledResponse
from ltinet.identification.from_frequency.descent import Downhill, descended
from ltinet.identification.from_frequency.extension import extended
from ltinet.identification.from_frequency.linear import refitted
from ltinet.identification.from_frequency.parents import Parent, ladder
from ltinet.identification.from_frequency.realisation import Realisation
from ltinet.identification.from_frequency.truncation import truncations

# Error, relative to a channel's root mean square, below which smaller errors are no argument for a larger order: no
# instrument has so many digits, and the largest of ten thousand errors is then 1e-9 of the channel at most.
FLOOR = 1e-11
_AS_GOOD = 1.05  # of the best error of what was held out; two halves of the data differ by as much
_ADEQUATE = 1.10
_ROUNDS = 12  # downhill, for comparison of orders; the final model gets more
_EVERY = 3  # one of so many frequencies is held out


@dataclass(frozen=True)
class TriedOrder:
    """An order that was fitted to two thirds of the frequencies and tried on the others."""

    order: int
    error: float
    """Of the frequencies it was fitted to: root mean square relative to that of each channel, weighted if asked."""
    held_out: float
    """Of those held out."""


@dataclass
class _Search:
    """Orders tried so far, and what their models start from."""

    fitted: ScaledResponse
    held_out: ScaledResponse
    how: Downhill
    parents: list[Parent]
    models: dict[int, Realisation] = field(default_factory=dict)
    tried: dict[int, TriedOrder] = field(default_factory=dict)

    def worth(self, order: int) -> float:
        """Error of what was held out for one order, fitted when first asked for."""
        if order not in self.tried:
            model = self._fit(order)
            errors = (part.error(model.response(part.s)) for part in (self.fitted, self.held_out))
            self.models[order], self.tried[order] = model, TriedOrder(order, *errors)
        return max(self.tried[order].held_out, FLOOR)

    def _fit(self, order: int) -> Realisation:
        starts = [own.truncation.of_order(order) for own in self.parents if own.n_states >= order]
        larger = [tried for tried in self.models if tried > order]
        if larger:  # one that went downhill already, without the states that matter least
            starts.append(truncations(self.models[min(larger)], self.fitted.s).of_order(order))
        if not starts:  # fewer states than asked for say all there is
            starts = [max(self.parents, key=lambda own: own.n_states).truncation.of_order(order)]
        starts = [best_start(starts, self.fitted, feedthrough=self.how.feedthrough)]
        if order - 1 in self.models:
            starts.append(extended(self.models[order - 1], self.fitted, feedthrough=self.how.feedthrough))
        # Where two starts lead is not seen from them: both go downhill.
        ends = [descended(start, self.fitted, self.how) for start in starts]
        return min(ends, key=lambda model: self.fitted.error(model.response(self.fitted.s)))


def best_start(starts: list[Realisation], data: ScaledResponse, *, feedthrough: bool) -> Realisation:
    """Of several models the one that fits best with the best C and D for it."""
    ready = [refitted(start, data, feedthrough=feedthrough) for start in starts]
    return min(ready, key=lambda model: data.error(model.response(data.s)))


def choose_order(
    data: ScaledResponse, allowed: list[int], *, feedthrough: bool
) -> tuple[int, Realisation, tuple[TriedOrder, ...]]:
    """The smallest allowed order within 5 % of the best, its model of two thirds of the data, and all that were tried.

    Vector fits of growing size say where to look; from there orders grow until nothing is gained, and are then halved.
    """
    is_held_out = np.arange(len(data.s)) % _EVERY == 1
    fitted, held_out = data.part(~is_held_out), data.part(is_held_out)
    most = max(1, min(allowed[-1], (len(fitted.s) - 1) // 2))
    found = list(ladder(fitted, held_out, feedthrough=feedthrough, most=most, floor=FLOOR))
    best = min(found, key=lambda own: own.held_out)
    first = next(at for at, own in enumerate(found) if own.held_out <= _ADEQUATE * max(best.held_out, FLOOR))
    how = Downhill(feedthrough=feedthrough, rounds=_ROUNDS, floor=FLOOR)
    search = _Search(fitted, held_out, how, found[first:])
    _ascend(search, allowed)
    enough = _AS_GOOD * min(search.worth(order) for order in search.tried)
    low, high = (
        -1,
        min(at for at, order in enumerate(allowed) if order in search.tried and search.worth(order) <= enough),
    )
    while high - low > 1:
        middle = (low + high) // 2
        if search.worth(allowed[middle]) <= enough:
            high = middle
        else:
            low = middle
    order = allowed[high]
    return order, search.models[order], tuple(search.tried[key] for key in sorted(search.tried))


def _ascend(search: _Search, allowed: list[int]) -> None:
    """Try growing orders until nothing is gained: from the number of poles on, enough where residues have rank one."""
    start = min(search.parents[0].n_poles, search.parents[0].n_states)
    last = max(own.n_states for own in search.parents)
    at = next((at for at, order in enumerate(allowed) if order >= start), len(allowed) - 1)
    best, waiting = search.worth(allowed[at]), 0
    while at + 1 < len(allowed) and allowed[at] < last and waiting < 2 and best > FLOOR:
        wanted = min(allowed[at] + max(1, allowed[at] // 6), last)
        at = next((later for later in range(at + 1, len(allowed)) if allowed[later] >= wanted), len(allowed) - 1)
        worth = search.worth(allowed[at])
        waiting = 0 if worth < best / _AS_GOOD else waiting + 1
        best = min(best, worth)
