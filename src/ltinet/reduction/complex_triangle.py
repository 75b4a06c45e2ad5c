"""(s I − S)⁻¹ for many s and a complex upper triangular S, as a unitary Schur form has it."""

import numpy as np

from ltinet.arrays import Complex

_TILE = 32  # rows that are brought up to date by one product of matrices, before they are solved


def solve_triangle(S: Complex, s: Complex, right: Complex) -> Complex:
    """(s I − S)⁻¹ times right-hand sides `(k, len(s) or 1, m)`, by rows from the last, all s together."""
    k, m = len(S), right.shape[-1]
    X = np.empty((k, len(s), m), dtype=np.complex128)
    X[:] = right
    flat = X.reshape(k, -1)
    for stop in range(k, 0, -_TILE):
        start = max(stop - _TILE, 0)
        if stop < k:
            flat[start:stop] += S[start:stop, stop:] @ flat[stop:]
        for i in range(stop - 1, start - 1, -1):
            if i + 1 < stop:
                flat[i] += S[i, i + 1 : stop] @ flat[i + 1 : stop]
            X[i] /= (s - S[i, i])[:, None]
    return X
