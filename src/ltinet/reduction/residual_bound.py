"""Error bound of a Galerkin model over all frequencies, and in the H2 norm, from its residuals.

‖G − G_r‖ ≤ ‖R_c‖ ‖R_b‖ in the norm of the inverse of a definite matrix (theory page on reduction, Theorem 4). A
symmetric system has two such bounds, f = ‖R_c‖‖R_b‖ in the norm of (−A)⁻¹ and g/|ω| with g = ‖R_c‖‖R_b‖ in that of
E⁻¹. Their minimum is not a rational function. With x = ω/ω₁ and any ε the functions f √(1 + ε²)/|1 + iεx| and g √(1 +
ε²)/(ω₁ |1 + iεx|) are: the first is at least f below ω₁, the second at least g/|ω| above it.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ltinet._util.floating_point import Array, Complex, summation_tolerance
from ltinet.reduction.dissipative_pencil import DefiniteMatrix, Pencil
from ltinet.reduction.projection import Combination, DampedStates, Projection, ReducedStates, ResidualSpace
from ltinet.reduction.supremum import (
    FrequencyGrid,
    frequency_grid,
    frobenius_norms,
    mean_square,
    pole_phase,
    spectral_norm,
    spectral_norms,
)

# MERGED ltinet.reduction.residual_bound
# Norms of residuals as functions of frequency with known poles, in the norm of the inverse of a definite matrix.

_COLUMNS = 32  # that are solved for at a time, for memory
States = ReducedStates | DampedStates


@dataclass(frozen=True, eq=False)
class Residual:
    """R(iω) = first + rest·y(iω) in coordinates in which its norm is the Euclidean one: (k × m) and (k × N).

    `off` is what rounding may have taken from its norm, at any frequency.
    """

    first: Array
    rest: Array
    off: float
    per_state: float
    """The norm of E V, by which what is left of (iω − A_r) y = b counts."""

    def norms(self, states: States, omega: Array) -> Array:
        """‖R(iω)‖ for the states y."""
        return np.asarray(spectral_norms(states.times(self.rest, omega) + self.first) + self._off(states))

    def squares(self, states: States, omega: Array) -> Array:
        """‖R(iω)‖² in the Frobenius norm."""
        return np.asarray((frobenius_norms(states.times(self.rest, omega) + self.first) + self._off(states)) ** 2)

    def _off(self, states: States) -> float:
        """With what evaluation takes: rounding of the sum of all parts, and of the states in it."""
        sizes = float(np.linalg.norm(self.rest, axis=0) @ states.largest) + float(np.linalg.norm(self.first))
        return self.off + summation_tolerance(len(states.A)) * sizes + self.per_state * states.unsolved

    @property
    def at_infinity(self) -> float:
        """‖R‖ there."""
        return spectral_norm(self.first) + self.off


def weighted_residuals(space: ResidualSpace, weight: DefiniteMatrix) -> tuple[Residual, Residual]:
    """Those of inputs and of outputs.

    What is left of Q after the solves, ρ = Q − M Z, moves inner products by ‖ρ‖/λ_min at most: that much is added.
    """
    Q = space.Q
    inner, left, size_of_Z = np.empty((Q.shape[1], Q.shape[1])), 0.0, 0.0
    for begin in range(0, Q.shape[1], _COLUMNS):
        own = Q[:, begin : begin + _COLUMNS]
        Z = weight.solve(own)
        inner[:, begin : begin + _COLUMNS] = Q.T @ Z
        left = math.hypot(left, np.linalg.norm(own - weight.matrix @ Z))
        size_of_Z = math.hypot(size_of_Z, np.linalg.norm(Z))
    wrong = left / weight.smallest + summation_tolerance(len(Q)) * size_of_Z
    values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
    root = np.sqrt(np.maximum(values, 0.0) + wrong)[:, None] * vectors.T
    size = space.mass / math.sqrt(weight.smallest)
    return _weighted(space.inputs, root, weight, size), _weighted(space.outputs, root, weight, size)


def euclidean_residuals(space: ResidualSpace) -> tuple[Residual, Residual]:
    """The same in the Euclidean norm, without any solve: to choose shifts by."""
    inputs, outputs = space.inputs, space.outputs
    return Residual(inputs.first, inputs.rest, 0.0, 0.0), Residual(outputs.first, outputs.rest, 0.0, 0.0)


def _weighted(own: Combination, root: Array, weight: DefiniteMatrix, per_state: float) -> Residual:
    """‖x‖ in the norm of M⁻¹ is at most ‖x‖/√λ_min."""
    return Residual(root @ own.first, root @ own.rest, own.off / math.sqrt(weight.smallest), per_state)


# MERGED ltinet.reduction.residual_bound
# The bound of a Galerkin model over all frequencies, and in the mean, from residuals at places that suffice.
#
# A symmetric system has two bounds, f = ‖R_c‖‖R_b‖ in the norm of (−A)⁻¹ and g/|ω| with g = ‖R_c‖‖R_b‖ in that of E⁻¹.
# The lesser of both is no rational function. With x = ω/ω₁ and any ε the functions f √(1 + ε²)/|1 + iεx| and
# g √(1 + ε²)/(ω₁ |1 + iεx|) are: the first is at least f below ω₁, the second at least g/|ω| above it.

_CORNERS = 20  # frequencies ω₁ that are tried
_STEEPNESS = (0.3, 1.0)  # ε
_MEAN_CORNERS, _MORE_CORNERS = 3, 8
_SPACING = 1.6  # of places in phase: 1.15 of the largest value at most


class ResidualPair(NamedTuple):
    """Residuals of inputs and of outputs."""

    inputs: Residual
    outputs: Residual

    def product(self, found: Projection, omega: Array) -> Array:
        """‖R_c‖ ‖R_b‖ at places."""
        return self.inputs.norms(found.inputs, omega) * self.outputs.norms(found.outputs, omega)

    def squares(self, found: Projection, omega: Array) -> Array:
        """‖R_c‖² ‖R_b‖² in Frobenius norms."""
        return self.inputs.squares(found.inputs, omega) * self.outputs.squares(found.outputs, omega)

    @property
    def at_infinity(self) -> float:
        """‖R_c‖ ‖R_b‖ there."""
        return self.inputs.at_infinity * self.outputs.at_infinity


@dataclass(frozen=True, eq=False)
class ResidualBound:
    """Bounds on ‖G(iω) − G_r(iω)‖ for a Galerkin model."""

    peak: float
    """Over all frequencies: the L2 gain of the error."""
    omega: Array
    """Where the bound was evaluated."""
    values: Array
    """The bound there, by which shifts are chosen."""
    gain: float
    """Sup ‖G_r‖, or a little less."""
    corner: float
    """The frequency at which one bound hands over to the other."""


def bound_residuals(system: Pencil, found: Projection, slow: ResidualPair, fast: ResidualPair | None) -> ResidualBound:
    """Evaluate residuals at places that suffice for the poles of both: O(K N m) for K places, about 4 N of them."""
    poles = np.concatenate([found.inputs.poles, found.outputs.poles])
    places = frequency_grid(poles, spacing=_SPACING)
    of_z, of_y = projection_rounding(system, found)
    rounding = of_z * float(np.linalg.norm(found.outputs.largest)) + of_y * float(np.linalg.norm(found.inputs.largest))
    gain = float(np.max(spectral_norms(found.inputs.times(found.C, places.omega)), initial=0.0))
    values = slow.product(found, places.omega)
    peak = places.supremum(values, slow.at_infinity)
    if fast is None:
        return ResidualBound(peak + rounding, places.omega, values, gain, math.nan)
    quick = fast.product(found, places.omega)
    lower, corner = _best_corner(poles, places, values, quick)
    with np.errstate(divide="ignore"):
        values = np.minimum(values, quick / places.omega)
    return ResidualBound(min(peak, lower) + rounding, places.omega, values, gain, corner)


def h2_residual_bound(
    system: Pencil, found: Projection, *, slow: ResidualPair, fast: ResidualPair, corner: float, turn: float
) -> float:
    """A bound on the H2 norm of the error: the lesser of both bounds in the mean, for the best of some corners.

    The second is g `turn`/|ω|: 1 for a symmetric system, more for one that turns (`sector`). Without a corner from the
    bound over all frequencies they are looked for between the slowest and the fastest pole.
    """
    if not math.isfinite(turn):
        return math.inf
    poles, best = np.concatenate([found.inputs.poles, found.outputs.poles]), math.inf
    if math.isfinite(corner):
        corners = corner * np.geomspace(0.1, 10.0, _MEAN_CORNERS)
    else:
        corners = turn * np.geomspace(np.min(np.abs(poles)), np.max(np.abs(poles)), _MORE_CORNERS)
    for own in corners:

        def squares(omega: Array, own: float = own) -> Array:
            both = slow.squares(found, omega) + fast.squares(found, omega) * (turn / own) ** 2
            return np.asarray(both * 2.0 / (1.0 + (omega / own) ** 2))

        best = min(best, math.sqrt(mean_square(np.append(poles, -own), squares)))
    of_z, of_y = projection_rounding(system, found)
    return best + of_z * found.outputs.mean + of_y * found.inputs.mean


def _best_corner(poles: Complex, places: FrequencyGrid, slow: Array, quick: Array) -> tuple[float, float]:
    """The least supremum of both functions over corners ω₁ and ε, and that ω₁."""
    omega, best = places.omega, (math.inf, 1.0)
    gaps = np.diff(pole_phase(poles, omega), append=math.pi * len(poles))
    for corner in np.geomspace(np.min(np.abs(poles)), np.max(np.abs(poles)), _CORNERS):
        for steep in _STEEPNESS:
            weight = math.hypot(1.0, steep) / np.hypot(1.0, steep * omega / corner)
            largest = float(np.max(np.maximum(slow, quick / corner) * weight))
            more = np.diff(2.0 * np.arctan(steep * omega / corner), append=math.pi)
            widest = float(np.max(gaps + more))
            if widest < math.pi:
                best = min(best, (largest / math.cos(0.25 * widest), float(corner)))
    return best


def projection_rounding(system: Pencil, found: Projection) -> tuple[float, float]:
    """What z = c (s − A_r)⁻¹ and y are to be multiplied by for bounds on z VᵀR_b and (C V − c) y.

    Both are zero but for rounding: VᵀR_b = (I − VᵀE V) b + (VᵀA V − VᵀE V A_r) y up to that of the projections
    themselves, each a sum of n products.
    """
    eps = summation_tolerance(system.n_states) * found.length
    sizes = np.linalg.norm(found.projected - found.E @ found.A, axis=0)
    sizes += eps * (found.carried @ np.abs(found.A) + found.moved)
    left = float(np.linalg.norm(found.B - found.E @ found.B)) + eps * float(np.linalg.norm(system.B))
    left += eps * float(np.linalg.norm(found.carried @ np.abs(found.B)))
    return left + float(sizes @ found.inputs.largest), eps * float(np.linalg.norm(system.C))
