"""The one thing that cannot be a matrix product: states that follow each other through time."""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from ltinet.arrays import Array, Complex
from ltinet.model.matrices import Matrix
from ltinet.tolerances import DUST

LARGE = 1e150  # powers of unstable systems up to which products with them do not overflow
_FEW = 32  # steps up to which a plain loop is faster than runs side by side
# One substitution is faster than either from so many steps on, of so few states side by side, and so few numbers.
_SEVERAL, _NARROW, _SHORT = 8, 128, 20_000
LARGEST_POWER = (
    100.0  # norm of P^k, which costs two digits: 3 of 1,221 hostile runs were wrong with 1e5, none with 1e3 or 30
)
_SMALL = 64  # states of a matrix up to which cyclic reduction is faster than a call a step
_LITTLE, _AT_ONCE = 16, 64  # states of a matrix up to which a substitution is faster than a call a step, and its steps


@dataclass(frozen=True)
class Decay:
    """By what packed states are multiplied in a step: pairs and reals one by one, dense blocks by a matrix."""

    pairs: Complex
    reals: Array
    blocks: tuple[Matrix, ...]


def accumulate(ends: Array, first: Array, decay: Decay) -> None:
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


def size(powers: NDArray[Any]) -> float:
    """Largest absolute value, 0 for nothing."""
    return float(np.max(np.abs(powers), initial=0.0))


def without_dust(powers: NDArray[Any]) -> NDArray[Any]:
    """Powers below 1e-150 as zeros: products with them would be subnormal numbers, slow and of no consequence."""
    return np.where(np.abs(powers) < DUST, 0.0, powers)


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
    length = 1 if n_steps <= _FEW else run_length(n_steps ** (1 / 3), growth=size(decay))
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
    last = _scan(without_dust(decay**length), runs[-1], first)
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
    if batch == 1 and n <= _LITTLE and n_steps >= _AT_ONCE:
        begin = _substitute_steps(matrix, ends[0], first[0])
    elif n <= _SMALL and n_steps >= _AT_ONCE:
        square = matrix @ matrix
        if np.abs(square).sum(axis=0).max() <= LARGEST_POWER:
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
    bands = np.zeros((_AT_ONCE + 1, n, 2 * n))  # BLAS does not read the diagonal of ones
    for state in range(n):
        bands[:-1, state, n - state : 2 * n - state] = -matrix[:, state]
    factor, x = bands.reshape(-1, 2 * n).T, np.empty((_AT_ONCE + 1, n))
    for begin in range(0, len(ends) - _AT_ONCE + 1, _AT_ONCE):
        own = ends[begin : begin + _AT_ONCE]
        x[0], x[1:] = first, own
        solved = blas.dtbsv(2 * n - 1, factor, x.reshape(-1), lower=1, diag=1).reshape(x.shape)
        if not np.isfinite(solved).all():
            return begin
        own[:] = solved[1:]
        first = own[-1]
    return len(ends) - len(ends) % _AT_ONCE


def run_length(best: float, *, growth: float) -> int:
    """The number of steps in a run, as many as is best for speed.

    Runs of unstable systems are no longer than powers of their growth are finite: ∞ times a state of 0 is no number.
    """
    longest = math.log(LARGE) / math.log(growth) if growth > 1.0 else math.inf
    return max(1, round(min(best, longest - 0.5)))
