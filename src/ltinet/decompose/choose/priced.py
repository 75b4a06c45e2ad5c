"""Partitions that are best at a price for each connection: a first guess for all budgets that costs hardly anything.

‖T⁻¹‖_F² of a partition is a sum of shares e_ab over all pairs of atoms in one group, and so is the number of its
connections. At a price μ for a connection the best partition minimises Σ (e_ab + μ n_a n_b / 2) over pairs that share a
group: correlation clustering, where a step is a few operations on an N × N table. Single atoms change groups and groups
merge until neither helps; from price to price the partition before is the start, downwards and upwards again.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ltinet.decompose.coupling import Partition
from ltinet.model.matrices import Matrix

Labels = NDArray[np.intp]

_RATIO = 1.3  # from one price to the next
_PRICES = 160  # 18 decades: beyond, what a connection costs is below rounding


def priced_partitions(shares: Matrix, neurons: NDArray[np.intp]) -> Iterator[Partition]:
    """Partitions from all atoms apart to all in one group and back, by falling and rising prices."""
    counts = neurons.astype(float)
    pairs = np.multiply.outer(counts, counts)
    gains, labels = 2.0 * shares, np.arange(len(counts))
    np.fill_diagonal(gains, 0.0)
    np.fill_diagonal(pairs, 0.0)
    highest = float((-gains[pairs > 0.0] / pairs[pairs > 0.0]).max(initial=0.0))
    falling: list[float] = []
    for price in highest * _RATIO ** -np.arange(_PRICES if highest > 0.0 else 0):
        labels = _settled(gains + price * pairs, labels)
        yield as_partition(labels)
        if labels.max() == 0:
            break
        falling.append(float(price))
    for price in reversed(falling):
        labels = _settled(gains + price * pairs, labels)
        yield as_partition(labels)


def as_partition(labels: Labels) -> Partition:
    """Groups of atoms with the same label."""
    groups: dict[int, list[int]] = {}
    for atom, label in enumerate(labels.tolist()):
        groups.setdefault(label, []).append(atom)
    return tuple(map(tuple, groups.values()))


def _settled(cost: Matrix, labels: Labels) -> Labels:
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
