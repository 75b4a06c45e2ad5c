"""Large sparse systems: Galerkin projection onto rational Krylov spaces, shifts where the bound is largest.

Galerkin, because a dissipative system stays one: the symmetric part of VᵀA V is negative definite with that of A.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ltinet.arrays import Array
from ltinet.reduction.bound import ResidualBound, Sides, bound_residuals
from ltinet.reduction.definite import Definite
from ltinet.reduction.krylov import new_directions, solutions
from ltinet.reduction.pencil import Pencil
from ltinet.reduction.projection import Projection, project, residual_space
from ltinet.reduction.residual import residuals

_FIRST, _BATCH = 4, 2  # shifts at once: fixed, so that the result does not depend on who computes them
_APART = 4.0  # ratio of two shifts of one batch
_TURNS = 0.5  # |Im λ|/|Re λ| of Ritz values near a peak, from which on a complex shift pays
_MOST_SHIFTS = 60
_STALLED = 4  # rounds without a better bound: rounding is all that is left

Told = Callable[[int, float], None]


@dataclass(frozen=True, eq=False)
class Galerkin:
    """A projected model x' = A x + B u, y = C x (E = I), with the bound on its distance from the system."""

    projection: Projection
    bound: ResidualBound
    shifts: tuple[complex, ...]


def galerkin(
    system: Pencil, weight: Definite, *, is_enough: Callable[[Projection, ResidualBound], bool], n_jobs: int, told: Told
) -> Galerkin:
    """Add shifts until the bound is enough, or rounding is all that is left of it."""
    V, shifts = np.zeros((system.n_states, 0)), _first_shifts(system, weight)
    taken: list[complex] = []
    best, since = math.inf, 0
    while True:
        new = new_directions(system, V, solutions(system, shifts, n_jobs=n_jobs))
        taken += shifts
        projection, V = project(system, np.hstack([V, new]))
        bound = _bound(system, projection, V, weight)
        told(len(taken), bound.peak / bound.gain if bound.gain > 0.0 else 0.0)
        since = 0 if bound.peak < 0.9 * best else since + 1
        best = min(best, bound.peak)
        is_over = not new.size or since >= _STALLED or len(taken) >= _MOST_SHIFTS or V.shape[1] >= system.n_states
        if is_over or is_enough(projection, bound):
            return Galerkin(projection, bound, tuple(taken))
        shifts = _next_shifts(bound, projection.A, taken)


def _bound(system: Pencil, projection: Projection, V: Array, weight: Definite) -> ResidualBound:
    space = residual_space(system, projection, V)
    mass = system.mass if system.is_symmetric else None
    fast = None if mass is None else Sides(*residuals(space, mass))
    return bound_residuals(system, projection, Sides(*residuals(space, weight)), fast)


def _first_shifts(system: Pencil, weight: Definite) -> list[complex]:
    """A few real ones between the slowest and the fastest that the matrices have."""
    mass = float(np.max(abs(system.E).sum(axis=0)))
    fastest = float(np.max(abs(system.A).sum(axis=0))) / mass
    slowest = max(2.0 * weight.smallest / mass, 1e-12 * fastest)
    return [complex(own) for own in np.geomspace(slowest, max(0.5 * fastest, slowest), _FIRST)]


def _next_shifts(bound: ResidualBound, A_r: Array, taken: list[complex]) -> list[complex]:
    """Where the bound peaks, the largest peaks first, apart from each other and from shifts that are taken."""
    omega, values = bound.omega[1:], bound.values[1:]
    order = np.argsort(-values, kind="stable")
    ritz = np.linalg.eigvals(A_r)
    chosen: list[complex] = []
    for place in order.tolist():
        near = ritz[(np.abs(ritz) < 4.0 * omega[place]) & (np.abs(ritz) > 0.25 * omega[place])]
        turns = len(near) > 0 and bool(np.max(np.abs(near.imag) / np.abs(near.real)) > _TURNS)
        shift = complex(0.0, omega[place]) if turns else complex(omega[place])
        away = [max(abs(shift) / abs(other), abs(other) / abs(shift)) for other in chosen]
        again = [abs(shift - other) / abs(shift) for other in taken]
        if all(ratio > _APART for ratio in away) and all(distance > 1e-2 for distance in again):
            chosen.append(shift)
        if len(chosen) == _BATCH:
            break
    return chosen or [complex(1.5 * abs(taken[-1]))]
