"""Large sparse mechanical models with D = αM + βK: proofs of definiteness, and their slowest modes.

For modes V with VᵀM V = I, K V = M V diag(k) + R there is K̃ = K − R VᵀM − M V Rᵀ + M V (VᵀR) VᵀM, for which they are
exact, at most δ = 3‖R‖ away in the norm of M⁻¹. K − σM, factored without pivoting, has as many negative pivots as K
has eigenvalues below σ, up to rounding. So all other modes of K̃ are stiffer than `cut`, and with B⊥ = B − M V b they
contribute at most ‖C⊥‖ ‖B⊥‖ sup h in the norm of M⁻¹, or ‖C⊥‖ ‖B⊥‖ sup k h in that of K⁻¹, over k ≥ cut.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, Array, summation_tolerance
from ltinet._util.frequency_supremum import spectral_norm
from ltinet.reduction.dissipative_pencil import (
    DefiniteMatrix,
    Pencil,
    Sparse,
    factor_symmetric,
    is_symmetric,
    make_pencil,
    max_row_entries,
    prove_definite,
    smallest_pencil_eigenvalue,
)
from ltinet.reduction.mechanical_modes import Oscillators, not_definite_error, not_symmetric_error, peak_gains
from ltinet.reduction.projection import RayleighDamping
from ltinet.reduction.separation import UNBOUNDED, DistanceBound
from ltinet.systems.second_order_matrices import SecondOrderMatrices

_DAMPING_TOLERANCE = 1e-9  # of αM and βK: deviation of D from αM + βK that is accepted, and counted in bounds
_GAP_SHARE = 0.25  # share of the modes, from the stiffest down, in which the widest gap is looked for
_CUT_RATIOS = (1.002, 1.0005, 1.0001)  # of the stiffest mode: stiffnesses σ for which negative pivots are counted


@dataclass(frozen=True, eq=False)
class MechanicalPencil:
    """M and K as the first-order pencil (E, A) = (M, −K), the damping, and a proven λ_min(K, M) ≥ `smallest`."""

    pencil: Pencil
    D: Sparse
    mass: DefiniteMatrix
    stiffness: DefiniteMatrix
    smallest: float

    @cached_property
    def damping(self) -> RayleighDamping | None:
        """Coefficients α and β if D is αM + βK except for rounding."""
        return find_rayleigh_damping(self.pencil.E, self.D, -self.pencil.A)

    @cached_property
    def distance(self) -> DistanceBound:
        """Distance from the model with exactly α and β: ΔD counts with ω/|P|² ≤ √(2k) h² of the slowest mode."""
        if self.damping is None:
            return UNBOUNDED
        M, K = self.pencil.E, -self.pencil.A
        off = self.D - self.damping.alpha * M - self.damping.beta * K
        rounding = 4.0 * EPS * (abs(self.D) + self.damping.alpha * abs(M) + self.damping.beta * abs(K))
        sizes = abs(off) + rounding
        scaling = sparse.diags_array(self.mass.scale)
        sizes = scaling @ sizes @ scaling
        largest = max(float(sizes.sum(axis=0).max()), float(sizes.sum(axis=1).max()))
        return self.perturbed(0.0, largest / self.mass.smallest_scaled)

    def perturbed(self, in_K: float, in_D: float) -> DistanceBound:
        """Bound the effect on G of changes of K and D by these norms relative to M, from the slowest mode.

        (Δ_K + ωΔ_D)/|P| ≤ (Δ_K + √(2k) Δ_D) h, and with h ≤ max(√2/(d√k), 1/k) everything falls with k.
        """
        k = self.smallest
        h = self.largest_gain(k)
        per_mode = in_K + math.sqrt(2.0 * k) * in_D
        if not per_mode * h < 0.5:
            return UNBOUNDED
        size = per_mode * h / (1.0 - per_mode * h) * self.input_output_norm
        return DistanceBound(size * h, size * math.sqrt(2.0 / math.pi * math.sqrt(2.0 * k) * h * h))

    def largest_gain(self, k: float) -> float:
        """Return a bound on h of all modes with stiffnesses from k on."""
        damping = self.damping or RayleighDamping(0.0, 0.0)
        d = damping.alpha + damping.beta * k
        return max(math.sqrt(2.0) / (d * math.sqrt(k)), 1.0 / k) * (1.0 + 8.0 * EPS)

    @cached_property
    def input_output_norm(self) -> float:
        """Upper bound on ‖C‖ ‖B‖ in the norm of M⁻¹."""
        scale = self.mass.scale
        both = float(np.linalg.norm(self.pencil.B * scale[:, None])) * float(np.linalg.norm(self.pencil.C * scale))
        return both / self.mass.smallest_scaled * (1.0 + summation_tolerance(self.pencil.n_states))


def make_mechanical_pencil(model: SecondOrderMatrices) -> MechanicalPencil:
    """Prove that M and K are positive definite.

    Raises:
        InvalidSystemError: one of them is not.
    """
    M, D, K = (sparse.csc_array(matrix) for matrix in (model.M, model.D, model.K))
    for name, matrix in (("M", M), ("K", K)):
        if not is_symmetric(matrix):
            raise not_symmetric_error(name)
    mass, stiffness = prove_definite(M), prove_definite(K)
    if mass is None:
        raise not_definite_error("M", "is not positive definite, or no proof of it succeeded")
    smallest = None if stiffness is None else smallest_pencil_eigenvalue(stiffness, M)
    if stiffness is None or smallest is None:
        raise not_definite_error("K", "is not positive definite, or no proof of it succeeded")
    return MechanicalPencil(make_pencil(-K, model.B, model.C, E=M), D, mass, stiffness, smallest)


def find_rayleigh_damping(M: Sparse, D: Sparse, K: Sparse) -> RayleighDamping | None:
    """Return α and β if D is αM + βK except for rounding."""
    for alpha, beta in _damping_candidates(M, D, K):
        excess = abs(D - alpha * M - beta * K) - _DAMPING_TOLERANCE * (alpha * abs(M) + beta * abs(K))
        if alpha + beta > 0.0 and float(excess.max()) <= 0.0:
            return RayleighDamping(alpha, beta)
    return None


def _damping_candidates(M: Sparse, D: Sparse, K: Sparse) -> list[tuple[float, float]]:
    """Return α and β for M alone, K alone, and both, by least squares with every entry relative to its own size."""
    rows, columns = (abs(D) + abs(M) + abs(K)).nonzero()
    masses, springs, dampers = (np.asarray(matrix[rows, columns]).ravel() for matrix in (M, K, D))
    sizes = np.abs(dampers) + EPS * (np.abs(masses) + np.abs(springs))
    masses, springs, dampers = masses / sizes, springs / sizes, dampers / sizes
    columns = np.column_stack([masses, springs])
    lengths = np.linalg.norm(columns, axis=0)  # many orders of magnitude apart for fine meshes
    lengths[lengths == 0.0] = 1.0
    both = np.linalg.lstsq(columns / lengths, dampers, rcond=None)[0] / lengths
    alpha, beta = ((dampers @ entries) / (entries @ entries) for entries in (masses, springs))
    return [(max(float(a), 0.0), max(float(b), 0.0)) for a, b in ((alpha, 0.0), (0.0, beta), both)]


# The slowest modes, and a bound on the contribution of all others.


@dataclass(frozen=True, eq=False)
class LowestModes:
    """Stiffnesses k (N,), ascending, and modes V (n × N)."""

    stiffness: Array
    V: Array

    def oscillators(self, model: MechanicalPencil, damping: RayleighDamping) -> Oscillators:
        """Return the modes as oscillators."""
        pencil = model.pencil
        return Oscillators(self.stiffness, damping.of(self.stiffness), self.V.T @ pencil.B, pencil.C @ self.V)


def compute_lowest_modes(model: MechanicalPencil, count: int) -> LowestModes:
    """Return about `count` modes by shift-inverted Lanczos iteration, up to the widest gap among the last."""
    K, M, n = -model.pencil.A, model.pencil.E, model.pencil.n_states
    inverse = LinearOperator((n, n), matvec=lambda x: model.stiffness.solve(np.asarray(x).reshape(n, 1)).ravel())
    start = np.random.default_rng(0).standard_normal(n)
    solve: Any = eigsh  # its stubs lack OPinv
    values, V = solve(K, k=min(count + 1, n - 1), M=M, sigma=0.0, OPinv=inverse, v0=start)
    order = np.argsort(values, kind="stable")
    values, V = np.asarray(values)[order], np.asarray(V)[:, order]
    first = max(1, int((1.0 - _GAP_SHARE) * len(values)))
    n_modes = first + int(np.argmax(values[first:] / values[first - 1 : -1])) if len(values) > 1 else 1
    return LowestModes(values[:n_modes], V[:, :n_modes])


def remainder_bound(model: MechanicalPencil, damping: RayleighDamping, modes: LowestModes) -> DistanceBound:
    """Bound the distance of the modes from the whole model, rounding included; infinite where nothing is proven."""
    pencil, V, k = model.pencil, modes.V, modes.stiffness
    MV, KV = pencil.E @ V, -(pencil.A @ V)
    eps = summation_tolerance(pencil.n_states)
    sizes = float(np.linalg.norm(abs(pencil.A) @ np.abs(V))) + float(np.linalg.norm((abs(pencil.E) @ np.abs(V)) * k))
    residual = (float(np.linalg.norm(KV - MV * k)) + eps * sizes) / math.sqrt(model.mass.smallest)
    off = float(np.linalg.norm(V.T @ MV - np.eye(len(k)))) + eps
    residual += off * float(k[-1])
    delta = 3.5 * residual  # 3‖R‖ and the squares of it
    cut = _proven_cut(model, modes) - delta
    if not (cut > k[-1] and delta < 0.5 * model.smallest):  # the modes themselves must be counted below the cut
        return UNBOUNDED
    perturbation = model.perturbed(delta, damping.beta * delta)
    b, c = V.T @ pencil.B, pencil.C @ V
    tail = _stiff_remainder(model, damping, pencil.B - MV @ b, pencil.C.T - MV @ c.T, cut=cut, delta=delta)
    peaks, h2_norms = peak_gains(k, damping.of(k)), 1.0 / np.sqrt(2.0 * k * damping.of(k))
    ends = 4.0 * off * float(np.linalg.norm(b)) * float(np.linalg.norm(c))
    peak, h2 = ends * float(np.max(peaks)), ends * float(np.max(h2_norms))
    return DistanceBound(tail.peak + perturbation.peak + peak, tail.h2 + perturbation.h2 + h2)


def _stiff_remainder(
    model: MechanicalPencil, damping: RayleighDamping, B_rest: Array, C_rest: Array, *, cut: float, delta: float
) -> DistanceBound:
    """Bound the contribution of modes stiffer than `cut` by the lesser of two norms."""
    gram_B, gram_C = _gram(model.mass, B_rest), _gram(model.mass, C_rest)
    peak = math.sqrt(spectral_norm(gram_B) * spectral_norm(gram_C)) * model.largest_gain(cut)
    scale = 1.0 / (1.0 - delta / model.smallest)  # K̃ ≥ (1 − δ/k₀) K
    stiff = spectral_norm(_gram(model.stiffness, B_rest)) * spectral_norm(_gram(model.stiffness, C_rest))
    at = max(cut, damping.alpha / damping.beta) if damping.beta > 0.0 else math.inf  # where √(2k)/d is largest
    largest = max(math.sqrt(2.0 * at) / (damping.alpha + damping.beta * at), 1.0) if math.isfinite(at) else math.inf
    slowest = float(damping.of(np.array(cut)))
    h2 = math.sqrt(spectral_norm(gram_C) * float(np.trace(gram_B)) / (2.0 * slowest * cut))
    return DistanceBound(min(peak, math.sqrt(stiff) * scale * largest), h2)


def _gram(weight: DefiniteMatrix, columns: Array) -> Array:
    """Return columnsᵀ weight⁻¹ columns, with the error of the solve added on the diagonal."""
    Z = weight.solve(columns)
    error = float(np.linalg.norm(columns - weight.matrix @ Z)) * float(np.linalg.norm(columns)) / weight.smallest
    error += summation_tolerance(len(columns)) * float(np.linalg.norm(columns)) * float(np.linalg.norm(Z))
    return np.asarray(columns.T @ Z + error * np.eye(columns.shape[1]))


def _proven_cut(model: MechanicalPencil, modes: LowestModes) -> float:
    """Return a stiffness below which K has no other modes; −inf if the count of pivots does not prove it."""
    K, M, k = -model.pencil.A, model.pencil.E, modes.stiffness
    for ratio in _CUT_RATIOS:
        rounding = _inertia_rounding(K - ratio * float(k[-1]) * M, n_below=len(k))
        if rounding is not None:
            return ratio * float(k[-1]) - rounding / model.mass.smallest
    return -math.inf


def _inertia_rounding(shifted: Any, *, n_below: int) -> float | None:
    """Bound the backward error |L||U| of the factors of K − σM; None unless they have `n_below` negative pivots."""
    factors = factor_symmetric(shifted)
    if factors is None:
        return None
    L, pivots = factors.L, factors.U.diagonal()
    if int(np.count_nonzero(pivots < 0.0)) != n_below or not np.isfinite(pivots).all():
        return None
    lengths = np.asarray((abs(L) ** 2).sum(axis=0)).ravel()  # a matrix until SciPy 1.13
    return 4.0 * max_row_entries(L) * EPS * float(lengths @ np.abs(pivots))
