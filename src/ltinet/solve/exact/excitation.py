"""What moves a system in a run, as far as trials take it: inputs of some sizes, and the states that it begins in."""

from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.signals.sampled import SampledSignal

_LOOKED_AT = 256  # samples, about: enough to tell which inputs are used, and how large they are beside each other
_MEMBERS, _KINDS = 64, 4  # of a batch that are looked at, about, and kinds of them that are told apart
_ALIKE = 64.0  # times smaller: inputs that trials do not tell from the largest

_SMALLEST = 2.0**-1022  # of the largest: what is less is not told apart

Sizes = tuple[float, ...]


class Excitation(NamedTuple):
    """Sizes of inputs beside the largest of them, and states `(batch, n)` of the user."""

    inputs: tuple[Sizes, ...]
    """One or more kinds of them, as members of a batch may differ: powers of two, so that few trials serve many."""
    start: Array | None = None

    @classmethod
    def unknown(cls, n_inputs: int) -> "Excitation":
        """All inputs alike."""
        return cls(((1.0,) * n_inputs,))

    @classmethod
    def of(cls, samples: SampledSignal, start: Array | None) -> "Excitation":
        """That of a run."""
        n_inputs = samples.u.shape[-1]
        if n_inputs < 2 or not samples.u.size:
            return cls(((1.0,) * n_inputs,), start)
        u = samples.u.reshape(-1, *samples.u.shape[-2:])
        some = u[:: max(1, len(u) // _MEMBERS), :: max(1, u.shape[1] // _LOOKED_AT)]
        sizes = np.maximum(some.max(axis=1), -some.min(axis=1))
        kinds = dict.fromkeys(map(_beside_largest, sizes))
        return cls(tuple(kinds)[:_KINDS], start)


def _beside_largest(sizes: Array) -> Sizes:
    largest = sizes.max()
    if sizes.min() >= largest / _ALIKE:
        return (1.0,) * len(sizes)
    exponents = np.rint(np.log2(np.maximum(sizes / largest, _SMALLEST))).astype(np.intp)
    return tuple(np.where(sizes > 0.0, np.ldexp(1.0, exponents), 0.0).tolist())
