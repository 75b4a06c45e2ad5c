"""Hypothesis: the drawing shows every neuron in its layer, or says in words how many it leaves out."""

import re

import numpy as np
import pytest

from drawing_checks import EXAMPLES, axes_of_size, check_texts, drawn, example, network_of, shown_texts
from ltinet.network.network import Network
from ltinet.plotting import draw_architecture
from ltinet.plotting.architecture import arrange_layers


def words(axes):
    return [text for text, _ in shown_texts(axes.figure)]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("n_layers", sorted(EXAMPLES))
@pytest.mark.parametrize("size", [(6.4, 4.8), (10.0, 6.0)])
def test_texts_neither_overlap_nor_leave_the_figure(n_layers, size):
    axes = axes_of_size(*size)
    assert example(n_layers).plot.architecture(ax=axes) is axes.figure
    check_texts(axes.figure)
    discs = [path for group in axes.collections if group.get_zorder() == 6 for path in group.get_paths()]
    balls = np.array([axes.transData.transform(path.vertices.mean(axis=0)) for path in discs])
    for text, box in shown_texts(axes.figure):
        covered = (box.x0 < balls[:, 0]) & (balls[:, 0] < box.x1) & (box.y0 < balls[:, 1]) & (balls[:, 1] < box.y1)
        assert not np.any(covered), f"{text!r} lies over a neuron"


def test_every_layer_has_a_named_row_and_every_neuron_a_ball():
    axes = draw_architecture(network_of([1, 2, 1], [2], [1, 1], n_inputs=7, n_outputs=2), ax=axes_of_size())
    expected = {"layer 0", "layer 1", "layer 2", "7 inputs", "2 outputs", "4 first-order neurons"}
    assert expected <= set(words(axes))
    assert "2 second-order neurons" in words(axes)
    discs = max((c.get_paths() for c in axes.collections if c.get_zorder() == 6), key=len)
    assert len(discs) == 6


def test_neurons_stand_in_the_order_of_solution_and_rows_from_top_to_bottom():
    bands = arrange_layers([3, 2], connected=[True, True], aspect=0.7).bands
    assert [ball.neuron for ball in sorted(bands[0].balls, key=lambda ball: ball.x)] == [2, 1, 0]
    assert bands[0].bottom > bands[1].top


def test_yin_yang_balls_are_half_dark_and_solid_ones_all_dark():
    """In a layer of colour black a solid ball shows no white, a yin-yang ball about half."""

    def dark_share(order):
        from ltinet.plotting.architecture import BALL_RADIUS, add_neuron_glyphs

        axes = axes_of_size(2.0, 2.0)
        axes.set_position([0, 0, 1, 1])
        axes.set_axis_off()
        axes.set(xlim=(-BALL_RADIUS, BALL_RADIUS), ylim=(-BALL_RADIUS, BALL_RADIUS))
        add_neuron_glyphs(axes, [(0.0, 0.0)], second_order=[order == 2], colours=["black"])
        axes.figure.set_layout_engine("none")
        picture = drawn(axes.figure)
        y, x = np.indices(picture.shape) / (len(picture) - 1) * 2.0 - 1.0
        return np.mean(picture[np.hypot(x, y) < 0.95] < 0.5)

    assert dark_share(1) == 1.0
    assert abs(dark_share(2) - 0.5) < 0.03  # the halves are congruent; the outline and its blur take the rest


def test_connections_that_are_not_zero_are_drawn():
    network = network_of([1, 1, 1, 1])
    curves = [c for c in draw_architecture(network, ax=axes_of_size()).collections if c.get_zorder() == 2]
    assert len(curves[0].get_paths()) == len(network.layers[0].edges) == 6


@pytest.mark.parametrize(
    "sizes", [[1] * 13, [1] * 400, [40] + [1] * 198, [30, 2], [3] * 40, [1] * 5000, [2] * 9 + [1] * 7]
)
def test_what_is_not_shown_is_counted(sizes):
    bands = arrange_layers(sizes, connected=[True] * len(sizes), aspect=0.7).bands
    shown = sum(len(band.balls) for band in bands)
    left_out = 0
    for band in bands:
        for text in band.words:
            left_out += int(text.text.split()[1])
        if "more layer" in band.label.text:
            count, size = re.fullmatch(r"… and (\d+) more layers? of (\d+) neurons each", band.label.text).groups()
            left_out += int(count) * int(size)
    assert shown + left_out == sum(sizes)
    assert shown <= 24 * 18 + 12 * 24
    assert len({(ball.x, ball.y) for band in bands for ball in band.balls}) == shown


def test_four_hundred_layers_are_all_shown():
    assert sum(len(band.balls) for band in arrange_layers([1] * 400, connected=[False] * 400, aspect=0.7).bands) == 400


def test_balls_stay_inside_their_bands():
    for sizes in ([1] * 400, [16, 14, 15], [40] + [1] * 198):
        arrangement = arrange_layers(sizes, connected=[True] * len(sizes), aspect=0.6)
        for band in arrangement.bands:
            assert all(band.bottom <= ball.y - 0.38 and ball.y + 0.38 <= band.top for ball in band.balls)
            assert all(arrangement.left <= ball.x - 0.38 and ball.x + 0.38 <= arrangement.right for ball in band.balls)


def test_the_direct_path_is_drawn_only_where_it_is_more_than_rounding():
    assert "direct path Ψ u" in words(example(4).plot.architecture(ax=axes_of_size()).axes[0])  # D is not zero
    assert "direct path Ψ u" not in words(example(400).plot.architecture(ax=axes_of_size()).axes[0])
    network = network_of([2])
    tiny = Network(network.layers, network.Phi, [[1e-18]])
    assert "direct path Ψ u" not in words(draw_architecture(tiny, ax=axes_of_size()))


def test_a_static_gain_has_a_direct_path_alone():
    axes = draw_architecture(Network([], [], np.ones((2, 3))), ax=axes_of_size())
    assert {"3 inputs", "2 outputs", "direct path Ψ u"} == set(words(axes))
    check_texts(axes.figure)
