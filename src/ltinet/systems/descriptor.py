"""Elimination of the matrix E from descriptor systems E x' = A x + B u.

A regular E is factorised by Householder QR after scaling rows and columns by powers of two:
X = R⁻¹(Qᵀ right_hand_side), without forming E⁻¹.

A singular E of index 1: rows of E that are zero are the algebraic equations 0 = A₂₁ x₁ + A₂₂ x₂ + B₂ u, with x₂ the
variables whose columns of E are zero. If A₂₂ is regular, x₂ = −A₂₂⁻¹(A₂₁ x₁ + B₂ u) is substituted into the other
equations and outputs, which gives the Schur complement A₁₁ − A₁₂A₂₂⁻¹A₂₁ and a feedthrough D − C₂A₂₂⁻¹B₂. Zero rows and
columns keep sparse matrices sparse; any other singular E of a small model is brought to this form by its singular value
decomposition.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.linalg import lapack, qr, solve_triangular

from ltinet._util.floating_point import EPS, Array, rounding_tolerance
from ltinet.errors import InvalidSystemError
from ltinet.systems.matrices import Matrix
from ltinet.systems.sparse_lu import SingularMatrixError, SparseLU

# MERGED ltinet.systems.descriptor
# Descriptor systems E x' = A x + B u with a non-singular E become x' = E⁻¹A x + E⁻¹B u, without forming E⁻¹.


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
        raise SingularMassError(f"E is singular: its {line} is zero; {_ELIMINATION_HINT}")
    return row_scale, column_scale


def _require_regular(R: Matrix, n: int) -> None:
    """Refuse an E that rounding cannot tell from a singular one.

    The test is made after scaling: units alone make no E singular (diag(1, 1e−30) is as regular as the identity),
    whereas a dependence between equations survives every scaling.
    """
    singular_values = np.linalg.svd(R, compute_uv=False)
    reciprocal_condition = singular_values[-1] / singular_values[0]
    if reciprocal_condition <= rounding_tolerance(n):
        raise SingularMassError(
            f"E is singular to working precision: after scaling rows and columns its reciprocal condition number is "
            f"{reciprocal_condition:.1e}, below {rounding_tolerance(n):.1e}; {_ELIMINATION_HINT}"
        )


_ELIMINATION_HINT = (
    "the model contains algebraic equations: ltinet.eliminate_algebraic((A, B, C, D, E)) solves them for their "
    "variables where that is possible (index 1); else pass a non-singular E"
)


# MERGED ltinet.systems.descriptor
# Descriptor systems of index 1: algebraic equations are solved for their variables, and what is left is a system.
#
# E x' = A x + B u with rows of E that are zero says 0 = A₂₁ x₁ + A₂₂ x₂ + B₂ u there, x₂ the variables whose columns of
# E are zero. If A₂₂ is regular (index 1), x₂ is put into all other equations. Rows and columns that are zero keep what is
# sparse so; any other E of a small model is brought to this form by its singular value decomposition.

_COLUMN_BLOCK = 256  # of a sparse A₂₁ that are filled in at a time
_MAX_FILL_FACTOR = 20  # times the entries of A that a result may have
_UNLIMITED_FILL = 200_000  # entries that are no trouble in any case

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class RegularDescriptor:
    """E x' = A x + B u, y = C x + D u with a regular E, and which variables stayed; None where they were mixed."""

    E: Any
    A: Any
    B: Array
    C: Array
    D: Array
    variables: Indices | None


def solve_algebraic_rows(E: Any, A: Any, B: Array, C: Array, D: Array) -> RegularDescriptor | None:
    """Eliminate by rows and columns of E that are zero; None where E has none, or not as many of both.

    Raises:
        InvalidSystemError: the index is 2 or more, the equations do not determine their variables, or the result would
            fill in.
    """
    used = abs(E)
    rows, columns = (np.asarray(used.sum(axis=axis)).ravel() > 0.0 for axis in (1, 0))
    if rows.all() or int(rows.sum()) != int(columns.sum()):
        return None
    r1, r2, c1, c2 = (np.flatnonzero(own) for own in (rows, ~rows, columns, ~columns))
    A11, A12, A21, A22 = (A[r, :][:, c] for r, c in ((r1, c1), (r1, c2), (r2, c1), (r2, c2)))
    solve = _make_solver(A22, lambda: _singular_pencil_error(E, A))
    by_input = solve(B[r2])
    by_state = _solve_columns(solve, A21, limit=_MAX_FILL_FACTOR * getattr(A, "nnz", A.size) + _UNLIMITED_FILL)
    own = A11 - A12 @ by_state
    if np.array_equal(r1, c1) and _is_symmetric(A):
        own = 0.5 * (own + own.T)  # a Schur complement of a symmetric matrix; rounding may have taken that
    return RegularDescriptor(
        E[r1, :][:, c1],
        own,
        B[r1] - A12 @ by_input,
        C[:, c1] - (by_state.T @ C[:, c2].T).T,
        D - C[:, c2] @ by_input,
        c1,
    )


def solve_algebraic_svd(E: Array, A: Array, B: Array, C: Array, D: Array) -> RegularDescriptor:
    """Eliminate where E is singular in any way, by its singular value decomposition. O(n³).

    Raises:
        InvalidSystemError: the index is 2 or more, or the pencil is singular.
    """
    found = solve_algebraic_rows(E, A, B, C, D)
    if found is not None and (len(found.E) == 0 or np.linalg.cond(found.E) < 1.0 / rounding_tolerance(len(found.E))):
        return found
    U, values, Vt = linalg.svd(E)
    rank = int(np.count_nonzero(values > rounding_tolerance(len(E), float(values[0]))))
    turned, B_turned, C_turned = U.T @ A @ Vt.T, U.T @ B, C @ Vt.T
    first, second = slice(0, rank), slice(rank, None)
    solve = _make_solver(turned[second, second], lambda: _singular_pencil_error(E, A), size=float(np.linalg.norm(A)))
    by_state, by_input = solve(turned[second, first]), solve(B_turned[second])
    return RegularDescriptor(
        np.diag(values[first]),
        turned[first, first] - turned[first, second] @ by_state,
        B_turned[first] - turned[first, second] @ by_input,
        C_turned[:, first] - C_turned[:, second] @ by_state,
        D - C_turned[:, second] @ by_input,
        None,
    )


def _make_solver(A22: Any, refusal: Any, *, size: float = 0.0) -> Any:
    """A₂₂⁻¹ times columns, after a look at its condition; entries are known to eps times `size`."""
    if hasattr(A22, "nnz"):
        try:
            factors = SparseLU(A22, has_symmetric_pattern=False)
            if not factors.condition() * A22.shape[0] * EPS < 1.0:
                raise SingularMatrixError
        except SingularMatrixError:
            raise refusal() from None
        return factors.solve
    values = np.linalg.svd(A22, compute_uv=False)
    if len(A22) and not values[-1] > 4.0 * len(A22) * EPS * max(size, values[0]):
        raise refusal()
    factored = linalg.lu_factor(A22) if len(A22) else None
    return lambda right: right if factored is None else linalg.lu_solve(factored, right)


def _solve_columns(solve: Any, A21: Any, *, limit: int) -> Any:
    """A₂₂⁻¹A₂₁, a block of columns at a time where it is sparse: only columns that are not zero are solved for."""
    if isinstance(A21, np.ndarray):
        return solve(A21)
    A21 = A21.tocsc()
    used = np.flatnonzero(np.diff(A21.indptr))
    pieces, n_entries = [], 0
    for start in range(0, len(used), _COLUMN_BLOCK):
        block = sparse.csc_array(solve(A21[:, used[start : start + _COLUMN_BLOCK]].toarray()))
        n_entries += block.nnz
        if n_entries > limit:
            raise InvalidSystemError(
                f"eliminating {A21.shape[0]} algebraic variables would fill in the other {A21.shape[1]}: they are "
                "coupled with each other over long ways; eliminate them where the model is made, or give each a small "
                "capacity, so that E is regular"
            )
        pieces.append(block)
    empty: Any = np.zeros((A21.shape[0], 0))
    whole = sparse.hstack(pieces, format="csc") if pieces else sparse.csc_array(empty)
    spread = sparse.csc_array((np.ones(len(used)), (np.arange(len(used)), used)), shape=(len(used), A21.shape[1]))
    return whole @ spread


def _singular_pencil_error(E: Any, A: Any) -> InvalidSystemError:
    """Which of two things is wrong: a pencil that is singular at some place drawn is so at all of them."""
    s = 0.7390851332151607 * float(abs(A).max()) / max(float(abs(E).max()), np.finfo(np.float64).tiny)
    pencil = s * E - A
    try:
        if hasattr(pencil, "nnz"):
            SparseLU(pencil, has_symmetric_pattern=False).solve(np.ones((pencil.shape[0], 1)))
            is_regular = True
        else:
            is_regular = bool(np.linalg.cond(pencil) * len(pencil) * EPS < 1.0)
    except SingularMatrixError:
        is_regular = False
    if not is_regular:
        return InvalidSystemError(
            "the pencil sE − A is singular for all s: the equations do not determine the states; leave out those that "
            "follow from others, and give one for every variable"
        )
    return InvalidSystemError(
        "the descriptor system has index 2 or more: its algebraic equations cannot be solved for the algebraic "
        "variables (as with constraints on states alone); differentiate the constraints once, or let them give way a "
        "little: a small −ε on the diagonal of A in these rows"
    )


def _is_symmetric(matrix: Any) -> bool:
    difference: Any = matrix - matrix.T
    return not (difference.data if hasattr(difference, "nnz") else difference).any()
