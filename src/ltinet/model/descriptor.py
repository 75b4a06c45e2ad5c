"""Descriptor systems E x' = A x + B u with a non-singular E become x' = E⁻¹A x + E⁻¹B u, without forming E⁻¹."""

import numpy as np
from scipy.linalg import lapack, qr, solve_triangular

from ltinet.errors import InvalidSystemError
from ltinet.model.matrices import Matrix
from ltinet.tolerances import rounding


class SingularMassError(InvalidSystemError):
    """E is singular: there are algebraic equations."""


def eliminate_descriptor(E: Matrix, right_hand_side: Matrix) -> Matrix:
    """Return E⁻¹ times `right_hand_side`, the states staying the user's own; E is n×n, the right-hand side n×k.

    Rows and columns are scaled by powers of two, which is exact, and E is factored as QR: X = R⁻¹(Qᵀ right_hand_side).
    Householder QR is stable for every E, but without the scaling it loses the small rows. Measured on the LF10 beam
    (cond(E) = 3e10, but 11 after scaling), largest error of a row of E⁻¹A relative to that row: scaled QR 1e-15, LU
    4e-15, plain QR 1e-13. Cost O(n³ + n²k).

    Raises:
        InvalidSystemError: E is singular to working precision, or the result overflows.
    """
    n = len(E)
    if n == 0:
        return right_hand_side
    row_scale, column_scale = _equilibration(E)
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow is reported below, not warned about here
        Q, R = qr(E * row_scale[:, None] * column_scale)
        _require_regular(np.asarray(R, dtype=np.float64), n)
        rotated = Q.T @ (right_hand_side * row_scale[:, None])
        X = column_scale[:, None] * solve_triangular(R, rotated, check_finite=False)
    if not np.isfinite(X).all():
        raise InvalidSystemError("E⁻¹A or E⁻¹B overflows float64; choose other units for the states or for time")
    return np.asarray(X, dtype=np.float64)


def _equilibration(E: Matrix) -> tuple[Matrix, Matrix]:
    """Return powers of two for rows and columns that bring the largest entry of each near 1."""
    row_scale, column_scale, _, _, _, info = lapack.dgeequb(E)
    if info > 0:
        n = len(E)
        line = f"row {info - 1}" if info <= n else f"column {info - n - 1}"
        raise SingularMassError(f"E is singular: its {line} is zero; {_WAY_OUT}")
    return row_scale, column_scale


def _require_regular(R: Matrix, n: int) -> None:
    """Refuse an E that rounding cannot tell from a singular one.

    The test is made after scaling: units alone make no E singular (diag(1, 1e−30) is as regular as the identity),
    whereas a dependence between equations survives every scaling.
    """
    singular_values = np.linalg.svd(R, compute_uv=False)
    reciprocal_condition = singular_values[-1] / singular_values[0]
    if reciprocal_condition <= rounding(n):
        raise SingularMassError(
            f"E is singular to working precision: after scaling rows and columns its reciprocal condition number is "
            f"{reciprocal_condition:.1e}, below {rounding(n):.1e}; {_WAY_OUT}"
        )


_WAY_OUT = (
    "the model contains algebraic equations: ltinet.eliminate_algebraic((A, B, C, D, E)) solves them for their "
    "variables where that is possible (index 1); else pass a non-singular E"
)
