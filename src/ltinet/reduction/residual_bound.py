"""Error bound of a Galerkin model over all frequencies, and in the H2 norm, from its residuals.

‖G − G_r‖ ≤ ‖R_c‖ ‖R_b‖ in the norm of the inverse of a definite matrix (theory page on reduction, Theorem 4). A
symmetric system has two such bounds, f = ‖R_c‖‖R_b‖ in the norm of (−A)⁻¹ and g/|ω| with g = ‖R_c‖‖R_b‖ in that of
E⁻¹. Their minimum is not a rational function. With x = ω/ω₁ and any ε the functions f √(1 + ε²)/|1 + iεx| and g √(1 +
ε²)/(ω₁ |1 + iεx|) are: the first is at least f below ω₁, the second at least g/|ω| above it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ltinet._util.floating_point import Array, Complex, summation_tolerance
from ltinet._util.frequency_supremum import (
    COARSE_SPACING,
    FrequencyGrid,
    frequency_grid,
    frobenius_norms,
    mean_square,
    pole_phase,
    spectral_norm,
    spectral_norms,
)
from ltinet.reduction.dissipative_pencil import DefiniteMatrix, Pencil
from ltinet.reduction.projection import DampedStates, Projection, ReducedStates, ResidualSpace

# Frequencies ω₁ and values of ε that are tried, and corners for the H2 norm, around a corner that is known and without
# one. Each of them gives a proven bound; more only make the least one a little smaller.
_N_CORNERS = 20
_STEEPNESS = (0.3, 1.0)
_N_H2_CORNERS, _N_UNKNOWN_CORNERS = 3, 8
States = ReducedStates | DampedStates


# Norms of residuals as functions of frequency with known poles.


@dataclass(frozen=True, eq=False)
class Residual:
    """Residual R(iω) = first + rest·y(iω) in coordinates with the Euclidean norm: (k × m) and (k × N)."""

    first: Array
    rest: Array
    off: float
    """Bound on the rounding error of its norm, at any frequency."""
    per_state: float
    """Norm of E V, the factor by which residuals of (iω − A_r) y = b count."""

    def norms(self, states: States, omega: Array) -> Array:
        """Return ‖R(iω)‖ for the states y."""
        return np.asarray(spectral_norms(states.times(self.rest, omega) + self.first) + self._rounding(states))

    def squares(self, states: States, omega: Array) -> Array:
        """Return ‖R(iω)‖² in the Frobenius norm."""
        return np.asarray((frobenius_norms(states.times(self.rest, omega) + self.first) + self._rounding(states)) ** 2)

    def _rounding(self, states: States) -> float:
        """Add the rounding of the evaluation to `off`: that of the sum, and of the states in it."""
        sizes = float(np.linalg.norm(self.rest, axis=0) @ states.largest) + float(np.linalg.norm(self.first))
        return self.off + summation_tolerance(len(states.A)) * sizes + self.per_state * states.unsolved

    @property
    def at_infinity(self) -> float:
        """‖R‖ at infinite frequency."""
        return spectral_norm(self.first) + self.off


class ResidualPair(NamedTuple):
    """Residuals of inputs and of outputs."""

    inputs: Residual
    outputs: Residual

    def product(self, projection: Projection, omega: Array) -> Array:
        """Return ‖R_c‖ ‖R_b‖ at frequencies."""
        return self.inputs.norms(projection.inputs, omega) * self.outputs.norms(projection.outputs, omega)

    def squares(self, projection: Projection, omega: Array) -> Array:
        """Return ‖R_c‖² ‖R_b‖² in Frobenius norms."""
        return self.inputs.squares(projection.inputs, omega) * self.outputs.squares(projection.outputs, omega)

    @property
    def at_infinity(self) -> float:
        """‖R_c‖ ‖R_b‖ at infinite frequency."""
        return self.inputs.at_infinity * self.outputs.at_infinity


def weighted_residuals(space: ResidualSpace, weight: DefiniteMatrix) -> ResidualPair:
    """Return the residuals in the norm of the inverse of a definite matrix."""
    root = weight.inverse_root(space.Q)
    scale = math.sqrt(weight.smallest)  # ‖x‖ in the norm of M⁻¹ is at most ‖x‖/√λ_min
    sides, size = (space.inputs, space.outputs), space.mass / scale
    return ResidualPair(*(Residual(root @ it.first, root @ it.rest, it.off / scale, size) for it in sides))


def euclidean_residuals(space: ResidualSpace) -> ResidualPair:
    """Return the residuals in the Euclidean norm, which needs no solve; used only to choose shifts."""
    return ResidualPair(*(Residual(side.first, side.rest, 0.0, 0.0) for side in (space.inputs, space.outputs)))


# Bounds of a Galerkin model from its residuals.


@dataclass(frozen=True, eq=False)
class ResidualBound:
    """Bounds on ‖G(iω) − G_r(iω)‖ for a Galerkin model."""

    peak: float
    """Bound over all frequencies: the L2 gain of the error."""
    omega: Array
    """Frequencies at which the bound was evaluated."""
    values: Array
    """Bound at these frequencies, by which shifts are chosen."""
    gain: float
    """Sup ‖G_r‖, or a little less."""
    corner: float
    """Frequency ω₁ at which the second bound takes over; NaN if there is one bound only."""


def bound_residuals(
    system: Pencil, projection: Projection, slow: ResidualPair, fast: ResidualPair | None
) -> ResidualBound:
    """Evaluate residuals on a grid for the poles of both: O(K N m) for K frequencies, about 4 N of them."""
    inputs, outputs = projection.inputs, projection.outputs
    poles = np.concatenate([inputs.poles, outputs.poles])
    grid = frequency_grid(poles, spacing=COARSE_SPACING)
    rounding = projection_rounding(system, projection, lambda states: float(np.linalg.norm(states.largest)))
    gain = float(np.max(spectral_norms(inputs.times(projection.C, grid.omega)), initial=0.0))
    values = slow.product(projection, grid.omega)
    peak = grid.supremum(values, slow.at_infinity)
    if fast is None:
        return ResidualBound(peak + rounding, grid.omega, values, gain, math.nan)
    products = fast.product(projection, grid.omega)
    lower, corner = _best_corner(poles, grid, values, products)
    with np.errstate(divide="ignore"):
        values = np.minimum(values, products / grid.omega)
    return ResidualBound(min(peak, lower) + rounding, grid.omega, values, gain, corner)


def h2_residual_bound(
    system: Pencil, projection: Projection, *, slow: ResidualPair, fast: ResidualPair, corner: float, sector: float
) -> float:
    """Bound the H2 norm of the error by the lesser of both bounds in the mean, for the best of some corners.

    The second bound is g `sector`/|ω|: 1 for a symmetric system, otherwise from `sector_bound`. If the bound over all
    frequencies has no corner, corners are tried between the slowest and the fastest pole.
    """
    if not math.isfinite(sector):
        return math.inf
    inputs, outputs = projection.inputs, projection.outputs
    poles, best = np.concatenate([inputs.poles, outputs.poles]), math.inf
    if math.isfinite(corner):
        corners = corner * np.geomspace(0.1, 10.0, _N_H2_CORNERS)
    else:
        corners = sector * np.geomspace(np.min(np.abs(poles)), np.max(np.abs(poles)), _N_UNKNOWN_CORNERS)
    for corner in corners:

        def squares(omega: Array, corner: float = corner) -> Array:
            both = slow.squares(projection, omega) + fast.squares(projection, omega) * (sector / corner) ** 2
            return np.asarray(both * 2.0 / (1.0 + (omega / corner) ** 2))

        best = min(best, math.sqrt(mean_square(np.append(poles, -corner), squares)))
    return best + projection_rounding(system, projection, lambda states: states.h2_norm)


def _best_corner(poles: Complex, grid: FrequencyGrid, slow: Array, fast: Array) -> tuple[float, float]:
    """Return the least supremum of both functions over corners ω₁ and ε, and that ω₁."""
    omega, best = grid.omega, (math.inf, 1.0)
    gaps = np.diff(pole_phase(poles, omega), append=math.pi * len(poles))
    for corner in np.geomspace(np.min(np.abs(poles)), np.max(np.abs(poles)), _N_CORNERS):
        for steepness in _STEEPNESS:
            weight = math.hypot(1.0, steepness) / np.hypot(1.0, steepness * omega / corner)
            largest = float(np.max(np.maximum(slow, fast / corner) * weight))
            more = np.diff(2.0 * np.arctan(steepness * omega / corner), append=math.pi)
            widest = float(np.max(gaps + more))
            if widest < math.pi:
                best = min(best, (largest / math.cos(0.25 * widest), float(corner)))
    return best


def projection_rounding(system: Pencil, projection: Projection, size: Callable[[States], float]) -> float:
    """Bound z VᵀR_b and (C V − c) y, which are rounding only, for states z = c (s − A_r)⁻¹ and y of a size.

    VᵀR_b = (I − VᵀE V) b + (VᵀA V − VᵀE V A_r) y up to the rounding of the projections, each a sum of n products.
    """
    eps = summation_tolerance(system.n_states) * projection.length
    sizes = np.linalg.norm(projection.VAV - projection.E @ projection.A, axis=0)
    sizes += eps * (projection.EV_norms @ np.abs(projection.A) + projection.AV_norms)
    sizes += projection.length * projection.AV_rounding
    of_b = float(np.linalg.norm(projection.B - projection.E @ projection.B)) + eps * float(np.linalg.norm(system.B))
    of_b += eps * float(np.linalg.norm(projection.EV_norms @ np.abs(projection.B)))
    of_z, of_y = of_b + float(sizes @ projection.inputs.largest), eps * float(np.linalg.norm(system.C))
    return of_z * size(projection.outputs) + of_y * size(projection.inputs)
