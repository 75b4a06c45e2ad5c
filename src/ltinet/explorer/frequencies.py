"""Frequencies of a Bode diagram: those that the library chooses, thinned where there are more than a screen shows."""

import numpy as np

from ltinet.arrays import Array
from ltinet.state_space import StateSpace

_MOST = 600


def drawn_frequencies(system: StateSpace) -> Array:
    """At most 600 angular frequencies, those at peaks and dips of the gain among them."""
    omega = system.shown_frequencies()
    if len(omega) <= _MOST:
        return omega
    size = np.linalg.norm(system.frequency_response(omega), axis=(1, 2))
    turns = np.flatnonzero(np.diff(np.sign(np.diff(size))) != 0) + 1
    if len(turns) > _MOST // 2:  # the sharpest ones
        bend = np.abs(np.log(size[turns - 1] * size[turns + 1] / size[turns] ** 2))
        turns = turns[np.argsort(-bend)[: _MOST // 2]]
    even = np.linspace(0, len(omega) - 1, _MOST - len(turns)).astype(np.intp)
    return omega[np.union1d(turns, even)]
