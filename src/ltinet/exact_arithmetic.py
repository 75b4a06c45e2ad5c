"""Sums and products of doubles with what rounding took from them; nothing hangs on a processor's own digits."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64] | np.float64


def exact_sum(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The sum rounded, and what rounding took from it (Knuth 1969); complex numbers likewise."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def exact_product(a: Doubles, b: Doubles) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """a·b rounded, and what rounding took from it (Dekker 1971); nothing where the halves of a number overflow."""
    product = np.asarray(a * b)
    a1, a2 = _halves(a)
    b1, b2 = _halves(b)
    lost = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
    return product, np.where(np.isfinite(lost), lost, 0.0)


def _halves(a: Doubles) -> tuple[Any, Any]:
    """Two numbers of 26 bits that sum to a (Veltkamp 1968)."""
    scaled = a * (2.0**27 + 1.0)
    upper = scaled - (scaled - a)
    return upper, a - upper
