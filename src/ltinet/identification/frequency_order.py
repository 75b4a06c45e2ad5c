"""Choice of the order of a model of a frequency response by cross-validation.

One of three frequencies is held out. The chosen order is the smallest whose hold-out error is within 5 % of the best.
Vector fits of growing size give the range of orders to search; from there orders grow until nothing is gained, by
truncation of vector fits or by one more real pole where it helps most, and are then bisected.
"""

from dataclasses import dataclass, field

import numpy as np

from ltinet.identification.block_realization import BlockRealization, DescentOptions, descend, fit_output_matrices
from ltinet.identification.frequency_data import ScaledResponse
from ltinet.identification.vector_fitting import VectorFit, balance_over_band, growing_vector_fits

# Error, relative to a channel's root mean square, below which smaller errors do not justify a larger order: no
# instrument has so many digits, and the largest of ten thousand errors is then 1e-9 of the channel at most.
ROUNDING_FLOOR = 1e-11
_TOLERATED_RATIO = 1.05  # of hold-out errors; empirical: two halves of noisy data differ by as much
_ADEQUATE_RATIO = 1.10  # of the hold-out error of the smallest vector fit that is searched from, to the best
_ROUNDS = 12  # of descent where orders are compared; the final model gets more
_HOLDOUT_STEP = 3  # one of so many frequencies is held out
_PATIENCE = 2  # consecutive larger orders without improvement after which no larger one is fitted
_N_POLE_CANDIDATES = 12  # places of an additional real pole, logarithmically spaced over the range of the data


@dataclass(frozen=True)
class OrderCandidate:
    """Order that was fitted to two thirds of the frequencies and tested on the others."""

    order: int
    error: float
    """Root mean square error at the fitted frequencies, relative to that of each channel unless weighted."""
    held_out: float
    """Error at the held-out frequencies."""


def choose_order(data: ScaledResponse, allowed: list[int]) -> tuple[int, BlockRealization, tuple[OrderCandidate, ...]]:
    """Return the smallest allowed order within 5 % of the best, its model of two thirds of the data, and all candidates.

    Vector fits of growing size give the start of the search; orders grow until nothing is gained, and the smallest
    sufficient one is found by bisection.
    """
    is_held_out = np.arange(len(data.s)) % _HOLDOUT_STEP == 1
    fitted, held_out = data.part(~is_held_out), data.part(is_held_out)
    max_order = max(1, min(allowed[-1], (len(fitted.s) - 1) // 2))
    fits = list(growing_vector_fits(fitted, held_out, max_order=max_order, floor=ROUNDING_FLOOR))
    adequate = _ADEQUATE_RATIO * max(min(fit.held_out for fit in fits), ROUNDING_FLOOR)
    first = next(index for index, fit in enumerate(fits) if fit.held_out <= adequate)
    options = DescentOptions(rounds=_ROUNDS, floor=ROUNDING_FLOOR)
    search = _OrderSearch(fitted, held_out, options, fits[first:])
    search.grow(allowed)
    sufficient = _TOLERATED_RATIO * min(search.error(order) for order in search.candidates)
    fitted_indices = [index for index, order in enumerate(allowed) if order in search.candidates]
    low, high = -1, min(index for index in fitted_indices if search.error(allowed[index]) <= sufficient)
    while high - low > 1:
        middle = (low + high) // 2
        if search.error(allowed[middle]) <= sufficient:
            high = middle
        else:
            low = middle
    order = allowed[high]
    return order, search.models[order], tuple(search.candidates[key] for key in sorted(search.candidates))


@dataclass
class _OrderSearch:
    """Orders fitted so far, and the vector fits that their models start from."""

    fitted: ScaledResponse
    held_out: ScaledResponse
    options: DescentOptions
    vector_fits: list[VectorFit]
    models: dict[int, BlockRealization] = field(default_factory=dict)
    candidates: dict[int, OrderCandidate] = field(default_factory=dict)

    def grow(self, allowed: list[int]) -> None:
        """Fit growing orders until nothing is gained.

        The first one is the number of poles of the smallest vector fit, sufficient where residues have rank one.
        """
        start = min(self.vector_fits[0].n_poles, self.vector_fits[0].n_states)
        last = max(fit.n_states for fit in self.vector_fits)
        index = next((k for k, order in enumerate(allowed) if order >= start), len(allowed) - 1)
        best, waiting = self.error(allowed[index]), 0
        while index + 1 < len(allowed) and allowed[index] < last and waiting < _PATIENCE and best > ROUNDING_FLOOR:
            target = min(allowed[index] + max(1, allowed[index] // 6), last)
            later = range(index + 1, len(allowed))
            index = next((k for k in later if allowed[k] >= target), len(allowed) - 1)
            error = self.error(allowed[index])
            waiting = 0 if error < best / _TOLERATED_RATIO else waiting + 1
            best = min(best, error)

    def error(self, order: int) -> float:
        """Return the hold-out error of an order, fitted on the first call."""
        if order not in self.candidates:
            model = self._fit(order)
            errors = (part.error(model.response(part.s)) for part in (self.fitted, self.held_out))
            self.models[order], self.candidates[order] = model, OrderCandidate(order, *errors)
        return max(self.candidates[order].held_out, ROUNDING_FLOOR)

    def _fit(self, order: int) -> BlockRealization:
        data = self.fitted
        starts = [fit.truncation.of_order(order) for fit in self.vector_fits if fit.n_states >= order]
        larger = [other for other in self.models if other > order]
        if larger:  # a refined model, truncated
            starts.append(balance_over_band(self.models[min(larger)], data.s).of_order(order))
        if not starts:  # the data determine fewer states than this order
            starts = [max(self.vector_fits, key=lambda fit: fit.n_states).truncation.of_order(order)]
        starts = [best_start(starts, data)]
        if order - 1 in self.models:
            starts.append(add_real_pole(self.models[order - 1], data))
        # The errors of the two starts do not predict those after the descent, so that both descend.
        ends = [descend(start, data, self.options) for start in starts]
        return min(ends, key=lambda model: data.error(model.response(data.s)))


def best_start(starts: list[BlockRealization], data: ScaledResponse) -> BlockRealization:
    """Return the model with the smallest error, each with its best C and D."""
    models = [fit_output_matrices(start, data) for start in starts]
    return min(models, key=lambda model: data.error(model.response(data.s)))


def add_real_pole(model: BlockRealization, data: ScaledResponse) -> BlockRealization:
    """Add a real pole at the best of several places, with the best C and D; vector fits of noisy data miss such models.

    The input direction of the pole is that of the largest error at its corner frequency.
    """
    sizes = np.abs(data.s[data.s != 0.0])
    errors = data.weights * (data.H - model.response(data.s))
    candidates = []
    for size in np.geomspace(sizes.min(), sizes.max(), _N_POLE_CANDIDATES):
        nearest = int(np.argmin(np.abs(np.abs(data.s) - size)))
        direction = np.linalg.svd(np.vstack([errors[nearest].real, errors[nearest].imag]))[2][0]
        n = model.n_states
        A = np.zeros((n + 1, n + 1))
        A[:n, :n], A[n, n] = model.A, -size
        B = np.vstack([model.B, direction])
        C = np.column_stack([model.C, np.zeros(len(model.C))])
        candidates.append(BlockRealization(A, B, C, model.D, (*model.sizes, 1)))
    return best_start(candidates, data)
