"""The sparsest form within one bound on the condition number: by angles, then on the T that comes out, and again.

It knows of one bound only, and may find more connections with more room; `rungs` knows all bounds together and does
not, at a higher price.
"""

import math

import numpy as np
from numpy.typing import NDArray

from ltinet.decompose.components import components
from ltinet.decompose.coupling import GRAM_LIMIT, Atoms, Partition, pair_conditions
from ltinet.decompose.decouple import invariant_subspace
from ltinet.decompose.partition import NotSparserError, agglomerate, sparsest_partition
from ltinet.decompose.reorder import OrderedSchur, reorder
from ltinet.decompose.schur import SchurForm
from ltinet.decompose.separate import Separation, separate, separate_neurons, with_kernel_together
from ltinet.tolerances import EPS

# Below this angle (as a condition number) two bases span a plane that is known to few digits only.
_INSEPARABLE = 1e4


def within_budget(
    schur: SchurForm, max_condition: float, *, fewer_than: int | None = None
) -> tuple[Separation, dict[int, float]]:
    """A separation with cond(T) ≤ max_condition and few connections, and the trade-off seen on the way to it.

    Budgets beyond 1/eps are cut there: a T with a larger condition number has no inverse in double precision. Raises
    NotSparserError where it shows early that there cannot be `fewer_than` so many connections.
    """
    max_condition = min(max_condition, 1.0 / EPS)
    separation = separate_neurons(schur)
    tradeoff: dict[int, float] = {}
    uncertain = False
    while separation.n_blocks > 1 and not separation.is_within(max_condition):
        tradeoff[separation.n_blocks] = separation.condition
        uncertain |= separation.condition > GRAM_LIMIT
        atoms = separation.atoms
        # Of all that could be connected in a block a half is, at least.
        if fewer_than is not None and atoms.connections(inseparable(atoms, max_condition)) > 2 * fewer_than:
            raise NotSparserError
        partition = _indistinguishable(atoms, max_condition)
        if partition is None:
            partition, seen = sparsest_partition(atoms, max_condition=max_condition, fewer_than=fewer_than)
            tradeoff |= seen
        if len(partition) == separation.n_blocks:  # the angles say that it fits, the bases that it does not
            partition = next(agglomerate(atoms, power=0.0)).partition
        separation = separation.merged(partition)
    if uncertain:
        separation = _split_further(separation, max_condition)
    together = with_kernel_together(separation)
    is_better = together is not separation and together.is_within(max_condition)
    return together if is_better else separation, tradeoff


def _indistinguishable(atoms: Atoms, max_condition: float) -> Partition | None:
    """Atoms that no partition within the budget can tell apart, and whose joint span must be computed anew.

    Two nearly parallel bases span a plane that is known to eps/angle only: they must be treated as one before the
    search compares anything with them.
    """
    partition = inseparable(atoms, max(max_condition, _INSEPARABLE))
    return partition if len(partition) < len(atoms.neurons) else None


def inseparable(atoms: Atoms, max_condition: float) -> Partition:
    """Groups of atoms that share a block in every partition with cond(T) ≤ max_condition."""
    groups = components(pair_conditions(atoms) > max_condition)
    return tuple(tuple(group.tolist()) for group in groups)


def _split_further(separation: Separation, max_condition: float) -> Separation:
    """Take single neurons out of blocks again, tried first inside their block and then on the whole.

    Needed where the search had to work with bases that were known to few digits. The fewer tries, the larger n.
    """
    failed: set[complex] = set()
    bonds = _bonds(separation)
    for _ in range(8 + 4000 // len(separation.schur.R)):
        neuron = int(np.argmin(bonds))
        if bonds[neuron] == np.inf:
            break
        trial = _without(separation, neuron, max_condition)
        if trial is None:
            failed.add(complex(separation.schur.eigenvalues[neuron]))
        else:
            separation, bonds = trial, _bonds(trial)
        bonds[[complex(value) in failed for value in separation.schur.eigenvalues]] = np.inf
    return separation


def _without(separation: Separation, neuron: int, max_condition: float) -> Separation | None:
    """The separation with one neuron taken out of its block, or None if cond(T) exceeds the budget then."""
    groups = np.repeat(np.arange(separation.n_blocks), separation.neurons)
    at = slice(*separation.bases.bounds[groups[neuron] :][:2])
    inside = groups == groups[neuron]
    groups[neuron] = separation.n_blocks
    block = SchurForm(separation.bases.blocks[at, at], np.eye(at.stop - at.start))
    ordered = OrderedSchur(block, block.starts) if len(block.sizes) == 2 else reorder(block, groups[inside])
    if _condition_of_two(ordered) > max_condition:  # the whole T is not better than a part
        return None
    trial = separate(separation.schur, groups)
    return trial if trial.n_blocks > separation.n_blocks and trial.is_within(max_condition) else None


def _condition_of_two(ordered: OrderedSchur) -> float:
    """cond₂ of orthonormal bases for two groups of neurons; 1 if LAPACK could not part them, and they are one.

    With [Y; s·I] the second invariant subspace, the tangent of its angle with the complement of the first is y = ‖Y‖/s,
    and the condition number y + √(1 + y²).
    """
    if len(ordered.bounds) == 2:
        return 1.0
    start, stop = ordered.bounds[1:].tolist()
    columns = invariant_subspace(ordered.schur.R, start, stop)
    Y, s = columns[:start], float(columns[start, 0])
    tangent = float(np.linalg.norm(Y, 2)) / s if s > 0.0 else np.inf
    return tangent + math.hypot(1.0, tangent)


def _bonds(separation: Separation) -> NDArray[np.float64]:
    """How strongly its block binds each neuron: Σ log(1 + coupling²/distance²) over the others; infinite if alone."""
    values, bonds = separation.schur.eigenvalues, np.full(len(separation.schur.sizes), np.inf)
    for block in np.flatnonzero(separation.neurons > 1).tolist():
        start, stop = separation.bases.bounds[block : block + 2].tolist()
        first = int(separation.first_neuron[block])
        neurons = slice(first, first + int(separation.neurons[block]))
        own, starts = values[neurons], separation.schur.starts[neurons] - start
        magnitude = np.abs(separation.bases.blocks[start:stop, start:stop])
        coupling = np.maximum.reduceat(np.maximum.reduceat(magnitude, starts, axis=0), starts, axis=1)
        distance = np.abs(own[:, None] - own[None, :]) + EPS * magnitude.max()
        strongest = np.maximum(coupling, coupling.T)
        # A block of zeros has no distances, and nothing that binds.
        ties = np.log1p(np.divide(strongest, distance, out=np.zeros_like(distance), where=distance > 0.0) ** 2)
        np.fill_diagonal(ties, 0.0)
        bonds[neurons] = ties.sum(axis=1)
    return bonds
