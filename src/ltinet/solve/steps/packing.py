"""States of a modal system as real numbers: (Re v, Im v) of pairs, then reals, then the states of dense blocks."""

import numpy as np

from ltinet.arrays import Array, Complex
from ltinet.solve.modal import ModalSystem


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
