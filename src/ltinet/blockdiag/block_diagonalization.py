"""Block diagonalisation of a real square matrix (Algorithm 1), with the public function `block_diagonalize`.

The steps are: balance, real Schur form, partition, reorder, decouple, orthonormalise, permute. A Schur form without
couplings (every normal A) is the result itself, with orthogonal T. With `balance=None` the states are tried both
balanced and as given; the form with fewer connections is returned, then the one with the smaller cond(T).
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ltinet._util.blas_threads import limit_blas_threads
from ltinet.blockdiag.conditioning import condition_number
from ltinet.blockdiag.decoupling import Decoupling
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.blockdiag.orthonormal_bases import BlockBases, orthonormalise
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

# MERGED ltinet.blockdiag.block_diagonalization
# Algorithm 1, the pipeline: balance → real Schur → partition → reorder → decouple → orthonormalise → permute.


def decompose(
    matrix: Matrix, balanced: BalancedMatrix, wanted: BlockChoice, *, fewer_than: int | None = None
) -> BlockDiagonalForm:
    """The block-diagonal form of a matrix in the units of a balanced one, with the blocks that are wanted.

    Raises PartitionError where there are no such blocks, NotSparserError where it shows early that there cannot be
    `fewer_than` so many connections, and InvalidSystemError where products of its entries vanish or are no numbers.
    """
    try:
        return _decompose_schur(matrix, balanced, wanted, fewer_than=fewer_than)
    except np.linalg.LinAlgError as error:
        sizes = np.abs(matrix[matrix != 0.0])
        raise InvalidSystemError(
            f"A cannot be taken apart: its entries reach from {sizes.min():.0e} to {sizes.max():.0e}, and products of "
            "them exceed what floating-point numbers can tell; choose units of the states in which they are closer"
        ) from error


def _decompose_schur(
    matrix: Matrix, balanced: BalancedMatrix, wanted: BlockChoice, *, fewer_than: int | None
) -> BlockDiagonalForm:
    schur = schur_form(balanced.matrix)
    if wanted.n_blocks is None and is_decoupled(schur, balanced.matrix):
        found = partition_decoupled(schur, wanted.clustering)
    else:
        schur = group_repeated_eigenvalues(schur, balanced.matrix)
        if wanted.n_blocks is not None:
            found = partition_by_count(schur, wanted.n_blocks, called=wanted.called)
        elif wanted.clustering is not None:
            found = partition_by_clustering(schur, wanted.clustering, factor=balanced.factor)
        else:
            found = PartitionResult(*partition_by_condition(schur, wanted.max_condition, fewer_than=fewer_than))
    return assemble_form(matrix, balanced, found, budget=wanted.max_condition if wanted.is_free else None)


def schur_form(matrix: Matrix) -> SchurForm:
    """The Schur form, part by part: what is not connected stays so, whatever blocks it will stand in."""
    return symmetric_schur(matrix) if is_symmetric(matrix) else remove_noise(schur_by_parts(matrix), matrix)


def partition_decoupled(schur: SchurForm, clustering: object = None) -> PartitionResult:
    """A Schur form without couplings is the result itself: orthogonal T, a block for each neuron."""
    notes = () if clustering is None else ("the matrix is normal: no clustering needed, each neuron has its own block",)
    as_it_stands = Decoupling(np.eye(len(schur.R)), schur.R)
    bases = orthonormalise(as_it_stands, schur, schur.starts)
    return PartitionResult(Separation(schur, bases, is_orthogonal=True), notes=notes)


def assemble_form(
    matrix: Matrix, balanced: BalancedMatrix, found: PartitionResult, *, budget: float | None
) -> BlockDiagonalForm:
    """Order the blocks by their largest real part and return to the coordinates and units of the given matrix."""
    schur, bases = found.separation.schur, found.separation.bases
    sizes = bases.bounds[1:] - bases.bounds[:-1]
    values = _eigenvalue_per_state(schur, bases)
    largest = np.maximum.reduceat(values.real, bases.bounds[:-1]) if len(sizes) else np.empty(0)
    order = np.argsort(-largest, kind="stable")
    columns = np.argsort(np.repeat(np.argsort(order), sizes), kind="stable")
    A_bd = drop_noise_couplings(found.separation, balanced.matrix)[columns][:, columns]
    if np.log2(balanced.factor) + np.log2(float(np.abs(A_bd).max(initial=1.0))) >= 1024.0:
        raise InvalidSystemError("A has entries near the largest floating-point number; measure time in smaller units")
    return BlockDiagonalForm(
        A=make_read_only(A_bd * balanced.factor),
        transformation=_transformation(found.separation, columns, balanced.scaling),
        block_sizes=tuple(sizes[order].tolist()),
        eigenvalues=tuple(_split_by_block(values[columns] * balanced.factor, sizes[order])),
        scaling=make_read_only(balanced.scaling),
        original=matrix,
        budget=budget,
        seen=tuple(found.tradeoff.items()),
        decisions=found.notes,
    )


def _transformation(separation: Separation, columns: NDArray[np.intp], scaling: NDArray[np.float64]) -> Transformation:
    """T in the coordinates of the given matrix, its columns in the order of the blocks."""
    schur, basis = separation.schur, separation.bases.basis
    if not separation.is_orthogonal:
        return FactoredTransformation(scaling, schur.Z, basis, separation.inverse, columns)
    at = schur.pairs[:, None] + np.arange(2)
    T = PlaneRotations(basis[at[:, :, None], at[:, None, :]], at).of_columns(schur.Z)[:, columns]
    return DenseTransformation(scaling[:, None] * T, T.T / scaling)


def _split_by_block(values: NDArray[np.complex128], sizes: NDArray[np.intp]) -> list[NDArray[np.complex128]]:
    """Cut an array into consecutive pieces."""
    values.setflags(write=False)
    stops = np.cumsum(sizes).tolist()
    return [values[start:stop] for start, stop in zip([0, *stops], stops, strict=False)]


def _eigenvalue_per_state(schur: SchurForm, bases: BlockBases) -> NDArray[np.complex128]:
    """One eigenvalue for every state, as it stands in the blocks: for a pair a + iω first, then a − iω."""
    values = bases.blocks.diagonal().astype(np.complex128)
    b, c = bases.blocks[schur.pairs, schur.pairs + 1], bases.blocks[schur.pairs + 1, schur.pairs]
    omega = np.sqrt(np.abs(b)) * np.sqrt(np.abs(c))
    values.imag[schur.pairs], values.imag[schur.pairs + 1] = omega, -omega
    return values


# MERGED ltinet.blockdiag.block_diagonalization
# The door to Algorithm 1: what is asked for, and in which units of the states it is looked for.


def block_diagonalize(
    A: MatrixLike,
    *,
    max_condition: float = 1e4,
    n_blocks: int | None = None,
    clustering: ClusteringAlgorithm | None = None,
    balance: bool | None = None,
) -> BlockDiagonalForm:
    """Block-diagonalise a real square matrix with a well-conditioned transformation (Algorithm 1).

    The blocks are chosen in one of three ways: by default the sparsest form found with cond(T) ≤ `max_condition`; or
    `n_blocks` blocks; or the clusters of `clustering`, any object with scikit-learn's `fit_predict`, which sees one
    point (Re λ, |Im λ|) per real eigenvalue or pair. The last two ignore `max_condition`. A symmetric or normal A, or
    one that falls apart into neurons by itself, needs an orthogonal T only, and has a block for each neuron.

    The units of the states decide what is found, and in which cond(T) is measured: with `balance` rows and columns of A
    are brought to one size by powers of two, without it they are as given. None tries balanced states first and, where
    they differ from the given ones and leave connections, those as well; it takes the form with fewer connections, then
    the smaller cond(T). Clusters are looked for once, with balanced states.

    Cost: one real Schur form, ~25 n³ flops, and a third as much again where all neurons can stand apart; a tight
    budget on a large matrix without structure searches for several times as long. Twice that where both units are
    tried. Raises InvalidSystemError if A is not a finite real square matrix, PartitionError if the blocks asked for do
    not exist.
    """
    wanted = BlockChoice(max_condition, n_blocks, clustering)
    return candidate_forms(as_square_matrix(A, "A"), wanted, balance=balance)[0]


def candidate_forms(A: Matrix, wanted: BlockChoice, *, balance: bool | None) -> tuple[BlockDiagonalForm, ...]:
    """The form that `block_diagonalize` returns and, where it was close, the one in other units of the states."""
    _validate_choice(wanted)
    validate_balance(balance)
    with limit_blas_threads(len(A)):
        # Of a symmetric matrix rows and columns have equal norms, and balancing leaves it alone.
        units = balance_matrix(A, rescale_states=balance is not False and not is_symmetric(A))
        if balance is not None or wanted.clustering is not None or not (units.scaling != 1.0).any():
            return (decompose(A, units, wanted),)
        as_given = balance_matrix(A, rescale_states=False)
        try:
            balanced = decompose(A, units, wanted)
        except PartitionError:  # those blocks do not exist in these units
            return (_with_note(decompose(A, as_given, wanted), "there are no such blocks with states balanced"),)
        if balanced.n_connections == 0:
            # None is sparser, and T as well conditioned as any: vectors are best of one size (van der Sluis 1969).
            return (_with_note(balanced, "no connections are left"),)
        try:
            other = decompose(A, as_given, wanted, fewer_than=balanced.n_connections)
        except NotSparserError:
            return (_with_note(balanced, "there would be more connections with states as given"),)
        except PartitionError:
            return (_with_note(balanced, "there are no such blocks with states as given"),)
        except InvalidSystemError:
            return (_with_note(balanced, "entries differ by too many decades with states as given"),)
    return _order_forms(balanced, other)


def _order_forms(balanced: BlockDiagonalForm, as_given: BlockDiagonalForm) -> tuple[BlockDiagonalForm, ...]:
    """Both forms, the better one first, each with a note on how they compare."""
    counts = balanced.n_connections, as_given.n_connections
    if counts[0] != counts[1]:
        told = f"{counts[0]} connections with states balanced, {counts[1]} as given"
        is_better = counts[1] < counts[0]
    else:  # in the units in which rounding errors are of one size
        conditions = balanced.condition, condition_number(as_given.T / balanced.scaling[:, None])
        told = f"cond(T) is {conditions[0]:.3g} with states balanced, {conditions[1]:.3g} as given"
        is_better = conditions[1] < conditions[0]
    forms = (as_given, balanced) if is_better else (balanced, as_given)
    return tuple(_with_note(form, told) for form in forms)


def _with_note(form: BlockDiagonalForm, note: str) -> BlockDiagonalForm:
    return replace(form, decisions=(*form.decisions, f"{describe_units(form)}: {note}"))


def describe_units(form: BlockDiagonalForm) -> str:
    """In which units of the states a form was looked for, in words."""
    return "states balanced" if (form.scaling != 1.0).any() else "states as given"


def _validate_choice(wanted: BlockChoice) -> None:
    max_condition, n_blocks, clustering = wanted.max_condition, wanted.n_blocks, wanted.clustering
    if not isinstance(max_condition, (int, float, np.integer, np.floating)) or not max_condition >= 1.0:
        raise PartitionError(f"max_condition is {max_condition!r}; a condition number is at least 1, so give 1 or more")
    if n_blocks is not None and clustering is not None:
        raise PartitionError(f"both {wanted.called} and clustering were given; choose the blocks in one way")
    if n_blocks is not None and (
        not isinstance(n_blocks, (int, np.integer)) or isinstance(n_blocks, bool) or n_blocks < 1
    ):
        raise PartitionError(f"{wanted.called} is {n_blocks!r}; give a whole number of at least 1")
    if clustering is not None and not hasattr(clustering, "fit_predict"):
        raise PartitionError(
            f"clustering is a {type(clustering).__name__} without fit_predict; give an object like sklearn's KMeans(6)"
        )
