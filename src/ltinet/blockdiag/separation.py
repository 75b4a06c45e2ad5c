"""Separation of a Schur form into invariant subspaces for a given partition of its neurons.

The steps reorder, decouple and orthonormalize are repeated for every partition that is tried. Equal real eigenvalues
with a coupling stay in one block, however small the coupling. Neurons with eigenvalue zero in blocks of their own are
merged into one block, the kernel of A. Couplings inside the blocks of T⁻¹A T below the rounding bound eps · |T⁻¹||A||T|
of their entry are set to zero.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import rounding_tolerance, summation_tolerance
from ltinet.blockdiag.conditioning import Atoms, Partition, condition_number, group_labels
from ltinet.blockdiag.orthonormal_bases import BlockBases, block_bases, neuron_bases
from ltinet.blockdiag.schur import SchurForm, graph_components, reorder
from ltinet.systems.matrices import Matrix


@dataclass(frozen=True)
class Separation:
    """Schur form and, for each group of its neurons, an orthonormal basis of the invariant subspace."""

    schur: SchurForm
    bases: BlockBases
    is_orthogonal: bool = False
    """True if the Schur form has no couplings, so that the basis only rotates the planes of pairs."""

    @property
    def n_blocks(self) -> int:
        """Number of groups, each with its own basis."""
        return len(self.bases.bounds) - 1

    @cached_property
    def neurons(self) -> NDArray[np.intp]:
        """Number of neurons in each block."""
        return self.schur.neurons_between(self.bases.bounds)

    @cached_property
    def first_neuron(self) -> NDArray[np.intp]:
        """First neuron of each block."""
        return self.schur.starts.searchsorted(self.bases.bounds[:-1])

    @cached_property
    def condition(self) -> float:
        """cond₂(T) in balanced coordinates: the Schur vectors are orthogonal and do not change it."""
        return condition_number(self.bases.basis)

    @cached_property
    def inverse(self) -> Matrix:
        """Inverse of the basis, in Schur coordinates; raises LinAlgError where columns are parallel.

        The basis is block triangular, and Gaussian elimination does not leave its blocks: zeros stay exact.
        """
        inverse = np.asarray(np.linalg.inv(self.bases.basis), dtype=np.float64)
        if not np.isfinite(inverse).all():
            raise np.linalg.LinAlgError("the bases of two blocks are parallel")
        return inverse

    def is_within(self, max_condition: float) -> bool:
        """Return whether cond₂(T) ≤ max_condition, by ‖·‖₂² ≤ ‖·‖₁‖·‖∞ for T and T⁻¹ where that decides, else computed."""
        try:
            factors = self.bases.basis, self.inverse
        except np.linalg.LinAlgError:  # parallel vectors
            return False
        bound = 1.0
        with np.errstate(over="ignore"):  # nearly parallel vectors: the bound is infinite
            for factor in factors:
                magnitude = np.abs(factor)
                bound *= np.sqrt(magnitude.sum(axis=0).max()) * np.sqrt(magnitude.sum(axis=1).max())
        return bool(bound <= max_condition) or self.condition <= max_condition

    @property
    def atoms(self) -> Atoms:
        """Blocks as the atoms of a coarser partition."""
        return Atoms(self.bases.basis, self.bases.bounds, self.neurons, self.schur.eigenvalues[self.first_neuron])

    def merged(self, partition: Partition) -> "Separation":
        """Return the separation with the blocks merged according to a partition of them."""
        return separate(self.schur, np.repeat(group_labels(partition), self.neurons))


def separate(schur: SchurForm, groups: NDArray[np.intp]) -> Separation:
    """Return bases of the invariant subspaces of groups of neurons; `groups` has one number for every diagonal block."""
    ordered = reorder(schur, groups)
    return Separation(ordered.schur, block_bases(ordered.schur, ordered.bounds))


def separate_neurons(schur: SchurForm) -> Separation:
    """Return the separation with a block for every neuron; coupled neurons with equal real eigenvalues share a block.

    Such couplings cannot be removed, however small they are: LAPACK divides by eps instead of the distance zero.
    """
    separation = Separation(schur, neuron_bases(schur))
    chains = [chain for chain in _coupled_equal_eigenvalues(schur, separation.bases.basis) if len(chain) > 1]
    if not chains:
        return separation
    groups = np.arange(separation.n_blocks)
    for chain in chains:
        groups[chain] = chain[0]
    return separate(schur, groups)


def _coupled_equal_eigenvalues(schur: SchurForm, basis: Matrix) -> Iterator[NDArray[np.intp]]:
    """Yield groups of neurons with exactly equal real eigenvalues and couplings Σ R_ik X_kj above rounding."""
    is_real = schur.sizes == 1
    _, index, counts = np.unique(schur.eigenvalues.real[is_real], return_inverse=True, return_counts=True)
    for repeated in (counts > 1).nonzero()[0]:
        neurons = is_real.nonzero()[0][index == repeated]
        at = schur.starts[neurons]
        rows, columns = np.array(schur.R[at]), basis[:, at]
        rows[np.arange(len(at)), at] = 0.0
        coupled = np.abs(rows @ columns) > summation_tolerance(len(basis)) * (np.abs(rows) @ np.abs(columns))
        np.fill_diagonal(coupled, False)  # a vector at its own row: zero but for rounding
        if coupled.any():
            yield from (neurons[chain] for chain in graph_components(coupled))


def merge_kernel(separation: Separation) -> Separation:
    """Merge all single neurons with eigenvalue zero into one block, the kernel of A, if that block is zero.

    The kernel is determined by A, a basis of it is not. Its block has no connections but the rounding errors of swaps.
    The paper merges them as well.
    """
    if np.all(separation.schur.eigenvalues):
        return separation
    is_zero = separation.schur.eigenvalues[separation.first_neuron] == 0.0
    kernel = np.flatnonzero(is_zero & (separation.neurons == 1)).tolist()
    if len(kernel) < 2:
        return separation
    others = ((block,) for block in range(separation.n_blocks) if block not in set(kernel))
    merged = separation.merged((tuple(kernel), *others))
    largest = int(np.argmax(merged.neurons))
    at = slice(merged.bases.bounds[largest], merged.bases.bounds[largest + 1])
    noise = rounding_tolerance(len(merged.schur.R), float(np.linalg.norm(merged.schur.R)))
    if merged.neurons[largest] != len(kernel) or np.abs(merged.bases.blocks[at, at]).max() > noise:
        return separation
    merged.bases.blocks[at, at] = 0.0
    return merged


def coupling_pattern(block: Matrix, n_real: int) -> NDArray[np.bool_]:
    """Return for each two neurons i < j of a block of pattern G whether j feeds i; False elsewhere."""
    first = np.concatenate([np.arange(n_real), np.arange(n_real, len(block), 2)])
    if len(first) < 2:
        return np.zeros((len(first), len(first)), dtype=bool)
    feeds = np.logical_or.reduceat(np.logical_or.reduceat(block != 0.0, first, axis=0), first, axis=1)
    return np.asarray(np.triu(feeds, 1))


def drop_noise_couplings(separation: Separation, A: Matrix) -> Matrix:
    """Return the blocks of a separation of A, with couplings below the rounding bound of their entry set to zero.

    Entries of T⁻¹A T have an error of eps · |T⁻¹||A||T| there. That costs O(n²) for each row and column with entries
    that are small against the norms of T⁻¹ and A; those are few.
    """
    bases, Z = separation.bases, separation.schur.Z
    blocks, noise = np.array(bases.blocks), summation_tolerance(len(A))
    wide = (separation.neurons > 1).nonzero()[0]
    if len(wide) == 0:
        return blocks
    largest = float(np.linalg.norm(A))
    is_pair = np.zeros(len(blocks), dtype=bool)
    is_pair[separation.schur.pairs] = True
    for start, stop in zip(bases.bounds[wide].tolist(), bases.bounds[wide + 1].tolist(), strict=True):
        block = slice(start, stop)
        coupling, left = np.triu(blocks[block, block], 1), separation.inverse[block]
        pairs = is_pair[block].nonzero()[0]
        coupling[pairs, pairs + 1] = 0.0
        levels = noise * largest * np.linalg.norm(left, axis=1)
        small = (coupling != 0.0) & (np.abs(coupling) <= levels[:, None])
        rows, columns = small.any(axis=1).nonzero()[0], small.any(axis=0).nonzero()[0]
        if len(rows) == 0:
            continue
        right = np.abs(A) @ np.abs(Z @ bases.basis[:, start + columns])
        bound = noise * (np.abs(left[rows] @ Z.T) @ right)
        entries = np.ix_(rows, columns)
        noisy = (np.abs(coupling[entries]) <= bound) & (coupling[entries] != 0.0)
        blocks[block, block][entries] = np.where(noisy, 0.0, blocks[block, block][entries])
    return blocks
