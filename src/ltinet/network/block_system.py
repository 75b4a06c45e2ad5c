"""System in block coordinates, ż = A z + B u, y = C z + D u with A block diagonal.

The exact engine runs in these coordinates. The second-order form of a neuron divides by the coupling b of its pair, so
that its weights grow as 1/b where two eigenvalues nearly coincide; the blocks themselves do not.

Alignment: the states (ξ, η) of a pair may be rotated in their plane. The maps eliminate η = W ξ + Q ξ̇ + Z u, which puts
−C_η B_ξ/b into Ψ and its negative into the sum over neurons, with an error of eps·|C_η||B_ξ|/b in their difference. If
inputs reach the pair in one direction only, ξ is placed across it: B_ξ = 0, no u̇ appears and Ψ = D. If outputs see one
direction only, η is placed across it: C_η = 0. Otherwise the better of the two is taken.

Accuracy of entries of T⁻¹B and C T: the rounding of their sums, plus the rotation of eigenvectors by a change of A in
its last digits, eps · |T⁻¹||A||T| divided by the distance of eigenvalues. Smaller entries are set to zero. The residual
of the decomposition, E⁻¹(A X − E X F), E⁻¹(B − E X G) and C X − C_z, is computed in extended precision.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import EPS, Array, summation_tolerance
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.blockdiag.structured_matrices import DiagonalBlocks
from ltinet.blockdiag.transformation import DenseTransformation, ImplicitTransformation, MatrixStack, PlaneRotations
from ltinet.error_bounds.extended_precision import (
    commutator,
    descriptor_commutator,
    descriptor_product_difference,
    product_difference,
)
from ltinet.network.maps import TermMagnitudes, drop_rounding
from ltinet.systems.descriptor import eliminate_descriptor
from ltinet.systems.matrices import Matrix, make_read_only
from ltinet.systems.system_matrices import SystemMatrices

# MERGED ltinet.network.block_system
# Turn the plane of each pair that stands alone so that its second-order equation has small numbers.
#
# The states (ξ, η) of a pair may be turned in their plane by any angle. The maps eliminate η = W ξ + Q ξ̇ + Z u, which
# puts −C_η B_ξ/b into Ψ and the same with the other sign into the sum over neurons: at high frequencies their difference
# is what is left, and its error is eps·|C_η||B_ξ|/b. Where inputs reach a pair in one direction only (a single input, or
# forces on a mode of a structure), ξ can stand across that direction: B_ξ = 0, no u̇ appears and Ψ = D. Where outputs see
# one direction only, η can stand across that: C_η = 0. Elsewhere the better of the two is taken.


def align_pairs(form: BlockDiagonalForm, *, B: Matrix, C: Matrix) -> BlockDiagonalForm:
    """The same form with the plane of every pair without connections turned to suit B and C; cond(T) stays as it is.

    A turned pair stands as [[a, b], [c, d]] with b > 0. Connected neurons are left alone. Cost O(n² (m + p)).
    """
    at = _single_pairs(form)
    if at.size == 0 or B.shape[1] == 0 or len(C) == 0:
        return form
    place = (at[:, :, None], at[:, None, :])
    transformation = form.transformation.prepared_for(B.shape[1] + len(C))
    B_pairs = transformation.to_blocks(B)[at]
    C_pairs = transformation.from_blocks(C)[:, at].transpose(1, 0, 2)
    turns = _best_rotations(form.A[place], B_pairs, C_pairs)
    planes, transformation = _rotate_blocks(form.A[place], turns), transformation.rotated(PlaneRotations(turns, at))
    if isinstance(form.A, DiagonalBlocks):
        return replace(form, A=form.A.with_pairs(at, planes), transformation=transformation)
    A = form.A.copy()
    A[place] = planes
    return replace(form, A=make_read_only(A), transformation=transformation)


def _single_pairs(form: BlockDiagonalForm) -> NDArray[np.intp]:
    """The states `(k, 2)` of pairs that are blocks of their own, or have no connections inside a larger one."""
    sizes, n_reals = np.array(form.block_sizes, dtype=np.intp), np.array(form.reals_per_block, dtype=np.intp)
    starts = np.cumsum(sizes) - sizes
    first = [starts[(sizes == 2) & (n_reals == 0)]]
    for block in ((sizes > 2) & (sizes > n_reals)).nonzero()[0].tolist():
        pairs = np.arange(n_reals[block], sizes[block], 2)
        connections = form.block(block) != 0.0
        connections[pairs[:, None, None] + [[0], [1]], pairs[:, None, None] + [[0, 1]]] = False
        is_connected = connections.any(axis=0) | connections.any(axis=1)
        first.append(starts[block] + pairs[~(is_connected[pairs] | is_connected[pairs + 1])])
    return np.sort(np.concatenate(first))[:, None] + np.arange(2)


def _best_rotations(blocks: MatrixStack, B: MatrixStack, C: MatrixStack) -> MatrixStack:
    """For each pair an orthogonal basis [ξ, η] of its plane with |C_η||B_ξ|/b small and b > 0."""
    B, C = _scale_to_one(B), _scale_to_one(C)
    across_inputs = _principal_axes(B @ B.transpose(0, 2, 1))
    across_outputs = _principal_axes(C.transpose(0, 2, 1) @ C)[:, :, ::-1]
    as_it_is = np.broadcast_to(np.eye(2), blocks.shape)
    candidates = np.stack([across_inputs, across_outputs, as_it_is])
    upper = _similarity(blocks, candidates)[..., 0, 1]
    # Nothing turned is smaller than its rounding errors.
    B_xi = _norms(candidates[..., 0][..., None, :] @ B) + EPS * _norms(B)
    C_eta = _norms(C @ candidates[..., 1][..., None]) + EPS * _norms(C)
    with np.errstate(over="ignore"):  # as large as can be is not the best
        size = C_eta * B_xi / np.abs(upper)
    size[1:] *= 2.0  # of equals the first: without u̇ the equations are simpler
    best = np.argmin(size, axis=0), np.arange(len(blocks))
    turns: MatrixStack = np.array(candidates[best])
    turns[:, :, 0] *= np.sign(upper[best])[:, None]  # the upper entry of a complex pair is never zero
    turns[np.abs(turns) <= 4.0 * EPS] = 0.0  # a quarter turn, whose cosine rounding leaves at 6e-17
    return turns


def _rotate_blocks(blocks: MatrixStack, turns: MatrixStack) -> MatrixStack:
    """The blocks in their new planes; rates of change that rounding alone leaves on the diagonal are zero.

    A turn is known to eps, and so are all entries to eps of the largest.
    """
    similar = _similarity(blocks, turns)
    is_turned = (turns[:, 0, 1] != 0.0) | (turns[:, 1, 0] != 0.0)
    noise = 8.0 * EPS * np.abs(similar).max(axis=(1, 2)) * is_turned
    for side in (0, 1):
        similar[np.abs(similar[:, side, side]) <= noise, side, side] = 0.0
    return similar


def _principal_axes(gram: MatrixStack) -> MatrixStack:
    """Orthonormal eigenvectors as columns, the weakest direction first."""
    return np.asarray(np.linalg.eigh(gram)[1])


def _scale_to_one(matrices: MatrixStack) -> MatrixStack:
    """Each matrix divided by its largest entry, so that squares neither over- nor underflow."""
    largest = np.max(np.abs(matrices), axis=(1, 2), keepdims=True)
    return np.asarray(matrices / np.where(largest > 0.0, largest, 1.0))


def _norms(matrices: MatrixStack) -> NDArray[np.float64]:
    """Frobenius norms of a stack of matrices with entries of order one."""
    return np.asarray(np.sqrt(np.square(matrices).sum(axis=(-2, -1))))


def _similarity(blocks: MatrixStack, turns: MatrixStack) -> MatrixStack:
    return np.asarray(turns.swapaxes(-1, -2) @ blocks @ turns)


# MERGED ltinet.network.block_system
# How well entries of T⁻¹B and C T are known: as sums, and with the vectors in T that a change of A would turn.
#
# A change of A in its last digits turns the vector of one neuron towards those of others, by eps · |T⁻¹||A||T| over the
# distance of their eigenvalues. What an output sees of a neuron is known to that times what it sees of the others: a
# weight below it is zero on one processor and 1e-15 on the next.

# Vectors of eigenvalues that nearly coincide turn farther, but together: what one sees less the other sees more. Up to
# here weights can be dropped one by one without a loss of digits.
_MAX_SENSITIVITY = 100.0


def add_eigenvector_errors(terms: TermMagnitudes, form: BlockDiagonalForm, *, B: Matrix, C: Matrix) -> TermMagnitudes:
    """The sizes that entries of B and C in block coordinates are known relative to, from those of their sums alone.

    Only for neurons whose entries are small enough for it to matter; cost O(n³) if there are any, all in products.
    """
    weak_inputs = _weakly_coupled_states(B.T, terms.B.T)
    weak_outputs = _weakly_coupled_states(C, terms.C)
    if len(weak_inputs) + len(weak_outputs) == 0:
        return terms
    B_terms, C_terms = terms.B.copy(), terms.C.copy()
    if len(weak_inputs):
        sizes = np.abs(form.T_inv[weak_inputs]) @ np.abs(form.original) @ np.abs(form.T)
        B_terms[weak_inputs] += _eigenvector_sensitivity(sizes, form, weak_inputs) @ terms.B
    if len(weak_outputs):
        sizes = np.abs(form.T_inv) @ (np.abs(form.original) @ np.abs(form.T[:, weak_outputs]))
        C_terms[:, weak_outputs] += terms.C @ _eigenvector_sensitivity(sizes.T, form, weak_outputs).T
    return TermMagnitudes(B_terms, C_terms)


def _weakly_coupled_states(weights: Matrix, terms: Matrix) -> NDArray[np.intp]:
    """States with a weight, but one that the vectors of others could make."""
    level = summation_tolerance(weights.shape[1]) * _MAX_SENSITIVITY * terms.sum(axis=1, keepdims=True)
    return np.asarray(((weights != 0.0) & (np.abs(weights) <= level)).any(axis=0).nonzero()[0])


def _eigenvector_sensitivity(sizes: Matrix, form: BlockDiagonalForm, states: NDArray[np.intp]) -> Matrix:
    """For some states and all others, how far the vector turns per eps; not at all inside a block."""
    values = np.concatenate(form.eigenvalues)
    re, im = values.real, np.abs(values.imag)
    distance = np.hypot(re[states, None] - re, im[states, None] - im)
    block = np.repeat(np.arange(form.n_blocks), form.block_sizes)
    with np.errstate(divide="ignore", invalid="ignore"):
        turning = np.minimum(sizes / distance, _MAX_SENSITIVITY)
    return np.where((block[states, None] != block) & (sizes > 0.0), turning, 0.0)


# MERGED ltinet.network.block_system
# A system in block coordinates, ż = A z + B u, y = C z + D u with A block diagonal: what a network stands for.
#
# The exact engine runs here. The second-order form of a neuron divides by the coupling b of its pair, so that its weights
# grow as 1/b where two eigenvalues nearly coincide; the blocks themselves do not.


@dataclass(frozen=True, eq=False)
class BlockSystem:
    """Blocks of pattern G (Definition 4) side by side: in each, real eigenvalues first, then pairs as 2×2 blocks."""

    A: Matrix
    """That of the form."""
    B: Matrix
    C: Matrix
    D: Matrix
    block_sizes: tuple[int, ...]
    reals_per_block: tuple[int, ...]
    magnitudes: TermMagnitudes | None = field(default=None, repr=False)
    """None for entries that are known as they stand."""

    @property
    def n_blocks(self) -> int:
        """Number of blocks; each is one horizontal layer."""
        return len(self.block_sizes)

    @property
    def slices(self) -> list[slice]:
        """Where the states of each block stand."""
        stops = np.cumsum(self.block_sizes, dtype=np.intp).tolist()
        return [slice(stop - size, stop) for size, stop in zip(self.block_sizes, stops, strict=True)]


def to_block_coordinates(system: SystemMatrices, form: BlockDiagonalForm) -> BlockSystem:
    """The system with x = T z: T⁻¹B and C T beside the blocks of the form, zero where they are rounding errors only.

    An entry of T⁻¹B is a sum whose terms have sizes that add up to |T⁻¹||B| there. A small entry beside large ones of
    other states is no rounding error; one that is small against its own terms is.
    """
    T = form.transformation
    B, C = T.to_blocks(system.B), T.from_blocks(system.C)
    terms: TermMagnitudes | None = None
    if not (isinstance(T, DenseTransformation) and _has_single_entries(system)):  # else nothing is summed
        terms = TermMagnitudes(T.magnitudes.to_blocks(np.abs(system.B)), T.magnitudes.from_blocks(np.abs(system.C)))
        noise = summation_tolerance(system.n_states)
        B, C = drop_rounding(B, noise * terms.B), drop_rounding(C, noise * terms.C)
    if system.n_inputs + system.n_outputs < system.n_states and not isinstance(T, ImplicitTransformation):
        # With as many inputs and outputs as states this would take longer than all else.
        terms = add_eigenvector_errors(terms or TermMagnitudes(np.abs(B), np.abs(C)), form, B=B, C=C)
    return BlockSystem(
        form.A, make_read_only(B), make_read_only(C), system.D, form.block_sizes, form.reals_per_block, terms
    )


def _has_single_entries(system: SystemMatrices) -> bool:
    """Whether each input acts on one state at most, and each output shows one."""
    return all(bool((np.count_nonzero(entries, axis=0) <= 1).all()) for entries in (system.B, system.C.T))


# MERGED ltinet.network.block_system
# What a decomposition leaves of a system, to all digits: with x = X z and z' = F z + G u, y = C z.
#
# Added to F, G and C it gives the system itself in these coordinates. Entries below the triangles of F are then of the
# size of roundings and known to digits of their own, which is what outputs of long chains hang on.


class DecompositionResidual(NamedTuple):
    """E⁻¹(A X − E X F), E⁻¹(B − E X G) and C X − C_z."""

    of_states: Array
    of_inputs: Array
    of_outputs: Array


def decomposition_residual(origin: SystemMatrices, X: Array, *, F: Array, G: Array, C: Array) -> DecompositionResidual:
    """Of a system in some coordinates."""
    of_outputs = -product_difference(C, origin.C, X)
    if origin.descriptor is None:
        return DecompositionResidual(commutator(origin.A, X, F), product_difference(origin.B, X, G), of_outputs)
    E, A, B = origin.descriptor
    both = np.hstack([descriptor_commutator(A, E, X, F), descriptor_product_difference(B, E, X, G)])
    of_states, of_inputs = np.split(eliminate_descriptor(E, both), [len(F)], axis=1)
    return DecompositionResidual(of_states, of_inputs, of_outputs)
