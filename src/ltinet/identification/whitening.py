"""Records through a filter that makes what a model leaves over white; the system between inputs and outputs stays.

Noise that lasts, AR(1) with 0.95 say, looks like a slow state of the system: methods spend an order on it, and errors
on a hold-out say little, since neighbouring ones are the same accident. Inputs and outputs of a linear system may be
sent through one common filter. With that of an autoregressive model of the residuals, what is left is white.
"""

import numpy as np
from scipy import linalg

from ltinet.arrays import Array
from ltinet.identification.record import Record

N_COEFFICIENTS = 20
_RIDGE = 1e-9  # of the variance: residuals that are one sine have no inverse otherwise


def autoregression(residuals: list[Array], n_coefficients: int = N_COEFFICIENTS) -> Array:
    """1, −a₁, −a₂, …: the filter that whitens residuals `(T, p)` of some records, outputs in units of their size."""
    n = min(n_coefficients, max(0, min(len(own) for own in residuals) // 4))
    covariances = np.zeros(n + 1)
    for output in range(residuals[0].shape[1]):
        of_output = [own[:, output] - own[:, output].mean() for own in residuals]
        lags = np.array([sum(float(e[: len(e) - k] @ e[k:]) for e in of_output) for k in range(n + 1)])
        covariances += lags / lags[0] if lags[0] > 0.0 else 0.0
    if not n or not covariances[0] > 0.0:
        return np.ones(1)
    column = covariances[:n].copy()
    column[0] *= 1.0 + _RIDGE
    return np.concatenate([[1.0], -linalg.solve_toeplitz(column, covariances[1:])])


def whitened(record: Record, coefficients: Array) -> Record:
    """A record through the filter, without the samples at its beginning that lack others before them."""
    lost = len(coefficients) - 1
    n = len(record) - lost
    u, y = (
        np.asarray(sum(c * own[lost - k : lost - k + n] for k, c in enumerate(coefficients.tolist())))
        for own in (record.u, record.y)
    )
    return Record(u, y)
