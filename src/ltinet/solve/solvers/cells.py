"""Cells of time: between them bounds that are not followed in time may differ."""

import numpy as np
from numpy.typing import NDArray

from ltinet.tolerances import EPS

_CELLS = 128


def cells_between(start: float, stop: float) -> NDArray[np.float64]:
    """Edges of equal cells; a single time has one cell of next to no length."""
    if stop > start:
        return np.linspace(start, stop, _CELLS + 1)
    return np.array([start, start + EPS * (1.0 + abs(start))])
