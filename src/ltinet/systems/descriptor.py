"""Elimination of the matrix E from descriptor systems E x' = A x + B u.

A regular E is factorised by Householder QR after scaling rows and columns by powers of two:
X = R⁻¹(Qᵀ right_hand_side), without forming E⁻¹.

A singular E of index 1: rows of E that are zero are the algebraic equations 0 = A₂₁ x₁ + A₂₂ x₂ + B₂ u, with x₂ the
variables whose columns of E are zero. If A₂₂ is regular, x₂ = −A₂₂⁻¹(A₂₁ x₁ + B₂ u) is substituted into the other
equations and outputs, which gives the Schur complement A₁₁ − A₁₂A₂₂⁻¹A₂₁ and a feedthrough D − C₂A₂₂⁻¹B₂. Before, rows
0 = a x_j remove their state, whatever its column of E. Zero rows and columns keep sparse matrices sparse; any other
singular E of a small model is brought to this form by its singular value decomposition.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.linalg import lapack, qr, solve_triangular

from ltinet._util.floating_point import EPS, Array, rounding_tolerance
from ltinet.errors import InvalidSystemError
from ltinet.systems.matrices import Matrix
from ltinet.systems.sparse_lu import SingularMatrixError, SparseLU, is_singular


class SingularMassError(InvalidSystemError):
    """Singular E: the system contains algebraic equations."""


class GrowingSystemError(InvalidSystemError):
    """Large system whose modes all grow, as with the wrong sign of K."""


def eliminate_descriptor(E: Matrix, right_hand_side: Matrix) -> Matrix:
    """Return E⁻¹ times `right_hand_side`, in the coordinates of the user; E is n×n, the right-hand side n×k.

    Scaling by powers of two is exact. Householder QR is stable for every E, but without the scaling small rows lose
    accuracy. Largest relative error of a row of E⁻¹A for the LF10 beam (cond(E) = 3e10, and 11 after scaling): 1e-15
    with scaled QR, 4e-15 with LU, 1e-13 with plain QR. Cost O(n³ + n²k).

    Raises InvalidSystemError if E is singular to working precision or the result overflows.
    """
    n = len(E)
    if n == 0:
        return right_hand_side
    row_scale, column_scale = _equilibration(E)
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow is reported below
        Q, R = qr(E * row_scale[:, None] * column_scale)
        _require_regular(np.asarray(R, dtype=np.float64), n)
        rotated = Q.T @ (right_hand_side * row_scale[:, None])
        X = column_scale[:, None] * solve_triangular(R, rotated, check_finite=False)
    if not np.isfinite(X).all():
        raise InvalidSystemError("E⁻¹A or E⁻¹B overflows float64; choose other units for the states or for time")
    return np.asarray(X, dtype=np.float64)


def _equilibration(E: Matrix) -> tuple[Matrix, Matrix]:
    """Return powers of two that scale the largest entry of each row and column to about 1."""
    row_scale, column_scale, _, _, _, info = lapack.dgeequb(E)
    if info > 0:
        n = len(E)
        line = f"row {info - 1}" if info <= n else f"column {info - n - 1}"
        raise SingularMassError(f"E is singular: its {line} is zero; {_ELIMINATION_HINT}")
    return row_scale, column_scale


def _require_regular(R: Matrix, n: int) -> None:
    """Refuse an E that is singular to working precision.

    The test applies to the scaled matrix, because units alone make no E singular: diag(1, 1e−30) is as regular as the
    identity, whereas a dependence between equations survives every scaling.
    """
    singular_values = np.linalg.svd(R, compute_uv=False)
    reciprocal_condition = singular_values[-1] / singular_values[0]
    if reciprocal_condition <= rounding_tolerance(n):
        raise SingularMassError(
            f"E is singular to working precision: after scaling rows and columns its reciprocal condition number is "
            f"{reciprocal_condition:.1e}, below {rounding_tolerance(n):.1e}; {_ELIMINATION_HINT}"
        )


_ELIMINATION_HINT = (
    "the model contains algebraic equations, which ltinet.eliminate_algebraic((A, B, C, D, E)) eliminates if the index "
    "is 1; otherwise pass a non-singular E"
)


_COLUMN_BLOCK = 256  # columns of a sparse A₂₁ that are solved for at a time
# A₂₂⁻¹A₂₁ may have _MAX_FILL_FACTOR times the entries of A, plus _UNLIMITED_FILL entries (about 3 MB).
_MAX_FILL_FACTOR, _UNLIMITED_FILL = 20, 200_000

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class RegularDescriptor:
    """System E x' = A x + B u, y = C x + D u with regular E."""

    E: Any
    A: Any
    B: Array
    C: Array
    D: Array
    variables: Indices | None
    """Indices of the variables that remain; None if the states are linear combinations of them."""


def solve_algebraic_rows(E: Any, A: Any, B: Array, C: Array, D: Array) -> RegularDescriptor | None:
    """Eliminate algebraic variables by zero rows and columns of E; None if E has none, or different numbers of both.

    Raises InvalidSystemError if the index is 2 or more, the equations do not determine their variables, or the result
    would fill in.
    """
    rows, columns = _unprescribed(E, A, B)
    if len(columns) == E.shape[0]:
        return _solve_zero_rows(E, A, B, C, D)
    parts = E[rows, :][:, columns], A[rows, :][:, columns], B[rows], C[:, columns], D
    regular = _solve_zero_rows(*parts)
    if regular is None:
        return RegularDescriptor(*parts, columns)
    return replace(regular, variables=columns[regular.variables])


def _unprescribed(E: Any, A: Any, B: Array) -> tuple[Indices, Indices]:
    """Return rows and columns without those of states that are prescribed to be zero.

    A row 0 = a x_j with a zero row of E prescribes x_j = 0, as unit rows of boundary conditions do. Then x_j' = 0, and
    column j counts nowhere.

    Raises
    ------
    InvalidSystemError
        An input prescribes x_j although E couples it: the derivative of the input would be needed.
    """
    n = E.shape[0]
    E, A = sparse.csr_array(E), sparse.csr_array(A)
    couples = np.bincount(E.indices, minlength=n) > 0
    single = np.flatnonzero((np.diff(E.indptr) == 0) & (np.diff(A.indptr) == 1))
    states = A.indices[A.indptr[single]]
    single, states = single[couples[states]], states[couples[states]]
    driven = np.flatnonzero(B[single].any(axis=1))
    if len(driven):
        row, state = single[driven[0]], states[driven[0]]
        raise InvalidSystemError(
            f"the descriptor system has index 2 or more: row {row} of A and B prescribes state {state} by an input, while "
            f"column {state} of E is not zero, so that the derivative of the input would be needed; remove prescribed "
            "degrees of freedom: K[free][:, free], M[free][:, free], f[free]"
        )
    everything = np.arange(n)
    return np.setdiff1d(everything, single), np.setdiff1d(everything, states)


def _solve_zero_rows(E: Any, A: Any, B: Array, C: Array, D: Array) -> RegularDescriptor | None:
    """Substitute the variables of zero columns of E, which zero rows determine; None as for `solve_algebraic_rows`."""
    sizes = abs(E)
    rows, columns = (np.asarray(sizes.sum(axis=axis)).ravel() > 0.0 for axis in (1, 0))
    if rows.all() or int(rows.sum()) != int(columns.sum()):
        return None
    r1, r2, c1, c2 = map(np.flatnonzero, (rows, ~rows, columns, ~columns))
    A11, A12, A21, A22 = (A[r, :][:, c] for r, c in ((r1, c1), (r1, c2), (r2, c1), (r2, c2)))
    try:
        solve = _make_solver(A22)
    except SingularMatrixError:
        raise _singular_pencil_error(E, A) from None
    by_input = solve(B[r2])
    by_state = _solve_columns(solve, A21, limit=_MAX_FILL_FACTOR * getattr(A, "nnz", A.size) + _UNLIMITED_FILL)
    schur = A11 - A12 @ by_state
    if np.array_equal(r1, c1) and not abs(A - A.T).sum():
        schur = 0.5 * (schur + schur.T)  # the Schur complement is symmetric, too, except for rounding
    return RegularDescriptor(
        E[r1, :][:, c1],
        schur,
        B[r1] - A12 @ by_input,
        C[:, c1] - (by_state.T @ C[:, c2].T).T,
        D - C[:, c2] @ by_input,
        c1,
    )


def solve_algebraic_svd(E: Array, A: Array, B: Array, C: Array, D: Array) -> RegularDescriptor:
    """Eliminate the algebraic equations of any singular E of index 1 by its singular value decomposition, in O(n³).

    Raises InvalidSystemError if the index is 2 or more, or the pencil is singular.
    """
    result = solve_algebraic_rows(E, A, B, C, D)
    if result is not None and (
        len(result.E) == 0 or np.linalg.cond(result.E) < 1.0 / rounding_tolerance(len(result.E))
    ):
        return result
    U, values, Vt = linalg.svd(E)
    rank = int(np.count_nonzero(values > rounding_tolerance(len(E), float(values[0]))))
    A_rotated, B_rotated, C_rotated = U.T @ A @ Vt.T, U.T @ B, C @ Vt.T
    first, second = slice(0, rank), slice(rank, None)
    try:
        solve = _make_solver(A_rotated[second, second], size=float(np.linalg.norm(A)))
    except SingularMatrixError:
        raise _singular_pencil_error(E, A) from None
    by_state, by_input = solve(A_rotated[second, first]), solve(B_rotated[second])
    return RegularDescriptor(
        np.diag(values[first]),
        A_rotated[first, first] - A_rotated[first, second] @ by_state,
        B_rotated[first] - A_rotated[first, second] @ by_input,
        C_rotated[:, first] - C_rotated[:, second] @ by_state,
        D - C_rotated[:, second] @ by_input,
        None,
    )


def _make_solver(A22: Any, *, size: float = 0.0) -> Any:
    """Return a function that multiplies columns by A₂₂⁻¹; entries of a dense A₂₂ have absolute errors of eps·size.

    Raises SingularMatrixError if A₂₂ is singular to working precision.
    """
    if hasattr(A22, "nnz"):
        factors = SparseLU(A22, has_symmetric_pattern=False)
        if factors.is_singular:
            raise SingularMatrixError
        return factors.solve
    if not len(A22):
        return lambda right: right
    values = np.linalg.svd(A22, compute_uv=False)
    if not values[-1] > 4.0 * len(A22) * EPS * max(size, values[0]):
        raise SingularMatrixError
    lu_factors = linalg.lu_factor(A22)
    return lambda right: linalg.lu_solve(lu_factors, right)


def _solve_columns(solve: Any, A21: Any, *, limit: int) -> Any:
    """Return A₂₂⁻¹A₂₁; of a sparse A₂₁ the non-zero columns are solved for, a block at a time.

    Raises InvalidSystemError if the result has more than `limit` entries.
    """
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
                f"eliminating {A21.shape[0]} algebraic variables would fill in the other {A21.shape[1]}; eliminate them "
                "in the program that builds the model, or make E regular by a small capacity for each"
            )
        pieces.append(block)
    empty: Any = np.zeros((A21.shape[0], 0))
    solution = sparse.hstack(pieces, format="csc") if pieces else sparse.csc_array(empty)
    spread = sparse.csc_array((np.ones(len(used)), (np.arange(len(used)), used)), shape=(len(used), A21.shape[1]))
    return solution @ spread


def _singular_pencil_error(E: Any, A: Any) -> InvalidSystemError:
    """Return the error for a singular A₂₂: a singular pencil, or an index of 2 or more.

    A pencil sE − A that is singular at an arbitrary s (here the root of cos s = s, scaled) is singular for all s with
    probability 1.
    """
    s = 0.7390851332151607 * float(abs(A).max()) / max(float(abs(E).max()), np.finfo(np.float64).tiny)
    pencil = s * E - A
    if is_singular(pencil):
        return InvalidSystemError(
            "the pencil sE − A is singular for all s, so the equations do not determine the states; remove redundant "
            "equations and add one for every variable without any"
        )
    return InvalidSystemError(
        "the descriptor system has index 2 or more: its algebraic equations cannot be solved for the algebraic "
        "variables, as with constraints on states alone; differentiate the constraints once, or relax them by a small "
        "−ε on the diagonal of A in these rows"
    )
