"""Large sparse systems: Galerkin projection onto rational Krylov spaces, shifts where the bound is largest.

Galerkin, because a dissipative system stays one: the symmetric part of VᵀA V is negative definite with that of A.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ltinet.arrays import Array
from ltinet.reduction.bound import ResidualBound, Sides, bound_residuals, mean_residuals
from ltinet.reduction.definite import Definite
from ltinet.reduction.krylov import new_directions, solutions
from ltinet.reduction.norms import norms
from ltinet.reduction.pencil import Pencil
from ltinet.reduction.projection import Projection, ResidualSpace, project, residual_space
from ltinet.reduction.residual import euclidean, residuals
from ltinet.reduction.sector import proven_turn
from ltinet.reduction.supremum import places_for

# Shifts in the first batch and in others, fixed, so that the result does not depend on who computes them. What is
# judged after each batch takes as long as a factorisation where these are dear: the first then has most of what 1e-3
# takes of a plate, and others are small.
_DEAR, _CHEAP = (10, 2), (4, 3)
_SMALL = 20_000  # states
# The slowest and the fastest of the first shifts, of a bound on the slowest rate and of the norm of A: with what a
# shift at infinity sees there, less far is enough.
_SLOWEST = 1.4
_FASTEST, _FASTEST_BELOW_INFINITY = 0.5, 0.3
_APART = 4.0  # ratio of two shifts of one batch
_TURNS = 0.5  # |Im λ|/|Re λ| of Ritz values near a peak, from which on a complex shift pays
_MOST_SHIFTS = 60
_STALLED = 3  # rounds without a better bound: rounding is all that is left

Told = Callable[[int, float], None]
IsEnough = Callable[[Projection, ResidualBound], bool]


@dataclass(frozen=True, eq=False)
class Galerkin:
    """A projected model x' = A x + B u, y = C x (E = I), with the bound on its distance from the system."""

    projection: Projection
    bound: ResidualBound
    mean: Callable[[], float]
    """A bound on the H2 norm of the error, computed when it is asked for; infinite where it is not known."""
    shifts: tuple[complex, ...]
    estimate: float
    """By how much the last shifts changed the model, over all frequencies."""


def galerkin(system: Pencil, weight: Definite | None, *, is_enough: IsEnough, n_jobs: int, told: Told) -> Galerkin:
    """Add shifts until the bound is enough, or rounding is all that is left of it.

    Without a proof that the system is dissipative there is no bound. What decides then is how much the last shifts
    changed the model, and shifts go where the residual is largest.
    """
    V = _at_infinity(system, weight)
    shifts = _first_shifts(system, weight, sees_infinity=V.shape[1] > 0)
    taken: list[complex] = []
    before: Projection | None = None
    best, since = math.inf, 0
    while True:
        new = new_directions(system, V, solutions(system, shifts, n_jobs=n_jobs))
        taken += shifts
        projection, V = project(system, np.hstack([V, new]))
        estimate = math.inf if before is None or weight is not None else _change(before, projection)
        norms_of = _Norms.of(system, projection, V, weight)
        bound = norms_of.bound(estimate)
        told(len(taken), bound.peak / bound.gain if bound.gain > 0.0 else 0.0)
        since = 0 if bound.peak < 0.9 * best else since + 1
        best, before = min(best, bound.peak), projection
        is_over = not new.size or since >= _STALLED or len(taken) >= _MOST_SHIFTS or V.shape[1] >= system.n_states
        if is_over or is_enough(projection, bound):
            return Galerkin(projection, bound, partial(norms_of.mean, bound), tuple(taken), min(bound.peak, estimate))
        shifts = _next_shifts(bound, projection.A, taken, count=_batches(system)[1])


@dataclass(frozen=True, eq=False)
class _Norms:
    """Residuals in the norms that bound the error; in the Euclidean one where none does."""

    system: Pencil
    projection: Projection
    slow: Sides
    fast: Sides | None
    weight: Definite | None
    space: ResidualSpace

    @classmethod
    def of(cls, system: Pencil, projection: Projection, V: Array, weight: Definite | None) -> "_Norms":
        space = residual_space(system, projection, V)
        if weight is None:
            return cls(system, projection, Sides(*euclidean(space)), None, None, space)
        mass = system.mass if system.is_symmetric else None
        fast = None if mass is None else Sides(*residuals(space, mass))
        return cls(system, projection, Sides(*residuals(space, weight)), fast, weight, space)

    def bound(self, estimate: float) -> ResidualBound:
        found = bound_residuals(self.system, self.projection, self.slow, self.fast)
        return found if self.weight is not None else replace(found, peak=estimate)

    def mean(self, bound: ResidualBound) -> float:
        """In the H2 norm: a system that is not symmetric must be proven not to turn too far, which takes a while."""
        mass, fast, turn = self.system.mass, self.fast, 1.0
        if self.weight is None or mass is None:
            return math.inf
        if fast is None:
            fast, turn = Sides(*residuals(self.space, mass)), proven_turn(self.system, self.weight)
        found, corner = self.projection, bound.corner
        return mean_residuals(self.system, found, slow=self.slow, fast=fast, corner=corner, turn=turn)


def _at_infinity(system: Pencil, weight: Definite | None) -> Array:
    """What a shift at infinity would see, E⁻¹B and E⁻¹Cᵀ, for systems whose bound does not fall with frequency.

    With them both residuals are zero there, where they would otherwise be flat; no factorisation but that of E.
    """
    nothing, mass = np.zeros((system.n_states, 0)), system.mass
    if weight is None or mass is None or system.is_symmetric:
        return nothing
    return new_directions(system, nothing, np.hstack([mass.solve(system.B), mass.solve(system.C.T)]))


def _change(before: Projection, now: Projection) -> float:
    """Sup of the difference of two models, at places that suffice for the poles of both."""
    omega = places_for(np.concatenate([before.inputs.poles, now.inputs.poles])).omega
    values = now.inputs.times(now.C, omega) - before.inputs.times(before.C, omega)
    return float(np.max(norms(values), initial=0.0))


def _batches(system: Pencil) -> tuple[int, int]:
    return _CHEAP if system.n_states <= _SMALL else _DEAR


def _first_shifts(system: Pencil, weight: Definite | None, *, sees_infinity: bool) -> list[complex]:
    """A few real ones between the slowest and the fastest that the matrices have."""
    mass = float(np.max(abs(system.E).sum(axis=0)))
    fastest = float(np.max(abs(system.A).sum(axis=0))) / mass
    slowest = max(_SLOWEST * weight.smallest / mass if weight is not None else 1e-6 * fastest, 1e-12 * fastest)
    share = _FASTEST_BELOW_INFINITY if sees_infinity else _FASTEST
    return [complex(own) for own in np.geomspace(slowest, max(share * fastest, slowest), _batches(system)[0])]


def _next_shifts(bound: ResidualBound, A_r: Array, taken: list[complex], *, count: int) -> list[complex]:
    """Where the bound peaks, the largest peaks first, apart from each other and from shifts that are taken."""
    omega, values = bound.omega[1:], bound.values[1:]
    order = np.argsort(-values, kind="stable")
    ritz = np.linalg.eigvals(A_r)
    slowest = float(np.min(np.abs(ritz)))  # below, the bound is flat, and a shift sees what one there sees
    chosen: list[complex] = []
    for place in order.tolist():
        size = max(omega[place], slowest)
        near = ritz[(np.abs(ritz) < 4.0 * size) & (np.abs(ritz) > 0.25 * size)]
        turns = len(near) > 0 and bool(np.max(np.abs(near.imag) / np.abs(near.real)) > _TURNS)
        shift = complex(0.0, size) if turns else complex(size)
        away = [max(abs(shift) / abs(other), abs(other) / abs(shift)) for other in chosen]
        again = [abs(shift - other) / abs(shift) for other in taken]
        if all(ratio > _APART for ratio in away) and all(distance > 1e-2 for distance in again):
            chosen.append(shift)
        if len(chosen) == count:
            break
    return chosen or [complex(1.5 * abs(taken[-1]))]
