"""Arrays of a network from which PyTorch modules are built, and the names of its trainable parts.

The system z' = A z + B u, y = C z + D u has the states of the exact engine in this order: real parts of all pairs,
imaginary parts of all pairs, reals, coupled blocks sorted by size. Coupled blocks are in standard form, quasi
triangular with a for a real and [[a, b], [c, a]], bc < 0, for a pair on the diagonal: the eigenvalues a and a ± i√(−bc)
then stay stable whatever values the couplings above the diagonal take.

This module must not import PyTorch, because `DynamicNetwork` imports it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet._util.floating_point import Array
from ltinet.errors import InvalidNetworkError
from ltinet.simulation.context import SimulationContext
from ltinet.simulation.modal import ModalSystem, pack_states, pack_weights

TrainableParts: TypeAlias = bool | str | Iterable[str]
"""Parts to train: True for all parts that cannot make a network unstable, False for none, or names of parts."""

PARAMETERS_BY_PART: dict[str, tuple[str, ...]] = {
    "poles": ("log_decay", "frequency", "log_above", "log_below"),
    "held": ("held_rates",),
    "couplings": ("couplings",),
    "B": ("B",),
    "C": ("C",),
    "D": ("D",),
}
"""Parameters of each trainable part."""
DEFAULT_PARTS = ("poles", "couplings", "B", "C", "D")


def validate_parts(trainable: TrainableParts) -> tuple[str, ...]:
    """Return the names of the parts to train; raise InvalidNetworkError for unknown names."""
    if isinstance(trainable, bool):
        return DEFAULT_PARTS if trainable else ()
    names = (trainable,) if isinstance(trainable, str) else tuple(trainable)
    unknown = [name for name in names if name not in PARAMETERS_BY_PART]
    if unknown:
        raise InvalidNetworkError(
            f"unknown parts in trainable: {', '.join(map(repr, unknown))}; choose from {', '.join(PARAMETERS_BY_PART)}, or "
            "give True for all but held, False for none"
        )
    return names


_MIN_SCALE = 2.0**-10  # relative to the rates: smaller couplings do not affect the units of the states


class StandardBlock(NamedTuple):
    """Standard form F = basis⁻¹ · block · basis, and the index at which each real or pair begins on its diagonal.

    With no such indices all entries of F are couplings.
    """

    F: Array
    basis: Array
    inverse: Array
    starts: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the diagonal pieces: 1 for a real, 2 for a pair."""
        stops = (*self.starts[1:], len(self.F))[: len(self.starts)]
        return tuple(stop - start for start, stop in zip(self.starts, stops, strict=True))


def standardize_block(F: Array) -> StandardBlock:
    """Transform a block to standard form; a block that already has it is only scaled, which keeps its digits."""
    if not _is_quasi_triangular(F):
        balanced, (scale, _) = linalg.matrix_balance(F, permute=False, separate=True)  # by powers of two
        schur, Z = linalg.schur(balanced, output="real")
        return _rescale_block(StandardBlock(schur, scale[:, None] * Z, Z.T / scale, _diagonal_starts(schur)))
    basis = np.eye(len(F))
    for start in _diagonal_starts(F):
        rows = slice(start, start + 2)
        piece = F[rows, rows]
        if not _is_standard_piece(piece):
            standard, Q = linalg.schur(piece, output="real")
            rotation = np.eye(len(F))
            rotation[rows, rows] = Q
            F, basis = rotation.T @ F @ rotation, basis @ rotation
            F[rows, rows] = standard  # exactly, without the rounding of the products
    return _rescale_block(StandardBlock(np.array(F), basis, basis.T, _diagonal_starts(F)))


def _rescale_block(block: StandardBlock) -> StandardBlock:
    """Scale the states by powers of two so that no coupling is much larger than the rates.

    An exponential is accurate relative to the norm of its matrix: a coupling of a million times the rates would cost
    six digits of these.
    """
    sizes = np.abs(block.F)
    rate = float(sizes.diagonal().max(initial=0.0)) or float(sizes.max(initial=0.0)) or 1.0
    # In a triangular matrix a coupling could be scaled to any size; the lower limit leaves small couplings as they are.
    scale = linalg.matrix_balance(np.maximum(sizes, _MIN_SCALE * rate), permute=False, separate=True)[1][0]
    F = block.F / scale[:, None] * scale
    return StandardBlock(F, block.basis * scale, block.inverse / scale[:, None], block.starts)


def _is_quasi_triangular(F: Array) -> bool:
    below = np.diagonal(F, -1) != 0.0
    return not np.tril(F, -2).any() and not bool((below[1:] & below[:-1]).any())


def _diagonal_starts(F: Array) -> tuple[int, ...]:
    """Return the indices at which reals and pairs begin on the diagonal of a quasi upper triangular matrix."""
    second = np.flatnonzero(np.diagonal(F, -1) != 0.0) + 1
    return tuple(np.setdiff1d(np.arange(len(F)), second).tolist())


def _is_standard_piece(piece: Array) -> bool:
    """Return True if a diagonal piece is a real, reals, or a pair [[a, b], [c, a]] with bc < 0."""
    if len(piece) < 2 or piece[1, 0] == 0.0:
        return True
    return bool(piece[0, 0] == piece[1, 1] and np.sign(piece[0, 1]) * np.sign(piece[1, 0]) < 0.0)


Indices = NDArray[np.intp]


@dataclass(frozen=True)
class PackedSystem:
    """Arrays of a network, in the order of states that the module docstring defines."""

    pair_rates: NDArray[np.complex128]
    real_rates: Array
    groups: tuple[tuple[StandardBlock, ...], ...]
    """Coupled blocks, grouped by size."""
    B: Array
    C: Array
    D: Array
    to_user: Array
    """States of the user = to_user · z."""
    from_user: Array
    to_blocks: Array
    """States of the network's layers = to_blocks · z."""
    from_blocks: Array


def pack_system(prepared: SimulationContext) -> PackedSystem:
    """Return the arrays of a prepared network; cost O(n³) for the maps between its states and the user's."""
    system = prepared.system
    pieces = _diagonal_pieces(system)
    pairs = [piece for piece in pieces if isinstance(piece.dynamics, complex)]
    reals = [piece for piece in pieces if isinstance(piece.dynamics, float)]
    blocks = sorted((piece for piece in pieces if isinstance(piece.dynamics, StandardBlock)), key=_piece_size)
    groups = [[piece.dynamics for piece in group] for _, group in groupby(blocks, key=_piece_size)]
    to_packed, from_packed = _basis_change(system.n_states, pairs, reals + blocks)
    coordinates, identity = prepared.coordinates, np.eye(system.n_states)
    # The maps act on rows: the images of the unit vectors are the columns of the matrices after transposition.
    from_user = system.packed_from_blocks(coordinates.blocks_from_user(identity)).T
    to_user = coordinates.user_from_blocks(system.blocks_from_packed(identity)).T
    inputs = pack_states(system, system.B.T, [block.G.T for block in system.blocks]).T
    outputs = pack_weights(system, system.C, [block.C for block in system.blocks])
    return PackedSystem(
        pair_rates=np.array([piece.dynamics for piece in pairs], dtype=np.complex128),
        real_rates=np.array([piece.dynamics for piece in reals], dtype=np.float64),
        groups=tuple(tuple(block for block in group if isinstance(block, StandardBlock)) for group in groups),
        B=to_packed @ inputs,
        C=outputs @ from_packed,
        D=np.array(system.D),
        to_user=to_user @ from_packed,
        from_user=to_packed @ from_user,
        to_blocks=system.blocks_from_packed(identity).T @ from_packed,
        from_blocks=to_packed @ system.packed_from_blocks(identity).T,
    )


class _DiagonalPiece(NamedTuple):
    """Pair or real, by its eigenvalue, or coupled block; states[indices] of the engine = basis · z."""

    dynamics: complex | float | StandardBlock
    indices: Indices
    basis: Array
    inverse: Array


def _piece_size(piece: _DiagonalPiece) -> int:
    return len(piece.indices)


def _diagonal_pieces(system: ModalSystem) -> list[_DiagonalPiece]:
    """Return the pairs, reals and coupled blocks of a system, in the order of the engine."""
    one, two = np.eye(1), np.eye(2)
    pairs, reals = np.split(system.rates, [system.n_pairs])
    pieces = [_DiagonalPiece(complex(rate), 2 * k + np.arange(2), two, two) for k, rate in enumerate(pairs)]
    pieces += [
        _DiagonalPiece(float(rate), np.array([k]), one, one) for k, rate in enumerate(reals.real, 2 * len(pairs))
    ]
    start = 2 * len(pairs) + len(reals)
    for block in system.blocks:
        pieces.append(_coupled_piece(standardize_block(np.asarray(block.F)), start + np.arange(len(block.F))))
        start += len(block.F)
    return pieces


def _coupled_piece(block: StandardBlock, indices: Indices) -> _DiagonalPiece:
    """Return the piece of a coupled block; a single pair [[a, b], [c, a]] becomes a pair a ± iω.

    Its states are scaled by (1, −ω/b). Different units of states cost no digits: sines of small angles are accurate
    relative to their own size.
    """
    if block.sizes != (2,):
        return _DiagonalPiece(block, indices, block.basis, block.inverse)
    (a, b), (c, _) = block.F
    omega = float(np.sqrt(np.abs(b)) * np.sqrt(np.abs(c)))
    scale = np.array([1.0, -omega / b])
    return _DiagonalPiece(complex(a, omega), indices, block.basis * scale, block.inverse / scale[:, None])


def _basis_change(n: int, pairs: list[_DiagonalPiece], others: list[_DiagonalPiece]) -> tuple[Array, Array]:
    """Return the matrix from the states of the engine to the packed states, and its inverse."""
    to_packed, from_packed, start = np.zeros((n, n)), np.zeros((n, n)), 2 * len(pairs)
    positions = [np.array([number, len(pairs) + number]) for number in range(len(pairs))]
    for piece in others:
        positions.append(start + np.arange(len(piece.indices)))
        start += len(piece.indices)
    for piece, position in zip([*pairs, *others], positions, strict=True):
        to_packed[np.ix_(position, piece.indices)] = piece.inverse
        from_packed[np.ix_(piece.indices, position)] = piece.basis
    return to_packed, from_packed
