"""What a structured matrix is found to be: its blocks, its T, and how that is told."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ltinet.decompose.structures.basis import Basis
from ltinet.decompose.structures.diagonal_blocks import DiagonalBlocks


@final
@dataclass(frozen=True, eq=False)
class Structure:
    """A T = T A_bd; blocks stand in any order."""

    told: str
    """What the matrix is, in words."""
    A: DiagonalBlocks
    rates: NDArray[np.complex128]
    """One eigenvalue for every state; of a pair a + iω, then a − iω."""
    block_sizes: NDArray[np.intp]
    basis: Basis
    stretch: tuple[float, float] = (1.0, 1.0)
    """The smallest and the largest singular value of T, or a little beyond them."""

    @property
    def condition(self) -> float:
        """cond₂(T), or a little more."""
        return self.stretch[1] / self.stretch[0]

    @property
    def has_pairs(self) -> bool:
        """Whether some eigenvalues are complex."""
        return bool(np.any(self.rates.imag != 0.0))


def sizes_of(rates: NDArray[np.complex128]) -> NDArray[np.intp]:
    """One for each real rate, two for each pair."""
    return np.where(rates.imag > 0.0, 2, 1)[rates.imag >= 0.0].astype(np.intp)
