"""A network as the arrays that learning starts from: z' = A z + B u, y = C z + D u with the states in one order.

The states are those of the exact engine (`solve.modal`): first the real parts of all pairs, then their imaginary parts,
then the reals, then coupled blocks in standard form, those of one size side by side.
"""

from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.learn.standard_blocks import StandardBlock, standard_block
from ltinet.solve.modal import ModalSystem
from ltinet.solve.prepared import PreparedNetwork
from ltinet.solve.steps.packing import pack, pack_weights

Places = NDArray[np.intp]


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


def packed_system(prepared: PreparedNetwork) -> PackedSystem:
    """The arrays of a prepared network; cost O(n³) for the maps between its states and the user's."""
    system = prepared.system
    pieces = _pieces(system)
    pairs = [piece for piece in pieces if isinstance(piece.own, complex)]
    reals = [piece for piece in pieces if isinstance(piece.own, float)]
    blocks = sorted((piece for piece in pieces if isinstance(piece.own, StandardBlock)), key=_size)
    groups = [[own.own for own in group] for _, group in groupby(blocks, key=_size)]
    into, back = _maps(system.n_states, pairs, reals + blocks)
    coordinates, identity = prepared.coordinates, np.eye(system.n_states)
    # Rows are states here, columns unit vectors of the user's.
    from_user = system.packed_from_blocks(coordinates.blocks_from_user(identity)).T
    to_user = coordinates.user_from_blocks(system.blocks_from_packed(identity)).T
    to_blocks, from_blocks = system.blocks_from_packed(identity).T @ back, into @ system.packed_from_blocks(identity).T
    inputs = pack(system, system.B.T, [block.G.T for block in system.blocks]).T
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


class _Piece(NamedTuple):
    """A pair or a real by its rate, or a coupled block, and the engine's states of it: states[at] = basis z."""

    own: complex | float | StandardBlock
    at: Places
    basis: Array
    inverse: Array


def _size(piece: _Piece) -> int:
    return len(piece.at)


def _pieces(system: ModalSystem) -> list[_Piece]:
    """All that a system is made of, in the engine's order."""
    one, two = np.eye(1), np.eye(2)
    found: list[_Piece] = []
    for number, rate in enumerate(system.rates[: system.n_pairs]):
        found.append(_Piece(complex(rate), 2 * number + np.arange(2), two, two))
    start = 2 * system.n_pairs
    for rate in system.rates[system.n_pairs :].real:
        found.append(_Piece(float(rate), np.array([start]), one, one))
        start += 1
    for block in system.blocks:
        found.append(_block_piece(standard_block(np.asarray(block.F)), start + np.arange(len(block.F))))
        start += len(block.F)
    return found


def _block_piece(block: StandardBlock, at: Places) -> _Piece:
    """A coupled block; one that is a single pair becomes such, [[a, b], [c, a]] with states (1, −ω/b) times those.

    Units of states cost no digits, however different: sines of small angles are right relative to their own size.
    """
    if block.sizes != (2,):
        return _Piece(block, at, block.basis, block.inverse)
    (a, b), (c, _) = block.F
    omega = float(np.sqrt(np.abs(b)) * np.sqrt(np.abs(c)))
    scale = np.array([1.0, -omega / b])
    return _Piece(complex(a, omega), at, block.basis * scale, block.inverse / scale[:, None])


def _maps(n: int, pairs: list[_Piece], others: list[_Piece]) -> tuple[Array, Array]:
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
