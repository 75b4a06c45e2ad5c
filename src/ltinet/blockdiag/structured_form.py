"""Block-diagonal form of a large sparse matrix by detection of its structure.

Detectors run from the cheapest to the most expensive. A matrix with several connected components is decomposed
component by component, each by its own structure, small ones as dense arrays. E must be the identity or diagonal. Cost:
O(nnz) for detection, then one or two fast transforms; dense arrays only for tridiagonal matrices of up to 5,000 states
and components of up to 3,000.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ltinet._util.floating_point import EPS
from ltinet._util.text import format_count
from ltinet.blockdiag.block_diagonalization import candidate_forms, split_by_block
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.blockdiag.partition import BlockChoice
from ltinet.blockdiag.schur import groups_of_equal
from ltinet.blockdiag.structured_matrices import (
    DiagonalBlocks,
    Structure,
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
from ltinet.systems.matrices import SparseMatrix, make_read_only
from ltinet.systems.sparse_descriptor import MAX_DENSE_STATES, SparseDescriptor

# Limit on cond(T) of structured forms, whatever limit the user gives: outputs lose three digits at most. Large models
# cannot be simulated in their original coordinates instead, as small ones are.
_MAX_CONDITION = 1e3
_SYMMETRY_TOLERANCE = 4.0 * EPS  # relative to the largest entry: rounding of entries that were computed separately


def find_structured_form(pencil: SparseDescriptor, *, max_condition: float) -> BlockDiagonalForm | None:
    """Return the form of a structured sparse model with limited cond(T), None where no structure is found."""
    A = pencil.explicit_state
    if A is None:
        return None
    structure = find_structure(A, max_condition=min(max_condition, _MAX_CONDITION))
    return None if structure is None else _form_from_structure(A, structure, budget=max_condition)


def find_structure(A: SparseMatrix, *, max_condition: float) -> Structure | None:
    """Return the structure of a matrix, None where no detector matches."""
    return (
        diagonal_structure(A)
        or component_structures(A, lambda part: _component_structure(part, max_condition=max_condition))
        or tridiagonal_structure(A, max_condition=max_condition)
        or circulant_structure(A)
        or kronecker_structure(A, lambda factor: _factor_structure(factor, max_condition), max_condition=max_condition)
    )


def _component_structure(A: SparseMatrix, *, max_condition: float) -> Structure | None:
    """Return the structure of a connected component, or the form of a small one computed as an array."""
    structure = tridiagonal_structure(A, max_condition=max_condition) or circulant_structure(A)
    if structure is None and A.shape[0] <= MAX_DENSE_STATES:
        forms = candidate_forms(make_read_only(A.toarray()), BlockChoice(max_condition), balance=None)
        structure = structure_from_form(forms[0]) if forms[0].condition_raw <= max_condition else None
    return structure or kronecker_structure(
        A, lambda factor: _factor_structure(factor, max_condition), max_condition=max_condition
    )


def _factor_structure(A: SparseMatrix, max_condition: float) -> Structure | None:
    """Return the structure of a factor of a Kronecker sum, whose T must be a scaling times an orthogonal matrix."""
    return (
        diagonal_structure(A)
        or tridiagonal_structure(A, max_condition=max_condition)
        or circulant_structure(A)
        or kronecker_structure(A, lambda factor: _factor_structure(factor, max_condition), max_condition=max_condition)
        or _symmetric_structure(A)
    )


def _symmetric_structure(A: SparseMatrix) -> Structure | None:
    """Return the structure of a small matrix that is symmetric up to rounding."""
    difference = abs(sparse.csr_array(A - A.T))
    asymmetry = difference.max() if difference.nnz else 0.0
    if A.shape[0] > MAX_DENSE_STATES or asymmetry > _SYMMETRY_TOLERANCE * abs(A).max():
        return None
    dense = A.toarray()
    values, vectors = np.linalg.eigh(0.5 * (dense + dense.T))
    basis = ScaledOrthogonalBasis(DenseOrthogonalTransform(vectors))
    return Structure.of_neurons("symmetric matrix", values.astype(np.complex128), basis)


def _form_from_structure(A: SparseMatrix, structure: Structure, *, budget: float) -> BlockDiagonalForm:
    """Return the form of a structure, its blocks ordered by their largest real part as in every form."""
    sizes = structure.block_sizes
    starts = np.cumsum(sizes) - sizes
    largest = np.maximum.reduceat(structure.rates.real, starts) if len(sizes) else np.empty(0)
    order = np.argsort(-largest, kind="stable")
    states = np.argsort(np.repeat(np.argsort(order), sizes), kind="stable")
    blocks: Any = structure.A.reordered(states)
    original: Any = A
    return BlockDiagonalForm(
        A=blocks,
        transformation=ImplicitTransformation(structure.basis, states, structure.condition),
        block_sizes=tuple(sizes[order].tolist()),
        eigenvalues=split_by_block(structure.rates[states], sizes[order]),
        scaling=make_read_only(np.ones(len(states))),
        original=original,
        budget=budget,
        decisions=(f"structure: {structure.description}",),
    )


def component_structures(A: SparseMatrix, decompose: Callable[[SparseMatrix], Structure | None]) -> Structure | None:
    """Return the structure of a matrix with several components; None for one component, or one without a structure."""
    n_components, labels = connected_components(A, directed=False)
    if n_components < 2:
        return None
    groups = groups_of_equal(labels)
    single = np.array([states[0] for states in groups if len(states) == 1], dtype=np.intp)
    components: list[tuple[NDArray[np.intp], Structure]] = []
    for states in [*([single] if len(single) else []), *(states for states in groups if len(states) > 1)]:
        component = A[states][:, states]
        structure = diagonal_structure(component) if states is single else decompose(component)
        if structure is None:
            return None
        components.append((states, structure))
    return _combine_components(components, n_components)


def _combine_components(components: list[tuple[NDArray[np.intp], Structure]], n_components: int) -> Structure:
    """Return the structure of a block-diagonal matrix from those of its components."""
    structures = [structure for _, structure in components]
    blocks = [structure.A for structure in structures]
    starts = np.cumsum([0, *(len(block) for block in blocks)])
    wide = [(int(start) + at, dense) for start, block in zip(starts, blocks, strict=False) for at, dense in block.wide]
    A = DiagonalBlocks(
        np.concatenate([block.diagonal for block in blocks]),
        np.concatenate([block.upper for block in blocks]),
        np.concatenate([block.lower for block in blocks]),
        tuple(wide),
    )
    kinds = list(dict.fromkeys(structure.description for structure in structures))
    listed = f"{'; '.join(kinds[:3])}{'; …' if len(kinds) > 3 else ''}"
    return Structure(
        f"{format_count(n_components, 'part')} without connections ({listed})",
        A,
        np.concatenate([structure.rates for structure in structures]),
        np.concatenate([structure.block_sizes for structure in structures]),
        BlockwiseBasis([(states, structure.basis) for states, structure in components]),
        (
            min(structure.singular_values[0] for structure in structures),
            max(structure.singular_values[1] for structure in structures),
        ),
    )


def structure_from_form(form: BlockDiagonalForm) -> Structure:
    """Return the structure of a component that was decomposed as an array, with blocks of any size."""
    A: Any = form.A
    starts = np.cumsum([0, *form.block_sizes])
    wide = [
        (int(start), form.block(index))
        for index, (start, size) in enumerate(zip(starts, form.block_sizes, strict=False))
        if size > 2 or (size == 2 and form.reals_per_block[index])
    ]
    upper, lower = np.append(np.diagonal(A, 1), 0.0), np.append(np.diagonal(A, -1), 0.0)
    for start, block in wide:
        upper[start : start + len(block)] = lower[start : start + len(block)] = 0.0
    blocks = DiagonalBlocks(np.diagonal(A).copy(), upper, lower, tuple(wide))
    rates = np.concatenate([*form.eigenvalues, np.empty(0, dtype=np.complex128)])
    sizes = np.array(form.block_sizes, dtype=np.intp)
    singular_values = np.linalg.svd(form.T, compute_uv=False)
    extremes = (float(singular_values[-1]), float(singular_values[0]))
    return Structure("small matrix", blocks, rates, sizes, form.transformation, extremes)
