"""Pareto frontier of partitions in condition number and number of connections.

All limits on the condition number are searched together, so that a larger limit never gives more connections. Starting
points are merge sequences and Lagrangian partitions; a Pareto local search then moves single atoms between groups, most
promising first, and tries the neighbors of every partition that is not dominated.

Lagrangian partitions: ‖T⁻¹‖_F² is a sum of e_ab over all pairs of atoms in one group, and so is the number of
connections. For a price μ per connection the best partition minimizes Σ (e_ab + μ n_a n_b/2) over pairs that share a
group (correlation clustering). Single atoms change groups and groups merge until neither lowers the cost. The partition
for one price is the starting point for the next, with prices falling and rising again.
"""

import heapq
import math
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS
from ltinet.blockdiag.conditioning import (
    GRAM_LIMIT,
    Atoms,
    Group,
    Partition,
    condition_number,
    gram_condition,
    group_labels,
    isolation_bounds,
)
from ltinet.blockdiag.partition import MERGE_POWERS, agglomerate
from ltinet.systems.matrices import Matrix

_PRICE_RATIO = 1.3  # of consecutive prices; empirical
_N_PRICES = 160  # 1.3¹⁶⁰ = 10¹⁸: lower prices would be below the rounding errors of the shares


def lagrangian_partitions(shares: Matrix, neurons: NDArray[np.intp]) -> Iterator[Partition]:
    """Yield partitions from all atoms apart to all in one group and back, for falling and rising prices."""
    counts = neurons.astype(float)
    pairs = np.multiply.outer(counts, counts)
    gains, labels = 2.0 * shares, np.arange(len(counts))
    np.fill_diagonal(gains, 0.0)
    np.fill_diagonal(pairs, 0.0)
    highest = float((-gains[pairs > 0.0] / pairs[pairs > 0.0]).max(initial=0.0))
    falling: list[float] = []
    for price in highest * _PRICE_RATIO ** -np.arange(_N_PRICES if highest > 0.0 else 0):
        labels = _local_search(gains + price * pairs, labels)
        yield partition_from_labels(labels)
        if labels.max() == 0:
            break
        falling.append(float(price))
    for price in reversed(falling):
        labels = _local_search(gains + price * pairs, labels)
        yield partition_from_labels(labels)


def partition_from_labels(labels: NDArray[np.intp]) -> Partition:
    """Return the partition into groups of atoms with the same label."""
    groups: dict[int, list[int]] = {}
    for atom, label in enumerate(labels.tolist()):
        groups.setdefault(label, []).append(atom)
    return tuple(map(tuple, groups.values()))


def _local_search(cost: Matrix, labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return labels after a descent: the best change of one atom or merge of two groups, until none lowers the cost."""
    n, atoms = len(cost), np.arange(len(cost))
    labels = np.unique(labels, return_inverse=True)[1]
    membership = (labels[:, None] == atoms).astype(float)
    to_groups = cost @ membership
    threshold = -n * np.finfo(float).eps * float(np.abs(cost).max())
    while True:
        change = to_groups - to_groups[atoms, labels][:, None]
        between = membership.T @ to_groups
        between.flat[:: n + 1] = 0.0
        best_change, best_merge = int(change.argmin()), int(between.argmin())
        if min(change.flat[best_change], between.flat[best_merge]) >= threshold:
            return labels
        if change.flat[best_change] <= between.flat[best_merge]:
            atom, target = divmod(best_change, n)
            moved = atoms == atom
        else:
            source, target = divmod(best_merge, n)
            moved = labels == source
        to_groups[:, labels[moved][0]] -= cost[:, moved].sum(axis=1)
        to_groups[:, target] += cost[:, moved].sum(axis=1)
        labels = np.where(moved, target, labels)
        membership = (labels[:, None] == atoms).astype(float)


# Number of states up to which a merge sequence is so cheap that all exponents are tried.
_ALL_POWERS_ORDER = 80

# Limits of the search among neighbors, empirical. On average they decide little: the mean share of connections of eight
# frontiers is 0.5250 without any neighbor, and 0.5247 with 60 to 1000 evaluations, 1 to 30 moves, or cutoffs from 0 to 2
# (python -m benchmarks.constants _MAX_EVALUATIONS _MOVES_PER_PARTITION _PROMISE_CUTOFF). For small matrices, without
# neighbors, searches for a single limit find fewer connections (tests/oracles/test_ladder_vs_search.py).
# Candidates of each kind (leave a group, change to another one) per partition, those with the largest promise.
_MOVES_PER_PARTITION = 10

# Candidates are dropped whose predicted condition number exceeds the useful one by more than a factor exp(0.7) = 2, as far
# as predictions are wrong.
_PROMISE_CUTOFF = 0.7

# Limit on evaluated neighbors for up to 64 states, and length of the window in which at most one success ends the search.
_MAX_EVALUATIONS = 250
_PATIENCE = 30

# Factor on the connections of the frontier up to which dominated partitions are starting points, too.
_START_SLACK = 1.3


@dataclass
class ParetoFrontier:
    """Partitions by rising condition number and falling connections, none dominated by another."""

    conditions: list[float] = field(default_factory=list)
    connections: list[int] = field(default_factory=list)
    partitions: list[Partition] = field(default_factory=list)

    def is_dominated(self, condition: float, connections: int) -> bool:
        """Return whether a partition with at most these connections and this condition number is known."""
        index = bisect_right(self.conditions, condition)
        return index > 0 and self.connections[index - 1] <= connections

    def add(self, condition: float, connections: int, partition: Partition) -> bool:
        """Add a partition unless it is dominated, remove those that it dominates, and return whether it was added."""
        if self.is_dominated(condition, connections):
            return False
        start = stop = bisect_left(self.conditions, condition)
        while stop < len(self.connections) and self.connections[stop] >= connections:
            stop += 1
        self.conditions[start:stop] = [condition]
        self.connections[start:stop] = [connections]
        self.partitions[start:stop] = [partition]
        return True


def search_frontier(atoms: Atoms, *, limit: float) -> ParetoFrontier:
    """Return the frontier of partitions of atoms with cond(T) ≤ limit, found with a bounded number of evaluations.

    Cost: merge sequences and Lagrangian partitions, O(n³) each, and some hundred eigenvalue problems of order n.
    """
    return _FrontierSearch(atoms, limit).run()


# Moves: atoms, target groups, connections after the move, predicted condition numbers.
_Moves = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]


@dataclass
class _FrontierSearch:
    """State of the search: frontier, evaluated partitions, queue of candidates and cached bases of groups."""

    atoms: Atoms
    limit: float
    frontier: ParetoFrontier = field(default_factory=ParetoFrontier)
    evaluated: set[frozenset[Group]] = field(default_factory=set)
    n_queued: int = 0
    queue: list[tuple[float, int, "_Candidate"]] = field(default_factory=list)
    bases: dict[Group, Matrix] = field(default_factory=dict)
    starts: list[tuple[float, Partition]] = field(default_factory=list)

    @cached_property
    def shares(self) -> Matrix:
        """Matrix of e_ab with ‖T⁻¹‖_F² = Σ e_ab over all pairs of atoms in one group, for every partition."""
        inverse = np.linalg.pinv(self.atoms.basis)
        products = self.atoms.gram * (inverse @ inverse.T)
        first = self.atoms.starts[:-1]
        return np.add.reduceat(np.add.reduceat(products, first, axis=0), first, axis=1)

    @cached_property
    def isolation_bound(self) -> NDArray[np.float64]:
        """Lower bound, for each atom, on cond(T) of every partition in which it has a group of its own."""
        return isolation_bounds(self.atoms)

    def run(self) -> ParetoFrontier:
        """Return the frontier."""
        n = len(self.atoms.gram)
        single_group = (tuple(range(len(self.atoms.neurons))),)
        self.frontier.add(1.0, self.atoms.connections(single_group), single_group)
        self._start(self.atoms.singletons)
        for partition in lagrangian_partitions(self.shares, self.atoms.neurons):
            self._start(partition)
        for power in MERGE_POWERS if n <= _ALL_POWERS_ORDER else MERGE_POWERS[:1]:
            for merge in agglomerate(self.atoms, power=power):
                self._start(merge.partition)
        for condition, partition in self.starts:
            if not self.frontier.is_dominated(condition, int(self.atoms.connections(partition) / _START_SLACK)):
                self._propose(partition, condition)
        # An evaluation costs a fraction of a Schur form that is larger for small matrices.
        self._try_neighbors(_MAX_EVALUATIONS if n <= 64 else _MAX_EVALUATIONS * 64 // n)
        return self.frontier

    def _condition(self, partition: Partition, cutoff: float) -> float:
        """Return cond₂ of the T of a partition, infinite where it certainly exceeds `cutoff`.

        Bases of groups are orthonormalized by QR; Gram matrices would give them with half the digits.
        """
        bases = []
        for group in partition:
            if group not in self.bases:
                basis = self.atoms.basis[:, self.atoms.columns(group)]
                self.bases[group] = basis if len(group) == 1 else np.linalg.qr(basis)[0]
            bases.append(self.bases[group])
        T = np.concatenate(bases, axis=1)
        gram = T.T @ T
        if cutoff <= GRAM_LIMIT and not _eigenvalues_exceed(gram, 1.0 / cutoff**2):
            return math.inf
        condition = gram_condition(gram)
        return condition if condition <= 0.1 * GRAM_LIMIT else condition_number(T)

    def _is_new(self, partition: Partition) -> bool:
        """Register a partition, and return whether it was not evaluated before."""
        key = frozenset(partition)
        is_new = key not in self.evaluated
        self.evaluated.add(key)
        return is_new

    def _start(self, partition: Partition) -> None:
        """Evaluate a partition, and keep it as a starting point if it is not far from the frontier."""
        if not self._is_new(partition):
            return
        connections = self.atoms.connections(partition)
        condition = self._condition(partition, self._cutoff(int(connections / _START_SLACK)))
        if condition <= self.limit:
            self._add(condition, connections, partition)
            self.starts.append((condition, partition))

    def _add(self, condition: float, connections: int, partition: Partition) -> bool:
        """Add a partition within the limit to the frontier, and return whether it was added."""
        return condition <= self.limit and self.frontier.add(condition, connections, partition)

    def _cutoff(self, connections: int) -> float:
        """Return the largest condition number at which a partition with these connections improves the frontier."""
        fewest_first = self.frontier.connections[::-1]
        n_not_more = bisect_right(fewest_first, connections)
        return self.limit if n_not_more == 0 else self.frontier.conditions[len(fewest_first) - n_not_more]

    def _try_neighbors(self, n_evaluations: int) -> None:
        """Evaluate the n_evaluations promising neighbor next, until the queue or the limit of evaluations is exhausted.

        The promise of a candidate is the factor by which its predicted condition number is below the cutoff. New
        partitions of the frontier add candidates; candidates whose promise has fallen meanwhile are put back into the
        queue or dropped.
        """
        recent = deque([True] * _PATIENCE, maxlen=_PATIENCE)
        while self.queue and n_evaluations > 0 and sum(recent) > 1:
            _, number, candidate = heapq.heappop(self.queue)
            if self.frontier.is_dominated(candidate.bound, candidate.connections):
                continue
            current = math.log(self._cutoff(candidate.connections) / candidate.predicted)
            if self.queue and current < -self.queue[0][0]:
                heapq.heappush(self.queue, (-current, number, candidate))
                continue
            partition = candidate.result
            if not self._is_new(partition):
                continue
            n_evaluations -= 1
            condition = self._condition(partition, self._cutoff(candidate.connections))
            recent.append(self._add(condition, candidate.connections, partition))
            if recent[-1]:
                self._propose(partition, condition)

    def _propose(self, partition: Partition, condition: float) -> None:
        """Queue the atoms that could best leave a group, or change to another one.

        Sums of shares give the change of ‖T⁻¹‖_F² − n, and cond(T) − 1 is predicted to change as its root.
        """
        neurons, labels = self.atoms.neurons, group_labels(partition)
        atoms = np.arange(len(labels))
        membership = (labels[:, None] == np.arange(len(partition))).astype(float)
        to_groups, sizes = self.shares @ membership, (neurons @ membership).astype(np.intp)
        to_same = to_groups[atoms, labels]
        n = float(len(self.atoms.gram))
        excess = max(float(to_same.sum()) - n, n * EPS)  # zero for orthogonal T, and never negative but for rounding
        change = -2.0 * (to_same - self.shares.diagonal())
        connections = self.atoms.connections(partition) - neurons * (sizes[labels] - neurons)
        isolated_condition = np.maximum(_predicted_condition(condition, change / excess), self.isolation_bound)
        can_leave = (sizes[labels] > neurons) & (self.isolation_bound <= self.limit)
        moves = [(atoms, np.full(len(labels), -1), connections, np.where(can_leave, isolated_condition, np.inf))]
        if len(partition) > 1:
            to_groups[atoms, labels] = np.inf
            target = to_groups.argmin(axis=1)  # shares of nearly parallel atoms are negative
            changed = _predicted_condition(condition, (change + 2.0 * to_groups[atoms, target]) / excess)
            moves.append((atoms, target, connections + neurons * sizes[target], changed))
        self._queue_best(partition, moves)

    def _queue_best(self, partition: Partition, moves: list[_Moves]) -> None:
        """Queue the most promising moves of each kind."""
        fewest_first = np.array(self.frontier.connections[::-1])
        cutoff = np.array([self.limit, *self.frontier.conditions[::-1]])
        for atoms, targets, connections, predictions in moves:
            cutoffs = cutoff[fewest_first.searchsorted(connections, side="right")]
            promise = np.log(cutoffs) - np.log(np.maximum(predictions, 1.0))
            best = np.argsort(-promise)[:_MOVES_PER_PARTITION]
            for index in best[promise[best] > -_PROMISE_CUTOFF].tolist():
                atom, target, predicted = int(atoms[index]), int(targets[index]), max(float(predictions[index]), 1.0)
                bound = float(self.isolation_bound[atom]) if target < 0 else 1.0
                self.n_queued += 1
                candidate = _Candidate(partition, atom, target, int(connections[index]), predicted, bound)
                heapq.heappush(self.queue, (-float(promise[index]), self.n_queued, candidate))


def _predicted_condition(condition: float, growth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the condition number after ‖T⁻¹‖_F² − n has changed by the relative `growth`.

    cond(T) − 1 is taken to be proportional to the root of ‖T⁻¹‖_F² − n; both are zero for orthogonal T.
    """
    return np.asarray(1.0 + (condition - 1.0) * np.sqrt(np.maximum(1.0 + growth, 0.0)))


def _eigenvalues_exceed(gram: Matrix, bound: float) -> bool:
    """Return whether all eigenvalues of a Gram matrix exceed a bound, by a Cholesky factorization of gram − bound · I.

    It costs a tenth of the eigenvalues. The largest eigenvalue is at least one, so that False means cond(T) >
    bound^(−1/2).
    """
    shifted = gram.copy()
    shifted.flat[:: len(gram) + 1] -= bound
    return bool(lapack.dpotrf(shifted, lower=1, overwrite_a=1)[1] == 0)


class _Candidate(NamedTuple):
    """Move of an atom of a partition to another group, or to a new one (target −1), with its prospects."""

    partition: Partition
    atom: int
    target: int
    connections: int
    predicted: float
    """Predicted condition number."""
    bound: float
    """Lower bound on the condition number."""

    @property
    def result(self) -> Partition:
        """Partition after the move."""
        groups = [tuple(atom for atom in group if atom != self.atom) for group in self.partition]
        if self.target < 0:
            groups.append((self.atom,))
        else:
            groups[self.target] = tuple(sorted((*groups[self.target], self.atom)))
        return tuple(group for group in groups if group)
