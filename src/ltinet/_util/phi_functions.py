"""Functions φ₁(z) = (e^z − 1)/z and φ₂(z) = (e^z − 1 − z)/z² of real or complex numbers, entire functions of z.

They are the integrals of exact steps: ∫₀ʰ e^{λs} ds = h φ₁(λh), and h φ₂(λh) for an input that rises along a line.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import EPS

_TAYLOR_LIMIT = 1.0  # |z| below which φ₂ is a Taylor series: the subtraction in (φ₁ − 1)/z would lose digits


def phi1(z: NDArray[Any]) -> NDArray[Any]:
    """Return φ₁(z), 1 at zero."""
    safe = np.where(z == 0.0, 1.0, z)
    return np.asarray(np.where(z == 0.0, 1.0, np.expm1(safe) / safe))


def phi_functions(z: NDArray[Any], exponentials: NDArray[Any] | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return φ₁ and φ₂ to a few units in the last place for any z; e^z may be passed if it is known.

    Near 0 φ₂ is its Taylor series and φ₁ = 1 + z φ₂, elsewhere both are differences.
    """
    size = np.abs(z)
    small = size < _TAYLOR_LIMIT
    if small.all():
        second = _phi2_near_zero(z, largest=float(size.max(initial=0.0)))
        return 1.0 + z * second, second
    away = np.where(small, 1.0, z) if small.any() else z
    first = ((np.exp(away) if exponentials is None else exponentials) - 1.0) / away
    second = (first - 1.0) / away
    if away is not z:
        near = z[small]
        second[small] = _phi2_near_zero(near, largest=float(size[small].max()))
        first[small] = 1.0 + near * second[small]
    return first, second


def _phi2_near_zero(z: NDArray[Any], *, largest: float) -> NDArray[Any]:
    """Return Σ z^k/(k+2)! for |z| up to `largest` ≤ 1 by Horner's rule, to rounding relative to the first term."""
    term, count = 1.0, 0
    while term > EPS / 16.0:
        count += 1
        term *= largest / (count + 2)
    series = np.ones_like(z)
    for power in range(count - 1, 0, -1):
        series *= z
        series /= power + 2
        series += 1.0
    series *= 0.5
    return series
