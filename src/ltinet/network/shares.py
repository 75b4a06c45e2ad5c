"""How much of an output comes from each neuron: y = Σ Φ_l (ξ, ξ̇) + Ψ u, term by term."""

import numpy as np

from ltinet.arrays import Array
from ltinet.errors import InvalidNetworkError
from ltinet.network.network import Network


def neuron_share(network: Network, neuron_states: Array, *, layer: int, neuron: int) -> Array:
    """What one neuron adds to every output, `(..., T, p)`, from states `(..., T, n)` as `sol.neuron_states` has them.

    The shares of all neurons and Ψ u sum to y.

    Raises:
        InvalidNetworkError: there is no such neuron.
    """
    if layer >= network.n_layers or neuron >= network.layers[layer].n_neurons:
        raise InvalidNetworkError(
            f"there is no neuron {layer}.{neuron}; the network has {network.n_layers} layers, and neurons of a layer "
            "count from 0"
        )
    own, start = network.layers[layer], sum(other.n_states for other in network.layers[:layer])
    weights, places = network.Phi[layer], [neuron]
    if own.is_second_order[neuron]:
        places.append(own.n_neurons + int(np.count_nonzero(own.is_second_order[:neuron])))
    columns = np.array(places)
    return np.asarray(neuron_states[..., start + columns] @ weights[:, columns].T)
