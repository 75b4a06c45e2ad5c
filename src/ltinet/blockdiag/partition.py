"""Partition of the neurons into blocks: by a limit on cond(T), by a number of blocks, or by clustering.

Finding the partition with the fewest connections subject to cond(T) ≤ limit is NP-hard (Gu 1995). The search merges
groups greedily by mutual information per connection, I(a; b)/(n_a n_b)^power, until the limit holds, then moves neurons
out of their groups again while it still holds. Subspaces whose angle is below the accuracy of their bases are merged
first and their joint basis is recomputed.

Merging two groups recovers exactly I(a; b) of −log |det T|, whatever the other groups are. This justifies greedy
merging, and gives the log-volume after each merge without a determinant.

This search depends on one limit, and may find more connections for a larger one; `frontier` treats all limits together.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import EPS
from ltinet.blockdiag.conditioning import (
    Atoms,
    Group,
    Partition,
    neg_log_det,
    pairwise_condition_bounds,
    partition_condition,
    separation_bounds,
    whiten,
)
from ltinet.blockdiag.schur import SchurForm, graph_components
from ltinet.blockdiag.separation import Separation, merge_kernel, separate, separate_neurons
from ltinet.errors import PartitionError
from ltinet.systems.matrices import Matrix

# I(a; b) of subspaces that coincide to working precision, where det(I − M Mᵀ) = eps.
_MAX_INFORMATION = -0.5 * np.log(EPS)
_MAX_LOG_VOLUME = 700.0  # exp of it is finite, and above every limit on cond(T)

# Exponents of the merge criterion I(a; b) / (n_a n_b)^power: 0 counts the condition only, 1 the gain per connection.
# The mean share of connections within some limits on cond(T) is 69.22, 72.17, 69.73 and 72.34 % with one of them, in this
# order, and 69.19 % with all (python -m benchmarks.constants MERGE_POWERS).
MERGE_POWERS = (1.0, 1.5, 0.5, 2.0)

# Factor by which moving neurons out of groups reduces connections at most. Empirical: with 1, 2, 3 and 10 the search gives up
# 15, 3, 2 and 0 times where it would have found a sparser form (python -m benchmarks.constants _MAX_RELAXATION).
_MAX_RELAXATION = 10


@dataclass
class ConditionMeter:
    """Cache of the condition numbers of partitions, with a limit on the number of evaluations."""

    atoms: Atoms
    limit: float
    evaluations_left: int
    measured: dict[frozenset[Group], float] = field(default_factory=dict)

    def fits(self, partition: Partition, *, gram: Matrix | None = None) -> bool:
        """Return whether a partition satisfies the limit on cond(T); `gram` is the Gram matrix of its T if it is known."""
        key = frozenset(partition)
        if key not in self.measured:
            self.evaluations_left -= 1
            self.measured[key] = partition_condition(self.atoms, partition, limit=self.limit, gram=gram)
        return self.measured[key] <= self.limit

    def tradeoff(self) -> dict[int, float]:
        """Return the smallest condition number evaluated for each number of blocks."""
        best: dict[int, float] = {}
        for partition, condition in self.measured.items():
            best[len(partition)] = min(condition, best.get(len(partition), np.inf))
        return best


class NotSparserError(Exception):
    """Signal that a form would have at least as many connections as another one."""


def sparsest_partition(
    atoms: Atoms, *, max_condition: float, fewer_than: int | None = None
) -> tuple[Partition, dict[int, float]]:
    """Return the partition with the fewest connections found with cond(T) ≤ max_condition, and the trade-off evaluated.

    The atoms must not satisfy the limit as singletons. The number of evaluated condition numbers falls as n⁻⁴, so that
    the search costs no more than a few Schur forms. Raises NotSparserError where the start has so many connections that
    fewer than `fewer_than` are out of reach.
    """
    n_states = len(atoms.gram)
    meter = ConditionMeter(atoms, max_condition, evaluations_left=8 + int(5e8 / max(n_states, 10) ** 4))
    best: Partition = (tuple(range(len(atoms.neurons))),)
    for power in MERGE_POWERS:
        fitting = _first_fitting(meter, power)
        if fewer_than is not None and atoms.connections(fitting) > _MAX_RELAXATION * fewer_than:
            raise NotSparserError
        candidate = _relax(meter, fitting)
        if atoms.connections(candidate) < atoms.connections(best):
            best = candidate
        # A sequence takes as many evaluations at most: log₂ N for 1, 2, 4, … merges, and log₂ N for the bisection.
        if meter.evaluations_left <= 2 * np.log2(len(atoms.neurons)):
            break
    return best, meter.tradeoff()


def merge_to_count(atoms: Atoms, n_groups: int) -> Partition:
    """Return the partition into a given number of groups by greedy merging."""
    partition = atoms.singletons
    merges = agglomerate(atoms, power=0.0)
    while len(partition) > n_groups:
        partition = next(merges).partition
    return partition


class Merge(NamedTuple):
    """Partition after one more merge, the Gram matrix of its T (valid until the next merge), and −log |det T|."""

    partition: Partition
    gram: Matrix
    log_volume: float


def agglomerate(atoms: Atoms, *, power: float) -> Iterator[Merge]:
    """Yield partitions of N − 1, N − 2, …, 1 groups, each by the merge with the largest I(a; b) / (n_a n_b)^power.

    Groups without any coupling merge by the distance of their eigenvalues. One merge costs O(n · size + N²).
    """
    gram = atoms.gram.copy()
    groups: dict[int, Group] = dict(enumerate(atoms.singletons))
    columns = {index: atoms.columns(group) for index, group in groups.items()}
    information = _information_between_neurons(atoms)
    for index in (index for index, members in columns.items() if len(members) > 2):
        information[index, :] = information[:, index] = _information(gram, columns, index, len(groups))
    distance = np.abs(atoms.eigenvalues[:, None] - atoms.eigenvalues[None, :])
    information += EPS / (1.0 + distance / max(float(distance.max(initial=0.0)), EPS))
    np.fill_diagonal(information, 0.0)
    neurons = atoms.neurons.astype(float)
    price = np.multiply.outer(neurons, neurons) ** power
    log_volume = neg_log_det(gram)
    while len(groups) > 1:
        # The matrix is symmetric, so that its first maximum has target < source.
        target, source = divmod(int((information / price).argmax()), len(price))
        log_volume -= information[target, source]
        # Information below rounding encodes the distance of eigenvalues, which must survive the whitening.
        nearness = np.minimum(EPS, np.maximum(information[target], information[source]))
        groups[target] = tuple(sorted(groups[target] + groups.pop(source)))
        columns[target] = np.concatenate([columns[target], columns.pop(source)])
        neurons[target] += neurons[source]
        price[target, :] = price[:, target] = (neurons[target] * neurons) ** power
        whiten(gram, columns[target])
        information[target, :] = information[:, target] = _information(gram, columns, target, len(neurons)) + nearness
        information[target, target] = information[source, :] = information[:, source] = 0.0
        yield Merge(tuple(groups.values()), gram, log_volume)


def _information_between_neurons(atoms: Atoms) -> Matrix:
    """Return I(a; b) between all atoms of one or two columns: det(I − MᵀM) = 1 − ‖M‖² + (det M)²."""
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
    """Return I(a; b) between one group and each other remaining one, from a Gram matrix with orthonormalized groups.

    det(I − MᵀM) is evaluated by formula for groups of one or two columns, and in batches of equal size for others.
    """
    cosines = gram[columns[index]]
    remainder = -(cosines.T @ cosines)
    remainder.flat[:: len(gram) + 1] += 1.0
    information = np.zeros(n_atoms)
    narrow = [other for other, members in columns.items() if len(members) <= 2 and other != index]
    wide = [other for other, members in columns.items() if len(members) > 2 and other != index]
    if narrow:
        first = np.array([columns[other][0] for other in narrow])
        last = np.array([columns[other][-1] for other in narrow])
        cross = np.where(first == last, 0.0, remainder[first, last])
        second = np.where(first == last, 1.0, remainder[last, last])
        information[narrow] = -0.5 * np.log(np.maximum(remainder[first, first] * second - cross * cross, EPS))
    for size in {len(columns[other]) for other in wide}:
        batch = [other for other in wide if len(columns[other]) == size]
        members = np.array([columns[other] for other in batch])
        sign, logarithm = np.linalg.slogdet(remainder[members[:, :, None], members[:, None, :]])
        information[batch] = np.where(sign > 0, -0.5 * logarithm, _MAX_INFORMATION)
    return np.clip(information, 0.0, _MAX_INFORMATION)


def _first_fitting(meter: ConditionMeter, power: float) -> Partition:
    """Return the first partition of a merge sequence that satisfies the limit.

    Evaluated after 1, 2, 4, … merges, until one fits or −log |det T| proves that it must; then by bisection.
    """
    sequence: list[Partition] = []
    step, too_few = 1, -1
    for merge in agglomerate(meter.atoms, power=power):
        sequence.append(merge.partition)
        if len(merge.partition) == 1 or 2.0 * np.exp(min(merge.log_volume, _MAX_LOG_VOLUME)) <= meter.limit:
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
    """Move atoms out of their groups, the least coupled first, while the limit still holds."""
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
                rest = (*group[:index], *group[index + 1 :])
                candidate = (*(other for other in partition if other != group), rest, (group[index],))
                if meter.fits(candidate):
                    partition, improved = candidate, True
                    break
            if improved:
                break
    return partition


# Choice of the blocks


class ClusteringAlgorithm(Protocol):
    """Clustering algorithm with scikit-learn's `fit_predict`."""

    def fit_predict(self, X: NDArray[np.float64]) -> Any:
        """Label each row of X."""


@dataclass(frozen=True)
class BlockChoice:
    """Choice of the blocks: the sparsest with cond(T) ≤ max_condition, a given number of them, or clusters."""

    max_condition: float
    n_blocks: int | None = None
    clustering: ClusteringAlgorithm | None = None
    count_name: str = "n_blocks"
    """Name of the parameter `n_blocks` in the function that the user called, for messages."""

    @property
    def is_free(self) -> bool:
        """True if only max_condition constrains the blocks."""
        return self.n_blocks is None and self.clustering is None


@dataclass(frozen=True)
class PartitionResult:
    """Separation that was chosen, the trade-off evaluated by the search, and decisions to report to the user."""

    separation: Separation
    tradeoff: dict[int, float] = field(default_factory=dict)
    """Smallest condition number for each number of blocks."""
    decisions: tuple[str, ...] = ()


def validate_balance(balance: object) -> None:
    """Raise PartitionError unless balance is True, False or None."""
    if balance is not None and not isinstance(balance, bool):
        raise PartitionError(f"balance is {balance!r}; expected True, False, or None to try both")


# Given number of blocks


def partition_by_count(schur: SchurForm, n_blocks: int, *, count_name: str) -> PartitionResult:
    """Return the separation into a given number of blocks with a small condition number; `count_name` is for messages."""
    n_neurons = len(schur.starts) - 1
    if n_blocks > max(n_neurons, 1):
        raise PartitionError(
            f"{count_name} is {n_blocks}, but A has {n_neurons} neurons (real eigenvalues plus complex pairs); "
            f"each block has at least one neuron, so {count_name} must be at most {n_neurons}"
        )
    if n_blocks == 1:
        return PartitionResult(separate(schur, np.zeros(n_neurons, dtype=np.intp)))
    separation = separate_neurons(schur)
    with_kernel = merge_kernel(separation)
    if with_kernel.n_blocks >= n_blocks:
        separation = with_kernel
    if separation.n_blocks > n_blocks:
        separation = separation.merged(merge_to_count(separation.atoms, n_blocks))
    if separation.n_blocks < min(n_blocks, n_neurons) or separation.condition > 1.0 / EPS:
        raise PartitionError(
            f"{count_name} is {n_blocks}, but so many invariant subspaces cannot be separated in double precision "
            "(repeated or defective eigenvalues); give fewer blocks, or max_condition to have the number chosen"
        )
    return PartitionResult(separation)


# Clusters of eigenvalues


def partition_by_clustering(schur: SchurForm, clustering: ClusteringAlgorithm, *, factor: float) -> PartitionResult:
    """Return the blocks of a clustering of the eigenvalues; clusters that cannot be separated are merged."""
    points = factor * np.column_stack([schur.eigenvalues.real, schur.eigenvalues.imag])
    labels = np.asarray(clustering.fit_predict(points))
    if labels.shape != (len(points),) or not np.issubdtype(labels.dtype, np.integer):
        raise PartitionError(
            f"fit_predict returned {labels.dtype} labels of shape {labels.shape}; expected one integer for each of the "
            f"{len(points)} points"
        )
    is_outlier = labels < 0  # scikit-learn's label for points without a cluster: each becomes a block of its own
    labels = np.unique(labels, return_inverse=True)[1]
    labels = np.where(is_outlier, len(labels) + np.arange(len(labels)), labels)
    separation, decisions = separate(schur, labels), []
    while separation.condition > 1.0 / EPS and separation.n_blocks > 1:
        decisions.append("two clusters share eigenvalues that are equal in double precision; they were merged")
        separation = separation.merged(next(agglomerate(separation.atoms, power=0.0)).partition)
    return PartitionResult(separation, decisions=tuple(decisions))


# Limit on the condition number

# Condition number of two bases above which their joint span is recomputed, since four digits or more are lost in it.
_MIN_ANGLE_CONDITION = 1e4


def partition_by_condition(
    schur: SchurForm, max_condition: float, *, fewer_than: int | None = None
) -> tuple[Separation, dict[int, float]]:
    """Return a separation with cond(T) ≤ max_condition and few connections, and the trade-off evaluated by the search.

    Limits beyond 1/eps are reduced to it: a T with a larger condition number has no inverse in double precision. Raises
    NotSparserError where fewer than `fewer_than` connections are out of reach.
    """
    max_condition = min(max_condition, 1.0 / EPS)
    separation = separate_neurons(schur)
    tradeoff: dict[int, float] = {}
    while separation.n_blocks > 1 and not separation.is_within(max_condition):
        tradeoff[separation.n_blocks] = separation.condition
        atoms = separation.atoms
        # At least half of the possible connections in a block are nonzero; empirical.
        if fewer_than is not None and atoms.connections(inseparable_groups(atoms, max_condition)) > 2 * fewer_than:
            raise NotSparserError
        # Two nearly parallel bases span a plane that is known to eps/angle only: their joint span is recomputed before
        # the search compares anything with them.
        partition = inseparable_groups(atoms, max(max_condition, _MIN_ANGLE_CONDITION))
        if len(partition) == separation.n_blocks:
            partition, evaluated = sparsest_partition(atoms, max_condition=max_condition, fewer_than=fewer_than)
            tradeoff |= evaluated
        if len(partition) == separation.n_blocks:  # the limit holds for the angles but not for the bases
            partition = next(agglomerate(atoms, power=0.0)).partition
        separation = separation.merged(partition)
    with_kernel = merge_kernel(separation)
    is_better = with_kernel is not separation and with_kernel.is_within(max_condition)
    return with_kernel if is_better else separation, tradeoff


def inseparable_groups(atoms: Atoms, max_condition: float) -> Partition:
    """Return groups of atoms that share a block in every partition with cond(T) ≤ max_condition."""
    groups = graph_components(pairwise_condition_bounds(atoms) > max_condition)
    return tuple(tuple(group.tolist()) for group in groups)
