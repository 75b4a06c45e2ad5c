"""A system whose modes lie too close together to stand apart: quasi-triangular, in orthonormal coordinates."""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ltinet.arrays import Array, Complex
from ltinet.once import cached_property
from ltinet.reduction.complex_triangle import solve_triangle
from ltinet.tolerances import EPS

_CHUNK = 1 << 20  # complex numbers held at a time


@dataclass(frozen=True, eq=False)
class Triangular:
    """z' = F z + G u, y = H z with a real, quasi-triangular F."""

    F: Array
    G: Array
    H: Array

    @property
    def n_states(self) -> int:
        """The number of states."""
        return len(self.F)

    @cached_property
    def schur(self) -> tuple[Complex, Complex]:
        """S and U with F = U S Uᴴ."""
        S, U = linalg.rsf2csf(self.F, np.eye(len(self.F)))
        return np.asarray(S, dtype=np.complex128), np.asarray(U, dtype=np.complex128)

    @property
    def poles(self) -> Complex:
        """The eigenvalues of F."""
        return np.asarray(self.schur[0].diagonal())

    def advanced(self, columns: Array) -> Array:
        """F times columns."""
        return np.asarray(self.F @ columns)

    def integrated(self, columns: Array) -> Array:
        """F⁻¹ times columns."""
        return np.asarray(linalg.solve(self.F, columns, check_finite=False))

    def factors(self) -> tuple[Array, Array]:
        """Real L and R with P = L Lᵀ and Q = R Rᵀ; F is stable."""
        P = linalg.solve_continuous_lyapunov(self.F, -self.G @ self.G.T)
        Q = linalg.solve_continuous_lyapunov(self.F.T, -self.H.T @ self.H)
        return _root(np.asarray(P)), _root(np.asarray(Q))

    def response(self, omega: Array) -> tuple[Complex, Array]:
        """H(iω) − D, `(K, p, m)`, and a bound on what rounding took from it, `(K,)`.

        Back substitution solves a system whose entries are off by n·eps; the triangle itself is off by as much.
        """
        S, U = self.schur
        G, H = U.conj().T @ self.G, self.H @ U
        values = np.empty((len(omega), len(self.H), self.G.shape[1]), dtype=np.complex128)
        rounding = np.empty(len(omega))
        chunk = max(1, _CHUNK // max(S.size, 1))
        for start in range(0, len(omega), chunk):
            own = slice(start, start + chunk)
            values[own], sizes = triangle_response(S, G, H, omega[own])
            rounding[own] = 20.0 * len(S) * EPS * (np.linalg.norm(S) + omega[own]) * sizes
        return values, rounding


def triangle_response(S: Complex, G: Complex, H: Complex, omega: Array) -> tuple[Complex, Array]:
    """H (iω − S)⁻¹ G, and ‖H (iω − S)⁻¹‖ ‖(iω − S)⁻¹ G‖, which what is wrong with S is multiplied by."""
    s = np.asarray(1j * omega, dtype=np.complex128)
    X = solve_triangle(S, s, G[:, None, :])
    Y = solve_triangle(S.T[::-1, ::-1], s, np.ascontiguousarray(H.T[::-1, None, :]))[::-1]
    values = np.einsum("pi,ikm->kpm", H, X)
    sizes = np.linalg.norm(X, axis=(0, 2)) * np.linalg.norm(Y, axis=(0, 2))
    return np.asarray(values), np.asarray(sizes)


def _root(gramian: Array) -> Array:
    """L with L Lᵀ = the Gramian, in units in which its diagonal is one; what is negative is rounding."""
    gramian = 0.5 * (gramian + gramian.T)
    units = np.sqrt(np.maximum(gramian.diagonal(), 0.0))
    safe = np.where(units > 0.0, units, 1.0)
    values, vectors = np.linalg.eigh(gramian / safe[:, None] / safe)
    return np.asarray(units[:, None] * vectors * np.sqrt(np.maximum(values, 0.0)))
