"""Which neurons share a layer: the sparsest partition within a condition budget, or the best with a given number.

Finding the optimum is NP-hard (Gu 1995). The search here merges by mutual information per connection, stops where the
condition budget is met, and then takes neurons out of their groups again as long as the budget allows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet.decompose.coupling import (
    Atoms,
    Group,
    Partition,
    escape_conditions,
    lost_volume,
    partition_condition,
    whiten,
)
from ltinet.model.matrices import Matrix
from ltinet.tolerances import EPS

# Information between subspaces that are one to working precision.
_MOST = -0.5 * np.log(EPS)
_MOST_LOST = 700.0  # as a logarithm: more volume than any budget allows

# Merges maximise I(a; b) / (n_a n_b)^power: 0 looks only at the condition, 1 at what a connection buys.
_POWERS = (1.0, 1.5, 0.5, 2.0)

# Taking neurons out of their groups leaves a half or a tenth of the connections, seldom fewer.
_HOPELESS = 10


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
        if fewer_than is not None and atoms.connections(fitting) > _HOPELESS * fewer_than:
            raise NotSparserError
        candidate = _relax(meter, fitting)
        if atoms.connections(candidate) < atoms.connections(best):
            best = candidate
        if meter.evaluations_left <= 2 * np.log2(len(atoms.neurons)):
            break
    return best, meter.tradeoff()


def partition_into(atoms: Atoms, n_groups: int) -> Partition:
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
    lost = lost_volume(gram)
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
        information[alike] = np.where(sign > 0, -0.5 * logarithm, _MOST)
    return np.clip(information, 0.0, _MOST)


def _first_fitting(meter: ConditionMeter, power: float) -> Partition:
    """The first partition of a merge sequence within the budget.

    Measured after 1, 2, 4, … merges, until one fits or the volume lost shows that it must; then by bisection.
    """
    sequence: list[Partition] = []
    step, too_few = 1, -1
    for merge in agglomerate(meter.atoms, power=power):
        sequence.append(merge.partition)
        if len(merge.partition) == 1 or 2.0 * np.exp(min(merge.lost_volume, _MOST_LOST)) <= meter.limit:
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
            bounds = escape_conditions(atoms, group)
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
