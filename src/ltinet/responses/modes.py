"""Which modes a response shows, and how strongly: what times are chosen from."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.solve.modal import ModalSystem

_VISIBLE = 1e-3  # of the strongest mode between the same input and output
_MOST = 10_000_000  # amplitudes that are looked at one by one; beyond, all modes count as visible


class Modes(NamedTuple):
    """Rates λ, and how strongly each shows between every output and every way to start it, `(modes, p, starts)`."""

    rates: NDArray[np.complex128]
    amplitudes: Array
    is_integrator: NDArray[np.bool_]
    to_step: bool

    @property
    def fastest(self) -> float:
        """The largest |λ|."""
        return float(np.abs(self.rates).max(initial=0.0))

    def visible(self) -> "Modes":
        """Those that one can see."""
        strongest = self.amplitudes.max(axis=0, initial=0.0)
        return self.those(((self.amplitudes >= _VISIBLE * strongest) & (self.amplitudes > 0.0)).any(axis=(1, 2)))

    def without_integrators(self) -> "Modes":
        """Those that do something by themselves."""
        return self.those(~self.is_integrator)

    def show_integrators(self, final: Array) -> bool:
        """Whether an integrator is seen: by the final values of a step, `(p, starts)`, or by its own share."""
        if self.to_step:  # amplitudes of hidden ones are rounding over rounding
            return not bool(np.isfinite(final).all())
        return bool(self.visible().is_integrator.any())

    def those(self, keep: NDArray[np.bool_]) -> "Modes":
        """Some of them."""
        return Modes(self.rates[keep], self.amplitudes[keep], self.is_integrator[keep], self.to_step)


def modes_of(system: ModalSystem, starts: Array, outputs: list[int], *, to_step: bool, n_integrators: int) -> Modes:
    """The modes of a response that begins in packed states `(starts, n)`, or that follows steps which lead there.

    A step of an input that pushes a mode by g leaves c g/λ of it. Of modes that are coupled in a block nobody knows the
    shares: each counts as much as the block. The slowest `n_integrators` are integrators, whatever rounding
    made of them.
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
    is_integrator = _slowest(found, n_integrators)
    if to_step:
        size = size / np.where(is_integrator | (found == 0.0), 1.0, np.abs(found))[:, None, None]
    return Modes(found, size, is_integrator, to_step)


def _slowest(rates: NDArray[np.complex128], count: int) -> NDArray[np.bool_]:
    """The slowest modes, as many as have `count` states; of a pair that with a positive frequency stands for both."""
    if not count:
        return np.zeros(len(rates), dtype=np.bool_)
    sizes = np.abs(rates)
    order = np.argsort(sizes, kind="stable")
    states = np.cumsum(np.where(rates.imag > 0.0, 2, np.where(rates.imag < 0.0, 0, 1))[order])
    return np.asarray(sizes <= sizes[order][np.searchsorted(states, count)])


def _products(C: Array, pushed: Array) -> Array:
    if C.size * len(pushed) > _MOST:
        return np.ones((C.shape[1], 1, 1))
    return np.asarray(C.T[:, :, None] * pushed.T[:, None, :])
