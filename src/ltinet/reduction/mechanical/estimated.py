"""Large mechanical models whose dampings couple modes: reduced with their structure, with an estimate and no bound."""

import math
from dataclasses import replace

import numpy as np

from ltinet.arrays import Array
from ltinet.model.system_matrices import SystemMatrices
from ltinet.reduction.galerkin import Told
from ltinet.reduction.mechanical.coupled import Coupled
from ltinet.reduction.mechanical.coupled_galerkin import CoupledGalerkin, coupled_galerkin, projected
from ltinet.reduction.mechanical.damped_pencil import DampedPencil
from ltinet.reduction.mechanical.lowest_modes import lowest_modes
from ltinet.reduction.mechanical.selection import fewest
from ltinet.reduction.mechanical.small import coupled_outcome
from ltinet.reduction.oscillators import Oscillators
from ltinet.reduction.outcome import Outcome
from ltinet.reduction.separation import Separated, separate
from ltinet.tolerances import EPS

FEWEST, MOST = 20, 640  # modes that are looked for to meet a tolerance
_SHARE = 0.6  # of what is allowed that the projection may take
_UNNOTICED = 4.0  # times the share of the first mode left out
_UNSEEN = 1e-10  # of the gain
_NOT_MODAL = "D is no αM + βK, so that dampings couple modes: no bound is known"


def estimated_by_projection(
    given: DampedPencil, *, order: int | None, tolerance: float | None, n_jobs: int, told: Told
) -> Outcome:
    """By rational Krylov spaces that keep the structure; the estimate is what the last frequencies changed."""

    def is_enough(found: CoupledGalerkin) -> bool:
        if order is None:
            return found.change <= _SHARE * (tolerance or 0.0) * found.gain
        n_left = len(found.modes.stiffness) - order // 2
        if n_left <= 0:
            return False
        own = found.modes
        shares = np.sort(Oscillators(own.stiffness, _positive(own), own.B, own.C).shares)
        return found.change <= max(_UNNOTICED * float(shares[n_left - 1]), _UNSEEN * found.gain)

    found = coupled_galerkin(given, is_enough=is_enough, n_jobs=n_jobs, told=told)
    way = f"Galerkin projection at {found.n_shifts} frequencies to {len(found.modes.stiffness)} modes"
    return _estimated(found.modes, found.change, order=order, tolerance=tolerance, way=way)


def estimated_by_modes(given: DampedPencil, *, order: int | None, tolerance: float | None) -> Outcome:
    """The slowest modes with the dampings between them, against the slower half of them."""
    count = FEWEST if order is None else max(order, FEWEST)
    while True:
        modes = lowest_modes(given, count)
        own = projected(given, modes.V)
        slower, n_modes = own.taken(np.arange(len(own.stiffness) // 2)), len(own.stiffness)
        half = coupled_outcome(slower, _separated(own), n_modes=n_modes)
        is_enough = order is not None or half.estimate <= _SHARE * (tolerance or 0.0) * half.gain
        if is_enough or count >= min(MOST, given.pencil.n_states - 2):
            way = f"the {n_modes} slowest modes by shift-inverted iteration"
            return _estimated(own, half.estimate, order=order, tolerance=tolerance, way=way)
        count = min(2 * count, given.pencil.n_states - 2)


def _estimated(own: Coupled, change: float, *, order: int | None, tolerance: float | None, way: str) -> Outcome:
    """The modes with the largest shares, judged against all of the projection."""
    whole, n_modes = _separated(own), len(own.stiffness)
    ranked = np.argsort(-Oscillators(own.stiffness, _positive(own), own.B, own.C).shares, kind="stable")

    def reduced(count: int) -> Outcome:
        return coupled_outcome(own.taken(np.sort(ranked[:count])), whole, n_modes=n_modes)

    if order is not None:
        best = reduced(order // 2)
    else:
        best = fewest(n_modes, reduced, lambda own: own.estimate + change <= (tolerance or 0.0) * own.gain)
    way = f"{way}, the largest {best.order // 2} kept"
    return replace(
        best,
        way=way,
        error_bound=None,
        estimate=best.estimate + change,
        mean=lambda: math.inf,
        parts={},
        remarks=(_NOT_MODAL,),
    )


def _separated(own: Coupled) -> Separated:
    small = own.matrices
    return separate(SystemMatrices(small.A, small.B, small.C))


def _positive(own: Coupled) -> Array:
    """Dampings of single modes, to rank them by."""
    damping = own.between.diagonal()
    return np.asarray(np.maximum(damping, EPS * np.sqrt(own.stiffness)))
