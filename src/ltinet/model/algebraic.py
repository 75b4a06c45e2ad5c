"""Descriptor systems of index 1: algebraic equations are solved for their variables, and what is left is a system.

E x' = A x + B u with rows of E that are zero says 0 = A₂₁ x₁ + A₂₂ x₂ + B₂ u there, x₂ the variables whose columns of
E are zero. If A₂₂ is regular (index 1), x₂ is put into all other equations. Rows and columns that are zero keep what is
sparse so; any other E of a small model is brought to this form by its singular value decomposition.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from ltinet.arrays import Array
from ltinet.errors import InvalidSystemError
from ltinet.model.sparse_factors import SingularError, SparseFactors
from ltinet.tolerances import EPS, rounding

_COLUMNS = 256  # of a sparse A₂₁ that are filled in at a time
_MOST_FILL = 20  # times the entries of A that a result may have
_FREE = 200_000  # entries that are no trouble in any case

Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Proper:
    """E x' = A x + B u, y = C x + D u with a regular E, and which variables stayed; None where they were mixed."""

    E: Any
    A: Any
    B: Array
    C: Array
    D: Array
    kept: Places | None


def solve_algebraic(E: Any, A: Any, B: Array, C: Array, D: Array) -> Proper | None:
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
    solve = _solver(A22, lambda: _refusal(E, A))
    by_input = solve(B[r2])
    by_state = _solved(solve, A21, limit=_MOST_FILL * getattr(A, "nnz", A.size) + _FREE)
    own = A11 - A12 @ by_state
    if np.array_equal(r1, c1) and _is_symmetric(A):
        own = 0.5 * (own + own.T)  # a Schur complement of a symmetric matrix; rounding may have taken that
    return Proper(
        E[r1, :][:, c1],
        own,
        B[r1] - A12 @ by_input,
        C[:, c1] - (by_state.T @ C[:, c2].T).T,
        D - C[:, c2] @ by_input,
        c1,
    )


def solve_algebraic_arrays(E: Array, A: Array, B: Array, C: Array, D: Array) -> Proper:
    """Eliminate where E is singular in any way, by its singular value decomposition. O(n³).

    Raises:
        InvalidSystemError: the index is 2 or more, or the pencil is singular.
    """
    found = solve_algebraic(E, A, B, C, D)
    if found is not None and (len(found.E) == 0 or np.linalg.cond(found.E) < 1.0 / rounding(len(found.E))):
        return found
    U, values, Vt = linalg.svd(E)
    rank = int(np.count_nonzero(values > rounding(len(E), float(values[0]))))
    turned, B_turned, C_turned = U.T @ A @ Vt.T, U.T @ B, C @ Vt.T
    first, second = slice(0, rank), slice(rank, None)
    solve = _solver(turned[second, second], lambda: _refusal(E, A), size=float(np.linalg.norm(A)))
    by_state, by_input = solve(turned[second, first]), solve(B_turned[second])
    return Proper(
        np.diag(values[first]),
        turned[first, first] - turned[first, second] @ by_state,
        B_turned[first] - turned[first, second] @ by_input,
        C_turned[:, first] - C_turned[:, second] @ by_state,
        D - C_turned[:, second] @ by_input,
        None,
    )


def _solver(A22: Any, refusal: Any, *, size: float = 0.0) -> Any:
    """A₂₂⁻¹ times columns, after a look at its condition; entries are known to eps times `size`."""
    if hasattr(A22, "nnz"):
        try:
            factors = SparseFactors(A22, has_symmetric_pattern=False)
            if not factors.condition() * A22.shape[0] * EPS < 1.0:
                raise SingularError
        except SingularError:
            raise refusal() from None
        return factors.solve
    values = np.linalg.svd(A22, compute_uv=False)
    if len(A22) and not values[-1] > 4.0 * len(A22) * EPS * max(size, values[0]):
        raise refusal()
    factored = linalg.lu_factor(A22) if len(A22) else None
    return lambda right: right if factored is None else linalg.lu_solve(factored, right)


def _solved(solve: Any, A21: Any, *, limit: int) -> Any:
    """A₂₂⁻¹A₂₁, a block of columns at a time where it is sparse: only columns that are not zero are solved for."""
    if isinstance(A21, np.ndarray):
        return solve(A21)
    A21 = A21.tocsc()
    used = np.flatnonzero(np.diff(A21.indptr))
    pieces, n_entries = [], 0
    for start in range(0, len(used), _COLUMNS):
        block = sparse.csc_array(solve(A21[:, used[start : start + _COLUMNS]].toarray()))
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


def _refusal(E: Any, A: Any) -> InvalidSystemError:
    """Which of two things is wrong: a pencil that is singular at some place drawn is so at all of them."""
    s = 0.7390851332151607 * float(abs(A).max()) / max(float(abs(E).max()), np.finfo(np.float64).tiny)
    pencil = s * E - A
    try:
        if hasattr(pencil, "nnz"):
            SparseFactors(pencil, has_symmetric_pattern=False).solve(np.ones((pencil.shape[0], 1)))
            is_regular = True
        else:
            is_regular = bool(np.linalg.cond(pencil) * len(pencil) * EPS < 1.0)
    except SingularError:
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
