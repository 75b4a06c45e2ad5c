"""The contract of an input signal, whatever it is made of."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]
Values = NDArray[np.float64]


class Signal(Protocol):
    """u(t), right-continuous, with every time at which it is not smooth known.

    Values are `(..., len(t), n_inputs)`, batches in front.
    """

    @property
    def n_inputs(self) -> int:
        """Number of input channels."""
        ...

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the batch, () for a single signal."""
        ...

    @property
    def start(self) -> float:
        """First time at which the signal is defined."""
        ...

    @property
    def stop(self) -> float:
        """Last time at which the signal is defined."""
        ...

    @property
    def knots(self) -> Times:
        """Sorted distinct times between which the signal is smooth, `start` and `stop` among them where finite."""
        ...

    def value(self, t: Times) -> Values:
        """u(t), the value after a jump."""
        ...

    def value_before(self, t: Times) -> Values:
        """u(t⁻), the value before a jump."""
        ...

    def derivative(self, t: Times) -> Values:
        """u̇(t) between knots, that of the piece that begins at t."""
        ...
