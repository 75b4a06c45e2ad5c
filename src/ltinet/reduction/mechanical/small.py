"""Small mechanical models: all modes are known, those with the largest shares are kept."""

import math
from collections.abc import Callable

import numpy as np

from ltinet.model.second_order_matrices import SecondOrderMatrices
from ltinet.model.system_matrices import SystemMatrices
from ltinet.reduction.dense import difference
from ltinet.reduction.mechanical.coupled import Coupled
from ltinet.reduction.mechanical.selection import Kept, fewest, keep, keep_enough
from ltinet.reduction.mechanical.whole_modes import WholeModes, whole_modes
from ltinet.reduction.oscillators import Oscillators
from ltinet.reduction.outcome import Outcome
from ltinet.reduction.separation import Separated, separate

_UNNOTICED = 1e-6  # of the largest share: up to here modes are taken as damped each for itself


def reduce_small(model: SecondOrderMatrices, *, order: int | None, tolerance: float | None) -> Outcome:
    """Reduce to `order` states, two for a mode, or to an error relative to the largest gain."""
    found = whole_modes(model)
    if found.distance.peak <= _UNNOTICED * float(np.max(found.oscillators.shares, initial=0.0)):
        return _modal(found, order=order, tolerance=tolerance)
    return _coupled(model, found, order=order, tolerance=tolerance)


def _modal(found: WholeModes, *, order: int | None, tolerance: float | None) -> Outcome:
    distance = found.distance
    kept = (
        keep(found.oscillators, order // 2)
        if order is not None
        else keep_enough(found.oscillators, tolerance=tolerance or 0.0, already=distance.peak)
    )
    return modal_outcome(
        kept,
        way=f"modes with the largest gains, {len(kept.oscillators)} of {len(found.oscillators)}",
        parts={"truncation": kept.error, "rounding": distance.peak},
        mean=lambda: kept.mean() + distance.mean,
    )


def modal_outcome(kept: Kept, *, way: str, parts: dict[str, float], mean: Callable[[], float]) -> Outcome:
    """What was found where every mode is damped for itself; the bound is the sum of its parts."""
    error = sum(parts.values())
    own = kept.oscillators
    is_known = math.isfinite(error)
    return Outcome(
        matrices=own.matrices,
        order=2 * len(own),
        way=way,
        error_bound=error if is_known else None,
        estimate=error if is_known else kept.error,
        mean=mean,
        gain=kept.peak,
        hankel_values=None,
        parts=parts if is_known else {},
        second_order=small_model(own),
    )


def small_model(own: Oscillators | Coupled) -> SecondOrderMatrices:
    """Modes as a mechanical model with M = I."""
    N = len(own.stiffness)
    D = np.diag(own.damping) if isinstance(own, Oscillators) else own.between
    return SecondOrderMatrices(np.eye(N), D, np.diag(own.stiffness), own.B, own.C)


def _coupled(model: SecondOrderMatrices, found: WholeModes, *, order: int | None, tolerance: float | None) -> Outcome:
    """Dampings couple modes: what leaving some out does is measured against the model in first-order form."""
    own = found.oscillators
    ranked = np.argsort(-own.shares, kind="stable")
    whole = separate(model.first_order)
    modes = Coupled(own.stiffness, found.between, own.B, own.C)

    def reduced(count: int) -> Outcome:
        return coupled_outcome(modes.taken(np.sort(ranked[:count])), whole, n_modes=len(own))

    if order is not None:
        return reduced(order // 2)
    return fewest(len(own), reduced, lambda tried: _is_within(tried, tolerance or 0.0))


def _is_within(tried: Outcome, tolerance: float) -> bool:
    return tried.error_bound is not None and tried.error_bound <= tolerance * tried.gain


def coupled_outcome(kept: Coupled, whole: Separated, *, n_modes: int) -> Outcome:
    """Kept modes with the dampings between them, compared with the whole model over all frequencies."""
    small = kept.matrices
    own = separate(SystemMatrices(small.A, small.B, small.C))
    found = difference(whole.stable, own, small.D)
    rounding = own.distance.peak + whole.distance.peak
    is_known = math.isfinite(found.error + rounding) and whole.aside.n_states == 0
    return Outcome(
        matrices=small,
        order=len(small.A),
        way=f"modes with the largest gains, {len(kept.stiffness)} of {n_modes}, coupled by their dampings",
        error_bound=found.error + rounding if is_known else None,
        estimate=found.error,
        mean=lambda: found.mean() + own.distance.mean + whole.distance.mean if is_known else math.inf,
        gain=found.peak,
        hankel_values=None,
        parts={"truncation": found.error, "rounding": rounding} if is_known else {},
        second_order=small_model(kept),
    )
