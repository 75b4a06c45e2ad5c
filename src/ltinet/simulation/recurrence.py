"""Linear recurrences z_k = P_k z_{k−1} + b_k through time, with constant or variable P.

The recurrence is the only part of a simulation that is not a matrix product. With constant elementwise P, N steps are
cut into about N^⅔ runs of N^⅓ steps: all runs advance together from zero, their ends follow the same recurrence with
P^length, and each run then receives what it should have begun with. Small dense P use cyclic reduction, or a banded
triangular substitution by BLAS. Variable P use the same runs; where P is close to one, P − 1 is stored, and two steps
are composed as (P − 1) + P (P' − 1), which keeps the digits that 1 + (P − 1) would lose.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from ltinet._util.floating_point import UNDERFLOW_CUTOFF, Array, Complex
from ltinet.systems.matrices import Matrix

# MERGED ltinet.simulation.recurrence
# The one thing that cannot be a matrix product: states that follow each other through time.

OVERFLOW_LIMIT = 1e150  # powers of unstable systems up to which products with them do not overflow
_MAX_LOOP_STEPS = 32  # steps up to which a plain loop is faster than runs side by side
# One substitution is faster than either from so many steps on, of so few states side by side, and so few numbers.
_SEVERAL, _NARROW, _SHORT = 8, 128, 20_000
MAX_POWER_NORM = (
    100.0  # norm of P^k, which costs two digits: 3 of 1,221 hostile runs were wrong with 1e5, none with 1e3 or 30
)
_MAX_REDUCTION_STATES = 64  # states of a matrix up to which cyclic reduction is faster than a call a step
_MAX_SUBSTITUTION_STATES, _SUBSTITUTION_STEPS = (
    16,
    64,
)  # states of a matrix up to which a substitution is faster than a call a step, and its steps


@dataclass(frozen=True)
class StepDecay:
    """By what packed states are multiplied in a step: pairs and reals one by one, dense blocks by a matrix."""

    pairs: Complex
    reals: Array
    blocks: tuple[Matrix, ...]


def scan_states(ends: Array, first: Array, decay: StepDecay) -> None:
    """In place: ends_b ← ends_b + decay · ends_{b−1} along the second axis, with `first` before the first of them.

    `ends` `(batch, steps, n)` holds what each step adds, and afterwards the state at its end.
    """
    if not ends.shape[1]:
        return
    pairs, scalars = 2 * len(decay.pairs), 2 * len(decay.pairs) + len(decay.reals)
    if pairs:
        as_complex = ends[..., :pairs].view(np.complex128)
        _scan(decay.pairs, as_complex, np.ascontiguousarray(first[..., :pairs]).view(np.complex128))
    if scalars > pairs:
        _scan(decay.reals, ends[..., pairs:scalars], first[..., pairs:scalars])
    offset = scalars
    for matrix in decay.blocks:
        own = slice(offset, offset + len(matrix))
        _scan_dense(matrix, ends[..., own], first[..., own])
        offset = own.stop


def max_abs(powers: NDArray[Any]) -> float:
    """Largest absolute value, 0 for nothing."""
    return float(np.max(np.abs(powers), initial=0.0))


def flush_underflow(powers: NDArray[Any]) -> NDArray[Any]:
    """Powers below 1e-150 as zeros: products with them would be subnormal numbers, slow and of no consequence."""
    return np.where(np.abs(powers) < UNDERFLOW_CUTOFF, 0.0, powers)


def matrix_powers(P: Matrix, count: int) -> Array:
    """P^0 … P^{count−1}, twice as many with each product."""
    powers = np.empty((count, *P.shape))
    powers[0], known = np.eye(len(P)), 1
    while known < count:
        new = min(known, count - known)
        np.matmul(powers[:new], P, out=powers[known : known + new])
        known += new
        P = P @ P if known < count else P
    return powers


def _scan(decay: NDArray[Any], ends: NDArray[Any], first: NDArray[Any]) -> NDArray[Any]:
    """Elementwise decay: few steps one after the other, N steps in about 6 N^⅓ array operations; the last state.

    For that, steps are cut into N^⅔ runs. All runs advance together as if each began with nothing. Then their ends
    follow each other, the same recurrence with far fewer steps, and what each run begins with is added along it.
    """
    batch, n_steps, n = ends.shape
    if n_steps >= _SEVERAL and batch * n <= _NARROW and 0 < ends.nbytes <= _SHORT * decay.real.itemsize:
        return _scan_by_substitution(decay, ends, first)
    length = 1 if n_steps <= _MAX_LOOP_STEPS else run_length(n_steps ** (1 / 3), growth=max_abs(decay))
    if length < 2:
        return _scan_one_by_one(decay, ends, first)
    n_runs = n_steps // length
    in_runs = ends[:, : n_runs * length].reshape(batch, n_runs, length, n)  # a view: only one axis is split
    # Position in a run first, and a decay for every run: then every operation is one pass over memory without gaps.
    runs = np.ascontiguousarray(in_runs.transpose(2, 0, 1, 3))
    decays = np.broadcast_to(decay, runs.shape[1:]).copy()
    scratch = np.empty_like(decays)
    for before, own in itertools.pairwise(runs):
        np.multiply(before, decays, out=scratch)
        np.add(own, scratch, out=own)
    last = _scan(flush_underflow(decay**length), runs[-1], first)
    carried = np.concatenate([first[:, None], runs[-1, :, :-1]], axis=1)
    for own in runs[:-1]:
        np.multiply(carried, decays, out=carried)
        np.add(own, carried, out=own)
    in_runs[:] = runs.transpose(1, 2, 0, 3)
    return _scan_one_by_one(decay, ends[:, n_runs * length :], last)


def _scan_by_substitution(decay: NDArray[Any], ends: NDArray[Any], first: NDArray[Any]) -> NDArray[Any]:
    """The same by BLAS, which takes one number after the other: x_b − decay · x_{b−1} = ends_b, all states in a row.

    A state that exceeds all numbers would spoil the next in the row, by ∞ times zero: then step by step.
    """
    batch, n_steps, n = ends.shape
    x = np.empty((batch, n, n_steps + 1), dtype=ends.dtype)
    x[..., 0], x[..., 1:] = first, ends.swapaxes(1, 2)
    bands = np.empty((batch, n, n_steps + 1, 2), dtype=ends.dtype)  # the diagonal of ones is not looked at
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
    """The same for a dense block: ends_b ← ends_b + matrix · ends_{b−1}.

    Many steps of a small matrix are halved by cyclic reduction: what two steps add follows for all pairs in one
    product, then every second state from the square of the matrix, then those between.
    """
    batch, n_steps, n = ends.shape
    begin = 0
    if batch == 1 and n <= _MAX_SUBSTITUTION_STATES and n_steps >= _SUBSTITUTION_STEPS:
        begin = _substitute_steps(matrix, ends[0], first[0])
    elif n <= _MAX_REDUCTION_STATES and n_steps >= _SUBSTITUTION_STEPS:
        square = matrix @ matrix
        if np.abs(square).sum(axis=0).max() <= MAX_POWER_NORM:
            begin = n_steps // 2 * 2
            ends[:, 0] += first @ matrix.T
            pairs = ends[:, :begin].reshape(batch, begin // 2, 2, n)
            pairs[:, :, 1] += pairs[:, :, 0] @ matrix.T
            _scan_dense(square, pairs[:, 1:, 1], pairs[:, 0, 1])
            pairs[:, 1:, 0] += pairs[:, :-1, 1] @ matrix.T
    last = ends[:, begin - 1] if begin else first
    # A single run, in which calls take longer than products, is spared what a batch needs.
    rows, last, multiply = (ends[0], last[0], matrix.dot) if batch == 1 else (ends.swapaxes(0, 1), last, None)
    product, transposed = np.empty(last.shape), matrix.T
    for row in rows[begin:]:
        if multiply is not None:
            multiply(last, product)
        else:
            np.matmul(last, transposed, product)
        np.add(row, product, row)
        last = row


def _substitute_steps(matrix: Matrix, ends: Array, first: Array) -> int:
    """The same for a single run of few states `(steps, n)` by BLAS, many steps at once; return how many were taken.

    The states of consecutive steps solve a block bidiagonal system with −matrix below a diagonal of ones. Where a state
    overflows, the substitution would spoil the next ones by ∞ times zero, so it stops before.
    """
    n = len(matrix)
    bands = np.zeros((_SUBSTITUTION_STEPS + 1, n, 2 * n))  # BLAS does not read the diagonal of ones
    for state in range(n):
        bands[:-1, state, n - state : 2 * n - state] = -matrix[:, state]
    factor, x = bands.reshape(-1, 2 * n).T, np.empty((_SUBSTITUTION_STEPS + 1, n))
    for begin in range(0, len(ends) - _SUBSTITUTION_STEPS + 1, _SUBSTITUTION_STEPS):
        own = ends[begin : begin + _SUBSTITUTION_STEPS]
        x[0], x[1:] = first, own
        solved = blas.dtbsv(2 * n - 1, factor, x.reshape(-1), lower=1, diag=1).reshape(x.shape)
        if not np.isfinite(solved).all():
            return begin
        own[:] = solved[1:]
        first = own[-1]
    return len(ends) - len(ends) % _SUBSTITUTION_STEPS


def run_length(best: float, *, growth: float) -> int:
    """The number of steps in a run, as many as is best for speed.

    Runs of unstable systems are no longer than powers of their growth are finite: ∞ times a state of 0 is no number.
    """
    longest = math.log(OVERFLOW_LIMIT) / math.log(growth) if growth > 1.0 else math.inf
    return max(1, round(min(best, longest - 0.5)))


# MERGED ltinet.simulation.recurrence
# States that follow each other through steps of which each has a decay of its own.


class VariableDecay(NamedTuple):
    """By what each step multiplies states: P, or P − 1 where it changes them little.

    A number near one has few digits for what sets it apart from one, and after many short steps none are left. So two
    steps are composed as (P − 1) + P (P' − 1), and a state is what it was, and the change.
    """

    factors: NDArray[Any]
    """For each step, `(steps, …)`, or `(length, runs, …)` with the place within a run first."""
    product: np.ufunc
    """`np.multiply` for scalars, `np.matmul` for dense blocks."""
    growth: float
    """By what a step multiplies states at most."""
    kept: NDArray[Any] | bool = False
    """Where factors are P − 1: everywhere, nowhere, or as numbers that are 1 there and 0 elsewhere."""

    def advance(self, place: Any, before: NDArray[Any], states: NDArray[Any], *, scratch: NDArray[Any]) -> None:
        """In place: states, which hold what a step adds, and P · before; the change before what is kept."""
        self.product(self.factors[place], before, out=scratch)
        states += scratch
        if self.kept is not False:
            states += before if self.kept is True else before * self.kept

    def ends_of_runs(self, added: NDArray[Any]) -> NDArray[Any]:
        """States at the ends of runs of which each begins with nothing."""
        ends: NDArray[Any] = added[0].copy()
        scratch = np.empty_like(ends)
        for place in range(1, len(added)):
            self.product(self.factors[place], ends, out=scratch)
            if self.kept is not False:
                scratch += ends if self.kept is True else ends * self.kept
            np.add(scratch, added[place], out=ends)
        return ends

    def over_runs(self) -> "VariableDecay":
        """Those of whole runs."""
        total = self.factors[0].copy()
        changed = np.empty_like(total)
        for own in self.factors[1:]:
            self.product(own if self.kept is False else own + self.kept, total, out=changed)
            total, changed = changed, total
            if self.kept is not False:
                total += own if self.kept is True else own * self.kept
        return self._replace(factors=total, growth=_growth(total, self.product, self.kept))


def matrix_decays(factors: NDArray[Any]) -> VariableDecay:
    """Decays of dense blocks."""
    return VariableDecay(factors, np.matmul, _growth(factors, np.matmul, False))


def scan_in_runs(
    decays: VariableDecay, states: NDArray[Any], first: NDArray[Any], *, over_runs: VariableDecay | None = None
) -> Iterator[NDArray[Any]]:
    """In place: z_k ← z_k + P_k z_{k−1} for steps that come in runs, `(length, n_runs, …)`; one place after the other.

    All runs advance together, first as if each began with nothing. Then their ends follow each other, with far fewer
    steps, and with what each begins with all runs advance again. The decays of whole runs may be known.
    """
    length = len(states)
    if length > 1 and length > run_length(length, growth=decays.growth):
        _scan_out_of_runs(decays, states, first)  # products of what grows fast would overflow
        yield from states
        return
    ends = decays.ends_of_runs(states)
    _scan_in_turn(over_runs or decays.over_runs(), ends, first)
    before, scratch = np.concatenate([first[None], ends[:-1]]), np.empty_like(ends)
    for place in range(length):
        decays.advance(place, before, states[place], scratch=scratch)
        before = states[place]
        yield before


def split_into_runs(n_steps: int) -> tuple[int, int]:
    """The length of runs and their number for about N steps, or a few more: N^⅓ and N^⅔."""
    length = 1 if n_steps <= _MAX_LOOP_STEPS else round(n_steps ** (1 / 3))
    return length, -(-n_steps // length)


def _scan_in_turn(decays: VariableDecay, states: NDArray[Any], first: NDArray[Any]) -> None:
    """The same for steps one after the other, `(steps, …)`; many of them in runs."""
    n_steps, factors = len(states), decays.factors
    length = 1 if n_steps <= _MAX_LOOP_STEPS else run_length(n_steps ** (1 / 3), growth=decays.growth)
    whole = n_steps // length * length if length > 1 else 0
    if whole:
        in_runs, each = (
            part[:whole].reshape(whole // length, length, *part.shape[1:]).swapaxes(0, 1) for part in (states, factors)
        )
        for _ in scan_in_runs(decays._replace(factors=each), in_runs, first):
            pass
    before, scratch = states[whole - 1] if whole else first, np.empty_like(first)
    for place in range(whole, n_steps):
        decays.advance(place, before, states[place], scratch=scratch)
        before = states[place]


def _scan_out_of_runs(decays: VariableDecay, states: NDArray[Any], first: NDArray[Any]) -> None:
    length, count, *_ = states.shape
    factors, in_turn = (
        part.swapaxes(0, 1).reshape(length * count, *part.shape[2:]) for part in (decays.factors, states)
    )
    _scan_in_turn(decays._replace(factors=factors), in_turn, first)
    states[:] = in_turn.reshape(states.shape[1], states.shape[0], *states.shape[2:]).swapaxes(0, 1)


def _growth(factors: NDArray[Any], product: np.ufunc, kept: NDArray[Any] | bool) -> float:
    """The largest number, or the sum along a row of matrices."""
    real = factors.view(np.float64)
    largest = max(float(np.max(real, initial=0.0)), -float(np.min(real, initial=0.0)))
    width = factors.shape[-1] if product is np.matmul else math.sqrt(2.0)
    return width * largest + (0.0 if kept is False else 1.0)
