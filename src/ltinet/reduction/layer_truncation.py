"""Networks with fewer neurons: truncation of the layers with the smallest contributions.

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
from ltinet.network.network import Network
from ltinet.network.realization import LayerRealization, frequency_response, poles, realize_layer, to_state_space
from ltinet.reduction.balanced_truncation import ReductionOutcome, StateSpaceMatrices, bisect_smallest, error_norms
from ltinet.reduction.mechanical_modes import peak_gains
from ltinet.reduction.modal_form import modes_from_blocks
from ltinet.reduction.separation import UNBOUNDED, DistanceBound, SeparatedSystem, separate_stable
from ltinet.systems.system_matrices import SystemMatrices

_MAX_JOINT_STATES = 600  # states left out, up to which the supremum of their sum is computed
_ROUND_UP = 1.0 + 64.0 * EPS  # covers the rounding of a few operations


class LayerStates(NamedTuple):
    """Layer z' = F z + G u, y = H z."""

    F: Array
    G: Array
    H: Array


@dataclass(frozen=True, eq=False)
class LayerSelection:
    """Selected layers, and bounds on the contribution of the omitted ones, over all frequencies and in the H2 norm."""

    indices: NDArray[np.intp]
    left_out: DistanceBound
    contributions: Array
    """Largest gain of each layer, infinite for one that does not certainly decay."""


def select_layers(layers: Sequence[LayerStates], *, order: int | None, tolerance: float) -> LayerSelection:
    """Select the layers with the largest contributions: those that fit into `order` states, or to a tolerance."""
    gains = [_layer_gain(layer) for layer in layers]
    contributions = np.array([gain.peak for gain in gains])
    ranking = np.argsort(-contributions, kind="stable")

    def select(count: int) -> LayerSelection:
        dropped = np.sort(ranking[count:])
        summed = DistanceBound(float(np.sum(contributions[dropped])), float(sum(gains[i].h2 for i in dropped)))
        left_out = _joint_gain([layers[i] for i in dropped], summed)
        return LayerSelection(np.sort(ranking[:count]), left_out, contributions)

    if order is not None:
        sizes = np.array([len(layer.F) for layer in layers], dtype=np.intp)
        return select(int(np.count_nonzero(np.cumsum(sizes[ranking]) <= order)))
    n = len(layers)
    return bisect_smallest(
        0, n, select(n), reduce=select, is_enough=lambda selection: selection.left_out.peak <= tolerance
    )


def _joint_gain(dropped: Sequence[LayerStates], summed: DistanceBound) -> DistanceBound:
    """Return the lesser of the sum of gains and the gain of the sum: layers may cancel each other."""
    if not 1 < sum(len(layer.F) for layer in dropped) <= _MAX_JOINT_STATES or not math.isfinite(summed.peak):
        return summed
    F = np.asarray(linalg.block_diag(*(layer.F for layer in dropped)))
    G, H = np.vstack([layer.G for layer in dropped]), np.hstack([layer.H for layer in dropped])
    joint = _computed_gain(LayerStates(F, G, H))
    return DistanceBound(min(joint.peak, summed.peak), min(joint.h2, summed.h2))


def _layer_gain(layer: LayerStates) -> DistanceBound:
    """Bound the gain of a layer, in closed form for single neurons."""
    if len(layer.F) == 1:
        rate, size = float(layer.F[0, 0]), float(np.linalg.norm(layer.G) * np.linalg.norm(layer.H)) * _ROUND_UP
        if not rate < 0.0:
            return DistanceBound(0.0, 0.0) if size == 0.0 else UNBOUNDED
        return DistanceBound(size / -rate, size / math.sqrt(-2.0 * rate))
    if len(layer.F) == 2 and layer.F[0, 0] == 0.0:
        return _oscillator_gain(layer)
    return _computed_gain(layer)


def _oscillator_gain(layer: LayerStates) -> DistanceBound:
    """Bound the gain of [[0, w], [−k/w, −d]], a second-order neuron; its H2 norms are 1/√(2dk) and 1/√(2d)."""
    w, d = float(layer.F[0, 1]), -float(layer.F[1, 1])
    k = -w * float(layer.F[1, 0])
    if not (k > 0.0 and d > 0.0):
        return UNBOUNDED
    adjugate = np.array([[d, w], [-k / w, 0.0]])  # N₀ = H adj(−F) G
    N0, N1 = (float(np.linalg.norm(layer.H @ matrix @ layer.G)) for matrix in (adjugate, np.eye(2)))
    rounding = 16.0 * EPS * float(np.linalg.norm(layer.H) * np.linalg.norm(layer.G))  # products may cancel
    N0, N1 = N0 + rounding * float(np.linalg.norm(adjugate)), N1 + rounding
    peak = float(peak_gains(np.array([k]), np.array([d]))[0])
    return DistanceBound((N0 * peak + N1 / d) * _ROUND_UP, (N0 / math.sqrt(k) + N1) / math.sqrt(2.0 * d) * _ROUND_UP)


def _computed_gain(layer: LayerStates) -> DistanceBound:
    """Bound the gain of coupled neurons by a supremum over frequencies."""
    separated = separate_stable(SystemMatrices(layer.F, layer.G, layer.H))
    if separated.aside.n_states:
        return UNBOUNDED
    D = np.zeros((len(layer.H), layer.G.shape[1]))
    empty = modes_from_blocks(np.zeros(0, dtype=np.complex128), np.zeros((0, D.shape[1])), np.zeros((len(D), 0)))
    norms = error_norms(separated.stable, SeparatedSystem(empty, empty, DistanceBound(0.0, 0.0)), D)
    return DistanceBound(norms.error + separated.distance.peak, norms.h2_bound() + separated.distance.h2)


# Networks.


def reduce_network(network: Network, *, order: int | None, tolerance: float | None) -> tuple[ReductionOutcome, Network]:
    """Leave out layers with the smallest contributions to the outputs; the remaining neurons are unchanged.

    Raises:
        InvalidSystemError: neurons that are unstable or integrate do not fit into the order.
    """
    parts = [realize_layer(layer) for layer in network.layers]
    states = [LayerStates(part.F, part.G, phi) for part, phi in zip(parts, network.Phi, strict=True)]
    allowed = 0.0
    if tolerance is not None:  # relative to the reduced network: ‖G_r‖ ≥ ‖G‖ − error
        decaying = np.flatnonzero([math.isfinite(_layer_gain(layer).peak) for layer in states])
        allowed = tolerance / (1.0 + tolerance) * _peak_gain(_select_network(network, parts, decaying))
    selection = select_layers(states, order=order, tolerance=allowed)
    is_decaying = np.isfinite(selection.contributions)
    n_retained = sum(len(states[i].F) for i in np.flatnonzero(~is_decaying))
    if order is not None and order < n_retained:
        raise InvalidSystemError(
            f"order is {order}, but {n_retained} states belong to neurons that are unstable, integrate, or are within "
            f"rounding of that; they are kept, so pass an order of at least {n_retained}"
        )
    small = _select_network(network, parts, selection.indices)
    system = to_state_space(small)
    rounding = 8.0 * EPS * float(np.abs(network.Psi).sum() + np.abs(system.D).sum() + np.abs(small.Psi).sum())
    error = selection.left_out.peak
    outcome = ReductionOutcome(
        matrices=StateSpaceMatrices(system.A, system.B, system.C, system.D),
        order=small.n_states,
        algorithm=f"neurons with the largest contributions, {small.n_neurons} of {network.n_neurons}",
        estimate=error,
        h2_bound=lambda: selection.left_out.h2,
        gain=_peak_gain(_select_network(network, parts, selection.indices[is_decaying[selection.indices]])),
        hankel_values=None,
        parts={"truncation": error, "rounding": rounding},
        n_retained=n_retained,
        notes=(f"{n_retained} states of neurons that do not certainly decay are kept",) if n_retained else (),
    )
    return outcome, small


def _select_network(network: Network, parts: list[LayerRealization], indices: NDArray[np.intp]) -> Network:
    """Return some of the layers; Ψ takes over the direct terms J of the others, so that D is unchanged."""
    dropped = sorted(set(range(len(parts))) - set(indices.tolist()))
    Psi = network.Psi + sum((network.Phi[i] @ parts[i].J for i in dropped), start=np.zeros_like(network.Psi))
    return Network([network.layers[i] for i in indices], [network.Phi[i] for i in indices], Psi)


def _peak_gain(network: Network) -> float:
    """Return the largest gain at zero and at the poles: the supremum, or a little less."""
    values = frequency_response(network, np.unique(np.append(np.abs(poles(network)), 0.0)))
    sizes = np.linalg.norm(np.where(np.isfinite(values), values, 0.0), 2, axis=(1, 2))
    return float(np.max(sizes, initial=0.0))
