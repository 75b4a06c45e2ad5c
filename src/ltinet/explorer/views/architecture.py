"""Inputs, neurons in their layers and outputs, placed as the library's own drawing places them."""

from ltinet.dynamic_network import DynamicNetwork
from ltinet.explorer.views.numbers import Plain, places
from ltinet.network.layer import HorizontalLayer
from ltinet.plotting.arrangement import Band, arrange

_ASPECT = 0.62  # height over width
_MOST_ARCS = 1200  # of a layer: more are a grey cloud, and are counted in words


def architecture_view(net: DynamicNetwork) -> Plain:
    """Bands with balls and arcs in the coordinates of the drawing, y upwards; every ball with its equation."""
    layers = net.layers
    sizes = [layer.n_neurons for layer in layers]
    found = arrange(sizes, connected=[layer.n_connections > 0 for layer in layers], aspect=_ASPECT)
    return {
        "width": round(found.width, 2),
        "height": round(found.height, 2),
        "left": round(found.left, 2),
        "right": round(found.right, 2),
        "bands": [_band(band, net) for band in found.bands],
        "inputs": list(net.input_names),
        "outputs": list(net.output_names),
    }


def _band(band: Band, net: DynamicNetwork) -> Plain:
    layer = None if band.layer is None else net.layers[band.layer]
    neurons = [net.layers[ball.layer].neurons[ball.neuron] for ball in band.balls]
    return {
        "layer": band.layer,
        "label": [band.label.text, *places((band.label.x, band.label.y))],
        "words": [[word.text, *places((word.x, word.y))] for word in band.words],
        "top": round(band.top, 2),
        "bottom": round(band.bottom, 2),
        "balls": [
            [ball.layer, ball.neuron, *places((ball.x, ball.y)), neuron.order, str(neuron.equation)]
            for ball, neuron in zip(band.balls, neurons, strict=True)
        ],
        "arcs": [] if layer is None else _arcs(band, layer),
        "n_connections": 0 if layer is None else layer.n_connections,
        "room": round(band.room, 2),
    }


def _arcs(band: Band, layer: HorizontalLayer) -> list[list[float]]:
    """From and to which x neurons feed each other, those that are drawn."""
    x = {ball.neuron: ball.x for ball in band.balls}
    drawn = [(x[j], x[i]) for i, j in layer.edges if i in x and j in x]
    return [places(pair) for pair in drawn[:_MOST_ARCS]]
