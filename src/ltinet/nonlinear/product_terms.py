"""Product terms of a model: the part of its equations that is of second degree.

    x' = A x + B v + Σ_k v_k N_k x + Σ_l p_l (A_l x + B_l v) + H (x ⊗ x),
    y  = C x + D v + Σ_l p_l (C_l x + D_l v),

with inputs v and scheduling signals p. H (x ⊗ x) is stored as S ((J x) ∘ (K x)), never as a matrix of n² columns: a sum
over pairs of states needs a column of S for each pair that occurs, and factors that the user gives stay as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ltinet._util.floating_point import Array
from ltinet._util.text import format_count
from ltinet.errors import InvalidSystemError
from ltinet.systems.matrices import Matrix, MatrixLike, SparseMatrix, as_real_matrix, require_real_dtype


class QuadraticFactors(NamedTuple):
    """Factors of H (x ⊗ x) = S ((J x) ∘ (K x)), with ∘ the product of entries.

    Parameters
    ----------
    S : sparse array, shape (n, q)
        Weights of the products.
    J, K : sparse array, shape (q, n)
        Weights of the states in the first and in the second factor of each product.
    """

    S: SparseMatrix
    J: SparseMatrix
    K: SparseMatrix


@dataclass(frozen=True, eq=False)
class ProductTerms:
    """Matrices of all product terms in the coordinates of the user; tuples are empty where a model has no such terms."""

    N: tuple[SparseMatrix, ...]
    """One for each input."""
    A_p: tuple[SparseMatrix, ...]
    """One for each scheduling signal, as B_p, C_p and D_p."""
    B_p: tuple[Matrix, ...]
    C_p: tuple[Matrix, ...]
    D_p: tuple[Matrix, ...]
    H: QuadraticFactors | None

    def state_matrix(self, A: Any, v: Array, p: Array) -> Any:
        """Return A + Σ v_k N_k + Σ p_l A_l."""
        for factor, matrix in zip((*v, *p), (*(self.N or (None,) * len(v)), *self.A_p), strict=True):
            if matrix is not None and matrix.nnz and factor:
                A = A + float(factor) * matrix
        return A

    def scheduled(self, name: str, matrix: Matrix, p: Array) -> Matrix:
        """Return B + Σ p_l B_l for the name "B_p", and C and D likewise."""
        for factor, change in zip(p, getattr(self, name), strict=True):
            matrix = matrix + factor * change
        return matrix

    def arrays(self) -> dict[str, Any]:
        """Return all matrices by name: "N0", "A_p1", …, "S", "J", "K"."""
        lists = {name: getattr(self, name) for name in ("N", "A_p", "B_p", "C_p", "D_p")}
        named = {f"{name}{index}": matrix for name, matrices in lists.items() for index, matrix in enumerate(matrices)}
        return named | ({} if self.H is None else self.H._asdict())


# Validation


def as_sparse_of_shape(value: MatrixLike, name: str, shape: tuple[int, ...], *, needs: str) -> SparseMatrix:
    """Return a read-only copy in compressed rows; `needs` explains the shape in the message."""
    if callable(value) and not hasattr(value, "shape"):
        raise InvalidSystemError(
            f"{name} is a function; functions are not lifted to products automatically, so write the model in matrices"
        )
    if sparse.issparse(value):
        require_real_dtype(value.dtype, name)
        _require_shape(value.shape, name, shape, needs)
        entries = sparse.coo_array(value)
        for indices, size in zip((entries.row, entries.col), shape, strict=True):
            if len(indices) and not (int(indices.min()) >= 0 and int(indices.max()) < size):
                raise InvalidSystemError(f"{name} has an entry outside its shape {shape}; build it again")
        matrix = sparse.csr_array(entries.astype(np.float64))
        matrix.sum_duplicates()
    else:
        dense = as_real_matrix(value, name)
        _require_shape(dense.shape, name, shape, needs)
        matrix = sparse.csr_array(dense)
    if not np.isfinite(matrix.data).all():
        raise InvalidSystemError(f"{name} has entries that are not finite; replace NaN and infinities")
    matrix.eliminate_zeros()
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.setflags(write=False)
    return matrix


def as_matrix_list(
    values: Any, name: str, shape: tuple[int, int], *, count: int, noun: str, needs: str, is_sparse: bool = True
) -> tuple[Any, ...]:
    """Return one matrix for each input or scheduling signal; None among them is zero, None for all of them is ().

    A single matrix stands for a list of one.
    """
    if values is None:
        return ()
    if sparse.issparse(values) or (isinstance(values, np.ndarray) and values.ndim == 2):
        values = [values]
    if not isinstance(values, Sequence | np.ndarray) or isinstance(values, str):
        raise InvalidSystemError(f"{name} must be a list of matrices, one for each {noun}, got {type(values).__name__}")
    if len(values) != count:
        raise InvalidSystemError(
            f"{name} has {format_count(len(values), 'matrix', 'matrices')}, but the model has {format_count(count, noun)}; "
            "give one matrix for each, None where it is zero"
        )
    matrices = []
    for index, value in enumerate(values):
        filled = sparse.csr_array(shape) if value is None else value
        matrix = as_sparse_of_shape(filled, f"{name}[{index}]", shape, needs=needs)
        matrices.append(matrix if is_sparse else as_real_matrix(matrix, f"{name}[{index}]"))
    return tuple(matrices)


def _require_shape(shape: tuple[int, ...], name: str, expected: tuple[int, ...], needs: str) -> None:
    if tuple(shape) != expected:
        raise InvalidSystemError(f"{name} has shape {tuple(shape)}; it must be {expected}, {needs}")


# Quadratic terms


def as_quadratic_factors(H: Any, n: int) -> QuadraticFactors:
    """Return the factors of H, given as n×n², dense or sparse, or as (S, J, K).

    Only the symmetric part of H matters: columns j n + k and k n + j multiply the same product x_j x_k and are added.
    """
    if isinstance(H, tuple | list) and len(H) == 3 and not all(np.ndim(part) <= 1 for part in H):
        q = np.shape(H[0])[1] if len(np.shape(H[0])) == 2 else -1
        S = as_sparse_of_shape(H[0], "S of H", (n, q), needs="one row per state and one column per product")
        J, K = (
            as_sparse_of_shape(part, f"{name} of H", (q, n), needs="one row per product and one column per state")
            for name, part in zip("JK", H[1:], strict=True)
        )
        return QuadraticFactors(S, J, K)
    needs = "one row per state and one column per pair of states: H (x ⊗ x); or give factors (S, J, K)"
    entries = sparse.coo_array(as_sparse_of_shape(H, "H", (n, n * n), needs=needs))
    first, second = np.divmod(entries.col.astype(np.int64), max(n, 1))
    pairs = np.minimum(first, second) * n + np.maximum(first, second)
    used, product = np.unique(pairs, return_inverse=True)
    S = sparse.csr_array((entries.data, (entries.row, product)), shape=(n, len(used)))
    S.sum_duplicates()
    factors = [
        sparse.csr_array((np.ones(len(used)), (np.arange(len(used)), states)), shape=(len(used), n))
        for states in np.divmod(used, max(n, 1))
    ]
    return QuadraticFactors(S, *factors)


def quadratic_matrix(H: QuadraticFactors) -> SparseMatrix:
    """Return the symmetrised H, n×n², with equal columns j n + k and k n + j."""
    n, q = H.S.shape
    rows, columns, values = [], [], []
    S, J, K = H.S.tocsc(), H.J, H.K
    for product in range(q):
        weights = S[:, [product]].tocoo()
        outer = sparse.coo_array(sparse.kron(J[[product]], K[[product]]))
        j, k = np.divmod(outer.col, n)
        for pair in (j * n + k, k * n + j):
            rows.append(np.repeat(weights.row, len(pair)))
            columns.append(np.tile(pair, len(weights.row)))
            values.append(np.outer(weights.data, 0.5 * outer.data).ravel())
    parts = [np.concatenate([np.zeros(0), *part]) for part in (values, rows, columns)]
    matrix = sparse.csr_array((parts[0], (parts[1].astype(int), parts[2].astype(int))), shape=(n, n * n))
    matrix.sum_duplicates()
    return matrix
