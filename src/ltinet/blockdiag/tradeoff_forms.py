"""Block-diagonal forms on the trade-off between cond(T) and the number of connections.

The forms run from one block with cond(T) = 1 to the form with fewest connections, and none is dominated by another.
Candidates come from two sources: Pareto frontiers of partitions, judged by the angles between invariant subspaces, for
several limits on the condition number; and blocks split one neuron at a time to full precision, needed where angles
are rounding errors. A Gram matrix squares condition numbers and resolves none beyond 1e6. In a split, a neuron is moved
to the end of its block by orthogonal swaps and leaves it by one Sylvester equation; the rest keeps an orthonormal
basis. T and the blocks of a form are computed on first use.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from ltinet._util.blas_threads import limit_blas_threads
from ltinet._util.cache import cached_property
from ltinet._util.floating_point import EPS, rounding_tolerance
from ltinet.blockdiag.block_diagonalization import assemble_form, partition_decoupled, schur_form
from ltinet.blockdiag.conditioning import GRAM_LIMIT, Partition, condition_number
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.blockdiag.frontier import search_frontier
from ltinet.blockdiag.partition import PartitionResult, inseparable_groups, validate_balance
from ltinet.blockdiag.repeated_eigenvalues import group_repeated_eigenvalues
from ltinet.blockdiag.schur import BalancedMatrix, SchurForm, is_decoupled, is_symmetric
from ltinet.blockdiag.schur import balance_matrix as balance_matrix
from ltinet.blockdiag.separation import Separation, merge_kernel, separate, separate_neurons
from ltinet.systems.matrices import Matrix

# MERGED ltinet.blockdiag.tradeoff_forms
# Beyond what angles tell: blocks are split one neuron at a time, each time inside of its block and to full precision.
#
# A Gram matrix squares condition numbers and knows none beyond 1e6; the joint span of vectors that are as nearly parallel
# is not known from the vectors, either. A block of a well conditioned form knows its neurons better: moved to its end by
# orthogonal swaps, a neuron leaves the block by one Sylvester equation, and the rest keeps an orthonormal basis.

_ITERATIONS = 20  # of the power method: its largest singular value stands apart where T is ill conditioned
_SVD_ORDER = 128  # the order up to which all singular values cost no more


class Split(NamedTuple):
    """A group number for every neuron, and an estimate of cond₂(T)."""

    groups: NDArray[np.intp]
    condition: float


def split_greedily(separation: Separation) -> Iterator[Split]:
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
        yield Split(_groups(blocks, len(separation.schur.sizes)), _estimate_condition(blocks))


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
        found = (_remove_neuron(self, place) for place in range(len(self.neurons)))
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


def _remove_neuron(block: _Block, place: int) -> tuple[_Block, _Block] | None:
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
    left = _Block(_remove_index(block.neurons, place), own[:, :ahead], rest, A[:ahead, :ahead])
    return left, _Block((block.neurons[place],), alone, lone, A[ahead:, ahead:])


def _remove_index(neurons: tuple[int, ...], place: int) -> tuple[int, ...]:
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


def _estimate_condition(blocks: list[_Block]) -> float:
    T = np.hstack([block.basis for block in blocks])
    if len(T) <= _SVD_ORDER:
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


# MERGED ltinet.blockdiag.tradeoff_forms
# All forms that some bound on the condition number would choose, found together: nothing here depends on a bound.
#
# A search for one bound after the other may find more connections with more room. Of rungs that are known before anyone
# asks, the sparsest within a bound is taken, and a larger bound never has more connections. There are two kinds:
#
# - frontiers of partitions up to rising limits, judged by angles between invariant subspaces (`search_frontier`);
# - blocks split one neuron at a time to full precision (`splitting`), where angles are rounding errors.

# Condition numbers up to which angles are looked at. Two bases at an angle below that span a plane that is known to few
# digits only; the lower the limit, the more of them are put together before anything is compared with them.
_CONDITION_LIMITS = (1e4, 1e6, 1e9, 1e13)

# Eigenvalues this close, relative to the largest entry of the Schur form, have vectors that swaps may change.
_CLUSTER_TOLERANCE = 1e-6

_MAX_CONDITION = 1.0 / EPS  # a T with a larger condition number has no inverse in double precision


@dataclass(frozen=True, eq=False)
class CandidatePartition:
    """A group number for every neuron of a Schur form: which neurons share a block, what that costs and saves."""

    schur: SchurForm
    groups: NDArray[np.intp]
    condition: float
    """cond₂(T), measured on angles or estimated."""

    @cached_property
    def counts(self) -> NDArray[np.intp]:
        """Neurons of each block."""
        return np.bincount(self.groups)

    @property
    def pairs(self) -> int:
        """Pairs of neurons that share a block: connections, unless some are zero."""
        return int((self.counts * (self.counts - 1) // 2).sum())

    @cached_property
    def separation(self) -> Separation:
        """The bases of all blocks, with the kernel of A as one block where it stands alone."""
        return merge_kernel(separate(self.schur, self.groups))

    @property
    def measured(self) -> "CandidatePartition":
        """The same with cond₂ of the T that comes out, infinite where that has no inverse or is no solution."""
        rung = replace(self, condition=_verified_condition(self.separation))
        rung.__dict__["separation"] = self.separation  # computed once
        return rung


def _verified_condition(separation: Separation) -> float:
    """cond₂(T); infinite for vectors that are parallel, or that swaps of nearly equal eigenvalues have spoiled."""
    R, bases = separation.schur.R, separation.bases
    allowed = rounding_tolerance(len(R), float(np.linalg.norm(R) * np.linalg.norm(bases.basis)))
    if not np.linalg.norm(R @ bases.basis - bases.basis @ bases.blocks) <= allowed:
        return np.inf
    try:
        return separation.condition if np.isfinite(separation.inverse).all() else np.inf
    except np.linalg.LinAlgError:
        return np.inf


def pareto_partitions(schur: SchurForm, *, up_to: float = np.inf) -> list[CandidatePartition]:
    """Every form that no other one beats, by rising condition number and falling connections; few beyond `up_to`."""
    return _PartitionSearch(schur, up_to).all()


class _PartitionSearch:
    """What is known of one Schur form, kind by kind."""

    def __init__(self, schur: SchurForm, up_to: float) -> None:
        self.apart = separate_neurons(schur)
        least = self.apart.condition * (1.0 + np.sqrt(EPS))  # with all neurons apart nothing is left to win
        self.limits = list(dict.fromkeys(min(limit, up_to, least) for limit in _CONDITION_LIMITS))

    def all(self) -> list[CandidatePartition]:
        """Every rung that no other one beats, by rising condition number; measured on their T where angles may lie."""
        by_angles = list(self._by_angles())
        known = _pareto_optimal([*by_angles, *self._by_splitting(by_angles)])
        trusted = 0.0 if self.is_uncertain else GRAM_LIMIT
        return _pareto_optimal([rung if rung.condition <= trusted else rung.measured for rung in known])

    @cached_property
    def is_uncertain(self) -> bool:
        """Whether angles may lie: vectors are nearly dependent, or eigenvalues nearly coincide.

        The joint span of nearly dependent vectors is known to few digits from them, and which vectors belong to nearly
        equal eigenvalues may hang on their order in the Schur form.
        """
        if not self.apart.is_within(GRAM_LIMIT):
            return True
        values = np.sort_complex(self.apart.schur.eigenvalues)
        size = float(np.abs(self.apart.schur.R).max(initial=0.0))
        by_imaginary = values[np.argsort(values.imag)]
        return any(bool((np.abs(np.diff(own)) <= _CLUSTER_TOLERANCE * size).any()) for own in (values, by_imaginary))

    def _by_angles(self) -> Iterator[CandidatePartition]:
        """Frontiers up to one limit after the other, until all neurons stand apart.

        Neurons that no bound up to a limit can tell apart are treated as one, and their joint span computed anew. Where
        that leaves the same atoms as the next limit, its frontier says it all.
        """
        if self.apart.is_within(_MAX_CONDITION):
            yield _candidate_from_separation(self.apart)
        bases = [_merge_indistinguishable(self.apart, limit) for limit in self.limits]
        for place, (base, limit) in enumerate(zip(bases, self.limits, strict=True)):
            if [own.n_blocks for own in bases[place + 1 : place + 2]] != [base.n_blocks]:
                found = search_frontier(base.atoms, limit=limit)
                for partition, condition in zip(found.partitions, found.conditions, strict=True):
                    yield _candidate_from_partition(base, partition, condition)

    def _by_splitting(self, known: list[CandidatePartition]) -> Iterator[CandidatePartition]:
        """Blocks split one neuron at a time: one block where angles may lie, and the sparsest within each of 1e6 on."""
        for limit in [1.0] * self.is_uncertain + [own for own in self.limits if own >= GRAM_LIMIT]:
            start = min((rung for rung in known if rung.condition <= limit), key=lambda rung: rung.pairs)
            if start.pairs > _candidate_from_separation(self.apart).pairs and np.isfinite(
                _verified_condition(start.separation)
            ):
                for split in split_greedily(start.separation):
                    yield CandidatePartition(start.separation.schur, *split)


def _pareto_optimal(known: list[CandidatePartition]) -> list[CandidatePartition]:
    best: list[CandidatePartition] = []
    for rung in sorted(known, key=lambda own: (own.condition, own.pairs)):
        if rung.condition <= _MAX_CONDITION and (not best or rung.pairs < best[-1].pairs):
            best.append(rung)
    return best


def _merge_indistinguishable(separation: Separation, max_condition: float) -> Separation:
    """Atoms whose angle is below a bound put together, and their joint span computed anew, until none is left."""
    while separation.n_blocks > 1:
        partition = inseparable_groups(separation.atoms, max_condition)
        if len(partition) == separation.n_blocks:
            break
        separation = separation.merged(partition)
    return separation


def _candidate_from_partition(base: Separation, partition: Partition, condition: float) -> CandidatePartition:
    groups = np.empty(base.n_blocks, dtype=np.intp)
    for number, group in enumerate(partition):
        groups[list(group)] = number
    return CandidatePartition(base.schur, np.repeat(groups, base.neurons), condition)


def _candidate_from_separation(separation: Separation) -> CandidatePartition:
    return CandidatePartition(
        separation.schur, np.repeat(np.arange(separation.n_blocks), separation.neurons), separation.condition
    )


# MERGED ltinet.blockdiag.tradeoff_forms
# Every form of a matrix that is worth having: from one block with cond(T) = 1 to the fewest connections of all.


@dataclass(frozen=True, eq=False)
class TradeoffForm:
    """A form that is known by its numbers; T and the blocks are computed when someone asks for them."""

    condition: float
    """cond₂(T) in the units in which the form was found."""
    n_blocks: int
    n_connections: int
    """Pairs of neurons that share a block; the form may turn out to have zeros among them."""
    matrix: Matrix
    units: BalancedMatrix
    found: CandidatePartition | Separation

    @cached_property
    def form(self) -> BlockDiagonalForm:
        """The form itself, assembled on first use."""
        separation = self.found.separation if isinstance(self.found, CandidatePartition) else self.found
        with limit_blas_threads(len(self.matrix)):
            return assemble_form(self.matrix, self.units, PartitionResult(separation), budget=self.condition)


def compute_tradeoff_forms(A: Matrix, *, balance: bool | None) -> list[TradeoffForm]:
    """All forms that are known of a matrix and that no other one beats, by rising condition number.

    With `balance` None states are balanced and, where that changes them, taken as given as well.
    """
    validate_balance(balance)
    with limit_blas_threads(len(A)):
        units = [balance_matrix(A, rescale_states=balance is not False and not is_symmetric(A))]
        if balance is None and (units[0].scaling != 1.0).any():
            units.append(balance_matrix(A, rescale_states=False))
        found = _forms_in_units(A, units[0])
        if len(units) > 1 and found[-1].condition > 1.0:
            # Where no connections are left, more room wins nothing.
            found += _forms_in_units(A, units[1], up_to=found[-1].condition if found[-1].n_connections == 0 else np.inf)
    best: list[TradeoffForm] = []
    for known in sorted(found, key=lambda own: (own.condition, own.n_connections)):
        if not best or known.n_connections < best[-1].n_connections:
            best.append(known)
    return best


def _forms_in_units(A: Matrix, units: BalancedMatrix, *, up_to: float = np.inf) -> list[TradeoffForm]:
    schur = schur_form(units.matrix)
    if is_decoupled(schur, units.matrix):
        decoupled = partition_decoupled(schur).separation
        return [TradeoffForm(1.0, decoupled.n_blocks, 0, A, units, decoupled)]
    rungs = pareto_partitions(group_repeated_eigenvalues(schur, units.matrix), up_to=up_to)
    return [TradeoffForm(rung.condition, _count_blocks(rung), rung.pairs, A, units, rung) for rung in rungs]


def _count_blocks(rung: CandidatePartition) -> int:
    """Blocks of a rung, with neurons of eigenvalue zero that stand alone as one."""
    is_alone = rung.counts[rung.groups] == 1
    n_zeros = int(np.count_nonzero(is_alone & (rung.schur.eigenvalues == 0.0)))
    return len(rung.counts) - max(n_zeros - 1, 0)
