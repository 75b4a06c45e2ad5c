"""All modes of a small mechanical model, and how far their sum is from it where they diagonalise the damping too.

With the modes V, computed and so only nearly what they should be, q = V ξ is exact for any regular V: VᵀM V = I + Ω,
VᵀD V = diag(d) + Δ_D and VᵀK V = diag(k) + Δ_K are measured. With ΔP = s²Ω + sΔ_D + Δ_K and the diagonal X of all
1/|k − ω² + iωd| ≤ h the norm of X^½ ΔP X^½ is at most that of the matrix W of √(h_i h_j)(|Δ_K| + √2 (k_i k_j)^¼ |Δ_D| +
2 √(k_i k_j) |Ω|), because ω/|k − ω² + iωd| ≤ √(2k) h and ω²/|k − ω² + iωd| ≤ 2k h. Then
‖G − Σ c b/(…)‖ ≤ ‖C V X^½‖ ‖W‖/(1 − ‖W‖) ‖X^½ VᵀB‖.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from ltinet.arrays import Array
from ltinet.errors import InvalidSystemError
from ltinet.model.second_order_matrices import SecondOrderMatrices
from ltinet.reduction.mismatch import Distance
from ltinet.reduction.oscillators import Oscillators
from ltinet.tolerances import EPS


@dataclass(frozen=True, eq=False)
class WholeModes:
    """Every mode of a model, with the dampings between them."""

    oscillators: Oscillators
    between: Array
    """VᵀD V, n × n."""
    distance: Distance
    """Of the model from its oscillators, each damped for itself; infinite where dampings couple them."""


def whole_modes(model: SecondOrderMatrices) -> WholeModes:
    """Solve K v = k M v. O(n³).

    Raises:
        InvalidSystemError: M or K is not symmetric positive definite, or a mode is not damped.
    """
    M, D, K = (_filled(own) for own in (model.M, model.D, model.K))
    for name, matrix in (("M", M), ("K", K)):
        if not np.array_equal(matrix, matrix.T):
            raise not_definite(name, "is not symmetric")
    try:
        stiffness, V = linalg.eigh(K, M, check_finite=False)
    except linalg.LinAlgError:
        raise not_definite("M", "is not positive definite") from None
    if not stiffness[0] > len(K) * EPS * stiffness[-1]:
        raise not_definite("K", "is not positive definite")
    between = V.T @ (D @ V)
    damping = between.diagonal().copy()
    require_damped(damping, stiffness)
    own = Oscillators(np.asarray(stiffness), damping, V.T @ model.B, model.C @ V)
    off, ends = _distance(own, V, M=M, D=D, K=K), _rounded_ends(own, V, model)
    return WholeModes(own, between, Distance(off.peak + ends.peak, off.mean + ends.mean))


def _rounded_ends(own: Oscillators, V: Array, model: SecondOrderMatrices) -> Distance:
    """What rounding in the sums VᵀB and C V does: each mode with its largest gain, and its H2 norm 1/√(2dk)."""
    eps = (len(V) + 2) * EPS
    off_B = eps * np.linalg.norm(np.abs(V).T @ np.abs(model.B), axis=1)
    off_C = eps * np.linalg.norm(np.abs(model.C) @ np.abs(V), axis=0)
    sizes = np.linalg.norm(own.C, axis=0) * off_B + off_C * (np.linalg.norm(own.B, axis=1) + off_B)
    return Distance(float(sizes @ own.peaks), float(sizes @ (1.0 / np.sqrt(2.0 * own.damping * own.stiffness))))


def _distance(own: Oscillators, V: Array, *, M: Array, D: Array, K: Array) -> Distance:
    off_M = np.abs(V.T @ M @ V - np.eye(len(V))) + _rounded(V, M)
    off_D = np.abs(V.T @ D @ V - np.diag(own.damping)) + _rounded(V, D)
    off_K = np.abs(V.T @ K @ V - np.diag(own.stiffness)) + _rounded(V, K)
    root = np.sqrt(own.peaks)
    sizes = np.sqrt(np.outer(own.stiffness, own.stiffness))
    W = np.outer(root, root) * (off_K + math.sqrt(2.0) * np.sqrt(sizes) * off_D + 2.0 * sizes * off_M)
    lost = float(np.linalg.norm(W))
    if not lost < 0.5:
        return Distance(math.inf, math.inf)
    inputs, outputs = np.linalg.norm(own.B, axis=1) ** 2, np.linalg.norm(own.C, axis=0) ** 2
    share = lost / (1.0 - lost)
    seen, moved = float(outputs @ own.peaks), float(inputs @ own.peaks)
    in_mean = 2.0 / math.pi * float(inputs @ (own.peaks * np.sqrt(2.0 * own.stiffness)))  # ∫ X dω/2π ≤ √(2k) h · 2/π
    return Distance(share * math.sqrt(seen * moved), share * math.sqrt(seen * in_mean))


def _rounded(V: Array, matrix: Array) -> Array:
    """What rounding may have taken from every entry of Vᵀ matrix V."""
    return np.asarray(2.0 * (len(V) + 2) * EPS * (np.abs(V).T @ (np.abs(matrix) @ np.abs(V))))


def _filled(matrix: Any) -> Array:
    return np.asarray(matrix) if isinstance(matrix, np.ndarray) else np.asarray(matrix.toarray())


def not_definite(name: str, what: str) -> InvalidSystemError:
    """The error that says what is wrong with M or K, and the way out."""
    ways = {
        "M": "give every position a mass, or eliminate those without",
        "K": "fix positions that are free to move, or reduce ltinet.as_state_space(model), which keeps free motions of "
        "up to 1,500 positions whole",
    }
    return InvalidSystemError(
        f"{name} {what}, so that the model has no modes to choose from; {ways[name]}; (X + X.T)/2 is symmetric"
    )


def require_damped(damping: Array, stiffness: Array) -> None:
    """Refuse modes whose gain is infinite.

    Raises:
        InvalidSystemError: a mode is not damped.
    """
    least = EPS * np.sqrt(stiffness)
    if (damping > least).all():
        return
    place = int(np.argmin(damping - least))
    raise InvalidSystemError(
        f"the mode at {math.sqrt(stiffness[place]):.4g} rad per unit of time is not damped (d = {damping[place]:.1e}): "
        "its gain is infinite, and no error is small beside it; add damping, such as D = alpha * M + beta * K"
    )
