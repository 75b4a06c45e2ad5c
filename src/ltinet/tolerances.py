"""Every threshold that decides anything, derived from machine precision and norms, each with its reason."""

import numpy as np

EPS = float(np.finfo(np.float64).eps)


def rounding(size: int, scale: float = 1.0) -> float:
    """What a backward stable O(size³) computation may leave behind on a matrix of norm `scale`: 10·size·eps·scale."""
    return 10.0 * max(size, 1) * EPS * scale
