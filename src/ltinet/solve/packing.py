"""States of a modal system as real numbers: (Re v, Im v) of pairs, then reals, then the states of dense blocks."""

import numpy as np
from numpy.typing import NDArray

from ltinet.solve.modal import ModalSystem
from ltinet.solve.propagators import matrix_steps, scalar_steps

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]


def pack(system: ModalSystem, v: Complex, parts: list[Array]) -> Array:
    """Scalars and states of dense blocks, packed along the last axis."""
    pairs = np.ascontiguousarray(v[..., : system.n_pairs]).view(np.float64)
    return np.concatenate([pairs, v[..., system.n_pairs :].real, *parts], axis=-1)


def unpack(system: ModalSystem, packed: Array) -> tuple[Complex, list[Array]]:
    """The inverse of `pack`."""
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
    return pack(system, c.conj(), parts)


def packed_steps(system: ModalSystem, h: Array, z: Array, now: Array, then: Array, *, linear: bool) -> Array:
    """One exact step of its own length h `(k,)` for each of the packed states z `(batch, k, n)`.

    The inputs `(batch, k, m)` are those at the beginning and at the end of each step.
    """
    v, parts = unpack(system, z)
    P, begin, end = scalar_steps(system.rates, h, linear=linear)
    v = P * v + begin * (now @ system.B.T) + end * (then @ system.B.T)
    lengths, which = np.unique(h, return_inverse=True)
    for index, block in enumerate(system.blocks):
        P, begin, end = matrix_steps(block.F, block.G, lengths, linear=linear)
        own = np.einsum("kij,bkj->bki", P[which], parts[index])
        own += np.einsum("kij,bkj->bki", begin[which], now) + np.einsum("kij,bkj->bki", end[which], then)
        parts[index] = own
    return pack(system, v, parts)
