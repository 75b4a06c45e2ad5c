"""Modes of mechanical models as oscillators, Σ c_j b_j/(s² + d_j s + k_j), and selection of the dominant ones.

Peaks and shares of single modes are known in closed form. Modes with the largest shares are kept, as many as
requested or as few as meet a tolerance.

All modes of a small model. With computed modes V, q = V ξ is exact for any regular V: VᵀM V = I + Ω, VᵀD V = diag(d)
+ Δ_D and VᵀK V = diag(k) + Δ_K are measured. With ΔP = s²Ω + sΔ_D + Δ_K and the diagonal X of all 1/|k − ω² + iωd| ≤
h the norm of X^½ ΔP X^½ is at most that of the matrix W of √(h_i h_j)(|Δ_K| + √2 (k_i k_j)^¼ |Δ_D| + 2 √(k_i k_j)
|Ω|), because ω/|k − ω² + iωd| ≤ √(2k) h and ω²/|k − ω² + iωd| ≤ 2k h. Then ‖G − Σ c b/(…)‖ ≤ ‖C V X^½‖ ‖W‖/(1 − ‖W‖)
‖X^½ VᵀB‖.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet._util.floating_point import EPS, Array, Complex, summation_tolerance
from ltinet.errors import InvalidSystemError
from ltinet.reduction.balanced_truncation import StateSpaceMatrices
from ltinet.reduction.separation import DistanceBound
from ltinet.reduction.supremum import frequency_grid, frobenius_norms, mean_square, spectral_norms
from ltinet.systems.second_order_matrices import SecondOrderMatrices

# MERGED ltinet.reduction.mechanical_modes
# A mechanical model as a sum of its modes, c_j b_j/(s² + d_j s + k_j): response, poles and peaks in closed form.

_CHUNK = 1 << 21  # complex numbers held at a time
_UP = 1.0 + 16.0 * EPS  # rounds up what a few operations computed


def peak_gains(stiffness: Array, damping: Array) -> Array:
    """Sup over ω of 1/|k − ω² + iωd|, for k > 0 and d > 0: at ω² = k − d²/2, or at rest where that is negative."""
    turning = stiffness - 0.25 * damping**2
    with np.errstate(invalid="ignore", divide="ignore"):
        peaks = 1.0 / (damping * np.sqrt(turning))
    return np.asarray(np.where(damping**2 < 2.0 * stiffness, peaks, 1.0 / stiffness) * _UP)


@dataclass(frozen=True, eq=False)
class Oscillators:
    """ξ_j'' + d_j ξ_j' + k_j ξ_j = b_j u, y = Σ c_j ξ_j: all k and d positive, B (N × m) and C (p × N)."""

    stiffness: Array
    damping: Array
    B: Array
    C: Array

    def __len__(self) -> int:
        return len(self.stiffness)

    @property
    def poles(self) -> Complex:
        """Both of every mode, without cancellation."""
        half = 0.5 * self.damping
        under = np.sqrt(np.maximum(self.stiffness - half**2, 0.0))
        over = np.sqrt(np.maximum(half**2 - self.stiffness, 0.0))
        far = -(half + over)
        near = np.where(over > 0.0, self.stiffness / far, -half)
        return np.concatenate([far + 1j * under, near - 1j * under])

    @property
    def peaks(self) -> Array:
        """The largest gain of every mode from its force to its position."""
        return peak_gains(self.stiffness, self.damping)

    @property
    def shares(self) -> Array:
        """The largest gain of every mode from inputs to outputs: its whole part in G, in closed form."""
        return np.asarray(np.linalg.norm(self.B, axis=1) * np.linalg.norm(self.C, axis=0) * self.peaks * _UP)

    def taken(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> "Oscillators":
        """Some of them."""
        return Oscillators(self.stiffness[which], self.damping[which], self.B[which], self.C[:, which])

    def gains(self, omega: Array) -> Complex:
        """1/(k − ω² + iωd), `(K, N)`."""
        return np.asarray(1.0 / ((self.stiffness - (omega**2)[:, None]) + 1j * omega[:, None] * self.damping))

    def response(self, omega: Array) -> tuple[Complex, Array]:
        """Σ c b/(k − ω² + iωd), `(K, p, m)`, and a bound on what rounding took from it, `(K,)`.

        k − ω² cancels near a resonance, by 2 eps ω² against a |denominator|, which is counted.
        """
        n_outputs, n_inputs = len(self.C), self.B.shape[1]
        products = (self.C.T[:, :, None] * self.B[:, None, :]).reshape(len(self), n_outputs * n_inputs)
        sizes = np.linalg.norm(self.B, axis=1) * np.linalg.norm(self.C, axis=0)
        values = np.empty((len(omega), n_outputs * n_inputs), dtype=np.complex128)
        rounding = np.empty(len(omega))
        chunk = max(1, _CHUNK // max(len(self), 1))
        for start in range(0, len(omega), chunk):
            own = slice(start, start + chunk)
            gains = self.gains(omega[own])
            values[own] = gains @ products
            size = np.abs(gains)
            lost = summation_tolerance(len(self)) + 4.0 * EPS * size * (omega[own] ** 2)[:, None]
            rounding[own] = (size * lost) @ sizes
        return values.reshape(len(omega), n_outputs, n_inputs), rounding

    @property
    def matrices(self) -> StateSpaceMatrices:
        """States (ξ, ξ'/w) of every mode, w near √k and a power of two: blocks [[0, w], [−k/w, −d]], exactly."""
        N, (p, m) = len(self), (len(self.C), self.B.shape[1])
        units = np.ldexp(1.0, np.rint(0.5 * np.log2(self.stiffness)).astype(np.intp))
        A, B, C = np.zeros((2 * N, 2 * N)), np.zeros((2 * N, m)), np.zeros((p, 2 * N))
        first, second = np.arange(0, 2 * N, 2), np.arange(1, 2 * N, 2)
        A[first, second], A[second, first], A[second, second] = units, -self.stiffness / units, -self.damping
        B[second], C[:, first] = self.B / units[:, None], self.C
        return StateSpaceMatrices(A, B, C, np.zeros((p, m)))


# MERGED ltinet.reduction.mechanical_modes
# Modes that dampings couple: ξ'' + Δ ξ' + diag(k) ξ = b u, y = c ξ, with a full Δ.


@dataclass(frozen=True, eq=False)
class CoupledOscillators:
    """Stiffnesses (N,), dampings between modes (N × N), B (N × m) and C (p × N)."""

    stiffness: Array
    between: Array
    B: Array
    C: Array

    def taken(self, which: NDArray[np.intp]) -> "CoupledOscillators":
        """Some of the modes, the others at rest."""
        return CoupledOscillators(
            self.stiffness[which], self.between[np.ix_(which, which)], self.B[which], self.C[:, which]
        )

    @property
    def matrices(self) -> StateSpaceMatrices:
        """First-order states: all ξ, then all ξ'/w with w near √k and a power of two, so that nothing is rounded."""
        N, (p, m) = len(self.stiffness), (len(self.C), self.B.shape[1])
        units = np.ldexp(1.0, np.rint(0.5 * np.log2(self.stiffness)).astype(np.intp))
        below = [-np.diag(self.stiffness / units), -self.between * units / units[:, None]]
        A = np.block([[np.zeros((N, N)), np.diag(units)], below])
        B, C = np.vstack([np.zeros((N, m)), self.B / units[:, None]]), np.hstack([self.C, np.zeros((p, N))])
        return StateSpaceMatrices(A, B, C, np.zeros((p, m)))


# MERGED ltinet.reduction.mechanical_modes
# Which oscillators are kept: those with the largest shares, as many as asked for or as few as suffice.

Found = TypeVar("Found")
_FEW = 200  # modes, up to which places may be many
_FINE, _COARSE = 0.8, 1.6  # spacings in phase: 1.02 and 1.09 of the largest value at most


@dataclass(frozen=True, eq=False)
class SelectedModes:
    """Some oscillators of many, and what leaving out the others did."""

    places: NDArray[np.intp]
    """Which of them, ascending."""
    oscillators: Oscillators
    error: float
    """Sup of the response of those left out over all frequencies, rounding included."""
    mean: Callable[[], float]
    """The H2 norm of it."""
    peak: float
    """Sup of the response of those kept, or a little less."""


def select_modes(given: Oscillators, count: int) -> SelectedModes:
    """Keep the `count` modes with the largest shares."""
    order = _ranked(given)
    chosen, left = np.sort(order[:count]), np.sort(order[count:])
    kept, dropped = given.taken(chosen), given.taken(left)
    return SelectedModes(chosen, kept, _largest(dropped), lambda: _mean(dropped), _peak(kept))


def select_modes_to_tolerance(given: Oscillators, *, tolerance: float, already: float) -> SelectedModes:
    """As few modes as err by `tolerance` of the largest gain at most, `already` counted; all where none suffice."""
    shares, ranked = np.sort(given.shares), _ranked(given)
    below = np.concatenate([[0.0], np.cumsum(shares)])  # the sum of the smallest 0, 1, 2, …

    def is_enough(count: int) -> bool:
        allowed, n_left = tolerance * _peak(given.taken(ranked[:count])) - already, len(given) - count
        if below[n_left] <= allowed or n_left == 0:
            return bool(below[n_left] <= allowed)
        return select_modes(given, count).error <= allowed

    return select_modes(given, bisect_smallest(len(given), lambda count: count, is_enough))


def _ranked(given: Oscillators) -> NDArray[np.intp]:
    return np.argsort(-given.shares, kind="stable")


def bisect_smallest(n: int, reduced: Callable[[int], Found], is_enough: Callable[[Found], bool]) -> Found:
    """The first of 0 … n that is enough, by bisection; that of n where none is."""
    low, high, best = 0, n, reduced(n)
    while low < high:
        middle = (low + high) // 2
        found = reduced(middle)
        if is_enough(found):
            best, high = found, middle
        else:
            low = middle + 1
    return best


def _largest(own: Oscillators) -> float:
    """The lesser of the supremum from places that suffice and the sum of all shares."""
    if len(own) == 0:
        return 0.0
    places = frequency_grid(own.poles, spacing=_FINE if len(own) <= _FEW else _COARSE)
    values, rounding = own.response(places.omega)
    return min(places.supremum(spectral_norms(values) + rounding, 0.0), float(np.sum(own.shares)))


def _mean(own: Oscillators) -> float:
    def squares(omega: Array) -> Array:
        values, rounding = own.response(omega)
        return np.asarray((frobenius_norms(values) + rounding) ** 2)

    return math.sqrt(mean_square(own.poles, squares))


def _peak(own: Oscillators) -> float:
    """At rest and where single modes peak."""
    peaks = np.sqrt(np.maximum(own.stiffness - 0.5 * own.damping**2, 0.0))
    values: Complex = own.response(np.append(peaks, 0.0))[0]
    return float(np.max(spectral_norms(values), initial=0.0))


# MERGED ltinet.reduction.mechanical_modes
# All modes of a small mechanical model, and how far their sum is from it where they diagonalise the damping too.
#
# With the modes V, computed and so only nearly what they should be, q = V ξ is exact for any regular V: VᵀM V = I + Ω,
# VᵀD V = diag(d) + Δ_D and VᵀK V = diag(k) + Δ_K are measured. With ΔP = s²Ω + sΔ_D + Δ_K and the diagonal X of all
# 1/|k − ω² + iωd| ≤ h the norm of X^½ ΔP X^½ is at most that of the matrix W of √(h_i h_j)(|Δ_K| + √2 (k_i k_j)^¼ |Δ_D| +
# 2 √(k_i k_j) |Ω|), because ω/|k − ω² + iωd| ≤ √(2k) h and ω²/|k − ω² + iωd| ≤ 2k h. Then
# ‖G − Σ c b/(…)‖ ≤ ‖C V X^½‖ ‖W‖/(1 − ‖W‖) ‖X^½ VᵀB‖.


@dataclass(frozen=True, eq=False)
class CompleteModes:
    """Every mode of a model, with the dampings between them."""

    oscillators: Oscillators
    between: Array
    """VᵀD V, n × n."""
    distance: DistanceBound
    """Of the model from its oscillators, each damped for itself; infinite where dampings couple them."""


def compute_all_modes(model: SecondOrderMatrices) -> CompleteModes:
    """Solve K v = k M v. O(n³).

    Raises:
        InvalidSystemError: M or K is not symmetric positive definite, or a mode is not damped.
    """
    M, D, K = (_filled(own) for own in (model.M, model.D, model.K))
    for name, matrix in (("M", M), ("K", K)):
        if not np.array_equal(matrix, matrix.T):
            raise not_definite_error(name, "is not symmetric")
    try:
        stiffness, V = linalg.eigh(K, M, check_finite=False)
    except linalg.LinAlgError:
        raise not_definite_error("M", "is not positive definite") from None
    if not stiffness[0] > len(K) * EPS * stiffness[-1]:
        raise not_definite_error("K", "is not positive definite")
    between = V.T @ (D @ V)
    damping = between.diagonal().copy()
    require_damped(damping, stiffness)
    own = Oscillators(np.asarray(stiffness), damping, V.T @ model.B, model.C @ V)
    off, ends = _distance(own, V, M=M, D=D, K=K), _rounded_ends(own, V, model)
    return CompleteModes(own, between, DistanceBound(off.peak + ends.peak, off.mean + ends.mean))


def _rounded_ends(own: Oscillators, V: Array, model: SecondOrderMatrices) -> DistanceBound:
    """What rounding in the sums VᵀB and C V does: each mode with its largest gain, and its H2 norm 1/√(2dk)."""
    eps = (len(V) + 2) * EPS
    off_B = eps * np.linalg.norm(np.abs(V).T @ np.abs(model.B), axis=1)
    off_C = eps * np.linalg.norm(np.abs(model.C) @ np.abs(V), axis=0)
    sizes = np.linalg.norm(own.C, axis=0) * off_B + off_C * (np.linalg.norm(own.B, axis=1) + off_B)
    return DistanceBound(float(sizes @ own.peaks), float(sizes @ (1.0 / np.sqrt(2.0 * own.damping * own.stiffness))))


def _distance(own: Oscillators, V: Array, *, M: Array, D: Array, K: Array) -> DistanceBound:
    off_M = np.abs(V.T @ M @ V - np.eye(len(V))) + _rounded(V, M)
    off_D = np.abs(V.T @ D @ V - np.diag(own.damping)) + _rounded(V, D)
    off_K = np.abs(V.T @ K @ V - np.diag(own.stiffness)) + _rounded(V, K)
    root = np.sqrt(own.peaks)
    sizes = np.sqrt(np.outer(own.stiffness, own.stiffness))
    W = np.outer(root, root) * (off_K + math.sqrt(2.0) * np.sqrt(sizes) * off_D + 2.0 * sizes * off_M)
    lost = float(np.linalg.norm(W))
    if not lost < 0.5:
        return DistanceBound(math.inf, math.inf)
    inputs, outputs = np.linalg.norm(own.B, axis=1) ** 2, np.linalg.norm(own.C, axis=0) ** 2
    share = lost / (1.0 - lost)
    seen, moved = float(outputs @ own.peaks), float(inputs @ own.peaks)
    in_mean = 2.0 / math.pi * float(inputs @ (own.peaks * np.sqrt(2.0 * own.stiffness)))  # ∫ X dω/2π ≤ √(2k) h · 2/π
    return DistanceBound(share * math.sqrt(seen * moved), share * math.sqrt(seen * in_mean))


def _rounded(V: Array, matrix: Array) -> Array:
    """What rounding may have taken from every entry of Vᵀ matrix V."""
    return np.asarray(2.0 * (len(V) + 2) * EPS * (np.abs(V).T @ (np.abs(matrix) @ np.abs(V))))


def _filled(matrix: Any) -> Array:
    return np.asarray(matrix) if isinstance(matrix, np.ndarray) else np.asarray(matrix.toarray())


def not_definite_error(name: str, what: str) -> InvalidSystemError:
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
