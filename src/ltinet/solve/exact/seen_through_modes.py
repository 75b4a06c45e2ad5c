"""How much of what modes could bring to an output comes there: T is right to some eps of all of it.

Where states know little of each other, or modes nearly cancel, an output is a small part of what the norms of T allow,
and has as many digits less.
"""

import math
from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array, Complex
from ltinet.solve.exact.engine_arrays import EngineArrays
from ltinet.solve.exact.infinite_sizes import QUIETLY
from ltinet.solve.modal import DenseBlock
from ltinet.solve.steps.propagators import matrix_steps

_SHORT = 1e-8  # |λ|t below which the integral of an exponential is t


class SeenThroughModes(NamedTuple):
    """Responses of outputs to what enters the user's states, and the largest that norms allow.

    Norms are those in units that make the rows of T one, so that the user's do not matter.
    """

    responses: Array
    """C e^{At} at some times, or the integral of it, `(times, p, n)`."""
    largest: Array
    """Their norms for each output `(p,)`, with that of an exponential which T makes of those of modes."""
    units: Array
    """Of the states, `(n, 1)`."""
    B: Array
    """Where inputs enter."""

    @QUIETLY
    def least_of_inputs(self, sizes: tuple[float, ...]) -> float:
        """The share of the output that sees least of all inputs together, where they are of some sizes."""
        entering = self.B * sizes
        possible = self.largest * np.max(np.linalg.norm(entering / self.units, axis=0), initial=0.0)
        return float(_least(self._seen(entering).max(axis=1, initial=0.0)[:, None], possible[:, None])[0])

    @QUIETLY
    def least_direction(self, entering: Array) -> tuple[int, float]:
        """The one of some states `(n, k)` that is seen least, and its share."""
        possible = np.multiply.outer(self.largest, np.linalg.norm(entering / self.units, axis=0))
        shares = _least(self._seen(entering), possible)
        first = int(np.argmin(shares))
        return first, float(shares[first])

    def _seen(self, entering: Array) -> Array:
        """The largest outputs, `(p, k)`."""
        return np.asarray(np.abs(self.responses @ entering).max(axis=0))


def _least(seen: Array, possible: Array) -> Array:
    """The smallest share in each column; where nothing is possible there is none."""
    return np.asarray(np.divide(seen, possible, out=np.ones_like(seen), where=possible > 0.0).min(axis=0, initial=1.0))


@QUIETLY
def seen_through_modes(arrays: EngineArrays, step: float, duration: float, *, driven: bool) -> SeenThroughModes:
    """Look at an engine from one step to the end of a run: at states, or at inputs that are held and enter scalars."""
    if arrays.basis is None:
        raise ValueError("a network without a form has no T")
    X, X_inv = arrays.basis
    units = _norms_of_rows(X)[:, None]
    scaled, scaled_inv = X / units, X_inv * units.T
    octaves = max(1, math.ceil(math.log2(max(duration / step, 1.0))))
    times = np.array([*(step * 2.0**octave for octave in range(octaves)), duration])[:, None]
    turned = _beside_growth(arrays.system.rates, times, driven=driven)
    columns, rows = (arrays.modes(np.linalg.norm(own, axis=axis)) for own, axis in ((scaled, 0), (scaled_inv, 1)))
    most = float(np.max(np.abs(turned) * (columns * rows)[: arrays.n_scalars], initial=0.0))
    end = 2 * arrays.n_pairs  # packed are real and imaginary parts of the states of pairs
    of_pairs = (arrays.C[:, :end:2] - 1j * arrays.C[:, 1:end:2]) * turned[:, None, : arrays.n_pairs]
    of_reals = arrays.C[:, end : end + turned.shape[1] - arrays.n_pairs] * turned[:, None, arrays.n_pairs :].real
    both = np.stack([of_pairs.real, -of_pairs.imag], axis=-1).reshape(*of_pairs.shape[:2], end)
    parts = [both, of_reals]
    for own, block in zip(arrays.mode_slices, arrays.system.blocks, strict=True):
        P = _doubled(block, step, len(times))
        place = slice(own.start + arrays.n_pairs, own.stop + arrays.n_pairs)
        parts.append(arrays.C[:, place] @ P)
        norms = _norm(scaled[:, place]) * _norm(scaled_inv[place])
        most = max(most, float(np.max(np.linalg.norm(P, axis=(1, 2)), initial=0.0) * norms))
    responses = np.concatenate(parts, axis=-1) @ X_inv
    largest = np.linalg.norm(arrays.C @ scaled_inv, axis=1) * most
    return SeenThroughModes(responses, largest, units, X @ arrays.G)


def _norms_of_rows(X: Array) -> Array:
    """Their norms, or where squares exceed all numbers or vanish, their largest entries."""
    norms = np.linalg.norm(X, axis=1)
    return np.asarray(np.where((norms > 0.0) & (norms < np.inf), norms, np.abs(X).max(axis=1)))


def _norm(part: Array) -> float:
    """How far a part of a matrix stretches at most."""
    return float(np.linalg.norm(part, 2)) if np.isfinite(part).all() else np.inf


def _doubled(block: DenseBlock, step: float, count: int) -> Array:
    """e^{Ft} after 1, 2, 4, … steps."""
    found = [matrix_steps(block.F, block.G, np.array([step]), linear=False).P[0]]
    while len(found) < count:
        found.append(found[-1] @ found[-1])
    return np.array(found)


def _beside_growth(rates: Complex, times: Array, *, driven: bool) -> Complex:
    """e^{λt}, or the integral of it up to t, `(times, modes)`, both over e^{gt} of the mode that grows most."""
    growth = max(0.0, np.max(rates.real, initial=0.0)) if driven else 0.0
    free, left = np.exp((rates - growth) * times), np.exp(-growth * times)
    if not driven:
        return np.asarray(free)
    short = np.abs(rates * times) < _SHORT
    return np.asarray(np.where(short, times * left, (free - left) / np.where(short, 1.0, rates)))
