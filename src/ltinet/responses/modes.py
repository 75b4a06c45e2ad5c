"""Which modes a response shows, and how strongly: what times are chosen from."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.solve.modal import ModalSystem
from ltinet.tolerances import rounding

_VISIBLE = 1e-3  # of the strongest mode between the same input and output
_MOST = 10_000_000  # amplitudes that are looked at one by one; beyond, all modes count as visible


class Modes(NamedTuple):
    """Rates λ, and how strongly each shows between every output and every way to start it, `(modes, p, starts)`."""

    rates: NDArray[np.complex128]
    amplitudes: Array

    @property
    def fastest(self) -> float:
        """The largest |λ|."""
        return float(np.abs(self.rates).max(initial=0.0))

    def visible(self) -> "Modes":
        """Those that one can see."""
        strongest = self.amplitudes.max(axis=0, initial=0.0)
        keep = ((self.amplitudes >= _VISIBLE * strongest) & (self.amplitudes > 0.0)).any(axis=(1, 2))
        return Modes(self.rates[keep], self.amplitudes[keep])


def modes_of(system: ModalSystem, starts: Array, outputs: list[int], *, to_step: bool) -> Modes:
    """The modes of a response that begins in packed states `(starts, n)`, or that follows steps which lead there.

    A step of an input that pushes a mode by g leaves c g/λ of it. Of modes that are coupled in a block nobody knows the
    shares: each counts as much as the block.
    """
    rates, C = system.rates, system.C[outputs]
    n_pairs, n_scalars = system.n_pairs, len(rates)
    pairs = starts[:, : 2 * n_pairs].reshape(len(starts), n_pairs, 2)
    pushed = np.concatenate(
        [np.hypot(pairs[..., 0], pairs[..., 1]), np.abs(starts[:, 2 * n_pairs : n_pairs + n_scalars])], 1
    )
    all_rates, amplitudes = [rates], [_products(np.abs(C), pushed)]
    place = n_pairs + n_scalars
    for block in system.blocks:
        values = np.linalg.eigvals(block.F).astype(np.complex128)
        own = np.linalg.norm(starts[:, place : place + len(block.F)], axis=1)
        size = np.outer(np.linalg.norm(block.C[outputs], axis=1), own)
        all_rates.append(values)
        amplitudes.append(np.broadcast_to(size, (len(values), *size.shape)))
        place += len(block.F)
    found, size = np.concatenate(all_rates), np.concatenate(amplitudes)
    if to_step:
        floor = rounding(system.n_states) * np.abs(found).max(initial=0.0) or 1.0
        size = size / np.maximum(np.abs(found), floor)[:, None, None]
    return Modes(found, size)


def _products(C: Array, pushed: Array) -> Array:
    if C.size * len(pushed) > _MOST:
        return np.ones((C.shape[1], 1, 1))
    return np.asarray(C.T[:, :, None] * pushed.T[:, None, :])
