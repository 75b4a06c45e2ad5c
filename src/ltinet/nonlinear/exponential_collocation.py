"""Exponential collocation with Picard iteration in windows of several steps.

In block coordinates z' = F z + g(z, t), where F is block diagonal and g has the inputs and the product neurons. In each
step g is interpolated at s = 8 Lobatto nodes, and the equation with this polynomial is solved exactly:

    Z_i = e^{c_i hF} z + h Σ_j W_ij g(Z_j, t_j),

so that no step length is limited by the eigenvalues of A, only by the products. The nodes of K steps are iterated at once
(Picard iteration; for linear g, waveform relaxation), in products of matrices that also hold all members of a batch.

Decisions, in this order:

1. Steps end at all knots. Equal distances of knots are divided by 2^level, and a window is up to 64 such steps.
2. If the iteration contracts by less than the factor `_MAX_CONTRACTION`, the window is halved; a single step has its level
   raised. Where a run would need more than `_MAX_STEPS` steps, and more than `_MAX_PARTS` per distance of knots, for the
   iteration to contract, the products are stiff: the run stops there and the caller continues with another method.
3. The error of a step is estimated by leaving out a node, relative to the largest state in balanced units and to the
   largest value of each output so far, for each member of a batch. It must not exceed the tolerance; the level follows from it.

The estimate of a step is pessimistic, since Lobatto nodes are superconvergent. The error of a run is estimated by a second
run with halved steps in the same windows (`error_estimates`). A window can be solved again from its first state, so that
nothing else is stored for dense output.
"""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ltinet._util.cache import LRUCache
from ltinet._util.floating_point import Array
from ltinet.errors import SimulationError
from ltinet.network.block_system import BlockSystem
from ltinet.nonlinear.exponential_weights import exponential_weights, lagrange_values, lobatto_nodes
from ltinet.nonlinear.product_neurons import ProductNeurons
from ltinet.nonlinear.signal_values import RunSignals, common_lengths

N_NODES = 8
# Longer windows need fewer calls and more iterations. Both are empirical and matter for speed only: of 4 to 64 steps, 64 are
# fastest for 20 states, 16 for 100 states, and 1 or 2 for batches of 16 and more.
_MAX_WINDOW = 64  # steps
_WINDOW_NUMBERS = 2**14  # numbers in a window
_MAX_CONTRACTION = 0.6
_MAX_ITERATIONS = 30
_FEW_ITERATIONS = 9  # up to which a longer window is tried (speed only)
_ITERATION_TOLERANCE = 0.05  # of the tolerance: last change of the iteration
_MAX_STEPS, _MAX_PARTS = 4096, 16
_FIRST_LEVEL = 4  # of a run without knots
_MAX_LEVEL = 45  # shorter steps are below the rounding of times
_ORDER = 8  # of the estimate in h
_LENGTHEN_BELOW = 2.0 ** -(_ORDER + 1)  # of the tolerance: twice the step has 2⁸ times the error, with a margin of 2
_OUTPUT_FLOOR = 1e-3  # of the largest output that the states could give: smaller outputs are not resolved separately
_MAX_TABLES = 64
_CHUNK = 256  # times within steps that are evaluated at once


class BlockGroup(NamedTuple):
    """Blocks of F of the same size: their states and matrices `(blocks, b, b)`."""

    states: slice
    F: Array


class StepTables(NamedTuple):
    """Matrices of K steps for one group, blocks first; rows and columns are (state of the block, node or step)."""

    nodes_from_start: Array
    """`(blocks, b s, b)`."""
    nodes_from_forcing: Array
    """`(blocks, b s, b s)`."""
    end_from_forcing: Array
    """`(blocks, b, b s)`."""
    dropped_node: Array
    """Change of the end if the middle node is left out."""
    ends_from_start: Array
    """`(blocks, b K, b)`."""
    ends_from_steps: Array
    """`(blocks, b K, b K)`."""


class Window(NamedTuple):
    """K steps of equal length: their times, length, first state, and the size of earlier states of each member."""

    times: Array
    """`(K + 1,)`."""
    h: float
    z: Array
    """`(n, M)`."""
    scale: Array
    """`(M,)`, in balanced units."""


class WindowSolution(NamedTuple):
    """Solution of a window: states at the starts and ends of steps `(n, K, M)`, g at all nodes `(n, s, K, M)`."""

    starts: Array
    ends: Array
    nodes: Array
    forcing: Array
    n_iterations: int


class StiffProductsError(Exception):
    """The products are too stiff for this method from a time on, with states `(n, M)`."""

    def __init__(self, t: float, z: Array) -> None:
        super().__init__(f"the products are stiff at t = {t:g}")
        self.t, self.z = t, z


class CollocationSystem:
    """Equations in block coordinates, with blocks of the same size next to each other."""

    def __init__(self, blocks: BlockSystem, neurons: ProductNeurons, T: Array, T_inv: Array, units: Array) -> None:
        sizes = np.array(blocks.block_sizes, dtype=np.intp)
        starts = np.cumsum(sizes) - sizes
        self.groups, parts, first = [], [np.zeros(0, dtype=np.intp)], 0
        for size in np.unique(sizes).tolist():
            indices = starts[sizes == size][:, None] + np.arange(size)
            F = np.array([blocks.A[np.ix_(block, block)] for block in indices])
            self.groups.append(BlockGroup(slice(first, first + indices.size), F))
            parts.append(indices.ravel())
            first += indices.size
        order = np.concatenate(parts)
        self.T, self.T_inv = np.ascontiguousarray(T[:, order]), np.ascontiguousarray(T_inv[order])
        n_zero = neurons.n_scheduling
        self.B = np.hstack([blocks.B, np.zeros((len(T), n_zero)), neurons.W_in])[order]
        self.left, self.right = neurons.left[:, order], neurons.right[:, order]
        fed = np.any(neurons.W_out != 0.0, axis=0)  # products that reach outputs only do not belong to the equation
        fed[: len(self.right)] = True
        self.left, self.W_out = self.left[fed], np.ascontiguousarray(neurons.W_out[np.ix_(order, fed)])
        self.signal = neurons.signal[fed[len(self.right) :]]
        self.is_square = np.array_equal(self.right, self.left[: len(self.right)])
        self.pairs, self.n_inputs = neurons.pairs, neurons.n_inputs
        self.state_rows, self.output_rows = self.T / units[:, None], blocks.C[:, order]
        self.weights = np.abs(self.state_rows).max(axis=0, initial=0.0)
        self.reach = np.abs(self.output_rows @ self.T_inv) @ units  # largest outputs of states of size one
        self.nodes = lobatto_nodes(N_NODES)
        self._tables: LRUCache[list[StepTables]] = LRUCache(_MAX_TABLES)

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.T)

    @property
    def largest_block(self) -> int:
        """Number of states of the largest block."""
        return max((group.F.shape[-1] for group in self.groups), default=0)

    def external(self, signals: Array) -> Array:
        """Return (v, p, ρ) from (v, p) `(m + l, …)`."""
        first, second = signals[self.n_inputs + self.pairs[:, 0]], signals[self.pairs[:, 1]]
        return np.concatenate([signals, first * second]) if len(self.pairs) else signals

    def forcing(self, z: Array, signals: Array, external: Array) -> Array:
        """Return g `(n, …)` at states z; `external` are the contributions of inputs."""
        if not len(self.left):
            return np.ascontiguousarray(np.broadcast_to(external, z.shape))
        flat, q = z.reshape(len(z), -1), len(self.right)
        products = self.left @ flat
        if q:
            products[:q] *= products[:q] if self.is_square else self.right @ flat
        if len(self.signal):
            shaped = products[q:].reshape(-1, *z.shape[1:])
            shaped *= signals[self.signal]
        g = (self.W_out @ products).reshape(z.shape)
        g += external
        return g

    def tables(self, h: float, K: int) -> list[StepTables]:
        """Return the matrices of K steps of length h."""
        return self._tables.get((h, K), lambda: [_step_tables(group.F, h, K, self.nodes) for group in self.groups])

    def solve(self, window: Window, signals: RunSignals, tolerance: float) -> WindowSolution | None:
        """Solve a window; None if the iteration does not contract."""
        K, n_members = len(window.times) - 1, window.z.shape[-1]
        tables = self.tables(window.h, K)
        values = _values_at_nodes(signals, window.times, self.nodes)
        external = self.external(values)
        external = (self.B @ external.reshape(len(external), -1)).reshape(len(self.B), *external.shape[1:])
        start = np.broadcast_to(window.z[:, None, None, :], (self.n_states, N_NODES, K, n_members))
        forcing = self.forcing(np.ascontiguousarray(start), values, external)
        nodes, previous = start, 0.0
        for iteration in range(1, _MAX_ITERATIONS + 1):
            starts, ends, updated = self._apply(tables, window.z, forcing, K)
            changes = (self.weights[:, None] * np.abs(updated - nodes).max(axis=(1, 2))).max(axis=0)
            change = float(np.max(_relative(changes, np.maximum(window.scale, _largest(self.state_rows, ends)[0]))))
            if not math.isfinite(change):
                return None
            nodes = updated
            if change <= _ITERATION_TOLERANCE * tolerance:
                return WindowSolution(starts, ends, nodes, forcing, iteration)
            if iteration > 3 and change > _MAX_CONTRACTION * previous:
                return None
            previous = change
            forcing = self.forcing(nodes, values, external)
        return None

    def _apply(self, tables: list[StepTables], z: Array, forcing: Array, K: int) -> tuple[Array, Array, Array]:
        """Return states at starts, ends and nodes of all steps from g at the nodes."""
        n_members = z.shape[-1]
        shape = (len(z), K, n_members)
        starts, ends, nodes = np.empty(shape), np.empty(shape), np.empty(forcing.shape)
        for (states, F), table in zip(self.groups, tables, strict=True):
            count, b = len(F), F.shape[-1]
            g = forcing[states].reshape(count, b * N_NODES, K * n_members)
            steps = (table.end_from_forcing @ g).reshape(count, b * K, n_members)
            first = z[states].reshape(count, b, n_members)
            after = (table.ends_from_start @ first + table.ends_from_steps @ steps).reshape(count, b, K, n_members)
            before = np.concatenate([first[:, :, None], after[:, :, :-1]], axis=2)
            starts[states], ends[states] = (part.reshape(count * b, K, n_members) for part in (before, after))
            at_nodes = table.nodes_from_start @ before.reshape(count, b, -1) + table.nodes_from_forcing @ g
            nodes[states] = at_nodes.reshape(count * b, N_NODES, K, n_members)
        return starts, ends, nodes

    def step_error(self, window: Window, solution: WindowSolution) -> Array:
        """Return the change of the end of each step if a node is left out, `(n, K, M)`."""
        tables = self.tables(window.h, len(window.times) - 1)
        parts = [
            (table.dropped_node @ solution.forcing[states].reshape(len(F), F.shape[-1] * N_NODES, -1)).reshape(
                len(F) * F.shape[-1], -1
            )
            for (states, F), table in zip(self.groups, tables, strict=True)
        ]
        return np.concatenate(parts).reshape(solution.ends.shape)

    def evaluate(self, window: Window, solution: WindowSolution, t: Array) -> Array:
        """Return states z `(n, T, M)` at times within a window."""
        step = np.clip(np.searchsorted(window.times, t, side="right") - 1, 0, len(window.times) - 2)
        z = np.ascontiguousarray(solution.starts[:, step])
        z[:, t == window.times[-1]] = solution.ends[:, -1:]
        inside = np.flatnonzero((t != window.times[step]) & (t != window.times[-1]))
        for first in range(0, len(inside), _CHUNK):
            at = inside[first : first + _CHUNK]
            begin, end = window.times[step[at]], window.times[step[at] + 1]
            starts, forcing = solution.starts[:, step[at]], solution.forcing[:, :, step[at]]
            z[:, at] = self._within_steps(window.h, (t[at] - begin) / (end - begin), starts, forcing)
        return z

    def _within_steps(self, h: float, theta: Array, starts: Array, forcing: Array) -> Array:
        """Return states at fractions θ of steps, `(n, θ, M)`, from their starts and g at their nodes."""
        z = np.empty(starts.shape)
        for states, F in self.groups:
            count, b = len(F), F.shape[-1]
            E, W = _node_matrices(F, h, theta, self.nodes)
            first = starts[states].reshape(count, b, *starts.shape[1:]).swapaxes(1, 2)
            g = forcing[states].reshape(count, b * N_NODES, *starts.shape[1:]).swapaxes(1, 2)
            values = (E @ first + W.reshape(*W.shape[:3], -1) @ g).swapaxes(1, 2)
            z[states] = values.reshape(-1, *starts.shape[1:])
        return z


def _node_matrices(F: Array, h: float, fractions: Array, nodes: Array) -> tuple[Array, Array]:
    """Return e^{θhF} `(blocks, θ, b, b)` and the weights of g at the nodes `(blocks, θ, b, b, s)`."""
    weights = exponential_weights(h * fractions[:, None, None] * F[:, None], nodes)
    values = lagrange_values(nodes, np.outer(fractions, nodes).ravel()).reshape(len(fractions), len(nodes), -1)
    scaled = h * fractions[:, None, None] * values
    return weights.exponential, weights.R @ scaled[None, :, None]


def _step_tables(F: Array, h: float, K: int, nodes: Array) -> StepTables:
    count, b, s = len(F), F.shape[-1], len(nodes)
    E, W = _node_matrices(F, h, nodes, nodes)
    at_nodes = W.transpose(0, 2, 1, 3, 4)  # (blocks, b, node, b, s)
    end = at_nodes[:, :, -1]
    kept = np.delete(np.arange(s), s // 2)
    without = np.zeros_like(end)
    without[..., kept] = h * exponential_weights(h * F, nodes[kept]).R
    powers = [np.broadcast_to(np.eye(b), F.shape), E[:, -1]]
    while len(powers) <= K:
        powers.append(powers[-1] @ E[:, -1])
    zero = np.zeros_like(F)
    steps = np.stack([np.stack([powers[k - j] if j <= k else zero for j in range(K)]) for k in range(K)])
    return StepTables(
        nodes_from_start=np.ascontiguousarray(E.transpose(0, 2, 1, 3)).reshape(count, b * s, b),
        nodes_from_forcing=np.ascontiguousarray(at_nodes).reshape(count, b * s, b * s),
        end_from_forcing=np.ascontiguousarray(end).reshape(count, b, b * s),
        dropped_node=np.ascontiguousarray(end - without).reshape(count, b, b * s),
        ends_from_start=np.ascontiguousarray(np.stack(powers[1 : K + 1]).transpose(1, 2, 0, 3)).reshape(
            count, b * K, b
        ),
        ends_from_steps=np.ascontiguousarray(steps.transpose(2, 3, 0, 4, 1)).reshape(count, b * K, b * K),
    )


def _values_at_nodes(signals: RunSignals, times: Array, nodes: Array) -> Array:
    """Return (v, p) at the nodes of all steps, `(m + l, s, K, M or 1)`; at the last node before a jump."""
    K, s = len(times) - 1, len(nodes)
    inner = times[:-1, None] + nodes[:-1] * np.diff(times)[:, None]
    values = signals.after(inner.ravel())
    values = values.reshape(len(values), K, s - 1, -1).swapaxes(1, 2)
    return np.concatenate([values, signals.before(times[1:])[:, None]], axis=1)


# Runs


class Segment(NamedTuple):
    """Knots `(N + 1,)` at equal distances."""

    knots: Array
    distance: float


def split_into_segments(knots: Array) -> list[Segment]:
    """Return runs of knots at equal distances."""
    lengths = common_lengths(knots)
    changes = np.flatnonzero(np.diff(lengths)) + 1
    bounds = [0, *changes.tolist(), len(lengths)]
    return [Segment(knots[first : last + 1], float(lengths[first])) for first, last in pairwise(bounds) if last > first]


def integrate(
    system: CollocationSystem, signals: RunSignals, z: Array, knots: Array, tolerance: float
) -> Iterator[tuple[Window, WindowSolution]]:
    """Integrate from the first knot to the last and yield windows with their solutions.

    Raises StiffProductsError where the iteration needs too many steps, SimulationError where states grow without bound.
    """
    state_scale, output_scale = np.abs(system.state_rows @ z).max(axis=0), np.abs(system.output_rows @ z)
    segments = split_into_segments(knots)
    largest_window = max(1, min(_MAX_WINDOW, _WINDOW_NUMBERS // max(1, system.n_states * N_NODES * z.shape[-1])))
    h_last, K, K_limit = math.inf, largest_window, largest_window
    n_knots = sum(len(segment.knots) - 1 for segment in segments)
    for knots, distance in segments:
        N = len(knots) - 1
        max_level = max(round(math.log2(_MAX_PARTS)), math.ceil(math.log2(_MAX_STEPS / n_knots)))
        level = _FIRST_LEVEL if n_knots == 1 else 0
        if h_last < distance:
            level = max(level, math.ceil(math.log2(distance / h_last) - 1e-9))
        position = 0
        while position < N * 2**level:
            remaining = N * 2**level - position
            steps = 2 ** int(math.log2(min(K, remaining)))
            times = _step_times(knots, position + np.arange(steps + 1), level)
            window = Window(times, distance / 2**level, z, state_scale)
            solution = system.solve(window, signals, tolerance)
            if solution is None:
                if steps > 1:
                    K = K_limit = steps // 2  # longer windows of this step length would fail again
                    continue
                if level >= max_level:
                    raise StiffProductsError(float(times[0]), z)
                level, position, K_limit = level + 1, 2 * position, largest_window
                continue
            new_states = np.maximum(state_scale, _largest(system.state_rows, solution.ends)[0])
            new_outputs = np.maximum(output_scale, _largest(system.output_rows, solution.ends, by_row=True))
            error = system.step_error(window, solution)
            floor = _OUTPUT_FLOOR * system.reach[:, None] * new_states
            of_states = _relative(_largest(system.state_rows, error)[0], new_states)
            of_outputs = _relative(_largest(system.output_rows, error, by_row=True), np.maximum(new_outputs, floor))
            excess = max(float(of_states.max()), float(of_outputs.max(initial=0.0))) / tolerance
            if excess > 1.0:
                halvings = max(1, math.ceil(math.log2(excess) / _ORDER))
                level, position = level + halvings, position * 2**halvings
                if level > _MAX_LEVEL:
                    raise SimulationError(
                        f"the states grow without bound near t = {times[0]:.6g}: steps become shorter than the rounding of "
                        "times. End the run earlier, or use smaller inputs."
                    )
                continue
            yield window, solution
            z, state_scale, output_scale = np.ascontiguousarray(solution.ends[:, -1]), new_states, new_outputs
            position += steps
            if level:  # otherwise knots limit the step, and longer ones may do as well
                h_last = window.h
            if solution.n_iterations <= _FEW_ITERATIONS:
                K = min(2 * K, K_limit)
            if excess <= _LENGTHEN_BELOW and level and position % 2 == 0:
                level, position, h_last, K_limit = level - 1, position // 2, 2.0 * window.h, largest_window


def _largest(rows: Array, values: Array, *, by_row: bool = False) -> Array:
    """Return the largest |rows · values| over all steps for values `(n, K, M)`, `(1, M)`, or `(rows, M)` by row."""
    sizes = np.abs(rows @ values.reshape(len(values), -1)).reshape(len(rows), *values.shape[1:]).max(axis=1)
    return np.asarray(sizes if by_row else sizes.max(axis=0, keepdims=True))


def _relative(errors: Array, sizes: Array) -> Array:
    """Return errors / sizes, absolute errors where the size is zero."""
    return np.asarray(errors / np.where(sizes > 0.0, sizes, 1.0))


def halved(window: Window, z: Array) -> list[Window]:
    """Return two windows of half the steps that cover a window; the first begins at z."""
    middle = 0.5 * (window.times[:-1] + window.times[1:])
    times = np.insert(window.times, np.arange(1, len(window.times)), middle)
    half = len(window.times) - 1
    return [Window(part, 0.5 * window.h, z, window.scale) for part in (times[: half + 1], times[half:])]


def _step_times(knots: Array, positions: Any, level: int) -> Array:
    """Return the times of steps counted in parts 2^−level of distances of knots; knots themselves are exact."""
    index, part = np.divmod(positions, 2**level)
    last = np.minimum(index + 1, len(knots) - 1)
    return np.asarray(knots[index] + (part / 2.0**level) * (knots[last] - knots[index]))
