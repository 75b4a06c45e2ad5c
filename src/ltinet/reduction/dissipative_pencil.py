"""Large sparse systems E x' = A x + B u, y = C x + D u, and proofs of definiteness and of a sector.

Definiteness. Units differ between rows of M: rotations beside translations, penalties beside stiffnesses. With powers of
two s_i near 1/√M_ii, N = S M S is exact and has a diagonal between 1/2 and 2. SuperLU factors in symmetric mode, without
pivoting: P X Pᵀ = L U with U = D Lᵀ up to rounding. Positive pivots of X prove that X + ΔX is positive definite for some
|ΔX_ij| ≤ 2(k + 1)·eps·√(X_ii X_jj) on the pattern of L, k the largest number of entries in a row of it (Demmel 1989 for
Cholesky; both triangles are rounded here, and the diagonal of X in the shift below). For max X_ii ≤ 2 there is X > −cI
with c = 4(k + 1)²·eps. Applied to X = N − νI − μS² with ν ≥ c,

    N > (ν − c) I + μS² ≥ μS²,    so that    λ_min(M) ≥ μ,    and    λ_min(N) ≥ ν − c,

where rounding is relative to the diagonal of N, 1, and not to the largest entry of M.

Sector. With S and N the symmetric part of −A and the skew part of A, |xᴴN x| ≤ γ xᴴS x. In coordinates that are
orthonormal for E the numerical range of A then lies in a sector of the left half plane, iω is at least ω/√(1 + γ²)
away from it, and ‖(iωE − A)⁻¹‖ ≤ √(1 + γ²)/|ω| as an operator from E⁻¹ to E. The proof is a factorisation of the
Hermitian γS + iN without pivoting, whose pivots are positive.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import SuperLU

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, Array, summation_tolerance
from ltinet.systems.sparse_lu import SingularMatrixError, factorize_superlu

# Definite matrices.

# Multiples of estimates of λ_min(M) and λ_min(N), in all below 1, for which a proof is tried. The estimates are upper
# bounds, which inverse iteration leaves within a factor of two as a rule; smaller multiples are proven where
# eigenvalues are close.
_DEFINITE_TRIES = ((0.5, 0.25), (0.1, 0.1), (0.01, 0.01))
_INVERSE_ITERATIONS = 6  # they sharpen the estimates only
SOLVE_COLUMNS = 32
"""Columns that are solved for at a time; memory only."""
Sparse = sparse.csc_array


@dataclass(frozen=True, eq=False)
class DefiniteMatrix:
    """Factored symmetric positive definite matrix M with proven lower bounds on eigenvalues."""

    matrix: Sparse
    factors: SuperLU | None
    """Factors of N = S M S; None for a diagonal matrix."""
    scale: Array
    """Diagonal of S, powers of two."""
    smallest: float
    """Lower bound on λ_min(M)."""
    smallest_scaled: float
    """Lower bound on λ_min(N)."""

    def solve(self, right: Array) -> Array:
        """Return M⁻¹ times columns; callers measure the residual."""
        if self.factors is None:
            return np.asarray(right / self.matrix.diagonal()[:, None])
        scale = self.scale[:, None]
        return np.asarray(scale * self.factors.solve(np.asarray(scale * right)))

    def inverse_root(self, Q: Array) -> Array:
        """Return a matrix X with ‖X y‖ at least ‖Q y‖ in the norm of M⁻¹, for Q with orthonormal columns.

        The residual of the solves, ρ = Q − M Z, changes inner products by at most ‖ρ‖/λ_min, which is added.
        """
        inner, residual, size_of_Z = np.empty((Q.shape[1], Q.shape[1])), 0.0, 0.0
        for start in range(0, Q.shape[1], SOLVE_COLUMNS):
            columns = Q[:, start : start + SOLVE_COLUMNS]
            Z = self.solve(columns)
            inner[:, start : start + SOLVE_COLUMNS] = Q.T @ Z
            residual = math.hypot(residual, np.linalg.norm(columns - self.matrix @ Z))
            size_of_Z = math.hypot(size_of_Z, np.linalg.norm(Z))
        error = residual / self.smallest + summation_tolerance(len(Q)) * size_of_Z
        values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
        return np.asarray(np.sqrt(np.maximum(values, 0.0) + error)[:, None] * vectors.T)


def prove_definite(matrix: Any) -> DefiniteMatrix | None:
    """Factor a symmetric matrix and prove that it is positive definite; None if it is not, or no proof succeeded."""
    M = sparse.csc_array(matrix)
    diagonal = M.diagonal()
    if not (diagonal > 0.0).all():
        return None
    scale, N = scale_to_unit_diagonal(M)
    if M.nnz == len(diagonal):
        return DefiniteMatrix(M, None, scale, float(np.min(diagonal)), float(np.min(N.diagonal())))
    factors = factor_symmetric(N)
    if factors is None:
        return None
    of_M, of_N = (_estimate_smallest(factors, scaling) for scaling in (scale, np.ones_like(scale)))
    for share, share_of_N in _DEFINITE_TRIES:
        shift, shift_of_N = share * of_M, share_of_N * of_N
        bound = _proven_smallest(sparse.csc_array(N - sparse.diags_array(shift_of_N + shift * scale**2)), shift_of_N)
        if bound is not None:
            return DefiniteMatrix(M, factors, scale, shift, bound)
    return None


def scale_to_unit_diagonal(M: Sparse) -> tuple[Array, Sparse]:
    """Return the diagonal of S and S M S, whose diagonal is between 1/2 and 2; powers of two round nothing."""
    scale = np.exp2(-np.rint(0.5 * np.log2(M.diagonal().real)))
    return scale, sparse.csc_array(sparse.diags_array(scale) @ M @ sparse.diags_array(scale))


def _estimate_smallest(factors: SuperLU, scale: Array) -> float:
    """Estimate λ_min(M), from above, by inverse iteration with M⁻¹ = S N⁻¹ S."""
    x = np.random.default_rng(0).standard_normal(len(scale))
    for _ in range(_INVERSE_ITERATIONS + 1):
        x /= np.linalg.norm(x)
        x = scale * factors.solve(scale * x)
    return 1.0 / float(np.linalg.norm(x))


def _proven_smallest(X: Sparse, shift: float) -> float | None:
    """Return ν − c for a shift ν if X = N − νI − μS² has positive pivots and ν ≥ 2c, else None."""
    factors = factor_symmetric(X)
    if factors is None or not (factors.U.diagonal() > 0.0).all():
        return None
    rounding = 4.0 * (max_row_entries(factors.L) + 1) ** 2 * EPS
    return shift - rounding if shift >= 2.0 * rounding else None


_PENCIL_TRIES = (0.9, 0.5, 0.1)  # multiples of an estimate of λ_min(K, M) for which a proof is tried


def smallest_pencil_eigenvalue(K: DefiniteMatrix, M: Sparse) -> float | None:
    """Return a lower bound μ on λ_min(K, M), proven by positive pivots of K − μM; None if no proof succeeded."""
    x = np.random.default_rng(0).standard_normal((M.shape[0], 1))
    for _ in range(_INVERSE_ITERATIONS):
        x = K.solve(M @ x)
        x /= np.linalg.norm(x)
    estimate = float((x.T @ (K.matrix @ x)).item() / (x.T @ (M @ x)).item())
    for share in _PENCIL_TRIES:
        if prove_definite(K.matrix - share * estimate * M) is not None:
            return share * estimate
    return None


def factor_symmetric(M: Sparse) -> SuperLU | None:
    """Factor without pivoting; None for a zero pivot, or where rows were exchanged after all."""
    try:
        factors: SuperLU = factorize_superlu(M, pivoting=0.0)
    except SingularMatrixError:
        return None
    return factors if np.array_equal(factors.perm_r, factors.perm_c) else None


def max_row_entries(L: Any) -> int:
    """Return the largest number of entries in a row of a sparse factor in CSC format."""
    return int(np.max(np.bincount(L.indices, minlength=1)))


# Systems.


@dataclass(frozen=True, eq=False)
class Pencil:
    """Sparse A and E (n × n), thin dense B (n × m) and C (p × n)."""

    A: Sparse
    E: Sparse
    B: Array
    C: Array
    D: Array

    @property
    def n_states(self) -> int:
        """Number of states."""
        return int(self.A.shape[0])

    @cached_property
    def is_symmetric(self) -> bool:
        """True if A and E are exactly symmetric."""
        return is_symmetric(self.A) and is_symmetric(self.E)

    @cached_property
    def dissipation(self) -> DefiniteMatrix | None:
        """S = −(A + Aᵀ)/2, if it is proven to be positive definite."""
        if not (self.E.diagonal() > 0.0).all() or not is_symmetric(self.E):
            return None
        return prove_definite(-self.A if self.is_symmetric else -0.5 * (self.A + self.A.T))

    @property
    def only_grows(self) -> bool:
        """True if E and A + Aᵀ are proven to be positive definite, so that all modes grow."""
        return self.mass is not None and prove_definite(self.A if self.is_symmetric else self.A + self.A.T) is not None

    @cached_property
    def mass(self) -> DefiniteMatrix | None:
        """E, if it is proven to be positive definite."""
        return prove_definite(self.E) if is_symmetric(self.E) else None


def make_pencil(A: Any, B: Any, C: Any, D: Any = None, E: Any = None) -> Pencil:
    """Return a pencil of validated matrices; E defaults to the identity, D to zero."""
    A = sparse.csc_array(A, dtype=np.float64)
    E = sparse.eye_array(A.shape[0], format="csc") if E is None else sparse.csc_array(E, dtype=np.float64)
    B, C = _to_dense(B), _to_dense(C)
    D = np.zeros((len(C), B.shape[1])) if D is None else _to_dense(D)
    return Pencil(A, E, B, C, D)


def _to_dense(matrix: Any) -> Array:
    dense: Any = matrix.toarray() if hasattr(matrix, "toarray") else matrix
    return np.ascontiguousarray(dense, dtype=np.float64)


def is_symmetric(matrix: Sparse) -> bool:
    """Return whether a matrix is exactly symmetric."""
    return not sparse.csc_array(matrix - matrix.T).data.any()


def absolute_product_norms(matrix: Sparse, V: Array) -> Array:
    """Return the norms of the columns of |matrix| |V|, to which the rounding of matrix V is relative."""
    sizes = abs(matrix)
    starts = range(0, V.shape[1], SOLVE_COLUMNS)
    pieces = [np.linalg.norm(sizes @ np.abs(V[:, start : start + SOLVE_COLUMNS]), axis=0) for start in starts]
    return np.concatenate([np.zeros(0), *pieces])


# Sectors.

_POWER_ITERATIONS = 12  # they sharpen the estimate only
_SECTOR_TRIES = (1.1, 2.0, 8.0)  # multiples of an estimate of γ, from below, for which a proof is tried


def sector_bound(system: Pencil, weight: DefiniteMatrix) -> float:
    """Return √(1 + γ²), or a little more; infinite if no γ could be proven. Each try is one complex factorization."""
    skew = sparse.csc_array(0.5 * (system.A - system.A.T))
    if skew.count_nonzero() == 0:
        return 1.0
    # The largest |eigenvalue| of S⁻¹N, from below; its eigenvalues are imaginary pairs, so norms are compared.
    x = np.random.default_rng(0).standard_normal((skew.shape[0], 1))
    size = 0.0
    for _ in range(_POWER_ITERATIONS):
        x = x / math.sqrt(float((x.T @ (weight.matrix @ x)).item()))
        x = weight.solve(skew @ x)
        size = math.sqrt(float((x.T @ (weight.matrix @ x)).item()))
    estimate = max(size, EPS)
    for share in _SECTOR_TRIES:
        rounding = _sector_rounding(share * estimate, skew, weight)
        if rounding is not None:
            return math.hypot(1.0, share * estimate + rounding / weight.smallest_scaled)
    return math.inf


def _sector_rounding(gamma: float, skew: Sparse, weight: DefiniteMatrix) -> float | None:
    """Bound c for which γS + iN ≥ −c times the square of the inverse scale, itself at most S/λ_min of the scaled S.

    None if a pivot of the scaled matrix is not positive.
    """
    scaling = sparse.diags_array(weight.scale)
    factors = factor_symmetric(sparse.csc_array(scaling @ (gamma * weight.matrix + 1j * skew) @ scaling))
    if factors is None:
        return None
    pivots = factors.U.diagonal()
    if not (np.isfinite(pivots).all() and (pivots.real > 0.0).all()):
        return None
    k = max_row_entries(factors.L)
    imaginary = float(np.max(np.abs(pivots.imag)))  # pivots are real except for rounding
    return 8.0 * (k + 1) ** 2 * EPS * gamma + imaginary
