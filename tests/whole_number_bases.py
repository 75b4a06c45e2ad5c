"""Changes of coordinates in which nothing is rounded."""

import numpy as np


def whole_number_basis(rng, n):
    """A matrix of whole numbers whose inverse is of whole numbers, and that inverse."""
    S, S_inv = np.eye(n), np.eye(n)
    for _ in range(3 * n):
        i, j = rng.choice(n, 2, replace=False)
        factor = float(rng.integers(-1, 2))
        S[:, j] += factor * S[:, i]
        S_inv[i] -= factor * S_inv[j]
    return S, S_inv
