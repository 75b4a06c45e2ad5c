"""Beyond what angles tell: blocks are split one neuron at a time, each time inside of its block and to full precision.

A Gram matrix squares condition numbers and knows none beyond 1e6; the joint span of vectors that are as nearly parallel
is not known from the vectors, either. A block of a well conditioned form knows its neurons better: moved to its end by
orthogonal swaps, a neuron leaves the block by one Sylvester equation, and the rest keeps an orthonormal basis.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from ltinet.decompose.coupling import condition_number
from ltinet.decompose.schur import SchurForm
from ltinet.decompose.separate import Separation
from ltinet.model.matrices import Matrix
from ltinet.once import cached_property

_ITERATIONS = 20  # of the power method: its largest singular value stands apart where T is ill conditioned
_SMALL = 128  # the order up to which all singular values cost no more


class Split(NamedTuple):
    """A group number for every neuron, and an estimate of cond₂(T)."""

    groups: NDArray[np.intp]
    condition: float


def split_one_by_one(separation: Separation) -> Iterator[Split]:
    """Take single neurons out of blocks until all stand alone: next the one whose leaving costs least per connection.

    Cost O(n k) for each of the neurons in a block of k that has changed, and O(n²) for each step; small beside a Schur
    form of order n unless k is near n.
    """
    blocks = _blocks_of(separation)
    while any(block.splits for block in blocks):
        total = sum(block.share for block in blocks)
        best = min(blocks, key=lambda block: block.cheapest(total)[0])
        cost, split = best.cheapest(total)
        if split is None or not math.isfinite(cost):
            return
        blocks.remove(best)
        blocks += split
        yield Split(_groups(blocks, len(separation.schur.sizes)), _condition(blocks))


@dataclass(frozen=True, eq=False)
class _Block:
    """Neurons with an orthonormal basis (columns of T), its dual (rows of T⁻¹), and A in that basis."""

    neurons: tuple[int, ...]
    basis: Matrix
    dual: Matrix
    A: Matrix

    @cached_property
    def share(self) -> float:
        """What the block adds to ‖T⁻¹‖_F²."""
        return float(np.einsum("ij,ij->", self.dual, self.dual))

    @cached_property
    def splits(self) -> list[tuple["_Block", "_Block"]]:
        """The block without each of its neurons, and that neuron; those that LAPACK can tell apart."""
        if len(self.neurons) == 1:
            return []
        found = (_without(self, place) for place in range(len(self.neurons)))
        return [split for split in found if split is not None]

    def cheapest(self, total: float) -> tuple[float, tuple["_Block", "_Block"] | None]:
        """The split that lets log ‖T⁻¹‖_F grow least for each connection less, and by how much."""
        if not self.splits:
            return math.inf, None
        added, split = self._cheapest
        return math.log1p(max(added / total, -0.5)) / (len(self.neurons) - 1), split

    @cached_property
    def _cheapest(self) -> tuple[float, tuple["_Block", "_Block"]]:
        added = [rest.share + alone.share - self.share for rest, alone in self.splits]
        place = int(np.argmin(added))
        return added[place], self.splits[place]


def _without(block: _Block, place: int) -> tuple[_Block, _Block] | None:
    """One neuron out of its block; None where LAPACK refuses a swap."""
    schur = SchurForm(block.A, block.A)
    size = int(schur.sizes[place])
    A, Z = np.array(block.A, order="F"), np.eye(len(block.A), order="F")
    A, Z, info = lapack.dtrexc(A, Z, int(schur.starts[place]) + 1, len(A), overwrite_a=1, overwrite_q=1)
    ahead = len(A) - size
    if info != 0 or (size == 2 and A[-1, -2] == 0.0) or (ahead > 0 and A[ahead, ahead - 1] != 0.0):
        return None
    Y, scale, _ = lapack.dtrsyl(A[:ahead, :ahead], A[ahead:, ahead:], A[:ahead, ahead:], isgn=-1)
    Y = -Y / scale
    if not np.isfinite(Y).all():
        return None
    # [Y; I] spans the neuron's own subspace, Q S = [Y; I]; the dual of [I, Y; 0, I] is [I, −Y; 0, I].
    own, dual = block.basis @ Z, Z.T @ block.dual
    _, S = np.linalg.qr(np.vstack([Y, np.eye(size)]))
    alone = np.linalg.solve(S.T, (own[:, :ahead] @ Y + own[:, ahead:]).T).T
    with np.errstate(over="ignore", invalid="ignore"):
        rest, lone = dual[:ahead] - Y @ dual[ahead:], S @ dual[ahead:]
    if not (np.isfinite(rest).all() and np.isfinite(lone).all()):  # no T with such a dual has an inverse
        return None
    left = _Block(_left(block.neurons, place), own[:, :ahead], rest, A[:ahead, :ahead])
    return left, _Block((block.neurons[place],), alone, lone, A[ahead:, ahead:])


def _left(neurons: tuple[int, ...], place: int) -> tuple[int, ...]:
    return neurons[:place] + neurons[place + 1 :]


def _blocks_of(separation: Separation) -> list[_Block]:
    bases, first = separation.bases, separation.first_neuron.tolist()
    blocks = []
    for number, count in enumerate(separation.neurons.tolist()):
        at = slice(int(bases.bounds[number]), int(bases.bounds[number + 1]))
        neurons = tuple(range(first[number], first[number] + count))
        blocks.append(_Block(neurons, bases.basis[:, at], separation.inverse[at], bases.blocks[at, at]))
    return blocks


def _groups(blocks: list[_Block], n_neurons: int) -> NDArray[np.intp]:
    groups = np.empty(n_neurons, dtype=np.intp)
    for number, block in enumerate(blocks):
        groups[list(block.neurons)] = number
    return groups


def _condition(blocks: list[_Block]) -> float:
    T = np.hstack([block.basis for block in blocks])
    if len(T) <= _SMALL:
        return condition_number(T)
    return _largest_singular_value(T) * _largest_singular_value(np.vstack([block.dual for block in blocks]))


def _largest_singular_value(matrix: Matrix) -> float:
    """By the power method, from the row that is largest."""
    vector = matrix[int(np.argmax(np.einsum("ij,ij->i", matrix, matrix)))]
    size = 0.0
    for _ in range(_ITERATIONS):
        vector = matrix.T @ (matrix @ (vector / np.linalg.norm(vector)))
        size = float(np.linalg.norm(vector))
    return math.sqrt(size)
