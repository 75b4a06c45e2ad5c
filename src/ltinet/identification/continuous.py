"""From modes at samples to those of continuous time, with the hold of the data; exact at the samples.

A pole λ becomes log(λ)/dt. A negative real one has no real logarithm: it is what is seen of a pair at half the sampling
frequency, whose other state is given such an input weight that at samples it is never seen.
"""

from typing import NamedTuple

import numpy as np

from ltinet.identification.hold_factors import input_factor, rates
from ltinet.identification.modal_model import ModalModel
from ltinet.model.matrices import Matrix

_FASTEST = 1e-12  # |λ| below which a pole at 0, a state that forgets everything in one step, is taken for this one


class ContinuousModel(NamedTuple):
    """Real A, B, C and D, pairs as 2×2 blocks; how many negative real poles became pairs."""

    A: Matrix
    B: Matrix
    C: Matrix
    D: Matrix
    n_doubled: int


def continuous(model: ModalModel, dt: float) -> ContinuousModel:
    """The model of continuous time that gives the same outputs at samples."""
    size = np.abs(model.poles)
    poles = np.where(size < _FASTEST, _FASTEST, model.poles)
    s = rates(poles) / dt
    weights = model.B / (dt * input_factor(poles, linear=model.linear))[:, None]
    is_pair = model.is_pair | (s.imag != 0.0)
    sizes = 1 + is_pair.astype(np.intp)
    n, places = int(sizes.sum()), np.cumsum(sizes) - sizes
    A, B, C = np.zeros((n, n)), np.zeros((n, model.n_inputs)), np.zeros((model.n_outputs, n))
    for place, rate, b, c, pair in zip(places.tolist(), s, weights, model.C.T, is_pair, strict=True):
        A[place, place], B[place], C[:, place] = rate.real, b.real, c.real
        if pair:
            A[place, place + 1], A[place + 1, place], A[place + 1, place + 1] = -rate.imag, rate.imag, rate.real
            B[place + 1], C[:, place + 1] = b.imag, -c.imag
    return ContinuousModel(A, B, C, model.D, int((is_pair & ~model.is_pair).sum()))
