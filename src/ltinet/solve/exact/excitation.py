"""What moves a system in a run, as far as trials take it: inputs of some sizes, and the states that it begins in."""

import math
from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.signals.sampled import SampledSignal

_LOOKED_AT = 256  # samples, about: enough to tell which inputs are used, and how large they are beside each other
_ALIKE = 64.0  # times smaller: inputs that trials do not tell from the largest


class Excitation(NamedTuple):
    """Sizes of inputs beside the largest of them, and states `(batch, n)` of the user."""

    inputs: tuple[float, ...]
    """Powers of two, so that few trials serve many runs."""
    start: Array | None = None

    @classmethod
    def unknown(cls, n_inputs: int) -> "Excitation":
        """All inputs alike."""
        return cls((1.0,) * n_inputs)

    @classmethod
    def of(cls, samples: SampledSignal, start: Array | None) -> "Excitation":
        """That of a run."""
        n_inputs = samples.u.shape[-1]
        if n_inputs < 2 or not samples.u.size:
            return cls((1.0,) * n_inputs, start)
        some = samples.u[..., :: max(1, len(samples.t) // _LOOKED_AT), :]
        sizes = [float(max(one.max(), -one.min())) for one in np.moveaxis(some, -1, 0)]
        largest = max(sizes)
        if min(sizes) >= largest / _ALIKE:
            return cls((1.0,) * n_inputs, start)
        return cls(tuple(2.0 ** round(math.log2(size / largest)) if size > 0.0 else 0.0 for size in sizes), start)
