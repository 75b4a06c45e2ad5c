"""Hypothesis: the pattern covers exactly the places that carry weight."""

import numpy as np
import pytest

import ltinet
from drawing_checks import EXAMPLES, axes_of_size, check_texts, example, network_of, shown_texts
from ltinet.plotting import draw_sparsity


def filled(axes, size):
    """The places (row, column) that the drawn boxes cover."""
    mask = np.zeros((size, size), dtype=bool)
    for path in axes.collections[0].get_paths():
        (left, top), (right, bottom) = path.vertices.min(axis=0) + 0.5, path.vertices.max(axis=0) + 0.5
        mask[round(top) : round(bottom), round(left) : round(right)] = True
    return mask


def test_boxes_cover_the_pattern():
    rng = np.random.default_rng(0)
    patterns = [rng.random((n, n)) < 0.5 for n in (4, 1, 7)]
    expected = np.zeros((12, 12), dtype=bool)
    for start, pattern in zip((0, 4, 5), patterns, strict=True):
        stop = start + len(pattern)
        expected[start:stop, start:stop] = pattern
    np.testing.assert_array_equal(filled(draw_sparsity(patterns, ax=axes_of_size()), 12), expected)


def test_squares_are_connections_and_dots_neurons_and_the_title_counts_both():
    axes = ltinet.DynamicNetwork(network_of([1, 2, 1], [1])).plot.sparsity(ax=axes_of_size()).axes[0]
    assert axes.get_title() == "4 neurons, 3 of 6 possible connections"
    assert np.count_nonzero(filled(axes, 4)) == 3
    np.testing.assert_array_equal(axes.collections[1].get_offsets(), np.column_stack([range(4)] * 2))


def test_a_network_without_connections_shows_no_square():
    net = ltinet.DynamicNetwork(network_of([1], [2], [1]))
    assert net.plot.sparsity(ax=axes_of_size()).axes[0].collections[0].get_paths() == []


def test_the_form_shows_the_entries_of_its_matrix():
    form = example(4).form
    axes = form.plot.sparsity(ax=axes_of_size()).axes[0]
    np.testing.assert_array_equal(filled(axes, 10), form.A != 0.0)
    assert axes.get_title() == f"{np.count_nonzero(form.A)} of 100 entries are not zero"
    assert axes.get_xlabel() == "from state"


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("n_layers", sorted(EXAMPLES))
def test_texts_neither_overlap_nor_leave_the_figure(n_layers):
    check_texts(example(n_layers).plot.sparsity(ax=axes_of_size()))


def test_nothing_to_draw_is_said_in_words():
    axes = draw_sparsity([], ax=axes_of_size())
    assert any("static gain" in text for text, _ in shown_texts(axes.figure))


@pytest.mark.parametrize("bad", [[np.ones(3)], [np.ones((2, 3))]])
def test_patterns_that_are_not_square_are_refused(bad):
    with pytest.raises(ltinet.PlottingError, match="square"):
        draw_sparsity(bad, ax=axes_of_size())
