"""Supremum and mean square of rational functions on the imaginary axis, from finitely many values.

f(ω) = ‖r(iω)‖ for a proper rational r with poles λ_j in the left half plane. In the phase Θ(ω) = Σ_j 2 arctan((ω − Im
λ_j)/|Re λ_j|) such a function cannot have a peak between two neighbouring frequencies that neither of them shows: if
M is the supremum, taken at ω*, then f(ω) ≥ M cos((Θ(ω) − Θ(ω*))/2) (theory page on reduction, Theorems 1 and 2).
Frequencies at most h apart in Θ give M ≤ max f/cos(h/4). If r is strictly proper, ∫ f² dω is a sum of values 2π apart
in Θ (Theorem 3).

The phase of a pole that is closer to the axis than doubles are to each other jumps by 2π from one double to the next.
No grid resolves it, and the bound on the supremum is infinite.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ltinet._util.floating_point import EPS, Array, Complex


def spectral_norms(values: Complex) -> Array:
    """Return the largest singular value of each of many matrices `(K, p, m)`, rounded up."""
    if values.shape[1] == 0 or values.shape[2] == 0:
        return np.zeros(len(values))
    if min(values.shape[1:]) == 1:
        return frobenius_norms(values)
    adjoint = values.conj().transpose(0, 2, 1)
    gram = adjoint @ values if values.shape[2] <= values.shape[1] else values @ adjoint
    return np.asarray(np.sqrt(np.maximum(np.linalg.eigvalsh(gram)[:, -1], 0.0)) * (1.0 + 64.0 * EPS))


def frobenius_norms(values: Complex) -> Array:
    """Return the Frobenius norm of each of many matrices `(K, p, m)`."""
    return np.asarray(np.sqrt((values.real**2 + values.imag**2).sum(axis=(1, 2))))


def spectral_norm(matrix: Array) -> float:
    """Return the largest singular value; zero for an empty matrix."""
    return float(np.linalg.norm(matrix, 2)) if matrix.size else 0.0


# Frequency grids and quadrature in the phase Θ.

PHASE_SPACING = 0.8
"""Phase between neighbouring frequencies of a grid in rad: M ≤ max f/cos(0.2) = 1.021 max f."""
COARSE_SPACING = 1.6
"""Spacing where f is evaluated many times: M ≤ 1.086 max f, and 1.139 max f at the widest gap that is accepted."""
_GAP_TOLERANCE = 1.25  # ratio of the widest gap that is accepted to the spacing, 1.033 max f; wider ones are halved
_MAX_GAP = 6.28  # rad in Θ: just below 2π, where the bound becomes infinite; a gap itself is rounded
_SAMPLES_PER_POLE = 12  # frequencies per pole at which Θ is tabulated before it is inverted; speed only
_CHUNK = 1 << 21  # numbers held at a time, 16 MB
# Newton steps of the inversion of Θ: grid points may lie anywhere near, nodes of a quadrature must be exact.
_GRID_STEPS, _QUADRATURE_STEPS = 2, 60


@dataclass(frozen=True, eq=False)
class FrequencyGrid:
    """Ascending frequencies from 0 on, with infinity after the last, and the widest gap between neighbours in Θ."""

    omega: Array
    widest: float

    def supremum(self, values: Array, at_infinity: float) -> float:
        """Return a bound on the supremum over all ω of a function with these values on the grid and at infinity."""
        if math.isinf(self.factor):
            return math.inf
        return max(float(np.max(values, initial=0.0)), at_infinity) * self.factor

    @property
    def factor(self) -> float:
        """Ratio by which the supremum may exceed the largest value on the grid, 1/cos(h/4)."""
        return 1.0 / math.cos(0.25 * self.widest) if self.widest < _MAX_GAP else math.inf


def pole_phase(poles: Complex, omega: Array) -> Array:
    """Return Θ(ω), from −Nπ to Nπ for N poles."""
    return _sum_over_poles(poles, omega, lambda distance: 2.0 * np.arctan(distance), per_width=False)


def pole_phase_rate(poles: Complex, omega: Array) -> Array:
    """Return dΘ/dω = Σ 2|Re λ|/|iω − λ|²."""
    return _sum_over_poles(poles, omega, lambda distance: 2.0 / (1.0 + distance * distance), per_width=True)


def _sum_over_poles(poles: Complex, omega: Array, term: Callable[[Array], Array], *, per_width: bool) -> Array:
    """Sum a function of (ω − Im λ)/|Re λ| over the poles, evaluating it once for equal poles."""
    distinct, counts = np.unique(poles, return_counts=True)
    width, chunk = np.abs(distinct.real), max(1, _CHUNK // max(len(distinct), 1))
    weights = counts / width if per_width else counts.astype(np.float64)
    chunks = (omega[start : start + chunk, None] for start in range(0, len(omega), chunk))
    return np.concatenate([*(term((part - distinct.imag) / width) @ weights for part in chunks), np.empty(0)])


def frequency_grid(poles: Complex, *, spacing: float = PHASE_SPACING) -> FrequencyGrid:
    """Return a grid for functions with these poles, a set that is closed under conjugation."""
    if len(poles) == 0:
        return FrequencyGrid(np.zeros(1), 0.0)
    phases = np.linspace(0.0, math.pi * len(poles), math.ceil(math.pi * len(poles) / spacing) + 1)[:-1]
    omega = _invert_phase(poles, phases, steps=_GRID_STEPS)
    omega[0] = 0.0
    omega = np.unique(omega)
    while True:
        gaps = np.diff(pole_phase(poles, omega), append=math.pi * len(poles))
        wide = np.flatnonzero(gaps > _GAP_TOLERANCE * spacing)
        above = np.append(omega, 4.0 * omega[-1] + float(np.max(np.abs(poles))))[wide + 1]
        refined = np.unique(np.concatenate([omega, 0.5 * (omega[wide] + above)]))
        if len(refined) == len(omega):  # no gap is too wide, or those that are lie between neighbouring doubles
            return FrequencyGrid(omega, float(np.max(gaps)))
        omega = refined


def mean_square(poles: Complex, squares: Callable[[Array], Array]) -> float:
    """Return (1/2π) ∫ f² dω of a strictly proper function with these N poles, from N values of f².

    With Θ(ω_j) = α + 2πj for any α the sum of f(ω_j)²/Θ′(ω_j) is the integral over 2π (Theorem 3). f is even, so with
    α = π/2 the nodes below zero mirror those with 3π/2, 7π/2, … above it. All terms are positive, so that rounding and
    errors of the nodes cost a few units in the last place.
    """
    if len(poles) == 0:
        return 0.0
    phases = np.arange(0.5 * math.pi, math.pi * len(poles), math.pi)
    omega = _invert_phase(poles, phases, steps=_QUADRATURE_STEPS)
    return float(np.sum(squares(omega) / pole_phase_rate(poles, omega)))


def _invert_phase(poles: Complex, phases: Array, *, steps: int) -> Array:
    """Return the frequencies ω ≥ 0 at which Θ has ascending values: interpolation in a table, then Newton's method."""
    angles = np.linspace(-math.pi, math.pi, _SAMPLES_PER_POLE + 1)[1:-1]
    samples = (poles.imag[:, None] + np.abs(poles.real)[:, None] * np.tan(0.5 * angles)).ravel()
    table = np.unique(np.concatenate([[0.0], samples[samples > 0.0]]))
    if len(table) > 4 * len(phases) + 16:  # poles close to each other share their samples
        table = table[np.unique(np.linspace(0, len(table) - 1, 4 * len(phases) + 16).astype(np.intp))]
    end = max(float(table[-1]), float(np.max(np.abs(poles))))
    while pole_phase(poles, np.array([end]))[0] < float(phases[-1]) and end < 1e300:
        end *= 4.0
    table = np.append(table, end)
    theta = pole_phase(poles, table)
    above = np.clip(np.searchsorted(theta, phases), 1, len(table) - 1)
    low, high = table[above - 1].copy(), table[above].copy()
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.clip((phases - theta[above - 1]) / (theta[above] - theta[above - 1]), 0.0, 1.0)
        omega: Array = low + (high - low) * share
    # Newton's method for all values at once, each within its bracket, until Θ is exact to rounding.
    tolerance = 64.0 * EPS * math.pi * len(poles)
    active = np.arange(len(phases))
    for _ in range(steps):
        current = omega[active]
        residual = pole_phase(poles, current) - phases[active]
        below = residual < 0.0
        low[active[below]], high[active[~below]] = current[below], current[~below]
        unsolved = np.abs(residual) > tolerance
        active, current, residual = active[unsolved], current[unsolved], residual[unsolved]
        if len(active) == 0:
            break
        newton = current - residual / pole_phase_rate(poles, current)
        is_inside = (newton > low[active]) & (newton < high[active])
        omega[active] = np.where(is_inside, newton, 0.5 * (low[active] + high[active]))
    return omega
