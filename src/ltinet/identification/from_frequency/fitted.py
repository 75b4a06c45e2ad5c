"""What is found of a measured frequency response, with the evidence for it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ltinet.arrays import Array, Complex
from ltinet.identification.from_frequency.checked import Measured
from ltinet.identification.from_frequency.orders import TriedOrder
from ltinet.identification.from_frequency.realisation import Realisation


@dataclass(frozen=True, eq=False)
class FittedResponse:
    """ẋ = A x + B u, y = C x + D u whose frequency response is near the measured one."""

    A: Array
    """Real, with diagonal blocks: single poles, pairs [[a, b], [c, a]], and what cannot be told apart together."""
    B: Array
    C: Array
    D: Array
    block_sizes: tuple[int, ...]
    poles: Complex
    """Eigenvalues of A, rad/s, block after block."""
    tried: tuple[TriedOrder, ...]
    """Orders that were compared, ascending; empty where one was asked for."""
    relative_errors: Array
    """Of each channel, (p, m): root mean square of the error over that of the data (the largest, if it is zero)."""
    warnings: tuple[str, ...]
    measured: Measured
    """The response that was given, checked."""
    weights: Array
    """What errors were multiplied with where they were compared, as H."""

    @property
    def order(self) -> int:
        """Number of states."""
        return len(self.A)

    def response(self, omega: ArrayLike) -> Complex:
        """H(jω) of the model, (len(omega), p, m)."""
        s = np.asarray(1j * np.asarray(omega, dtype=np.float64), dtype=np.complex128)
        return Realisation(self.A, self.B, self.C, self.D, self.block_sizes).response(s)
