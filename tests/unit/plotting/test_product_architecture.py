"""The diagram of a network with product neurons: their number, kinds and the lines that reach them."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection

import ltinet
from drawing_checks import axes_of_size, shown_texts
from ltinet.plotting.architecture import PRODUCTS, arrange_layers


def network(n_products=2, **options):
    A = np.diag([-1.0, -2.0, -3.0])
    A_p = [np.diag(row) for row in np.eye(3)[:n_products]]
    return ltinet.construct(ltinet.LPV(A, np.ones((3, 1)), np.ones((1, 3)), A_p=A_p, **options))


def crosses(figure):
    """Number of lines of all crosses, which have two each."""
    collections = [item for item in figure.axes[0].collections if isinstance(item, LineCollection) and item.zorder == 5]
    return sum(len(item.get_segments()) for item in collections)


@pytest.mark.parametrize("width", [4.0, 12.8])
def test_products_and_scheduling_signals_are_counted(width):
    axes = axes_of_size(width, 0.6 * width)
    figure = network().plot.architecture(ax=axes)
    assert figure is axes.figure
    texts = [text for text, _ in shown_texts(figure)]
    assert "products: 2 state × scheduling" in texts
    assert "2 scheduling\nsignals" in texts
    assert "3 first-order neurons" in texts
    assert crosses(figure) == 4


def test_names_do_not_overlap():
    boxes = [box for _, box in shown_texts(network().plot())]
    assert not any(one.overlaps(other) for index, one in enumerate(boxes) for other in boxes[:index])


def test_many_products_are_counted_in_a_text():
    figure = ltinet.construct(ltinet.named_system("burgers", n_states=30)).plot.architecture()
    texts = [text for text, _ in shown_texts(figure)]
    assert "products: 30 state × state, 1 state × input" in texts
    shown = crosses(figure) // 2
    assert f"… {31 - shown} …" in texts


def test_without_products_the_arrangement_is_that_of_the_linear_network():
    sizes, connected = [2, 1], [True, False]
    plain = arrange_layers(sizes, connected=connected, aspect=0.6)
    assert arrange_layers(sizes, connected=connected, aspect=0.6, products={"state × state": 0}) == plain
    bands = arrange_layers(sizes, connected=connected, aspect=0.6, products={"state × state": 3}).bands
    assert [band.layer for band in bands] == [0, 1, PRODUCTS]
    assert [len(band.balls) for band in bands] == [2, 1, 3]
    linear = ltinet.construct(ltinet.Bilinear(-np.eye(2), [1, 1], [1, 1]))
    assert "products" not in " ".join(text for text, _ in shown_texts(linear.plot()))


def test_drawings_of_linear_networks_are_refused_with_a_hint():
    for name in ("bode", "spectrum", "step"):
        with pytest.raises(AttributeError, match=rf"net\.linear\.plot\.{name}"):
            getattr(network().plot, name)


@pytest.mark.parametrize("n_inputs", [2, 7])
def test_only_inputs_with_products_have_lines_to_them(n_inputs):
    N = [np.eye(2)] + [None] * (n_inputs - 1)
    net = ltinet.construct(ltinet.Bilinear(-np.eye(2), np.ones((2, n_inputs)), np.ones(2), N=N))
    axes = net.plot.architecture().axes[0]
    wires = next(item for item in axes.collections if isinstance(item, LineCollection) and item.zorder == 1)
    ends = [
        tuple(segment[1]) for segment in wires.get_segments() if segment[0][0] < segment[1][0] < axes.get_xlim()[1] / 2
    ]
    starts = {end: sum(other == end for other in ends) for end in ends}
    n_drawn = min(n_inputs, 4)
    assert sorted(starts.values()) == [1] + [n_drawn] * net.n_layers  # the band of products has a line from u1 only
