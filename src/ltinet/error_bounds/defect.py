"""Defect-based error bounds for dense outputs of ODE solvers.

1. The defect ẑ' − F ẑ − G u of the dense outputs ẑ is measured on every piece, from their polynomials and in
   integrated form, since differentiation would raise rounding errors by 1/length.
2. The error equation ε' = F ε − defect is solved with its sign by Radau collocation in the Schur basis of F, giving ε*.
3. The defect of ẑ + ε* and all rounding are bounded by gains, giving e.

Then |z − ẑ| ≤ |ε*| + e at all times; ε* = 0 would be the classical bound by gains alone. A polynomial of degree q is
held by its values at the start of a piece and at q right Radau points. If z' = f(z) holds there, z' − f is for linear f
a multiple of the polynomial that vanishes at all of them, and is largest at the start of the piece.

Tolerances of single neurons are chosen so that all add equally much to the output error: where the cost grows as a
small power of 1/error, this is nearly optimal. Neurons below that level at the loosest tolerance keep it.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import scipy  # which loads scipy.special when it is first used
from numpy.polynomial import chebyshev, legendre
from scipy import linalg

from ltinet._util.floating_point import EPS, Array, Complex
from ltinet.error_bounds.gains import LayerEquations, LayerGains

# MERGED ltinet.error_bounds.defect
# The rule by which errors are followed along a piece of time: Radau nodes, and polynomials through them.
#
# A polynomial of degree q is held by its values at the start of a piece and at the q right Radau points in it, the last
# of which is the end. If z' = f(z) holds at these points, then z' − f is, for linear f, a multiple of the one polynomial
# that vanishes at all of them, and that is largest at the start of the piece: its size there bounds it everywhere.


@dataclass(frozen=True, eq=False)
class CollocationRule:
    """Everything about q Radau points on (0, 1]."""

    nodes: Array
    integrals: Array
    """(q × q): from values of a polynomial at the nodes to its integrals from 0 to each of them."""
    at_start: Array
    """(q,): from values at the nodes to the value at 0 of the polynomial of degree q − 1 through them."""
    eigenvalues: Complex
    eigenvectors: Complex
    inverse_eigenvectors: Complex
    """integrals = eigenvectors · diag(eigenvalues) · inverse_eigenvectors."""
    to_series: Array
    """(q + 1 × q + 1): from values at 0 and at the nodes to Chebyshev coefficients on [0, 1]."""
    magnification: float
    """By how much values at 0 and the nodes can be exceeded in between (Lebesgue's constant)."""

    @property
    def n_nodes(self) -> int:
        """Q."""
        return len(self.nodes)


@cache
def radau_rule(n_nodes: int) -> CollocationRule:
    """The rule with q = `n_nodes` ≥ 2 points."""
    inner = np.asarray(scipy.special.roots_jacobi(n_nodes - 1, 1.0, 0.0)[0], dtype=np.float64)
    x = np.append(inner, 1.0)
    degrees = np.eye(n_nodes)
    from_values = np.linalg.inv(legendre.legvander(x, n_nodes - 1))
    antiderivatives = np.stack([legendre.legval(x, legendre.legint(row, lbnd=-1.0)) for row in degrees], axis=1)
    integrals = 0.5 * antiderivatives @ from_values
    values, vectors = np.linalg.eig(integrals)
    to_series = np.linalg.inv(chebyshev.chebvander(np.append(-1.0, x), n_nodes))
    dense = chebyshev.chebvander(np.linspace(-1.0, 1.0, 40 * n_nodes), n_nodes) @ to_series
    return CollocationRule(
        nodes=0.5 * (x + 1.0),
        integrals=integrals,
        at_start=legendre.legvander(np.array([-1.0]), n_nodes - 1)[0] @ from_values,
        eigenvalues=np.asarray(values, dtype=np.complex128),
        eigenvectors=np.asarray(vectors, dtype=np.complex128),
        inverse_eigenvectors=np.asarray(np.linalg.inv(vectors), dtype=np.complex128),
        to_series=to_series,
        magnification=float(np.max(np.sum(np.abs(dense), axis=1))),
    )


@dataclass(frozen=True, eq=False)
class PiecewiseValues:
    """Functions on all pieces of a grid: at the starts `(N, n)`, and at the nodes `(N, q, n)`, the ends among them."""

    start: Array
    nodes: Array

    @property
    def largest(self) -> Array:
        """The largest magnitude on each piece, `(N, n)`."""
        return np.asarray(np.maximum(np.abs(self.start), np.max(np.abs(self.nodes), axis=1)))


def evaluate_on_pieces(breaks: Array, coefficients: Array, *, grid: Array, rule: CollocationRule) -> PiecewiseValues:
    """Evaluate a piecewise Chebyshev series `(pieces, degree + 1, components)` on a grid that contains its breaks."""
    middle = 0.5 * (grid[:-1] + grid[1:])
    piece = np.clip(np.searchsorted(breaks, middle, side="right") - 1, 0, len(coefficients) - 1)
    left, width = breaks[piece], breaks[piece + 1] - breaks[piece]
    width = np.where(width > 0.0, width, 1.0)
    share = np.append(0.0, rule.nodes)
    x = 2.0 * ((grid[:-1] - left)[:, None] + np.diff(grid)[:, None] * share) / width[:, None] - 1.0
    series = coefficients[piece]
    later = np.zeros((*x.shape, coefficients.shape[2]))
    latest = later
    for k in range(series.shape[1] - 1, 0, -1):  # Clenshaw
        later, latest = series[:, None, k] + 2.0 * x[:, :, None] * later - latest, later
    values = series[:, None, 0] + x[:, :, None] * later - latest
    return PiecewiseValues(values[:, 0], values[:, 1:])


# MERGED ltinet.error_bounds.defect
# The error of dense outputs, followed through the equations of their layer with its sign.
#
# A dense output ẑ has the defect ẑ' − F ẑ − G u, and its error ε = z − ẑ obeys ε' = F ε − defect. The equation is solved
# by collocation on the pieces of the dense outputs, in the Schur basis of F, in which it is one scalar equation after the
# other. What this solution misses is bounded elsewhere, by gains: it needs few digits to be of use.


def integrated_defect(
    F: Array, forcing: PiecewiseValues, dense: PiecewiseValues, *, lengths: Array, rule: CollocationRule
) -> Array:
    """ẑ(t) − ẑ(start) − ∫(F ẑ + G u) at the nodes of every piece, `(N, q, n)`; `forcing` is G u.

    The integral of the defect and not the defect: differentiating ẑ would raise its rounding errors by 1/length.
    """
    slopes = dense.nodes @ F.T + forcing.nodes
    return np.asarray(dense.nodes - dense.start[:, None] - lengths[:, None, None] * (rule.integrals @ slopes))


def solve_error_equation(
    F: Array, defect: Array, seams: Array, *, lengths: Array, rule: CollocationRule
) -> PiecewiseValues:
    """Solve ε = ε(start) + ∫F ε − defect along all pieces; `seams` `(N, n)` is added to ε at the start of each."""
    T, U = linalg.schur(F, output="complex")
    own_defect, own_seams = defect @ U.conj(), seams @ U.conj()
    starts = np.zeros(own_seams.shape, dtype=np.complex128)
    nodes = np.zeros(own_defect.shape, dtype=np.complex128)
    integrals = rule.integrals
    for i in range(len(F) - 1, -1, -1):
        entering = nodes[:, :, i + 1 :] @ T[i, i + 1 :]
        right = lengths[:, None] * (entering @ integrals.T) - own_defect[:, :, i]
        damping = 1.0 / (1.0 - lengths[:, None] * T[i, i] * rule.eigenvalues)
        forced = ((right @ rule.inverse_eigenvectors.T) * damping) @ rule.eigenvectors.T
        free = (np.sum(rule.inverse_eigenvectors, axis=1) * damping) @ rule.eigenvectors.T
        starts[:, i] = _scalar_recurrence(free[:, -1], forced[:, -1], own_seams[:, i])
        nodes[:, :, i] = forced + starts[:, i, None] * free
    return PiecewiseValues(np.asarray((starts @ U.T).real), np.asarray((nodes @ U.T).real))


def _scalar_recurrence(factors: Complex, added: Complex, seams: Complex) -> Complex:
    """s_0 = seams_0, s_{n+1} = factors_n s_n + added_n + seams_{n+1}: a plain loop, scalars being fastest there."""
    state, states = 0j, []
    for factor, rest, seam in zip(
        np.append(0.0, factors[:-1]).tolist(), np.append(0.0, added[:-1]).tolist(), seams.tolist(), strict=True
    ):
        state = factor * state + rest + seam
        states.append(state)
    return np.array(states, dtype=np.complex128)


# MERGED ltinet.error_bounds.defect
# What a run by solvers left behind in one layer, and the defect of it.

_EXTRA_NODES = 4  # than the degree of dense outputs: digits that a followed error has beyond them


@dataclass(frozen=True, eq=False)
class DenseOutput:
    """A neuron's dense output: Chebyshev series `(pieces, degree + 1, components)` between breaks."""

    breaks: Array
    coefficients: Array


@dataclass(frozen=True, eq=False)
class LayerDenseOutput:
    """Dense outputs of all neurons of a layer, and what the input gave to it, on pieces on which both are smooth."""

    outputs: tuple[DenseOutput, ...]
    grid: Array
    rule: CollocationRule
    forcing: PiecewiseValues
    """G u."""
    shift: PiecewiseValues
    """J u."""
    forcing_size: Array
    shift_size: Array
    """The largest |G||u| and |J||u|, `(n,)`."""

    @property
    def lengths(self) -> Array:
        """Lengths of the pieces."""
        return np.diff(self.grid)


def common_pieces(outputs: tuple[DenseOutput, ...], knots: Array) -> tuple[Array, CollocationRule]:
    """The pieces on which all dense outputs of a layer and its input are smooth, and the rule for them."""
    begin, end = outputs[0].breaks[0], outputs[0].breaks[-1]
    inner = knots[(knots > begin) & (knots < end)]
    grid = np.unique(np.concatenate([*(output.breaks for output in outputs), inner]))
    degree = max(output.coefficients.shape[1] - 1 for output in outputs)
    return grid, radau_rule(degree + _EXTRA_NODES)


class MeasuredDefect(NamedTuple):
    """Dense outputs ẑ on all pieces, their integrated defect at the nodes, and what they jump by at the starts."""

    dense: PiecewiseValues
    integrated: Array
    seams: Array


def measure_defect(equations: LayerEquations, record: LayerDenseOutput) -> MeasuredDefect:
    """The defect of ẑ = (ξ, ξ̇) − J u, from the polynomials of the dense outputs."""
    start, nodes = -record.shift.start, -record.shift.nodes
    for own, output in zip(equations.places, record.outputs, strict=True):
        values = evaluate_on_pieces(output.breaks, output.coefficients, grid=record.grid, rule=record.rule)
        start[:, own] += values.start
        nodes[:, :, own] += values.nodes
    dense = PiecewiseValues(start, nodes)
    defect = integrated_defect(equations.F, record.forcing, dense, lengths=record.lengths, rule=record.rule)
    seams = np.zeros_like(start)
    seams[1:] = nodes[:-1, -1] - start[1:]
    return MeasuredDefect(dense, defect, seams)


# MERGED ltinet.error_bounds.defect
# A bound on the error of a layer's dense outputs: the error as far as it can be followed, and gains for the rest.
#
# 1. The defect of the dense outputs ẑ is measured on every piece, from their polynomials.
# 2. ε* follows the error through the equations of the layer, with its sign; ẑ + ε* is a better solution.
# 3. The defect of ẑ + ε* is measured too: what is left of it, and all rounding, is turned by the gains into e.
#
# Then |z − ẑ| ≤ |ε*| + e at all times. With ε* = 0 this would be the classical bound by gains alone, safe but larger by
# what signs cancel.

_ROUNDINGS_PER_VALUE = 4  # roundings in a value of a dense output, which is a sum of falling terms


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
        return max_over_cells(self.grid, np.sum(np.abs(self.series @ weights.T), axis=1), cells)


def bound_layer_error(gains: LayerGains, record: LayerDenseOutput, *, cells: Array) -> LayerErrorBound:
    """Bound the error of the dense outputs (ξ, ξ̇) of all neurons of a layer.

    Cost linear in the pieces and in the connections.
    """
    equations, rule, lengths = gains.equations, record.rule, record.lengths
    measured = measure_defect(equations, record)
    error = solve_error_equation(equations.F, measured.integrated, measured.seams, lengths=lengths, rule=rule)
    # J u is added to z and taken away again: rounding is relative to it too.
    size = measured.dense.largest + error.largest + record.shift_size
    left = _RemainingDefect(
        wrong=_start_defect(equations, record, measured.dense, error),
        rough=_collocation_residual(equations, record, measured.integrated, error),
        size=size,
        flow=size @ np.abs(equations.F).T + record.forcing_size,
    )
    values = np.concatenate([error.start[:, None], error.nodes], axis=1)
    return LayerErrorBound(
        grid=record.grid,
        series=np.einsum("kj,njc->nkc", rule.to_series, values),
        rest=_bound_remaining_error(gains, left, record=record, cells=cells),
        size=max_over_cells(record.grid, size, cells),
        defect=np.max(np.max(np.abs(measured.integrated), axis=1) / lengths[:, None], axis=0, initial=0.0),
    )


@dataclass(frozen=True, eq=False)
class _RemainingDefect:
    """What is left to bound on every piece, `(N, n)` each."""

    wrong: Array
    """Defect of the corrected solution."""
    rough: Array
    """Distance of its values at the nodes from the collocation equations."""
    size: Array
    flow: Array
    """Sizes of z and of z', to which rounding is relative."""


def _start_defect(
    equations: LayerEquations, record: LayerDenseOutput, dense: PiecewiseValues, error: PiecewiseValues
) -> Array:
    """The defect of ẑ + ε*, which vanishes at the nodes and is largest at the start of a piece."""
    slopes = (dense.nodes + error.nodes) @ equations.F.T + record.forcing.nodes
    first = (dense.start + error.start) @ equations.F.T + record.forcing.start
    return np.asarray(np.abs(np.einsum("j,njc->nc", record.rule.at_start, slopes) - first))


def _collocation_residual(
    equations: LayerEquations, record: LayerDenseOutput, defect: Array, error: PiecewiseValues
) -> Array:
    """By how much ε* at the nodes misses the collocation equations that it was computed from."""
    moved = record.lengths[:, None, None] * (record.rule.integrals @ (error.nodes @ equations.F.T))
    return np.asarray(np.max(np.abs(error.nodes - error.start[:, None] - moved + defect), axis=1))


def _bound_remaining_error(
    gains: LayerGains, left: _RemainingDefect, *, record: LayerDenseOutput, cells: Array
) -> Array:
    """E on every cell.

    Values at the nodes are off by `rough` and rounding: between nodes the corrected solution then is off by a little
    more, and it jumps between pieces. A jump is spread over the time of one cell after it, which makes it a defect.
    """
    equations, grid, rule = gains.equations, record.grid, record.rule
    sums = (equations.n_states + 4) * EPS  # a sum of n products is off by this share of its terms
    off = left.rough + _ROUNDINGS_PER_VALUE * EPS * left.size + sums * np.diff(grid)[:, None] * left.flow
    measured = left.wrong + sums * float(np.sum(np.abs(rule.at_start))) * left.flow
    jumps = _sums_in_cells(grid, 2.0 * off, cells)
    jumps[1:] += jumps[:-1].copy()
    shifted = max_over_cells(grid, rule.magnification * off, cells) + jumps
    source = max_over_cells(grid, measured, cells) + shifted @ np.abs(equations.F).T + jumps / (cells[1] - cells[0])
    return gains.propagate_in_time(source, cells=cells) + shifted


def max_over_cells(grid: Array, values: Array, edges: Array) -> Array:
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


# MERGED ltinet.error_bounds.defect
# Who may err by how much: tolerances of single neurons so that their errors together stay within a target.
#
# Where evaluations grow like a small power of 1/error they are nearly fewest in sum when all neurons add equally much to
# the error of the outputs. Neurons that add less even at the loosest tolerance stay there, and leave their shares to the
# others.

_MAX_CHANGE = 30.0  # of a tolerance at once: errors are proportional to tolerances only roughly


def neuron_error_contributions(equations: LayerEquations, record: LayerDenseOutput, weights: Array) -> Array:
    """What the defect of each neuron alone does to the outputs at most, `(n_neurons, p)`; one followed error each."""
    measured = measure_defect(equations, record)
    shares = []
    for own in equations.places:
        mask = np.zeros(equations.n_states)
        mask[list(own)] = 1.0
        error = solve_error_equation(
            equations.F, measured.integrated * mask, measured.seams * mask, lengths=record.lengths, rule=record.rule
        )
        values = np.concatenate([error.start[:, None], error.nodes], axis=1) @ weights.T
        series = np.einsum("kj,njc->nkc", record.rule.to_series, values)
        shares.append(np.max(np.sum(np.abs(series), axis=1), axis=0))
    return np.array(shares)


def equalising_level(most: Array, *, budget: float) -> float:
    """The λ with Σ min(most_i, λ) = budget; infinite if all together are within the budget."""
    if np.sum(most) <= budget:
        return np.inf
    ordered = np.sort(most)
    below = np.concatenate([[0.0], np.cumsum(ordered)[:-1]])
    levels = (budget - below) / np.arange(len(ordered), 0, -1)
    return float(levels[np.argmax(levels <= ordered)])


def update_tolerances(tolerances: Array, shares: Array, *, budget: float, loosest: float, tightest: float) -> Array:
    """Tolerances at which neurons are expected to add equal shares of the budget, or less if they cannot add more."""
    level = equalising_level(shares * (loosest / tolerances), budget=budget)
    wanted = np.divide(level, shares, out=np.full_like(shares, np.inf), where=shares > 0.0)
    change = np.clip(wanted, 1.0 / _MAX_CHANGE, _MAX_CHANGE)
    return np.asarray(np.clip(tolerances * change, tightest, loosest))
