"""A block-diagonal matrix of single neurons without its zeros: entries are asked for as an array is."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.model.matrices import Matrix


@final
@dataclass(frozen=True, eq=False)
class DiagonalBlocks:
    """Numbers on the diagonal and beside it, where pairs stand, and some blocks of several neurons."""

    diagonal: Array
    upper: Array
    """Entry (i, i + 1) at i, n in all: the last is zero."""
    lower: Array
    """Entry (i + 1, i) at i."""
    wide: tuple[tuple[int, Matrix], ...] = ()
    """Blocks of several neurons, by where they begin."""

    def __len__(self) -> int:
        return len(self.diagonal)

    def __getitem__(self, places: tuple[Any, Any]) -> Array:
        """Entries at rows and columns, arrays that fit each other, or the part that two slices cut out."""
        if isinstance(places[0], slice):
            rows, columns = (np.arange(*place.indices(len(self))) for place in places)
            return self[rows[:, None], columns]
        rows, columns = np.broadcast_arrays(*places)
        entries = np.where(rows == columns, self.diagonal[rows], 0.0)
        entries = np.where(columns == rows + 1, self.upper[rows], entries)
        entries = np.where(rows == columns + 1, self.lower[columns], entries)
        for start, block in self.wide:
            inside = (rows >= start) & (rows < start + len(block)) & (columns >= start) & (columns < start + len(block))
            entries[inside] = block[rows[inside] - start, columns[inside] - start]
        return entries

    def times(self, z: Array) -> Array:
        """The product with columns, n×k."""
        product = self.diagonal[:, None] * z
        product[:-1] += self.upper[:-1, None] * z[1:]
        product[1:] += self.lower[:-1, None] * z[:-1]
        for start, block in self.wide:
            own = slice(start, start + len(block))
            product[own] = block @ z[own]
        return product

    def reordered(self, states: NDArray[np.intp]) -> "DiagonalBlocks":
        """The same with whole blocks in another order: state i becomes what states[i] was."""
        place = np.empty_like(states)
        place[states] = np.arange(len(states))
        wide = tuple((int(place[start]), block) for start, block in self.wide)
        return DiagonalBlocks(self.diagonal[states], self.upper[states], self.lower[states], wide)

    def with_pairs(self, at: NDArray[np.intp], planes: Array) -> "DiagonalBlocks":
        """The same with other 2×2 blocks `(k, 2, 2)` at the states `(k, 2)`."""
        diagonal, upper, lower = self.diagonal.copy(), self.upper.copy(), self.lower.copy()
        diagonal[at[:, 0]], diagonal[at[:, 1]] = planes[:, 0, 0], planes[:, 1, 1]
        upper[at[:, 0]], lower[at[:, 0]] = planes[:, 0, 1], planes[:, 1, 0]
        return DiagonalBlocks(diagonal, upper, lower, self.wide)


def of_rates(rates: NDArray[np.complex128]) -> DiagonalBlocks:
    """Numbers for real rates, [[a, ω], [−ω, a]] for a pair a + iω, a − iω in a row."""
    first = rates.imag > 0.0
    upper = np.where(first, rates.imag, 0.0)
    return DiagonalBlocks(rates.real.copy(), upper, -upper)
