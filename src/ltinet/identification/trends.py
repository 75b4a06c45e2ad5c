"""Lines taken out of records before a subspace method sees them, where slopes are asked for."""

import numpy as np

from ltinet.arrays import Array
from ltinet.identification.linear_part import Trend
from ltinet.identification.record import Record


def level(records: tuple[Record, ...], trend: Trend) -> tuple[Record, ...]:
    """Records without the line of every channel, inputs and outputs, if the trend is one; as they are otherwise.

    A drift of outputs is a state at 1 to a subspace method, and takes the place of one of the system. A line of an
    input gives a line of the output, so that both go; the least squares that follow see records as they are.
    """
    return tuple(Record(_level(own.u), _level(own.y)) for own in records) if trend == "linear" else records


def _level(values: Array) -> Array:
    ramp = np.linspace(-1.0, 1.0, len(values))
    return np.asarray(values - values.mean(axis=0) - np.outer(ramp, ramp @ values) / max(float(ramp @ ramp), 1.0))
