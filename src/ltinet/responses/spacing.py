"""How times are spaced where even ones would be too many: closest where the fastest mode that still swings asks."""

import math
from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array

_PER_RADIAN = 4.0  # of an oscillation: 25 in a period
FEWEST_PER_RADIAN = 1.0  # six in a period: with fewer a line between them is not the curve
_PER_DECADE = (400.0, 100.0)  # of times where nothing swings; the second where oscillations need the others
_HALVINGS = 60  # of an interval for a share of the times: all bits of it


class Swings(NamedTuple):
    """Frequencies of modes that oscillate, and until when each is seen."""

    frequencies: Array
    until: Array

    def fastest_from(self, time: float) -> float:
        """The largest frequency of what is still seen at a time."""
        return float(self.frequencies[self.until > time].max(initial=0.0))


def spaced_times(first: float, end: float, swings: Swings, most: int) -> tuple[Array, float | None]:
    """At most so many times from 0 to the end, and the slowest oscillation that they do not follow, None if all are.

    From `first` on they come in pieces that double in length. A piece is spaced logarithmically, or evenly where an
    oscillation asks for more. If all together are too many, every oscillation gets the same share of what it asks for.
    """
    edges = np.append(first * 2.0 ** np.arange(max(math.ceil(math.log2(end / first)), 1)), end)
    lengths = np.diff(edges)
    asked = np.array([swings.fastest_from(float(start)) for start in edges[:-1]])
    decades = np.log10(edges[1:] / edges[:-1])
    for per_decade in _PER_DECADE:
        quiet = np.ceil(per_decade * decades)
        if quiet.sum() + (_PER_RADIAN * asked * lengths).sum() <= most - 2:
            break
    density = _affordable(quiet, asked * lengths, most - 2 - len(lengths))
    pieces = [np.array([0.0, first])]
    for start, stop, rest, lively in zip(edges[:-1], edges[1:], quiet, density * asked * lengths, strict=True):
        count = math.ceil(max(rest, lively, 1.0))
        spaced = np.linspace(start, stop, count + 1) if lively > rest else np.geomspace(start, stop, count + 1)
        pieces.append(spaced[1:])
    missed = asked[(density < FEWEST_PER_RADIAN) & (density * asked * lengths > quiet)]
    return np.concatenate(pieces), float(missed.min()) if missed.size else None


def _affordable(quiet: Array, radians: Array, most: float) -> float:
    """The most times in a radian, at most four, with which all pieces together have no more times than may be."""
    low, high = 0.0, _PER_RADIAN
    if np.maximum(quiet, high * radians).sum() <= most:
        return high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.maximum(quiet, middle * radians).sum() <= most else (low, middle)
    return low
