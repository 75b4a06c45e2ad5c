"""A system projected onto a basis, and the space that all its residuals lie in.

With VᵀE V = I the model is A_r = VᵀA V, b = VᵀB, c = C V. With y = (s − A_r)⁻¹b the states V y leave the residual
R_b(s) = (B − E V b) + (A V − E V A_r) y, and R_c(s) likewise for the outputs, with Aᵀ and z = (s − A_rᵀ)⁻¹cᵀ. For a
symmetric system and rational Krylov spaces all of these columns lie in a space of m + p dimensions.
"""

import math
from dataclasses import dataclass

import numpy as np

from ltinet.arrays import Array
from ltinet.once import cached_property
from ltinet.reduction.pencil import Pencil, Sparse
from ltinet.reduction.states import DampedStates, Rayleigh, ReducedStates
from ltinet.tolerances import EPS

_ROWS, _COLUMNS = 2**14, 16  # that are turned, and looked at, at a time
_NOISE = 16.0 * EPS  # of the largest eigenvalue of a Gram matrix: below, it is rounding


@dataclass(frozen=True, eq=False)
class Projection:
    """A_r, b, c, in coordinates in which the symmetric part of A_r is diagonal."""

    A: Array
    B: Array
    C: Array
    E: Array
    """VᵀE V, the identity up to rounding."""
    projected: Array
    """VᵀA V as it was computed: A_r, but for a symmetric system not quite diagonal."""
    moved: Array
    """Euclidean norms of the columns of A V, `(N,)`."""
    damping: Rayleigh | None = None
    """Of a mechanical model with M = E and K = −A, whose residuals are those of (E, A) at σ(s) in the place of s."""

    @cached_property
    def inputs(self) -> ReducedStates | DampedStates:
        """(s − A_r)⁻¹b."""
        return self._states(self.A, self.B)

    @cached_property
    def outputs(self) -> ReducedStates | DampedStates:
        """(s − A_rᵀ)⁻¹cᵀ."""
        return self._states(self.A.T, self.C.T)

    def _states(self, A: Array, B: Array) -> ReducedStates | DampedStates:
        return ReducedStates(A, B) if self.damping is None else DampedStates(A, B, self.damping)


@dataclass(frozen=True, eq=False)
class Combination:
    """R(s) = Q (first + rest·y(s)) up to `off` in the Euclidean norm, at any frequency."""

    first: Array
    rest: Array
    off: float


@dataclass(frozen=True, eq=False)
class ResidualSpace:
    """An orthonormal basis Q (n × q) of all residuals, and both residuals in it."""

    Q: Array
    inputs: Combination
    outputs: Combination
    mass: float
    """A bound on ‖E V‖: √‖E‖, because VᵀE V = I."""


def project(system: Pencil, V: Array, *, damping: Rayleigh | None = None) -> tuple[Projection, Array]:
    """Project a system onto an E-orthonormal basis; the basis comes back turned as the projection is."""
    symmetric_part = V.T @ (system.A @ V)
    _, turn = np.linalg.eigh(0.5 * (symmetric_part + symmetric_part.T))
    V = V @ turn
    AV = np.asarray(system.A @ V)
    full = V.T @ AV
    A_r = np.diag(full.diagonal()) if system.is_symmetric else full  # any A_r will do: residuals tell what it costs
    E_r = V.T @ (system.E @ V)
    return Projection(A_r, V.T @ system.B, system.C @ V, E_r, full, np.linalg.norm(AV, axis=0), damping), V


def residual_space(system: Pencil, own: Projection, V: Array) -> ResidualSpace:
    """The space of the residuals, without directions that are rounding; what is left out is counted in `off`."""
    EV = np.asarray(system.E @ V)
    first_b, first_c = system.B - EV @ own.B, system.C.T - EV @ own.C.T
    rest_b = np.asarray(system.A @ V) - EV @ own.A
    rest_c = rest_b if system.is_symmetric else np.asarray(system.A.T @ V) - EV @ own.A.T
    in_b, in_c = own.inputs.largest, own.outputs.largest
    del EV
    both = ((rest_b, np.maximum(in_b, in_c)),) if system.is_symmetric else ((rest_b, in_b), (rest_c, in_c))
    Q = _orthonormal(_side_by_side((first_b, 1.0), (first_c, 1.0), *both))
    rounded, ends = _rounded(system, own, V), 4.0 * EPS * math.sqrt(len(own.A))
    rounded_b = ends * float(np.linalg.norm(system.B)) + float(rounded @ in_b)
    rounded_c = ends * float(np.linalg.norm(system.C)) + float(rounded @ in_c)
    return ResidualSpace(
        Q,
        _combination(Q, first_b, rest_b, in_b, rounded_b),
        _combination(Q, first_c, rest_c, in_c, rounded_c),
        mass=1.01 * math.sqrt(float(abs(system.E).sum(axis=0).max())),
    )


def _combination(Q: Array, first: Array, rest: Array, largest: Array, rounded: float) -> Combination:
    """Both parts in the basis; what is left of them counts with the largest values of the states."""
    in_first, in_rest = Q.T @ first, Q.T @ rest
    left = float(np.linalg.norm(first - Q @ in_first))
    for begin in range(0, rest.shape[1], _COLUMNS):
        own = slice(begin, begin + _COLUMNS)
        left += float(np.linalg.norm(rest[:, own] - Q @ in_rest[:, own], axis=0) @ largest[own])
    return Combination(in_first, in_rest, left + rounded)


def _side_by_side(*scaled: tuple[Array, Array | float]) -> Array:
    """Columns times their scales, written once: all of them together are the largest array of a reduction."""
    ends = np.cumsum([own.shape[1] for own, _ in scaled])
    together = np.empty((len(scaled[0][0]), ends[-1]))
    for end, (own, scale) in zip(ends, scaled, strict=True):
        np.multiply(own, scale, out=together[:, end - own.shape[1] : end])
    return together


def _orthonormal(columns: Array) -> Array:
    """An orthonormal basis of the span, in the place of the columns, by two rounds of the Gram matrix."""
    for noise in (_NOISE * columns.shape[1], 0.0):
        values, vectors = np.linalg.eigh(columns.T @ columns)
        kept = values > noise * np.max(values, initial=0.0)
        turn = vectors[:, kept] / np.sqrt(values[kept])
        for begin in range(0, len(columns), _ROWS):
            rows = columns[begin : begin + _ROWS]
            rows[:, : turn.shape[1]] = rows @ turn
        columns = columns[:, : turn.shape[1]]
    return columns


def _rounded(system: Pencil, own: Projection, V: Array) -> Array:
    """What rounding left in the columns of A V − E V A_r, `(N,)`: each entry is a sum of a few products."""
    n_terms = int(np.max(np.diff(system.A.tocsr().indptr), initial=1)) + 2
    lengths = np.linalg.norm(V, axis=0)
    return np.asarray(n_terms * EPS * (_size(system.A) * lengths + _size(system.E) * (lengths @ np.abs(own.A))))


def _size(matrix: Sparse) -> float:
    """A bound on the norm of |matrix|."""
    sizes = abs(matrix)
    return math.sqrt(float(sizes.sum(axis=0).max()) * float(sizes.sum(axis=1).max()))
