"""Dense systems: balanced truncation or singular perturbation, with a bound on what was made in the end.

The bound is not 2Σσ, which holds for exact arithmetic only and is seldom sharp: it is the supremum over all frequencies
of the difference between the modes of both systems (`supremum`), and how far those are from the systems (`mismatch`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg

from ltinet.arrays import Array, Complex
from ltinet.model.system_matrices import SystemMatrices
from ltinet.reduction.balancing import Balanced, DenseMethod, Matrices, balance_states, reduced_matrices
from ltinet.reduction.mismatch import Distance
from ltinet.reduction.modal import Modes
from ltinet.reduction.norms import frobenius, norms
from ltinet.reduction.separation import Part, Separated, separate
from ltinet.reduction.supremum import mean_square, places_for


@dataclass(frozen=True, eq=False)
class DenseReduction:
    """A reduced system and what is known of its distance from the one that it stands for."""

    matrices: Matrices
    error: float
    """Sup ‖G − G_r‖ over all frequencies, rounding included; infinite where rounding cannot be bounded."""
    estimate: float
    """The same without what rounding did to the coordinates of the given system."""
    mean: Callable[[], float]
    """The H2 norm of G − G_r, rounding included, when it is asked for; infinite where it is not known."""
    peak: float
    """Sup ‖G_r‖ of the stable part, or a little less."""
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
            small = _in_units(own.stable, small.D)
            own = Separated(own.stable, own.aside, Distance(0.0, 0.0))
        found = difference(self.separated.stable, own, small.D)
        estimate = found.error + own.distance.peak
        is_known = self.n_aside == 0 or self.separated.distance.mean == 0.0
        return DenseReduction(
            matrices=self._whole(small),
            error=estimate + self.separated.distance.peak,
            estimate=estimate if math.isfinite(estimate) else self.balanced.tail(kept),
            mean=lambda: found.mean() + own.distance.mean + self.separated.distance.mean if is_known else math.inf,
            peak=found.peak,
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


class Difference(NamedTuple):
    """Sup ‖G − G_r‖ and the H2 norm, with rounding of the evaluation, and sup ‖G_r‖."""

    error: float
    mean: Callable[[], float]
    peak: float


def difference(given: Part, own: Separated, D: Array) -> Difference:
    """Compare a stable part with its reduction over all frequencies."""
    if own.aside.n_states:
        return Difference(math.inf, lambda: math.inf, math.inf)
    poles = np.concatenate([given.poles, own.stable.poles])

    def gaps(omega: Array, norm: Callable[[Complex], Array]) -> tuple[Array, Array]:
        whole, rounding = given.response(omega)
        small, small_rounding = own.stable.response(omega)
        return norm(whole - (small + D)) + rounding + small_rounding, norm(small + D)

    places = places_for(poles)
    errors, sizes = gaps(places.omega, norms)
    at_infinity = float(np.linalg.norm(D, 2)) if D.size else 0.0

    def mean() -> float:
        return math.inf if D.any() else math.sqrt(mean_square(poles, lambda omega: gaps(omega, frobenius)[0] ** 2))

    return Difference(places.supremum(errors, at_infinity), mean, max(float(np.max(sizes, initial=0.0)), at_infinity))
