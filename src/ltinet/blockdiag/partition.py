"""Partition of the neurons into blocks: by a limit on cond(T), by a number of blocks, or by clustering.

Finding the partition with the fewest connections subject to cond(T) ≤ limit is NP-hard (Gu 1995). The search merges
groups greedily by mutual information per connection, I(a; b)/(n_a n_b)^power, until the limit holds, then moves
neurons out of their groups again as long as it still holds. Subspaces whose angle is below the accuracy of their bases
are merged first and their joint basis is recomputed.

This search depends on one limit, and may find more connections for a larger one; `frontier` treats all limits together.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import EPS
from ltinet.blockdiag.conditioning import (
    GRAM_LIMIT,
    Atoms,
    Group,
    Partition,
    neg_log_det,
    pairwise_condition_bounds,
    partition_condition,
    separation_bounds,
    whiten,
)
from ltinet.blockdiag.decoupling import invariant_subspace
from ltinet.blockdiag.schur import OrderedSchur, SchurForm, graph_components, reorder
from ltinet.blockdiag.separation import Separation, merge_kernel, separate, separate_neurons
from ltinet.errors import PartitionError
from ltinet.systems.matrices import Matrix

# MERGED ltinet.blockdiag.partition
# Which neurons share a layer: the sparsest partition within a condition budget, or the best with a given number.
#
# Finding the optimum is NP-hard (Gu 1995). The search here merges by mutual information per connection, stops where the
# condition budget is met, and then takes neurons out of their groups again as long as the budget allows.

# Information between subspaces that are one to working precision.
_MAX_INFORMATION = -0.5 * np.log(EPS)
_MAX_LOG_VOLUME = 700.0  # as a logarithm: more volume than any budget allows

# Merges maximise I(a; b) / (n_a n_b)^power: 0 looks only at the condition, 1 at what a connection buys.
_POWERS = (1.0, 1.5, 0.5, 2.0)

# Taking neurons out of their groups leaves a half or a tenth of the connections, seldom fewer.
_ABANDON_RATIO = 10


@dataclass
class ConditionMeter:
    """Measures partitions, remembers what it measured, and knows when the search has cost enough."""

    atoms: Atoms
    limit: float
    evaluations_left: int
    measured: dict[frozenset[Group], float] = field(default_factory=dict)

    def fits(self, partition: Partition, *, gram: Matrix | None = None) -> bool:
        """Whether a partition stays within the condition budget; its Gram matrix saves work where it is at hand."""
        key = frozenset(partition)
        if key not in self.measured:
            self.evaluations_left -= 1
            self.measured[key] = partition_condition(self.atoms, partition, limit=self.limit, gram=gram)
        return self.measured[key] <= self.limit

    def tradeoff(self) -> dict[int, float]:
        """The smallest condition number seen for each number of blocks."""
        best: dict[int, float] = {}
        for partition, condition in self.measured.items():
            best[len(partition)] = min(condition, best.get(len(partition), np.inf))
        return best


class NotSparserError(Exception):
    """A form would have as many connections as another one, or more."""


def sparsest_partition(
    atoms: Atoms, *, max_condition: float, fewer_than: int | None = None
) -> tuple[Partition, dict[int, float]]:
    """The partition with the fewest connections found with cond(T) ≤ max_condition, and the trade-off seen on the way.

    For atoms that do not fit the budget each on its own. The number of condition numbers measured falls as n⁻⁴, so
    that the search costs no more than a few Schur forms. Raises NotSparserError where it begins too far from having
    `fewer_than` so many connections.
    """
    n_states = len(atoms.gram)
    meter = ConditionMeter(atoms, max_condition, evaluations_left=8 + int(5e8 / max(n_states, 10) ** 4))
    best: Partition = (tuple(range(len(atoms.neurons))),)
    for power in _POWERS:
        fitting = _first_fitting(meter, power)
        if fewer_than is not None and atoms.connections(fitting) > _ABANDON_RATIO * fewer_than:
            raise NotSparserError
        candidate = _relax(meter, fitting)
        if atoms.connections(candidate) < atoms.connections(best):
            best = candidate
        if meter.evaluations_left <= 2 * np.log2(len(atoms.neurons)):
            break
    return best, meter.tradeoff()


def merge_to_count(atoms: Atoms, n_groups: int) -> Partition:
    """The partition into a given number of groups that merging by mutual information gives."""
    partition = atoms.singletons
    merges = agglomerate(atoms, power=0.0)
    while len(partition) > n_groups:
        partition = next(merges).partition
    return partition


class Merge(NamedTuple):
    """A partition after one more merge, the Gram matrix of its T (until the next), and the volume that T lacks."""

    partition: Partition
    gram: Matrix
    lost_volume: float


def agglomerate(atoms: Atoms, *, power: float) -> Iterator[Merge]:
    """Partitions of N − 1, N − 2, …, 1 groups, each by one merge: that with the largest I(a; b) / (n_a n_b)^power.

    Groups without any coupling merge by the distance of their eigenvalues. One merge costs O(n · size + N²).
    """
    gram = atoms.gram.copy()
    groups: dict[int, Group] = dict(enumerate(atoms.singletons))
    columns = {index: atoms.columns(group) for index, group in groups.items()}
    information = _information_between_neurons(atoms)
    for index in (index for index, own in columns.items() if len(own) > 2):
        information[index, :] = information[:, index] = _information(gram, columns, index, len(groups))
    distance = np.abs(atoms.eigenvalues[:, None] - atoms.eigenvalues[None, :])
    information += EPS / (1.0 + distance / max(float(distance.max(initial=0.0)), EPS))
    np.fill_diagonal(information, 0.0)
    neurons = atoms.neurons.astype(float)
    price = np.multiply.outer(neurons, neurons) ** power
    lost = neg_log_det(gram)
    # Merging two groups recovers exactly I(a; b) of the volume that T lacks, whatever the other groups are: this makes
    # greedy merging sound, and tells the volume after each merge without a determinant.
    while len(groups) > 1:
        keep, gone = divmod(
            int((information / price).argmax()), len(price)
        )  # symmetric: the first maximum has keep < gone
        lost -= information[keep, gone]
        # Below rounding only the nearness of eigenvalues is left, which orthonormalising would wipe out.
        nearness = np.minimum(EPS, np.maximum(information[keep], information[gone]))
        groups[keep] = tuple(sorted(groups[keep] + groups.pop(gone)))
        columns[keep] = np.concatenate([columns[keep], columns.pop(gone)])
        neurons[keep] += neurons[gone]
        price[keep, :] = price[:, keep] = (neurons[keep] * neurons) ** power
        whiten(gram, columns[keep])
        information[keep, :] = information[:, keep] = _information(gram, columns, keep, len(neurons)) + nearness
        information[keep, keep] = information[gone, :] = information[:, gone] = 0.0
        yield Merge(tuple(groups.values()), gram, lost)


def _information_between_neurons(atoms: Atoms) -> Matrix:
    """I(a; b) between all atoms of one or two columns: det(I − MᵀM) = 1 − ‖M‖² + (det M)², written out."""
    gram, first = atoms.gram, atoms.starts[:-1]
    squares = np.add.reduceat(np.add.reduceat(gram * gram, first, axis=0), first, axis=1)
    determinants = 1.0 - squares
    is_pair = atoms.starts[1:] - first == 2
    p = first[is_pair][:, None]
    q = p.T
    minors = gram[p, q] * gram[p + 1, q + 1] - gram[p, q + 1] * gram[p + 1, q]
    determinants[np.ix_(is_pair, is_pair)] += minors * minors
    return -0.5 * np.log(np.maximum(determinants, EPS))


def _information(gram: Matrix, columns: dict[int, NDArray[np.intp]], index: int, n_atoms: int) -> NDArray[np.float64]:
    """I(a; b) between one group and each other one left, for a Gram matrix whose groups are orthonormalised.

    det(I − MᵀM) is written out for groups of one or two columns, and taken at once for all others of one size.
    """
    cosines = gram[columns[index]]
    remainder = -(cosines.T @ cosines)
    remainder.flat[:: len(gram) + 1] += 1.0
    information = np.zeros(n_atoms)
    narrow = [other for other, own in columns.items() if len(own) <= 2 and other != index]
    wide = [other for other, own in columns.items() if len(own) > 2 and other != index]
    if narrow:
        first = np.array([columns[other][0] for other in narrow])
        last = np.array([columns[other][-1] for other in narrow])
        cross = np.where(first == last, 0.0, remainder[first, last])
        second = np.where(first == last, 1.0, remainder[last, last])
        information[narrow] = -0.5 * np.log(np.maximum(remainder[first, first] * second - cross * cross, EPS))
    for size in {len(columns[other]) for other in wide}:
        alike = [other for other in wide if len(columns[other]) == size]
        own = np.array([columns[other] for other in alike])
        sign, logarithm = np.linalg.slogdet(remainder[own[:, :, None], own[:, None, :]])
        information[alike] = np.where(sign > 0, -0.5 * logarithm, _MAX_INFORMATION)
    return np.clip(information, 0.0, _MAX_INFORMATION)


def _first_fitting(meter: ConditionMeter, power: float) -> Partition:
    """The first partition of a merge sequence within the budget.

    Measured after 1, 2, 4, … merges, until one fits or the volume lost shows that it must; then by bisection.
    """
    sequence: list[Partition] = []
    step, too_few = 1, -1
    for merge in agglomerate(meter.atoms, power=power):
        sequence.append(merge.partition)
        if len(merge.partition) == 1 or 2.0 * np.exp(min(merge.lost_volume, _MAX_LOG_VOLUME)) <= meter.limit:
            break
        if len(sequence) == step:
            if meter.fits(merge.partition, gram=merge.gram):
                break
            too_few, step = step - 1, 2 * step
    # Condition numbers fall along the sequence but for small exceptions: bisection may miss one, and loses little.
    enough = len(sequence) - 1
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if meter.fits(sequence[middle]) else (middle, enough)
    return sequence[enough]


def _relax(meter: ConditionMeter, partition: Partition) -> Partition:
    """Take atoms out of their groups, the least coupled first, wherever the budget still holds."""
    atoms = meter.atoms
    improved = True
    while improved and meter.evaluations_left > 0:
        improved = False
        # The largest group first: leaving it saves most connections. The bounds are exact for the group alone and too
        # low for the whole, so that the first one above the limit ends the group and others must be measured.
        for group in sorted((g for g in partition if len(g) > 1), key=len, reverse=True):
            bounds = separation_bounds(atoms, group)
            for index in np.argsort(bounds):
                if bounds[index] > meter.limit or meter.evaluations_left <= 0:
                    break
                candidate = _move_out(partition, group, group[index])
                if meter.fits(candidate):
                    partition, improved = candidate, True
                    break
            if improved:
                break
    return partition


def _move_out(partition: Partition, group: Group, atom: int) -> Partition:
    rest = tuple(member for member in group if member != atom)
    return (*(other for other in partition if other != group), rest, (atom,))


# MERGED ltinet.blockdiag.partition
# What is wanted of the blocks, and what a way to choose them gives back.


class ClusteringAlgorithm(Protocol):
    """Anything with scikit-learn's `fit_predict`: points in, one label per point out."""

    def fit_predict(self, X: NDArray[np.float64]) -> Any:
        """Label each row of X."""
        ...


@dataclass(frozen=True)
class BlockChoice:
    """Which blocks are wanted: the sparsest within a bound on the condition number, a number of them, or clusters."""

    max_condition: float
    n_blocks: int | None = None
    clustering: ClusteringAlgorithm | None = None
    called: str = "n_blocks"
    """What the user calls the number of blocks."""

    @property
    def is_free(self) -> bool:
        """Whether the blocks are free to follow the structure of the matrix."""
        return self.n_blocks is None and self.clustering is None


@dataclass(frozen=True)
class PartitionResult:
    """The separation that was chosen, the trade-off seen on the way, and notes for the user."""

    separation: Separation
    tradeoff: dict[int, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def validate_balance(balance: object) -> None:
    """Refuse what says neither that states are to be balanced, nor that they are not, nor that both be tried.

    Raises:
        PartitionError: it is none of True, False and None.
    """
    if balance is not None and not isinstance(balance, bool):
        raise PartitionError(f"balance is {balance!r}; give True, False, or None to try both")


# MERGED ltinet.blockdiag.partition
# A given number of blocks, merged by mutual information until there are no more.


def partition_by_count(schur: SchurForm, n_blocks: int, *, called: str) -> PartitionResult:
    """The form with a given number of blocks and a small condition number; errors call that number as the user does."""
    n_neurons = len(schur.starts) - 1
    if n_blocks > max(n_neurons, 1):
        raise PartitionError(
            f"{called} is {n_blocks}, but A has {n_neurons} neurons (real eigenvalues plus complex pairs); "
            "a block holds at least one, so give fewer blocks"
        )
    if n_blocks == 1:
        return PartitionResult(separate(schur, np.zeros(n_neurons, dtype=np.intp)))
    separation = separate_neurons(schur)
    together = merge_kernel(separation)
    if together.n_blocks >= n_blocks:
        separation = together
    if separation.n_blocks > n_blocks:
        separation = separation.merged(merge_to_count(separation.atoms, n_blocks))
    if separation.n_blocks < min(n_blocks, n_neurons) or separation.condition > 1.0 / EPS:
        raise PartitionError(
            f"{called} is {n_blocks}, but that many invariant subspaces cannot be told apart in double precision "
            "(repeated or defective eigenvalues); give fewer blocks, or max_condition to have the number chosen"
        )
    return PartitionResult(separation)


# MERGED ltinet.blockdiag.partition
# The blocks that a clustering of the eigenvalues gives, as the paper chooses them.


def partition_by_clustering(schur: SchurForm, clustering: ClusteringAlgorithm, *, factor: float) -> PartitionResult:
    """The blocks that a clustering of the eigenvalues gives; clusters that cannot be told apart are merged."""
    points = factor * np.column_stack([schur.eigenvalues.real, schur.eigenvalues.imag])
    labels = np.asarray(clustering.fit_predict(points))
    if labels.shape != (len(points),) or not np.issubdtype(labels.dtype, np.integer):
        raise PartitionError(
            f"fit_predict returned {labels.dtype} labels of shape {labels.shape}; expected one integer for each of the "
            f"{len(points)} points"
        )
    in_no_cluster = labels < 0  # scikit-learn's mark: each such point is a block of its own
    labels = np.unique(labels, return_inverse=True)[1]
    labels = np.where(in_no_cluster, len(labels) + np.arange(len(labels)), labels)
    separation, notes = separate(schur, labels), []
    while separation.condition > 1.0 / EPS and separation.n_blocks > 1:
        notes.append("two clusters share eigenvalues that cannot be told apart in double precision; they were merged")
        separation = separation.merged(next(agglomerate(separation.atoms, power=0.0)).partition)
    return PartitionResult(separation, notes=tuple(notes))


# MERGED ltinet.blockdiag.partition
# The sparsest form within one bound on the condition number: by angles, then on the T that comes out, and again.
#
# It knows of one bound only, and may find more connections with more room; `rungs` knows all bounds together and does
# not, at a higher price.

# Below this angle (as a condition number) two bases span a plane that is known to few digits only.
_MIN_ANGLE_CONDITION = 1e4


def partition_by_condition(
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
        if fewer_than is not None and atoms.connections(inseparable_groups(atoms, max_condition)) > 2 * fewer_than:
            raise NotSparserError
        partition = _indistinguishable_groups(atoms, max_condition)
        if partition is None:
            partition, seen = sparsest_partition(atoms, max_condition=max_condition, fewer_than=fewer_than)
            tradeoff |= seen
        if len(partition) == separation.n_blocks:  # the angles say that it fits, the bases that it does not
            partition = next(agglomerate(atoms, power=0.0)).partition
        separation = separation.merged(partition)
    if uncertain:
        separation = _split_further(separation, max_condition)
    together = merge_kernel(separation)
    is_better = together is not separation and together.is_within(max_condition)
    return together if is_better else separation, tradeoff


def _indistinguishable_groups(atoms: Atoms, max_condition: float) -> Partition | None:
    """Atoms that no partition within the budget can tell apart, and whose joint span must be computed anew.

    Two nearly parallel bases span a plane that is known to eps/angle only: they must be treated as one before the
    search compares anything with them.
    """
    partition = inseparable_groups(atoms, max(max_condition, _MIN_ANGLE_CONDITION))
    return partition if len(partition) < len(atoms.neurons) else None


def inseparable_groups(atoms: Atoms, max_condition: float) -> Partition:
    """Groups of atoms that share a block in every partition with cond(T) ≤ max_condition."""
    groups = graph_components(pairwise_condition_bounds(atoms) > max_condition)
    return tuple(tuple(group.tolist()) for group in groups)


def _split_further(separation: Separation, max_condition: float) -> Separation:
    """Take single neurons out of blocks again, tried first inside their block and then on the whole.

    Needed where the search had to work with bases that were known to few digits. The fewer tries, the larger n.
    """
    failed: set[complex] = set()
    bonds = _binding_strengths(separation)
    for _ in range(8 + 4000 // len(separation.schur.R)):
        neuron = int(np.argmin(bonds))
        if bonds[neuron] == np.inf:
            break
        trial = _try_removal(separation, neuron, max_condition)
        if trial is None:
            failed.add(complex(separation.schur.eigenvalues[neuron]))
        else:
            separation, bonds = trial, _binding_strengths(trial)
        bonds[[complex(value) in failed for value in separation.schur.eigenvalues]] = np.inf
    return separation


def _try_removal(separation: Separation, neuron: int, max_condition: float) -> Separation | None:
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


def _binding_strengths(separation: Separation) -> NDArray[np.float64]:
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
