"""Galerkin models of large mechanical ones whose dampings couple modes: nothing is proven, the last change is told."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ltinet.arrays import Array, Complex
from ltinet.reduction.galerkin import Told
from ltinet.reduction.krylov import new_directions
from ltinet.reduction.mechanical.coupled import Coupled
from ltinet.reduction.mechanical.damped_pencil import DampedPencil
from ltinet.reduction.mechanical.shifts import FIRST, damped_solutions, next_frequencies
from ltinet.reduction.norms import norms
from ltinet.reduction.projection import project
from ltinet.reduction.states import ReducedStates
from ltinet.reduction.supremum import places_for

_MOST_SHIFTS = 60
_SPACING = 1.6
_UNSEEN_RATE = 1e-6  # of the largest |λ|


@dataclass(frozen=True, eq=False)
class CoupledGalerkin:
    """Ritz modes with the dampings between them, and by how much the last frequencies changed the model."""

    modes: Coupled
    change: float
    gain: float
    n_shifts: int


def coupled_galerkin(
    model: DampedPencil, *, is_enough: Callable[[CoupledGalerkin], bool], n_jobs: int, told: Told
) -> CoupledGalerkin:
    """Add frequencies where the last ones changed the model most, until that is enough."""
    system = model.pencil
    V, taken = np.zeros((system.n_states, 0)), [0.0][:0]
    frequencies = [own * math.sqrt(model.smallest) for own in FIRST]
    before: ReducedStates | None = None
    seen = np.zeros((len(system.C), 0))
    while True:
        new = new_directions(system, V, damped_solutions(model, frequencies, n_jobs=n_jobs))
        taken += frequencies
        _, V = project(system, np.hstack([V, new]))
        modes = projected(model, V)
        own = modes.matrices
        now = ReducedStates(own.A, own.B)
        omega = places_for(_decaying(now.poles), spacing=_SPACING).omega
        response = now.times(own.C, omega)
        change = norms(response if before is None else response - before.times(seen, omega))
        gain = float(np.max(norms(response)))
        largest = math.inf if before is None else float(np.max(change))
        found = CoupledGalerkin(modes, largest, gain, len(taken))
        told(len(taken), largest / gain if gain > 0.0 else 0.0)
        if not new.size or len(taken) >= _MOST_SHIFTS or V.shape[1] >= system.n_states or is_enough(found):
            return found
        before, seen = now, own.C
        frequencies = next_frequencies(omega, change, taken)


def projected(model: DampedPencil, V: Array) -> Coupled:
    """A model on a basis that is orthonormal for M and diagonal for K."""
    own = model.pencil
    stiffness = -np.einsum("ij,ij->j", V, own.A @ V)
    return Coupled(stiffness, V.T @ (model.D @ V), V.T @ own.B, own.C @ V)


def _decaying(poles: Complex) -> Complex:
    """Poles as places are chosen for them: a model that is not proven to decay may have some that do not."""
    least = _UNSEEN_RATE * float(np.max(np.abs(poles)))
    return np.asarray(np.where(np.abs(poles.real) < least, -least, poles.real) + 1j * poles.imag)
