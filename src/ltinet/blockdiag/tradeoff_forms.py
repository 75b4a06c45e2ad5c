"""Block-diagonal forms on the trade-off between cond(T) and the number of connections.

The forms run from one block with cond(T) = 1 to the form with fewest connections, and none is dominated by another. No
form depends on a limit given by the user, so that a larger limit never gives more connections. Candidates come from two
sources: Pareto frontiers of partitions, judged by the angles between invariant subspaces, for several limits on the
condition number; and blocks split one neuron at a time to full precision, needed where angles are rounding errors. A
Gram matrix squares condition numbers and resolves none beyond 1e6. In a split, a neuron is moved to the end of its
block by orthogonal swaps and separated by one Sylvester equation; the rest keeps an orthonormal basis. T and the blocks
of a form are computed on first use.
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
from ltinet.blockdiag.conditioning import GRAM_LIMIT, condition_number, group_labels
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.blockdiag.frontier import search_frontier
from ltinet.blockdiag.partition import PartitionResult, inseparable_groups, validate_balance
from ltinet.blockdiag.repeated_eigenvalues import group_repeated_eigenvalues
from ltinet.blockdiag.schur import BalancedMatrix, SchurForm, is_decoupled, is_symmetric
from ltinet.blockdiag.schur import balance_matrix as balance_matrix
from ltinet.blockdiag.separation import Separation, merge_kernel, separate, separate_neurons
from ltinet.systems.matrices import Matrix

# Splitting of blocks to full precision

_ITERATIONS = 20  # of the power method: enough where T is ill conditioned, as its largest singular value is separated
_SVD_ORDER = 128  # order of T up to which all singular values cost no more than the power method; measured


class Split(NamedTuple):
    """Group number of every neuron, and an estimate of cond₂(T)."""

    groups: NDArray[np.intp]
    condition: float


def split_greedily(separation: Separation) -> Iterator[Split]:
    """Yield splits that move single neurons out of blocks until all are alone, each with the least cost per connection.

    Cost O(n k) for each of the neurons in a block of k that has changed, and O(n²) for each step; small compared with a
    Schur form of order n unless k is close to n.
    """
    bases, first = separation.bases, separation.first_neuron.tolist()
    blocks = []
    for number, count in enumerate(separation.neurons.tolist()):
        at = slice(int(bases.bounds[number]), int(bases.bounds[number + 1]))
        neurons = tuple(range(first[number], first[number] + count))
        blocks.append(_Block(neurons, bases.basis[:, at], separation.inverse[at], bases.blocks[at, at]))
    while any(block.splits for block in blocks):
        total = sum(block.share for block in blocks)
        best = min(blocks, key=lambda block: block.cheapest(total)[0])
        cost, split = best.cheapest(total)
        if split is None or not math.isfinite(cost):
            return
        blocks.remove(best)
        blocks += split
        yield Split(group_labels(tuple(block.neurons for block in blocks)), _estimate_condition(blocks))


@dataclass(frozen=True, eq=False)
class _Block:
    """Neurons with an orthonormal basis (columns of T), its dual (rows of T⁻¹), and A in that basis."""

    neurons: tuple[int, ...]
    basis: Matrix
    dual: Matrix
    A: Matrix

    @cached_property
    def share(self) -> float:
        """Contribution of the block to ‖T⁻¹‖_F²."""
        return float(np.einsum("ij,ij->", self.dual, self.dual))

    @cached_property
    def splits(self) -> list[tuple["_Block", "_Block"]]:
        """Pairs of the block without one of its neurons, and that neuron, where LAPACK can separate them."""
        if len(self.neurons) == 1:
            return []
        splits = (_remove_neuron(self, index) for index in range(len(self.neurons)))
        return [split for split in splits if split is not None]

    def cheapest(self, total: float) -> tuple[float, tuple["_Block", "_Block"] | None]:
        """Return the split with the least growth of log ‖T⁻¹‖_F per connection saved, with that growth."""
        if not self.splits:
            return math.inf, None
        added, split = self._cheapest
        return math.log1p(max(added / total, -0.5)) / (len(self.neurons) - 1), split

    @cached_property
    def _cheapest(self) -> tuple[float, tuple["_Block", "_Block"]]:
        added = [rest.share + alone.share - self.share for rest, alone in self.splits]
        index = int(np.argmin(added))
        return added[index], self.splits[index]


def _remove_neuron(block: _Block, index: int) -> tuple[_Block, _Block] | None:
    """Return a block without one of its neurons, and that neuron as a block; None where LAPACK refuses a swap."""
    schur = SchurForm(block.A, block.A)
    size = int(schur.sizes[index])
    A, Z = np.array(block.A, order="F"), np.eye(len(block.A), order="F")
    A, Z, info = lapack.dtrexc(A, Z, int(schur.starts[index]) + 1, len(A), overwrite_a=1, overwrite_q=1)
    ahead = len(A) - size
    if info != 0 or (size == 2 and A[-1, -2] == 0.0) or (ahead > 0 and A[ahead, ahead - 1] != 0.0):
        return None
    Y, scale, _ = lapack.dtrsyl(A[:ahead, :ahead], A[ahead:, ahead:], A[:ahead, ahead:], isgn=-1)
    Y = -Y / scale
    if not np.isfinite(Y).all():
        return None
    # [Y; I] spans the invariant subspace of the neuron, Q S = [Y; I]; the dual of [I, Y; 0, I] is [I, −Y; 0, I].
    basis, dual = block.basis @ Z, Z.T @ block.dual
    _, S = np.linalg.qr(np.vstack([Y, np.eye(size)]))
    alone = np.linalg.solve(S.T, (basis[:, :ahead] @ Y + basis[:, ahead:]).T).T
    with np.errstate(over="ignore", invalid="ignore"):
        dual_rest, dual_alone = dual[:ahead] - Y @ dual[ahead:], S @ dual[ahead:]
    if not (np.isfinite(dual_rest).all() and np.isfinite(dual_alone).all()):  # T is singular to working precision
        return None
    others = block.neurons[:index] + block.neurons[index + 1 :]
    rest = _Block(others, basis[:, :ahead], dual_rest, A[:ahead, :ahead])
    return rest, _Block((block.neurons[index],), alone, dual_alone, A[ahead:, ahead:])


def _estimate_condition(blocks: list[_Block]) -> float:
    """Return cond₂(T), for large T as the product of estimates of ‖T‖₂ and ‖T⁻¹‖₂."""
    T = np.hstack([block.basis for block in blocks])
    if len(T) <= _SVD_ORDER:
        return condition_number(T)
    return _largest_singular_value(T) * _largest_singular_value(np.vstack([block.dual for block in blocks]))


def _largest_singular_value(matrix: Matrix) -> float:
    """Return the largest singular value by the power method, started from the largest row."""
    vector = matrix[int(np.argmax(np.einsum("ij,ij->i", matrix, matrix)))]
    size = 0.0
    for _ in range(_ITERATIONS):
        vector = matrix.T @ (matrix @ (vector / np.linalg.norm(vector)))
        size = float(np.linalg.norm(vector))
    return math.sqrt(size)


# Pareto-optimal partitions

# Limits of the frontiers. Subspaces whose angle corresponds to a larger condition number are merged before the search,
# since their joint span is known to few digits: the lower the limit, the more are merged. Empirical.
_CONDITION_LIMITS = (1e4, 1e6, 1e9, 1e13)

# Distance of eigenvalues, relative to the largest entry of the Schur form, below which swaps may change their vectors;
# empirical.
_CLUSTER_TOLERANCE = 1e-6

_MAX_CONDITION = 1.0 / EPS  # a T with a larger condition number has no inverse in double precision


@dataclass(frozen=True, eq=False)
class CandidatePartition:
    """Partition of the neurons of a Schur form, with its cond(T) and number of connections."""

    schur: SchurForm
    groups: NDArray[np.intp]
    condition: float
    """cond₂(T), from angles or estimated."""

    @cached_property
    def counts(self) -> NDArray[np.intp]:
        """Number of neurons of each block."""
        return np.bincount(self.groups)

    @property
    def pairs(self) -> int:
        """Number of pairs of neurons that share a block: connections, unless some are zero."""
        return int((self.counts * (self.counts - 1) // 2).sum())

    @property
    def n_blocks(self) -> int:
        """Number of blocks; single neurons with eigenvalue zero count as one, the kernel of A."""
        is_alone = self.counts[self.groups] == 1
        n_zeros = int(np.count_nonzero(is_alone & (self.schur.eigenvalues == 0.0)))
        return len(self.counts) - max(n_zeros - 1, 0)

    @cached_property
    def separation(self) -> Separation:
        """Bases of all blocks, with single neurons of eigenvalue zero merged into the kernel of A."""
        return merge_kernel(separate(self.schur, self.groups))

    @property
    def measured(self) -> "CandidatePartition":
        """Candidate with cond₂ of its computed T, infinite where T is singular or not a solution."""
        candidate = replace(self, condition=_verified_condition(self.separation))
        candidate.__dict__["separation"] = self.separation  # computed once
        return candidate


def _verified_condition(separation: Separation) -> float:
    """Return cond₂(T); infinite for parallel vectors, or where swaps of nearly equal eigenvalues spoiled them."""
    R, bases = separation.schur.R, separation.bases
    allowed = rounding_tolerance(len(R), float(np.linalg.norm(R) * np.linalg.norm(bases.basis)))
    if not np.linalg.norm(R @ bases.basis - bases.basis @ bases.blocks) <= allowed:
        return np.inf
    try:
        return separation.condition if np.isfinite(separation.inverse).all() else np.inf
    except np.linalg.LinAlgError:
        return np.inf


class _PartitionSearch:
    """Candidates of one Schur form from both sources, angles and splits; few beyond the condition number `up_to`."""

    def __init__(self, schur: SchurForm, up_to: float) -> None:
        self.single_neurons = separate_neurons(schur)
        least = self.single_neurons.condition * (
            1.0 + np.sqrt(EPS)
        )  # with all neurons single_neurons nothing is left to win
        self.limits = list(dict.fromkeys(min(limit, up_to, least) for limit in _CONDITION_LIMITS))

    def all(self) -> list[CandidatePartition]:
        """Return the Pareto-optimal candidates, measured on their T where angles are uncertain."""
        by_angles = list(self._by_angles())
        known = _pareto_optimal([*by_angles, *self._by_splitting(by_angles)])
        trusted = 0.0 if self.is_uncertain else GRAM_LIMIT
        return _pareto_optimal(
            [candidate if candidate.condition <= trusted else candidate.measured for candidate in known]
        )

    @cached_property
    def is_uncertain(self) -> bool:
        """Uncertainty of angles: true where vectors are nearly dependent, or eigenvalues nearly coincide.

        The joint span of nearly dependent vectors is known to few digits, and vectors of nearly equal eigenvalues may
        depend on their order in the Schur form.
        """
        if not self.single_neurons.is_within(GRAM_LIMIT):
            return True
        values = np.sort_complex(self.single_neurons.schur.eigenvalues)
        size = float(np.abs(self.single_neurons.schur.R).max(initial=0.0))
        by_imaginary = values[np.argsort(values.imag)]
        return any(
            bool((np.abs(np.diff(ordered)) <= _CLUSTER_TOLERANCE * size).any()) for ordered in (values, by_imaginary)
        )

    def _by_angles(self) -> Iterator[CandidatePartition]:
        """Yield the frontiers up to one limit after the other, until all neurons are single.

        Neurons that no partition within a limit can separate are merged, and their joint span is recomputed. Where that
        leaves the same atoms as for the next limit, the frontier of the latter contains this one.
        """
        if self.single_neurons.is_within(_MAX_CONDITION):
            yield _candidate_from_separation(self.single_neurons)
        bases = [_merge_indistinguishable(self.single_neurons, limit) for limit in self.limits]
        for index, (base, limit) in enumerate(zip(bases, self.limits, strict=True)):
            if [following.n_blocks for following in bases[index + 1 : index + 2]] != [base.n_blocks]:
                frontier = search_frontier(base.atoms, limit=limit)
                for partition, condition in zip(frontier.partitions, frontier.conditions, strict=True):
                    groups = np.repeat(group_labels(partition), base.neurons)
                    yield CandidatePartition(base.schur, groups, condition)

    def _by_splitting(self, partitions: list[CandidatePartition]) -> Iterator[CandidatePartition]:
        """Yield greedy splits of the sparsest candidate within each limit from 1e6 on.

        Where angles are uncertain, one block with all neurons is split as well.
        """
        for limit in [1.0] * self.is_uncertain + [limit for limit in self.limits if limit >= GRAM_LIMIT]:
            start = min(
                (candidate for candidate in partitions if candidate.condition <= limit),
                key=lambda candidate: candidate.pairs,
            )
            if start.pairs > _candidate_from_separation(self.single_neurons).pairs and np.isfinite(
                _verified_condition(start.separation)
            ):
                for split in split_greedily(start.separation):
                    yield CandidatePartition(start.separation.schur, *split)


def _pareto_optimal(partitions: list[CandidatePartition]) -> list[CandidatePartition]:
    """Return the candidates that are not dominated, by rising condition number."""
    best: list[CandidatePartition] = []
    for candidate in sorted(partitions, key=lambda one: (one.condition, one.pairs)):
        if candidate.condition <= _MAX_CONDITION and (not best or candidate.pairs < best[-1].pairs):
            best.append(candidate)
    return best


def _merge_indistinguishable(separation: Separation, max_condition: float) -> Separation:
    """Merge atoms whose angle is below a limit and recompute their joint span, until no such atoms are left."""
    while separation.n_blocks > 1:
        partition = inseparable_groups(separation.atoms, max_condition)
        if len(partition) == separation.n_blocks:
            break
        separation = separation.merged(partition)
    return separation


def _candidate_from_separation(separation: Separation) -> CandidatePartition:
    """Return the partition of a separation as a candidate."""
    return CandidatePartition(
        separation.schur, np.repeat(np.arange(separation.n_blocks), separation.neurons), separation.condition
    )


# Pareto-optimal forms


@dataclass(frozen=True, eq=False)
class TradeoffForm:
    """Form on the trade-off curve; T and the blocks are computed on first use of `form`."""

    condition: float
    """cond₂(T) in the units in which the form was computed."""
    n_blocks: int
    n_connections: int
    """Number of pairs of neurons that share a block; some of them may turn out to be zero."""
    matrix: Matrix
    balanced: BalancedMatrix
    partition: CandidatePartition | Separation

    @cached_property
    def form(self) -> BlockDiagonalForm:
        """Form, assembled on first use."""
        separation = self.partition.separation if isinstance(self.partition, CandidatePartition) else self.partition
        with limit_blas_threads(len(self.matrix)):
            return assemble_form(self.matrix, self.balanced, PartitionResult(separation), budget=self.condition)


def compute_tradeoff_forms(A: Matrix, *, balance: bool | None) -> list[TradeoffForm]:
    """Return all Pareto-optimal forms of a matrix that were forms, by rising condition number.

    With `balance` None states are balanced and, where that changes them, taken as given as well.
    """
    validate_balance(balance)
    with limit_blas_threads(len(A)):
        units = [balance_matrix(A, rescale_states=balance is not False and not is_symmetric(A))]
        if balance is None and (units[0].scaling != 1.0).any():
            units.append(balance_matrix(A, rescale_states=False))
        forms = _forms_in_units(A, units[0])
        if len(units) > 1 and forms[-1].condition > 1.0:
            # Where no connections are left, larger condition numbers cannot improve.
            forms += _forms_in_units(A, units[1], up_to=forms[-1].condition if forms[-1].n_connections == 0 else np.inf)
    best: list[TradeoffForm] = []
    for form in sorted(forms, key=lambda one: (one.condition, one.n_connections)):
        if not best or form.n_connections < best[-1].n_connections:
            best.append(form)
    return best


def _forms_in_units(A: Matrix, balanced: BalancedMatrix, *, up_to: float = np.inf) -> list[TradeoffForm]:
    """Return the Pareto-optimal forms in given units of the states."""
    schur = schur_form(balanced.matrix)
    if is_decoupled(schur, balanced.matrix):
        decoupled = partition_decoupled(schur).separation
        return [TradeoffForm(1.0, decoupled.n_blocks, 0, A, balanced, decoupled)]
    candidates = _PartitionSearch(group_repeated_eigenvalues(schur, balanced.matrix), up_to).all()
    return [
        TradeoffForm(candidate.condition, candidate.n_blocks, candidate.pairs, A, balanced, candidate)
        for candidate in candidates
    ]
