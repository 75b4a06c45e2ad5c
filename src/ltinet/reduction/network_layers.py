"""Networks with fewer neurons: layers left out of one, and layers made of oscillators."""

import numpy as np
from numpy.typing import NDArray

from ltinet.errors import InvalidSystemError
from ltinet.model.matrices import read_only
from ltinet.network.layer import HorizontalLayer
from ltinet.network.network import Network
from ltinet.network.response import frequency_response, poles
from ltinet.network.state_equations import LayerRealisation, realise_layer, to_state_space
from ltinet.reduction.balancing import Matrices
from ltinet.reduction.neurons import LayersKept, LayerStates, keep_layers, surely_decaying
from ltinet.reduction.outcome import Outcome
from ltinet.tolerances import EPS


def reduce_network(network: Network, *, order: int | None, tolerance: float | None) -> tuple[Outcome, Network]:
    """Leave out layers with the smallest shares in the outputs; the neurons that stay are the same, bit for bit.

    Raises:
        InvalidSystemError: neurons that grow or integrate do not fit into the order.
    """
    parts = [realise_layer(layer) for layer in network.layers]
    states = [LayerStates(own.F, own.G, phi) for own, phi in zip(parts, network.Phi, strict=True)]
    allowed = 0.0
    if tolerance is not None:  # of what is left: ‖G_r‖ ≥ ‖G‖ − error
        allowed = tolerance / (1.0 + tolerance) * _gain(_with_layers(network, parts, surely_decaying(states)))
    found = keep_layers(states, order=order, allowed=allowed)
    n_aside = sum(len(states[own].F) for own in np.flatnonzero(~np.isfinite(found.shares)))
    if order is not None and order < n_aside:
        raise InvalidSystemError(
            f"order is {order}, but {n_aside} states belong to neurons that grow or integrate, or that cannot be told "
            f"from such, and are kept; ask for an order of at least {n_aside}"
        )
    small = _with_layers(network, parts, found.kept)
    return _outcome(network, small, found, n_aside), small


def _outcome(network: Network, small: Network, found: LayersKept, n_aside: int) -> Outcome:
    system = to_state_space(small)
    rounding = 8.0 * EPS * float(np.abs(network.Psi).sum() + np.abs(system.D).sum() + np.abs(small.Psi).sum())
    error, mean = found.left_out.peak, found.left_out.mean
    remarks = (f"{n_aside} states of neurons that do not surely decay are kept",) if n_aside else ()
    decaying = found.kept[np.isfinite(found.shares[found.kept])]
    parts = [realise_layer(layer) for layer in network.layers]
    return Outcome(
        matrices=Matrices(system.A, system.B, system.C, system.D),
        order=small.n_states,
        way=f"neurons with the largest shares in the outputs, {small.n_neurons} of {network.n_neurons}",
        error_bound=error + rounding,
        estimate=error,
        mean=lambda: mean,
        gain=_gain(_with_layers(network, parts, decaying)),
        hankel_values=None,
        parts={"truncation": error, "rounding": rounding},
        n_aside=n_aside,
        remarks=remarks,
    )


def _with_layers(network: Network, parts: list[LayerRealisation], kept: NDArray[np.intp]) -> Network:
    """Some of the layers; Ψ takes over the inputs that the others passed on at once, J, so that D stays."""
    left = sorted(set(range(len(parts))) - set(kept.tolist()))
    Psi = network.Psi + sum((network.Phi[own] @ parts[own].J for own in left), start=np.zeros_like(network.Psi))
    return Network([network.layers[own] for own in kept], [network.Phi[own] for own in kept], Psi)


def _gain(network: Network) -> float:
    """The largest gain at rest and at the poles: the supremum, or a little less."""
    values = frequency_response(network, np.unique(np.append(np.abs(poles(network)), 0.0)))
    sizes = np.linalg.norm(np.where(np.isfinite(values), values, 0.0), 2, axis=(1, 2))
    return float(np.max(sizes, initial=0.0))


def network_of_oscillators(found: Outcome) -> Network | None:
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
        Phi.append(read_only(np.column_stack([model.C[:, own], np.zeros(len(model.C))])))
    return Network(layers, Phi, np.zeros((len(model.C), model.B.shape[1])))
