"""A mechanical model as a sum of its modes, c_j b_j/(s² + d_j s + k_j): response, poles and peaks in closed form."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array, Complex
from ltinet.reduction.balancing import Matrices
from ltinet.tolerances import EPS, sum_rounding

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
            lost = sum_rounding(len(self)) + 4.0 * EPS * size * (omega[own] ** 2)[:, None]
            rounding[own] = (size * lost) @ sizes
        return values.reshape(len(omega), n_outputs, n_inputs), rounding

    @property
    def matrices(self) -> Matrices:
        """States (ξ, ξ'/w) of every mode, w near √k and a power of two: blocks [[0, w], [−k/w, −d]], exactly."""
        N, (p, m) = len(self), (len(self.C), self.B.shape[1])
        units = np.ldexp(1.0, np.rint(0.5 * np.log2(self.stiffness)).astype(np.intp))
        A, B, C = np.zeros((2 * N, 2 * N)), np.zeros((2 * N, m)), np.zeros((p, 2 * N))
        first, second = np.arange(0, 2 * N, 2), np.arange(1, 2 * N, 2)
        A[first, second], A[second, first], A[second, second] = units, -self.stiffness / units, -self.damping
        B[second], C[:, first] = self.B / units[:, None], self.C
        return Matrices(A, B, C, np.zeros((p, m)))
