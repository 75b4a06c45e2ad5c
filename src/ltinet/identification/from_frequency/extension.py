"""One state more: a real pole where it helps most, for a model that vector fits of noisy data do not lead to."""

import numpy as np

from ltinet.identification.from_frequency.data import ScaledResponse
from ltinet.identification.from_frequency.linear import refitted
from ltinet.identification.from_frequency.realisation import Realisation

_PLACES = 12  # evenly in the logarithm, over the range of the data; a descent goes on from the best


def extended(model: Realisation, data: ScaledResponse, *, feedthrough: bool) -> Realisation:
    """The model with a further real pole, at the best of some places, and the best C and D."""
    range_of = np.abs(data.s[data.s != 0.0])
    rest = data.weights * (data.H - model.response(data.s))
    candidates = []
    for size in np.geomspace(range_of.min(), range_of.max(), _PLACES):
        nearest = int(np.argmin(np.abs(np.abs(data.s) - size)))
        # Its input is the one that the error is largest for, there.
        direction = np.linalg.svd(np.vstack([rest[nearest].real, rest[nearest].imag]))[2][0]
        n = model.n_states
        A = np.zeros((n + 1, n + 1))
        A[:n, :n], A[n, n] = model.A, -size
        B = np.vstack([model.B, direction])
        C = np.column_stack([model.C, np.zeros(len(model.C))])
        candidates.append(refitted(Realisation(A, B, C, model.D, (*model.sizes, 1)), data, feedthrough=feedthrough))
    return min(candidates, key=lambda own: data.error(own.response(data.s)))
