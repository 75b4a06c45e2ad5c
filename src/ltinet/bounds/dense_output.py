"""A bound on the error of a layer's dense outputs: the error as far as it can be followed, and gains for the rest.

1. The defect of the dense outputs ẑ is measured on every piece, from their polynomials.
2. ε* follows the error through the equations of the layer, with its sign; ẑ + ε* is a better solution.
3. The defect of ẑ + ε* is measured too: what is left of it, and all rounding, is turned by the gains into e.

Then |z − ẑ| ≤ |ε*| + e at all times. With ε* = 0 this would be the classical bound by gains alone, safe but larger by
what signs cancel.
"""

from dataclasses import dataclass

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.collocation import PieceValues
from ltinet.bounds.correction import follow_error
from ltinet.bounds.layer_errors import LayerEquations, LayerGains
from ltinet.bounds.record import LayerRecord, measure_defect
from ltinet.tolerances import EPS

_VALUES = 4  # roundings in a value of a dense output, which is a sum of falling terms


@dataclass(frozen=True, eq=False)
class LayerErrorBound:
    """|z − ẑ| ≤ |ε*| + rest for the states of one layer."""

    grid: Array
    series: Array
    """ε* as Chebyshev series on the pieces of the grid, `(N, q + 1, n)`."""
    rest: Array
    """e on every cell of time, `(cells, n)`."""
    size: Array
    """How large ẑ and J u are on every cell, `(cells, n)`."""
    defect: Array
    """The largest mean defect of the rows of z' over a piece, `(n,)`."""

    def followed(self, t: Array) -> Array:
        """ε*(t), `(len(t), n)`."""
        piece = np.clip(np.searchsorted(self.grid, t, side="right") - 1, 0, len(self.series) - 1)
        width = self.grid[piece + 1] - self.grid[piece]
        x = 2.0 * (t - self.grid[piece]) / np.where(width > 0.0, width, 1.0) - 1.0
        angles = np.arange(self.series.shape[1]) * np.arccos(np.clip(x, -1.0, 1.0))[:, None]
        return np.asarray(np.einsum("tk,tkn->tn", np.cos(angles), self.series[piece]))

    def followed_on(self, cells: Array, weights: Array) -> Array:
        """Bounds on |weights ε*| on every cell, `(cells, len(weights))`: |T_k| ≤ 1, so the coefficients' sum does.

        Where outputs outnumber states, weights = Q R with orthonormal columns of Q, and R ε* is bounded: cheaper.
        """
        if len(weights) > weights.shape[1]:
            Q, R = np.linalg.qr(weights)
            return np.asarray(self.followed_on(cells, R) @ np.abs(Q).T)
        return largest_between(self.grid, np.sum(np.abs(self.series @ weights.T), axis=1), cells)


def bound_layer(gains: LayerGains, record: LayerRecord, *, cells: Array) -> LayerErrorBound:
    """Bound the error of the dense outputs (ξ, ξ̇) of all neurons of a layer.

    Cost linear in the pieces and in the connections.
    """
    equations, rule, lengths = gains.equations, record.rule, record.lengths
    measured = measure_defect(equations, record)
    error = follow_error(equations.F, measured.integrated, measured.seams, lengths=lengths, rule=rule)
    # J u is added to z and taken away again: rounding is relative to it too.
    size = measured.dense.largest + error.largest + record.shift_size
    left = _Left(
        wrong=_missed(equations, record, measured.dense, error),
        rough=_unsolved(equations, record, measured.integrated, error),
        size=size,
        flow=size @ np.abs(equations.F).T + record.forcing_size,
    )
    values = np.concatenate([error.start[:, None], error.nodes], axis=1)
    return LayerErrorBound(
        grid=record.grid,
        series=np.einsum("kj,njc->nkc", rule.to_series, values),
        rest=_rest(gains, left, record=record, cells=cells),
        size=largest_between(record.grid, size, cells),
        defect=np.max(np.max(np.abs(measured.integrated), axis=1) / lengths[:, None], axis=0, initial=0.0),
    )


@dataclass(frozen=True, eq=False)
class _Left:
    """What is left to bound on every piece, `(N, n)` each."""

    wrong: Array
    """Defect of the corrected solution."""
    rough: Array
    """Distance of its values at the nodes from the collocation equations."""
    size: Array
    flow: Array
    """Sizes of z and of z', to which rounding is relative."""


def _missed(equations: LayerEquations, record: LayerRecord, dense: PieceValues, error: PieceValues) -> Array:
    """The defect of ẑ + ε*, which vanishes at the nodes and is largest at the start of a piece."""
    slopes = (dense.nodes + error.nodes) @ equations.F.T + record.forcing.nodes
    first = (dense.start + error.start) @ equations.F.T + record.forcing.start
    return np.asarray(np.abs(np.einsum("j,njc->nc", record.rule.at_start, slopes) - first))


def _unsolved(equations: LayerEquations, record: LayerRecord, defect: Array, error: PieceValues) -> Array:
    """By how much ε* at the nodes misses the collocation equations that it was computed from."""
    moved = record.lengths[:, None, None] * (record.rule.integrals @ (error.nodes @ equations.F.T))
    return np.asarray(np.max(np.abs(error.nodes - error.start[:, None] - moved + defect), axis=1))


def _rest(gains: LayerGains, left: _Left, *, record: LayerRecord, cells: Array) -> Array:
    """E on every cell.

    Values at the nodes are off by `rough` and rounding: between nodes the corrected solution then is off by a little
    more, and it jumps between pieces. A jump is spread over the time of one cell after it, which makes it a defect.
    """
    equations, grid, rule = gains.equations, record.grid, record.rule
    sums = (equations.n_states + 4) * EPS  # a sum of n products is off by this share of its terms
    off = left.rough + _VALUES * EPS * left.size + sums * np.diff(grid)[:, None] * left.flow
    measured = left.wrong + sums * float(np.sum(np.abs(rule.at_start))) * left.flow
    jumps = _sums_in_cells(grid, 2.0 * off, cells)
    jumps[1:] += jumps[:-1].copy()
    shifted = largest_between(grid, rule.magnification * off, cells) + jumps
    source = largest_between(grid, measured, cells) + shifted @ np.abs(equations.F).T + jumps / (cells[1] - cells[0])
    return gains.propagate_in_time(source, cells=cells) + shifted


def largest_between(grid: Array, values: Array, edges: Array) -> Array:
    """The largest values `(N, …)` of pieces of a grid that overlap each interval between edges."""
    first = np.clip(np.searchsorted(grid, edges[:-1], side="right") - 1, 0, len(values) - 1)
    last = np.clip(np.searchsorted(grid, edges[1:], side="left"), first + 1, len(values))
    padded = np.concatenate([values, values[-1:]])
    return np.asarray(np.maximum.reduceat(padded, np.column_stack([first, last]).ravel(), axis=0)[::2])


def _sums_in_cells(grid: Array, values: Array, edges: Array) -> Array:
    """Sums of values `(N, n)` over the pieces that begin in each cell."""
    cell = np.clip(np.searchsorted(edges, grid[:-1], side="right") - 1, 0, len(edges) - 2)
    sums = np.zeros((len(edges) - 1, values.shape[1]))
    np.add.at(sums, cell, values)
    return sums
