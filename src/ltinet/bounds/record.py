"""What a run by solvers left behind in one layer, and the defect of it."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.collocation import PieceValues, Rule, radau, values_on_pieces
from ltinet.bounds.correction import integrated_defect
from ltinet.bounds.layer_errors import LayerEquations

_MORE_NODES = 4  # than the degree of dense outputs: digits that a followed error has beyond them


@dataclass(frozen=True, eq=False)
class DenseOutput:
    """A neuron's dense output: Chebyshev series `(pieces, degree + 1, components)` between breaks."""

    breaks: Array
    coefficients: Array


@dataclass(frozen=True, eq=False)
class LayerRecord:
    """Dense outputs of all neurons of a layer, and what the input gave to it, on pieces on which both are smooth."""

    outputs: tuple[DenseOutput, ...]
    grid: Array
    rule: Rule
    forcing: PieceValues
    """G u."""
    shift: PieceValues
    """J u."""
    forcing_size: Array
    shift_size: Array
    """The largest |G||u| and |J||u|, `(n,)`."""

    @property
    def lengths(self) -> Array:
        """Lengths of the pieces."""
        return np.diff(self.grid)


def piece_grid(outputs: tuple[DenseOutput, ...], knots: Array) -> tuple[Array, Rule]:
    """The pieces on which all dense outputs of a layer and its input are smooth, and the rule for them."""
    begin, end = outputs[0].breaks[0], outputs[0].breaks[-1]
    inner = knots[(knots > begin) & (knots < end)]
    grid = np.unique(np.concatenate([*(output.breaks for output in outputs), inner]))
    degree = max(output.coefficients.shape[1] - 1 for output in outputs)
    return grid, radau(degree + _MORE_NODES)


class MeasuredDefect(NamedTuple):
    """Dense outputs ẑ on all pieces, their integrated defect at the nodes, and what they jump by at the starts."""

    dense: PieceValues
    integrated: Array
    seams: Array


def measure_defect(equations: LayerEquations, record: LayerRecord) -> MeasuredDefect:
    """The defect of ẑ = (ξ, ξ̇) − J u, from the polynomials of the dense outputs."""
    start, nodes = -record.shift.start, -record.shift.nodes
    for own, output in zip(equations.places, record.outputs, strict=True):
        values = values_on_pieces(output.breaks, output.coefficients, grid=record.grid, rule=record.rule)
        start[:, own] += values.start
        nodes[:, :, own] += values.nodes
    dense = PieceValues(start, nodes)
    defect = integrated_defect(equations.F, record.forcing, dense, lengths=record.lengths, rule=record.rule)
    seams = np.zeros_like(start)
    seams[1:] = nodes[:-1, -1] - start[1:]
    return MeasuredDefect(dense, defect, seams)
