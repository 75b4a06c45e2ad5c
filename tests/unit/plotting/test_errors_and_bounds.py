"""Hypothesis: each run has a solid line for its error and a dashed one of the same colour for its bound."""

import numpy as np
import pytest

import ltinet
from drawing_checks import check_texts
from ltinet.plotting import draw_errors_and_bounds, new_figure

T = np.linspace(0.0, 1.0, 11)


def test_errors_and_bounds_are_drawn_in_pairs():
    figure = new_figure()
    runs = {"Algorithm 3": (1e-8 * T, 2e-8 * T), "Algorithm A.1": (1e-12 * T, 1.1e-12 * T)}
    axes = draw_errors_and_bounds(T, runs, ax=figure.subplots())
    assert [line.get_linestyle() for line in axes.lines] == ["-", "--", "-", "--"]
    colours = [line.get_color() for line in axes.lines]
    assert colours[0] == colours[1] != colours[2] == colours[3]
    np.testing.assert_array_equal(axes.lines[1].get_ydata()[1:], 2e-8 * T[1:])
    assert np.isnan(axes.lines[0].get_ydata()[0])  # zero has no place on a log axis
    assert axes.get_yscale() == "log"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [*runs, "error", "bound"]
    check_texts(figure)


def test_arrays_that_do_not_fit_are_refused():
    with pytest.raises(ltinet.PlottingError, match="Algorithm 3"):
        draw_errors_and_bounds(T, {"Algorithm 3": (T, T[1:])})
