"""From modes at samples to those of continuous time, with the hold of the data; exact at the samples.

A pole λ becomes log(λ)/dt. A negative real one has no real logarithm: it is what is seen of a pair at half the sampling
frequency, whose other state is given such an input weight that at samples it is never seen.
"""

from typing import NamedTuple

import numpy as np

from ltinet.identification.hold_factors import input_factor, rates
from ltinet.identification.modal_model import ModalModel, real_blocks
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
    A, B, C = real_blocks(s, weights, model.C, is_pair)
    return ContinuousModel(A, B, C, model.D, int((is_pair & ~model.is_pair).sum()))
