"""The bound of an error that nobody has bounded: infinite, never guessed."""

from dataclasses import dataclass
from typing import final

import numpy as np

from ltinet.arrays import Array


@final
@dataclass(frozen=True)
class UnknownBound:
    """An error that nobody has bounded."""

    batch_shape: tuple[int, ...]
    n_outputs: int

    def at(self, t: Array) -> dict[str, Array]:
        """Infinite at all times."""
        return {"solver": np.full((*self.batch_shape, len(t), self.n_outputs), np.inf)}

    def overall(self) -> dict[str, Array]:
        """Infinite."""
        return {"solver": np.full((*self.batch_shape, self.n_outputs), np.inf)}
