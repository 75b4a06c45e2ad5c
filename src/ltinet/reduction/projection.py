"""A system projected onto a basis, and the space that all its residuals lie in.

With VᵀE V = I the model is A_r = VᵀA V, b = VᵀB, c = C V. With y = (s − A_r)⁻¹b the states V y leave the residual
R_b(s) = (B − E V b) + (A V − E V A_r) y, and R_c(s) likewise for the outputs, with Aᵀ and z = (s − A_rᵀ)⁻¹cᵀ. For a
symmetric system and rational Krylov spaces all of these columns lie in a space of m + p dimensions.
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ltinet.analysis.resolvent import solve_triangle
from ltinet.arrays import Array
from ltinet.once import cached_property
from ltinet.reduction.pencil import Pencil
from ltinet.reduction.supremum import Complex, places_for
from ltinet.tolerances import EPS

_NOISE = 16.0 * EPS  # of the largest eigenvalue of a Gram matrix: below, it is rounding


@dataclass(frozen=True, eq=False)
class ReducedStates:
    """y(iω) = (iω − A_r)⁻¹b for many ω, from one Schur form."""

    A: Array
    B: Array

    @cached_property
    def schur(self) -> tuple[Complex, Complex]:
        """S and U with A_r = U S Uᴴ."""
        S, U = linalg.schur(self.A, output="complex", check_finite=False)
        return np.asarray(S), np.asarray(U)

    @property
    def poles(self) -> Complex:
        """The eigenvalues of A_r."""
        return np.asarray(self.schur[0].diagonal())

    def at(self, omega: Array) -> Complex:
        """y(iω), `(K, N, m)`."""
        S, U = self.schur
        turned = solve_triangle(S, 1j * omega, (U.conj().T @ self.B)[:, None, :])
        return np.asarray(np.einsum("ij,jkm->kim", U, turned))


@dataclass(frozen=True, eq=False)
class Projection:
    """A_r, b, c, in coordinates in which the symmetric part of A_r is diagonal."""

    A: Array
    B: Array
    C: Array
    E: Array
    """VᵀE V, the identity up to rounding."""
    moved: Array
    """Euclidean norms of the columns of A V, `(N,)`."""

    @cached_property
    def inputs(self) -> ReducedStates:
        """(s − A_r)⁻¹b."""
        return ReducedStates(self.A, self.B)

    @cached_property
    def outputs(self) -> ReducedStates:
        """(s − A_rᵀ)⁻¹cᵀ."""
        return ReducedStates(self.A.T, self.C.T)


@dataclass(frozen=True, eq=False)
class Combination:
    """R(s) = Q (first + rest·y(s)) up to columns of R that are `off` in the Euclidean norm: (m,) and (N,)."""

    first: Array
    rest: Array
    off_first: Array
    off_rest: Array


@dataclass(frozen=True, eq=False)
class ResidualSpace:
    """An orthonormal basis Q (n × q) of all residuals, and both residuals in it."""

    Q: Array
    inputs: Combination
    outputs: Combination


def project(system: Pencil, V: Array) -> tuple[Projection, Array]:
    """Project a system onto an E-orthonormal basis; the basis comes back turned as the projection is."""
    symmetric_part = V.T @ (system.A @ V)
    _, turn = np.linalg.eigh(0.5 * (symmetric_part + symmetric_part.T))
    V = V @ turn
    AV = np.asarray(system.A @ V)
    A_r = V.T @ AV
    if system.is_symmetric:
        A_r = 0.5 * (A_r + A_r.T)
    E_r = V.T @ (system.E @ V)
    return Projection(A_r, V.T @ system.B, system.C @ V, E_r, np.linalg.norm(AV, axis=0)), V


def residual_space(system: Pencil, own: Projection, V: Array) -> ResidualSpace:
    """The space of the residuals, without directions that are rounding; what is left out is counted in `off`."""
    EV = np.asarray(system.E @ V)
    first_b, first_c = system.B - EV @ own.B, system.C.T - EV @ own.C.T
    rest_b = np.asarray(system.A @ V) - EV @ own.A
    rest_c = rest_b if system.is_symmetric else np.asarray(system.A.T @ V) - EV @ own.A.T
    weight_b, weight_c = _largest(own.inputs), _largest(own.outputs)
    both = (rest_b * np.maximum(weight_b, weight_c),) if system.is_symmetric else (rest_b * weight_b, rest_c * weight_c)
    Q = _orthonormal(np.hstack([first_b, first_c, *both]))
    rounded = _rounded(system, own, V)
    ends = EPS * np.sqrt(len(own.A)) * 4.0
    in_b = _combination(Q, first_b, rest_b, ends * np.linalg.norm(system.B, axis=0), rounded)
    in_c = _combination(Q, first_c, rest_c, ends * np.linalg.norm(system.C, axis=1), rounded)
    return ResidualSpace(Q, in_b, in_c)


def _combination(Q: Array, first: Array, rest: Array, rounded_first: Array, rounded_rest: Array) -> Combination:
    in_first, in_rest = Q.T @ first, Q.T @ rest
    left_first = np.linalg.norm(first - Q @ in_first, axis=0)
    left_rest = np.linalg.norm(rest - Q @ in_rest, axis=0)
    return Combination(in_first, in_rest, left_first + rounded_first, left_rest + rounded_rest)


def _largest(states: ReducedStates) -> Array:
    """About the largest of each state over all frequencies, `(N,)`."""
    return np.asarray(np.linalg.norm(states.at(places_for(states.poles).omega), axis=2).max(axis=0, initial=0.0))


def _orthonormal(columns: Array) -> Array:
    """An orthonormal basis of the span, by two rounds of the Gram matrix."""
    for noise in (_NOISE * columns.shape[1], 0.0):
        values, vectors = np.linalg.eigh(columns.T @ columns)
        kept = values > noise * np.max(values, initial=0.0)
        columns = columns @ (vectors[:, kept] / np.sqrt(values[kept]))
    return np.asarray(columns)


def _rounded(system: Pencil, own: Projection, V: Array) -> Array:
    """What rounding left in the columns of A V − E V A_r, `(N,)`: each entry is a sum of a few products."""
    size = np.abs(V)
    n_terms = int(np.max(np.diff(system.A.tocsr().indptr), initial=1)) + 2
    moved = np.linalg.norm(abs(system.A) @ size, axis=0)
    lengths = np.linalg.norm(abs(system.E) @ size, axis=0)
    return np.asarray(n_terms * EPS * (moved + lengths @ np.abs(own.A)))
