"""Hypothesis: each run has a thin line for its error and a broad one of the same colour for its bound."""

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
    bound, error, marks = axes.lines[:3]
    assert [line.get_linestyle() for line in (bound, error, marks)] == ["-", "-", "None"]
    assert bound.get_linewidth() > 2.0 * error.get_linewidth()  # where both are one line the eye still sees two
    assert marks.get_markerfacecolor() == "white"
    colours = [axes.lines[k].get_color() for k in (0, 1, 3, 4)]
    assert colours[0] == colours[1] != colours[2] == colours[3]
    np.testing.assert_array_equal(bound.get_ydata()[1:], 2e-8 * T[1:])
    assert np.isnan(error.get_ydata()[0])  # zero has no place on a log axis
    assert axes.get_yscale() == "log"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [*runs, "error", "bound"]
    check_texts(figure)


def test_arrays_that_do_not_fit_are_refused():
    with pytest.raises(ltinet.PlottingError, match="Algorithm 3"):
        draw_errors_and_bounds(T, {"Algorithm 3": (T, T[1:])})


def test_a_start_that_is_right_to_the_last_digit_does_not_stretch_the_axis():
    error = np.concatenate([[1e-22], np.full(99, 1e-9)])
    axes = draw_errors_and_bounds(np.arange(100.0), {"Algorithm 3": (error, 2.0 * error)}, ax=new_figure().subplots())
    assert 1e-10 < axes.get_ylim()[0] < 1e-9
