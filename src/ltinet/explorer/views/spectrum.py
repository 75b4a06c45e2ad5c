"""The poles of all neurons, with the layer that each belongs to."""

import numpy as np

from ltinet.dynamic_network import DynamicNetwork
from ltinet.explorer.views.numbers import Plain, curve


def poles_view(net: DynamicNetwork) -> Plain:
    """Real and imaginary parts as `net.poles()` has them, layer by layer."""
    poles = net.poles()
    counts = [layer.n_states for layer in net.layers]
    return {
        "real": curve(poles.real),
        "imaginary": curve(poles.imag),
        "layer": np.repeat(np.arange(len(counts)), counts).tolist(),
    }
