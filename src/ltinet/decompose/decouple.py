"""From a block triangular to a block-diagonal matrix: Sylvester equations, solved by halves."""

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from ltinet.model.matrices import Matrix

# Columns grow by at most 1/eps in one solve; shrinking them here keeps a chain of solves far from overflow.
_GROWTH_LIMIT = 1e100


@dataclass(frozen=True)
class Decoupled:
    """R X = X · diagonal: each block column of the block triangular X spans an invariant subspace."""

    X: Matrix
    diagonal: Matrix


def decouple(R: Matrix, bounds: NDArray[np.intp]) -> Decoupled:
    """Decouple the diagonal blocks R_11, …, R_LL that begin at `bounds`: R X = X · blkdiag(R_11, …, R_LL).

    Each block column is R's invariant subspace for that block's eigenvalues, in the form [∗; s·I; 0]. It is found by
    back substitution over halves: with the right half's columns known, R_aa Y − Y Λ_b = −R_ab X_b gives the rest
    (Bartels & Stewart 1972, LAPACK `trsyl`). Cost O(n³) for single neurons, ~n³/3 flops in two halves.

    Where two blocks share an eigenvalue, `trsyl` replaces the zero divisor by one of rounding size: Y then solves a
    problem within rounding of this one. If the subspaces can be told apart Y stays moderate and is right; if not, Y is
    huge and the columns become parallel, which the condition number of the result shows.
    """
    X = np.eye(len(R))
    block = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    diagonal = np.where(block[:, None] == block, R, 0.0)
    if len(bounds) > 2:
        _decouple_halves(R, diagonal, X, bounds.tolist())
        # s underflows where subspaces coincide; columns stay independent, and the condition number shows it.
        np.fill_diagonal(X, np.maximum(X.diagonal(), np.finfo(float).tiny))
    return Decoupled(X, diagonal)


def invariant_subspace(R: Matrix, start: int, stop: int) -> Matrix:
    """The columns [Y; s·I] of one block, the states start … stop: R_aa Y − Y Λ = −s·R_ab for all states before it."""
    columns = np.eye(stop, stop - start, k=-start, order="F")
    if start == 0:
        return columns
    own = slice(start, stop)
    Y, scale, _ = lapack.dtrsyl(R[:start, :start], R[own, own], R[:start, own], isgn=-1)
    columns[:start] = -Y
    columns[own] *= max(scale, np.finfo(float).tiny)
    largest = max(Y.max(), -Y.min())
    return columns / largest if largest > _GROWTH_LIMIT else columns


def _decouple_halves(R: Matrix, diagonal: Matrix, X: Matrix, bounds: list[int]) -> None:
    middle = len(bounds) // 2
    if middle > 1:
        _decouple_halves(R, diagonal, X, bounds[: middle + 1])
    if len(bounds) - middle > 2:
        _decouple_halves(R, diagonal, X, bounds[middle:])
    start, half, stop = bounds[0], bounds[middle], bounds[-1]
    if not _solve_node(R, diagonal, X, (start, half, stop)):
        for left, right in itertools.pairwise(bounds[middle:]):  # one scale for each block column
            _solve_node(R, diagonal, X, (start, half, stop), columns=(left, right))
    above = X[start:half, half:stop]
    if above.max() > _GROWTH_LIMIT or above.min() < -_GROWTH_LIMIT:
        _shrink_columns(X, bounds[middle:], start)


def _solve_node(
    R: Matrix, diagonal: Matrix, X: Matrix, node: tuple[int, int, int], columns: tuple[int, int] | None = None
) -> bool:
    """Fill in the coupling of the right half, or of one block column of it, to the left half.

    `trsyl` scales the right-hand side down where the solution would overflow. Columns that grow little must not be
    scaled with those that grow much: False, and nothing done, where they would be.
    """
    start, half, stop = node
    left, right = columns or (half, stop)
    below = X[half:stop, left:right]
    Y, scale, _ = lapack.dtrsyl(
        R[start:half, start:half], diagonal[left:right, left:right], R[start:half, half:stop] @ below, isgn=-1
    )
    if scale != 1.0:
        if columns is None and scale < 1.0 / _GROWTH_LIMIT:
            return False
        below *= scale
    X[start:half, left:right] = -Y
    return True


def _shrink_columns(X: Matrix, bounds: list[int], top: int) -> None:
    """Scale each block column to largest entry one; one number per block leaves its diagonal block unchanged."""
    for start, stop in itertools.pairwise(bounds):
        column = X[top:stop, start:stop]
        largest = np.max(np.abs(column))
        if largest > 1.0:
            column /= largest
