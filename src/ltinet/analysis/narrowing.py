"""The first place of an interval at which something holds, to 2⁻⁴² of it, from many places asked at once."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array

_POINTS, _ROUNDS = 129, 6  # 128⁶ = 2⁴² steps of the interval


def narrowed(holds: Callable[[Array], NDArray[np.bool_]], start: float, stop: float) -> float:
    """The first place of an interval at which something holds that holds at its end."""
    for _ in range(_ROUNDS):
        points = np.linspace(start, stop, _POINTS)
        places = np.flatnonzero(holds(points[1:]))
        first = int(places[0]) if len(places) else _POINTS - 2
        start, stop = float(points[first]), float(points[first + 1])
        if not start < stop:
            break
    return stop
