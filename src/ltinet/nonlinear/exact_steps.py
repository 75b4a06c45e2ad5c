"""Exact steps of bilinear and linear parameter-varying systems under zero hold, and the bound on their rounding.

While inputs and scheduling signals are constant the equations are linear, and

    [x(t + h); 1] = exp(h [[A + Σ v_k N_k + Σ p_l A_l, (B + Σ p_l B_l) v], [0, 0]]) [x(t); 1].

One exponential is computed for each level (v, p) and length h that occurs.

Errors obey e_{k+1} = Φ_k e_k + δ_k with |δ_k| ≤ |Φ̂_k − Φ_k| |x_k| + γ |Φ̂_k| |x_k| + |h − ĥ| |M_k x_{k+1}|: the error of the
exponential, from one in double-double arithmetic, the rounding of the product, and that of the length. The set of possible
e_k is kept as a zonotope {G ε, |ε| ≤ 1} (Girard 2005, Reachability of uncertain linear systems using zonotopes), which
linear maps transform without loss; |e_k| ≤ Σ_j |G_j|. Four matrices of generators of similar age are merged into a
parallelepiped of n generators, so that each error is enclosed log₄ K times in a run of K steps, not in every step.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from ltinet._util.cache import LRUCache
from ltinet._util.floating_point import EPS, Array
from ltinet._util.text import format_count, sanitize
from ltinet.error_bounds.double_double_exponentials import double_double_matrix_exponentials
from ltinet.errors import InvalidSignalError, SimulationError
from ltinet.nonlinear.models import NonlinearModel
from ltinet.nonlinear.signal_values import RunSignals, common_lengths
from ltinet.signals.arrays import as_real_array

_MERGED_GENERATORS = 4  # matrices of generators that are merged into one; more are slower and the bound is tighter
_MAX_EXPONENTIALS = 256  # of a stepper, for as many levels
_ZONOTOPE_ROUNDING = 1.01  # factor for the rounding of the zonotope itself, far below 1e-2 of it


def level_matrices(model: NonlinearModel, levels: Array, *, sizes: bool = False) -> Array:
    """Return [[A + Σ v_k N_k + Σ p_l A_l, (B + Σ p_l B_l) v], [0, 0]] for levels (v, p) `(L, m + l)`.

    With `sizes` all numbers are replaced by their absolute values: rounding errors are relative to that.
    """
    size = np.abs if sizes else np.asarray
    n, m, terms, levels = model.n_states, model.n_inputs, model.terms, size(levels)
    matrices = np.zeros((len(levels), n + 1, n + 1))
    matrices[:, :n, :n] = size(model.A)
    matrices[:, :n, n] = levels[:, :m] @ size(model.B).T
    first = 0 if terms.N else m
    for factor, matrix in zip(levels.T[first:], (*terms.N, *terms.A_p), strict=True):
        if matrix.nnz:
            matrices[:, :n, :n] += factor[:, None, None] * size(matrix.toarray())
    for factor, B in zip(levels.T[m:], terms.B_p, strict=True):
        matrices[:, :n, n] += factor[:, None] * (levels[:, :m] @ size(B).T)
    return matrices


class Grid(NamedTuple):
    """Times of steps, and for each step and member of the batch the exponential that it takes."""

    times: Array
    lengths: Array
    """Length of each step as used, `(K,)`."""
    choice: NDArray[np.intp]
    """Index of the exponential, `(K, M or 1)`."""
    levels: Array
    """Length and (v, p) of each exponential, `(distinct, 1 + m + l)`."""
    matrices: Array
    """h [[A …], [0, 0]] of each exponential, `(distinct, n + 1, n + 1)`."""
    exponentials: Array


def build_grid(model: NonlinearModel, signals: RunSignals, times: Array) -> Grid:
    """Return the steps between ascending times, among them all knots, with one exponential for each level and length."""
    lengths = common_lengths(times)
    levels = signals.after(times[:-1])  # (m + l, K, members)
    keys = np.concatenate([np.broadcast_to(lengths[:, None], (1, *levels.shape[1:])), levels])
    flat = keys.reshape(len(keys), -1)
    first, choice = _distinct_columns(flat)
    distinct = flat[:, first].T
    matrices = distinct[:, 0, None, None] * level_matrices(model, distinct[:, 1:])
    exponentials = linalg.expm(matrices) if len(distinct) else matrices
    return Grid(times, lengths, choice.reshape(levels.shape[1:]), distinct, matrices, exponentials)


def _distinct_columns(columns: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the index of the first of each group of equal columns, and for each column its group.

    Rows are numbered one after the other: sorting numbers is three times as fast as `numpy.unique(axis=…)` on records.
    """
    first, group = np.arange(min(columns.shape[1], 1)), np.zeros(columns.shape[1], dtype=np.intp)
    for row in columns:
        values, index = np.unique(row, return_inverse=True)
        _, first, group = np.unique(group * len(values) + index, return_index=True, return_inverse=True)
    return first, group


def run_steps(grid: Grid, x0: Array) -> Array:
    """Return states `(K + 1, M, n)` at the times of a grid from x0 `(M, n)`."""
    n_members, n = x0.shape
    augmented = np.ones((len(grid.times), n_members, n + 1))
    augmented[0, :, :n] = x0
    shared = grid.choice.shape[1] == 1
    with np.errstate(over="ignore", invalid="ignore"):
        if shared and n_members == 1:
            rows, exponentials = list(augmented[:, 0]), list(grid.exponentials)
            for k, choice in enumerate(grid.choice[:, 0].tolist()):
                np.dot(exponentials[choice], rows[k], out=rows[k + 1])
        else:
            for k in range(len(grid.times) - 1):
                if shared:
                    augmented[k + 1] = augmented[k] @ grid.exponentials[grid.choice[k, 0]].T
                else:
                    augmented[k + 1] = (grid.exponentials[grid.choice[k]] @ augmented[k, :, :, None])[:, :, 0]
    states = augmented[:, :, :n]
    if not np.isfinite(states).all():
        first = int(np.argmin(np.isfinite(states).all(axis=(1, 2))))
        raise SimulationError(f"the states overflow at t = {grid.times[first]:.6g}; end the run earlier")
    return states


@dataclass(frozen=True, eq=False)
class ExactPiece:
    """Exact solution under zero hold, with states at all knots and requested times."""

    model: NonlinearModel
    signals: RunSignals
    grid: Grid
    states: Array
    """`(K + 1, M, n)`."""

    @classmethod
    def solve(cls, model: NonlinearModel, signals: RunSignals, x0: Array, times: Array) -> "ExactPiece":
        """Take all steps between ascending times, which include the knots."""
        grid = build_grid(model, signals, times)
        return cls(model, signals, grid, run_steps(grid, x0))

    def states_at(self, t: Array) -> Array:
        """Return states `(M, T, n)`; those between times of the grid take one more step each."""
        times = self.grid.times
        index = np.clip(np.searchsorted(times, t, side="right") - 1, 0, len(times) - 1)
        result = np.ascontiguousarray(self.states[index].swapaxes(0, 1))
        missing = np.unique(t[times[index] != t])
        if len(missing):
            refined = ExactPiece.solve(self.model, self.signals, self.states[0], np.union1d(times, missing))
            at = np.searchsorted(refined.grid.times, t)
            result = np.ascontiguousarray(refined.states[at].swapaxes(0, 1))
        return result

    def output_errors(self, t: Array) -> Array:
        """Return bounds on the errors of outputs at some times, `(M, T, p)`; times beside the grid are added to it."""
        if not np.isin(t, self.grid.times).all():
            times = np.union1d(self.grid.times, t)
            return ExactPiece.solve(self.model, self.signals, self.states[0], times).output_errors(t)
        errors = _exponential_errors(self.model, self.grid)
        return np.stack([self._member_errors(member, errors, t) for member in range(self.states.shape[1])])

    def _member_errors(self, member: int, errors: Array, t: Array) -> Array:
        grid, model, n, m = self.grid, self.model, self.states.shape[2], self.model.n_inputs
        column = min(member, grid.choice.shape[1] - 1)
        wanted = set(np.searchsorted(grid.times, t).tolist())
        levels = self.signals.after(grid.times)
        levels = levels[:, :, min(member, levels.shape[2] - 1)].T
        rounding, output_rounding = (n + 3) * EPS, (n + m + 2 * model.n_scheduling + 4) * EPS
        zonotope, bounds = _Zonotope(), {}
        true_lengths = np.diff(grid.times)
        for k in range(len(grid.times)):
            x, v, p = self.states[k, member], levels[k, :m], levels[k, m:]
            if k in wanted:
                C = model.terms.scheduled("C_p", model.C, p)
                size = _size(model.C, model.terms.C_p, p) @ np.abs(x) + _size(model.D, model.terms.D_p, p) @ np.abs(v)
                bounds[k] = _ZONOTOPE_ROUNDING * zonotope.radius(C) + output_rounding * size
            if k == len(grid.times) - 1:
                break
            choice = grid.choice[k, column]
            augmented = np.append(np.abs(x), 1.0)
            new = errors[choice] @ augmented + rounding * (np.abs(grid.exponentials[choice]) @ augmented)
            shift = abs(float(true_lengths[k] - grid.lengths[k])) + EPS * abs(float(grid.times[k + 1]))
            speed = np.abs(grid.matrices[choice] @ np.append(self.states[k + 1, member], 1.0)) / grid.lengths[k]
            zonotope.step(grid.exponentials[choice][:n, :n], (new + shift * speed)[:n])
        return np.array([bounds[index] for index in np.searchsorted(grid.times, t).tolist()])


def _size(matrix: Array, changes: tuple[Array, ...], p: Array) -> Array:
    """Return |C| + Σ |p_l| |C_l|."""
    return np.abs(matrix) + sum((abs(factor) * np.abs(change) for factor, change in zip(p, changes, strict=True)), 0.0)


def _exponential_errors(model: NonlinearModel, grid: Grid) -> Array:
    """Return |Φ̂ − Φ| for all exponentials of a grid.

    Φ̂ is compared with an exponential in double-double arithmetic of the matrix M as it was rounded. The rounding δM of its
    entries changes Φ by ∫ e^{(1−s)M} δM e^{sM} ds, whose size is evaluated at s = 0, 1/2 and 1 and doubled: an estimate.
    """
    errors = np.empty_like(grid.exponentials)
    sizes = grid.levels[:, 0, None, None] * level_matrices(model, grid.levels[:, 1:], sizes=True)
    terms = grid.levels.shape[1] + model.n_inputs + 4
    for index, (matrix, computed) in enumerate(zip(grid.matrices, grid.exponentials, strict=True)):
        exact, half = double_double_matrix_exponentials(matrix, 1.0, 1)
        whole, half_size, delta = np.abs(exact.high), np.abs(half.high), terms * EPS * sizes[index]
        changes = [whole @ delta, half_size @ delta @ half_size, delta @ whole]
        errors[index] = np.abs((computed - exact.high) - exact.low) + EPS * whole + 2.0 * np.max(changes, axis=0)
    return errors


class _Zonotope:
    """Set {Σ_i G_i ε_i, |ε_i| ≤ 1} of errors, with generators G_i of similar age in matrices of n columns."""

    def __init__(self) -> None:
        self._levels: list[list[Array]] = []

    def step(self, Phi: Array, errors: Array) -> None:
        """Apply a linear map and add a box with the given half-widths."""
        self._levels = [[Phi @ G for G in level] for level in self._levels]
        new, depth = np.diag(errors), 0
        while True:
            if depth == len(self._levels):
                self._levels.append([])
            self._levels[depth].append(new)
            if len(self._levels[depth]) < _MERGED_GENERATORS:
                return
            new, self._levels[depth] = _parallelepiped(np.hstack(self._levels[depth])), []
            depth += 1

    def radius(self, C: Array) -> Array:
        """Return the largest |C e| of the set, row by row."""
        return np.asarray(sum((np.abs(C @ G).sum(axis=1) for level in self._levels for G in level), np.zeros(len(C))))


def _parallelepiped(G: Array) -> Array:
    """Return n generators of a set that contains that of G: a box in the coordinates or along singular vectors."""
    candidates = [np.eye(len(G))]
    if np.isfinite(G).all():
        candidates.append(np.linalg.eigh(G @ G.T)[1])  # left singular vectors, faster than by an SVD of G
    # |UᵀG| is rounded by n eps of the columns, which are included.
    widths = [np.abs(U.T @ G).sum(axis=1) + len(G) * EPS * np.linalg.norm(G, axis=0).sum() for U in candidates]
    best = int(np.argmin([float(width @ width) for width in widths]))
    return np.asarray(candidates[best] * widths[best])


class HeldStepper:
    """Streaming simulation of a bilinear or LPV model whose inputs and scheduling signals are held for each time step.

    Parameters
    ----------
    model : NonlinearModel
        Model without products of two states and without delays.
    dt : float
        Time step.
    x : ndarray, shape (n,)
        Initial state, which is changed by `step`.
    """

    def __init__(self, model: NonlinearModel, dt: float, x: Array) -> None:
        self.model, self.dt, self.x = model, dt, x
        self._exponentials: LRUCache[Array] = LRUCache(_MAX_EXPONENTIALS)

    def step(self, u: ArrayLike, p: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the output at the present time, and step to the next with the input held.

        Parameters
        ----------
        u : array_like, shape (m,)
            Input; a number for a single input.
        p : array_like, shape (l,), optional
            Scheduling signals of an LPV model.

        Returns
        -------
        ndarray, shape (n_outputs,)
            Output y at the time of u.

        Raises
        ------
        InvalidSignalError
            If u or p has another shape or is not finite.
        SimulationError
            If the states overflow.
        """
        model = self.model
        v = _vector(u, "u", model.n_inputs) - model.linear.u0
        if p is None and model.n_scheduling:
            raise InvalidSignalError(
                f"p is missing; the model has the scheduling signals {', '.join(model.scheduling_names)}. Pass step(u, p)."
            )
        scheduling = _vector(() if p is None else p, "p", model.n_scheduling)
        C, D = model.terms.scheduled("C_p", model.C, scheduling), model.terms.scheduled("D_p", model.D, scheduling)
        y = C @ self.x + D @ v + model.linear.y0
        level = np.concatenate([v, scheduling])
        step = self._exponentials.get(
            level.tobytes(), lambda: np.asarray(linalg.expm(self.dt * level_matrices(model, level[None])[0]))
        )
        with np.errstate(over="ignore", invalid="ignore"):
            x = step[:-1, :-1] @ self.x + step[:-1, -1]
        if not np.isfinite(x).all():
            raise SimulationError("the states overflow in this step; restore an earlier state, stepper.x = …")
        self.x = x
        return np.asarray(y)


def _vector(value: ArrayLike, name: str, size: int) -> Array:
    vector = np.atleast_1d(as_real_array(value, name))
    if vector.shape != (size,) or not np.isfinite(vector).all():
        numbers = format_count(size, "finite number")
        raise InvalidSignalError(f"{name} must have {numbers}, got {sanitize(np.asarray(value).tolist())}")
    return vector
