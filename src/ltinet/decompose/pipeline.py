"""Algorithm 1, the pipeline: balance → real Schur → partition → reorder → decouple → orthonormalise → permute."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ltinet.decompose.balance import BalancedMatrix
from ltinet.decompose.budget import within_budget
from ltinet.decompose.connections import without_noise_couplings
from ltinet.decompose.decouple import Decoupled
from ltinet.decompose.form import BlockDiagonalForm
from ltinet.decompose.orthonormal import BlockBases, orthonormalise
from ltinet.decompose.partition import agglomerate, partition_into
from ltinet.decompose.repeated import with_repeated_together, without_noise
from ltinet.decompose.schur import SchurForm, is_decoupled, is_symmetric, real_schur, schur_by_parts, symmetric_schur
from ltinet.decompose.separate import Separation, separate, separate_neurons, with_kernel_together
from ltinet.decompose.transformation import Factors, Product, Transformation, Turns
from ltinet.errors import InvalidSystemError, PartitionError
from ltinet.model.matrices import Matrix, read_only
from ltinet.tolerances import EPS


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

    @property
    def is_free(self) -> bool:
        """Whether the blocks are free to follow the structure of the matrix."""
        return self.n_blocks is None and self.clustering is None


@dataclass(frozen=True)
class _Found:
    """The separation that was chosen, the trade-off seen on the way, and remarks for the user."""

    separation: Separation
    tradeoff: dict[int, float] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


def decompose(
    matrix: Matrix, balanced: BalancedMatrix, wanted: BlockChoice, *, fewer_than: int | None = None
) -> BlockDiagonalForm:
    """The block-diagonal form of a matrix in the units of a balanced one, with the blocks that are wanted.

    Raises PartitionError where there are no such blocks, and NotSparserError where it shows early that there cannot be
    `fewer_than` so many connections.
    """
    schur = _schur_form(balanced.matrix, is_free=wanted.is_free)
    if wanted.n_blocks is None and is_decoupled(schur, balanced.matrix):
        found = _decoupled_already(schur, wanted.clustering)
    else:
        schur = with_repeated_together(schur, balanced.matrix)
        if wanted.n_blocks is not None:
            found = _into_blocks(schur, wanted.n_blocks)
        elif wanted.clustering is not None:
            found = _by_clustering(schur, wanted.clustering, factor=balanced.factor)
        else:
            found = _Found(*within_budget(schur, wanted.max_condition, fewer_than=fewer_than))
    return _assemble(matrix, balanced, found, budget=wanted.max_condition if wanted.is_free else None)


def _schur_form(matrix: Matrix, *, is_free: bool) -> SchurForm:
    """The Schur form, part by part where the blocks are free to follow the parts."""
    if is_symmetric(matrix):
        return symmetric_schur(matrix)
    return without_noise(schur_by_parts(matrix) if is_free else real_schur(matrix), matrix)


def _decoupled_already(schur: SchurForm, clustering: object) -> _Found:
    """A Schur form without couplings is the result itself: orthogonal T, a block for each neuron."""
    remarks = (
        () if clustering is None else ("the matrix is normal: no clustering needed, each neuron has its own block",)
    )
    as_it_stands = Decoupled(np.eye(len(schur.R)), schur.R)
    bases = orthonormalise(as_it_stands, schur, schur.starts)
    return _Found(Separation(schur, bases, is_orthogonal=True), remarks=remarks)


def _into_blocks(schur: SchurForm, n_blocks: int) -> _Found:
    """The form with a given number of blocks and a small condition number."""
    n_neurons = len(schur.starts) - 1
    if n_blocks > max(n_neurons, 1):
        raise PartitionError(
            f"n_blocks is {n_blocks}, but A has {n_neurons} neurons (real eigenvalues plus complex pairs); "
            "a block holds at least one, so give fewer blocks"
        )
    if n_blocks == 1:
        return _Found(separate(schur, np.zeros(n_neurons, dtype=np.intp)))
    separation = separate_neurons(schur)
    together = with_kernel_together(separation)
    if together.n_blocks >= n_blocks:
        separation = together
    if separation.n_blocks > n_blocks:
        separation = separation.merged(partition_into(separation.atoms, n_blocks))
    if separation.n_blocks < min(n_blocks, n_neurons) or separation.condition > 1.0 / EPS:
        raise PartitionError(
            f"n_blocks is {n_blocks}, but that many invariant subspaces cannot be told apart in double precision "
            "(repeated or defective eigenvalues); give fewer blocks, or max_condition to have the number chosen"
        )
    return _Found(separation)


def _by_clustering(schur: SchurForm, clustering: ClusteringAlgorithm, *, factor: float) -> _Found:
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
    separation, remarks = separate(schur, labels), []
    while separation.condition > 1.0 / EPS and separation.n_blocks > 1:
        remarks.append("two clusters share eigenvalues that cannot be told apart in double precision; they were merged")
        separation = separation.merged(next(agglomerate(separation.atoms, power=0.0)).partition)
    return _Found(separation, remarks=tuple(remarks))


def _assemble(matrix: Matrix, balanced: BalancedMatrix, found: _Found, *, budget: float | None) -> BlockDiagonalForm:
    """Order the blocks by their largest real part and return to the coordinates and units of the given matrix."""
    schur, bases = found.separation.schur, found.separation.bases
    sizes = bases.bounds[1:] - bases.bounds[:-1]
    values = _per_state(schur, bases)
    largest = np.maximum.reduceat(values.real, bases.bounds[:-1]) if len(sizes) else np.empty(0)
    order = np.argsort(-largest, kind="stable")
    columns = np.argsort(np.repeat(np.argsort(order), sizes), kind="stable")
    A_bd = without_noise_couplings(found.separation, balanced.matrix)[columns][:, columns]
    if np.log2(balanced.factor) + np.log2(float(np.abs(A_bd).max(initial=1.0))) >= 1024.0:
        raise InvalidSystemError("A has entries near the largest floating-point number; measure time in smaller units")
    return BlockDiagonalForm(
        A=read_only(A_bd * balanced.factor),
        transformation=_transformation(found.separation, columns, balanced.scaling),
        block_sizes=tuple(sizes[order].tolist()),
        eigenvalues=tuple(_slices(values[columns] * balanced.factor, sizes[order])),
        scaling=read_only(balanced.scaling),
        original=matrix,
        budget=budget,
        seen=tuple(found.tradeoff.items()),
        remarks=found.remarks,
    )


def _transformation(separation: Separation, columns: NDArray[np.intp], scaling: NDArray[np.float64]) -> Transformation:
    """T in the coordinates of the given matrix, its columns in the order of the blocks."""
    schur, basis = separation.schur, separation.bases.basis
    if not separation.is_orthogonal:
        return Factors(scaling, schur.Z, basis, separation.inverse, columns)
    at = schur.pairs[:, None] + np.arange(2)
    T = Turns(basis[at[:, :, None], at[:, None, :]], at).of_columns(schur.Z)[:, columns]
    return Product(scaling[:, None] * T, T.T / scaling)


def _slices(values: NDArray[np.complex128], sizes: NDArray[np.intp]) -> list[NDArray[np.complex128]]:
    """Cut an array into consecutive pieces."""
    values.setflags(write=False)
    stops = np.cumsum(sizes).tolist()
    return [values[start:stop] for start, stop in zip([0, *stops], stops, strict=False)]


def _per_state(schur: SchurForm, bases: BlockBases) -> NDArray[np.complex128]:
    """One eigenvalue for every state, as it stands in the blocks: for a pair a + iω first, then a − iω."""
    values = bases.blocks.diagonal().astype(np.complex128)
    b, c = bases.blocks[schur.pairs, schur.pairs + 1], bases.blocks[schur.pairs + 1, schur.pairs]
    omega = np.sqrt(np.abs(b)) * np.sqrt(np.abs(c))
    values.imag[schur.pairs], values.imag[schur.pairs + 1] = omega, -omega
    return values
