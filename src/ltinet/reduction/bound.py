"""The bound of a Galerkin model over all frequencies, and in the mean, from residuals at places that suffice.

A symmetric system has two bounds, f = ‖R_c‖‖R_b‖ in the norm of (−A)⁻¹ and g/|ω| with g = ‖R_c‖‖R_b‖ in that of E⁻¹.
The lesser of both is no rational function. With x = ω/ω₁ and any ε the functions f √(1 + ε²)/|1 + iεx| and
g √(1 + ε²)/(ω₁ |1 + iεx|) are: the first is at least f below ω₁, the second at least g/|ω| above it.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.reduction.pencil import Pencil
from ltinet.reduction.projection import Projection
from ltinet.reduction.residual import Residual
from ltinet.reduction.supremum import Complex, Places, mean_square, phase, places_for
from ltinet.tolerances import EPS, sum_rounding

_CORNERS = 48  # frequencies ω₁ that are tried
_STEEPNESS = (0.3, 1.0)  # ε
_MEAN_CORNERS = 7


class Sides(NamedTuple):
    """Residuals of inputs and of outputs."""

    inputs: Residual
    outputs: Residual

    def product(self, X: Complex, Y: Complex, *, in_the_mean: bool = False) -> Array:
        """‖R_c‖ ‖R_b‖ at places; in the mean by Frobenius norms."""
        norm = _frobenius if in_the_mean else norms
        return norm(self.inputs.of(X)) * norm(self.outputs.of(Y))

    @property
    def at_infinity(self) -> float:
        """‖R_c‖ ‖R_b‖ there."""
        return _norm(self.inputs.first) * _norm(self.outputs.first)


@dataclass(frozen=True, eq=False)
class ResidualBound:
    """Bounds on ‖G(iω) − G_r(iω)‖ for a Galerkin model."""

    peak: float
    """Over all frequencies: the L2 gain of the error."""
    mean: float
    """The H2 norm of the error; infinite where it is not known."""
    omega: Array
    """Where the bound was evaluated."""
    values: Array
    """The bound there, by which shifts are chosen."""
    gain: float
    """Sup ‖G_r‖, or a little more."""


def bound_residuals(system: Pencil, found: Projection, slow: Sides, fast: Sides | None) -> ResidualBound:
    """Evaluate residuals at places that suffice for the poles of both: O(K N²) for K places, about 8 N of them."""
    poles = np.concatenate([found.inputs.poles, found.outputs.poles])
    places = places_for(poles)
    X, Y = found.inputs.at(places.omega), found.outputs.at(places.omega)
    rounding = places.supremum(_rounding(system, found, X, Y), 0.0)
    gain = places.supremum(norms(found.C @ X), 0.0)
    values = slow.product(X, Y)
    if fast is None:
        peak = places.supremum(values, slow.at_infinity)
        return ResidualBound(peak + rounding, math.inf, places.omega, values, gain)
    quick = fast.product(X, Y)
    peak, corner = _handed_over(poles, places, values, quick)
    peak = min(peak, places.supremum(values, slow.at_infinity))
    with np.errstate(divide="ignore"):
        values = np.minimum(values, quick / places.omega)
    mean = _mean(found, poles, slow=slow, fast=fast, corner=corner)
    wrong = math.sqrt(mean_square(poles, lambda omega: _rounding_squared(system, found, omega)))
    return ResidualBound(peak + rounding, mean + wrong, places.omega, values, gain)


def norms(values: Complex) -> Array:
    """The largest singular value of each of many matrices."""
    if values.shape[1] == 0 or values.shape[2] == 0:
        return np.zeros(len(values))
    across = values.conj().transpose(0, 2, 1)
    gram = across @ values if values.shape[2] <= values.shape[1] else values @ across
    return np.asarray(np.sqrt(np.maximum(np.linalg.eigvalsh(gram)[:, -1], 0.0)) * (1.0 + 64.0 * EPS))


def _frobenius(values: Complex) -> Array:
    return np.asarray(np.sqrt((values.real**2 + values.imag**2).sum(axis=(1, 2))))


def _norm(matrix: Array) -> float:
    return float(np.linalg.norm(matrix, 2)) if matrix.size else 0.0


def _handed_over(poles: Complex, places: Places, slow: Array, quick: Array) -> tuple[float, float]:
    """The least supremum of both functions over corners ω₁ and ε, and that ω₁."""
    omega, best = places.omega, (math.inf, 1.0)
    gaps = np.diff(phase(poles, omega), append=math.pi * len(poles))
    for corner in np.geomspace(np.min(np.abs(poles)), np.max(np.abs(poles)), _CORNERS):
        for steep in _STEEPNESS:
            weight = math.hypot(1.0, steep) / np.hypot(1.0, steep * omega / corner)
            largest = float(np.max(np.maximum(slow, quick / corner) * weight))
            more = np.diff(2.0 * np.arctan(steep * omega / corner), append=math.pi)
            widest = float(np.max(gaps + more))
            if widest < math.pi:
                best = min(best, (largest / math.cos(0.25 * widest), float(corner)))
    return best


def _mean(found: Projection, poles: Complex, *, slow: Sides, fast: Sides, corner: float) -> float:
    """The H2 norm of the lesser of both bounds, or a little more, for the best of some corners."""
    best = math.inf
    for own in corner * np.geomspace(0.03, 30.0, _MEAN_CORNERS):
        def squares(omega: Array, own: float = own) -> Array:
            X, Y = found.inputs.at(omega), found.outputs.at(omega)
            low = slow.product(X, Y, in_the_mean=True)
            high = fast.product(X, Y, in_the_mean=True) / own
            return np.asarray((low * low + high * high) * 2.0 / (1.0 + (omega / own) ** 2))

        best = min(best, math.sqrt(mean_square(np.append(poles, -own), squares)))
    return best


def _rounding_squared(system: Pencil, found: Projection, omega: Array) -> Array:
    own = _rounding(system, found, found.inputs.at(omega), found.outputs.at(omega))
    return np.asarray(own * own * min(found.B.shape[1], len(found.C)))


def _rounding(system: Pencil, found: Projection, X: Complex, Y: Complex) -> Array:
    """Bounds on (C V − c) y and z VᵀR_b at places: they are zero but for rounding.

    VᵀR_b = (I − VᵀE V)(b + A_r y) up to rounding in the projections, each a sum of n products.
    """
    eps, N = sum_rounding(system.n_states), len(found.A)
    wrong = np.eye(N) - found.E
    sizes = eps * math.sqrt(N) * np.linalg.norm(np.vstack([found.A, found.moved]), axis=0)
    in_inputs = norms(wrong @ (found.B + found.A @ X)) + norms(sizes[:, None] * X)
    in_inputs += eps * math.sqrt(N) * float(np.linalg.norm(system.B))
    return np.asarray(norms(Y) * in_inputs + eps * math.sqrt(N) * float(np.linalg.norm(system.C)) * norms(X))
