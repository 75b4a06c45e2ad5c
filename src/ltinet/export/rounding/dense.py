"""Rounding in a dense block z ← P z + Γ u over many steps: sums of |Pᵏ|, doubled at a time."""

import math

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.double_double import exponentials
from ltinet.export.rounding.scalars import StateErrors
from ltinet.export.step_model import BlockStep
from ltinet.tolerances import EPS

_FEW = 200  # states and inputs: beyond, tables are not compared with exponentials to twice the digits
_FOR_EVER = 60  # doublings: 2⁶⁰ steps last longer than anything


def dense_errors(
    P: Array, rounding: Array, *, driven: Array, added: Array, start: Array, start_error: Array, n_steps: float
) -> StateErrors:
    """Errors with |e_{k+1}| ≤ |P e_k| + rounding (|z_k| + |e_k|) + added; infinite where they might feed themselves."""
    infinite = np.full(len(P), np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = _sum_of_sizes(P, n_steps)
        size = sums @ (driven + start)
        local = rounding @ size + added
        feedback = sums @ rounding
        if not np.linalg.norm(feedback, np.inf) < 0.5:
            return StateErrors(size, local, infinite)
        drift = np.linalg.solve(np.eye(len(P)) - feedback, sums @ (local + start_error))
    return StateErrors(size, local, np.where(np.isfinite(drift), np.abs(drift), np.inf))


def table_errors(
    block: BlockStep, Gamma: Array, dt: float, *, linear: bool, by_increments: bool
) -> tuple[Array, Array]:
    """How far P, or P − 1, and Γ = (Γ₀, Γ₁) of a block are from what they stand for, entry by entry.

    exp of [[F, G, 0], [0, 0, 1], [0, 0, 0]] h has P, h φ₁ G and h² φ₂ G in its first row.
    """
    n, m = block.G.shape
    size = n + 2 * m
    if size > _FEW:
        norm = float(np.linalg.norm(block.less_one if by_increments else block.P, 2))
        return np.full((n, n), n * EPS * norm), np.full(Gamma.shape, n * EPS * float(np.linalg.norm(Gamma)))
    whole = np.zeros((size, size))
    whole[:n, :n], whole[:n, n : n + m], whole[n : n + m, n + m :] = block.F, block.G, np.eye(m)
    exact = exponentials(whole, dt, 0)[0]
    first, second = (exact.high[:n, own] for own in (slice(n, n + m), slice(n + m, None)))
    ends = second / dt
    expected = np.hstack([first - ends, ends]) if linear else np.hstack([first, np.zeros_like(first)])
    own = exact.high[:n, :n] - np.eye(n) if by_increments else exact.high[:n, :n]
    of_P = np.abs(((block.less_one if by_increments else block.P) - own) - exact.low[:n, :n])
    return of_P, np.abs(Gamma - expected) + 2.0 * EPS * (np.abs(np.hstack([first, first])) + np.abs(expected))


def _sum_of_sizes(P: Array, n_steps: float) -> Array:
    """A bound on Σ |Pᵏ| for k < n: |Pᵃ⁺ᵇ| ≤ |Pᵃ| |Pᵇ|."""
    doublings = _FOR_EVER if math.isinf(n_steps) else max(0, math.ceil(math.log2(max(n_steps, 1.0))))
    sums, power = np.eye(len(P)), P
    for _ in range(doublings):
        sums = sums + np.abs(power) @ sums
        power = power @ power
        if not power.any():
            break
    return sums
