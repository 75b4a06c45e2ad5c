"""What a reader sees in a drawing, measured: its texts and where they stand, its colours and their lightness."""

from functools import cache
from itertools import combinations

import numpy as np
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

import ltinet
from ltinet.network.network import Network
from network_examples import random_layer

EXAMPLES = {
    1: "triangular",
    4: "triangular",
    6: "blobs",
    10: "triangular",
    199: "convection_diffusion",
    400: "diffusion",
}
"""The systems of the paper by the number of layers that their networks have here."""


@cache
def example(n_layers):
    """One of the paper's networks."""
    asked = n_layers if n_layers <= 10 else None  # the larger ones are what the default budget gives
    return ltinet.construct(ltinet.named_system(EXAMPLES[n_layers]), n_layers=asked)


def network_of(*layers, n_inputs=1, n_outputs=1):
    """A network whose layers have neurons of the given orders, and no direct path."""
    own = [random_layer(orders, n_inputs, seed=seed) for seed, orders in enumerate(layers)]
    Phi = [np.ones((n_outputs, layer.n_states)) for layer in own]
    return Network(own, Phi, np.zeros((n_outputs, n_inputs)))


def shown_texts(figure):
    """(text, box in pixels) of everything written: words, titles, labels, legends and the ticks inside the limits."""
    figure.draw_without_rendering()
    texts = []
    for axes in figure.findobj(lambda artist: hasattr(artist, "get_xticklabels")):
        texts += [*axes.texts, axes.title]
        if axes.axison:
            texts += [axes.xaxis.label, axes.yaxis.label, *ticks_inside(axes.xaxis), *ticks_inside(axes.yaxis)]
    for legend in figure.findobj(lambda artist: type(artist).__name__ == "Legend"):
        texts += [*legend.get_texts(), legend.get_title()]
    return [(text.get_text(), text.get_window_extent()) for text in texts if text.get_visible() and text.get_text()]


def ticks_inside(axis):
    """Labels of the ticks that matplotlib draws: those between the limits, compared on the scale of the axis."""
    scaled = axis.get_transform().transform
    low, high = scaled(np.sort(axis.get_view_interval()))
    room = 1e-9 * (high - low)
    inside = [tick for tick in axis.get_major_ticks() if low - room <= scaled(tick.get_loc()) <= high + room]
    return [label for tick in inside for label in (tick.label1, tick.label2) if label.get_visible()]


def check_texts(figure):
    """No text is cut off at the edge of the figure, and no two of them lie over each other."""
    texts = shown_texts(figure)
    width, height = figure.get_size_inches() * figure.dpi
    for text, box in texts:
        inside = (box.x0, box.y0, width - box.x1, height - box.y1)
        assert min(inside) >= -1, f"{text!r} is cut off"
    for (first, a), (second, b) in combinations(texts, 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        along = min(a.y1, b.y1) - max(a.y0, b.y0)
        assert across < 1.5 or along < 1.5, f"{first!r} and {second!r} lie over each other"


def drawn(figure):
    """The picture as an array of pixels in greyscale, 0 to 1."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3] @ (0.299, 0.587, 0.114) / 255.0


def lightness(colour):
    """CIE L* of an sRGB colour, 0 for black and 100 for white: what is left of it in greyscale."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    Y = linear @ (0.2126, 0.7152, 0.0722)
    return 116.0 * np.cbrt(Y) - 16.0 if Y > (6 / 29) ** 3 else Y * (29 / 3) ** 3


def face_colours(collection):
    return [to_hex(colour) for colour in collection.get_facecolors()]


def axes_of_size(width=6.4, height=4.8):
    return Figure(figsize=(width, height), dpi=100, layout="constrained").subplots()
