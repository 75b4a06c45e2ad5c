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
from ltinet.reduction.dissipative_pencil import (
    DefiniteMatrix,
    Pencil,
    Sparse,
    factor_symmetric,
    is_symmetric,
    make_pencil,
    prove_definite,
)
from ltinet.reduction.mechanical_modes import Oscillators, not_definite_error, peak_gains
from ltinet.reduction.projection import RayleighDamping
from ltinet.reduction.separation import DistanceBound
from ltinet.systems.second_order_matrices import SecondOrderMatrices

# MERGED ltinet.reduction.mechanical_pencil
# A large sparse mechanical model with D = αM + βK, and what its structure lets one prove.

_TRIES = (0.9, 0.5, 0.1)  # of an estimate of the smallest eigenvalue
_POWER_STEPS = 6
_NEARLY = 1e-9  # of the sizes of αM and βK: by so much D may be off, which is counted


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
        """α and β, where D is αM + βK but for rounding."""
        M, K, D = self.pencil.E, -self.pencil.A, self.D
        for found in _candidates(M, D, K):
            off = abs(D - found.alpha * M - found.beta * K) - _NEARLY * (found.alpha * abs(M) + found.beta * abs(K))
            if found.alpha + found.beta > 0.0 and float(off.max()) <= 0.0:
                return found
        return None

    @cached_property
    def distance(self) -> DistanceBound:
        """Of the model from the one with exactly α and β: ΔD counts with ω/|P|² ≤ √(2k) h² of the slowest mode."""
        if self.damping is None:
            return DistanceBound(math.inf, math.inf)
        M, K = self.pencil.E, -self.pencil.A
        off = self.D - self.damping.alpha * M - self.damping.beta * K
        rounded = 4.0 * EPS * (abs(self.D) + self.damping.alpha * abs(M) + self.damping.beta * abs(K))
        sizes = abs(off) + rounded
        largest = max(float(sizes.sum(axis=0).max()), float(sizes.sum(axis=1).max()))
        return self.perturbed(0.0, largest / self.mass.smallest)

    def perturbed(self, in_K: float, in_D: float) -> DistanceBound:
        """What changes of K and D by these norms, relative to M, may do to G: all modes at once, the slowest worst.

        (Δ_K + ωΔ_D)/|P| ≤ (Δ_K + √(2k) Δ_D) h, and with h ≤ max(√2/(d√k), 1/k) everything falls with k.
        """
        k = self.smallest
        h = self.largest_gain(k)
        per_mode = in_K + math.sqrt(2.0 * k) * in_D
        if not per_mode * h < 0.5:
            return DistanceBound(math.inf, math.inf)
        size = per_mode * h / (1.0 - per_mode * h) * self.ends
        return DistanceBound(size * h, size * math.sqrt(2.0 / math.pi * math.sqrt(2.0 * k) * h * h))

    def largest_gain(self, k: float) -> float:
        """A bound on h of all modes with stiffnesses from k on."""
        damping = self.damping or RayleighDamping(0.0, 0.0)
        d = damping.alpha + damping.beta * k
        return max(math.sqrt(2.0) / (d * math.sqrt(k)), 1.0 / k) * (1.0 + 8.0 * EPS)

    @cached_property
    def ends(self) -> float:
        """‖C‖ ‖B‖ in the norm of M⁻¹, or more."""
        both = float(np.linalg.norm(self.pencil.B)) * float(np.linalg.norm(self.pencil.C))
        return both / self.mass.smallest * (1.0 + summation_tolerance(self.pencil.n_states))


def make_mechanical_pencil(model: SecondOrderMatrices) -> MechanicalPencil:
    """Prove that M and K are positive definite.

    Raises:
        InvalidSystemError: one of them is not.
    """
    M, D, K = (sparse.csc_array(own) for own in (model.M, model.D, model.K))
    for name, matrix in (("M", M), ("K", K)):
        if not is_symmetric(matrix):
            raise not_definite_error(name, "is not symmetric")
    mass, stiffness = prove_definite(M), prove_definite(K)
    if mass is None:
        raise not_definite_error("M", "is not positive definite, as far as could be proven")
    smallest = None if stiffness is None else _smallest(K, M, stiffness)
    if stiffness is None or smallest is None:
        raise not_definite_error("K", "is not positive definite, as far as could be proven")
    return MechanicalPencil(make_pencil(-K, model.B, model.C, E=M), D, mass, stiffness, smallest)


def _smallest(K: Sparse, M: Sparse, stiffness: DefiniteMatrix) -> float | None:
    """A proven lower bound of λ_min(K, M): K − μM has positive pivots."""
    x = np.random.default_rng(0).standard_normal((K.shape[0], 1))
    for _ in range(_POWER_STEPS):
        x = stiffness.solve(M @ x)
        x /= np.linalg.norm(x)
    estimate = float((x.T @ (K @ x)).item() / (x.T @ (M @ x)).item())
    for share in _TRIES:
        if prove_definite(K - share * estimate * M) is not None:
            return share * estimate
    return None


def _candidates(M: Sparse, D: Sparse, K: Sparse) -> list[RayleighDamping]:
    """Masses alone, springs alone, and both, by least squares in which every entry counts with its own size."""
    rows, columns = (abs(D) + abs(M) + abs(K)).nonzero()
    masses, springs, dampers = (np.asarray(own[rows, columns]).ravel() for own in (M, K, D))
    sizes = np.abs(dampers) + EPS * (np.abs(masses) + np.abs(springs))
    masses, springs, dampers = masses / sizes, springs / sizes, dampers / sizes
    both = np.linalg.lstsq(np.column_stack([masses, springs]), dampers, rcond=None)[0]
    alone = [(dampers @ own) / (own @ own) for own in (masses, springs)]
    pairs = ((alone[0], 0.0), (0.0, alone[1]), both)
    return [RayleighDamping(max(float(alpha), 0.0), max(float(beta), 0.0)) for alpha, beta in pairs]


# MERGED ltinet.reduction.mechanical_pencil
# The slowest modes of a large mechanical model, a proof that there are no others below them, and what the rest can do.
#
# For modes V with VᵀM V = I, K V = M V diag(k) + R there is K̃ = K − R VᵀM − M V Rᵀ + M V (VᵀR) VᵀM, for which they are
# exact, at most δ = 3‖R‖ away in the norm of M⁻¹. K − σM, factored without pivoting, has as many negative pivots as K has
# eigenvalues below σ, up to what rounding did to it. So all other modes of K̃ are stiffer than `cut`, and with B⊥ =
# B − M V b they give at most ‖C⊥‖ ‖B⊥‖ sup h in the norm of M⁻¹, or ‖C⊥‖ ‖B⊥‖ sup k h in that of K⁻¹, over k ≥ cut.

_TRIED = 0.25  # share of the modes, from the stiffest down, among which the widest gap is looked for


@dataclass(frozen=True, eq=False)
class LowestModes:
    """k (N,) ascending and V (n × N)."""

    stiffness: Array
    V: Array

    def oscillators(self, model: MechanicalPencil, damping: Array) -> Oscillators:
        """Each damped for itself."""
        own = model.pencil
        return Oscillators(self.stiffness, damping, self.V.T @ own.B, own.C @ self.V)


def compute_lowest_modes(model: MechanicalPencil, count: int) -> LowestModes:
    """About `count` of them, by shift-inverted Lanczos iteration; up to the widest gap among the last."""
    K, M, n = -model.pencil.A, model.pencil.E, model.pencil.n_states
    inverse = LinearOperator((n, n), matvec=lambda x: model.stiffness.solve(np.asarray(x).reshape(n, 1)).ravel())
    start = np.random.default_rng(0).standard_normal(n)
    solve: Any = eigsh  # its types know no OPinv
    values, V = solve(K, k=min(count + 1, n - 1), M=M, sigma=0.0, OPinv=inverse, v0=start)
    order = np.argsort(values, kind="stable")
    values, V = np.asarray(values)[order], np.asarray(V)[:, order]
    first = max(1, int((1.0 - _TRIED) * len(values)))
    kept = first + int(np.argmax(values[first:] / values[first - 1 : -1])) if len(values) > 1 else 1
    return LowestModes(values[:kept], V[:, :kept])


def remainder_bound(model: MechanicalPencil, damping: RayleighDamping, modes: LowestModes) -> DistanceBound:
    """How far the modes are from the whole model, all others and rounding counted; infinite where nothing is proven."""
    own, V, k = model.pencil, modes.V, modes.stiffness
    MV, KV = own.E @ V, -(own.A @ V)
    eps = summation_tolerance(own.n_states)
    sizes = eps * (float(np.linalg.norm(abs(own.A) @ np.abs(V))) + float(np.linalg.norm((abs(own.E) @ np.abs(V)) * k)))
    left = (float(np.linalg.norm(KV - MV * k)) + sizes) / math.sqrt(model.mass.smallest)
    off = float(np.linalg.norm(V.T @ MV - np.eye(len(k)))) + eps
    left += off * float(k[-1])
    moved = 3.5 * left
    cut = _proven_cut(model, modes) - moved
    if not (cut > k[-1] and moved < 0.5 * model.smallest):  # the modes themselves must be counted below it
        return DistanceBound(math.inf, math.inf)
    wrong = model.perturbed(moved, damping.beta * moved)
    b, c = V.T @ own.B, own.C @ V
    tail = _tail(model, damping, own.B - MV @ b, own.C.T - MV @ c.T, cut=cut, moved=moved)
    peaks, means = peak_gains(k, damping.of(k)), 1.0 / np.sqrt(2.0 * k * damping.of(k))
    ends = 4.0 * off * float(np.linalg.norm(b)) * float(np.linalg.norm(c))
    peak, mean = ends * float(np.max(peaks)), ends * float(np.max(means))
    return DistanceBound(tail.peak + wrong.peak + peak, tail.mean + wrong.mean + mean)


def _tail(
    model: MechanicalPencil, damping: RayleighDamping, B_rest: Array, C_rest: Array, *, cut: float, moved: float
) -> DistanceBound:
    """What modes stiffer than `cut` can do, by the lesser of two norms."""
    in_B, in_C = _gram(model.mass, B_rest), _gram(model.mass, C_rest)
    peak = math.sqrt(_norm(in_B) * _norm(in_C)) * model.largest_gain(cut)
    spring = 1.0 / (1.0 - moved / model.smallest)  # K̃ ≥ (1 − δ/k₀) K
    stiff = math.sqrt(_norm(_gram(model.stiffness, B_rest)) * _norm(_gram(model.stiffness, C_rest))) * spring
    at = max(cut, damping.alpha / damping.beta) if damping.beta > 0.0 else math.inf
    largest = max(math.sqrt(2.0 * at) / (damping.alpha + damping.beta * at), 1.0) if math.isfinite(at) else math.inf
    slowest = float(damping.of(np.array(cut)))
    mean = math.sqrt(_norm(in_C) * float(np.trace(in_B)) / (2.0 * slowest * cut))
    return DistanceBound(min(peak, stiff * largest), mean)


def _gram(weight: DefiniteMatrix, columns: Array) -> Array:
    """columnsᵀ weight⁻¹ columns, with what the solve left added on the diagonal."""
    Z = weight.solve(columns)
    left = float(np.linalg.norm(columns - weight.matrix @ Z)) * float(np.linalg.norm(columns)) / weight.smallest
    left += summation_tolerance(len(columns)) * float(np.linalg.norm(columns)) * float(np.linalg.norm(Z))
    return np.asarray(columns.T @ Z + left * np.eye(columns.shape[1]))


def _norm(gram: Array) -> float:
    return float(np.linalg.norm(gram, 2)) if gram.size else 0.0


def _proven_cut(model: MechanicalPencil, modes: LowestModes) -> float:
    """A stiffness below which K has no modes but these; −inf where the count of pivots does not say so."""
    K, M, k = -model.pencil.A, model.pencil.E, modes.stiffness
    for above in (1.002, 1.0005, 1.0001):
        found = _counted(K - above * float(k[-1]) * M, n_below=len(k))
        if found is not None:
            return above * float(k[-1]) - found / model.mass.smallest
    return -math.inf


def _counted(shifted: Any, *, n_below: int) -> float | None:
    """How far rounding may have moved K − σM, if it has `n_below` negative pivots: |L||U| times what each sum loses."""
    factors = factor_symmetric(shifted)
    if factors is None or not np.array_equal(factors.perm_r, factors.perm_c):
        return None
    L, pivots = factors.L, factors.U.diagonal()
    if int(np.count_nonzero(pivots < 0.0)) != n_below or not np.isfinite(pivots).all():
        return None
    most = int(np.max(np.bincount(L.indices, minlength=1)))
    lengths = np.asarray((abs(L) ** 2).sum(axis=0)).ravel()  # a matrix until SciPy 1.13
    return 4.0 * most * EPS * float(lengths @ np.abs(pivots))
