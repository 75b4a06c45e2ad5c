"""How far a dissipative pencil turns: |xᴴN x| ≤ γ xᴴS x, S and N the symmetric and the skew part of −A and A.

In coordinates that are orthonormal for E the numerical range of A then lies in a sector of the left half plane, iω is
at least ω/√(1 + γ²) away from it, and ‖(iωE − A)⁻¹‖ ≤ √(1 + γ²)/|ω| as an operator from E⁻¹ to E. The proof is a
factorisation of the Hermitian γS + iN without pivoting, whose pivots are positive.
"""

import math

import numpy as np
from scipy import sparse

from ltinet.reduction.definite import Definite, factored
from ltinet.reduction.pencil import Pencil
from ltinet.tolerances import EPS

_POWER_STEPS = 12
_TRIES = (1.1, 2.0, 8.0)  # times an estimate from below


def proven_turn(system: Pencil, weight: Definite) -> float:
    """√(1 + γ²), or a little more; infinite where no γ could be proven. One complex factorisation, n² nowhere."""
    skew = sparse.csc_array(0.5 * (system.A - system.A.T))
    if skew.count_nonzero() == 0:
        return 1.0
    estimate = _estimate(skew, weight)
    for share in _TRIES:
        lost = _lost(share * estimate, skew, weight)
        if lost is not None:
            return math.hypot(1.0, share * estimate + lost / weight.smallest)
    return math.inf


def _estimate(skew: sparse.csc_array, weight: Definite) -> float:
    """The largest |eigenvalue| of S⁻¹N, from below, by power iteration in pairs of steps."""
    x = np.random.default_rng(0).standard_normal((skew.shape[0], 1))
    size = 0.0
    for _ in range(_POWER_STEPS):
        x = x / math.sqrt(float((x.T @ (weight.matrix @ x)).item()))
        x = weight.solve(skew @ x)
        size = math.sqrt(float((x.T @ (weight.matrix @ x)).item()))
    return max(size, EPS)


def _lost(gamma: float, skew: sparse.csc_array, weight: Definite) -> float | None:
    """What rounding may have hidden in a factorisation with positive pivots; None where one is not positive."""
    H = sparse.csc_array(gamma * weight.matrix + 1j * skew)
    factors = factored(H)
    if factors is None or not np.array_equal(factors.perm_r, factors.perm_c):
        return None
    pivots = factors.U.diagonal()
    if not (np.isfinite(pivots).all() and (pivots.real > 0.0).all()):
        return None
    most = int(np.max(np.bincount(factors.L.indices, minlength=1)))
    off = float(np.max(np.abs(pivots.imag)))  # real but for rounding
    return 4.0 * most * most * EPS * gamma * float(np.max(weight.matrix.diagonal())) + off
