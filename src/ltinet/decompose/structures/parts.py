"""Matrices that fall apart: each connected part by its own structure, small ones as arrays."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from ltinet.arrays import Array
from ltinet.decompose.form import BlockDiagonalForm
from ltinet.decompose.structures.basis import SideBySide
from ltinet.decompose.structures.diagonal import diagonal
from ltinet.decompose.structures.diagonal_blocks import DiagonalBlocks
from ltinet.decompose.structures.structure import Structure
from ltinet.model.matrices import Matrix
from ltinet.model.sparse_matrices import SparseMatrix
from ltinet.shown import count_of

States = NDArray[np.intp]
Part = Callable[[SparseMatrix], Structure | None]
"""How a part is decomposed."""


def separate_parts(A: SparseMatrix, decompose: Part) -> Structure | None:
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
        found = diagonal(part) if states is alone else decompose(part)
        if found is None:
            return None
        parts.append((states, found))
    return _joined(parts, n_parts)


def _joined(parts: list[tuple[States, Structure]], n_parts: int) -> Structure:
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
    told = f"{count_of(n_parts, 'part')} without connections ({'; '.join(kinds[:3])}{'; …' if len(kinds) > 3 else ''})"
    return Structure(
        told,
        A,
        np.concatenate([found.rates for _, found in parts]),
        np.concatenate([found.block_sizes for _, found in parts]),
        SideBySide([(states, found.basis) for states, found in parts]),
        (min(found.stretch[0] for _, found in parts), max(found.stretch[1] for _, found in parts)),
    )


@final
@dataclass(frozen=True, eq=False)
class FromArrays:
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


def structure_of(form: BlockDiagonalForm) -> Structure:
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
    return Structure("small matrix", blocks, rates, sizes, FromArrays(form.transformation), ends)
