"""Linear recurrences z_k = P_k z_{k−1} + b_k through time, with constant or variable P.

The recurrence is the only part of a simulation that is not a matrix product. With constant elementwise P, N steps are
cut into about N^⅔ runs of N^⅓ steps: all runs advance together from zero, their ends follow the same recurrence with
P^length, and each run then receives what it should have begun with. Small dense P use cyclic reduction. Variable P use
the same runs; where P is close to one, P − 1 is stored, and two steps are composed as (P − 1) + P (P' − 1), which keeps
the digits that 1 + (P − 1) would lose.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from ltinet._util.floating_point import MAX_AMPLIFICATION, UNDERFLOW_CUTOFF, Array, Complex
from ltinet.systems.matrices import Matrix

OVERFLOW_LIMIT = 1e150  # largest power of an unstable system: products of two of them do not overflow

# Elementwise decay; measured on one core.
_MAX_LOOP_STEPS = 32  # steps up to which a plain loop is faster than runs side by side
_MIN_SUBSTITUTION_STEPS = 8  # from this number of steps on one substitution by BLAS is the fastest,
_MAX_SUBSTITUTION_WIDTH = 128  # up to this number of states of all batch members,
_MAX_SUBSTITUTION_NUMBERS = 20_000  # and up to this size of the right-hand side

# Dense decay; measured on one core.
_MAX_REDUCTION_STATES = 64  # states up to which cyclic reduction is faster than a call per step
_MIN_REDUCTION_STEPS = 64  # steps from which on cyclic reduction is faster than a call per step


@dataclass(frozen=True)
class StepDecay:
    """Factors of packed states in one step: pairs and reals elementwise, dense blocks by a matrix."""

    pairs: Complex
    reals: Array
    blocks: tuple[Matrix, ...]


def scan_states(ends: Array, first: Array, decay: StepDecay) -> None:
    """Run ends_b ← ends_b + decay · ends_{b−1} along the second axis in place, with `first` before the first of them.

    `ends` `(batch, steps, n)` holds the contribution of each step, and afterwards the state at its end.
    """
    if not ends.shape[1]:
        return
    pairs, scalars = 2 * len(decay.pairs), 2 * len(decay.pairs) + len(decay.reals)
    if pairs:
        as_complex = ends[..., :pairs].view(np.complex128)
        _scan(decay.pairs, as_complex, np.ascontiguousarray(first[..., :pairs]).view(np.complex128))
    if scalars > pairs:
        _scan(decay.reals, ends[..., pairs:scalars], first[..., pairs:scalars])
    begin = scalars
    for matrix in decay.blocks:
        states = slice(begin, begin + len(matrix))
        _scan_dense(matrix, ends[..., states], first[..., states])
        begin = states.stop


def max_abs(values: NDArray[Any]) -> float:
    """Return the largest absolute value, 0 for an empty array."""
    return float(np.max(np.abs(values), initial=0.0))


def flush_underflow(powers: NDArray[Any]) -> NDArray[Any]:
    """Replace powers below 1e-150 by zeros: products with them would be subnormal numbers, which are slow."""
    return np.where(np.abs(powers) < UNDERFLOW_CUTOFF, 0.0, powers)


def matrix_powers(P: Matrix, count: int) -> Array:
    """Return P^0 … P^{count−1}; every product doubles their number."""
    powers = np.empty((count, *P.shape))
    powers[0], known = np.eye(len(P)), 1
    while known < count:
        new = min(known, count - known)
        np.matmul(powers[:new], P, out=powers[known : known + new])
        known += new
        P = P @ P if known < count else P
    return powers


def _scan(decay: NDArray[Any], ends: NDArray[Any], first: NDArray[Any]) -> NDArray[Any]:
    """Run an elementwise recurrence in place and return the last state; N steps take about 6 N^⅓ array operations.

    Steps are cut into N^⅔ runs. All runs advance together as if each began at zero. Their ends follow the same
    recurrence with far fewer steps, and the state at the beginning of each run is then carried along it.
    """
    batch, n_steps, n = ends.shape
    is_small = (
        batch * n <= _MAX_SUBSTITUTION_WIDTH and 0 < ends.nbytes <= _MAX_SUBSTITUTION_NUMBERS * decay.real.itemsize
    )
    if n_steps >= _MIN_SUBSTITUTION_STEPS and is_small:
        return _scan_by_substitution(decay, ends, first)
    length = 1 if n_steps <= _MAX_LOOP_STEPS else run_length(n_steps ** (1 / 3), growth=max_abs(decay))
    if length < 2:
        return _scan_one_by_one(decay, ends, first)
    n_runs = n_steps // length
    in_runs = ends[:, : n_runs * length].reshape(batch, n_runs, length, n)  # a view: only one axis is split
    # Position in a run first, and a decay for every run: then every operation is one pass over contiguous memory.
    runs = np.ascontiguousarray(in_runs.transpose(2, 0, 1, 3))
    decays = np.broadcast_to(decay, runs.shape[1:]).copy()
    scratch = np.empty_like(decays)
    for before, after in itertools.pairwise(runs):
        np.multiply(before, decays, out=scratch)
        np.add(after, scratch, out=after)
    last = _scan(flush_underflow(decay**length), runs[-1], first)
    carried = np.concatenate([first[:, None], runs[-1, :, :-1]], axis=1)
    for states in runs[:-1]:
        np.multiply(carried, decays, out=carried)
        np.add(states, carried, out=states)
    in_runs[:] = runs.transpose(1, 2, 0, 3)
    return _scan_one_by_one(decay, ends[:, n_runs * length :], last)


def _scan_by_substitution(decay: NDArray[Any], ends: NDArray[Any], first: NDArray[Any]) -> NDArray[Any]:
    """Run the recurrence as a bidiagonal system x_b − decay · x_{b−1} = ends_b of all states in a row, by BLAS.

    A state that overflows would spoil the next one in the row by ∞ · 0: then steps are taken one by one.
    """
    batch, n_steps, n = ends.shape
    x = np.empty((batch, n, n_steps + 1), dtype=ends.dtype)
    x[..., 0], x[..., 1:] = first, ends.swapaxes(1, 2)
    bands = np.empty((batch, n, n_steps + 1, 2), dtype=ends.dtype)  # BLAS does not read the diagonal of ones
    bands[..., 1], bands[..., -1, 1] = -decay[:, None], 0.0
    solve = blas.ztbsv if np.iscomplexobj(ends) else blas.dtbsv
    solved = solve(1, bands.reshape(-1, 2).T, x.reshape(-1), lower=1, diag=1, overwrite_x=1).reshape(x.shape)
    if not np.isfinite(solved[..., -1]).all():
        return _scan_one_by_one(decay, ends, first)
    ends[:] = solved[..., 1:].swapaxes(1, 2)
    last: NDArray[Any] = ends[:, -1]
    return last


def _scan_one_by_one(decay: NDArray[Any], ends: NDArray[Any], first: NDArray[Any]) -> NDArray[Any]:
    last, scratch = first, np.empty_like(first)
    for row in ends.swapaxes(0, 1):
        np.multiply(last, decay, out=scratch)
        np.add(row, scratch, out=row)
        last = row
    return last


def _scan_dense(matrix: Matrix, ends: Array, first: Array) -> None:
    """Run ends_b ← ends_b + matrix · ends_{b−1} in place.

    Many steps of a small matrix are halved by cyclic reduction: the contributions of all pairs of steps follow from one
    product, then every second state from the square of the matrix, then the states between.
    """
    batch, n_steps, n = ends.shape
    begin = 0
    if n <= _MAX_REDUCTION_STATES and n_steps >= _MIN_REDUCTION_STEPS:
        square = matrix @ matrix
        if np.abs(square).sum(axis=0).max() <= MAX_AMPLIFICATION:
            begin = n_steps // 2 * 2
            ends[:, 0] += first @ matrix.T
            pairs = ends[:, :begin].reshape(batch, begin // 2, 2, n)
            pairs[:, :, 1] += pairs[:, :, 0] @ matrix.T
            _scan_dense(square, pairs[:, 1:, 1], pairs[:, 0, 1])
            pairs[:, 1:, 0] += pairs[:, :-1, 1] @ matrix.T
    last = ends[:, begin - 1] if begin else first
    # For a single member vectors and `dot` are used: calls take longer than products.
    rows, last, multiply = (ends[0], last[0], matrix.dot) if batch == 1 else (ends.swapaxes(0, 1), last, None)
    product, transposed = np.empty(last.shape), matrix.T
    for row in rows[begin:]:
        if multiply is not None:
            multiply(last, product)
        else:
            np.matmul(last, transposed, product)
        np.add(row, product, row)
        last = row


def run_length(best: float, *, growth: float) -> int:
    """Return the number of steps of a run: the fastest, but no more than for which powers of the growth are finite."""
    longest = math.log(OVERFLOW_LIMIT) / math.log(growth) if growth > 1.0 else math.inf
    return max(1, round(min(best, longest - 0.5)))


# Steps with a decay of their own each.


class VariableDecay(NamedTuple):
    """Factors of states in each step: P, or the increment P − 1 where that is small.

    A number near one has few digits for its distance from one, and after many short steps none are left. So two
    increments are composed as (P − 1) + P (P' − 1), and a state is the state before plus its change.
    """

    factors: NDArray[Any]
    """For each step, `(steps, …)`, or `(length, runs, …)` with the place within a run first."""
    product: np.ufunc
    """`np.multiply` for scalars, `np.matmul` for dense blocks."""
    growth: float
    """Bound on the norm of P."""
    incremental: NDArray[Any] | bool = False
    """Mask of factors that are P − 1: all, none, or an array of ones and zeros."""

    def advance(self, index: Any, before: NDArray[Any], states: NDArray[Any], *, scratch: NDArray[Any]) -> None:
        """Add P · before to the states in place; the increment is added first."""
        self.product(self.factors[index], before, out=scratch)
        states += scratch
        if self.incremental is not False:
            states += before if self.incremental is True else before * self.incremental

    def ends_of_runs(self, added: NDArray[Any]) -> NDArray[Any]:
        """Return the states at the ends of runs that begin at zero."""
        ends: NDArray[Any] = added[0].copy()
        scratch = np.empty_like(ends)
        for index in range(1, len(added)):
            self.product(self.factors[index], ends, out=scratch)
            if self.incremental is not False:
                scratch += ends if self.incremental is True else ends * self.incremental
            np.add(scratch, added[index], out=ends)
        return ends

    def over_runs(self) -> "VariableDecay":
        """Return the decays of whole runs."""
        total = self.factors[0].copy()
        changed = np.empty_like(total)
        for factors in self.factors[1:]:
            self.product(factors if self.incremental is False else factors + self.incremental, total, out=changed)
            total, changed = changed, total
            if self.incremental is not False:
                total += factors if self.incremental is True else factors * self.incremental
        return self._replace(factors=total, growth=_growth(total, self.product, self.incremental))


def matrix_decays(factors: NDArray[Any]) -> VariableDecay:
    """Return the decays of dense blocks from their P."""
    return VariableDecay(factors, np.matmul, _growth(factors, np.matmul, False))


def scan_in_runs(
    decays: VariableDecay, states: NDArray[Any], first: NDArray[Any], *, over_runs: VariableDecay | None = None
) -> Iterator[NDArray[Any]]:
    """Run z_k ← z_k + P_k z_{k−1} in place for steps in runs, `(length, n_runs, …)`; yield one place after the other.

    All runs advance together as if each began at zero. Their ends follow each other with far fewer steps, and from the
    states at their beginnings all runs advance again. The decays `over_runs` of whole runs may be given.
    """
    length = len(states)
    if length > 1 and length > run_length(length, growth=decays.growth):  # products over a run would overflow
        count = states.shape[1]
        factors, in_sequence = (
            part.swapaxes(0, 1).reshape(length * count, *part.shape[2:]) for part in (decays.factors, states)
        )
        _scan_variable(decays._replace(factors=factors), in_sequence, first)
        states[:] = in_sequence.reshape(count, length, *states.shape[2:]).swapaxes(0, 1)
        yield from states
        return
    ends = decays.ends_of_runs(states)
    _scan_variable(over_runs or decays.over_runs(), ends, first)
    before, scratch = np.concatenate([first[None], ends[:-1]]), np.empty_like(ends)
    for index in range(length):
        decays.advance(index, before, states[index], scratch=scratch)
        before = states[index]
        yield before


def split_into_runs(n_steps: int) -> tuple[int, int]:
    """Return the length and the number of runs for at least `n_steps` steps, about N^⅓ and N^⅔."""
    length = 1 if n_steps <= _MAX_LOOP_STEPS else round(n_steps ** (1 / 3))
    return length, -(-n_steps // length)


def _scan_variable(decays: VariableDecay, states: NDArray[Any], first: NDArray[Any]) -> None:
    """Run the recurrence in place for steps in sequence, `(steps, …)`; many of them in runs."""
    n_steps, factors = len(states), decays.factors
    length = 1 if n_steps <= _MAX_LOOP_STEPS else run_length(n_steps ** (1 / 3), growth=decays.growth)
    n_in_runs = n_steps // length * length if length > 1 else 0
    if n_in_runs:
        in_runs, run_factors = (
            part[:n_in_runs].reshape(n_in_runs // length, length, *part.shape[1:]).swapaxes(0, 1)
            for part in (states, factors)
        )
        for _ in scan_in_runs(decays._replace(factors=run_factors), in_runs, first):
            pass
    before, scratch = states[n_in_runs - 1] if n_in_runs else first, np.empty_like(first)
    for index in range(n_in_runs, n_steps):
        decays.advance(index, before, states[index], scratch=scratch)
        before = states[index]


def _growth(factors: NDArray[Any], product: np.ufunc, incremental: NDArray[Any] | bool) -> float:
    """Bound the norm of P: the largest absolute value, for matrices times their width."""
    real = factors.view(np.float64)
    largest = max(float(np.max(real, initial=0.0)), -float(np.min(real, initial=0.0)))
    width = factors.shape[-1] if product is np.matmul else math.sqrt(2.0)
    return width * largest + (0.0 if incremental is False else 1.0)
