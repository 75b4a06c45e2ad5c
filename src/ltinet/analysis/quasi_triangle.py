"""(s I − R)⁻¹ for many s and a real quasi-triangular R: by blocks from the last, all s together, in real products.

R stays real: to multiply complex columns by it takes half of what a complex triangle would, and no unitary form of R
has to be made first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array, Complex
from ltinet.model.matrices import Matrix
from ltinet.once import cached_property

Places = NDArray[np.intp] | slice
_TILE = 16  # rows at least that are brought up to date by one product of matrices, before they are solved
_SPARSE = 0.5  # share of entries that are not zero, below which columns that are zero are left out of products


class _Product(NamedTuple):
    """Rows to which a part of R times other rows is added."""

    rows: slice
    part: Matrix
    others: Places


class _Group(NamedTuple):
    """Diagonal blocks none of which needs another one's result: places among those alone and among the pairs."""

    product: _Product | None
    alone: slice
    pairs: range


@dataclass(frozen=True, eq=False)
class QuasiTriangle:
    """A real quasi-triangular matrix of at least one row, as LAPACK leaves the Schur form.

    Pairs are [[a, b], [c, a]] with bc < 0: eigenvalues a ± iω with ω = √|b|·√|c|.
    """

    R: Matrix

    @cached_property
    def pairs(self) -> NDArray[np.intp]:
        """First row of every 2×2 block."""
        return np.flatnonzero(self.R.diagonal(-1))

    @cached_property
    def alone(self) -> NDArray[np.intp]:
        """Rows of real eigenvalues."""
        return np.setdiff1d(np.arange(len(self.R)), np.concatenate([self.pairs, self.pairs + 1]))

    @cached_property
    def turned(self) -> "QuasiTriangle":
        """The transposed matrix upside down, which is an upper one again."""
        return QuasiTriangle(np.ascontiguousarray(self.R.T[::-1, ::-1]))

    def solve(self, s: Complex, right: Matrix | Complex) -> Complex:
        """(s I − R)⁻¹ times right-hand sides `(n, m, len(s))`, one for each s, or `(n, m, 1)`, the same for all."""
        n, m = len(self.R), right.shape[1]
        X = np.empty((n, m, len(s)), dtype=np.complex128)
        X[:] = right
        flat: Array = X.reshape(n, m * len(s)).view(np.float64)
        inverses = _Inverses(self, s)
        for first, groups in self._steps:
            _add(first, flat)
            for group in groups:
                _add(group.product, flat)
                inverses.apply(group, X)
        return X

    @cached_property
    def _steps(self) -> list[tuple[_Product | None, list[_Group]]]:
        """Tiles from the last on: what all rows behind add to its rows, and its groups."""
        stop, found = len(self.R), []
        for tile in _tiles(_groups(self.R, self.pairs), len(self.R)):
            start = tile[-1].start
            groups = [
                _Group(
                    self._product(rows, stop),
                    slice(*np.searchsorted(self.alone, (rows.start, rows.stop)).tolist()),
                    range(*np.searchsorted(self.pairs, (rows.start, rows.stop)).tolist()),
                )
                for rows in tile
            ]
            found.append((self._product(slice(start, stop), len(self.R)), groups))
            stop = start
        return found

    def _product(self, rows: slice, stop: int) -> _Product | None:
        """What the columns behind some rows, up to `stop`, add to these rows."""
        part = self.R[rows, rows.stop : stop]
        used = np.flatnonzero(part.any(axis=0))
        if not used.size:
            return None
        if used.size < _SPARSE * part.shape[1]:
            return _Product(rows, np.ascontiguousarray(part[:, used]), rows.stop + used)
        return _Product(rows, part, slice(rows.stop, stop))


def _add(product: _Product | None, flat: Array) -> None:
    if product is not None:
        flat[product.rows] += product.part @ flat[product.others]


def _groups(R: Matrix, pairs: NDArray[np.intp]) -> list[slice]:
    """Rows of blocks that can be solved together, since none needs another one's result; from the last on."""
    n = len(R)
    ends = np.arange(n) + 1
    ends[pairs] += 1
    beyond = (R != 0.0) & (np.arange(n) >= ends[:, None])
    needs = np.where(beyond.any(axis=1), beyond.argmax(axis=1), n)  # by row: the first result that it needs
    needs[pairs] = needs[pairs + 1] = np.minimum(needs[pairs], needs[pairs + 1])
    is_start = np.ones(n, dtype=np.bool_)
    is_start[pairs + 1] = False
    groups, stop, row = [], n, n
    for start in np.flatnonzero(is_start)[::-1].tolist():
        if needs[start] < stop and row < stop:
            groups.append(slice(row, stop))
            stop = row
        row = start
    return [*groups, slice(0, stop)]


def _tiles(groups: list[slice], n: int) -> Iterator[list[slice]]:
    """Groups that follow each other, so many that they have some rows."""
    tile: list[slice] = []
    for group in groups:
        tile.append(group)
        if tile[0].stop - group.start >= min(_TILE, n) or group.start == 0:
            yield tile
            tile = []


class _Inverses:
    """(s I − block)⁻¹ for all diagonal blocks.

    That of a pair is [[s − a, b], [c, s − a]] by (s − a − iω)(s − a + iω), which keeps the digits of s near an
    eigenvalue; one factor after the other, whose product would overflow for rates of 1e200.
    """

    def __init__(self, triangle: QuasiTriangle, s: Complex) -> None:
        R, pairs = triangle.R, triangle.pairs
        b, c = R[pairs, pairs + 1][:, None], R[pairs + 1, pairs][:, None]
        omega = 1j * (np.sqrt(np.abs(b)) * np.sqrt(np.abs(c)))
        distance = s - R.diagonal()[pairs][:, None]
        one, other = 1.0 / (distance - omega), 1.0 / (distance + omega)
        self.diagonal, self.above, self.below = distance * one * other, b * one * other, c * one * other
        self.scalars = (1.0 / (s - R.diagonal()[triangle.alone][:, None]))[:, None]
        self.alone, self.pairs = triangle.alone, pairs.tolist()

    def apply(self, group: _Group, X: Complex) -> None:
        """Multiply the blocks of a group in place."""
        if group.alone.start < group.alone.stop:
            X[self.alone[group.alone]] *= self.scalars[group.alone]
        for place in group.pairs:
            at, diagonal = self.pairs[place], self.diagonal[place]
            upper = diagonal * X[at] + self.above[place] * X[at + 1]
            X[at + 1] = self.below[place] * X[at] + diagonal * X[at + 1]
            X[at] = upper
