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
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from scipy import linalg

from ltinet._util.floating_point import EPS, Array, Complex
from ltinet._util.frequency_supremum import frequency_grid, frobenius_norms, mean_square, spectral_norm, spectral_norms
from ltinet.reduction.lifting import ProjectedField
from ltinet.reduction.modal_form import Modes
from ltinet.reduction.separation import DistanceBound, SeparatedSystem, SubsystemForm, separate_stable
from ltinet.systems.second_order_matrices import SecondOrderMatrices
from ltinet.systems.system_matrices import SystemMatrices

DenseMethod = Literal["truncation", "singular_perturbation"]
Candidate = TypeVar("Candidate")

MEASURED_ROUNDING = "bilinear map"
"""Name of the part of an error bound that is measured, not proven."""


@dataclass(frozen=True)
class ReductionOptions:
    """Order, or error relative to the largest gain (exactly one of both), and how to reduce."""

    order: int | None
    tolerance: float | None
    method: DenseMethod = "truncation"
    n_jobs: int = 1
    n_separated: int = 0
    """Number of states that the caller keeps beside the system; `order` does not include them, messages do."""

    @property
    def relative_error(self) -> float:
        """Tolerance; 0 where the order is given."""
        return self.tolerance or 0.0


class StateSpaceMatrices(NamedTuple):
    """Matrices A, B, C and D."""

    A: Array
    B: Array
    C: Array
    D: Array


@dataclass(frozen=True, eq=False)
class ReductionOutcome:
    """Reduced system G_r of G with its error bounds."""

    matrices: StateSpaceMatrices
    order: int
    algorithm: str
    """Description of the reduction for users."""
    estimate: float
    """Estimate of the largest ‖G(iω) − G_r(iω)‖."""
    h2_bound: Callable[[], float]
    """Function that bounds the H2 norm of G − G_r, so that |e(t)| ≤ bound·‖u‖ in L2(0, t); infinite if unproven."""
    gain: float
    """Largest ‖G_r(iω)‖ of the decaying part, or a little less."""
    hankel_values: Array | None
    parts: dict[str, float]
    """Terms of the error bound, by name; infinite ones, or none, where nothing is proven."""
    n_retained: int = 0
    notes: tuple[str, ...] = ()
    second_order: SecondOrderMatrices | None = None
    """Reduced mechanical model, if the full model is one."""
    field: ProjectedField | None = None
    """Field of the model onto which a large system was projected; None without projection."""

    @property
    def error_bound(self) -> float | None:
        """Proven bound on ‖G(iω) − G_r(iω)‖ for every ω, the sum of its parts; None where nothing is proven."""
        bound = sum(self.parts.values())
        return bound if self.parts and math.isfinite(bound) else None


@dataclass(frozen=True, eq=False)
class BalancedForm:
    """Hankel singular values of a stable part, and projections W, V onto its balanced states, largest first."""

    part: SubsystemForm
    hankel_values: Array
    """All Hankel singular values, descending; beyond the numerical rank they are rounding."""
    left: Array
    """W (n × k), k the numerical rank."""
    right: Array
    """V (n × k) with WᵀV = I."""

    @property
    def rank(self) -> int:
        """Number of values above rounding."""
        return int(self.left.shape[1])

    def reduce(self, order: int, *, method: DenseMethod) -> StateSpaceMatrices:
        """Return the reduced stable part.

        Truncation keeps the first states, exact at infinite frequency. Singular perturbation sets x₂' = 0, exact at
        zero frequency: that is the truncation of G(1/s), which has F⁻¹, F⁻¹G and −H F⁻¹ in the same balanced
        coordinates.
        """
        W, V, part = self.left[:, :order], self.right[:, :order], self.part
        G, H = part.G, part.H
        if method == "truncation":
            return StateSpaceMatrices(W.T @ part.multiply(V), W.T @ G, H @ V, np.zeros((len(H), G.shape[1])))
        solved = part.solve(np.hstack([V, G]))
        at_zero = -H @ solved[:, order:]
        A, B, C = W.T @ solved[:, :order], W.T @ solved[:, order:], -H @ solved[:, :order]
        if order == 0:
            return StateSpaceMatrices(A, B, C, at_zero)
        factors = linalg.lu_factor(A, check_finite=False)
        B_r = linalg.lu_solve(factors, B, check_finite=False)
        A_r = linalg.lu_solve(factors, np.eye(order), check_finite=False)
        C_r = -linalg.lu_solve(factors, C.T, trans=1, check_finite=False).T
        return StateSpaceMatrices(A_r, B_r, C_r, at_zero + C_r @ B)


def balance_states(part: SubsystemForm) -> BalancedForm:
    """Balance a stable part from factors of its Gramians (square-root method)."""
    L, R = part.factors()
    n = part.n_states
    U, values, Vt = np.linalg.svd(R.T @ L, full_matrices=False)  # SciPy before 1.14 refuses empty matrices
    values = np.asarray(values[:n])
    largest = float(np.max(values, initial=0.0))
    rank = int(np.count_nonzero(values > n * EPS * largest))
    if largest <= n * EPS * float(np.linalg.norm(np.abs(R).T @ np.abs(L))):
        rank = 0  # inputs do not reach outputs: the products consist of rounding
    root = np.sqrt(values[:rank])
    hankel_values = np.concatenate([values, np.zeros(n - len(values))])  # zero for states beyond the rank of a factor
    return BalancedForm(part, hankel_values, R @ (U[:, :rank] / root), L @ (Vt[:rank].T / root))


@dataclass(frozen=True, eq=False)
class DenseReduction:
    """Reduced system with bounds on its distance from the full one."""

    matrices: StateSpaceMatrices
    error: float
    """Bound on sup ‖G − G_r‖ over all frequencies, rounding included; infinite where rounding cannot be bounded."""
    estimate: float
    """The bound without the rounding of the coordinates of the full system."""
    h2_bound: Callable[[], float]
    """Function that bounds the H2 norm of G − G_r, rounding included; infinite where nothing is proven."""
    peak: float
    """Sup ‖G_r‖ of the stable part, or a little less."""
    order: int


@dataclass(frozen=True, eq=False)
class DenseReducer:
    """System that is prepared for reductions to any order."""

    system: SystemMatrices
    separated: SeparatedSystem
    balanced: BalancedForm

    @property
    def n_retained(self) -> int:
        """Number of states that do not certainly decay and stay at every order."""
        return self.separated.aside.n_states

    def reduce(self, order: int, *, method: DenseMethod) -> DenseReduction:
        """Reduce to an order that includes `n_retained`, or to the numerical rank if that is less."""
        n_balanced = min(order - self.n_retained, self.balanced.rank)
        small = self.balanced.reduce(n_balanced, method=method)
        reduced = separate_stable(SystemMatrices(small.A, small.B, small.C))
        if isinstance(reduced.stable, Modes) and reduced.aside.n_states == 0:
            # The computed modes replace the reduced system, so that they are at distance zero from it.
            small = _scaled_modes(reduced.stable, small.D)
            reduced = SeparatedSystem(reduced.stable, reduced.aside, DistanceBound(0.0, 0.0))
        norms = error_norms(self.separated.stable, reduced, small.D)
        distance, aside = self.separated.distance, self.separated.aside
        estimate = norms.error + reduced.distance.peak
        h2_is_known = self.n_retained == 0 or distance.h2 == 0.0
        return DenseReduction(
            matrices=StateSpaceMatrices(
                np.asarray(linalg.block_diag(aside.F, small.A)),
                np.vstack([aside.G, small.B]),
                np.hstack([aside.H, small.C]),
                self.system.D + small.D,
            ),
            error=estimate + distance.peak,
            # Where nothing is proven, the estimate is the bound of exact arithmetic (Enns, Glover 1984): twice the sum of the
            # truncated values.
            estimate=estimate
            if math.isfinite(estimate)
            else 2.0 * float(np.sum(self.balanced.hankel_values[n_balanced:])),
            h2_bound=lambda: norms.h2_bound() + reduced.distance.h2 + distance.h2 if h2_is_known else math.inf,
            peak=norms.peak,
            order=n_balanced + self.n_retained,
        )


def prepare_reducer(system: SystemMatrices) -> DenseReducer:
    """Separate and balance a system. O(n³)."""
    separated = separate_stable(system)
    return DenseReducer(system, separated, balance_states(separated.stable))


def _scaled_modes(modes: Modes, D: Array) -> StateSpaceMatrices:
    """Return real blocks of modes, in units that give B and C rows and columns of equal norm; exact powers of two."""
    F, G, H = modes.F, modes.G, modes.H
    heads = np.flatnonzero(modes.rates.imag >= 0.0)
    norms_G = np.sqrt(np.add.reduceat((G**2).sum(axis=1), heads)) if len(heads) else np.zeros(0)
    norms_H = np.sqrt(np.add.reduceat((H**2).sum(axis=0), heads)) if len(heads) else np.zeros(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where((norms_G > 0.0) & (norms_H > 0.0), norms_G / norms_H, 1.0)
    units = np.ldexp(1.0, np.rint(0.5 * np.log2(ratio)).astype(np.intp))
    per_state = np.repeat(units, np.where(modes.rates.imag[heads] > 0.0, 2, 1))
    return StateSpaceMatrices(F, G / per_state[:, None], H * per_state, D)


class ErrorNorms(NamedTuple):
    """Sup ‖G − G_r‖ and a function for the H2 norm, with rounding of the evaluation, and sup ‖G_r‖."""

    error: float
    h2_bound: Callable[[], float]
    peak: float


def error_norms(full: SubsystemForm, reduced: SeparatedSystem, D: Array) -> ErrorNorms:
    """Compare a stable part with its reduction, which has the feedthrough D, over all frequencies."""
    if reduced.aside.n_states:
        return ErrorNorms(math.inf, lambda: math.inf, math.inf)
    poles = np.concatenate([full.poles, reduced.stable.poles])

    def differences(omega: Array, norm: Callable[[Complex], Array]) -> tuple[Array, Array]:
        values, rounding = full.response(omega)
        small, small_rounding = reduced.stable.response(omega)
        return norm(values - (small + D)) + rounding + small_rounding, norm(small + D)

    def h2_bound() -> float:
        if D.any():
            return math.inf
        return math.sqrt(mean_square(poles, lambda omega: differences(omega, frobenius_norms)[0] ** 2))

    grid = frequency_grid(poles)
    errors, gains = differences(grid.omega, spectral_norms)
    at_infinity = spectral_norm(D)
    peak = max(float(np.max(gains, initial=0.0)), at_infinity)
    return ErrorNorms(grid.supremum(errors, at_infinity), h2_bound, peak)


def smallest_order(
    reducer: DenseReducer, is_enough: Callable[[DenseReduction], bool], *, allowed: float, method: DenseMethod
) -> DenseReduction:
    """Return the smallest sufficient reduction, by bisection between the orders that Hankel values exclude and promise.

    No model of order r is nearer than σ_{r+1}, and balanced ones are not farther than 2Σσ. If none suffices, because
    rounding exceeds the allowed error, the reduction to the numerical rank is returned.
    """
    values = reducer.balanced.hankel_values[: reducer.balanced.rank]
    low = int(np.count_nonzero(values > allowed))
    tails = 2.0 * (np.sum(values) - np.cumsum(values))
    high = min(int(np.count_nonzero(tails > allowed)) + 1, reducer.balanced.rank)

    def reduce(n_balanced: int) -> DenseReduction:
        return reducer.reduce(n_balanced + reducer.n_retained, method=method)

    best = reduce(high)
    if not is_enough(best):
        low, high = high, reducer.balanced.rank
        best = reduce(high)
    return bisect_smallest(low, high, best, reduce=reduce, is_enough=is_enough)


def bisect_smallest(
    low: int, high: int, best: Candidate, *, reduce: Callable[[int], Candidate], is_enough: Callable[[Candidate], bool]
) -> Candidate:
    """Return the candidate of the smallest number from `low` on that suffices, or `best`, that of `high`, by bisection."""
    while low < high:
        middle = (low + high) // 2
        candidate = reduce(middle)
        if is_enough(candidate):
            best, high = candidate, middle
        else:
            low = middle + 1
    return best
