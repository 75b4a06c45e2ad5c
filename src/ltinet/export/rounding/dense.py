"""Rounding in a dense block z ← P z + Γ u over many steps: sums of |Pᵏ|, doubled at a time."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.bounds.double_double import exponentials
from ltinet.export.rounding.scalars import StateErrors
from ltinet.export.step_model import BlockStep
from ltinet.tolerances import EPS

_FEW = 200  # states and inputs: beyond, tables are not compared with exponentials to twice the digits
_LARGEST_EXPONENT = 709.0  # of a number that is finite
_SPARE = 1.001  # for what rounding does to bounds themselves
_KNOWN_WELL = 1e10  # condition of eigenvectors up to which their inverse is right to the spare
_FOR_EVER = 60  # doublings: 2⁶⁰ steps last longer than anything


def dense_errors(
    P: Array, rounding: Array, *, driven: Array, added: Array, start: Array, start_error: Array, n_steps: float
) -> StateErrors:
    """Errors with |e_{k+1}| ≤ |P e_k| + rounding (|z_k| + |e_k|) + added; infinite where they grow beyond numbers.

    Sums of |Pᵏ| depend on coordinates. Each of those that are tried gives a bound, and the smallest counts.
    """
    with np.errstate(all="ignore"):
        facts = _Recurrence(P, rounding, driven + start, added + start_error)
        found = [_errors_of(facts, n_steps)]
        turned = _in_modes(facts)
        if turned is not None:
            modes, back = turned
            size, drift = _errors_of(modes, n_steps)
            found.append((back @ size, back @ drift))
        size, drift = (np.fmin.reduce(ways) for ways in zip(*found, strict=True))
        return StateErrors(size, rounding @ size + added, drift)


class _Recurrence(NamedTuple):
    P: NDArray[Any]
    rounding: Array
    driven: Array
    """What inputs add in a step at most, and the start."""
    added: Array
    """Errors that do not depend on the state."""


def _errors_of(facts: _Recurrence, n_steps: float) -> tuple[Array, Array]:
    """Sizes and errors: of all growths ρ that are assumed, the smallest; one of them bounds any finite run."""
    n = len(facts.P)
    size = drift = np.full(n, np.inf)
    own = float(np.abs(np.linalg.eigvals(facts.P)).max(initial=0.0))
    for assumed in (0.0, *(2.0 ** np.arange(10))) if math.isfinite(n_steps) else (0.0,):
        before = drift
        for slowest in {1.0, max(1.0, own)}:
            rate = slowest * math.exp(assumed / n_steps)
            sums = _sum_of_sizes(facts.P / rate, n_steps)
            sizes = sums @ facts.driven
            errors = _fed_back(sums @ facts.rounding / rate, sums @ (facts.rounding @ sizes + facts.added))
            size, drift = np.fmin(size, _reach(rate, n_steps) * sizes), np.fmin(drift, _reach(rate, n_steps) * errors)
        if np.isfinite(before).all():
            break
    return size, drift


def _reach(rate: float, n_steps: float) -> float:
    """ρⁿ for ρ ≥ 1."""
    exponent = n_steps * math.log(rate) if rate > 1.0 else 0.0
    return math.exp(exponent) if exponent < _LARGEST_EXPONENT else math.inf


def _fed_back(feedback: Array, added: Array) -> Array:
    """Some x ≥ feedback x + added, which no error can pass: the first that did would have come from smaller ones."""
    infinite = np.full(len(added), np.inf)
    if not (np.isfinite(feedback).all() and np.isfinite(added).all()):
        return infinite
    try:
        x = np.linalg.solve(np.eye(len(added)) - _SPARE * feedback, _SPARE * added)
    except np.linalg.LinAlgError:
        return infinite
    return np.asarray(x) if np.all(x >= 0.0) and np.all(feedback @ x + added <= x) else infinite


def _in_modes(facts: _Recurrence) -> tuple[_Recurrence, Array] | None:
    """The same for m = V⁻¹ z with the eigenvectors of P, where these are known well, and what leads back to |z|."""
    _, V = np.linalg.eig(facts.P)
    if not len(V) or not np.linalg.cond(V) < _KNOWN_WELL:
        return None
    inverse = np.linalg.inv(V)
    there, back = np.abs(inverse), _SPARE * np.abs(V)
    rounded = there @ (facts.rounding + 2.0 * len(V) * EPS * np.abs(facts.P)) @ back
    modes = _Recurrence(inverse @ facts.P @ V, rounded, _SPARE * there @ facts.driven, _SPARE * there @ facts.added)
    return modes, back


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


def _sum_of_sizes(P: NDArray[Any], n_steps: float) -> Array:
    """A bound on Σ |Pᵏ| for k < n: |Pᵃ⁺ᵇ| ≤ |Pᵃ| |Pᵇ|."""
    doublings = _FOR_EVER if math.isinf(n_steps) else max(0, math.ceil(math.log2(max(n_steps, 1.0))))
    sums, power = np.eye(len(P)), P
    for _ in range(doublings):
        sums = sums + np.abs(power) @ sums
        power = power @ power
        if not power.any():
            break
    return sums
