"""Supremum and mean square of rational functions on the imaginary axis, from finitely many values.

f(ω) = ‖r(iω)‖ for a proper rational r with poles λ_j in the left half plane. In the phase Θ(ω) = Σ_j 2 arctan((ω − Im
λ_j)/|Re λ_j|) such a function cannot have a peak between two neighbouring frequencies that neither of them shows: if
M is the supremum, taken at ω*, then f(ω) ≥ M cos((Θ(ω) − Θ(ω*))/2) (theory page on reduction, Theorems 1 and 2).
Frequencies at most h apart in Θ give M ≤ max f/cos(h/4). If r is strictly proper, ∫ f² dω is a sum of values 2π apart
in Θ (Theorem 3).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ltinet._util.floating_point import EPS, Array, Complex

# MERGED ltinet.reduction.supremum
# Norms of many small matrices at once.


def spectral_norms(values: Complex) -> Array:
    """The largest singular value of each of many matrices `(K, p, m)`, rounded up."""
    if values.shape[1] == 0 or values.shape[2] == 0:
        return np.zeros(len(values))
    if min(values.shape[1:]) == 1:
        return frobenius_norms(values)
    across = values.conj().transpose(0, 2, 1)
    gram = across @ values if values.shape[2] <= values.shape[1] else values @ across
    return np.asarray(np.sqrt(np.maximum(np.linalg.eigvalsh(gram)[:, -1], 0.0)) * (1.0 + 64.0 * EPS))


def frobenius_norms(values: Complex) -> Array:
    """The Frobenius norm of each of many matrices."""
    return np.asarray(np.sqrt((values.real**2 + values.imag**2).sum(axis=(1, 2))))


def spectral_norm(matrix: Array) -> float:
    """The largest singular value; zero for a matrix of nothing."""
    return float(np.linalg.norm(matrix, 2)) if matrix.size else 0.0


# MERGED ltinet.reduction.supremum
# The largest value of a rational function on the imaginary axis, and its mean square, from finitely many values.
#
# f(ω) = ‖r(iω)‖ for a proper rational r with poles λ_j in the left half plane. In the phase Θ(ω) = Σ_j 2 arctan((ω −
# Im λ_j)/|Re λ_j|) such a function cannot have a peak between two neighbouring places that none of both sees: if M is
# the supremum, taken at ω*, then f(ω) ≥ M cos((Θ(ω) − Θ(ω*))/2) (theory page on reduction, Theorems 1 and 2). Places at
# most h apart in Θ give M ≤ max f/cos(h/4). If r is strictly proper, ∫ f² dω is a sum of values 2π apart in Θ.

PHASE_SPACING = 0.8  # of places in Θ: M ≤ 1.021 max f
_ROOM = 1.25  # by which two places may be farther apart than wanted
_STARTS = 12  # places per pole from which those wanted are interpolated
_CHUNK = 1 << 21  # numbers held at a time
_ROUGHLY, _EXACTLY = 2, 60  # steps of bisection: places may stand anywhere near, quadrature wants them right


@dataclass(frozen=True, eq=False)
class FrequencyGrid:
    """Frequencies from 0 on, with infinity after the last, and how far apart in Θ two neighbours are at most."""

    omega: Array
    widest: float

    def supremum(self, values: Array, at_infinity: float) -> float:
        """The supremum over all ω of a function with these values, or less, at the places and at infinity."""
        return max(float(np.max(values, initial=0.0)), at_infinity) * self.factor

    @property
    def factor(self) -> float:
        """By how much a supremum may exceed the largest value at the places."""
        return 1.0 / math.cos(0.25 * self.widest)


def pole_phase(poles: Complex, omega: Array) -> Array:
    """Θ(ω), from −Nπ to Nπ for N poles."""
    return _summed(poles, omega, lambda away: 2.0 * np.arctan(away), per_width=False)


def pole_phase_rate(poles: Complex, omega: Array) -> Array:
    """dΘ/dω = Σ 2|Re λ|/|iω − λ|²."""
    return _summed(poles, omega, lambda away: 2.0 / (1.0 + away * away), per_width=True)


def _summed(poles: Complex, omega: Array, term: Callable[[Array], Array], *, per_width: bool) -> Array:
    """The sum over poles of a function of (ω − Im λ)/|Re λ|, of equal poles once."""
    own, counts = np.unique(poles, return_counts=True)
    width, chunk = np.abs(own.real), max(1, _CHUNK // max(len(own), 1))
    weights = counts / width if per_width else counts.astype(np.float64)
    pieces = [
        term((omega[start : start + chunk, None] - own.imag) / width) @ weights for start in range(0, len(omega), chunk)
    ]
    return np.concatenate([*pieces, np.empty(0)])


def frequency_grid(poles: Complex, *, spacing: float = PHASE_SPACING) -> FrequencyGrid:
    """Places for a function of these poles, which are a real set: with each its conjugate."""
    if len(poles) == 0:
        return FrequencyGrid(np.zeros(1), 0.0)
    wanted = np.linspace(0.0, math.pi * len(poles), math.ceil(math.pi * len(poles) / spacing) + 1)[:-1]
    omega = _where(poles, wanted, rounds=_ROUGHLY)
    omega[0] = 0.0
    while True:
        omega = np.unique(omega)
        gaps = np.diff(pole_phase(poles, omega), append=math.pi * len(poles))
        wide = np.flatnonzero(gaps > _ROOM * spacing)
        if len(wide) == 0:
            return FrequencyGrid(omega, float(np.max(gaps)))
        above = np.append(omega, 4.0 * omega[-1] + float(np.max(np.abs(poles))))[wide + 1]
        omega = np.concatenate([omega, 0.5 * (omega[wide] + above)])


def mean_square(poles: Complex, squares: Callable[[Array], Array]) -> float:
    """(1/2π) ∫ f² dω of a strictly proper function with these N poles, from N values of f².

    With Θ(ω_j) = α + 2πj for any α the sum of f(ω_j)²/Θ′(ω_j) is the integral over 2π (Theorem 3). f is even, so with
    α = π/2 the places below zero are those with 3π/2, 7π/2, … above it. All terms are positive: rounding takes a few
    units of the last place, and so does a place that is off by as little.
    """
    if len(poles) == 0:
        return 0.0
    omega = _where(poles, np.arange(0.5 * math.pi, math.pi * len(poles), math.pi), rounds=_EXACTLY)
    return float(np.sum(squares(omega) / pole_phase_rate(poles, omega)))


def _where(poles: Complex, wanted: Array, *, rounds: int) -> Array:
    """The frequencies ω ≥ 0 at which Θ has the wanted values, ascending; by interpolation, then bisection."""
    angles = np.linspace(-math.pi, math.pi, _STARTS + 1)[1:-1]
    starts = (poles.imag[:, None] + np.abs(poles.real)[:, None] * np.tan(0.5 * angles)).ravel()
    grid = np.unique(np.concatenate([[0.0], starts[starts > 0.0]]))
    if len(grid) > 4 * len(wanted) + 16:  # poles that share their places
        grid = grid[np.unique(np.linspace(0, len(grid) - 1, 4 * len(wanted) + 16).astype(np.intp))]
    grid = np.append(grid, _beyond(poles, float(wanted[-1]), float(grid[-1])))
    known = pole_phase(poles, grid)
    above = np.clip(np.searchsorted(known, wanted), 1, len(grid) - 1)
    low, high = grid[above - 1].copy(), grid[above].copy()
    at_low, at_high = known[above - 1], known[above]
    return _refined(poles, wanted, (low, high, at_low, at_high), rounds=rounds)


def _beyond(poles: Complex, wanted: float, start: float) -> float:
    """A frequency at which Θ has passed a wanted value."""
    omega = max(start, float(np.max(np.abs(poles))))
    while pole_phase(poles, np.array([omega]))[0] < wanted and omega < 1e300:
        omega *= 4.0
    return omega


def _refined(poles: Complex, wanted: Array, between: tuple[Array, Array, Array, Array], *, rounds: int) -> Array:
    """Newton's method within brackets, for all places at once, until Θ is right to rounding or the rounds are over."""
    low, high, at_low, at_high = between
    with np.errstate(invalid="ignore", divide="ignore"):
        omega = low + (high - low) * np.clip((wanted - at_low) / (at_high - at_low), 0.0, 1.0)
    tolerance = 64.0 * EPS * math.pi * len(poles)
    active = np.arange(len(wanted))
    for _ in range(rounds):
        now = omega[active]
        off = pole_phase(poles, now) - wanted[active]
        below = off < 0.0
        low[active[below]], high[active[~below]] = now[below], now[~below]
        wrong = np.abs(off) > tolerance
        active, now, off = active[wrong], now[wrong], off[wrong]
        if len(active) == 0:
            break
        step = now - off / pole_phase_rate(poles, now)
        is_inside = (step > low[active]) & (step < high[active])
        omega[active] = np.where(is_inside, step, 0.5 * (low[active] + high[active]))
    return omega
