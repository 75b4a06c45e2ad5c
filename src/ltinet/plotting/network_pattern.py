"""Poles and connections of a network, from its layers."""

from typing import TYPE_CHECKING

from ltinet.plotting.drawn import DrawnNetwork
from ltinet.plotting.sparsity import draw_sparsity
from ltinet.plotting.spectrum import draw_spectrum
from ltinet.shown import count_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_network_spectrum(network: DrawnNetwork, *, key: bool = True, ax: "Axes | None" = None) -> "Axes":
    """The poles of all neurons, coloured by layer."""
    poles = [[pole for neuron in layer.neurons for pole in neuron.poles] for layer in network.layers]
    return draw_spectrum(poles, key=key, ax=ax)


def draw_network_sparsity(network: DrawnNetwork, *, key: bool = True, ax: "Axes | None" = None) -> "Axes":
    """Neurons as dots, connections as squares; the title counts those whose weights are not zero."""
    layers = network.layers
    patterns = [(layer.C != 0.0) | (layer.K != 0.0) | (layer.M != 0.0) for layer in layers]
    axes = draw_sparsity(patterns, diagonal="dots", key=key, ax=ax)
    count, n = sum(len(layer.edges) for layer in layers), sum(layer.n_neurons for layer in layers)
    possible = f"{count} of {n * (n - 1) // 2} possible connections"
    axes.set_title(f"{count_of(n, 'neuron')}, {possible}" if key else possible, fontsize="medium")
    return axes
