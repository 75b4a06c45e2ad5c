"""Choice of the order of a model of a frequency response by cross-validation.

One of three frequencies is held out. The chosen order is the smallest whose hold-out error is within 5 % of the best.
Vector fits of growing size give the range of orders to search; from there orders grow until nothing is gained, by
truncation of vector fits or by one more real pole where it helps most, and are then halved.
"""

from dataclasses import dataclass, field

import numpy as np

from ltinet.identification.block_realization import BlockRealization, fit_output_matrices
from ltinet.identification.frequency_data import ScaledResponse
from ltinet.identification.variable_projection import DescentOptions, descend
from ltinet.identification.vector_fitting import VectorFit, balance_over_band, growing_vector_fits

# MERGED ltinet.identification.frequency_order
# One state more: a real pole where it helps most, for a model that vector fits of noisy data do not lead to.

_N_POLE_CANDIDATES = 12  # evenly in the logarithm, over the range of the data; a descent goes on from the best


def add_real_pole(model: BlockRealization, data: ScaledResponse, *, feedthrough: bool) -> BlockRealization:
    """The model with a further real pole, at the best of some places, and the best C and D."""
    range_of = np.abs(data.s[data.s != 0.0])
    rest = data.weights * (data.H - model.response(data.s))
    candidates = []
    for size in np.geomspace(range_of.min(), range_of.max(), _N_POLE_CANDIDATES):
        nearest = int(np.argmin(np.abs(np.abs(data.s) - size)))
        # Its input is the one that the error is largest for, there.
        direction = np.linalg.svd(np.vstack([rest[nearest].real, rest[nearest].imag]))[2][0]
        n = model.n_states
        A = np.zeros((n + 1, n + 1))
        A[:n, :n], A[n, n] = model.A, -size
        B = np.vstack([model.B, direction])
        C = np.column_stack([model.C, np.zeros(len(model.C))])
        candidates.append(
            fit_output_matrices(BlockRealization(A, B, C, model.D, (*model.sizes, 1)), data, feedthrough=feedthrough)
        )
    return min(candidates, key=lambda own: data.error(own.response(data.s)))


# MERGED ltinet.identification.frequency_order
# How many states: the smallest order that predicts frequencies which it was not fitted to as well as the best does.

# Error, relative to a channel's root mean square, below which smaller errors are no argument for a larger order: no
# instrument has so many digits, and the largest of ten thousand errors is then 1e-9 of the channel at most.
ROUNDING_FLOOR = 1e-11
_AS_GOOD = 1.05  # of the best error of what was held out; two halves of the data differ by as much
_ADEQUATE = 1.10
_ROUNDS = 12  # downhill, for comparison of orders; the final model gets more
_EVERY = 3  # one of so many frequencies is held out


@dataclass(frozen=True)
class OrderCandidate:
    """An order that was fitted to two thirds of the frequencies and tried on the others."""

    order: int
    error: float
    """Of the frequencies it was fitted to: root mean square relative to that of each channel, weighted if asked."""
    held_out: float
    """Of those held out."""


@dataclass
class _OrderSearch:
    """Orders tried so far, and what their models start from."""

    fitted: ScaledResponse
    held_out: ScaledResponse
    how: DescentOptions
    parents: list[VectorFit]
    models: dict[int, BlockRealization] = field(default_factory=dict)
    tried: dict[int, OrderCandidate] = field(default_factory=dict)

    def worth(self, order: int) -> float:
        """Error of what was held out for one order, fitted when first asked for."""
        if order not in self.tried:
            model = self._fit(order)
            errors = (part.error(model.response(part.s)) for part in (self.fitted, self.held_out))
            self.models[order], self.tried[order] = model, OrderCandidate(order, *errors)
        return max(self.tried[order].held_out, ROUNDING_FLOOR)

    def _fit(self, order: int) -> BlockRealization:
        starts = [own.truncation.of_order(order) for own in self.parents if own.n_states >= order]
        larger = [tried for tried in self.models if tried > order]
        if larger:  # one that went downhill already, without the states that matter least
            starts.append(balance_over_band(self.models[min(larger)], self.fitted.s).of_order(order))
        if not starts:  # fewer states than asked for say all there is
            starts = [max(self.parents, key=lambda own: own.n_states).truncation.of_order(order)]
        starts = [best_start(starts, self.fitted, feedthrough=self.how.feedthrough)]
        if order - 1 in self.models:
            starts.append(add_real_pole(self.models[order - 1], self.fitted, feedthrough=self.how.feedthrough))
        # Where two starts lead is not seen from them: both go downhill.
        ends = [descend(start, self.fitted, self.how) for start in starts]
        return min(ends, key=lambda model: self.fitted.error(model.response(self.fitted.s)))


def best_start(starts: list[BlockRealization], data: ScaledResponse, *, feedthrough: bool) -> BlockRealization:
    """Of several models the one that fits best with the best C and D for it."""
    ready = [fit_output_matrices(start, data, feedthrough=feedthrough) for start in starts]
    return min(ready, key=lambda model: data.error(model.response(data.s)))


def choose_order(
    data: ScaledResponse, allowed: list[int], *, feedthrough: bool
) -> tuple[int, BlockRealization, tuple[OrderCandidate, ...]]:
    """The smallest allowed order within 5 % of the best, its model of two thirds of the data, and all that were tried.

    Vector fits of growing size say where to look; from there orders grow until nothing is gained, and are then halved.
    """
    is_held_out = np.arange(len(data.s)) % _EVERY == 1
    fitted, held_out = data.part(~is_held_out), data.part(is_held_out)
    most = max(1, min(allowed[-1], (len(fitted.s) - 1) // 2))
    found = list(growing_vector_fits(fitted, held_out, feedthrough=feedthrough, most=most, floor=ROUNDING_FLOOR))
    best = min(found, key=lambda own: own.held_out)
    first = next(at for at, own in enumerate(found) if own.held_out <= _ADEQUATE * max(best.held_out, ROUNDING_FLOOR))
    how = DescentOptions(feedthrough=feedthrough, rounds=_ROUNDS, floor=ROUNDING_FLOOR)
    search = _OrderSearch(fitted, held_out, how, found[first:])
    _search_upwards(search, allowed)
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


def _search_upwards(search: _OrderSearch, allowed: list[int]) -> None:
    """Try growing orders until nothing is gained: from the number of poles on, enough where residues have rank one."""
    start = min(search.parents[0].n_poles, search.parents[0].n_states)
    last = max(own.n_states for own in search.parents)
    at = next((at for at, order in enumerate(allowed) if order >= start), len(allowed) - 1)
    best, waiting = search.worth(allowed[at]), 0
    while at + 1 < len(allowed) and allowed[at] < last and waiting < 2 and best > ROUNDING_FLOOR:
        wanted = min(allowed[at] + max(1, allowed[at] // 6), last)
        at = next((later for later in range(at + 1, len(allowed)) if allowed[later] >= wanted), len(allowed) - 1)
        worth = search.worth(allowed[at])
        waiting = 0 if worth < best / _AS_GOOD else waiting + 1
        best = min(best, worth)
