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

# MERGED ltinet.torch.packed_system
# Trainable parts of a network: their names, the parameters behind each, and which are trained by default.
#
# `DynamicNetwork` imports this module for its signatures, so it must not import PyTorch.

TrainableParts: TypeAlias = bool | str | Iterable[str]
"""What is trained: True for all that keeps a network stable, False for nothing, or parts of it by their names."""

PARAMETERS_BY_PART: dict[str, tuple[str, ...]] = {
    "poles": ("log_decay", "frequency", "log_above", "log_below"),
    "held": ("held_rates",),
    "couplings": ("couplings",),
    "B": ("B",),
    "C": ("C",),
    "D": ("D",),
}
"""The names by which parts of a network are trained or left alone, and their parameters."""
DEFAULT_PARTS = ("poles", "couplings", "B", "C", "D")


def validate_parts(trainable: TrainableParts) -> tuple[str, ...]:
    """The parts that are to be trained, by name."""
    if isinstance(trainable, bool):
        return DEFAULT_PARTS if trainable else ()
    names = (trainable,) if isinstance(trainable, str) else tuple(trainable)
    unknown = [name for name in names if name not in PARAMETERS_BY_PART]
    if unknown:
        raise InvalidNetworkError(
            f"trainable names {', '.join(map(repr, unknown))}; the parts of a network are {', '.join(PARAMETERS_BY_PART)}, True for "
            "all but held, False for none"
        )
    return names


# MERGED ltinet.torch.packed_system
# Coupled blocks in the form that keeps stability, whatever is learnt: quasi triangular, pairs as [[a, b], [c, a]].
#
# Eigenvalues then stand on the diagonal, a for reals and a ± i√(−bc) for pairs, and couplings above it are free.

_MIN_SCALE = 2.0**-10  # of the rates: couplings below need no other units


class StandardBlock(NamedTuple):
    """F = basis⁻¹ · given · basis in standard form, and where each real or pair begins on its diagonal.

    Without any such places F is taken as it is: all its entries are couplings.
    """

    F: Array
    basis: Array
    inverse: Array
    starts: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """1 for a real, 2 for a pair."""
        stops = (*self.starts[1:], len(self.F))[: len(self.starts)]
        return tuple(stop - start for start, stop in zip(self.starts, stops, strict=True))


def standardize_block(F: Array) -> StandardBlock:
    """A block in standard form; one that has it already is not touched, so that it keeps its digits."""
    identity = np.eye(len(F))
    if not _is_quasi_triangular(F):
        balanced, (scale, _) = linalg.matrix_balance(F, permute=False, separate=True)  # by powers of two
        schur, Z = linalg.schur(balanced, output="real")
        return _rescale_block(StandardBlock(schur, scale[:, None] * Z, Z.T / scale, _diagonal_starts(schur)))
    basis = identity
    for start in _diagonal_starts(F):
        own = slice(start, start + 2)
        piece = F[own, own]
        if not _is_standard_piece(piece):
            turn = np.array(identity)
            turn[own, own] = linalg.schur(piece, output="real")[1]
            F, basis = turn.T @ F @ turn, basis @ turn
            F[own, own] = linalg.schur(piece, output="real")[0]  # exactly standard
    return _rescale_block(StandardBlock(np.array(F), basis, basis.T, _diagonal_starts(F)))


def _rescale_block(block: StandardBlock) -> StandardBlock:
    """The block with states in units, powers of two, in which no coupling is much larger than the rates.

    An exponential is right relative to the norm of its matrix: a coupling of a million times the rates would cost six
    digits of these.
    """
    sizes = np.abs(block.F)
    rate = float(sizes.diagonal().max(initial=0.0)) or float(sizes.max(initial=0.0)) or 1.0
    # Without a way back a coupling could be made as small as one likes; small ones stay so.
    scale = linalg.matrix_balance(np.maximum(sizes, _MIN_SCALE * rate), permute=False, separate=True)[1][0]
    F = block.F / scale[:, None] * scale
    return StandardBlock(F, block.basis * scale, block.inverse / scale[:, None], block.starts)


def _is_quasi_triangular(F: Array) -> bool:
    below = np.diagonal(F, -1) != 0.0
    return not np.tril(F, -2).any() and not bool((below[1:] & below[:-1]).any())


def _diagonal_starts(F: Array) -> tuple[int, ...]:
    """Where reals and pairs begin on the diagonal of a quasi upper triangular matrix."""
    second = np.flatnonzero(np.diagonal(F, -1) != 0.0) + 1
    return tuple(np.setdiff1d(np.arange(len(F)), second).tolist())


def _is_standard_piece(piece: Array) -> bool:
    """Whether a diagonal piece is a real, reals, or a pair [[a, b], [c, a]] with bc < 0."""
    if len(piece) < 2 or piece[1, 0] == 0.0:
        return True
    return bool(piece[0, 0] == piece[1, 1] and np.sign(piece[0, 1]) * np.sign(piece[1, 0]) < 0.0)


# MERGED ltinet.torch.packed_system
# A network as the arrays that learning starts from: z' = A z + B u, y = C z + D u with the states in one order.
#
# The states are those of the exact engine (`solve.modal`): first the real parts of all pairs, then their imaginary parts,
# then the reals, then coupled blocks in standard form, those of one size side by side.

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class PackedSystem:
    """The arrays of a network in the order of its states."""

    pair_rates: NDArray[np.complex128]
    real_rates: Array
    groups: tuple[tuple[StandardBlock, ...], ...]
    """Coupled blocks of one size each."""
    B: Array
    C: Array
    D: Array
    to_user: Array
    """The user's states are to_user · z."""
    from_user: Array
    """Its inverse."""
    to_blocks: Array
    """The states of the network's layers are to_blocks · z: each neuron's from its own."""
    from_blocks: Array
    """Its inverse."""

    @property
    def n_states(self) -> int:
        """Dimension of the system."""
        return len(self.B)


def pack_system(prepared: SimulationContext) -> PackedSystem:
    """The arrays of a prepared network; cost O(n³) for the maps between its states and the user's."""
    system = prepared.system
    pieces = _diagonal_pieces(system)
    pairs = [piece for piece in pieces if isinstance(piece.own, complex)]
    reals = [piece for piece in pieces if isinstance(piece.own, float)]
    blocks = sorted((piece for piece in pieces if isinstance(piece.own, StandardBlock)), key=_piece_size)
    groups = [[own.own for own in group] for _, group in groupby(blocks, key=_piece_size)]
    into, back = _basis_change(system.n_states, pairs, reals + blocks)
    coordinates, identity = prepared.coordinates, np.eye(system.n_states)
    # Rows are states here, columns unit vectors of the user's.
    from_user = system.packed_from_blocks(coordinates.blocks_from_user(identity)).T
    to_user = coordinates.user_from_blocks(system.blocks_from_packed(identity)).T
    to_blocks, from_blocks = system.blocks_from_packed(identity).T @ back, into @ system.packed_from_blocks(identity).T
    inputs = pack_states(system, system.B.T, [block.G.T for block in system.blocks]).T
    outputs = pack_weights(system, system.C, [block.C for block in system.blocks])
    return PackedSystem(
        pair_rates=np.array([piece.own for piece in pairs], dtype=np.complex128),
        real_rates=np.array([piece.own for piece in reals], dtype=np.float64),
        groups=tuple(tuple(own for own in group if isinstance(own, StandardBlock)) for group in groups),
        B=into @ inputs,
        C=outputs @ back,
        D=np.array(system.D),
        to_user=to_user @ back,
        from_user=into @ from_user,
        to_blocks=to_blocks,
        from_blocks=from_blocks,
    )


class _DiagonalPiece(NamedTuple):
    """A pair or a real by its rate, or a coupled block, and the engine's states of it: states[at] = basis z."""

    own: complex | float | StandardBlock
    at: Indices
    basis: Array
    inverse: Array


def _piece_size(piece: _DiagonalPiece) -> int:
    return len(piece.at)


def _diagonal_pieces(system: ModalSystem) -> list[_DiagonalPiece]:
    """All that a system is made of, in the engine's order."""
    one, two = np.eye(1), np.eye(2)
    found: list[_DiagonalPiece] = []
    for number, rate in enumerate(system.rates[: system.n_pairs]):
        found.append(_DiagonalPiece(complex(rate), 2 * number + np.arange(2), two, two))
    start = 2 * system.n_pairs
    for rate in system.rates[system.n_pairs :].real:
        found.append(_DiagonalPiece(float(rate), np.array([start]), one, one))
        start += 1
    for block in system.blocks:
        found.append(_coupled_piece(standardize_block(np.asarray(block.F)), start + np.arange(len(block.F))))
        start += len(block.F)
    return found


def _coupled_piece(block: StandardBlock, at: Indices) -> _DiagonalPiece:
    """A coupled block; one that is a single pair becomes such, [[a, b], [c, a]] with states (1, −ω/b) times those.

    Units of states cost no digits, however different: sines of small angles are right relative to their own size.
    """
    if block.sizes != (2,):
        return _DiagonalPiece(block, at, block.basis, block.inverse)
    (a, b), (c, _) = block.F
    omega = float(np.sqrt(np.abs(b)) * np.sqrt(np.abs(c)))
    scale = np.array([1.0, -omega / b])
    return _DiagonalPiece(complex(a, omega), at, block.basis * scale, block.inverse / scale[:, None])


def _basis_change(n: int, pairs: list[_DiagonalPiece], others: list[_DiagonalPiece]) -> tuple[Array, Array]:
    """The matrix from the engine's states to these, and its inverse."""
    into, back, start = np.zeros((n, n)), np.zeros((n, n)), 2 * len(pairs)
    places = [np.array([number, len(pairs) + number]) for number in range(len(pairs))]
    for piece in others:
        places.append(start + np.arange(len(piece.at)))
        start += len(piece.at)
    for piece, place in zip([*pairs, *others], places, strict=True):
        into[np.ix_(place, piece.at)] = piece.inverse
        back[np.ix_(piece.at, place)] = piece.basis
    return into, back
