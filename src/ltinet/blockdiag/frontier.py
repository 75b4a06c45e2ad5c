"""Pareto frontier of partitions in condition number and number of connections.

All limits on the condition number are searched together, so that a larger limit never gives more connections. Starting
points are merge sequences and Lagrangian partitions; a Pareto local search then moves single atoms between groups, most
promising first.

Lagrangian partitions: ‖T⁻¹‖_F² is a sum of e_ab over all pairs of atoms in one group, and so is the number of
connections. For a price μ per connection the best partition minimises Σ (e_ab + μ n_a n_b/2) over pairs that share a
group (correlation clustering). The partition for one price is the starting point for the next.
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
    isolation_bounds,
)
from ltinet.blockdiag.partition import agglomerate
from ltinet.systems.matrices import Matrix

# MERGED ltinet.blockdiag.frontier
# Partitions that are best at a price for each connection: a first guess for all budgets that costs hardly anything.
#
# ‖T⁻¹‖_F² of a partition is a sum of shares e_ab over all pairs of atoms in one group, and so is the number of its
# connections. At a price μ for a connection the best partition minimises Σ (e_ab + μ n_a n_b / 2) over pairs that share a
# group: correlation clustering, where a step is a few operations on an N × N table. Single atoms change groups and groups
# merge until neither helps; from price to price the partition before is the start, downwards and upwards again.

Labels = NDArray[np.intp]

_PRICE_RATIO = 1.3  # from one price to the next
_N_PRICES = 160  # 18 decades: beyond, what a connection costs is below rounding


def lagrangian_partitions(shares: Matrix, neurons: NDArray[np.intp]) -> Iterator[Partition]:
    """Partitions from all atoms apart to all in one group and back, by falling and rising prices."""
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


def partition_from_labels(labels: Labels) -> Partition:
    """Groups of atoms with the same label."""
    groups: dict[int, list[int]] = {}
    for atom, label in enumerate(labels.tolist()):
        groups.setdefault(label, []).append(atom)
    return tuple(map(tuple, groups.values()))


def _local_search(cost: Matrix, labels: Labels) -> Labels:
    """Labels after the best change of one atom or merge of two groups, and the next, until none lowers the cost."""
    n, everyone = len(cost), np.arange(len(cost))
    labels = np.unique(labels, return_inverse=True)[1]
    belongs = (labels[:, None] == everyone).astype(float)  # one column for each group that there can be
    to_groups = cost @ belongs
    least = -n * np.finfo(float).eps * float(np.abs(cost).max())
    while True:
        change = to_groups - to_groups[everyone, labels][:, None]
        between = belongs.T @ to_groups
        between.flat[:: n + 1] = 0.0
        best_change, best_merge = int(change.argmin()), int(between.argmin())
        if min(change.flat[best_change], between.flat[best_merge]) >= least:
            return labels
        if change.flat[best_change] <= between.flat[best_merge]:
            atom, target = divmod(best_change, n)
            moved = everyone == atom
        else:
            source, target = divmod(best_merge, n)
            moved = labels == source
        to_groups[:, labels[moved][0]] -= cost[:, moved].sum(axis=1)
        to_groups[:, target] += cost[:, moved].sum(axis=1)
        labels = np.where(moved, target, labels)
        belongs = (labels[:, None] == everyone).astype(float)


# MERGED ltinet.blockdiag.frontier
# Partitions that no other one beats in both condition number and connections: what every budget is answered from.
#
# A budget asks for the fewest connections within a condition number. Answered one budget at a time, a search forgets what
# it met on the way to another: more budget could then mean more connections. Here all budgets are searched together.
# Merge sequences and partitions that are best at a price (`priced`) give a first frontier; then single atoms leave their
# groups or change over to others, most promising first, and whatever is not beaten joins and has its neighbours tried in
# turn (a Pareto local search).

# Merges maximise I(a; b) / (n_a n_b)^power: 0 looks only at the condition, 1 at what a connection buys.
_POWERS = (1.0, 1.5, 0.5, 2.0)

# Up to this order one merge sequence costs less than reading it: all prices are tried.
_ALL_POWERS_ORDER = 80

# Atoms that are candidates to leave their groups, and as many to change over, those with most promise.
_MOVES_PER_PARTITION = 10

# A candidate that would have to be so many times better (as a logarithm) than can be hoped is none.
_PROMISE_CUTOFF = 0.7

# Neighbours that are measured; so many of them with one at most that has joined are enough.
_MAX_EVALUATIONS = 250
_PATIENCE = 30

# Partitions of the merge sequences with so many times the connections of the best are starting points, too.
_START_SLACK = 1.3


@dataclass
class ParetoFrontier:
    """Partitions by rising condition number and falling connections, none beaten by another."""

    conditions: list[float] = field(default_factory=list)
    connections: list[int] = field(default_factory=list)
    partitions: list[Partition] = field(default_factory=list)

    def is_beaten(self, condition: float, connections: int) -> bool:
        """Whether a partition with as few connections is known that is conditioned at least as well."""
        place = bisect_right(self.conditions, condition)
        return place > 0 and self.connections[place - 1] <= connections

    def add(self, condition: float, connections: int, partition: Partition) -> bool:
        """Let a partition join unless it is beaten, and those leave that it beats; whether it joined."""
        if self.is_beaten(condition, connections):
            return False
        start = stop = bisect_left(self.conditions, condition)
        while stop < len(self.connections) and self.connections[stop] >= connections:
            stop += 1
        self.conditions[start:stop] = [condition]
        self.connections[start:stop] = [connections]
        self.partitions[start:stop] = [partition]
        return True


def search_frontier(atoms: Atoms, *, limit: float) -> ParetoFrontier:
    """The frontier of partitions of atoms with cond(T) ≤ limit, as far as a bounded number of measurements shows it.

    It does not depend on any budget, only on the atoms and the limit: a larger budget can only find more of it. Cost:
    merge sequences and priced partitions, O(n³) each, and some hundred eigenvalue problems of order n.
    """
    return _FrontierSearch(atoms, limit).run()


# Of some moves: the atoms, their targets, the connections after, the condition numbers to hope for.
_Moves = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]


@dataclass
class _FrontierSearch:
    atoms: Atoms
    limit: float
    found: ParetoFrontier = field(default_factory=ParetoFrontier)
    measured: set[frozenset[Group]] = field(default_factory=set)
    n_queued: int = 0
    queue: list[tuple[float, int, "_Candidate"]] = field(default_factory=list)
    bases: dict[Group, Matrix] = field(default_factory=dict)
    starts: list[tuple[float, Partition]] = field(default_factory=list)

    @cached_property
    def shares(self) -> Matrix:
        """e_ab with ‖T⁻¹‖_F² = Σ e_ab over all two atoms of one group, for every partition."""
        inverse = np.linalg.pinv(self.atoms.basis)
        products = self.atoms.gram * (inverse @ inverse.T)
        first = self.atoms.starts[:-1]
        return np.add.reduceat(np.add.reduceat(products, first, axis=0), first, axis=1)

    @cached_property
    def alone(self) -> NDArray[np.float64]:
        """For each atom a lower bound on cond(T) of every partition in which it stands alone."""
        return isolation_bounds(self.atoms)

    def run(self) -> ParetoFrontier:
        n = len(self.atoms.gram)
        whole = (tuple(range(len(self.atoms.neurons))),)
        self.found.add(1.0, self.atoms.connections(whole), whole)
        self._start(self.atoms.singletons)
        for partition in lagrangian_partitions(self.shares, self.atoms.neurons):
            self._start(partition)
        for power in _POWERS if n <= _ALL_POWERS_ORDER else _POWERS[:1]:
            for merge in agglomerate(self.atoms, power=power):
                self._start(merge.partition)
        for condition, partition in self.starts:
            if not self.found.is_beaten(condition, int(self.atoms.connections(partition) / _START_SLACK)):
                self._propose(partition, condition)
        self._try_neighbours(_evaluations(n))
        return self.found

    def _condition(self, partition: Partition, enough: float) -> float:
        """cond₂ of the T of a partition, infinite where that is beyond enough for certain.

        Bases of groups are orthonormalised by QR; from Gram matrices they would be known to half the digits.
        """
        bases = []
        for group in partition:
            if group not in self.bases:
                own = self.atoms.basis[:, self.atoms.columns(group)]
                self.bases[group] = own if len(group) == 1 else np.linalg.qr(own)[0]
            bases.append(self.bases[group])
        T = np.concatenate(bases, axis=1)
        gram = T.T @ T
        if enough <= GRAM_LIMIT and not _has_larger_eigenvalues(gram, 1.0 / enough**2):
            return math.inf
        condition = gram_condition(gram)
        return condition if condition <= 0.1 * GRAM_LIMIT else condition_number(T)

    def _is_new(self, partition: Partition) -> bool:
        key = frozenset(partition)
        is_new = key not in self.measured
        self.measured.add(key)
        return is_new

    def _start(self, partition: Partition) -> None:
        """Measure a partition; beaten by little it is a starting point, too."""
        if not self._is_new(partition):
            return
        connections = self.atoms.connections(partition)
        condition = self._condition(partition, self._enough(int(connections / _START_SLACK)))
        if condition <= self.limit:
            self._join(condition, connections, partition)
            self.starts.append((condition, partition))

    def _join(self, condition: float, connections: int, partition: Partition) -> bool:
        return condition <= self.limit and self.found.add(condition, connections, partition)

    def _enough(self, connections: int) -> float:
        """The condition number from which on a partition with so many connections is beaten, or beyond the limit."""
        fewest_first = self.found.connections[::-1]
        n_not_more = bisect_right(fewest_first, connections)
        return self.limit if n_not_more == 0 else self.found.conditions[len(fewest_first) - n_not_more]

    def _try_neighbours(self, most: int) -> None:
        """Try the most promising neighbour next, until none is left that could help or it has cost enough.

        Promise is by how much the partition would beat those known, if its condition were as good as it can be hoped.
        What joins brings new candidates; what others have beaten meanwhile is put back or forgotten.
        """
        recent = deque([True] * _PATIENCE, maxlen=_PATIENCE)
        while self.queue and most > 0 and sum(recent) > 1:
            _, number, candidate = heapq.heappop(self.queue)
            if self.found.is_beaten(candidate.bound, candidate.connections):
                continue
            current = self._promise(candidate)
            if self.queue and current < -self.queue[0][0]:
                heapq.heappush(self.queue, (-current, number, candidate))
                continue
            partition = candidate.result
            if not self._is_new(partition):
                continue
            most -= 1
            condition = self._condition(partition, self._enough(candidate.connections))
            recent.append(self._join(condition, candidate.connections, partition))
            if recent[-1]:
                self._propose(partition, condition)

    def _promise(self, candidate: "_Candidate") -> float:
        return math.log(self._enough(candidate.connections) / candidate.hope)

    def _propose(self, partition: Partition, condition: float) -> None:
        """Put the atoms that could best leave a group, or change over to another one, into the queue.

        Sums of shares tell how ‖T⁻¹‖_F² − n would change, and cond(T) − 1 is hoped to change as its root.
        """
        neurons, labels = self.atoms.neurons, _labels(partition)
        everyone = np.arange(len(labels))
        belongs = (labels[:, None] == np.arange(len(partition))).astype(float)
        to_groups, sizes = self.shares @ belongs, (neurons @ belongs).astype(np.intp)
        to_own = to_groups[everyone, labels]
        n = float(len(self.atoms.gram))
        excess = max(float(to_own.sum()) - n, n * EPS)  # zero for orthogonal T; less it cannot be, but for rounding
        lost = -2.0 * (to_own - self.shares.diagonal())
        left = self.atoms.connections(partition) - neurons * (sizes[labels] - neurons)
        alone = np.maximum(_predicted_condition(condition, lost / excess), self.alone)
        can_leave = (sizes[labels] > neurons) & (self.alone <= self.limit)
        moves = [(everyone, np.full(len(labels), -1), left, np.where(can_leave, alone, np.inf))]
        if len(partition) > 1:
            to_groups[everyone, labels] = np.inf
            target = to_groups.argmin(axis=1)  # shared most with: shares of what is close are negative
            changed = _predicted_condition(condition, (lost + 2.0 * to_groups[everyone, target]) / excess)
            moves.append((everyone, target, left + neurons * sizes[target], changed))
        self._queue_best(partition, moves)

    def _queue_best(self, partition: Partition, moves: list[_Moves]) -> None:
        """Put those of each kind of moves into the queue that promise most."""
        fewest_first = np.array(self.found.connections[::-1])
        enough = np.array([self.limit, *self.found.conditions[::-1]])
        for atoms, targets, connections, hopes in moves:
            enough_for = enough[fewest_first.searchsorted(connections, side="right")]
            promise = np.log(enough_for) - np.log(np.maximum(hopes, 1.0))
            best = np.argsort(-promise)[:_MOVES_PER_PARTITION]
            for place in best[promise[best] > -_PROMISE_CUTOFF].tolist():
                atom, target, hope = int(atoms[place]), int(targets[place]), max(float(hopes[place]), 1.0)
                bound = float(self.alone[atom]) if target < 0 else 1.0
                self.n_queued += 1
                candidate = _Candidate(partition, atom, target, int(connections[place]), hope, bound)
                heapq.heappush(self.queue, (-float(promise[place]), self.n_queued, candidate))


def _predicted_condition(condition: float, growth: NDArray[np.float64]) -> NDArray[np.float64]:
    """A condition number after ‖T⁻¹‖_F² − n has grown by some part of it; of orthogonal T both are one and zero."""
    return np.asarray(1.0 + (condition - 1.0) * np.sqrt(np.maximum(1.0 + growth, 0.0)))


def _labels(partition: Partition) -> NDArray[np.intp]:
    """The number of its group for each atom."""
    labels = np.empty(sum(map(len, partition)), dtype=np.intp)
    for number, group in enumerate(partition):
        labels[list(group)] = number
    return labels


def _evaluations(n_states: int) -> int:
    """How many neighbours are measured: each costs a fraction of a Schur form that is larger for small matrices."""
    return _MAX_EVALUATIONS if n_states <= 64 else _MAX_EVALUATIONS * 64 // n_states


def _has_larger_eigenvalues(gram: Matrix, bound: float) -> bool:
    """Whether the Gram matrix minus bound · I is positive definite: a Cholesky factorisation, a tenth of eigenvalues.

    The largest eigenvalue is at least one, so that False means cond(T) > bound^(−1/2).
    """
    shifted = gram.copy()
    shifted.flat[:: len(gram) + 1] -= bound
    return bool(lapack.dpotrf(shifted, lower=1, overwrite_a=1)[1] == 0)


class _Candidate(NamedTuple):
    """An atom of a partition that leaves its group for another one (or for none, −1), and what that may bring."""

    partition: Partition
    atom: int
    target: int
    connections: int
    hope: float
    """A condition number to hope for."""
    bound: float
    """One that it has at least."""

    @property
    def result(self) -> Partition:
        """The partition after the move."""
        groups = [tuple(own for own in group if own != self.atom) for group in self.partition]
        if self.target < 0:
            groups.append((self.atom,))
        else:
            groups[self.target] = tuple(sorted((*groups[self.target], self.atom)))
        return tuple(group for group in groups if group)
