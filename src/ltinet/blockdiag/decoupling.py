"""Invariant subspaces of the diagonal blocks of a quasi-triangular matrix: R X = X · blkdiag(R_11, …, R_LL).

Two methods. Sylvester equations, R_aa Y − Y Λ_b = −R_ab X_b, are solved by recursion over halves (Bartels & Stewart
1972, LAPACK `trsyl`). Single neurons take the eigenvectors of LAPACK `trevc`, at about n³/3 flops a fraction of that
work. SciPy exports `trevc` for C only (`cython_lapack`); it is called through that pointer if its signature is the
expected one, and Sylvester equations are used otherwise.
"""

import ctypes
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_lapack, lapack

from ltinet._util.floating_point import MAX_AMPLIFICATION
from ltinet.blockdiag.schur import SchurForm
from ltinet.systems.matrices import Matrix

# Columns grow by at most 1/eps in one solve; rescaling at this size keeps a chain of solves far from overflow.
_GROWTH_LIMIT = 1e100


@dataclass(frozen=True)
class Decoupling:
    """Solution of R X = X · diagonal: each block column of the block triangular X spans an invariant subspace."""

    X: Matrix
    diagonal: Matrix


def decouple(R: Matrix, bounds: NDArray[np.intp]) -> Decoupling:
    """Decouple the diagonal blocks R_11, …, R_LL that begin at `bounds`: R X = X · blkdiag(R_11, …, R_LL).

    Each block column [∗; s·I; 0] of X spans the invariant subspace of that block's eigenvalues. It is found by back
    substitution over halves: with the columns of the right half known, R_aa Y − Y Λ_b = −R_ab X_b gives the rest
    (Bartels & Stewart 1972, LAPACK `trsyl`). Cost O(n³) for single neurons, ~n³/3 flops in two halves.

    Where two blocks share an eigenvalue, `trsyl` replaces the zero divisor by one of rounding size, so that Y solves a
    problem within rounding of this one. If the subspaces are distinct, Y stays moderate and is accurate; otherwise Y is
    huge and the columns become parallel, which shows in the condition number of the result.
    """
    X = np.eye(len(R))
    block = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    diagonal = np.where(block[:, None] == block, R, 0.0)
    if len(bounds) > 2:
        _decouple_halves(R, diagonal, X, bounds.tolist())
        # s underflows where subspaces coincide; the columns stay independent, with a large condition number.
        np.fill_diagonal(X, np.maximum(X.diagonal(), np.finfo(float).tiny))
    return Decoupling(X, diagonal)


def invariant_subspace(R: Matrix, start: int, stop: int) -> Matrix:
    """Return the columns [Y; s·I] of the block with the states start … stop.

    R_aa Y − Y Λ = −s·R_ab holds for all states before the block.
    """
    columns = np.eye(stop, stop - start, k=-start, order="F")
    if start == 0:
        return columns
    block = slice(start, stop)
    Y, scale, _ = lapack.dtrsyl(R[:start, :start], R[block, block], R[:start, block], isgn=-1)
    columns[:start] = -Y
    columns[block] *= max(scale, np.finfo(float).tiny)
    largest = max(Y.max(), -Y.min())
    return columns / largest if largest > _GROWTH_LIMIT else columns


def _decouple_halves(R: Matrix, diagonal: Matrix, X: Matrix, bounds: list[int]) -> None:
    """Solve for the couplings between all blocks that begin at `bounds`, by recursion over halves, in place."""
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
    scaled with those that grow much: where they would be, nothing is done and False is returned.
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
    """Scale each block column to largest entry one; a single factor per block leaves its diagonal block unchanged."""
    for start, stop in itertools.pairwise(bounds):
        column = X[top:stop, start:stop]
        largest = np.max(np.abs(column))
        if largest > 1.0:
            column /= largest


_DOUBLE_POINTER = "__pyx_t_5scipy_6linalg_13cython_lapack_d *"
_TREVC_SIGNATURE = (
    f"void (char *, char *, int *, int *, {_DOUBLE_POINTER}, int *, {_DOUBLE_POINTER}, int *, {_DOUBLE_POINTER}, "
    f"int *, int *, int *, {_DOUBLE_POINTER}, int *)"
)


def decouple_neurons(schur: SchurForm, bounds: NDArray[np.intp]) -> Decoupling:
    """Decouple the blocks that begin at `bounds`, R X = X Λ: single neurons by eigenvectors, others as in `decouple`.

    A pair in a block of its own becomes [[a, ω], [−ω, a]] in Λ, with the real and imaginary part of an eigenvector as
    its columns. A nearly real pair, whose parts would be nearly parallel, stays as it is. Cost ~n³/3 flops for single
    neurons.
    """
    if _trevc is None:
        return decouple(schur.R, bounds)
    R, first, sizes = schur.R, bounds[:-1], bounds[1:] - bounds[:-1]
    has_vectors = schur.neurons_between(bounds) == 1
    pair = has_vectors & (sizes == 2)
    b, c = np.abs(R[first[pair], first[pair] + 1]), np.abs(R[first[pair] + 1, first[pair]])
    # Real and imaginary parts of eigenvectors are computed to eps of the larger one. Their ratio is √(b/c), by which the
    # plane of a pair would lose accuracy: nearly real pairs are left to `decouple`.
    has_vectors[pair] = MAX_AMPLIFICATION**2 * np.minimum(b, c) >= np.maximum(b, c)
    is_selected = np.repeat(has_vectors, sizes)
    X, diagonal = _right_eigenvectors(R, is_selected), np.diag(np.where(is_selected, R.diagonal(), 0.0))
    at = first[pair & has_vectors]
    omega = np.sqrt(np.abs(R[at, at + 1])) * np.sqrt(np.abs(R[at + 1, at]))
    diagonal[at, at + 1], diagonal[at + 1, at] = omega, -omega
    for block in (~has_vectors).nonzero()[0].tolist():
        start, stop = bounds[block : block + 2].tolist()
        X[:stop, start:stop] = invariant_subspace(R, start, stop)
        diagonal[start:stop, start:stop] = R[start:stop, start:stop]
    return Decoupling(X, diagonal)


def _right_eigenvectors(R: Matrix, is_selected: NDArray[np.bool_]) -> Matrix:
    """Return eigenvectors in the selected columns, for a pair its real and imaginary part; zeros in the others."""
    n, n_selected = len(R), int(np.count_nonzero(is_selected))
    X = np.zeros((n, n), order="F")
    if n_selected == 0:
        return X
    R = np.asfortranarray(R)
    vectors = X if n_selected == n else np.zeros((n, n_selected), order="F")
    selection, work = is_selected.astype(np.intc), np.empty(3 * n)
    order, n_columns, n_computed, info = ctypes.c_int(n), ctypes.c_int(n_selected), ctypes.c_int(), ctypes.c_int()
    side, which = ctypes.c_char(b"R"), ctypes.c_char(b"S")
    ref = ctypes.byref
    chosen, matrix, result, scratch = (array.__array_interface__["data"][0] for array in (selection, R, vectors, work))
    _trevc(
        ref(side), ref(which), chosen, ref(order), matrix, ref(order), None, ref(order),
        result, ref(order), ref(n_columns), ref(n_computed), scratch, ref(info),
    )  # fmt: skip
    if vectors is not X:
        X[:, is_selected] = vectors
    return X


def _load_trevc() -> Any:
    """Return the `dtrevc` exported by SciPy, or None if it is missing or has another signature."""
    capsule = getattr(cython_lapack, "__pyx_capi__", {}).get("dtrevc")
    if capsule is None:
        return None
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    name = name_of(capsule)
    if name is None or name.decode() != _TREVC_SIGNATURE:
        return None
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 14)(pointer_of(capsule, name))


_trevc = _load_trevc()
