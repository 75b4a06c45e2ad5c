"""Hypothesis: a layer is known by its colour in every drawing, also in greyscale."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from drawing_checks import axes_of_size, example, face_colours, least_difference, lightness
from ltinet.plotting import (
    draw_evaluations_per_layer,
    draw_evaluations_per_neuron,
    layer_colour,
    layer_marker,
)
from ltinet.plotting.colours import layer_colours, line_styles


def test_ten_layers_differ_in_lightness_and_in_marker():
    colours = [layer_colour(index, n_layers=10) for index in range(10)]
    assert min(abs(lightness(a) - lightness(b)) for a, b in combinations(colours, 2)) > 5.5
    assert min(abs(lightness(a) - lightness(b)) for a, b in pairwise(colours)) > 25.0
    assert len({layer_marker(index, n_layers=10) for index in range(10)}) == 10


def test_few_layers_keep_their_colours_when_more_are_drawn():
    assert layer_colours(3) == layer_colours(10)[:3]


@pytest.mark.parametrize("n_layers", [11, 40, 400])
def test_many_layers_grow_lighter_one_by_one(n_layers):
    values = [lightness(colour) for colour in layer_colours(n_layers)]
    # Neighbours among 400 may round to the same eight bits; no later layer is darker by more than such a step.
    assert np.all(np.diff(values) > -0.5)
    assert values[-1] - values[0] > 60.0
    assert values[-1] < 90.0, "the last layer must not vanish on white paper"


def test_eight_lines_are_told_apart_by_anybody_by_colour_or_by_dashes():
    """Lines of the same dashes differ in colour for every kind of vision; neighbours differ in dashes."""
    styles = line_styles(8)
    assert len(set(styles)) == 8
    assert all(a[1] != b[1] for a, b in pairwise(styles))
    for a, b in combinations(styles, 2):
        if a[0] != b[0]:
            assert least_difference(a[0], b[0]) > 15.0  # CIE76; about 2.3 can just be noticed
        if a[1] == b[1]:
            assert least_difference(a[0], b[0]) > 20.0


def test_the_first_four_lines_differ_in_lightness_or_hue_for_anybody():
    colours = [colour for colour, _ in line_styles(4)]
    assert min(least_difference(a, b) for a, b in combinations(colours, 2)) > 24.0


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("n_layers", [1, 4, 10, 400])
def test_a_layer_has_one_colour_in_every_drawing(n_layers):
    net = example(n_layers)
    expected = layer_colours(n_layers)
    counts = [[100 + index] * layer.n_neurons for index, layer in enumerate(net.layers)]
    layer_of = np.repeat(np.arange(n_layers), [layer.n_neurons for layer in net.layers])

    spectrum = net.plot.spectrum(ax=axes_of_size()).axes[0]
    points = [
        (y, colour)
        for group in spectrum.collections
        for (_, y), colour in zip(group.get_offsets(), face_colours(group), strict=True)
    ]
    assert sorted(points) == sorted((float(layer), expected[layer]) for layer in layer_of)  # all real: y is the layer

    per_neuron = draw_evaluations_per_neuron(counts, ax=axes_of_size())
    seen = {
        int(x): colour
        for group in per_neuron.collections
        for (x, _), colour in zip(group.get_offsets(), face_colours(group), strict=True)
    }
    assert [seen[neuron] for neuron in range(net.n_neurons)] == [expected[layer] for layer in layer_of]

    per_layer = draw_evaluations_per_layer(counts, ax=axes_of_size())
    assert [lightness(bar.get_facecolor()) for bar in per_layer.patches] == [lightness(c) for c in expected]

    architecture = net.plot.architecture(ax=axes_of_size()).axes[0]
    assert set(expected) <= {colour for group in architecture.collections for colour in face_colours(group)}

    sparsity = net.plot.sparsity(ax=axes_of_size()).axes[0]
    dots = face_colours(sparsity.collections[1])
    assert dots == [expected[layer] for layer in layer_of]
