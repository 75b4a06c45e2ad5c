"""Which structure a sparse matrix has: looked for by its entries, from the cheapest to the dearest."""

from typing import Any

import numpy as np
from scipy import sparse

from ltinet.decompose.block_diagonal import candidate_forms
from ltinet.decompose.choose.choice import BlockChoice
from ltinet.decompose.form import BlockDiagonalForm
from ltinet.decompose.structures.basis import Rotated, Vectors
from ltinet.decompose.structures.circulant import circulant
from ltinet.decompose.structures.diagonal import diagonal
from ltinet.decompose.structures.diagonal_blocks import of_rates
from ltinet.decompose.structures.kronecker import kronecker_sum
from ltinet.decompose.structures.operator import Operator
from ltinet.decompose.structures.parts import separate_parts, structure_of
from ltinet.decompose.structures.structure import Structure, sizes_of
from ltinet.decompose.structures.tridiagonal import tridiagonal
from ltinet.model.matrices import read_only
from ltinet.model.sparse_matrices import SparseMatrix
from ltinet.model.sparse_pencil import LARGEST_FILLED_IN, SparsePencil
from ltinet.tolerances import EPS

# cond(T) up to which states keep their digits without another way through them, which a large model does not have.
_MOST = 1e3
_ROUNDED = 4.0 * EPS  # relative to the largest entry


def structured_form(pencil: SparsePencil, *, max_condition: float) -> BlockDiagonalForm | None:
    """The block-diagonal form of a structured sparse model with cond(T) within a bound; None where nothing was found.

    E must be the identity or diagonal. Cost O(entries) to look; then of a transform or two, n² numbers nowhere but for
    tridiagonal matrices of up to 5,000 states and parts of up to 3,000.
    """
    A = pencil.explicit_state
    found = None if A is None else find(A, max_condition=min(max_condition, _MOST))
    return None if A is None or found is None else _as_form(A, found, budget=max_condition)


def find(A: SparseMatrix, *, max_condition: float) -> Structure | None:
    """The structure of a matrix, None where it has none of those known here."""
    return (
        diagonal(A)
        or separate_parts(A, lambda part: _of_part(part, max_condition=max_condition))
        or tridiagonal(A, max_condition=max_condition)
        or circulant(A)
        or kronecker_sum(A, lambda factor: _of_factor(factor, max_condition), max_condition=max_condition)
    )


def _of_part(A: SparseMatrix, *, max_condition: float) -> Structure | None:
    """Of a part that hangs together: by its structure or, if it is small, as an array."""
    found = tridiagonal(A, max_condition=max_condition) or circulant(A)
    if found is None and A.shape[0] <= LARGEST_FILLED_IN:
        forms = candidate_forms(read_only(A.toarray()), BlockChoice(max_condition), balance=None)
        found = structure_of(forms[0]) if forms[0].condition_raw <= max_condition else None
    if found is not None:
        return found
    return kronecker_sum(A, lambda factor: _of_factor(factor, max_condition), max_condition=max_condition)


def _of_factor(A: SparseMatrix, max_condition: float) -> Structure | None:
    """Of a factor of a Kronecker sum, whose T must be a scaling times something orthogonal."""
    known = diagonal(A) or tridiagonal(A, max_condition=max_condition) or circulant(A)
    if known is not None:
        return known
    inner = kronecker_sum(A, lambda factor: _of_factor(factor, max_condition), max_condition=max_condition)
    return inner or _symmetric(A)


def _symmetric(A: SparseMatrix) -> Structure | None:
    """A small matrix that is symmetric, or was before it was rounded."""
    difference = abs(sparse.csr_array(A - A.T))
    asymmetry = difference.max() if difference.nnz else 0.0
    if A.shape[0] > LARGEST_FILLED_IN or asymmetry > _ROUNDED * abs(A).max():
        return None
    filled = A.toarray()
    values, vectors = np.linalg.eigh(0.5 * (filled + filled.T))
    rates = values.astype(np.complex128)
    return Structure("symmetric matrix", of_rates(rates), rates, sizes_of(rates), Rotated(Vectors(vectors)))


def _as_form(A: SparseMatrix, found: Structure, *, budget: float) -> BlockDiagonalForm:
    """Blocks by their largest real part, as every form has them."""
    sizes = found.block_sizes
    starts = np.cumsum(sizes) - sizes
    largest = np.maximum.reduceat(found.rates.real, starts) if len(sizes) else np.empty(0)
    order = np.argsort(-largest, kind="stable")
    states = np.argsort(np.repeat(np.argsort(order), sizes), kind="stable")
    rates = found.rates[states]
    rates.setflags(write=False)
    stops = np.cumsum(sizes[order]).tolist()
    blocks: Any = found.A.reordered(states)
    given: Any = A
    return BlockDiagonalForm(
        A=blocks,
        transformation=Operator(found.basis, states, found.condition),
        block_sizes=tuple(sizes[order].tolist()),
        eigenvalues=tuple(rates[start:stop] for start, stop in zip([0, *stops], stops, strict=False)),
        scaling=read_only(np.ones(len(rates))),
        original=given,
        budget=budget,
        remarks=(f"structure: {found.told}",),
    )
