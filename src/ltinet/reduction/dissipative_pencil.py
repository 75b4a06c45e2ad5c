"""Large sparse systems E x' = A x + B u, y = C x + D u, and proofs of definiteness and of a sector.

Definiteness. SuperLU in symmetric mode, without pivoting: P M Pᵀ = L U with U = D Lᵀ up to rounding. Positive pivots
prove that M + ΔM is positive definite for |ΔM_ij| ≤ 2k·eps·√(M_ii M_jj) on the pattern of L, k the largest number of
entries in a row of it (Demmel 1989 for Cholesky; both triangles are rounded here), so that λ_min(M) ≥ −c with c =
2k²·eps·max M_ii.

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
from ltinet._util.floating_point import EPS, Array
from ltinet.systems.sparse_lu import SingularMatrixError, factorize_superlu

# MERGED ltinet.reduction.dissipative_pencil
# Symmetric positive definite sparse matrices: a factorisation whose pivots prove it, and solves with it.
#
# SuperLU in symmetric mode, without pivoting: P M Pᵀ = L U with U = D Lᵀ up to rounding. All pivots positive prove that
# M + ΔM is positive definite for |ΔM_ij| ≤ 2k·eps·√(M_ii M_jj) on the pattern of L, k the most entries of a row of it
# (Demmel 1989 for Cholesky; both triangles are rounded here), so that λ_min(M) ≥ −c with c = 2k²·eps·max M_ii.

_DEFINITE_TRIES = (0.5, 0.1, 0.01)  # of an estimate of the smallest eigenvalue
_INVERSE_ITERATIONS = 6  # of inverse iteration


@dataclass(frozen=True, eq=False)
class DefiniteMatrix:
    """A symmetric positive definite matrix that can be solved with, and a proven lower bound of its eigenvalues."""

    matrix: sparse.csc_array
    factors: SuperLU | None
    """None for a diagonal matrix."""
    smallest: float

    def solve(self, right: Array) -> Array:
        """M⁻¹ times columns; what they leave is for the caller to measure."""
        if self.factors is None:
            return np.asarray(right / self.matrix.diagonal()[:, None])
        return np.asarray(self.factors.solve(np.asarray(right)))


def prove_definite(matrix: Any) -> DefiniteMatrix | None:
    """Factor a symmetric matrix and prove that it is positive definite; None where it is not, or no proof was found."""
    M = sparse.csc_array(matrix)
    diagonal = M.diagonal()
    if not (diagonal > 0.0).all():
        return None
    if M.nnz == M.shape[0]:
        return DefiniteMatrix(M, None, float(np.min(diagonal)))
    factors = factor_symmetric(M)
    if factors is None:
        return None
    estimate = _smallest_estimate(M, factors)
    for share in _DEFINITE_TRIES:
        bound = _proven_smallest(M, share * estimate)
        if bound is not None:
            return DefiniteMatrix(M, factors, bound)
    return None


def _proven_smallest(M: sparse.csc_array, moved: float) -> float | None:
    """A lower bound of the eigenvalues, if M less `moved` on its diagonal has positive pivots beyond rounding."""
    shifted = sparse.csc_array(M - moved * sparse.eye_array(M.shape[0], format="csc"))
    factors = factor_symmetric(shifted)
    if factors is None:
        return None
    L, U = factors.L, factors.U
    if not (np.array_equal(factors.perm_r, factors.perm_c) and (U.diagonal() > 0.0).all()):
        return None
    most = int(np.max(np.bincount(L.indices, minlength=1)))
    rounding = 2.0 * most * most * EPS * float(np.max(M.diagonal()))
    return moved - rounding if moved > 2.0 * rounding else None


def factor_symmetric(M: sparse.csc_array) -> SuperLU | None:
    """Factors without pivoting; None for a zero pivot."""
    try:
        factors: SuperLU = factorize_superlu(M, pivoting=0.0)
    except SingularMatrixError:
        return None
    return factors


def _smallest_estimate(M: sparse.csc_array, factors: SuperLU) -> float:
    """The smallest eigenvalue, from above, by inverse iteration from a fixed start."""
    x = np.random.default_rng(0).standard_normal(M.shape[0])
    for _ in range(_INVERSE_ITERATIONS):
        x = factors.solve(x / np.linalg.norm(x))
    x /= np.linalg.norm(x)
    return float(x @ (M @ x))


# MERGED ltinet.reduction.dissipative_pencil
# A large sparse system E x' = A x + B u, y = C x + D u, and what its structure lets one prove.

Sparse = sparse.csc_array


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
        """The number of states."""
        return int(self.A.shape[0])

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether A and E are, bit for bit."""
        return is_symmetric(self.A) and is_symmetric(self.E)

    @cached_property
    def dissipation(self) -> DefiniteMatrix | None:
        """S = −(A + Aᵀ)/2, if it is proven to be positive definite."""
        if not (self.E.diagonal() > 0.0).all() or not is_symmetric(self.E):
            return None
        return prove_definite(-self.A if self.is_symmetric else -0.5 * (self.A + self.A.T))

    @cached_property
    def mass(self) -> DefiniteMatrix | None:
        """E, if it is proven to be positive definite."""
        return prove_definite(self.E) if is_symmetric(self.E) else None


def make_pencil(A: Any, B: Any, C: Any, D: Any = None, E: Any = None) -> Pencil:
    """A pencil of matrices that were checked already; E is the identity where it is left out."""
    A = sparse.csc_array(A, dtype=np.float64)
    E = sparse.eye_array(A.shape[0], format="csc") if E is None else sparse.csc_array(E, dtype=np.float64)
    B, C = _filled(B), _filled(C)
    D = np.zeros((len(C), B.shape[1])) if D is None else _filled(D)
    return Pencil(A, E, B, C, D)


def _filled(matrix: Any) -> Array:
    filled: Any = matrix.toarray() if hasattr(matrix, "toarray") else matrix
    return np.ascontiguousarray(filled, dtype=np.float64)


def is_symmetric(matrix: Sparse) -> bool:
    """Whether a matrix equals its transpose, bit for bit."""
    difference = sparse.csc_array(matrix - matrix.T)
    return not difference.data.any()


# MERGED ltinet.reduction.dissipative_pencil
# How far a dissipative pencil turns: |xᴴN x| ≤ γ xᴴS x, S and N the symmetric and the skew part of −A and A.
#
# In coordinates that are orthonormal for E the numerical range of A then lies in a sector of the left half plane, iω is
# at least ω/√(1 + γ²) away from it, and ‖(iωE − A)⁻¹‖ ≤ √(1 + γ²)/|ω| as an operator from E⁻¹ to E. The proof is a
# factorisation of the Hermitian γS + iN without pivoting, whose pivots are positive.

_POWER_ITERATIONS = 12
_SECTOR_TRIES = (1.1, 2.0, 8.0)  # times an estimate from below


def sector_bound(system: Pencil, weight: DefiniteMatrix) -> float:
    """√(1 + γ²), or a little more; infinite where no γ could be proven. One complex factorisation, n² nowhere."""
    skew = sparse.csc_array(0.5 * (system.A - system.A.T))
    if skew.count_nonzero() == 0:
        return 1.0
    estimate = _estimate(skew, weight)
    for share in _SECTOR_TRIES:
        lost = _lost(share * estimate, skew, weight)
        if lost is not None:
            return math.hypot(1.0, share * estimate + lost / weight.smallest)
    return math.inf


def _estimate(skew: sparse.csc_array, weight: DefiniteMatrix) -> float:
    """The largest |eigenvalue| of S⁻¹N, from below, by power iteration in pairs of steps."""
    x = np.random.default_rng(0).standard_normal((skew.shape[0], 1))
    size = 0.0
    for _ in range(_POWER_ITERATIONS):
        x = x / math.sqrt(float((x.T @ (weight.matrix @ x)).item()))
        x = weight.solve(skew @ x)
        size = math.sqrt(float((x.T @ (weight.matrix @ x)).item()))
    return max(size, EPS)


def _lost(gamma: float, skew: sparse.csc_array, weight: DefiniteMatrix) -> float | None:
    """What rounding may have hidden in a factorisation with positive pivots; None where one is not positive."""
    H = sparse.csc_array(gamma * weight.matrix + 1j * skew)
    factors = factor_symmetric(H)
    if factors is None or not np.array_equal(factors.perm_r, factors.perm_c):
        return None
    pivots = factors.U.diagonal()
    if not (np.isfinite(pivots).all() and (pivots.real > 0.0).all()):
        return None
    most = int(np.max(np.bincount(factors.L.indices, minlength=1)))
    off = float(np.max(np.abs(pivots.imag)))  # real but for rounding
    return 4.0 * most * most * EPS * gamma * float(np.max(weight.matrix.diagonal())) + off
