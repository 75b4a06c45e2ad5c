"""Modal form of a block-diagonal system: scalars for single neurons, dense blocks for coupled ones.

A real eigenvalue alone in its block is a real scalar. A complex pair alone in its block is one complex scalar v with

    v' = λ v + g u,    y = Re(c v).

Coupled blocks stay matrices, and so do pairs whose two eigenvectors nearly coincide. Numerical kernels work on packed
states, which are real: (Re v, Im v) of all pairs, then the real scalars, then the states of the dense blocks. Output
weights are packed so that Re(c v) = Re c · Re v − Im c · Im v.
"""

import math
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import MAX_AMPLIFICATION, Array, Complex
from ltinet.network.block_system import BlockSystem
from ltinet.systems.matrices import Matrix

# Writing a pair [[a, b], [c, d]] as a complex number needs its eigenvectors, whose condition number κ costs digits:
# κ + 1/κ = (|b| + |c|)/ω. Beyond MAX_AMPLIFICATION it stays a 2×2 block.
_MAX_SCALE_EXPONENT = 500  # of a power of two whose square and inverse are finite


class DenseBlock(NamedTuple):
    """A coupled block z' = F z + G u, y = C z, and the indices of its states among those of all blocks."""

    F: Matrix
    G: Matrix
    C: Matrix
    states: NDArray[np.intp]
    basis: Array | None = None
    """The states of the block are basis · z; None for z itself."""
    inverse: Array | None = None
    """Inverse of the basis."""


@dataclass(frozen=True)
class ModalSystem:
    """A system v' = λ v + B u, z' = F z + G u (dense blocks), y = Re(C v) + Σ C z + D u; scalars of pairs come first."""

    rates: NDArray[np.complex128]
    B: NDArray[np.complex128]
    C: NDArray[np.complex128]
    n_pairs: int
    blocks: tuple[DenseBlock, ...]
    D: Matrix
    states: NDArray[np.intp]
    """Index of the (first) state of each scalar among those of all blocks; the second one of a pair follows it."""
    pair_bases: Array
    """S of each pair, `(n_pairs, 2, 2)`: its states are S · (Re v, Im v)."""

    @cached_property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.rates) + self.n_pairs + sum(len(block.F) for block in self.blocks)

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return int(self.D.shape[1])

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.D)

    @cached_property
    def block_abscissas(self) -> Array:
        """Spectral abscissa (largest real part of the eigenvalues) of every dense block."""
        return np.array([np.max(np.linalg.eigvals(block.F).real) for block in self.blocks])

    @cached_property
    def packed_order(self) -> NDArray[np.intp]:
        """Index of each packed state among those of all blocks."""
        pairs = self.states[: self.n_pairs, None] + np.arange(2)
        return np.concatenate([pairs.ravel(), self.states[self.n_pairs :], *(block.states for block in self.blocks)])

    def packed_from_blocks(self, z: Array) -> Array:
        """Return packed states from the states of all blocks, along the last axis."""
        packed = self._transform_pairs(z[..., self.packed_order], self._inverse_pair_bases)
        for states, block in self._blocks_with_basis:
            packed[..., states] = packed[..., states] @ block.inverse.T
        return packed

    def blocks_from_packed(self, packed: Array) -> Array:
        """Return the states of all blocks from packed states, along the last axis."""
        z = np.empty_like(packed)
        z[..., self.packed_order] = self._transform_pairs(packed, self.pair_bases)
        for _, block in self._blocks_with_basis:
            z[..., block.states] = z[..., block.states] @ block.basis.T
        return z

    @cached_property
    def _inverse_pair_bases(self) -> Array:
        return _inverse_2x2(self.pair_bases)

    @cached_property
    def block_slices(self) -> list[slice]:
        """Packed states of each dense block."""
        sizes = (len(block.F) for block in self.blocks)
        return [slice(*ends) for ends in pairwise(accumulate(sizes, initial=len(self.rates) + self.n_pairs))]

    @cached_property
    def _blocks_with_basis(self) -> list[tuple[slice, Any]]:
        """Dense blocks with a basis, each with the slice of its packed states."""
        with_slices = zip(self.block_slices, self.blocks, strict=True)
        return [(states, block) for states, block in with_slices if block.basis is not None]

    def _transform_pairs(self, states: Array, matrices: Array) -> Array:
        """Multiply the states of each pair, which come first, by its 2×2 matrix."""
        result = np.array(states)
        if not self.n_pairs:
            return result
        pairs = states[..., : 2 * self.n_pairs].reshape(*states.shape[:-1], self.n_pairs, 2)
        transformed = result[..., : 2 * self.n_pairs].reshape(*states.shape[:-1], self.n_pairs, 2)
        for row in range(2):
            np.multiply(pairs[..., 0], matrices[:, row, 0], out=transformed[..., row])
            transformed[..., row] += pairs[..., 1] * matrices[:, row, 1]
        result[..., : 2 * self.n_pairs] = transformed.reshape(*states.shape[:-1], 2 * self.n_pairs)
        return result


def single_block_system(A: Matrix, B: Matrix, C: Matrix, D: Matrix) -> ModalSystem:
    """Return a system whose states form one dense block."""
    n, m, p = len(A), B.shape[1], len(C)
    return ModalSystem(
        rates=np.zeros(0, dtype=np.complex128),
        B=np.zeros((0, m), dtype=np.complex128),
        C=np.zeros((p, 0), dtype=np.complex128),
        n_pairs=0,
        blocks=(DenseBlock(A, B, C, np.arange(n)),),
        D=D,
        states=np.zeros(0, dtype=np.intp),
        pair_bases=np.zeros((0, 2, 2)),
    )


def to_modal_system(system: BlockSystem) -> ModalSystem:
    """Sort the blocks of a system into scalars and dense blocks; the cost is linear in the number of blocks."""
    sizes = np.array(system.block_sizes, dtype=np.intp)
    n_reals = np.array(system.reals_per_block, dtype=np.intp)
    starts = np.cumsum(sizes) - sizes
    reals, pairs = np.flatnonzero(sizes == 1), np.flatnonzero((sizes == 2) & (n_reals == 0))
    at = starts[pairs, None] + np.arange(2)
    rates, bases, is_scalar = _diagonalize_pairs(system.A[at[:, :, None], at[:, None, :]])
    at, first = at[is_scalar], starts[reals]
    # v = (1, i) S⁻¹ z, and y = C z = Re(C S (1, −i)ᵀ v).
    B = _inverse_2x2(bases) @ system.B[at]
    C = system.C[:, at].transpose(1, 0, 2) @ bases
    dense = sorted({*range(len(sizes))}.difference(reals.tolist(), pairs[is_scalar].tolist()))
    return ModalSystem(
        rates=np.concatenate([rates, system.A[first, first]]),
        B=np.vstack([B[:, 0] + 1j * B[:, 1], system.B[first]]),
        C=np.hstack([(C[:, :, 0] - 1j * C[:, :, 1]).T, system.C[:, first]]),
        n_pairs=len(rates),
        blocks=tuple(
            _dense_block(system, starts[block] + np.arange(sizes[block]), is_pair=n_reals[block] == 0)
            for block in dense
        ),
        D=system.D,
        states=np.concatenate([at[:, 0], first]),
        pair_bases=bases,
    )


def _dense_block(system: BlockSystem, states: NDArray[np.intp], *, is_pair: bool) -> DenseBlock:
    """Return a dense block; the coupled states of a pair get a better basis, two real states keep theirs."""
    F, G, C = system.A[states[:, None], states], system.B[states], system.C[:, states]
    if not is_pair or len(F) != 2 or F[0, 1] == 0.0 or F[1, 0] == 0.0:
        return DenseBlock(F, G, C, states)
    basis, inverse = _balanced_pair_basis(F)
    return DenseBlock(inverse @ F @ basis, inverse @ G, C @ basis, states, basis, inverse)


def _balanced_pair_basis(F: Matrix) -> tuple[Array, Array]:
    """Return the basis in which a pair has equal diagonal entries and off-diagonals of one size, and its inverse.

    The basis is a rotation times powers of two. Products of entries of very different sizes would lose digits.
    """
    angle = 0.5 * math.atan2(F[1, 1] - F[0, 0], F[0, 1] + F[1, 0])
    rotation = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    rotated = np.abs(rotation.T @ F @ rotation)
    b, c = float(rotated[0, 1]), float(rotated[1, 0])
    exponent = round(0.5 * (math.log2(c) - math.log2(b))) if b > 0.0 and c > 0.0 else 0
    scale = np.array([1.0, 2.0 ** max(-_MAX_SCALE_EXPONENT, min(exponent, _MAX_SCALE_EXPONENT))])
    return rotation * scale, rotation.T / scale[:, None]


def _diagonalize_pairs(blocks: Array) -> tuple[NDArray[np.complex128], Array, NDArray[np.bool_]]:
    """Return rates μ + iω and bases S of the 2×2 blocks that are well-conditioned complex pairs, and their mask.

    With δ = (a − d)/2 and ω² = −bc − δ², S = [[1, 0], [−δ/b, −ω/b]] gives S⁻¹ [[a, b], [c, d]] S = [[μ, −ω], [ω, μ]].
    """
    a, b, c, d = blocks[:, 0, 0], blocks[:, 0, 1], blocks[:, 1, 0], blocks[:, 1, 1]
    mean, half_gap = 0.5 * (a + d), 0.5 * (a - d)
    size = np.abs(b) + np.abs(c)
    scale = np.where(size > 0.0, size, 1.0)  # squares of the entries themselves may overflow
    square = -(b / scale) * (c / scale) - (half_gap / scale) ** 2  # (ω/scale)² = (κ + 1/κ)⁻²
    is_scalar = square * MAX_AMPLIFICATION**2 >= 1.0
    omega = (scale * np.sqrt(np.maximum(square, 0.0)))[is_scalar]
    b, half_gap = b[is_scalar], half_gap[is_scalar]
    bases = np.zeros((len(omega), 2, 2))
    bases[:, 0, 0], bases[:, 1, 0], bases[:, 1, 1] = 1.0, -half_gap / b, -omega / b
    return mean[is_scalar] + 1j * omega, bases, is_scalar


def _inverse_2x2(matrices: Array) -> Array:
    """Return the inverses of 2×2 matrices [[1, 0], [c, d]] along the first axis."""
    inverse = np.zeros_like(matrices)
    inverse[:, 0, 0], inverse[:, 1, 1] = 1.0, 1.0 / matrices[:, 1, 1]
    inverse[:, 1, 0] = -matrices[:, 1, 0] / matrices[:, 1, 1]
    return inverse


# Packed states: (Re v, Im v) of pairs, then reals, then the states of dense blocks.


def pack_states(system: ModalSystem, v: Complex, parts: list[Array]) -> Array:
    """Pack scalars and states of dense blocks along the last axis."""
    pairs = np.ascontiguousarray(v[..., : system.n_pairs]).view(np.float64)
    return np.concatenate([pairs, v[..., system.n_pairs :].real, *parts], axis=-1)


def unpack_states(system: ModalSystem, packed: Array) -> tuple[Complex, list[Array]]:
    """Return the scalars and the states of each dense block from packed states."""
    n_pairs, n_scalars = system.n_pairs, len(system.rates)
    v = np.empty((*packed.shape[:-1], n_scalars), dtype=np.complex128)
    v[..., :n_pairs] = np.ascontiguousarray(packed[..., : 2 * n_pairs]).view(np.complex128)
    v[..., n_pairs:] = packed[..., 2 * n_pairs : n_pairs + n_scalars]
    return v, [packed[..., states] for states in system.block_slices]


def free_derivative(system: ModalSystem, packed: Array) -> Array:
    """Return ż of packed states without input."""
    v, parts = unpack_states(system, packed)
    of_blocks = [part @ block.F.T for part, block in zip(parts, system.blocks, strict=True)]
    return pack_states(system, v * system.rates, of_blocks)


def pack_weights(system: ModalSystem, c: Complex, parts: list[Array]) -> Array:
    """Pack rows that act on states along the last axis: Re(c v) = Re c · Re v − Im c · Im v."""
    return pack_states(system, c.conj(), parts)
