"""How much of what modes could bring to an output comes there: T is right to some eps of all of it.

Where states know little of each other, or modes nearly cancel, an output is a small part of what the norms of T allow,
and has as many digits less.
"""

from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array, Complex
from ltinet.solve.exact.engine_arrays import EngineArrays
from ltinet.solve.exact.run_errors import QUIETLY

_TIMES = 24  # at which responses are looked at, from one step to all of them


class SeenThroughModes(NamedTuple):
    """Responses of outputs to what enters the user's states, and the largest that norms allow.

    Norms are those in units that make the rows of T one, so that the user's do not matter.
    """

    responses: Array
    """C e^{At} at some times, or the integral of it, `(times · p, n)`."""
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
        p = len(self.largest)
        return np.asarray(np.abs(self.responses @ entering).reshape(-1, p, entering.shape[1]).max(axis=0))


def _least(seen: Array, possible: Array) -> Array:
    """The smallest share in each column; where nothing is possible there is none."""
    return np.asarray(np.divide(seen, possible, out=np.ones_like(seen), where=possible > 0.0).min(axis=0, initial=1.0))


@QUIETLY
def seen_through_modes(arrays: EngineArrays, step: float, duration: float, *, driven: bool) -> SeenThroughModes:
    """Look at an engine whose modes are scalars, from one step to the end of a run: states, or inputs that are held."""
    if arrays.basis is None:
        raise ValueError("a network without a form has no T")
    X, X_inv = arrays.basis
    units = np.linalg.norm(X, axis=1)[:, None]
    times = np.geomspace(step, max(duration, step), _TIMES)[:, None]
    turned = _beside_growth(arrays.system.rates, times, driven=driven)
    most = arrays.modes(np.linalg.norm(X / units, axis=0)) * arrays.modes(np.linalg.norm(X_inv * units.T, axis=1))
    largest = np.linalg.norm(arrays.C @ X_inv * units.T, axis=1) * np.max(np.abs(turned) * most, initial=0.0)
    end = 2 * arrays.n_pairs  # packed are real and imaginary parts of the states of pairs
    of_pairs = (arrays.C[:, :end:2] - 1j * arrays.C[:, 1:end:2]) * turned[:, None, : arrays.n_pairs]
    of_reals = arrays.C[:, end:] * turned[:, None, arrays.n_pairs :].real
    both = np.stack([of_pairs.real, -of_pairs.imag], axis=-1).reshape(*of_pairs.shape[:2], end)
    responses = np.concatenate([both, of_reals], axis=-1) @ X_inv
    return SeenThroughModes(responses.reshape(-1, len(X)), largest, units, X @ arrays.G)


def _beside_growth(rates: Complex, times: Array, *, driven: bool) -> Complex:
    """e^{λt}, or the integral of it up to t, `(times, modes)`, both over e^{gt} of the mode that grows most."""
    growth = max(0.0, np.max(rates.real, initial=0.0))
    free, left = np.exp((rates - growth) * times), np.exp(-growth * times)
    if not driven:
        return np.asarray(free)
    short = np.abs(rates * times) < 1e-8
    return np.asarray(np.where(short, times * left, (free - left) / np.where(short, 1.0, rates)))
