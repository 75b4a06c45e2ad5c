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

from ltinet._util.double_double import commutator, product_difference
from ltinet._util.floating_point import EPS, Array, summation_tolerance
from ltinet.blockdiag.form import BlockDiagonalForm
from ltinet.blockdiag.structured_matrices import DiagonalBlocks
from ltinet.blockdiag.transformation import DenseTransformation, ImplicitTransformation, MatrixStack, PlaneRotations
from ltinet.network.maps import TermMagnitudes, drop_rounding
from ltinet.systems.descriptor import eliminate_descriptor
from ltinet.systems.matrices import Matrix, make_read_only
from ltinet.systems.system_matrices import SystemMatrices

# Alignment of pairs


def align_pairs(form: BlockDiagonalForm, *, B: Matrix, C: Matrix) -> BlockDiagonalForm:
    """Return the form with every uncoupled pair rotated in its plane, so that few weights cancel; cond(T) stays.

    A rotated pair stands as [[a, b], [c, d]] with b > 0. Coupled neurons are not changed. Cost O(n² (m + p)).
    """
    at = _single_pairs(form)
    if at.size == 0 or B.shape[1] == 0 or len(C) == 0:
        return form
    planes_at = (at[:, :, None], at[:, None, :])
    transformation = form.transformation.prepared_for(B.shape[1] + len(C))
    B_pairs = transformation.to_blocks(B)[at]
    C_pairs = transformation.from_blocks(C)[:, at].transpose(1, 0, 2)
    rotations = _best_rotations(form.A[planes_at], B_pairs, C_pairs)
    planes = _rotate_blocks(form.A[planes_at], rotations)
    transformation = transformation.rotated(PlaneRotations(rotations, at))
    if isinstance(form.A, DiagonalBlocks):
        return replace(form, A=form.A.with_pairs(at, planes), transformation=transformation)
    A = form.A.copy()
    A[planes_at] = planes
    return replace(form, A=make_read_only(A), transformation=transformation)


def _single_pairs(form: BlockDiagonalForm) -> NDArray[np.intp]:
    """Return the states `(k, 2)` of pairs that are blocks of their own, or have no connections inside a larger one."""
    sizes, n_reals = np.array(form.block_sizes, dtype=np.intp), np.array(form.reals_per_block, dtype=np.intp)
    starts = np.cumsum(sizes) - sizes
    first = [starts[(sizes == 2) & (n_reals == 0)]]
    for block in (sizes > 2).nonzero()[0].tolist():
        pairs = np.arange(n_reals[block], sizes[block], 2)
        connections = form.block(block) != 0.0
        connections[pairs[:, None, None] + [[0], [1]], pairs[:, None, None] + [[0, 1]]] = False
        is_connected = connections.any(axis=0) | connections.any(axis=1)
        first.append(starts[block] + pairs[~(is_connected[pairs] | is_connected[pairs + 1])])
    return np.sort(np.concatenate(first))[:, None] + np.arange(2)


def _best_rotations(blocks: MatrixStack, B: MatrixStack, C: MatrixStack) -> MatrixStack:
    """Return for each pair an orthogonal basis [ξ, η] of its plane with small |C_η||B_ξ|/b, and b > 0."""
    B, C = _scale_to_one(B), _scale_to_one(C)
    across_inputs = _principal_axes(B @ B.transpose(0, 2, 1))
    across_outputs = _principal_axes(C.transpose(0, 2, 1) @ C)[:, :, ::-1]
    unchanged = np.broadcast_to(np.eye(2), blocks.shape)
    candidates = np.stack([across_inputs, across_outputs, unchanged])
    upper = _similarity(blocks, candidates)[..., 0, 1]
    # No rotated row or column is known better than to its rounding errors.
    B_xi = _norms(candidates[..., 0][..., None, :] @ B) + EPS * _norms(B)
    C_eta = _norms(C @ candidates[..., 1][..., None]) + EPS * _norms(C)
    with np.errstate(over="ignore"):  # an infinite size is never the best
        size = C_eta * B_xi / np.abs(upper)
    size[1:] *= 2.0  # the first among equals: without u̇ the equations are simpler
    best = np.argmin(size, axis=0), np.arange(len(blocks))
    rotations: MatrixStack = np.array(candidates[best])
    rotations[:, :, 0] *= np.sign(upper[best])[:, None]  # the upper entry of a complex pair is never zero
    rotations[np.abs(rotations) <= 4.0 * EPS] = 0.0  # a quarter turn, whose computed cosine is 6e-17
    return rotations


def _rotate_blocks(blocks: MatrixStack, rotations: MatrixStack) -> MatrixStack:
    """Return the blocks in their rotated planes, with diagonal entries at rounding level set to zero.

    Rotations, and so all entries, are known to eps of the largest entry.
    """
    similar = _similarity(blocks, rotations)
    is_rotated = rotations[:, 0, 1] != 0.0
    noise = 8.0 * EPS * np.abs(similar).max(axis=(1, 2)) * is_rotated
    for side in (0, 1):
        similar[np.abs(similar[:, side, side]) <= noise, side, side] = 0.0
    return similar


def _principal_axes(gram: MatrixStack) -> MatrixStack:
    """Return orthonormal eigenvectors as columns, the smallest eigenvalue first."""
    return np.asarray(np.linalg.eigh(gram)[1])


def _scale_to_one(matrices: MatrixStack) -> MatrixStack:
    """Return each matrix divided by its largest entry, so that squares neither over- nor underflow."""
    largest = np.max(np.abs(matrices), axis=(1, 2), keepdims=True)
    return np.asarray(matrices / np.where(largest > 0.0, largest, 1.0))


def _norms(matrices: MatrixStack) -> NDArray[np.float64]:
    """Return the Frobenius norms of a stack of matrices with entries of order one."""
    return np.asarray(np.sqrt(np.square(matrices).sum(axis=(-2, -1))))


def _similarity(blocks: MatrixStack, rotations: MatrixStack) -> MatrixStack:
    """Return rotationᵀ · block · rotation for each block."""
    return np.asarray(rotations.swapaxes(-1, -2) @ blocks @ rotations)


# Accuracy of T⁻¹B and C T

# A change of A in its last digits rotates the vector of one neuron towards others by eps · |T⁻¹||A||T| over the distance
# of their eigenvalues; weights below that are noise. Vectors of nearly equal eigenvalues rotate farther, but together, so
# that their weights must not be dropped one by one: the rotation is limited to this, in units of eps. Of 990 weights of
# modes that no input reaches, 135, 54, 13 and 3 are kept with 1, 10, 100 and 1e3; with 1e5 weights of 1e-8 begin to be
# dropped (python -m benchmarks.constants _MAX_SENSITIVITY).
_MAX_SENSITIVITY = 100.0


def add_eigenvector_errors(terms: TermMagnitudes, form: BlockDiagonalForm, *, B: Matrix, C: Matrix) -> TermMagnitudes:
    """Add the effect of rotated eigenvectors to the magnitudes relative to which entries of B and C are known.

    Only neurons with small entries are affected. Cost O(n³) if there are any, all in matrix products.
    """
    weak_inputs = _weakly_coupled_states(B.T, terms.B.T)
    weak_outputs = _weakly_coupled_states(C, terms.C)
    if len(weak_inputs) + len(weak_outputs) == 0:
        return terms
    B_terms, C_terms = terms.B.copy(), terms.C.copy()
    if len(weak_inputs):
        magnitudes = np.abs(form.T_inv[weak_inputs]) @ np.abs(form.original) @ np.abs(form.T)
        B_terms[weak_inputs] += _eigenvector_sensitivity(magnitudes, form, weak_inputs) @ terms.B
    if len(weak_outputs):
        magnitudes = np.abs(form.T_inv) @ (np.abs(form.original) @ np.abs(form.T[:, weak_outputs]))
        C_terms[:, weak_outputs] += terms.C @ _eigenvector_sensitivity(magnitudes.T, form, weak_outputs).T
    return TermMagnitudes(B_terms, C_terms)


def _weakly_coupled_states(weights: Matrix, terms: Matrix) -> NDArray[np.intp]:
    """Return the states with nonzero weights so small that they may be an effect of rotated eigenvectors."""
    level = summation_tolerance(weights.shape[1]) * _MAX_SENSITIVITY * terms.sum(axis=1, keepdims=True)
    return np.asarray(((weights != 0.0) & (np.abs(weights) <= level)).any(axis=0).nonzero()[0])


def _eigenvector_sensitivity(magnitudes: Matrix, form: BlockDiagonalForm, states: NDArray[np.intp]) -> Matrix:
    """Return for some states the rotation of their vectors towards all others in units of eps; zero inside a block."""
    values = np.concatenate(form.eigenvalues)
    re, im = values.real, np.abs(values.imag)
    distance = np.hypot(re[states, None] - re, im[states, None] - im)
    block = np.repeat(np.arange(form.n_blocks), form.block_sizes)
    with np.errstate(divide="ignore", invalid="ignore"):
        rotation = np.minimum(magnitudes / distance, _MAX_SENSITIVITY)
    return np.where((block[states, None] != block) & (magnitudes > 0.0), rotation, 0.0)


# System in block coordinates


@dataclass(frozen=True, eq=False)
class BlockSystem:
    """System ż = A z + B u, y = C z + D u with A block diagonal, its blocks of pattern G (Definition 4).

    In each block real eigenvalues come first, then pairs as 2×2 blocks.
    """

    A: Matrix
    """Block-diagonal matrix of the form."""
    B: Matrix
    C: Matrix
    D: Matrix
    block_sizes: tuple[int, ...]
    reals_per_block: tuple[int, ...]
    magnitudes: TermMagnitudes | None = field(default=None, repr=False)
    """Magnitudes relative to which entries of B and C are known; None for exact entries."""

    @property
    def n_blocks(self) -> int:
        """Number of blocks; each is one horizontal layer."""
        return len(self.block_sizes)

    @property
    def slices(self) -> list[slice]:
        """States of each block."""
        stops = np.cumsum(self.block_sizes, dtype=np.intp).tolist()
        return [slice(stop - size, stop) for size, stop in zip(self.block_sizes, stops, strict=True)]


def to_block_coordinates(system: SystemMatrices, form: BlockDiagonalForm) -> BlockSystem:
    """Return the system with x = T z: T⁻¹B and C T beside the blocks of the form, with rounding errors set to zero.

    An entry of T⁻¹B is a sum of terms whose magnitudes add up to |T⁻¹||B|. An entry that is small compared with its own
    terms is a rounding error; small entries beside large ones of other states are not.
    """
    T = form.transformation
    B, C = T.to_blocks(system.B), T.from_blocks(system.C)
    terms: TermMagnitudes | None = None
    if not (isinstance(T, DenseTransformation) and _has_single_entries(system)):  # otherwise no entry is a sum
        terms = TermMagnitudes(T.magnitudes.to_blocks(np.abs(system.B)), T.magnitudes.from_blocks(np.abs(system.C)))
        noise = summation_tolerance(system.n_states)
        B, C = drop_rounding(B, noise * terms.B), drop_rounding(C, noise * terms.C)
    if system.n_inputs + system.n_outputs < system.n_states and not isinstance(T, ImplicitTransformation):
        # With as many inputs and outputs as states this would dominate the cost.
        terms = add_eigenvector_errors(terms or TermMagnitudes(np.abs(B), np.abs(C)), form, B=B, C=C)
    return BlockSystem(
        form.A, make_read_only(B), make_read_only(C), system.D, form.block_sizes, form.reals_per_block, terms
    )


def _has_single_entries(system: SystemMatrices) -> bool:
    """Return whether each input acts on one state at most, and each output observes one at most."""
    return all(bool((np.count_nonzero(entries, axis=0) <= 1).all()) for entries in (system.B, system.C.T))


# Residual of the decomposition


class DecompositionResidual(NamedTuple):
    """Residuals E⁻¹(A X − E X F), E⁻¹(B − E X G) and C X − C_z of a system in the coordinates x = X z.

    Added to F, G and C_z they give the system itself, to all digits. Small entries of the residual have a relative
    accuracy of their own, which outputs of long chains depend on.
    """

    of_states: Array
    of_inputs: Array
    of_outputs: Array


def decomposition_residual(origin: SystemMatrices, X: Array, *, F: Array, G: Array, C: Array) -> DecompositionResidual:
    """Return the residual of z′ = F z + G u, y = C z for the system `origin` with x = X z, in extended precision."""
    E, A, B = (None, origin.A, origin.B) if origin.descriptor is None else origin.descriptor
    of_states, of_inputs = commutator(A, X, F, E=E), product_difference(B, X, G, E=E)
    if E is not None:
        both = eliminate_descriptor(E, np.hstack([of_states, of_inputs]))
        of_states, of_inputs = np.split(both, [len(F)], axis=1)
    return DecompositionResidual(of_states, of_inputs, -product_difference(C, origin.C, X))
