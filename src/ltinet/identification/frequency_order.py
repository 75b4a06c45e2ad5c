"""Choice of the order of a model of a frequency response by cross-validation.

One of three frequencies is held out. The chosen order is the smallest whose hold-out error is within 5 % of the best.
Vector fits of growing size give the range of orders to search; from there orders grow until nothing is gained, by
truncation of vector fits and of refined models, and are then bisected.
"""

from dataclasses import dataclass, field

import numpy as np

from ltinet.identification.block_realization import BlockRealization, DescentOptions, descend, fit_output_matrices
from ltinet.identification.frequency_data import ScaledResponse
from ltinet.identification.vector_fitting import VectorFit, balance_over_band, growing_vector_fits

# Error, relative to a channel's root mean square, below which smaller errors do not justify a larger order: no
# instrument has so many digits, and the largest of ten thousand errors is then 1e-9 of the channel at most.
ROUNDING_FLOOR = 1e-11
# Ratio of errors that does not justify a larger order, an unstable pole, or a pole in place of an integrator. The error
# of K samples of noise has a relative deviation of 1/√(2K): 5 % is one deviation for 200 held-out values.
TOLERATED_RATIO = 1.05
_ADEQUATE_RATIO = 1.10  # hold-out error of the vector fit that the search begins with, to the best; speed only
_ROUNDS = 12  # of descent where orders are compared, which need errors to a few percent; the final model gets more
_HOLDOUT_STEP = 3  # one of so many frequencies is held out, as of samples in `order_selection`
_PATIENCE = 2  # consecutive larger orders without improvement after which no larger one is fitted


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
    sufficient = TOLERATED_RATIO * min(search.error(order) for order in search.candidates)
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
            waiting = 0 if error < best / TOLERATED_RATIO else waiting + 1
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
        return descend(best_start(starts, data), data, self.options)


def best_start(starts: list[BlockRealization], data: ScaledResponse) -> BlockRealization:
    """Return the model with the smallest error, each with its best C and D."""
    models = [fit_output_matrices(start, data) for start in starts]
    return min(models, key=lambda model: data.error(model.response(data.s)))
