"""Turns of the planes of pairs: what they do to T and to T⁻¹."""

from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from ltinet.model.matrices import Matrix
from ltinet.tolerances import EPS

Planes: TypeAlias = NDArray[np.float64]
"""A stack of matrices, one for each pair."""

_ROWS = 256  # turned at a time, so that temporary copies stay small
_CANCELLED = 4.0 * EPS  # of two terms: each is rounded, and so are the cosine and the sine in it


@final
@dataclass(frozen=True)
class Turns:
    """Orthogonal 2×2 matrices, and the two columns of T that each of them turns: `(k, 2, 2)` and `(k, 2)`."""

    planes: Planes
    at: NDArray[np.intp]

    def of_columns(self, matrix: Matrix) -> Matrix:
        """Replace the columns [p, q] of each pair by [p, q] · turn; entries that cancel to rounding are zero."""
        turned = np.array(matrix)
        for start in range(0, len(matrix), _ROWS):
            rows = slice(start, start + _ROWS)
            p, q = matrix[rows, self.at[:, 0]], matrix[rows, self.at[:, 1]]
            for side in (0, 1):
                from_p, from_q = p * self.planes[:, 0, side], q * self.planes[:, 1, side]
                total = from_p + from_q
                total[np.abs(total) <= _CANCELLED * (np.abs(from_p) + np.abs(from_q))] = 0.0
                turned[rows, self.at[:, side]] = total
        return turned

    def of_rows(self, matrix: Matrix) -> Matrix:
        """What turned columns of T do to the rows of T⁻¹: the transpose of the turn from the left."""
        return self.of_columns(matrix.T).T

    @property
    def magnitudes(self) -> "Turns":
        """The same with every entry by its size."""
        return Turns(np.abs(self.planes), self.at)
