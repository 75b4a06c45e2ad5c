"""The bound on the error of a solution, of all signals of a batch."""

from dataclasses import dataclass

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.output_errors import OutputErrorBound


@dataclass(frozen=True, eq=False)
class SolutionErrorBound:
    """The bounds of all signals of a batch."""

    bounds: tuple[OutputErrorBound, ...]
    batch_shape: tuple[int, ...]
    origin: float = 0.0
    """The time that the bounds count theirs from."""

    def at(self, t: Array) -> dict[str, Array]:
        """The parts at any times, `(..., len(t), p)` each."""
        return self._stacked([bound.at(t - self.origin) for bound in self.bounds])

    def overall(self) -> dict[str, Array]:
        """The parts over all times, `(..., p)` each."""
        return self._stacked([bound.overall() for bound in self.bounds])

    def _stacked(self, parts: list[dict[str, Array]]) -> dict[str, Array]:
        return {
            name: np.stack([own[name] for own in parts]).reshape(*self.batch_shape, *parts[0][name].shape)
            for name in parts[0]
        }
