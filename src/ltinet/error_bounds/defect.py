"""Defect-based error bounds for dense outputs of ODE solvers.

1. The defect ẑ' − F ẑ − G u of the dense outputs ẑ is measured on every piece, from their polynomials and in
   integrated form, since differentiation would raise rounding errors by 1/length.
2. The error equation ε' = F ε − defect is solved with its sign by Radau collocation in the Schur basis of F, giving ε*.
3. The defect of ẑ + ε* and all rounding are bounded by gains, giving e.

Then |z − ẑ| ≤ |ε*| + e at all times; ε* = 0 would be the classical bound by gains alone, which is larger since signs
do not cancel in it. A polynomial of degree q is represented by its values at the start of a piece and at q right Radau
points, the last of which is the end. If z' = f(z) holds at these points, then z' − f is for linear f a multiple of the
polynomial that vanishes at all of them, and is largest at the start of the piece.

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
from ltinet._util.piecewise_polynomials import PiecewisePolynomial, clenshaw
from ltinet.error_bounds.gains import LayerEquations, LayerGains

_EXTRA_NODES = 4  # collocation nodes beyond the degree of dense outputs: digits of ε* beyond those of the solver
_VALUE_ROUNDINGS = 4  # eps: rounding of a value of a dense output, a Chebyshev sum whose terms decrease
_MAX_CHANGE = 30.0  # largest factor on a tolerance in one update: errors are proportional to tolerances only roughly


# Collocation


@dataclass(frozen=True, eq=False)
class CollocationRule:
    """Nodes and matrices of collocation at q right Radau points on (0, 1]."""

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
    lebesgue_constant: float
    """Largest ratio of the polynomial of degree q on [0, 1] to its values at 0 and at the nodes."""

    @property
    def n_nodes(self) -> int:
        """Number of nodes q."""
        return len(self.nodes)


@cache
def radau_rule(n_nodes: int) -> CollocationRule:
    """Return the rule with q = `n_nodes` ≥ 2 points."""
    inner = np.asarray(scipy.special.roots_jacobi(n_nodes - 1, 1.0, 0.0)[0], dtype=np.float64)
    x = np.append(inner, 1.0)
    from_values = np.linalg.inv(legendre.legvander(x, n_nodes - 1))
    unit_vectors = np.eye(n_nodes)
    antiderivatives = np.stack([legendre.legval(x, legendre.legint(row, lbnd=-1.0)) for row in unit_vectors], axis=1)
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
        lebesgue_constant=float(np.max(np.sum(np.abs(dense), axis=1))),
    )


@dataclass(frozen=True, eq=False)
class PiecewiseValues:
    """Values of functions on N pieces of a grid: at the starts `(N, n)`, and at the nodes `(N, q, n)`."""

    start: Array
    nodes: Array

    @property
    def largest(self) -> Array:
        """Largest magnitude on each piece, `(N, n)`."""
        return np.asarray(np.maximum(np.abs(self.start), np.max(np.abs(self.nodes), axis=1)))

    @property
    def all_values(self) -> Array:
        """Values at the starts and at the nodes, `(N, q + 1, n)`."""
        return np.concatenate([self.start[:, None], self.nodes], axis=1)


def evaluate_on_pieces(path: PiecewisePolynomial, *, grid: Array, rule: CollocationRule) -> PiecewiseValues:
    """Evaluate a piecewise polynomial on a grid that contains its breaks."""
    middle = 0.5 * (grid[:-1] + grid[1:])
    piece = np.clip(np.searchsorted(path.breaks, middle, side="right") - 1, 0, len(path.coefficients) - 1)
    left, width = path.breaks[piece], path.breaks[piece + 1] - path.breaks[piece]
    width = np.where(width > 0.0, width, 1.0)
    fraction = np.append(0.0, rule.nodes)
    x = 2.0 * ((grid[:-1] - left)[:, None] + np.diff(grid)[:, None] * fraction) / width[:, None] - 1.0
    values = clenshaw(path.coefficients[piece][:, None], x)
    return PiecewiseValues(values[:, 0], values[:, 1:])


def integrated_defect(
    F: Array, forcing: PiecewiseValues, dense: PiecewiseValues, *, lengths: Array, rule: CollocationRule
) -> Array:
    """Return ẑ(t) − ẑ(start) − ∫(F ẑ + G u) at the nodes of every piece, `(N, q, n)`; `forcing` is G u."""
    slopes = dense.nodes @ F.T + forcing.nodes
    return np.asarray(dense.nodes - dense.start[:, None] - lengths[:, None, None] * (rule.integrals @ slopes))


def solve_error_equation(
    F: Array, defect: Array, jumps: Array, *, lengths: Array, rule: CollocationRule
) -> PiecewiseValues:
    """Solve ε = ε(start) + ∫F ε − defect along all pieces; `jumps` `(N, n)` is added to ε at the start of each.

    In the Schur basis of F these are scalar equations, solved from the last to the first.
    """
    T, U = linalg.schur(F, output="complex")
    schur_defect, schur_jumps = defect @ U.conj(), jumps @ U.conj()
    starts = np.zeros(schur_jumps.shape, dtype=np.complex128)
    nodes = np.zeros(schur_defect.shape, dtype=np.complex128)
    for i in range(len(F) - 1, -1, -1):
        entering = nodes[:, :, i + 1 :] @ T[i, i + 1 :]
        right = lengths[:, None] * (entering @ rule.integrals.T) - schur_defect[:, :, i]
        damping = 1.0 / (1.0 - lengths[:, None] * T[i, i] * rule.eigenvalues)
        forced = ((right @ rule.inverse_eigenvectors.T) * damping) @ rule.eigenvectors.T
        free = (np.sum(rule.inverse_eigenvectors, axis=1) * damping) @ rule.eigenvectors.T
        starts[:, i] = _scalar_recurrence(free[:, -1], forced[:, -1], schur_jumps[:, i])
        nodes[:, :, i] = forced + starts[:, i, None] * free
    return PiecewiseValues(np.asarray((starts @ U.T).real), np.asarray((nodes @ U.T).real))


def _scalar_recurrence(factors: Complex, added: Complex, jumps: Complex) -> Complex:
    """Return s_0 = jumps_0, s_{n+1} = factors_n s_n + added_n + jumps_{n+1}; a loop over Python scalars is fastest."""
    state, states = 0j, []
    for factor, rest, jump in zip(
        np.append(0.0, factors[:-1]).tolist(), np.append(0.0, added[:-1]).tolist(), jumps.tolist(), strict=True
    ):
        state = factor * state + rest + jump
        states.append(state)
    return np.array(states, dtype=np.complex128)


# Defect of the dense outputs of a layer


@dataclass(frozen=True, eq=False)
class LayerDenseOutput:
    """Dense outputs of all neurons of a layer and the forcing by the input, on pieces on which both are smooth."""

    outputs: tuple[PiecewisePolynomial, ...]
    grid: Array
    rule: CollocationRule
    forcing: PiecewiseValues
    """G u."""
    shift: PiecewiseValues
    """J u."""
    forcing_size: Array
    shift_size: Array
    """Largest |G||u| and |J||u|, `(n,)`."""

    @property
    def lengths(self) -> Array:
        """Lengths of the pieces."""
        return np.diff(self.grid)


def common_pieces(outputs: tuple[PiecewisePolynomial, ...], knots: Array) -> tuple[Array, CollocationRule]:
    """Return the grid between whose points all dense outputs of a layer and its input are smooth, and its rule."""
    begin, end = outputs[0].breaks[0], outputs[0].breaks[-1]
    inner = knots[(knots > begin) & (knots < end)]
    grid = np.unique(np.concatenate([*(output.breaks for output in outputs), inner]))
    degree = max(output.coefficients.shape[1] - 1 for output in outputs)
    return grid, radau_rule(degree + _EXTRA_NODES)


class MeasuredDefect(NamedTuple):
    """Dense outputs ẑ on all pieces, their integrated defect at the nodes, and their jumps at the starts."""

    dense: PiecewiseValues
    integrated: Array
    jumps: Array


def measure_defect(equations: LayerEquations, record: LayerDenseOutput) -> MeasuredDefect:
    """Return the defect of ẑ = (ξ, ξ̇) − J u, from the polynomials of the dense outputs."""
    start, nodes = -record.shift.start, -record.shift.nodes
    for indices, output in zip(equations.state_indices, record.outputs, strict=True):
        values = evaluate_on_pieces(output, grid=record.grid, rule=record.rule)
        start[:, indices] += values.start
        nodes[:, :, indices] += values.nodes
    dense = PiecewiseValues(start, nodes)
    defect = integrated_defect(equations.F, record.forcing, dense, lengths=record.lengths, rule=record.rule)
    jumps = np.zeros_like(start)
    jumps[1:] = nodes[:-1, -1] - start[1:]
    return MeasuredDefect(dense, defect, jumps)


# Error bound of a layer


@dataclass(frozen=True, eq=False)
class LayerErrorBound:
    """Error bound |z − ẑ| ≤ |ε*| + rest for the states of one layer."""

    grid: Array
    series: Array
    """ε* as Chebyshev series on the pieces of the grid, `(N, q + 1, n)`."""
    rest: Array
    """e on every cell of time, `(cells, n)`."""
    size: Array
    """Largest |ẑ| and |J u| on every cell, `(cells, n)`."""

    def error_estimate(self, t: Array) -> Array:
        """Return ε*(t), `(len(t), n)`."""
        piece = np.clip(np.searchsorted(self.grid, t, side="right") - 1, 0, len(self.series) - 1)
        width = self.grid[piece + 1] - self.grid[piece]
        x = 2.0 * (t - self.grid[piece]) / np.where(width > 0.0, width, 1.0) - 1.0
        angles = np.arange(self.series.shape[1]) * np.arccos(np.clip(x, -1.0, 1.0))[:, None]
        return np.asarray(np.einsum("tk,tkn->tn", np.cos(angles), self.series[piece]))

    def output_error(self, cells: Array, weights: Array) -> Array:
        """Return bounds on |weights ε*| on every cell, `(cells, p)`: the sum of the coefficients, since |T_k| ≤ 1.

        Where outputs outnumber states, weights = Q R with orthonormal columns of Q, and R ε* is bounded: cheaper.
        """
        if len(weights) > weights.shape[1]:
            Q, R = np.linalg.qr(weights)
            return np.asarray(self.output_error(cells, R) @ np.abs(Q).T)
        return max_over_cells(self.grid, np.sum(np.abs(self.series @ weights.T), axis=1), cells)


def bound_layer_error(gains: LayerGains, record: LayerDenseOutput, *, cells: Array) -> LayerErrorBound:
    """Bound the error of the dense outputs (ξ, ξ̇) of all neurons of a layer.

    Cost linear in the pieces and in the connections.
    """
    F, rule, lengths = gains.equations.F, record.rule, record.lengths
    dense, integrated, jumps = measure_defect(gains.equations, record)
    error = solve_error_equation(F, integrated, jumps, lengths=lengths, rule=rule)
    # The defect of ẑ + ε* vanishes at the nodes and is largest at the start of a piece.
    slopes = (dense.nodes + error.nodes) @ F.T + record.forcing.nodes
    first = (dense.start + error.start) @ F.T + record.forcing.start
    defect = np.abs(np.einsum("j,njc->nc", rule.at_start, slopes) - first)
    # ε* at the nodes satisfies the collocation equations up to rounding in their solution.
    moved = lengths[:, None, None] * (rule.integrals @ (error.nodes @ F.T))
    residual = np.max(np.abs(error.nodes - error.start[:, None] - moved + integrated), axis=1)
    # J u is added to z and subtracted again: rounding is relative to it too.
    size = dense.largest + error.largest + record.shift_size
    derivative_size = size @ np.abs(F).T + record.forcing_size
    remaining = _RemainingDefect(defect, residual, size, derivative_size)
    return LayerErrorBound(
        grid=record.grid,
        series=np.einsum("kj,njc->nkc", rule.to_series, error.all_values),
        rest=_bound_remaining_error(gains, remaining, record=record, cells=cells),
        size=max_over_cells(record.grid, size, cells),
    )


class _RemainingDefect(NamedTuple):
    """Sources of error that ε* does not include, on every piece, `(N, n)` each."""

    defect: Array
    """Defect of the corrected solution."""
    residual: Array
    """Residual of the collocation equations at the nodes."""
    size: Array
    derivative_size: Array
    """Sizes of z and of z', to which rounding is relative."""


def _bound_remaining_error(
    gains: LayerGains, remaining: _RemainingDefect, *, record: LayerDenseOutput, cells: Array
) -> Array:
    """Return e on every cell.

    Values at the nodes are off by the residual and rounding: between nodes the corrected solution then is off by a
    little more, and it jumps between pieces. A jump is spread over one cell after it, which makes it a defect.
    """
    F, grid, rule = gains.equations.F, record.grid, record.rule
    rounding = (gains.equations.n_states + 4) * EPS  # relative rounding of a sum of n products
    values_off = (
        remaining.residual
        + _VALUE_ROUNDINGS * EPS * remaining.size
        + rounding * np.diff(grid)[:, None] * remaining.derivative_size
    )
    defect = remaining.defect + rounding * float(np.sum(np.abs(rule.at_start))) * remaining.derivative_size
    jumps = np.zeros((len(cells) - 1, values_off.shape[1]))
    np.add.at(jumps, np.clip(np.searchsorted(cells, grid[:-1], side="right") - 1, 0, len(jumps) - 1), 2.0 * values_off)
    jumps[1:] += jumps[:-1].copy()
    shifted = max_over_cells(grid, rule.lebesgue_constant * values_off, cells) + jumps
    source = max_over_cells(grid, defect, cells) + shifted @ np.abs(F).T + jumps / (cells[1] - cells[0])
    return gains.propagate_in_time(source, cells=cells) + shifted


def max_over_cells(grid: Array, values: Array, edges: Array) -> Array:
    """Return the largest values `(N, …)` of the pieces of a grid that overlap each interval between edges."""
    first = np.clip(np.searchsorted(grid, edges[:-1], side="right") - 1, 0, len(values) - 1)
    last = np.clip(np.searchsorted(grid, edges[1:], side="left"), first + 1, len(values))
    padded = np.concatenate([values, values[-1:]])
    return np.asarray(np.maximum.reduceat(padded, np.column_stack([first, last]).ravel(), axis=0)[::2])


# Tolerances of single neurons


def neuron_error_contributions(equations: LayerEquations, record: LayerDenseOutput, weights: Array) -> Array:
    """Return the largest effect of the defect of each neuron alone on the outputs, `(n_neurons, p)`.

    The cost is one solution of the error equation per neuron.
    """
    measured = measure_defect(equations, record)
    contributions = []
    for indices in equations.state_indices:
        mask = np.zeros(equations.n_states)
        mask[list(indices)] = 1.0
        error = solve_error_equation(
            equations.F, measured.integrated * mask, measured.jumps * mask, lengths=record.lengths, rule=record.rule
        )
        series = np.einsum("kj,njc->nkc", record.rule.to_series, error.all_values @ weights.T)
        contributions.append(np.max(np.sum(np.abs(series), axis=1), axis=0))
    return np.array(contributions)


def equalizing_level(limits: Array, *, budget: float) -> float:
    """Return the λ with Σ min(limits_i, λ) = budget, or infinity if the sum of all limits is within the budget."""
    if np.sum(limits) <= budget:
        return np.inf
    ordered = np.sort(limits)
    below = np.concatenate([[0.0], np.cumsum(ordered)[:-1]])
    levels = (budget - below) / np.arange(len(ordered), 0, -1)
    return float(levels[np.argmax(levels <= ordered)])


def update_tolerances(
    tolerances: Array, contributions: Array, *, budget: float, loosest: float, tightest: float
) -> Array:
    """Return tolerances at which neurons are expected to contribute equally to the budget, or less where they cannot.

    Contributions `(n_neurons,)` are assumed to be proportional to tolerances.
    """
    level = equalizing_level(contributions * (loosest / tolerances), budget=budget)
    factors = np.divide(level, contributions, out=np.full_like(contributions, np.inf), where=contributions > 0.0)
    change = np.clip(factors, 1.0 / _MAX_CHANGE, _MAX_CHANGE)
    return np.asarray(np.clip(tolerances * change, tightest, loosest))
