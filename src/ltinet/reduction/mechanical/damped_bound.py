"""The bound of a Galerkin model of a mechanical one with D = αM + βK, over all frequencies and in the mean.

G − G_r = R_c P⁻¹ R_b, P = s²M + sD + K. In the norm of M⁻¹ the gain of P⁻¹ is ρ = max 1/|k − ω² + iω(α + βk)| over all
stiffnesses k ≥ k₀; in that of K⁻¹ it is max k/|…|. Over all real k they are at most |1 + iβω|/(ω(α + βω²)) and
|iω + α|/(α + βω²), and for ω² ≤ k₀/4 at most 4/(3k₀) and 4/3. With x = ω² ≥ k₀/4 there is α + βx ≥ α' + β'x for α' =
α + βk₀/8 and β' = β/2, and √5 ω ≥ |iω + √k₀|, so that these rational functions are above them everywhere:

    γ √5 |1 + iβω| / (|iω + √k₀| (α' + β'ω²)),     γ |iω + α + √k₀| / (α' + β'ω²),

with γ = max(1, (4/3)(α + βk₀/4)/√k₀).
"""

import math
from dataclasses import dataclass

import numpy as np

from ltinet.arrays import Array, Complex
from ltinet.once import cached_property
from ltinet.reduction.bound import ResidualBound, Sides, projection_rounding
from ltinet.reduction.mechanical.damped_pencil import DampedPencil
from ltinet.reduction.norms import norms
from ltinet.reduction.projection import Projection, residual_space
from ltinet.reduction.residual import residuals
from ltinet.reduction.states import Rayleigh
from ltinet.reduction.supremum import mean_square, places_for

_SPACING = 1.6  # of places in phase: 1.15 of the largest value at most


@dataclass(frozen=True, eq=False)
class Majorant:
    """A rational function of ω that is nowhere below the gain of P⁻¹ in one of both norms."""

    damping: Rayleigh
    smallest: float
    """k₀."""
    is_in_masses: bool
    """In the norm of M⁻¹, or in that of K⁻¹."""

    @cached_property
    def _softer(self) -> Rayleigh:
        return Rayleigh(self.damping.alpha + self.damping.beta * self.smallest / 8.0, 0.5 * self.damping.beta)

    @cached_property
    def poles(self) -> Complex:
        """Real and negative."""
        alpha, beta = self._softer
        both = [-math.sqrt(alpha / beta)] * 2 if beta > 0.0 else []
        return np.array([*([-math.sqrt(self.smallest)] if self.is_in_masses else []), *both], dtype=np.complex128)

    def __call__(self, omega: Array) -> Array:
        """Its values."""
        (alpha, beta), (soft_alpha, soft_beta) = self.damping, self._softer
        root = math.sqrt(self.smallest)
        below = soft_alpha + soft_beta * omega**2
        gamma = max(1.0, 4.0 / 3.0 * (alpha + 0.25 * beta * self.smallest) / root)
        if self.is_in_masses:
            return np.asarray(gamma * math.sqrt(5.0) * np.hypot(1.0, beta * omega) / (np.hypot(omega, root) * below))
        return np.asarray(gamma * np.hypot(omega, alpha + root) / below)


@dataclass(frozen=True, eq=False)
class DampedNorms:
    """Residuals of a projection in both norms, each with its majorant."""

    model: DampedPencil
    projection: Projection
    ways: tuple[tuple[Sides, Majorant], ...]

    @classmethod
    def of(cls, model: DampedPencil, projection: Projection, V: Array, damping: Rayleigh) -> "DampedNorms":
        """Measure the residuals of a basis V."""
        space = residual_space(model.pencil, projection, V)
        ways = [(Sides(*residuals(space, model.mass)), Majorant(damping, model.smallest, is_in_masses=True))]
        if damping.beta > 0.0:  # without it the gain in the other norm grows with frequency
            stiff = Majorant(damping, model.smallest, is_in_masses=False)
            ways.append((Sides(*residuals(space, model.stiffness)), stiff))
        return cls(model, projection, tuple(ways))

    def bound(self) -> ResidualBound:
        """Over all frequencies, the lesser of both norms; both fall to zero at infinity."""
        found = self.projection
        poles = np.concatenate([found.inputs.poles, found.outputs.poles, *(own.poles for _, own in self.ways)])
        places = places_for(poles, spacing=_SPACING)
        products = [side.product(found, places.omega) * own(places.omega) for side, own in self.ways]
        peaks = [places.supremum(own, 0.0) for own in products]
        of_z, of_y = projection_rounding(self.model.pencil, found)
        sizes = [float(np.linalg.norm(own.largest)) for own in (found.outputs, found.inputs)]
        rounding = of_z * sizes[0] + of_y * sizes[1]
        beta = 0.0 if found.damping is None else found.damping.beta
        gains = found.inputs.times(found.C, places.omega) / (1.0 + 1j * beta * places.omega)[:, None, None]
        gain = float(np.max(norms(gains), initial=0.0))
        return ResidualBound(min(peaks) + rounding, places.omega, np.min(products, axis=0), gain, math.nan)

    def mean(self) -> float:
        """The H2 norm, by the better of both norms."""
        found, best = self.projection, math.inf
        for side, own in self.ways:

            def squares(omega: Array, side: Sides = side, own: Majorant = own) -> Array:
                return side.squares(found, omega) * own(omega) ** 2

            poles = np.concatenate([found.inputs.poles, found.outputs.poles, own.poles])
            best = min(best, math.sqrt(mean_square(poles, squares)))
        of_z, of_y = projection_rounding(self.model.pencil, found)
        return best + of_z * found.outputs.mean + of_y * found.inputs.mean
