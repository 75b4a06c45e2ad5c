"""Norms of many small matrices at once."""

import numpy as np

from ltinet.arrays import Array, Complex
from ltinet.tolerances import EPS


def norms(values: Complex) -> Array:
    """The largest singular value of each of many matrices `(K, p, m)`, rounded up."""
    if values.shape[1] == 0 or values.shape[2] == 0:
        return np.zeros(len(values))
    if min(values.shape[1:]) == 1:
        return frobenius(values)
    across = values.conj().transpose(0, 2, 1)
    gram = across @ values if values.shape[2] <= values.shape[1] else values @ across
    return np.asarray(np.sqrt(np.maximum(np.linalg.eigvalsh(gram)[:, -1], 0.0)) * (1.0 + 64.0 * EPS))


def frobenius(values: Complex) -> Array:
    """The Frobenius norm of each of many matrices."""
    return np.asarray(np.sqrt((values.real**2 + values.imag**2).sum(axis=(1, 2))))


def spectral_norm(matrix: Array) -> float:
    """The largest singular value; zero for a matrix of nothing."""
    return float(np.linalg.norm(matrix, 2)) if matrix.size else 0.0
