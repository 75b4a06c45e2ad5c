"""The slowest modes of a large mechanical model, a proof that there are no others below them, and what the rest can do.

For modes V with VᵀM V = I, K V = M V diag(k) + R there is K̃ = K − R VᵀM − M V Rᵀ + M V (VᵀR) VᵀM, for which they are
exact, at most δ = 3‖R‖ away in the norm of M⁻¹. K − σM, factored without pivoting, has as many negative pivots as K has
eigenvalues below σ, up to what rounding did to it. So all other modes of K̃ are stiffer than `cut`, and with B⊥ =
B − M V b they give at most ‖C⊥‖ ‖B⊥‖ sup h in the norm of M⁻¹, or ‖C⊥‖ ‖B⊥‖ sup k h in that of K⁻¹, over k ≥ cut.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from ltinet.arrays import Array
from ltinet.reduction.definite import Definite, factored
from ltinet.reduction.mechanical.damped_pencil import DampedPencil
from ltinet.reduction.mismatch import Distance
from ltinet.reduction.oscillators import Oscillators, peak_gains
from ltinet.reduction.states import Rayleigh
from ltinet.tolerances import EPS, sum_rounding

_TRIED = 0.25  # share of the modes, from the stiffest down, among which the widest gap is looked for


@dataclass(frozen=True, eq=False)
class LowestModes:
    """k (N,) ascending and V (n × N)."""

    stiffness: Array
    V: Array

    def oscillators(self, model: DampedPencil, damping: Array) -> Oscillators:
        """Each damped for itself."""
        own = model.pencil
        return Oscillators(self.stiffness, damping, self.V.T @ own.B, own.C @ self.V)


def lowest_modes(model: DampedPencil, count: int) -> LowestModes:
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


def rest_of(model: DampedPencil, damping: Rayleigh, modes: LowestModes) -> Distance:
    """How far the modes are from the whole model, all others and rounding counted; infinite where nothing is proven."""
    own, V, k = model.pencil, modes.V, modes.stiffness
    MV, KV = own.E @ V, -(own.A @ V)
    eps = sum_rounding(own.n_states)
    sizes = eps * (float(np.linalg.norm(abs(own.A) @ np.abs(V))) + float(np.linalg.norm((abs(own.E) @ np.abs(V)) * k)))
    left = (float(np.linalg.norm(KV - MV * k)) + sizes) / math.sqrt(model.mass.smallest)
    off = float(np.linalg.norm(V.T @ MV - np.eye(len(k)))) + eps
    left += off * float(k[-1])
    moved = 3.5 * left
    cut = _proven_cut(model, modes) - moved
    if not (cut > k[-1] and moved < 0.5 * model.smallest):  # the modes themselves must be counted below it
        return Distance(math.inf, math.inf)
    wrong = model.perturbed(moved, damping.beta * moved)
    b, c = V.T @ own.B, own.C @ V
    tail = _tail(model, damping, own.B - MV @ b, own.C.T - MV @ c.T, cut=cut, moved=moved)
    peaks, means = peak_gains(k, damping.of(k)), 1.0 / np.sqrt(2.0 * k * damping.of(k))
    ends = 4.0 * off * float(np.linalg.norm(b)) * float(np.linalg.norm(c))
    peak, mean = ends * float(np.max(peaks)), ends * float(np.max(means))
    return Distance(tail.peak + wrong.peak + peak, tail.mean + wrong.mean + mean)


def _tail(
    model: DampedPencil, damping: Rayleigh, B_rest: Array, C_rest: Array, *, cut: float, moved: float
) -> Distance:
    """What modes stiffer than `cut` can do, by the lesser of two norms."""
    in_B, in_C = _gram(model.mass, B_rest), _gram(model.mass, C_rest)
    peak = math.sqrt(_norm(in_B) * _norm(in_C)) * model.largest_gain(cut)
    spring = 1.0 / (1.0 - moved / model.smallest)  # K̃ ≥ (1 − δ/k₀) K
    stiff = math.sqrt(_norm(_gram(model.stiffness, B_rest)) * _norm(_gram(model.stiffness, C_rest))) * spring
    at = max(cut, damping.alpha / damping.beta) if damping.beta > 0.0 else math.inf
    largest = max(math.sqrt(2.0 * at) / (damping.alpha + damping.beta * at), 1.0) if math.isfinite(at) else math.inf
    slowest = float(damping.of(np.array(cut)))
    mean = math.sqrt(_norm(in_C) * float(np.trace(in_B)) / (2.0 * slowest * cut))
    return Distance(min(peak, stiff * largest), mean)


def _gram(weight: Definite, columns: Array) -> Array:
    """columnsᵀ weight⁻¹ columns, with what the solve left added on the diagonal."""
    Z = weight.solve(columns)
    left = float(np.linalg.norm(columns - weight.matrix @ Z)) * float(np.linalg.norm(columns)) / weight.smallest
    left += sum_rounding(len(columns)) * float(np.linalg.norm(columns)) * float(np.linalg.norm(Z))
    return np.asarray(columns.T @ Z + left * np.eye(columns.shape[1]))


def _norm(gram: Array) -> float:
    return float(np.linalg.norm(gram, 2)) if gram.size else 0.0


def _proven_cut(model: DampedPencil, modes: LowestModes) -> float:
    """A stiffness below which K has no modes but these; −inf where the count of pivots does not say so."""
    K, M, k = -model.pencil.A, model.pencil.E, modes.stiffness
    for above in (1.002, 1.0005, 1.0001):
        found = _counted(K - above * float(k[-1]) * M, n_below=len(k))
        if found is not None:
            return above * float(k[-1]) - found / model.mass.smallest
    return -math.inf


def _counted(shifted: Any, *, n_below: int) -> float | None:
    """How far rounding may have moved K − σM, if it has `n_below` negative pivots: |L||U| times what each sum loses."""
    factors = factored(shifted)
    if factors is None or not np.array_equal(factors.perm_r, factors.perm_c):
        return None
    L, pivots = factors.L, factors.U.diagonal()
    if int(np.count_nonzero(pivots < 0.0)) != n_below or not np.isfinite(pivots).all():
        return None
    most = int(np.max(np.bincount(L.indices, minlength=1)))
    lengths = np.asarray((abs(L) ** 2).sum(axis=0)).ravel()  # a matrix until SciPy 1.13
    return 4.0 * most * EPS * float(lengths @ np.abs(pivots))
