"""Modes of mechanical models as oscillators, Σ c_j b_j/(s² + d_j s + k_j), and selection of the dominant ones.

Peaks and contributions of single modes are known in closed form. The modes with the largest contributions are kept,
as many as requested or as few as meet a tolerance.

All modes of a small model. With computed modes V, q = V ξ is exact for any regular V: VᵀM V = I + Ω, VᵀD V = diag(d)
+ Δ_D and VᵀK V = diag(k) + Δ_K are measured. With ΔP = s²Ω + sΔ_D + Δ_K and the diagonal X of all 1/|k − ω² + iωd| ≤
h the norm of X^½ ΔP X^½ is at most that of the matrix W of √(h_i h_j)(|Δ_K| + √2 (k_i k_j)^¼ |Δ_D| + 2 √(k_i k_j)
|Ω|), because ω/|k − ω² + iωd| ≤ √(2k) h and ω²/|k − ω² + iωd| ≤ 2k h. Then ‖G − Σ c b/(…)‖ ≤ ‖C V X^½‖ ‖W‖/(1 − ‖W‖)
‖X^½ VᵀB‖.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet._util.floating_point import EPS, Array, Complex, summation_tolerance
from ltinet._util.frequency_supremum import (
    COARSE_SPACING,
    PHASE_SPACING,
    frequency_grid,
    frobenius_norms,
    mean_square,
    spectral_norms,
)
from ltinet.errors import InvalidSystemError
from ltinet.reduction.balanced_truncation import StateSpaceMatrices, bisect_smallest
from ltinet.reduction.dissipative_pencil import prove_definite
from ltinet.reduction.modal_form import sum_modes
from ltinet.reduction.separation import DistanceBound
from ltinet.systems.second_order_matrices import SecondOrderMatrices

_ROUND_UP = 1.0 + 16.0 * EPS  # covers the rounding of a few operations
_MAX_FINE_MODES = 200  # number of modes up to which a fine grid is cheap; any grid gives a bound


# Oscillators: response, poles and peaks in closed form.


def peak_gains(stiffness: Array, damping: Array) -> Array:
    """Return sup over ω of 1/|k − ω² + iωd| for k, d > 0: at ω² = k − d²/2, or at zero where that is negative."""
    under_root = stiffness - 0.25 * damping**2
    with np.errstate(invalid="ignore", divide="ignore"):
        peaks = 1.0 / (damping * np.sqrt(under_root))
    return np.asarray(np.where(damping**2 < 2.0 * stiffness, peaks, 1.0 / stiffness) * _ROUND_UP)


@dataclass(frozen=True, eq=False)
class _Modes:
    """Modes with stiffnesses k (N,), a damping, B (N × m) and C (p × N)."""

    stiffness: Array
    damping: Array
    B: Array
    C: Array

    def __len__(self) -> int:
        return len(self.stiffness)

    @property
    def units(self) -> Array:
        """Powers of two near √k, in units of which velocities are states, so that nothing is rounded."""
        return np.ldexp(1.0, np.rint(0.5 * np.log2(self.stiffness)).astype(np.intp))


@final
class Oscillators(_Modes):
    """Modes ξ_j'' + d_j ξ_j' + k_j ξ_j = b_j u, y = Σ c_j ξ_j: all k and d (N,) positive."""

    @property
    def poles(self) -> Complex:
        """Both poles of every mode, without cancellation."""
        half = 0.5 * self.damping
        under = np.sqrt(np.maximum(self.stiffness - half**2, 0.0))
        over = np.sqrt(np.maximum(half**2 - self.stiffness, 0.0))
        far = -(half + over)
        near = np.where(over > 0.0, self.stiffness / far, -half)
        return np.concatenate([far + 1j * under, near - 1j * under])

    @property
    def peaks(self) -> Array:
        """Largest gain of every mode from its force to its position."""
        return peak_gains(self.stiffness, self.damping)

    @property
    def contributions(self) -> Array:
        """Largest gain of every mode from inputs to outputs, in closed form."""
        return np.asarray(np.linalg.norm(self.B, axis=1) * np.linalg.norm(self.C, axis=0) * self.peaks * _ROUND_UP)

    @property
    def ranking(self) -> NDArray[np.intp]:
        """Indices of the modes by falling contribution."""
        return np.argsort(-self.contributions, kind="stable")

    def select(self, indices: NDArray[np.bool_] | NDArray[np.intp]) -> "Oscillators":
        """Return some of the modes."""
        return Oscillators(self.stiffness[indices], self.damping[indices], self.B[indices], self.C[:, indices])

    def gains(self, omega: Array) -> Complex:
        """Return 1/(k − ω² + iωd), `(K, N)`."""
        return np.asarray(1.0 / ((self.stiffness - (omega**2)[:, None]) + 1j * omega[:, None] * self.damping))

    def response(self, omega: Array) -> tuple[Complex, Array]:
        """Return Σ c b/(k − ω² + iωd), `(K, p, m)`, and a bound on its rounding error, `(K,)`.

        k − ω² cancels near a resonance, by 2 eps ω² against the absolute value of the denominator, which is counted.
        """
        sizes = np.linalg.norm(self.B, axis=1) * np.linalg.norm(self.C, axis=0)

        def gains_and_rounding(omega: Array) -> tuple[Complex, Array]:
            gains = self.gains(omega)
            size = np.abs(gains)
            relative = summation_tolerance(len(self)) + 4.0 * EPS * size * (omega**2)[:, None]
            return gains, (size * relative) @ sizes

        return sum_modes(gains_and_rounding, omega, self.B, self.C)

    @property
    def matrices(self) -> StateSpaceMatrices:
        """States (ξ, ξ'/w) of every mode, w near √k: blocks [[0, w], [−k/w, −d]]."""
        N, (p, m), units = len(self), (len(self.C), self.B.shape[1]), self.units
        A, B, C = np.zeros((2 * N, 2 * N)), np.zeros((2 * N, m)), np.zeros((p, 2 * N))
        first, second = np.arange(0, 2 * N, 2), np.arange(1, 2 * N, 2)
        A[first, second], A[second, first], A[second, second] = units, -self.stiffness / units, -self.damping
        B[second], C[:, first] = self.B / units[:, None], self.C
        return StateSpaceMatrices(A, B, C, np.zeros((p, m)))


@final
class CoupledOscillators(_Modes):
    """Modes ξ'' + Δ ξ' + diag(k) ξ = b u, y = c ξ that a full damping Δ (N × N) couples."""

    def select(self, indices: NDArray[np.intp]) -> "CoupledOscillators":
        """Return some of the modes, with the positions of the others fixed at zero."""
        damping = self.damping[np.ix_(indices, indices)]
        return CoupledOscillators(self.stiffness[indices], damping, self.B[indices], self.C[:, indices])

    @property
    def uncoupled(self) -> Oscillators:
        """Modes with their own damping only, positive at least by rounding, to rank them by."""
        damping = np.maximum(self.damping.diagonal(), EPS * np.sqrt(self.stiffness))
        return Oscillators(self.stiffness, np.asarray(damping), self.B, self.C)

    @property
    def matrices(self) -> StateSpaceMatrices:
        """First-order states: all ξ, then all ξ'/w with w near √k."""
        N, (p, m), units = len(self), (len(self.C), self.B.shape[1]), self.units
        below = [-np.diag(self.stiffness / units), -self.damping * units / units[:, None]]
        A = np.block([[np.zeros((N, N)), np.diag(units)], below])
        B, C = np.vstack([np.zeros((N, m)), self.B / units[:, None]]), np.hstack([self.C, np.zeros((p, N))])
        return StateSpaceMatrices(A, B, C, np.zeros((p, m)))


# Selection of the modes with the largest contributions.


@dataclass(frozen=True, eq=False)
class SelectedModes:
    """Selected oscillators, and the error of leaving out the others."""

    oscillators: Oscillators
    error: float
    """Sup of the response of the modes left out over all frequencies, rounding included."""
    h2_bound: Callable[[], float]
    """Function that computes the H2 norm of that response."""
    peak: float
    """Sup of the response of the selected modes, or a little less."""


def select_modes(modes: Oscillators, count: int) -> SelectedModes:
    """Select the `count` modes with the largest contributions."""
    ranking = modes.ranking
    selected, rest = modes.select(np.sort(ranking[:count])), modes.select(np.sort(ranking[count:]))

    def squares(omega: Array) -> Array:
        values, rounding = rest.response(omega)
        return np.asarray((frobenius_norms(values) + rounding) ** 2)

    error = 0.0
    if len(rest):  # the lesser of the supremum on a grid and the sum of all contributions
        grid = frequency_grid(rest.poles, spacing=PHASE_SPACING if len(rest) <= _MAX_FINE_MODES else COARSE_SPACING)
        values, rounding = rest.response(grid.omega)
        supremum = grid.supremum(spectral_norms(values) + rounding, 0.0)
        error = min(supremum, float(np.sum(rest.contributions)))
    return SelectedModes(selected, error, lambda: math.sqrt(mean_square(rest.poles, squares)), _peak(selected))


def select_modes_to_tolerance(modes: Oscillators, *, tolerance: float, already: float) -> SelectedModes:
    """Select the fewest modes with an error of at most `tolerance` times the largest gain, `already` included.

    If no selection suffices, all modes are returned.
    """
    contributions, ranking = np.sort(modes.contributions), modes.ranking
    smallest_sums = np.concatenate([[0.0], np.cumsum(contributions)])  # of the smallest 0, 1, 2, …

    def is_enough(count: int) -> bool:
        allowed = tolerance * _peak(modes.select(ranking[:count])) - already
        return bool(smallest_sums[len(modes) - count] <= allowed) or select_modes(modes, count).error <= allowed

    n = len(modes)
    return select_modes(modes, bisect_smallest(0, n, n, reduce=lambda count: count, is_enough=is_enough))


def _peak(modes: Oscillators) -> float:
    """Return the largest gain at zero and at the peaks of single modes."""
    peaks = np.sqrt(np.maximum(modes.stiffness - 0.5 * modes.damping**2, 0.0))
    values: Complex = modes.response(np.append(peaks, 0.0))[0]
    return float(np.max(spectral_norms(values), initial=0.0))


# All modes of a small model.


@dataclass(frozen=True, eq=False)
class CompleteModes:
    """All modes of a model, with the damping that couples them."""

    oscillators: Oscillators
    damping: Array
    """VᵀD V, n × n."""
    distance: DistanceBound
    """Distance of the model from its oscillators without coupling; infinite where the coupling is strong."""


def compute_all_modes(model: SecondOrderMatrices) -> CompleteModes:
    """Solve K v = k M v. O(n³).

    Raises:
        InvalidSystemError: M or K is not symmetric positive definite, or a mode is not damped.
    """
    M, D, K = (
        np.asarray(matrix if isinstance(matrix, np.ndarray) else matrix.toarray())
        for matrix in (model.M, model.D, model.K)
    )
    for name, matrix in (("M", M), ("K", K)):
        if not np.array_equal(matrix, matrix.T):
            raise not_symmetric_error(name)
    try:
        stiffness, V = linalg.eigh(K, M, check_finite=False)
    except linalg.LinAlgError:
        raise not_definite_error("M", "is not positive definite") from None
    if not stiffness[0] > len(K) * EPS * stiffness[-1]:
        if prove_definite(K) is not None:
            raise InvalidSystemError(
                f"K is positive definite, but its slowest mode is lost in the rounding of the stiffest: eigenvalues of "
                f"(K, M) reach {stiffness[-1]:.1e}; use fewer elements, or elements of higher order"
            )
        raise not_definite_error("K", "is not positive definite")
    coupling = V.T @ (D @ V)
    damping = coupling.diagonal().copy()
    require_damped(damping, stiffness)
    modes = Oscillators(np.asarray(stiffness), damping, V.T @ model.B, model.C @ V)
    off, ends = _modal_distance(modes, V, M=M, D=D, K=K), _input_output_rounding(modes, V, model)
    return CompleteModes(modes, coupling, DistanceBound(off.peak + ends.peak, off.h2 + ends.h2))


def _input_output_rounding(modes: Oscillators, V: Array, model: SecondOrderMatrices) -> DistanceBound:
    """Bound the effect of rounding in VᵀB and C V: each mode with its largest gain, and its H2 norm 1/√(2dk)."""
    eps = (len(V) + 2) * EPS
    off_B = eps * np.linalg.norm(np.abs(V).T @ np.abs(model.B), axis=1)
    off_C = eps * np.linalg.norm(np.abs(model.C) @ np.abs(V), axis=0)
    sizes = np.linalg.norm(modes.C, axis=0) * off_B + off_C * (np.linalg.norm(modes.B, axis=1) + off_B)
    h2_norms = 1.0 / np.sqrt(2.0 * modes.damping * modes.stiffness)
    return DistanceBound(float(sizes @ modes.peaks), float(sizes @ h2_norms))


def _modal_distance(modes: Oscillators, V: Array, *, M: Array, D: Array, K: Array) -> DistanceBound:
    """Bound the distance of the model from its oscillators by the norm of W (see the top of the module)."""
    off_M = np.abs(V.T @ M @ V - np.eye(len(V))) + _congruence_rounding(V, M)
    off_D = np.abs(V.T @ D @ V - np.diag(modes.damping)) + _congruence_rounding(V, D)
    off_K = np.abs(V.T @ K @ V - np.diag(modes.stiffness)) + _congruence_rounding(V, K)
    root = np.sqrt(modes.peaks)
    sizes = np.sqrt(np.outer(modes.stiffness, modes.stiffness))
    W = np.outer(root, root) * (off_K + math.sqrt(2.0) * np.sqrt(sizes) * off_D + 2.0 * sizes * off_M)
    norm = float(np.linalg.norm(W))
    if not norm < 0.5:
        return DistanceBound(math.inf, math.inf)
    inputs, outputs = np.linalg.norm(modes.B, axis=1) ** 2, np.linalg.norm(modes.C, axis=0) ** 2
    relative = norm / (1.0 - norm)
    of_outputs, of_inputs = float(outputs @ modes.peaks), float(inputs @ modes.peaks)
    # ∫ X dω/2π ≤ √(2k) h · 2/π
    in_mean = 2.0 / math.pi * float(inputs @ (modes.peaks * np.sqrt(2.0 * modes.stiffness)))
    return DistanceBound(relative * math.sqrt(of_outputs * of_inputs), relative * math.sqrt(of_outputs * in_mean))


def _congruence_rounding(V: Array, matrix: Array) -> Array:
    """Bound the rounding of every entry of Vᵀ matrix V."""
    return np.asarray(2.0 * (len(V) + 2) * EPS * (np.abs(V).T @ (np.abs(matrix) @ np.abs(V))))


def not_definite_error(name: str, problem: str) -> InvalidSystemError:
    """Return the error for an M or K that is not symmetric positive definite."""
    remedies = {
        "M": "give every position a mass, or eliminate those without",
        "K": "constrain positions that are free to move, or reduce ltinet.as_state_space(model), which keeps free "
        "motions of up to 1,500 positions",
    }
    return InvalidSystemError(f"{name} {problem}, so that the model has no modes to choose from; {remedies[name]}")


def not_symmetric_error(name: str) -> InvalidSystemError:
    """Return the error for an M or K that is not symmetric."""
    return InvalidSystemError(
        f"{name} is not symmetric, so that the model has no modes to choose from; pass ({name} + {name}.T)/2 if rounding "
        f"is the cause, or {name} + {name}.T - diag({name}) if only half of it is stored"
    )


def require_damped(damping: Array, stiffness: Array) -> None:
    """Refuse modes whose gain is infinite.

    Raises:
        InvalidSystemError: a mode is not damped.
    """
    least = EPS * np.sqrt(stiffness)
    if (damping > least).all():
        return
    index = int(np.argmin(damping - least))
    raise InvalidSystemError(
        f"the mode at {math.sqrt(stiffness[index]):.4g} rad per unit of time is not damped (d = {damping[index]:.1e}), "
        "so that its gain is infinite; add damping, such as D = alpha * M + beta * K"
    )
