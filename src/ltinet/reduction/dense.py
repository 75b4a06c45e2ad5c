"""Dense systems: balanced truncation or singular perturbation, with a bound on what was made in the end.

The bound is not 2Σσ, which holds for exact arithmetic only and is seldom sharp: it is the supremum over all frequencies
of the difference between the modes of both systems (`supremum`), and how far those are from the systems (`mismatch`).
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ltinet.arrays import Array
from ltinet.model.system_matrices import SystemMatrices
from ltinet.reduction.balancing import Balanced, DenseMethod, Matrices, balance_states, reduced_matrices
from ltinet.reduction.modal import Modes
from ltinet.reduction.separation import Part, Separated, separate
from ltinet.reduction.supremum import places_for


@dataclass(frozen=True, eq=False)
class DenseReduction:
    """A reduced system and what is known of its distance from the one that it stands for."""

    matrices: Matrices
    error: float
    """Sup ‖G − G_r‖ over all frequencies, rounding included; infinite where rounding cannot be bounded."""
    estimate: float
    """The same without what rounding did to the coordinates of the given system."""
    peak: float
    """Sup ‖G_r‖ of the stable part, or a little more."""
    order: int


@dataclass(frozen=True, eq=False)
class DenseReducer:
    """A system prepared for reductions to any order."""

    system: SystemMatrices
    separated: Separated
    balanced: Balanced

    @property
    def n_aside(self) -> int:
        """States that are kept whatever the order."""
        return self.separated.aside.n_states

    def reduced(self, order: int, *, method: DenseMethod) -> DenseReduction:
        """The reduction to an order, kept states included; to the numerical rank where that is less."""
        kept = min(order - self.n_aside, self.balanced.rank)
        small = reduced_matrices(self.balanced, kept, method=method)
        given = SystemMatrices(small.A, small.B, small.C)
        own = separate(given)
        if isinstance(own.stable, Modes) and own.aside.n_states == 0:  # its modes are the reduced system from now on
            own, small = Separated(own.stable, own.aside, 0.0), _in_units(own.stable, small.D)
        distance, peak = _difference(self.separated.stable, own, small.D)
        estimate = distance + own.distance
        return DenseReduction(
            matrices=self._whole(small),
            error=estimate + self.separated.distance,
            estimate=estimate if math.isfinite(estimate) else self.balanced.tail(kept),
            peak=peak,
            order=kept + self.n_aside,
        )

    def _whole(self, small: Matrices) -> Matrices:
        """With the states that were kept aside, and the feedthrough."""
        aside = self.separated.aside
        return Matrices(
            np.asarray(linalg.block_diag(aside.F, small.A)),
            np.vstack([aside.G, small.B]),
            np.hstack([aside.H, small.C]),
            self.system.D + small.D,
        )


def prepare(system: SystemMatrices) -> DenseReducer:
    """Separate and balance a system. O(n³)."""
    separated = separate(system)
    return DenseReducer(system, separated, balance_states(separated.stable))


def _in_units(modes: Modes, D: Array) -> Matrices:
    """The real blocks of modes, in units in which each is moved as much as it is seen; powers of two, so exactly."""
    F, G, H = modes.F, modes.G, modes.H
    heads = np.flatnonzero(modes.rates.imag >= 0.0)
    moved = np.sqrt(np.add.reduceat((G**2).sum(axis=1), heads)) if len(heads) else np.zeros(0)
    seen = np.sqrt(np.add.reduceat((H**2).sum(axis=0), heads)) if len(heads) else np.zeros(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((moved > 0.0) & (seen > 0.0), moved / seen, 1.0)
    units = np.ldexp(1.0, np.rint(0.5 * np.log2(ratio)).astype(np.intp))
    per_state = np.repeat(units, np.where(modes.rates.imag[heads] > 0.0, 2, 1))
    return Matrices(F, G / per_state[:, None], H * per_state, D)


def _difference(given: Part, own: Separated, D: Array) -> tuple[float, float]:
    """Sup ‖G − G_r‖ with rounding of its evaluation, and sup ‖G_r‖, over all frequencies."""
    if own.aside.n_states:
        return math.inf, math.inf
    places = places_for(np.concatenate([given.poles, own.stable.poles]))
    whole, rounding = given.response(places.omega)
    small, small_rounding = own.stable.response(places.omega)
    small = small + D
    at_infinity = float(np.linalg.norm(D, 2)) if D.size else 0.0
    gaps = _norms(whole - small) + rounding + small_rounding
    return places.supremum(gaps, at_infinity), places.supremum(_norms(small), at_infinity)


def _norms(values: Array) -> Array:
    if values.shape[1] == 0 or values.shape[2] == 0:
        return np.zeros(len(values))
    if min(values.shape[1:]) == 1:
        return np.asarray(np.linalg.norm(values, axis=(1, 2)))
    return np.asarray(np.linalg.norm(values, 2, axis=(1, 2)))
