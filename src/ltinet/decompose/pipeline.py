"""Algorithm 1, the pipeline: balance → real Schur → partition → reorder → decouple → orthonormalise → permute."""

import numpy as np
from numpy.typing import NDArray

from ltinet.decompose.balance import BalancedMatrix
from ltinet.decompose.choose.by_clusters import by_clustering
from ltinet.decompose.choose.by_condition import within_budget
from ltinet.decompose.choose.by_count import into_blocks
from ltinet.decompose.choose.choice import BlockChoice, Found
from ltinet.decompose.connections import without_noise_couplings
from ltinet.decompose.decouple import Decoupled
from ltinet.decompose.form import BlockDiagonalForm
from ltinet.decompose.orthonormal import BlockBases, orthonormalise
from ltinet.decompose.repeated import with_repeated_together, without_noise
from ltinet.decompose.schur import SchurForm, is_decoupled, is_symmetric, schur_by_parts, symmetric_schur
from ltinet.decompose.separate import Separation
from ltinet.decompose.transformation import Factors, Product, Transformation
from ltinet.decompose.turns import Turns
from ltinet.errors import InvalidSystemError
from ltinet.model.matrices import Matrix, read_only


def decompose(
    matrix: Matrix, balanced: BalancedMatrix, wanted: BlockChoice, *, fewer_than: int | None = None
) -> BlockDiagonalForm:
    """The block-diagonal form of a matrix in the units of a balanced one, with the blocks that are wanted.

    Raises PartitionError where there are no such blocks, NotSparserError where it shows early that there cannot be
    `fewer_than` so many connections, and InvalidSystemError where products of its entries vanish or are no numbers.
    """
    try:
        return _decomposed(matrix, balanced, wanted, fewer_than=fewer_than)
    except np.linalg.LinAlgError as error:
        sizes = np.abs(matrix[matrix != 0.0])
        raise InvalidSystemError(
            f"A cannot be taken apart: its entries reach from {sizes.min():.0e} to {sizes.max():.0e}, and products of "
            "them exceed what floating-point numbers can tell; choose units of the states in which they are closer"
        ) from error


def _decomposed(
    matrix: Matrix, balanced: BalancedMatrix, wanted: BlockChoice, *, fewer_than: int | None
) -> BlockDiagonalForm:
    schur = schur_form(balanced.matrix)
    if wanted.n_blocks is None and is_decoupled(schur, balanced.matrix):
        found = already_decoupled(schur, wanted.clustering)
    else:
        schur = with_repeated_together(schur, balanced.matrix)
        if wanted.n_blocks is not None:
            found = into_blocks(schur, wanted.n_blocks, called=wanted.called)
        elif wanted.clustering is not None:
            found = by_clustering(schur, wanted.clustering, factor=balanced.factor)
        else:
            found = Found(*within_budget(schur, wanted.max_condition, fewer_than=fewer_than))
    return assemble(matrix, balanced, found, budget=wanted.max_condition if wanted.is_free else None)


def schur_form(matrix: Matrix) -> SchurForm:
    """The Schur form, part by part: what is not connected stays so, whatever blocks it will stand in."""
    return symmetric_schur(matrix) if is_symmetric(matrix) else without_noise(schur_by_parts(matrix), matrix)


def already_decoupled(schur: SchurForm, clustering: object = None) -> Found:
    """A Schur form without couplings is the result itself: orthogonal T, a block for each neuron."""
    remarks = (
        () if clustering is None else ("the matrix is normal: no clustering needed, each neuron has its own block",)
    )
    as_it_stands = Decoupled(np.eye(len(schur.R)), schur.R)
    bases = orthonormalise(as_it_stands, schur, schur.starts)
    return Found(Separation(schur, bases, is_orthogonal=True), remarks=remarks)


def assemble(matrix: Matrix, balanced: BalancedMatrix, found: Found, *, budget: float | None) -> BlockDiagonalForm:
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
