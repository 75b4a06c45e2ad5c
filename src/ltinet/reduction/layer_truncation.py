"""Networks with fewer neurons: truncation of layers with the smallest contribution, and layers made of oscillators.

A layer is z' = F z + G u, y = H z, independent of the others. A first-order neuron contributes at most ‖h‖‖g‖/|f|. A
second-order neuron is (N₀ + sN₁)/(s² + ds + k) with N₁ = H G and contributes at most ‖N₀‖h + ‖N₁‖/d, h its peak gain.
Neurons that feed each other are one system, whose supremum is computed (`supremum`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from ltinet._util.floating_point import EPS, Array
from ltinet.errors import InvalidSystemError
from ltinet.network.layer import HorizontalLayer
from ltinet.network.network import Network
from ltinet.network.realization import LayerRealization, frequency_response, poles, realize_layer, to_state_space
from ltinet.reduction.balanced_truncation import StateSpaceMatrices, error_norms
from ltinet.reduction.matrix_reduction import ReductionOutcome
from ltinet.reduction.mechanical_modes import bisect_smallest, peak_gains
from ltinet.reduction.modal_form import modes_from_blocks
from ltinet.reduction.separation import DistanceBound, SeparatedSystem, separate_stable
from ltinet.systems.matrices import make_read_only
from ltinet.systems.system_matrices import SystemMatrices

# MERGED ltinet.reduction.layer_truncation
# Which layers of a network are left out: those with the smallest shares in its outputs, each with a proven bound.
#
# A layer is z' = F z + G u, y = H z, on its own. One first-order neuron has the share ‖h‖‖g‖/|f|. One second-order neuron
# is (N₀ + sN₁)/(s² + ds + k) with N₁ = H G: at most ‖N₀‖h + ‖N₁‖/d, h its peak gain. Neurons that feed each other are one
# system, whose supremum comes from places that suffice.

_TOGETHER = 600  # states left out, up to which their sum is looked at over all frequencies
_UP = 1.0 + 64.0 * EPS  # rounds up what a few operations computed


class LayerStates(NamedTuple):
    """z' = F z + G u, y = H z."""

    F: Array
    G: Array
    H: Array


@dataclass(frozen=True, eq=False)
class LayerSelection:
    """Which layers stay, and bounds on what the others did, over all frequencies and in the H2 norm."""

    kept: NDArray[np.intp]
    left_out: DistanceBound
    shares: Array
    """The largest gain of each layer, infinite for one that does not surely decay."""


def provably_stable(layers: Sequence[LayerStates]) -> NDArray[np.intp]:
    """Which layers have a share that is finite."""
    return np.flatnonzero([math.isfinite(_gains(own).peak) for own in layers])


def select_layers(layers: Sequence[LayerStates], *, order: int | None, allowed: float) -> LayerSelection:
    """Keep layers with the largest shares: as many as fit into `order` states, or as leave out `allowed` at most."""
    found = [_gains(own) for own in layers]
    shares = np.array([own.peak for own in found])
    ranked, sizes = np.argsort(-shares, kind="stable"), np.array([len(own.F) for own in layers], dtype=np.intp)

    def first(count: int) -> LayerSelection:
        dropped = np.sort(ranked[count:])
        summed = DistanceBound(float(np.sum(shares[dropped])), float(sum(found[own].mean for own in dropped)))
        return LayerSelection(
            np.sort(ranked[:count]), _joint_distance([layers[own] for own in dropped], summed), shares
        )

    if order is not None:
        return first(int(np.count_nonzero(np.cumsum(sizes[ranked]) <= order)))
    return bisect_smallest(len(layers), first, lambda own: own.left_out.peak <= allowed)


def _joint_distance(dropped: Sequence[LayerStates], summed: DistanceBound) -> DistanceBound:
    """Layers may cancel each other: the lesser of the sum of shares and the share of the sum."""
    if not 1 < sum(len(own.F) for own in dropped) <= _TOGETHER or not math.isfinite(summed.peak):
        return summed
    F = np.asarray(linalg.block_diag(*(own.F for own in dropped)))
    whole = LayerStates(F, np.vstack([own.G for own in dropped]), np.hstack([own.H for own in dropped]))
    found = _by_places(whole)
    return DistanceBound(min(found.peak, summed.peak), min(found.mean, summed.mean))


def _gains(own: LayerStates) -> DistanceBound:
    if len(own.F) == 1:
        rate, size = float(own.F[0, 0]), float(np.linalg.norm(own.G) * np.linalg.norm(own.H)) * _UP
        if not rate < 0.0:
            return DistanceBound(0.0, 0.0) if size == 0.0 else DistanceBound(math.inf, math.inf)
        return DistanceBound(size / -rate, size / math.sqrt(-2.0 * rate))
    if len(own.F) == 2 and own.F[0, 0] == 0.0:
        return _of_oscillator(own)
    return _by_places(own)


def _of_oscillator(own: LayerStates) -> DistanceBound:
    """[[0, w], [−k/w, −d]], as second-order neurons are written; their H2 norms are 1/√(2dk) and 1/√(2d)."""
    w, d = float(own.F[0, 1]), -float(own.F[1, 1])
    k = -w * float(own.F[1, 0])
    if not (k > 0.0 and d > 0.0):
        return DistanceBound(math.inf, math.inf)
    turned = np.array([[d, w], [-k / w, 0.0]])
    at_rest, moving = (float(np.linalg.norm(own.H @ matrix @ own.G)) for matrix in (turned, np.eye(2)))
    lost = 16.0 * EPS * float(np.linalg.norm(own.H) * np.linalg.norm(own.G))  # products may cancel
    at_rest, moving = at_rest + lost * float(np.linalg.norm(turned)), moving + lost
    peak = float(peak_gains(np.array([k]), np.array([d]))[0])
    return DistanceBound(
        (at_rest * peak + moving / d) * _UP, (at_rest / math.sqrt(k) + moving) / math.sqrt(2.0 * d) * _UP
    )


def _by_places(own: LayerStates) -> DistanceBound:
    found = separate_stable(SystemMatrices(own.F, own.G, own.H))
    if found.aside.n_states:
        return DistanceBound(math.inf, math.inf)
    n_outputs, n_inputs = len(own.H), own.G.shape[1]
    none = modes_from_blocks(np.zeros(0, dtype=np.complex128), np.zeros((0, n_inputs)), np.zeros((n_outputs, 0)))
    nothing = SeparatedSystem(none, none, DistanceBound(0.0, 0.0))
    gap = error_norms(found.stable, nothing, np.zeros((n_outputs, n_inputs)))
    return DistanceBound(gap.error + found.distance.peak, gap.mean() + found.distance.mean)


# MERGED ltinet.reduction.layer_truncation
# Networks with fewer neurons: layers left out of one, and layers made of oscillators.


def reduce_network(network: Network, *, order: int | None, tolerance: float | None) -> tuple[ReductionOutcome, Network]:
    """Leave out layers with the smallest shares in the outputs; the neurons that stay are the same, bit for bit.

    Raises:
        InvalidSystemError: neurons that grow or integrate do not fit into the order.
    """
    parts = [realize_layer(layer) for layer in network.layers]
    states = [LayerStates(own.F, own.G, phi) for own, phi in zip(parts, network.Phi, strict=True)]
    allowed = 0.0
    if tolerance is not None:  # of what is left: ‖G_r‖ ≥ ‖G‖ − error
        allowed = tolerance / (1.0 + tolerance) * _gain(_with_layers(network, parts, provably_stable(states)))
    found = select_layers(states, order=order, allowed=allowed)
    n_aside = sum(len(states[own].F) for own in np.flatnonzero(~np.isfinite(found.shares)))
    if order is not None and order < n_aside:
        raise InvalidSystemError(
            f"order is {order}, but {n_aside} states belong to neurons that grow or integrate, or that cannot be told "
            f"from such, and are kept; ask for an order of at least {n_aside}"
        )
    small = _with_layers(network, parts, found.kept)
    return _outcome(network, small, found, n_aside), small


def _outcome(network: Network, small: Network, found: LayerSelection, n_aside: int) -> ReductionOutcome:
    system = to_state_space(small)
    rounding = 8.0 * EPS * float(np.abs(network.Psi).sum() + np.abs(system.D).sum() + np.abs(small.Psi).sum())
    error, mean = found.left_out.peak, found.left_out.mean
    notes = (f"{n_aside} states of neurons that do not surely decay are kept",) if n_aside else ()
    decaying = found.kept[np.isfinite(found.shares[found.kept])]
    parts = [realize_layer(layer) for layer in network.layers]
    return ReductionOutcome(
        matrices=StateSpaceMatrices(system.A, system.B, system.C, system.D),
        order=small.n_states,
        way=f"neurons with the largest shares in the outputs, {small.n_neurons} of {network.n_neurons}",
        error_bound=error + rounding,
        estimate=error,
        mean=lambda: mean,
        gain=_gain(_with_layers(network, parts, decaying)),
        hankel_values=None,
        parts={"truncation": error, "rounding": rounding},
        n_aside=n_aside,
        notes=notes,
    )


def _with_layers(network: Network, parts: list[LayerRealization], kept: NDArray[np.intp]) -> Network:
    """Some of the layers; Ψ takes over the inputs that the others passed on at once, J, so that D stays."""
    left = sorted(set(range(len(parts))) - set(kept.tolist()))
    Psi = network.Psi + sum((network.Phi[own] @ parts[own].J for own in left), start=np.zeros_like(network.Psi))
    return Network([network.layers[own] for own in kept], [network.Phi[own] for own in kept], Psi)


def _gain(network: Network) -> float:
    """The largest gain at rest and at the poles: the supremum, or a little less."""
    values = frequency_response(network, np.unique(np.append(np.abs(poles(network)), 0.0)))
    sizes = np.linalg.norm(np.where(np.isfinite(values), values, 0.0), 2, axis=(1, 2))
    return float(np.max(sizes, initial=0.0))


def oscillator_network(found: ReductionOutcome) -> Network | None:
    """One second-order neuron for every mode of a reduced mechanical model; None where dampings couple them."""
    model = found.second_order
    if model is None:
        return None
    D, K = np.asarray(model.D), np.asarray(model.K)
    if np.count_nonzero(D - np.diag(D.diagonal())):
        return None
    layers, Phi, zero = [], [], np.zeros_like(model.B[:1])
    for own in range(model.n_positions):
        rows = ([[1.0]], [[D[own, own]]], [[K[own, own]]], model.B[own : own + 1], zero)
        layers.append(HorizontalLayer(*rows))
        Phi.append(make_read_only(np.column_stack([model.C[:, own], np.zeros(len(model.C))])))
    return Network(layers, Phi, np.zeros((len(model.C), model.B.shape[1])))
