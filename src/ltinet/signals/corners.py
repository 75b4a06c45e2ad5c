"""An input as the points that a picture joins by straight lines."""

import numpy as np

from ltinet.arrays import Array
from ltinet.signals.signal import Smooth


def input_corners(signal: Smooth, t: Array) -> tuple[Array, Array]:
    """Each time twice, with the values before and after it, so that holds look like steps and jumps stand upright."""
    first, last = t[0], t[-1]
    knots = signal.knots
    times = np.union1d(t, knots[(knots > first) & (knots < last)])
    values = np.stack([signal.value_before(times), signal.value(times)], axis=-2)
    values[..., 0, 0, :] = values[..., 0, 1, :]  # what was before the start has no part in the run
    return np.repeat(times, 2), values.reshape(*values.shape[:-3], 2 * len(times), values.shape[-1])
