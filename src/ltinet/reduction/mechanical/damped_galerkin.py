"""Galerkin models of large mechanical ones, frequencies where the bound is largest: the projection stays mechanical."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ltinet.reduction.bound import ResidualBound
from ltinet.reduction.galerkin import Told
from ltinet.reduction.krylov import new_directions
from ltinet.reduction.mechanical.damped_bound import DampedNorms
from ltinet.reduction.mechanical.damped_pencil import DampedPencil
from ltinet.reduction.mechanical.shifts import FIRST, damped_solutions, next_frequencies
from ltinet.reduction.oscillators import Oscillators
from ltinet.reduction.projection import project
from ltinet.reduction.states import Rayleigh

_MOST_SHIFTS = 60
_STALLED = 4  # rounds without a better bound: rounding is all that is left

IsEnough = Callable[[Oscillators, ResidualBound], bool]


@dataclass(frozen=True, eq=False)
class DampedGalerkin:
    """Ritz modes, each damped for itself, with the bound on their distance from the model."""

    oscillators: Oscillators
    bound: ResidualBound
    mean: Callable[[], float]
    n_shifts: int


def damped_galerkin(
    model: DampedPencil, damping: Rayleigh, *, is_enough: IsEnough, n_jobs: int, told: Told
) -> DampedGalerkin:
    """Add frequencies until the bound is enough, or rounding is all that is left of it."""
    system = model.pencil
    V, taken = np.zeros((system.n_states, 0)), [0.0][:0]
    frequencies = [own * math.sqrt(model.smallest) for own in FIRST]
    best, since = math.inf, 0
    while True:
        new = new_directions(system, V, damped_solutions(model, frequencies, n_jobs=n_jobs))
        taken += frequencies
        projection, V = project(system, np.hstack([V, new]), damping=damping)
        stiffness = -projection.A.diagonal()
        own = Oscillators(stiffness, damping.of(stiffness), projection.B, projection.C)
        measured = DampedNorms.of(model, projection, V, damping)
        bound = measured.bound()
        told(len(taken), bound.peak / bound.gain if bound.gain > 0.0 else 0.0)
        since = 0 if bound.peak < 0.9 * best else since + 1
        best = min(best, bound.peak)
        is_over = not new.size or since >= _STALLED or len(taken) >= _MOST_SHIFTS or V.shape[1] >= system.n_states
        if is_over or is_enough(own, bound):
            return DampedGalerkin(own, bound, measured.mean, len(taken))
        frequencies = next_frequencies(bound.omega, bound.values, taken)
