"""Modal form of a block-diagonal system: scalars for single neurons, dense blocks for coupled ones.

A real eigenvalue alone in its block is a real scalar. A complex pair alone in its block is one complex scalar v with

    v' = λ v + g u,    y = Re(c v).

Coupled blocks stay matrices, and so do pairs whose two eigenvectors nearly coincide. Numerical kernels work on packed
states, which are real: (Re v, Im v) of all pairs, then the real scalars, then the states of the dense blocks. Output
weights are packed so that Re(c v) = Re c · Re v − Im c · Im v.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.cache import cached_property
from ltinet._util.floating_point import Array, Complex
from ltinet.network.block_system import BlockSystem
from ltinet.systems.matrices import Matrix

# MERGED ltinet.simulation.modal
# A system in the coordinates in which steps are cheapest: scalars for single neurons, dense blocks for the rest.
#
# A real eigenvalue alone in its block is a real scalar, a pair alone in its block a complex scalar v with v' = λ v + g u
# and y = Re(c v). Coupled blocks, and pairs whose two eigenvectors nearly coincide, stay matrices.

# Writing a pair [[a, b], [c, d]] as a complex number needs its eigenvectors, whose condition number κ costs digits:
# κ + 1/κ = (|b| + |c|)/ω. Beyond this it stays a 2×2 block.
_MAX_PAIR_CONDITION = 100.0
_MAX_SCALE_EXPONENT = 500  # as a power of two: beyond, the inverse of a scale is no number


class DenseBlock(NamedTuple):
    """z' = F z + G u, y = C z, and where its states stand among those of all blocks."""

    F: Matrix
    G: Matrix
    C: Matrix
    states: NDArray[np.intp]
    basis: Array | None = None
    """The states of the block are basis · z, where they are not z themselves."""
    inverse: Array | None = None


@dataclass(frozen=True)
class ModalSystem:
    """All single neurons as scalars, pairs first, and the dense blocks; y = Re(C v) + Σ blocks + D u."""

    rates: NDArray[np.complex128]
    B: NDArray[np.complex128]
    C: NDArray[np.complex128]
    n_pairs: int
    blocks: tuple[DenseBlock, ...]
    D: Matrix
    states: NDArray[np.intp]
    """Where the (first) state of each scalar stands among those of all blocks; the second one of a pair follows it."""
    planes: Array
    """For each pair S, `(n_pairs, 2, 2)`: its states are S · (Re v, Im v)."""

    @cached_property
    def n_states(self) -> int:
        """Dimension of the system."""
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
        """The largest real part of the eigenvalues of every dense block."""
        return np.array([np.max(np.linalg.eigvals(block.F).real) for block in self.blocks])

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """Where each packed state stands among those of all blocks: pairs, reals, dense blocks."""
        pairs = self.states[: self.n_pairs, None] + np.arange(2)
        return np.concatenate([pairs.ravel(), self.states[self.n_pairs :], *(block.states for block in self.blocks)])

    def packed_from_blocks(self, z: Array) -> Array:
        """Packed states (Re v, Im v of pairs, reals, dense blocks) from the states of all blocks, last axis."""
        packed = self._turned(z[..., self.order], self._inverse_planes)
        for own, block in self._with_basis:
            packed[..., own] = packed[..., own] @ block.inverse.T
        return packed

    def blocks_from_packed(self, packed: Array) -> Array:
        """The inverse of `packed_from_blocks`."""
        z = np.empty_like(packed)
        z[..., self.order] = self._turned(packed, self.planes)
        for _, block in self._with_basis:
            z[..., block.states] = z[..., block.states] @ block.basis.T
        return z

    @cached_property
    def _with_basis(self) -> list[tuple[slice, Any]]:
        """Blocks with a basis, and where their packed states stand."""
        stops = len(self.rates) + self.n_pairs + np.cumsum([len(block.F) for block in self.blocks], dtype=np.intp)
        places = [slice(int(stop) - len(own.F), int(stop)) for own, stop in zip(self.blocks, stops, strict=True)]
        return [(place, own) for place, own in zip(places, self.blocks, strict=True) if own.basis is not None]

    def _turned(self, states: Array, planes: Array) -> Array:
        """The planes of all pairs turned; they stand first."""
        turned = np.array(states)
        if not self.n_pairs:
            return turned
        pairs = states[..., : 2 * self.n_pairs].reshape(*states.shape[:-1], self.n_pairs, 2)
        both = turned[..., : 2 * self.n_pairs].reshape(*states.shape[:-1], self.n_pairs, 2)
        for row in range(2):
            np.multiply(pairs[..., 0], planes[:, row, 0], out=both[..., row])
            both[..., row] += pairs[..., 1] * planes[:, row, 1]
        turned[..., : 2 * self.n_pairs] = both.reshape(*states.shape[:-1], 2 * self.n_pairs)
        return turned

    @cached_property
    def _inverse_planes(self) -> Array:
        return _inverse_2x2(self.planes)


def single_block_system(A: Matrix, B: Matrix, C: Matrix, D: Matrix) -> ModalSystem:
    """A system whose states are stepped together, as they are."""
    n, m, p = len(A), B.shape[1], len(C)
    return ModalSystem(
        rates=np.zeros(0, dtype=np.complex128),
        B=np.zeros((0, m), dtype=np.complex128),
        C=np.zeros((p, 0), dtype=np.complex128),
        n_pairs=0,
        blocks=(DenseBlock(A, B, C, np.arange(n)),),
        D=D,
        states=np.zeros(0, dtype=np.intp),
        planes=np.zeros((0, 2, 2)),
    )


def to_modal_system(system: BlockSystem) -> ModalSystem:
    """Sort the blocks of a system into scalars and dense blocks; cost linear in blocks."""
    sizes = np.array(system.block_sizes, dtype=np.intp)
    n_reals = np.array(system.reals_per_block, dtype=np.intp)
    starts = np.cumsum(sizes) - sizes
    reals, pairs = np.flatnonzero(sizes == 1), np.flatnonzero((sizes == 2) & (n_reals == 0))
    at = starts[pairs, None] + np.arange(2)
    rates, planes, is_scalar = _diagonalise_pairs(system.A[at[:, :, None], at[:, None, :]])
    at, first = at[is_scalar], starts[reals]
    # v = (1, i) S⁻¹ z, and y = C z = Re(C S (1, −i)ᵀ v).
    B = _inverse_2x2(planes) @ system.B[at]
    C = system.C[:, at].transpose(1, 0, 2) @ planes
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
        planes=planes,
    )


def _dense_block(system: BlockSystem, own: NDArray[np.intp], *, is_pair: bool) -> DenseBlock:
    """A block as it is; a pair in its best basis. Two of the user's own states are not turned into each other."""
    F, G, C = system.A[own[:, None], own], system.B[own], system.C[:, own]
    if not is_pair or len(F) != 2 or F[0, 1] == 0.0 or F[1, 0] == 0.0:
        return DenseBlock(F, G, C, own)
    basis, inverse = _basis_of_pair(F)
    return DenseBlock(inverse @ F @ basis, inverse @ G, C @ basis, own, basis, inverse)


def _basis_of_pair(F: Matrix) -> tuple[Array, Array]:
    """The basis in which a pair has equal diagonals and off-diagonals of one size, and its inverse.

    By a rotation and powers of two: entries of very different sizes would spoil each other in every product.
    """
    angle = 0.5 * math.atan2(F[1, 1] - F[0, 0], F[0, 1] + F[1, 0])
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    b, c = (abs(float((turn.T @ F @ turn)[place])) for place in ((0, 1), (1, 0)))
    halves = round(0.5 * (math.log2(c) - math.log2(b))) if b > 0.0 and c > 0.0 else 0
    scale = np.array([1.0, 2.0 ** max(-_MAX_SCALE_EXPONENT, min(halves, _MAX_SCALE_EXPONENT))])
    return turn * scale, turn.T / scale[:, None]


def _diagonalise_pairs(blocks: Array) -> tuple[NDArray[np.complex128], Array, NDArray[np.bool_]]:
    """Rates μ + iω and planes S of 2×2 blocks that are safely complex pairs, and which ones are.

    With δ = (a − d)/2 and ω² = −bc − δ², S = [[1, 0], [−δ/b, −ω/b]] gives S⁻¹ [[a, b], [c, d]] S = [[μ, −ω], [ω, μ]].
    """
    a, b, c, d = blocks[:, 0, 0], blocks[:, 0, 1], blocks[:, 1, 0], blocks[:, 1, 1]
    mean, skew = 0.5 * (a + d), 0.5 * (a - d)
    size = np.abs(b) + np.abs(c)
    safe = np.where(size > 0.0, size, 1.0)  # squares of the numbers themselves may overflow
    square = -(b / safe) * (c / safe) - (skew / safe) ** 2
    is_scalar = square * _MAX_PAIR_CONDITION**2 >= 1.0
    omega = (safe * np.sqrt(np.maximum(square, 0.0)))[is_scalar]
    b, skew = b[is_scalar], skew[is_scalar]
    planes = np.zeros((len(omega), 2, 2))
    planes[:, 0, 0], planes[:, 1, 0], planes[:, 1, 1] = 1.0, -skew / b, -omega / b
    return mean[is_scalar] + 1j * omega, planes, is_scalar


def _inverse_2x2(planes: Array) -> Array:
    """The inverses of lower triangular 2×2 matrices with a one in their corner."""
    inverse = np.zeros_like(planes)
    inverse[:, 0, 0], inverse[:, 1, 1] = 1.0, 1.0 / planes[:, 1, 1]
    inverse[:, 1, 0] = -planes[:, 1, 0] / planes[:, 1, 1]
    return inverse


# MERGED ltinet.simulation.modal
# States of a modal system as real numbers: (Re v, Im v) of pairs, then reals, then the states of dense blocks.


def pack_states(system: ModalSystem, v: Complex, parts: list[Array]) -> Array:
    """Scalars and states of dense blocks, packed along the last axis."""
    pairs = np.ascontiguousarray(v[..., : system.n_pairs]).view(np.float64)
    return np.concatenate([pairs, v[..., system.n_pairs :].real, *parts], axis=-1)


def unpack_states(system: ModalSystem, packed: Array) -> tuple[Complex, list[Array]]:
    """The inverse of `pack_states`."""
    n_pairs, n_scalars = system.n_pairs, len(system.rates)
    v = np.empty((*packed.shape[:-1], n_scalars), dtype=np.complex128)
    v[..., :n_pairs] = np.ascontiguousarray(packed[..., : 2 * n_pairs]).view(np.complex128)
    v[..., n_pairs:] = packed[..., 2 * n_pairs : n_pairs + n_scalars]
    parts, offset = [], n_pairs + n_scalars
    for block in system.blocks:
        parts.append(packed[..., offset : offset + len(block.F)])
        offset += len(block.F)
    return v, parts


def pack_weights(system: ModalSystem, c: Complex, parts: list[Array]) -> Array:
    """Rows that act on states, packed along the last axis: Re(c v) = Re c · Re v − Im c · Im v."""
    return pack_states(system, c.conj(), parts)
