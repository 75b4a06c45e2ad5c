"""Errors of a layer from errors in its equations: e ≤ G e + δ with G ≥ 0 strictly upper triangular.

The error of a layer z' = F z + … obeys ε' = F ε + d. Neuron i sees d and the errors of the neurons after it, and turns
them into its own by its gains: e_i ≤ Γ_i (|d_i| + Σ_{j>i} |F_ij| e_j), solved from the last neuron to the first. Cost
linear in the connections.

With a growth rate σ all errors are measured in units of exp(σt): the gains are then those of exp(−σt) h, which are
moderate for unstable neurons too. Each σ gives a bound, and the least of them is one.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.bounds.gains import first_order_gains, second_order_gains

# Above the fastest growth, in units of 1/horizon: a chain of k neurons of equal growth is bounded best at σ ≈ k.
_ABOVE_GROWTH = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0)


@dataclass(frozen=True, eq=False)
class LayerEquations:
    """z' = F z + G u of a layer, with (ξ of all neurons, then ξ̇ of second-order ones) = z + J u."""

    F: Array
    G: Array
    J: Array
    places: tuple[tuple[int, ...], ...]
    """For each neuron where its ξ and, if it is of second order, its ξ̇ stand in z."""

    @property
    def n_states(self) -> int:
        """Length of z."""
        return len(self.F)


def layer_places(is_second_order: NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    """Where ξ and ξ̇ of each neuron stand among the states of its layer."""
    rates = (len(is_second_order) + np.cumsum(is_second_order) - 1).tolist()
    return tuple((i, rates[i]) if second else (i,) for i, second in enumerate(is_second_order.tolist()))


@dataclass(frozen=True, eq=False)
class LayerGains:
    """The gains of all neurons of a layer, for some growth rates."""

    equations: LayerEquations
    growths: Array
    """σ, `(S,)`."""
    matrices: tuple[Array, ...]
    """Γ_i, `(S, 1, 1)` or `(S, 2, 2)`: from what is added to the rows of a neuron in z' to its ξ and ξ̇."""

    def propagate(self, source: Array) -> Array:
        """Bounds e `(S, …, n)` on the states from bounds `(S, …, n)` on what is added to z' = F z."""
        weights = np.abs(self.equations.F)
        errors = np.zeros_like(source)
        for own, gain in zip(reversed(self.equations.places), reversed(self.matrices), strict=True):
            rows = list(own)
            # The errors of this neuron are zero still: what it feeds to itself is in its gains.
            entering = source[..., rows] + errors @ weights[rows].T
            errors[..., rows] = entering @ gain.transpose(0, 2, 1)
        return errors

    def propagate_in_time(self, source: Array, *, cells: Array) -> Array:
        """Bounds e `(cells, n)` from bounds `(cells, n)` on what is added to z' in each cell of time.

        The least of the bounds for all growth rates; what comes later does not matter to a cell.
        """
        since, until = (np.multiply.outer(self.growths, edges - cells[0]) for edges in (cells[:-1], cells[1:]))
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.maximum.accumulate(source * np.exp(-since)[..., None], axis=1)
            errors = self.propagate(scaled) * np.exp(until)[..., None]
        return np.asarray(np.fmin.reduce(errors, axis=0))


def layer_gains(equations: LayerEquations, *, horizon: float) -> LayerGains:
    """Gains for the growth rates worth trying: 0, and for unstable layers at and above their fastest growth."""
    first = np.array([own[0] for own in equations.places if len(own) == 1], dtype=np.intp)
    values = np.array([own[0] for own in equations.places if len(own) == 2], dtype=np.intp)
    rates = np.array([own[1] for own in equations.places if len(own) == 2], dtype=np.intp)
    roots, k, c = equations.F[first, first], -equations.F[rates, values], -equations.F[rates, rates]
    growths = _growths(roots, c, k, horizon)
    sigma = growths[:, None]
    one = first_order_gains(np.ones_like(roots), sigma - roots, horizon=horizon).value
    two = second_order_gains(*np.broadcast_arrays(1.0, c + 2.0 * sigma, k + sigma * (c + sigma)), horizon=horizon)
    # ∫|exp(At)| exp(−σt) of A = [[0, 1], [−k, −c]], whose exponential has the columns (ḣ + c h, −k h) and (h, ḣ).
    rate = two.rate + sigma * two.value
    pairs = np.array([[rate + np.abs(c) * two.value, two.value], [np.abs(k) * two.value, rate]]).transpose(3, 2, 0, 1)
    singles, doubles = iter(one.T), iter(pairs)
    matrices = tuple(next(singles)[:, None, None] if len(own) == 1 else next(doubles) for own in equations.places)
    return LayerGains(equations, growths, matrices)


def paper_constant(gains: LayerGains) -> float:
    """The constant 1 + C + … + C^(n_l − 1) in the proof of Theorem 2, C the largest gain of a neuron's inputs."""
    places, weights = gains.equations.places, np.abs(gains.equations.F)
    largest = 0.0
    for own, gain in zip(places, gains.matrices, strict=True):
        entering = weights[list(own)].copy()
        entering[:, own] = 0.0
        largest = max(largest, float(np.max(gain[0] @ np.sum(entering, axis=1))))
    with np.errstate(over="ignore"):  # infinite where it exceeds all numbers; Python's own power would raise
        return float(np.sum(np.float64(largest) ** np.arange(len(places))))


def layer_constant(gains: LayerGains) -> float:
    """What takes the place of the paper's constant: the largest row sum of (I − G)⁻¹."""
    weights = np.abs(gains.equations.F)
    errors = np.zeros(gains.equations.n_states)
    for own, gain in zip(reversed(gains.equations.places), reversed(gains.matrices), strict=True):
        rows = list(own)
        errors[rows] = 1.0 + gain[0] @ (weights[rows] @ errors)
    return float(np.max(errors, initial=0.0))


def _growths(roots: Array, c: Array, k: Array, horizon: float) -> Array:
    slowest = -0.5 * c + np.sqrt(np.maximum(0.25 * c * c - k, 0.0))
    fastest = float(np.max(np.concatenate([roots, slowest]), initial=0.0))
    if fastest <= 0.0 or not 0.0 < horizon < np.inf:
        return np.zeros(1)
    return np.array([0.0, *(fastest + extra / horizon for extra in _ABOVE_GROWTH)])
