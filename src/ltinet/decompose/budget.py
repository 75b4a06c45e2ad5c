"""The sparsest form within a condition budget: search on angles, then check on the transformation that comes out."""

import numpy as np
from scipy.sparse.csgraph import connected_components

from ltinet.decompose.coupling import GRAM_LIMIT, Atoms, Partition, pair_conditions
from ltinet.decompose.partition import agglomerate, sparsest_partition
from ltinet.decompose.schur import SchurForm
from ltinet.decompose.separate import Separation, separate, separate_neurons, with_kernel_together
from ltinet.tolerances import EPS

# Below this angle (as a condition number) two bases span a plane that is known to few digits only.
_INSEPARABLE = 1e4


def within_budget(schur: SchurForm, max_condition: float) -> tuple[Separation, dict[int, float]]:
    """A separation with cond(T) ≤ max_condition and few connections, and the trade-off seen on the way to it.

    Budgets beyond 1/eps are cut there: a T with a larger condition number has no inverse in double precision.
    """
    max_condition = min(max_condition, 1.0 / EPS)
    separation = separate_neurons(schur)
    tradeoff: dict[int, float] = {}
    uncertain = False
    while separation.n_blocks > 1 and not separation.is_within(max_condition):
        tradeoff[separation.n_blocks] = separation.condition
        uncertain |= separation.condition > GRAM_LIMIT
        atoms = separation.atoms
        partition = _indistinguishable(atoms, max_condition)
        if partition is None:
            partition, seen = sparsest_partition(atoms, max_condition=max_condition)
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
    inseparable = pair_conditions(atoms) > max(max_condition, _INSEPARABLE)
    if not np.any(inseparable):
        return None
    _, component = connected_components(inseparable, directed=False)
    return tuple(tuple(np.flatnonzero(component == number).tolist()) for number in range(component.max() + 1))


def _split_further(separation: Separation, max_condition: float) -> Separation:
    """Take single neurons out of blocks again, tried first inside their block and then on the whole.

    Needed where the search had to work with bases that were known to few digits. The fewer tries, the larger n.
    """
    failed: set[complex] = set()
    for _ in range(8 + 4000 // len(separation.schur.R)):
        neuron = _least_bound(separation, failed)
        if neuron is None:
            break
        trial = _without(separation, neuron, max_condition)
        if trial is None:
            failed.add(complex(separation.schur.eigenvalues[neuron]))
        else:
            separation = trial
    return separation


def _without(separation: Separation, neuron: int, max_condition: float) -> Separation | None:
    """The separation with one neuron taken out of its block, or None if cond(T) exceeds the budget then."""
    groups = np.repeat(np.arange(separation.n_blocks), separation.neurons)
    at = slice(*separation.bases.bounds[groups[neuron] :][:2])
    inside = groups == groups[neuron]
    groups[neuron] = separation.n_blocks
    block = SchurForm(separation.bases.blocks[at, at], np.eye(at.stop - at.start))
    if not separate(block, groups[inside]).is_within(max_condition):  # the whole T cannot be better than a part of it
        return None
    trial = separate(separation.schur, groups)
    return trial if trial.n_blocks > separation.n_blocks and trial.is_within(max_condition) else None


def _least_bound(separation: Separation, failed: set[complex]) -> int | None:
    """The neuron that its block binds least: smallest Σ log(1 + coupling²/distance²) over the others."""
    values, best, least = separation.schur.eigenvalues, None, np.inf
    for block in np.flatnonzero(separation.neurons > 1):
        at = slice(separation.bases.bounds[block], separation.bases.bounds[block + 1])
        first = int(separation.first_neuron[block])
        own = values[first : first + separation.neurons[block]]
        starts = separation.schur.starts[first : first + len(own)] - at.start
        coupling = np.maximum.reduceat(np.abs(separation.bases.blocks[at, at]), starts, axis=0)
        coupling = np.maximum.reduceat(coupling, starts, axis=1)
        distance = np.abs(own[:, None] - own[None, :]) + EPS * np.abs(separation.bases.blocks[at, at]).max()
        ties = np.log1p((np.maximum(coupling, coupling.T) / distance) ** 2)
        np.fill_diagonal(ties, 0.0)
        bond = np.where([complex(value) in failed for value in own], np.inf, ties.sum(axis=1))
        if bond.min() < least:
            best, least = first + int(np.argmin(bond)), float(bond.min())
    return best
