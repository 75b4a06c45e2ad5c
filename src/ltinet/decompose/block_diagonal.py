"""Algorithm 1, the pipeline: balance → real Schur → partition → reorder → decouple → orthonormalise → permute."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ltinet.decompose.balance import BalancedMatrix
from ltinet.decompose.balance import balance as balance_matrix
from ltinet.decompose.budget import within_budget
from ltinet.decompose.connections import without_noise_couplings
from ltinet.decompose.decouple import Decoupled
from ltinet.decompose.form import BlockDiagonalForm
from ltinet.decompose.orthonormal import BlockBases, orthonormalise
from ltinet.decompose.partition import agglomerate, partition_into
from ltinet.decompose.repeated import with_repeated_together, without_noise
from ltinet.decompose.schur import SchurForm, is_decoupled, real_schur, schur_by_parts, symmetric_schur
from ltinet.decompose.separate import Separation, separate, separate_neurons, with_kernel_together
from ltinet.decompose.threads import threads_for
from ltinet.decompose.transformation import Factors, Product, Transformation, Turns
from ltinet.errors import InvalidSystemError, PartitionError
from ltinet.model.matrices import Matrix, MatrixLike, as_square_matrix, read_only
from ltinet.tolerances import EPS


class ClusteringAlgorithm(Protocol):
    """Anything with scikit-learn's `fit_predict`: points in, one label per point out."""

    def fit_predict(self, X: NDArray[np.float64]) -> Any:
        """Label each row of X."""
        ...


@dataclass(frozen=True)
class _Choice:
    """The separation that was chosen, the trade-off seen on the way, and remarks for the user."""

    separation: Separation
    tradeoff: dict[int, float] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


def block_diagonalize(
    A: MatrixLike,
    *,
    max_condition: float = 1e4,
    n_blocks: int | None = None,
    clustering: ClusteringAlgorithm | None = None,
    balance: bool = True,
) -> BlockDiagonalForm:
    """Block-diagonalise a real square matrix with a well-conditioned transformation (Algorithm 1).

    The blocks are chosen in one of three ways: by default the sparsest form found with cond(T) ≤ `max_condition`,
    measured in balanced coordinates; or `n_blocks` blocks; or the clusters of `clustering`, any object with
    scikit-learn's `fit_predict`, which sees one point (Re λ, |Im λ|) per real eigenvalue or pair. The last two ignore
    `max_condition`. A symmetric or normal A, or one that falls apart into neurons by itself, needs an orthogonal T
    only, and has a block for each neuron.

    Cost: one real Schur form, ~25 n³ flops, and a third as much again where all neurons can stand apart; a tight
    budget on a large matrix without structure searches for several times as long. Raises InvalidSystemError if A is
    not a finite real square matrix, PartitionError if the blocks asked for do not exist.
    """
    matrix = as_square_matrix(A, "A")
    _check_choice(max_condition, n_blocks=n_blocks, clustering=clustering)
    with threads_for(len(matrix)):
        is_free = n_blocks is None and clustering is None
        balanced, schur = _schur_form(matrix, balance=balance, is_free=is_free)
        if n_blocks is None and is_decoupled(schur, balanced.matrix):
            choice = _decoupled_already(schur, clustering)
        else:
            schur = with_repeated_together(schur, balanced.matrix)
            if n_blocks is not None:
                choice = _into_blocks(schur, n_blocks)
            elif clustering is not None:
                choice = _by_clustering(schur, clustering, factor=balanced.factor)
            else:
                choice = _Choice(*within_budget(schur, max_condition))
        return _assemble(matrix, balanced, choice, budget=max_condition if is_free else None)


def _check_choice(max_condition: float, *, n_blocks: int | None, clustering: object) -> None:
    if not isinstance(max_condition, (int, float, np.integer, np.floating)) or not max_condition >= 1.0:
        raise PartitionError(f"max_condition is {max_condition!r}; a condition number is at least 1, so give 1 or more")
    if n_blocks is not None and clustering is not None:
        raise PartitionError("both n_blocks and clustering were given; choose the blocks in one way")
    if n_blocks is not None and (
        not isinstance(n_blocks, (int, np.integer)) or isinstance(n_blocks, bool) or n_blocks < 1
    ):
        raise PartitionError(f"n_blocks is {n_blocks!r}; give a whole number of at least 1")
    if clustering is not None and not hasattr(clustering, "fit_predict"):
        raise PartitionError(
            f"clustering is a {type(clustering).__name__} without fit_predict; give an object like sklearn's KMeans(6)"
        )


def _schur_form(matrix: Matrix, *, balance: bool, is_free: bool) -> tuple[BalancedMatrix, SchurForm]:
    """Balance and decompose, part by part where the blocks are free to follow the parts.

    A normal matrix has rows and columns of equal norms, so that balancing leaves it alone.
    """
    if np.array_equal(matrix[:1], matrix[:, :1].T) and np.array_equal(matrix, matrix.T):
        balanced = balance_matrix(matrix, rescale_states=False)
        return balanced, symmetric_schur(balanced.matrix)
    balanced = balance_matrix(matrix, rescale_states=balance)
    schur = schur_by_parts(balanced.matrix) if is_free else real_schur(balanced.matrix)
    return balanced, without_noise(schur, balanced.matrix)


def _decoupled_already(schur: SchurForm, clustering: object) -> _Choice:
    """A Schur form without couplings is the result itself: orthogonal T, a block for each neuron."""
    remarks = (
        () if clustering is None else ("the matrix is normal: no clustering needed, each neuron has its own block",)
    )
    as_it_stands = Decoupled(np.eye(len(schur.R)), schur.R)
    bases = orthonormalise(as_it_stands, schur, schur.starts)
    return _Choice(Separation(schur, bases, is_orthogonal=True), remarks=remarks)


def _into_blocks(schur: SchurForm, n_blocks: int) -> _Choice:
    """The form with a given number of blocks and a small condition number."""
    n_neurons = len(schur.starts) - 1
    if n_blocks > max(n_neurons, 1):
        raise PartitionError(
            f"n_blocks is {n_blocks}, but A has {n_neurons} neurons (real eigenvalues plus complex pairs); "
            "a block holds at least one, so give fewer blocks"
        )
    if n_blocks == 1:
        return _Choice(separate(schur, np.zeros(n_neurons, dtype=np.intp)))
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
    return _Choice(separation)


def _by_clustering(schur: SchurForm, clustering: ClusteringAlgorithm, *, factor: float) -> _Choice:
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
    return _Choice(separation, remarks=tuple(remarks))


def _assemble(matrix: Matrix, balanced: BalancedMatrix, choice: _Choice, *, budget: float | None) -> BlockDiagonalForm:
    """Order the blocks by their largest real part and return to the coordinates and units of the given matrix."""
    schur, bases = choice.separation.schur, choice.separation.bases
    sizes = bases.bounds[1:] - bases.bounds[:-1]
    values = _per_state(schur, bases)
    largest = np.maximum.reduceat(values.real, bases.bounds[:-1]) if len(sizes) else np.empty(0)
    order = np.argsort(-largest, kind="stable")
    columns = np.argsort(np.repeat(np.argsort(order), sizes), kind="stable")
    A_bd = without_noise_couplings(choice.separation, balanced.matrix)[columns][:, columns]
    if np.log2(balanced.factor) + np.log2(float(np.abs(A_bd).max(initial=1.0))) >= 1024.0:
        raise InvalidSystemError("A has entries near the largest floating-point number; measure time in smaller units")
    return BlockDiagonalForm(
        A=read_only(A_bd * balanced.factor),
        transformation=_transformation(choice.separation, columns, balanced.scaling),
        block_sizes=tuple(sizes[order].tolist()),
        eigenvalues=tuple(_slices(values[columns] * balanced.factor, sizes[order])),
        scaling=read_only(balanced.scaling),
        original=matrix,
        budget=budget,
        seen=tuple(choice.tradeoff.items()),
        remarks=choice.remarks,
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
