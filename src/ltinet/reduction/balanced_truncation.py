"""Balanced truncation and singular perturbation of dense systems (Moore 1981), with a bound on the final error.

The square-root method works with factors of the Gramians, never with the Gramians. The bound is not 2Σσ, which holds
in exact arithmetic only and is seldom sharp: it is the supremum over all frequencies of the difference between the
modes of both systems (`supremum`), plus the distance of those from the systems (`separation`). The smallest order
that meets a tolerance is found by bisection: no model of order r is nearer than σ_{r+1}, and balanced ones are not
farther than 2Σσ.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy import linalg

from ltinet._util.floating_point import EPS, Array, Complex
from ltinet.reduction.modal_form import Modes
from ltinet.reduction.separation import DistanceBound, SeparatedSystem, SubsystemForm, separate_stable
from ltinet.reduction.supremum import frequency_grid, frobenius_norms, mean_square, spectral_norms
from ltinet.systems.system_matrices import SystemMatrices

# MERGED ltinet.reduction.balanced_truncation
# Balanced coordinates of what decays: how much each state is moved and seen (Moore 1981), and all but a few left.

DenseMethod = Literal["truncation", "singular_perturbation"]


class StateSpaceMatrices(NamedTuple):
    """A, B, C and D."""

    A: Array
    B: Array
    C: Array
    D: Array


@dataclass(frozen=True, eq=False)
class BalancedForm:
    """The Hankel singular values of a stable part, and projections W, V onto its balanced states, largest first."""

    part: SubsystemForm
    hankel_values: Array
    """All of them, descending; those past the numerical rank are rounding."""
    left: Array
    """W (n × k), k the numerical rank."""
    right: Array
    """V (n × k) with WᵀV = I."""

    @property
    def rank(self) -> int:
        """How many values are more than rounding."""
        return int(self.left.shape[1])

    def tail(self, order: int) -> float:
        """Twice the sum of the values left out: in exact arithmetic a bound on the error (Enns, Glover 1984)."""
        return 2.0 * float(np.sum(self.hankel_values[order:]))

    def truncated(self, order: int) -> StateSpaceMatrices:
        """The first states alone: exact at infinite frequency."""
        W, V, part = self.left[:, :order], self.right[:, :order], self.part
        D = np.zeros((len(part.H), part.G.shape[1]))
        return StateSpaceMatrices(W.T @ part.advanced(V), W.T @ part.G, part.H @ V, D)

    def at_rest(self, order: int) -> StateSpaceMatrices:
        """The others at rest, x₂' = 0 (singular perturbation): exact at zero frequency.

        That is the truncation of G(1/s), whose states are balanced by the same coordinates: of F⁻¹, F⁻¹G and −H F⁻¹.
        """
        W, V, part = self.left[:, :order], self.right[:, :order], self.part
        G, H = part.G, part.H
        still = part.integrated(np.hstack([V, G]))
        at_zero = -H @ still[:, order:]
        A, B, C = W.T @ still[:, :order], W.T @ still[:, order:], -H @ still[:, :order]
        if order == 0:
            return StateSpaceMatrices(A, B, C, at_zero)
        factors = linalg.lu_factor(A, check_finite=False)
        B_r = linalg.lu_solve(factors, B, check_finite=False)
        A_r = linalg.lu_solve(factors, np.eye(order), check_finite=False)
        C_r = -linalg.lu_solve(factors, C.T, trans=1, check_finite=False).T
        return StateSpaceMatrices(A_r, B_r, C_r, at_zero + C_r @ B)


def balance_states(part: SubsystemForm) -> BalancedForm:
    """Balance a stable part: from factors of its Gramians, never from the Gramians (square-root method)."""
    L, R = part.factors()
    U, values, Vt = np.linalg.svd(R.T @ L, full_matrices=False)  # SciPy before 1.14 refuses empty ones
    values = np.asarray(values[: part.n_states])
    largest = float(np.max(values, initial=0.0))
    rank = int(np.count_nonzero(values > part.n_states * EPS * largest))
    if largest <= part.n_states * EPS * float(np.linalg.norm(np.abs(R).T @ np.abs(L))):
        rank = 0  # inputs do not reach outputs: all of it is what rounding left of the products
    root = np.sqrt(values[:rank])
    return BalancedForm(part, _whole(values, part.n_states), R @ (U[:, :rank] / root), L @ (Vt[:rank].T / root))


def reduced_matrices(balanced: BalancedForm, order: int, *, method: DenseMethod) -> StateSpaceMatrices:
    """The reduced stable part by one of both methods."""
    return balanced.truncated(order) if method == "truncation" else balanced.at_rest(order)


def _whole(values: Array, n_states: int) -> Array:
    """One value for every state: those that no factor reaches are zero."""
    return np.concatenate([values, np.zeros(n_states - len(values))])


# MERGED ltinet.reduction.balanced_truncation
# Dense systems: balanced truncation or singular perturbation, with a bound on what was made in the end.
#
# The bound is not 2Σσ, which holds for exact arithmetic only and is seldom sharp: it is the supremum over all frequencies
# of the difference between the modes of both systems (`supremum`), and how far those are from the systems (`mismatch`).


@dataclass(frozen=True, eq=False)
class DenseReduction:
    """A reduced system and what is known of its distance from the one that it stands for."""

    matrices: StateSpaceMatrices
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
    separated: SeparatedSystem
    balanced: BalancedForm

    @property
    def n_aside(self) -> int:
        """States that are kept whatever the order."""
        return self.separated.aside.n_states

    def reduced(self, order: int, *, method: DenseMethod) -> DenseReduction:
        """The reduction to an order, kept states included; to the numerical rank where that is less."""
        kept = min(order - self.n_aside, self.balanced.rank)
        small = reduced_matrices(self.balanced, kept, method=method)
        given = SystemMatrices(small.A, small.B, small.C)
        own = separate_stable(given)
        if isinstance(own.stable, Modes) and own.aside.n_states == 0:  # its modes are the reduced system from now on
            small = _balanced_units(own.stable, small.D)
            own = SeparatedSystem(own.stable, own.aside, DistanceBound(0.0, 0.0))
        found = error_norms(self.separated.stable, own, small.D)
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

    def _whole(self, small: StateSpaceMatrices) -> StateSpaceMatrices:
        """With the states that were kept aside, and the feedthrough."""
        aside = self.separated.aside
        return StateSpaceMatrices(
            np.asarray(linalg.block_diag(aside.F, small.A)),
            np.vstack([aside.G, small.B]),
            np.hstack([aside.H, small.C]),
            self.system.D + small.D,
        )


def prepare_reducer(system: SystemMatrices) -> DenseReducer:
    """Separate and balance a system. O(n³)."""
    separated = separate_stable(system)
    return DenseReducer(system, separated, balance_states(separated.stable))


def _balanced_units(modes: Modes, D: Array) -> StateSpaceMatrices:
    """The real blocks of modes, in units in which each is moved as much as it is seen; powers of two, so exactly."""
    F, G, H = modes.F, modes.G, modes.H
    heads = np.flatnonzero(modes.rates.imag >= 0.0)
    moved = np.sqrt(np.add.reduceat((G**2).sum(axis=1), heads)) if len(heads) else np.zeros(0)
    seen = np.sqrt(np.add.reduceat((H**2).sum(axis=0), heads)) if len(heads) else np.zeros(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((moved > 0.0) & (seen > 0.0), moved / seen, 1.0)
    units = np.ldexp(1.0, np.rint(0.5 * np.log2(ratio)).astype(np.intp))
    per_state = np.repeat(units, np.where(modes.rates.imag[heads] > 0.0, 2, 1))
    return StateSpaceMatrices(F, G / per_state[:, None], H * per_state, D)


class ErrorNorms(NamedTuple):
    """Sup ‖G − G_r‖ and the H2 norm, with rounding of the evaluation, and sup ‖G_r‖."""

    error: float
    mean: Callable[[], float]
    peak: float


def error_norms(given: SubsystemForm, own: SeparatedSystem, D: Array) -> ErrorNorms:
    """Compare a stable part with its reduction over all frequencies."""
    if own.aside.n_states:
        return ErrorNorms(math.inf, lambda: math.inf, math.inf)
    poles = np.concatenate([given.poles, own.stable.poles])

    def gaps(omega: Array, norm: Callable[[Complex], Array]) -> tuple[Array, Array]:
        whole, rounding = given.response(omega)
        small, small_rounding = own.stable.response(omega)
        return norm(whole - (small + D)) + rounding + small_rounding, norm(small + D)

    places = frequency_grid(poles)
    errors, sizes = gaps(places.omega, spectral_norms)
    at_infinity = float(np.linalg.norm(D, 2)) if D.size else 0.0

    def mean() -> float:
        return (
            math.inf if D.any() else math.sqrt(mean_square(poles, lambda omega: gaps(omega, frobenius_norms)[0] ** 2))
        )

    return ErrorNorms(places.supremum(errors, at_infinity), mean, max(float(np.max(sizes, initial=0.0)), at_infinity))


# MERGED ltinet.reduction.balanced_truncation
# The smallest order whose bound is small enough.


def smallest_order(
    reducer: DenseReducer, is_enough: Callable[[DenseReduction], bool], *, allowed: float, method: DenseMethod
) -> DenseReduction:
    """Bisect between the order that Hankel values forbid to go below and the one that they promise to suffice.

    No model of order r is nearer than σ_{r+1}, and balanced ones are not farther than 2Σσ. If none is enough, because
    rounding is more than was allowed, the one of the numerical rank comes back.
    """
    values = reducer.balanced.hankel_values[: reducer.balanced.rank]
    low = int(np.count_nonzero(values > allowed))
    tails = 2.0 * (np.sum(values) - np.cumsum(values))
    high = min(int(np.count_nonzero(tails > allowed)) + 1, reducer.balanced.rank)
    best = reducer.reduced(high + reducer.n_aside, method=method)
    if not is_enough(best):
        low, high = high, reducer.balanced.rank
        best = reducer.reduced(high + reducer.n_aside, method=method)
    while low < high:
        middle = (low + high) // 2
        found = reducer.reduced(middle + reducer.n_aside, method=method)
        if is_enough(found):
            best, high = found, middle
        else:
            low = middle + 1
    return best
