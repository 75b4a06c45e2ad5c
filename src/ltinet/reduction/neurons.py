"""Which layers of a network are left out: those with the smallest shares in its outputs, each with a proven bound.

A layer is z' = F z + G u, y = H z, on its own. One first-order neuron has the share ‖h‖‖g‖/|f|. One second-order neuron
is (N₀ + sN₁)/(s² + ds + k) with N₁ = H G: at most ‖N₀‖h + ‖N₁‖/d, h its peak gain. Neurons that feed each other are one
system, whose supremum comes from places that suffice.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet.arrays import Array
from ltinet.model.system_matrices import SystemMatrices
from ltinet.reduction.dense import difference
from ltinet.reduction.mechanical.selection import fewest
from ltinet.reduction.mismatch import Distance
from ltinet.reduction.modal import modes_of
from ltinet.reduction.oscillators import peak_gains
from ltinet.reduction.separation import Separated, separate
from ltinet.tolerances import EPS

_TOGETHER = 600  # states left out, up to which their sum is looked at over all frequencies
_UP = 1.0 + 64.0 * EPS  # rounds up what a few operations computed


class LayerStates(NamedTuple):
    """z' = F z + G u, y = H z."""

    F: Array
    G: Array
    H: Array


@dataclass(frozen=True, eq=False)
class LayersKept:
    """Which layers stay, and bounds on what the others did, over all frequencies and in the H2 norm."""

    kept: NDArray[np.intp]
    left_out: Distance
    shares: Array
    """The largest gain of each layer, infinite for one that does not surely decay."""


def surely_decaying(layers: Sequence[LayerStates]) -> NDArray[np.intp]:
    """Which layers have a share that is finite."""
    return np.flatnonzero([math.isfinite(_gains(own).peak) for own in layers])


def keep_layers(layers: Sequence[LayerStates], *, order: int | None, allowed: float) -> LayersKept:
    """Keep layers with the largest shares: as many as fit into `order` states, or as leave out `allowed` at most."""
    found = [_gains(own) for own in layers]
    shares = np.array([own.peak for own in found])
    ranked, sizes = np.argsort(-shares, kind="stable"), np.array([len(own.F) for own in layers], dtype=np.intp)

    def first(count: int) -> LayersKept:
        dropped = np.sort(ranked[count:])
        summed = Distance(float(np.sum(shares[dropped])), float(sum(found[own].mean for own in dropped)))
        return LayersKept(np.sort(ranked[:count]), _together([layers[own] for own in dropped], summed), shares)

    if order is not None:
        return first(int(np.count_nonzero(np.cumsum(sizes[ranked]) <= order)))
    return fewest(len(layers), first, lambda own: own.left_out.peak <= allowed)


def _together(dropped: Sequence[LayerStates], summed: Distance) -> Distance:
    """Layers may cancel each other: the lesser of the sum of shares and the share of the sum."""
    if not 1 < sum(len(own.F) for own in dropped) <= _TOGETHER or not math.isfinite(summed.peak):
        return summed
    F = np.asarray(linalg.block_diag(*(own.F for own in dropped)))
    whole = LayerStates(F, np.vstack([own.G for own in dropped]), np.hstack([own.H for own in dropped]))
    found = _by_places(whole)
    return Distance(min(found.peak, summed.peak), min(found.mean, summed.mean))


def _gains(own: LayerStates) -> Distance:
    if len(own.F) == 1:
        rate, size = float(own.F[0, 0]), float(np.linalg.norm(own.G) * np.linalg.norm(own.H)) * _UP
        if not rate < 0.0:
            return Distance(0.0, 0.0) if size == 0.0 else Distance(math.inf, math.inf)
        return Distance(size / -rate, size / math.sqrt(-2.0 * rate))
    if len(own.F) == 2 and own.F[0, 0] == 0.0:
        return _of_oscillator(own)
    return _by_places(own)


def _of_oscillator(own: LayerStates) -> Distance:
    """[[0, w], [−k/w, −d]], as second-order neurons are written; their H2 norms are 1/√(2dk) and 1/√(2d)."""
    w, d = float(own.F[0, 1]), -float(own.F[1, 1])
    k = -w * float(own.F[1, 0])
    if not (k > 0.0 and d > 0.0):
        return Distance(math.inf, math.inf)
    turned = np.array([[d, w], [-k / w, 0.0]])
    at_rest, moving = (float(np.linalg.norm(own.H @ matrix @ own.G)) for matrix in (turned, np.eye(2)))
    lost = 16.0 * EPS * float(np.linalg.norm(own.H) * np.linalg.norm(own.G))  # products may cancel
    at_rest, moving = at_rest + lost * float(np.linalg.norm(turned)), moving + lost
    peak = float(peak_gains(np.array([k]), np.array([d]))[0])
    return Distance((at_rest * peak + moving / d) * _UP, (at_rest / math.sqrt(k) + moving) / math.sqrt(2.0 * d) * _UP)


def _by_places(own: LayerStates) -> Distance:
    found = separate(SystemMatrices(own.F, own.G, own.H))
    if found.aside.n_states:
        return Distance(math.inf, math.inf)
    n_outputs, n_inputs = len(own.H), own.G.shape[1]
    none = modes_of(np.zeros(0, dtype=np.complex128), np.zeros((0, n_inputs)), np.zeros((n_outputs, 0)))
    nothing = Separated(none, none, Distance(0.0, 0.0))
    gap = difference(found.stable, nothing, np.zeros((n_outputs, n_inputs)))
    return Distance(gap.error + found.distance.peak, gap.mean() + found.distance.mean)
