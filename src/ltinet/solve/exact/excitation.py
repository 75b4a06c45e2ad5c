"""What moves a system in a run, as far as trials take it: inputs of some sizes, and the states that it begins in."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.signals.sampled import SampledSignal
from ltinet.solve.exact.sizes import peaks

# Samples, about, of each member of a batch: enough to tell which inputs are used, and how large they are beside each
# other; of all members together, and of each at least.
_LOOKED_AT, _OF_ALL, _OF_EACH = 256, 2**16, 32
_KINDS = 16  # of members that are tried
_ALIKE = 64.0  # times smaller: inputs that trials do not tell from the largest
_SMALLEST = 2.0**-1022  # of the largest: what is less is not told apart

Sizes = tuple[float, ...]


class Kinds(NamedTuple):
    """The kinds of inputs in a batch, by their sizes beside the largest of them."""

    sizes: tuple[Sizes, ...]
    """Powers of two, so that few trials serve many runs."""
    of_members: NDArray[np.intp]
    """Which of them each member has, `(batch,)`."""

    @classmethod
    def of(cls, samples: SampledSignal) -> "Kinds":
        """Those of a run."""
        u = samples.u.reshape(math.prod(samples.batch_shape), *samples.u.shape[-2:])
        sizes = peaks(looked_at(u))
        if u.shape[-1] < 2 or _ALIKE * sizes.min(initial=np.inf) >= sizes.max(initial=0.0):
            return cls(((1.0,) * u.shape[-1],), np.zeros(len(u), dtype=np.intp))
        kinds: dict[Sizes, int] = {}
        places = [kinds.setdefault(own, len(kinds)) for own in map(tuple, _beside_largest(sizes).tolist())]
        return cls(tuple(kinds), np.array(places, dtype=np.intp))


class Excitation(NamedTuple):
    """Sizes of inputs beside the largest of them, and states `(batch, n)` of the user."""

    inputs: tuple[Sizes, ...]
    """One or more kinds of them, as members of a batch may differ."""
    start: Array | None = None

    @classmethod
    def unknown(cls, n_inputs: int) -> "Excitation":
        """All inputs alike."""
        return cls(((1.0,) * n_inputs,))

    @classmethod
    def of(cls, samples: SampledSignal, start: Array | None) -> "Excitation":
        """That of a run."""
        return cls(Kinds.of(samples).sizes[:_KINDS], start)


def looked_at(values: Array) -> Array:
    """Some samples of each member `(batch, T, m)`: enough to tell how large they are."""
    number = min(_LOOKED_AT, max(_OF_EACH, _OF_ALL // max(1, len(values))))
    return values[:, :: max(1, values.shape[1] // number)]


def _beside_largest(sizes: Array) -> Array:
    """Sizes `(batch, m)` beside the largest of each member."""
    largest = sizes.max(axis=1)
    beside = sizes / np.where(largest > 0.0, largest, 1.0)[:, None]
    exponents = np.rint(np.log2(np.maximum(beside, _SMALLEST))).astype(np.intp)
    told = np.where(sizes > 0.0, np.ldexp(1.0, exponents), 0.0)
    told[beside.min(axis=1) >= 1.0 / _ALIKE] = 1.0
    told[largest == 0.0] = 1.0
    return np.asarray(told)
