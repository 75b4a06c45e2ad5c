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
        texts += [*axes.texts, axes.title, axes._left_title]
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


# How people without red, green or blue cones see linear RGB (Machado, Oliveira and Fernandes 2009, severity 1).
VISIONS = (
    np.eye(3),
    np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
)
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def least_difference(one, other):
    """The distance of two colours in CIE L*a*b*, for the kind of vision to which they are most alike."""
    return min(np.linalg.norm(cie_lab(one, vision) - cie_lab(other, vision)) for vision in VISIONS)


def cie_lab(colour, vision):
    rgb = np.array(to_rgb(colour))
    linear = vision @ np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(linear, 0.0, 1.0) / (TO_XYZ @ np.ones(3))
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116.0 * f[1] - 16.0, 500.0 * (f[0] - f[1]), 200.0 * (f[1] - f[2])])


def face_colours(collection):
    return [to_hex(colour) for colour in collection.get_facecolors()]


def axes_of_size(width=6.4, height=4.8):
    return Figure(figsize=(width, height), dpi=100, layout="constrained").subplots()
