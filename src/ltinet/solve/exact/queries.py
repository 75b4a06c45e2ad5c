"""Times at which a run is asked for, in the order in which it passes them, some at a time.

Pieces of a run are walked once, and what is looked up for the times of a piece is gone before the next: for millions of
times their order is all that is kept, and where they ascend not even that.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array


class Queries(NamedTuple):
    """Some times between the samples of one piece."""

    piece: int
    at: slice | NDArray[np.intp]
    """Which of the times they are."""
    before: NDArray[np.intp]
    """The last sample up to each."""


def in_order(t: Array, samples: Array, *, length: int, at_once: int) -> Iterator[Queries]:
    """Times t among samples that come in pieces of one length, up to `at_once` of them together."""
    order = None if np.all(t[1:] >= t[:-1]) else np.argsort(t)
    for begin in range(0, len(t), at_once):
        own = slice(begin, min(begin + at_once, len(t)))
        times = t[own] if order is None else t[order[own]]
        before = np.clip(np.searchsorted(samples, times, side="right") - 1, 0, len(samples) - 1)
        pieces = before // length
        edges = [0, *(np.flatnonzero(np.diff(pieces)) + 1).tolist(), len(times)]
        for first, stop in pairwise(edges):
            part = slice(begin + first, begin + stop)
            yield Queries(int(pieces[first]), part if order is None else order[part], before[first:stop])
