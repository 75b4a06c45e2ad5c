"""Symmetric positive definite sparse matrices: a factorisation whose pivots prove it, and solves with it.

SuperLU in symmetric mode, without pivoting: P M Pᵀ = L U with U = D Lᵀ up to rounding. All pivots positive prove that
M + ΔM is positive definite for |ΔM_ij| ≤ 2k·eps·√(M_ii M_jj) on the pattern of L, k the most entries of a row of it
(Demmel 1989 for Cholesky; both triangles are rounded here), so that λ_min(M) ≥ −c with c = 2k²·eps·max M_ii.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import SuperLU

from ltinet.arrays import Array
from ltinet.model.sparse_factors import SingularError, superlu
from ltinet.tolerances import EPS

_TRIES = (0.5, 0.1, 0.01)  # of an estimate of the smallest eigenvalue
_POWER_STEPS = 6  # of inverse iteration


@dataclass(frozen=True, eq=False)
class Definite:
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


def definite(matrix: Any) -> Definite | None:
    """Factor a symmetric matrix and prove that it is positive definite; None where it is not, or no proof was found."""
    M = sparse.csc_array(matrix)
    diagonal = M.diagonal()
    if not (diagonal > 0.0).all():
        return None
    if M.nnz == M.shape[0]:
        return Definite(M, None, float(np.min(diagonal)))
    factors = factored(M)
    if factors is None:
        return None
    estimate = _smallest_estimate(M, factors)
    for share in _TRIES:
        bound = _proven(M, share * estimate)
        if bound is not None:
            return Definite(M, factors, bound)
    return None


def _proven(M: sparse.csc_array, moved: float) -> float | None:
    """A lower bound of the eigenvalues, if M less `moved` on its diagonal has positive pivots beyond rounding."""
    shifted = sparse.csc_array(M - moved * sparse.eye_array(M.shape[0], format="csc"))
    factors = factored(shifted)
    if factors is None:
        return None
    L, U = factors.L, factors.U
    if not (np.array_equal(factors.perm_r, factors.perm_c) and (U.diagonal() > 0.0).all()):
        return None
    most = int(np.max(np.bincount(L.indices, minlength=1)))
    rounding = 2.0 * most * most * EPS * float(np.max(M.diagonal()))
    return moved - rounding if moved > 2.0 * rounding else None


def factored(M: sparse.csc_array) -> SuperLU | None:
    """Factors without pivoting; None for a zero pivot."""
    try:
        factors: SuperLU = superlu(M, pivoting=0.0)
    except SingularError:
        return None
    return factors


def _smallest_estimate(M: sparse.csc_array, factors: SuperLU) -> float:
    """The smallest eigenvalue, from above, by inverse iteration from a fixed start."""
    x = np.random.default_rng(0).standard_normal(M.shape[0])
    for _ in range(_POWER_STEPS):
        x = factors.solve(x / np.linalg.norm(x))
    x /= np.linalg.norm(x)
    return float(x @ (M @ x))
