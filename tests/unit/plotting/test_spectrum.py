"""Hypothesis: every eigenvalue is drawn at its place, whatever the spread of the spectrum."""

import numpy as np
import pytest

import ltinet
from drawing_checks import EXAMPLES, axes_of_size, check_texts, example, shown_texts
from ltinet.plotting import draw_spectrum


def points(axes):
    return np.concatenate([group.get_offsets() for group in axes.collections])


def sorted_complex(values):
    return np.sort_complex(np.asarray(values, dtype=complex))


@pytest.mark.parametrize("n_layers", [6, 199])
def test_points_are_the_poles(n_layers):
    net = example(n_layers)
    xy = points(net.plot.spectrum(ax=axes_of_size()).axes[0])
    np.testing.assert_array_equal(sorted_complex(xy[:, 0] + 1j * xy[:, 1]), sorted_complex(net.poles()))


def test_the_form_shows_the_same_spectrum_as_the_network():
    form = example(6).form
    xy = points(form.plot.spectrum(ax=axes_of_size()).axes[0])
    np.testing.assert_array_equal(
        sorted_complex(xy[:, 0] + 1j * xy[:, 1]), sorted_complex(np.concatenate(form.eigenvalues))
    )


@pytest.mark.parametrize("n_layers", sorted(EXAMPLES))
def test_texts_neither_overlap_nor_leave_the_figure(n_layers):
    axes = example(n_layers).plot.spectrum(ax=axes_of_size()).axes[0]
    assert axes.get_xlabel() == "real part (1/time)"
    check_texts(axes.figure)


def test_a_real_spectrum_stands_layer_above_layer():
    axes = draw_spectrum([[-1.0, -1.1], [-3.0]], ax=axes_of_size())
    assert axes.get_ylabel() == "layer"
    assert points(axes)[:, 1].tolist() == [0.0, 0.0, 1.0]
    assert axes.yaxis_inverted()


def test_comparable_spans_are_drawn_to_one_scale():
    assert draw_spectrum([[-1 + 2j, -1 - 2j], [-3.0]], ax=axes_of_size()).get_aspect() == 1.0
    assert draw_spectrum([[-1 + 80j, -1 - 80j], [-3.0]], ax=axes_of_size()).get_aspect() == "auto"


def test_a_spread_over_many_powers_of_ten_is_logarithmic_and_shows_all():
    values = [[-0.01], [-0.1], [-1 + 2j, -1 - 2j], [-1e4], [0.0], [0.5]]
    axes = draw_spectrum(values, ax=axes_of_size())
    assert axes.get_xscale() == "symlog"
    low, high = axes.get_xlim()
    assert low < -1e4
    assert high > 0.5
    check_texts(axes.figure)


def test_a_legend_only_where_layers_must_be_told_apart():
    assert draw_spectrum([[-1 + 1j, -1 - 1j]], ax=axes_of_size()).get_legend() is None
    legend = draw_spectrum([[-1 + 1j, -1 - 1j], [-2.0]], ax=axes_of_size()).get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["0", "1"]
    assert len(example(199).plot.spectrum(ax=axes_of_size()).axes) == 2  # a colour bar


def test_no_eigenvalues_is_said_in_words():
    axes = draw_spectrum([], ax=axes_of_size())
    assert any("static gain" in text for text, _ in shown_texts(axes.figure))


@pytest.mark.parametrize("bad", [["a"], [[[1.0]]], [[np.nan]], [[1.0], [np.inf]]])
def test_what_is_no_spectrum_is_refused(bad):
    with pytest.raises(ltinet.PlottingError, match="eigenvalues"):
        draw_spectrum(bad, ax=axes_of_size())
