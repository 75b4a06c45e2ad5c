"""Partitions that no other one beats in both condition number and connections: what every budget is answered from.

A budget asks for the fewest connections within a condition number. Answered one budget at a time, a search forgets what
it met on the way to another: more budget could then mean more connections. Here all budgets are searched together. The
merge sequences of all prices give a first frontier; then single atoms leave their groups or change over to others, most
promising first, and whatever is not beaten joins and has its neighbours tried in turn (a Pareto local search).
"""

import heapq
import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from functools import reduce
from operator import xor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from ltinet.decompose.coupling import (
    GRAM_LIMIT,
    Atoms,
    Group,
    Partition,
    alone_conditions,
    condition_number,
    gram_condition,
)
from ltinet.decompose.partition import agglomerate
from ltinet.model.matrices import Matrix
from ltinet.once import cached_property

# Merges maximise I(a; b) / (n_a n_b)^power: 0 looks only at the condition, 1 at what a connection buys.
_POWERS = (1.0, 1.5, 0.5, 2.0)

# Up to this order one merge sequence costs less than reading it: all prices are tried.
_SMALL = 80

# Atoms of a group that are candidates to leave it, those with most promise.
_BEST = 8

# Partitions of the merge sequences with so many times the connections of the best are starting points, too.
_SLACK = 1.3


@dataclass
class Frontier:
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


def frontier(atoms: Atoms, *, limit: float) -> Frontier:
    """The frontier of partitions of atoms with cond(T) ≤ limit, as far as a bounded number of measurements shows it.

    It does not depend on any budget, only on the atoms and the limit: a larger budget can only find more of it. Cost:
    the merge sequences, O(n³) each, and some hundred eigenvalue problems of order n.
    """
    return _Search(atoms, limit).run()


@dataclass
class _Search:
    atoms: Atoms
    limit: float
    found: Frontier = field(default_factory=Frontier)
    measured: set[int] = field(default_factory=set)
    """Partitions that were measured or are beaten, by their fingerprints."""
    queue: list[tuple[float, int, "_Candidate"]] = field(default_factory=list)
    bases: dict[Group, Matrix] = field(default_factory=dict)
    evaluations_left: int = 0
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
        return alone_conditions(self.atoms)

    def run(self) -> Frontier:
        n = len(self.atoms.gram)
        whole = (tuple(range(len(self.atoms.neurons))),)
        self.found.add(1.0, self.atoms.connections(whole), whole)
        self._measure(self.atoms.singletons)
        for power in _POWERS if n <= _SMALL else _POWERS[:1]:
            for merge in agglomerate(self.atoms, power=power):
                self._measure(merge.partition)
        self.evaluations_left = _evaluations(n)
        self._try_neighbours()
        return self.found

    def _condition(self, partition: Partition, connections: int) -> float:
        """cond₂ of the T of a partition, infinite where that is beaten for certain by one with so many connections.

        Bases of groups are orthonormalised by QR; from Gram matrices they would be known to half the digits.
        """
        bases = []
        for group in partition:
            if group not in self.bases:
                own = self.atoms.basis[:, self.atoms.columns(group)]
                self.bases[group] = own if len(group) == 1 else np.linalg.qr(own)[0]
            bases.append(self.bases[group])
        T = np.hstack(bases)
        if self.limit > GRAM_LIMIT:
            return condition_number(T)
        gram = T.T @ T
        if not _has_larger_eigenvalues(gram, 1.0 / self._enough(connections) ** 2):
            return math.inf
        return gram_condition(gram)

    def _measure(self, partition: Partition) -> None:
        """Measure a partition of a merge sequence; those that are beaten by little are starting points, too."""
        key, connections = fingerprint(partition), self.atoms.connections(partition)
        if key in self.measured:
            return
        self.measured.add(key)
        condition = self._condition(partition, int(connections / _SLACK))
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

    def _try_neighbours(self) -> None:
        """Try the most promising neighbour next, until none is left that could help or it has cost enough.

        Promise is by how much the partition would beat those known, if its condition were as good as it can be hoped.
        What joins brings new candidates; what others have beaten meanwhile is put back or forgotten.
        """
        for condition, partition in self.starts:
            self._propose(partition, condition)
        while self.queue and self.evaluations_left > 0:
            _, _, candidate = heapq.heappop(self.queue)
            current = self._promise(candidate)
            if candidate.key in self.measured or self.found.is_beaten(candidate.bound, candidate.connections):
                continue
            if self.queue and current < -self.queue[0][0]:
                heapq.heappush(self.queue, (-current, candidate.key, candidate))
                continue
            self.measured.add(candidate.key)
            self.evaluations_left -= 1
            partition = candidate.move.result
            condition = self._condition(partition, candidate.connections)
            if self._join(condition, candidate.connections, partition):
                self._propose(partition, condition)

    def _promise(self, candidate: "_Candidate") -> float:
        return math.log(self._enough(candidate.connections) / candidate.hope)

    def _propose(self, partition: Partition, condition: float) -> None:
        """Put the atoms that could best leave a group, or change over to another one, into the queue.

        Sums of shares tell how ‖T⁻¹‖_F would change; cond(T) is hoped to change by the same factor.
        """
        before, neurons, labels = self.atoms.connections(partition), self.atoms.neurons, _labels(partition)
        belongs = labels[:, None] == np.arange(len(partition))
        to_groups, sizes, own = self.shares @ belongs, neurons @ belongs, (np.arange(len(labels)), labels)
        total = max(float(to_groups[own].sum()), float(len(self.atoms.gram)))  # less it cannot be, but for rounding
        lost = -2.0 * (to_groups[own] - self.shares.diagonal())
        after = before - neurons * (sizes[labels] - neurons)
        alone = np.maximum(_grown(condition, lost / total), self.alone)
        masks, key = [_mask(group) for group in partition], fingerprint(partition)
        for source in (number for number, group in enumerate(partition) if len(group) > 1):
            members = np.array(partition[source])
            for atom in members[np.argsort(alone[members])[:_BEST]].tolist():
                child = key ^ _change(masks[source], 0, 1 << atom)
                move = _Move(partition, atom, source, None)
                self._queue(_Candidate(move, int(after[atom]), child, float(alone[atom]), float(self.alone[atom])))
        if len(partition) == 1:
            return
        to_groups[own] = np.inf
        target = to_groups.argmin(
            axis=1
        )  # the group that an atom shares most with: shares of what is close are negative
        changed = np.maximum(_grown(condition, (lost + 2.0 * to_groups.min(axis=1)) / total), 1.0)
        after += neurons * sizes[target]
        for atom in np.argsort(changed)[:_BEST].tolist():
            if not self.found.is_beaten(float(changed[atom]), int(after[atom])):
                move = _Move(partition, atom, int(labels[atom]), int(target[atom]))
                child = key ^ _change(masks[labels[atom]], masks[target[atom]], 1 << atom)
                self._queue(_Candidate(move, int(after[atom]), child, float(changed[atom]), 1.0))

    def _queue(self, candidate: "_Candidate") -> None:
        is_beaten = candidate.bound > self.limit or self.found.is_beaten(candidate.bound, candidate.connections)
        if not is_beaten and candidate.key not in self.measured:
            heapq.heappush(self.queue, (-self._promise(candidate), candidate.key, candidate))


def _grown(condition: float, growth: NDArray[np.float64]) -> NDArray[np.float64]:
    """A condition number after ‖T⁻¹‖_F² has grown by some part of it."""
    return np.asarray(condition * np.sqrt(np.maximum(1.0 + growth, 0.0)))


def _labels(partition: Partition) -> NDArray[np.intp]:
    """The number of its group for each atom."""
    labels = np.empty(sum(map(len, partition)), dtype=np.intp)
    for number, group in enumerate(partition):
        labels[list(group)] = number
    return labels


def _evaluations(n_states: int) -> int:
    """How many neighbours are measured: each costs a fraction of a Schur form that is larger for small matrices."""
    return 250 if n_states <= 64 else 20_000 // n_states


def _has_larger_eigenvalues(gram: Matrix, bound: float) -> bool:
    """Whether the Gram matrix minus bound · I is positive definite: a Cholesky factorisation, a tenth of eigenvalues.

    The largest eigenvalue is at least one, so that False means cond(T) > bound^(−1/2).
    """
    shifted = gram.copy()
    shifted.flat[:: len(gram) + 1] -= bound
    return bool(lapack.dpotrf(shifted, lower=1, overwrite_a=1)[1] == 0)


def fingerprint(partition: Partition) -> int:
    """A number that tells partitions apart, and changes with the groups that change only."""
    return reduce(xor, (hash((_mask(group),)) for group in partition))


def _change(source: int, target: int, atom: int) -> int:
    """What an atom that goes from one group to another one, or to none, changes in a fingerprint; all as masks."""
    left = source & ~atom
    changed = hash((source,)) ^ hash((target | atom,))
    return changed ^ (hash((left,)) if left else 0) ^ (hash((target,)) if target else 0)


def _mask(group: Group) -> int:
    return sum(1 << atom for atom in group)


class _Move(NamedTuple):
    """An atom of a partition that leaves its group, for another one or for none."""

    partition: Partition
    atom: int
    source: int
    target: int | None

    @property
    def result(self) -> Partition:
        """The partition after the move."""
        groups = list(self.partition)
        groups[self.source] = tuple(member for member in groups[self.source] if member != self.atom)
        if self.target is None:
            groups.append((self.atom,))
        else:
            groups[self.target] = tuple(sorted((*groups[self.target], self.atom)))
        return tuple(group for group in groups if group)


class _Candidate(NamedTuple):
    """A neighbour of a partition: its connections and fingerprint, a condition to hope for, and a bound on it."""

    move: _Move
    connections: int
    key: int
    hope: float
    bound: float
