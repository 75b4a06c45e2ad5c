"""Block-diagonal form of a large sparse matrix by detection of its structure.

Detectors run from the cheapest to the most expensive. A matrix with several connected components is decomposed
component by component, each by its own structure, small ones as dense arrays. E must be the identity or diagonal. Cost:
O(nnz) for detection, then one or two fast transforms; dense arrays only for tridiagonal matrices of up to 5,000 states
and components of up to 3,000.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ltinet._util.floating_point import EPS, Array
from ltinet._util.text import format_count
from ltinet.blockdiag.block_diagonalization import candidate_forms
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.blockdiag.partition import BlockChoice
from ltinet.blockdiag.structured_matrices import (
    DiagonalBlocks,
    Structure,
    block_sizes_of,
    blocks_from_rates,
    circulant_structure,
    diagonal_structure,
    kronecker_structure,
    tridiagonal_structure,
)
from ltinet.blockdiag.transformation import (
    BlockwiseBasis,
    DenseOrthogonalTransform,
    ImplicitTransformation,
    ScaledOrthogonalBasis,
)
from ltinet.systems.matrices import Matrix, SparseMatrix, make_read_only
from ltinet.systems.sparse_descriptor import MAX_DENSE_STATES, SparseDescriptor

# MERGED ltinet.blockdiag.structured_form
# The block-diagonal form of a large sparse matrix with a known structure, which is detected from its entries.
#
# Tests run from the cheapest to the most expensive. A matrix of several connected components is decomposed component by
# component, each by its own structure, small ones as dense arrays.

States = NDArray[np.intp]
PartDecomposer = Callable[[SparseMatrix], Structure | None]
"""How a part is decomposed."""

# cond(T) up to which states keep their digits without another way through them, which a large model does not have.
_MAX_CONDITION = 1e3
_SYMMETRY_TOLERANCE = 4.0 * EPS  # relative to the largest entry


def find_structured_form(pencil: SparseDescriptor, *, max_condition: float) -> BlockDiagonalForm | None:
    """The block-diagonal form of a structured sparse model with cond(T) within a bound; None where nothing was found.

    E must be the identity or diagonal. Cost O(entries) to look; then of a transform or two, n² numbers nowhere but for
    tridiagonal matrices of up to 5,000 states and parts of up to 3,000.
    """
    A = pencil.explicit_state
    found = None if A is None else find_structure(A, max_condition=min(max_condition, _MAX_CONDITION))
    return None if A is None or found is None else _form_from_structure(A, found, budget=max_condition)


def find_structure(A: SparseMatrix, *, max_condition: float) -> Structure | None:
    """The structure of a matrix, None where it has none of those known here."""
    return (
        diagonal_structure(A)
        or decompose_parts(A, lambda part: _part_structure(part, max_condition=max_condition))
        or tridiagonal_structure(A, max_condition=max_condition)
        or circulant_structure(A)
        or kronecker_structure(A, lambda factor: _factor_structure(factor, max_condition), max_condition=max_condition)
    )


def _part_structure(A: SparseMatrix, *, max_condition: float) -> Structure | None:
    """Of a part that hangs together: by its structure or, if it is small, as an array."""
    found = tridiagonal_structure(A, max_condition=max_condition) or circulant_structure(A)
    if found is None and A.shape[0] <= MAX_DENSE_STATES:
        forms = candidate_forms(make_read_only(A.toarray()), BlockChoice(max_condition), balance=None)
        found = structure_from_form(forms[0]) if forms[0].condition_raw <= max_condition else None
    if found is not None:
        return found
    return kronecker_structure(A, lambda factor: _factor_structure(factor, max_condition), max_condition=max_condition)


def _factor_structure(A: SparseMatrix, max_condition: float) -> Structure | None:
    """Of a factor of a Kronecker sum, whose T must be a scaling times something orthogonal."""
    known = diagonal_structure(A) or tridiagonal_structure(A, max_condition=max_condition) or circulant_structure(A)
    if known is not None:
        return known
    inner = kronecker_structure(A, lambda factor: _factor_structure(factor, max_condition), max_condition=max_condition)
    return inner or _symmetric_structure(A)


def _symmetric_structure(A: SparseMatrix) -> Structure | None:
    """A small matrix that is symmetric, or was before it was rounded."""
    difference = abs(sparse.csr_array(A - A.T))
    asymmetry = difference.max() if difference.nnz else 0.0
    if A.shape[0] > MAX_DENSE_STATES or asymmetry > _SYMMETRY_TOLERANCE * abs(A).max():
        return None
    filled = A.toarray()
    values, vectors = np.linalg.eigh(0.5 * (filled + filled.T))
    rates = values.astype(np.complex128)
    return Structure(
        "symmetric matrix",
        blocks_from_rates(rates),
        rates,
        block_sizes_of(rates),
        ScaledOrthogonalBasis(DenseOrthogonalTransform(vectors)),
    )


def _form_from_structure(A: SparseMatrix, found: Structure, *, budget: float) -> BlockDiagonalForm:
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
        transformation=ImplicitTransformation(found.basis, states, found.condition),
        block_sizes=tuple(sizes[order].tolist()),
        eigenvalues=tuple(rates[start:stop] for start, stop in zip([0, *stops], stops, strict=False)),
        scaling=make_read_only(np.ones(len(rates))),
        original=given,
        budget=budget,
        decisions=(f"structure: {found.told}",),
    )


def decompose_parts(A: SparseMatrix, decompose: PartDecomposer) -> Structure | None:
    """The structure of a matrix of several parts that each have one; None where there is one part, or one has none."""
    n_parts, labels = connected_components(A, directed=False)
    if n_parts < 2:
        return None
    order = np.argsort(labels, kind="stable")
    every = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    alone = np.array([own[0] for own in every if len(own) == 1], dtype=np.intp)
    parts: list[tuple[States, Structure]] = []
    for states in [*([alone] if len(alone) else []), *(own for own in every if len(own) > 1)]:
        part = A[states][:, states]
        found = diagonal_structure(part) if states is alone else decompose(part)
        if found is None:
            return None
        parts.append((states, found))
    return _combine_parts(parts, n_parts)


def _combine_parts(parts: list[tuple[States, Structure]], n_parts: int) -> Structure:
    blocks = [found.A for _, found in parts]
    starts = np.cumsum([0, *(len(own) for own in blocks)])
    wide = [(int(start) + at, own) for start, part in zip(starts, blocks, strict=False) for at, own in part.wide]
    A = DiagonalBlocks(
        np.concatenate([own.diagonal for own in blocks]),
        np.concatenate([own.upper for own in blocks]),
        np.concatenate([own.lower for own in blocks]),
        tuple(wide),
    )
    kinds = list(dict.fromkeys(found.told for _, found in parts))
    told = (
        f"{format_count(n_parts, 'part')} without connections ({'; '.join(kinds[:3])}{'; …' if len(kinds) > 3 else ''})"
    )
    return Structure(
        told,
        A,
        np.concatenate([found.rates for _, found in parts]),
        np.concatenate([found.block_sizes for _, found in parts]),
        BlockwiseBasis([(states, found.basis) for states, found in parts]),
        (min(found.stretch[0] for _, found in parts), max(found.stretch[1] for _, found in parts)),
    )


@final
@dataclass(frozen=True, eq=False)
class DenseBasis:
    """The T of a part that was decomposed as an array."""

    transformation: Any

    def to_blocks(self, B: Matrix) -> Matrix:
        """T⁻¹ B."""
        return np.asarray(self.transformation.to_blocks(B))

    def from_blocks(self, C: Matrix) -> Matrix:
        """C T."""
        return np.asarray(self.transformation.from_blocks(C))

    def states_of(self, z: Array) -> Array:
        """T z."""
        return np.asarray(self.transformation.T @ z)


def structure_from_form(form: BlockDiagonalForm) -> Structure:
    """A part that was decomposed as an array, whatever blocks it has."""
    A: Any = form.A
    starts = np.cumsum([0, *form.block_sizes])
    wide = [
        (int(start), form.block(place))
        for place, (start, size) in enumerate(zip(starts, form.block_sizes, strict=False))
        if size > 2 or (size == 2 and form.reals_per_block[place])
    ]
    upper, lower = np.append(np.diagonal(A, 1), 0.0), np.append(np.diagonal(A, -1), 0.0)
    for start, block in wide:
        upper[start : start + len(block)] = lower[start : start + len(block)] = 0.0
    blocks = DiagonalBlocks(np.diagonal(A).copy(), upper, lower, tuple(wide))
    rates = np.concatenate([*form.eigenvalues, np.empty(0, dtype=np.complex128)])
    sizes = np.array(form.block_sizes, dtype=np.intp)
    stretches = np.linalg.svd(form.T, compute_uv=False)
    ends = (float(stretches[-1]), float(stretches[0]))
    return Structure("small matrix", blocks, rates, sizes, DenseBasis(form.transformation), ends)
