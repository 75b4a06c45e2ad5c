"""Which frequencies show what a system does: decades beyond its poles and zeros, and close steps at resonances."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet.arrays import Array
from ltinet.tolerances import EPS

_PER_DECADE, _MOST = 100, 1000  # of the plain logarithmic grid
_LIGHT = 0.3  # damping ratio below which the plain grid may miss a resonance
_MOST_RESONANCES = 200
# Distances from a resonance in units of its half width: from its tip to where the plain grid sees it again.
_AROUND = np.array([0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0])


def frequencies_for(poles: ArrayLike, zeros: ArrayLike = (), *, dt: float | None = None) -> Array:
    """Angular frequencies at which a frequency response should be computed to be drawn, ascending, at most some 5,400.

    They go from a tenth of the slowest pole or zero to ten times the fastest, in discrete time to π/dt; poles and zeros
    at the origin say nothing, and of a system without any others the frequencies are those around 1 (or π/dt).
    """
    s = np.concatenate([np.atleast_1d(np.asarray(values, dtype=np.complex128)) for values in (poles, zeros)])
    if dt is not None:
        with np.errstate(divide="ignore"):
            s = np.log(s) / dt
    sizes = np.abs(s[np.isfinite(s)])
    # What is no more than the rounding of eigenvalues is at the origin for all that anybody knows.
    s = s[np.isfinite(s) & (np.abs(s) > 10.0 * len(s) * EPS * np.max(sizes, initial=0.0))]
    largest = np.pi / dt if dt is not None else np.inf
    sizes = np.abs(s)
    low, high = (0.1 * sizes.min(), 10.0 * sizes.max()) if len(s) else (min(1.0, largest) / 100.0, 100.0)
    high = min(high, largest)
    low = min(low, 0.01 * high)
    count = int(np.clip(_PER_DECADE * np.log10(high / low), 100, _MOST))
    return np.unique(np.concatenate([np.geomspace(low, high, count), _resonances(s, low, high)]))


def _resonances(s: NDArray[np.complex128], low: float, high: float) -> Array:
    light = s[(s.imag > 0.0) & (np.abs(s.real) < _LIGHT * np.abs(s))]
    if len(light) > _MOST_RESONANCES:  # the sharpest
        light = light[np.argsort(np.abs(light.real) / np.abs(light))[:_MOST_RESONANCES]]
    # An undamped one has no width: at the frequency itself nothing is finite.
    width = np.maximum(np.abs(light.real), 1e-4 * np.abs(light))[:, None]
    around = np.concatenate([light.imag[:, None] + width * _AROUND, light.imag[:, None] - width * _AROUND[1:]], axis=1)
    return around[(around > low) & (around < high)]
