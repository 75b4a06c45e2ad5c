"""Block diagonalization of a real square matrix (Algorithm 1), with the public function `block_diagonalize`.

The steps are: balance, real Schur form, partition, reorder, decouple, orthonormalize, permute. A Schur form without
couplings (every normal A) is the result itself, with orthogonal T. With `balance=None` the states are tried both
balanced and as given; the form with fewer connections is returned, among equals the one with the smaller cond(T).
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ltinet._util.blas_threads import limit_blas_threads
from ltinet.blockdiag.conditioning import condition_number
from ltinet.blockdiag.decoupling import Decoupling
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.blockdiag.orthonormal_bases import BlockBases, orthonormalize
from ltinet.blockdiag.partition import (
    BlockChoice,
    ClusteringAlgorithm,
    NotSparserError,
    PartitionResult,
    partition_by_clustering,
    partition_by_condition,
    partition_by_count,
    validate_balance,
)
from ltinet.blockdiag.repeated_eigenvalues import group_repeated_eigenvalues, remove_noise
from ltinet.blockdiag.schur import (
    BalancedMatrix,
    SchurForm,
    is_decoupled,
    is_symmetric,
    schur_by_parts,
    symmetric_schur,
)
from ltinet.blockdiag.schur import balance_matrix as balance_matrix
from ltinet.blockdiag.separation import Separation, drop_noise_couplings
from ltinet.blockdiag.transformation import DenseTransformation, FactoredTransformation, PlaneRotations, Transformation
from ltinet.errors import InvalidSystemError, PartitionError
from ltinet.systems.matrices import Matrix, MatrixLike, as_square_matrix, make_read_only


def decompose(
    matrix: Matrix, balanced: BalancedMatrix, choice: BlockChoice, *, fewer_than: int | None = None
) -> BlockDiagonalForm:
    """Return the block-diagonal form of a matrix in the units of a balanced one, with the blocks of a choice.

    Raises PartitionError where these blocks do not exist, NotSparserError where fewer than `fewer_than` connections are
    out of reach, and InvalidSystemError where products of entries of A under- or overflow.
    """
    try:
        return _decompose_schur(matrix, balanced, choice, fewer_than=fewer_than)
    except np.linalg.LinAlgError as error:
        sizes = np.abs(matrix[matrix != 0.0])
        raise InvalidSystemError(
            f"A cannot be decomposed: its entries range from {sizes.min():.0e} to {sizes.max():.0e}, and products of "
            "them under- or overflow; choose units of the states in which entries are closer"
        ) from error


def _decompose_schur(
    matrix: Matrix, balanced: BalancedMatrix, choice: BlockChoice, *, fewer_than: int | None
) -> BlockDiagonalForm:
    """Return the form from the Schur form of the balanced matrix; see `decompose`."""
    schur = schur_form(balanced.matrix)
    if choice.n_blocks is None and is_decoupled(schur, balanced.matrix):
        result = partition_decoupled(schur, choice.clustering)
    else:
        schur = group_repeated_eigenvalues(schur, balanced.matrix)
        if choice.n_blocks is not None:
            result = partition_by_count(schur, choice.n_blocks, count_name=choice.count_name)
        elif choice.clustering is not None:
            result = partition_by_clustering(schur, choice.clustering, factor=balanced.factor)
        else:
            result = PartitionResult(*partition_by_condition(schur, choice.max_condition, fewer_than=fewer_than))
    return assemble_form(matrix, balanced, result, budget=choice.max_condition if choice.is_free else None)


def schur_form(matrix: Matrix) -> SchurForm:
    """Return the Schur form, computed by connected components, so that uncoupled states stay uncoupled."""
    return symmetric_schur(matrix) if is_symmetric(matrix) else remove_noise(schur_by_parts(matrix), matrix)


def partition_decoupled(schur: SchurForm, clustering: object = None) -> PartitionResult:
    """Return a Schur form without couplings as the result itself: orthogonal T, one block per neuron."""
    decisions = (
        () if clustering is None else ("the matrix is normal: no clustering needed, each neuron has its own block",)
    )
    bases = orthonormalize(Decoupling(np.eye(len(schur.R)), schur.R), schur, schur.starts)
    return PartitionResult(Separation(schur, bases, is_orthogonal=True), decisions=decisions)


def assemble_form(
    matrix: Matrix, balanced: BalancedMatrix, partition: PartitionResult, *, budget: float | None
) -> BlockDiagonalForm:
    """Return the form in the coordinates and units of the given matrix, blocks ordered by their largest real part."""
    schur, bases = partition.separation.schur, partition.separation.bases
    sizes = bases.bounds[1:] - bases.bounds[:-1]
    values = _eigenvalue_per_state(schur, bases)
    largest = np.maximum.reduceat(values.real, bases.bounds[:-1]) if len(sizes) else np.empty(0)
    order = np.argsort(-largest, kind="stable")
    columns = np.argsort(np.repeat(np.argsort(order), sizes), kind="stable")
    A_bd = drop_noise_couplings(partition.separation, balanced.matrix)[columns][:, columns]
    if np.log2(balanced.factor) + np.log2(float(np.abs(A_bd).max(initial=1.0))) >= 1024.0:
        raise InvalidSystemError("A has entries near the largest floating-point number; choose a smaller unit of time")
    return BlockDiagonalForm(
        A=make_read_only(A_bd * balanced.factor),
        transformation=_transformation(partition.separation, columns, balanced.scaling),
        block_sizes=tuple(sizes[order].tolist()),
        eigenvalues=split_by_block(values[columns] * balanced.factor, sizes[order]),
        scaling=make_read_only(balanced.scaling),
        original=matrix,
        budget=budget,
        candidates=tuple(partition.tradeoff.items()),
        decisions=partition.decisions,
    )


def _transformation(separation: Separation, columns: NDArray[np.intp], scaling: NDArray[np.float64]) -> Transformation:
    """Return T in the coordinates of the given matrix, with its columns in the order of the blocks."""
    schur, basis = separation.schur, separation.bases.basis
    if not separation.is_orthogonal:
        return FactoredTransformation(scaling, schur.Z, basis, separation.inverse, columns)
    at = schur.pairs[:, None] + np.arange(2)
    T = PlaneRotations(basis[at[:, :, None], at[:, None, :]], at).rotate_columns(schur.Z)[:, columns]
    return DenseTransformation(scaling[:, None] * T, T.T / scaling)


def split_by_block(values: NDArray[np.complex128], sizes: NDArray[np.intp]) -> tuple[NDArray[np.complex128], ...]:
    """Split an array into consecutive read-only parts of the given sizes."""
    values.setflags(write=False)
    stops = np.cumsum(sizes).tolist()
    return tuple(values[start:stop] for start, stop in zip([0, *stops], stops, strict=False))


def _eigenvalue_per_state(schur: SchurForm, bases: BlockBases) -> NDArray[np.complex128]:
    """Return one eigenvalue for every state in the order of the blocks; for a pair a + iω first, then a − iω."""
    values = bases.blocks.diagonal().astype(np.complex128)
    b, c = bases.blocks[schur.pairs, schur.pairs + 1], bases.blocks[schur.pairs + 1, schur.pairs]
    omega = np.sqrt(np.abs(b)) * np.sqrt(np.abs(c))
    values.imag[schur.pairs], values.imag[schur.pairs + 1] = omega, -omega
    return values


# Choice of the units of the states, and the public function


def block_diagonalize(
    A: MatrixLike,
    *,
    max_condition: float = 1e4,
    n_blocks: int | None = None,
    clustering: ClusteringAlgorithm | None = None,
    balance: bool | None = None,
) -> BlockDiagonalForm:
    """Block-diagonalize a real square matrix with a well-conditioned transformation (Algorithm 1).

    The blocks are chosen in one of three ways: by default the sparsest form found with cond(T) ≤ `max_condition`; or
    `n_blocks` blocks; or the clusters of `clustering`. The last two ignore `max_condition`. A symmetric or normal A, or
    one whose neurons are not connected, requires an orthogonal T only, and has a block for each neuron.

    Cost: one real Schur form, ~25 n³ flops, and a third as much again where all neurons can have blocks of their own; a
    small `max_condition` for a large matrix without structure takes several times as long. Twice that where both units
    of the states are tried.

    Parameters
    ----------
    A : array_like
        Real square matrix, n×n, with finite entries.
    max_condition : float
        Limit on cond(T), at least 1, in the units of the states that `balance` selects.
    n_blocks : int, optional
        Number of blocks.
    clustering : object, optional
        Clustering algorithm with scikit-learn's `fit_predict`. It is called with one point (Re λ, |Im λ|) for each real
        eigenvalue or pair.
    balance : bool, optional
        True to balance the states first (rows and columns of A are scaled to equal norms by powers of two), False to
        take them as given. None tries balanced states first and, where they differ from the given ones and leave
        connections, the given ones as well; clusters are computed with balanced states only.

    Returns
    -------
    BlockDiagonalForm
        The blocks, T and T⁻¹, and diagnostics.

    Raises
    ------
    InvalidSystemError
        A is not a finite real square matrix.
    PartitionError
        The options are not valid, or the blocks do not exist.
    """
    choice = BlockChoice(max_condition, n_blocks, clustering)
    if hasattr(A, "signal_settings"):
        raise InvalidSystemError(f"block_diagonalize takes a matrix A, got {type(A).__name__}; pass system.A")
    return candidate_forms(as_square_matrix(A, "A"), choice, balance=balance)[0]


def candidate_forms(A: Matrix, choice: BlockChoice, *, balance: bool | None) -> tuple[BlockDiagonalForm, ...]:
    """Return the form of `block_diagonalize` and, where both were computed, the one in the other units of the states."""
    _validate_choice(choice)
    validate_balance(balance)
    with limit_blas_threads(len(A)):
        # Rows and columns of a symmetric matrix have equal norms: balancing does not change it.
        units = balance_matrix(A, rescale_states=balance is not False and not is_symmetric(A))
        if balance is not None or choice.clustering is not None or not (units.scaling != 1.0).any():
            return (decompose(A, units, choice),)
        as_given = balance_matrix(A, rescale_states=False)
        try:
            balanced = decompose(A, units, choice)
        except PartitionError:
            return (_with_decision(decompose(A, as_given, choice), "there are no such blocks with states balanced"),)
        if balanced.n_connections == 0:
            # No form is sparser, and columns of equal norm are almost optimal for cond(T) (van der Sluis 1969).
            return (_with_decision(balanced, "no connections are left"),)
        try:
            other = decompose(A, as_given, choice, fewer_than=balanced.n_connections)
        except NotSparserError:
            return (_with_decision(balanced, "there would be more connections with states as given"),)
        except PartitionError:
            return (_with_decision(balanced, "there are no such blocks with states as given"),)
        except InvalidSystemError:
            return (_with_decision(balanced, "entries differ by too many decades with states as given"),)
    return _order_forms(balanced, other)


def _order_forms(balanced: BlockDiagonalForm, as_given: BlockDiagonalForm) -> tuple[BlockDiagonalForm, ...]:
    """Return both forms, the better one first, each with a decision that compares them."""
    counts = balanced.n_connections, as_given.n_connections
    if counts[0] != counts[1]:
        comparison = f"{counts[0]} connections with states balanced, {counts[1]} as given"
        is_given_better = counts[1] < counts[0]
    else:  # compared in balanced units, in which rounding errors are of equal size
        conditions = balanced.condition, condition_number(as_given.T / balanced.scaling[:, None])
        comparison = f"cond(T) is {conditions[0]:.3g} with states balanced, {conditions[1]:.3g} as given"
        is_given_better = conditions[1] < conditions[0]
    forms = (as_given, balanced) if is_given_better else (balanced, as_given)
    return tuple(_with_decision(form, comparison) for form in forms)


def _with_decision(form: BlockDiagonalForm, reason: str) -> BlockDiagonalForm:
    """Return the form with one more decision: its units and the reason why they were chosen."""
    return replace(form, decisions=(*form.decisions, f"{describe_units(form)}: {reason}"))


def describe_units(form: BlockDiagonalForm) -> str:
    """Return a description of the units of the states in which a form was computed."""
    return "states balanced" if (form.scaling != 1.0).any() else "states as given"


def _validate_choice(choice: BlockChoice) -> None:
    """Raise PartitionError unless the options are valid and at most one way to choose the blocks is given."""
    max_condition, n_blocks, clustering = choice.max_condition, choice.n_blocks, choice.clustering
    if not isinstance(max_condition, (int, float, np.integer, np.floating)) or not max_condition >= 1.0:
        raise PartitionError(f"max_condition must be a number ≥ 1, got {max_condition!r}")
    if n_blocks is not None and clustering is not None:
        raise PartitionError(f"{choice.count_name} and clustering exclude each other; give one of them")
    if n_blocks is not None and (
        not isinstance(n_blocks, (int, np.integer)) or isinstance(n_blocks, bool) or n_blocks < 1
    ):
        raise PartitionError(f"{choice.count_name} must be an integer ≥ 1, got {n_blocks!r}")
    if clustering is not None and not hasattr(clustering, "fit_predict"):
        raise PartitionError(
            f"clustering is a {type(clustering).__name__} without fit_predict; give an object like sklearn's KMeans(6)"
        )
