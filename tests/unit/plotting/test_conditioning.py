"""Hypothesis: the trade-off curve shows the points that the search measured, and what was chosen among them."""

import numpy as np
import pytest

import ltinet
from drawing_checks import axes_of_size, check_texts, example, shown_texts
from ltinet.plotting import draw_condition, draw_weight_norm

POINTS = [(1, 1.0), (4, 12.5), (2, 1.6), (10, 3e7)]


def test_points_are_drawn_in_order_on_a_logarithmic_axis():
    axes = draw_condition(POINTS, budget=15.0, chosen=4, ax=axes_of_size())
    curve, mark, budget = axes.lines
    np.testing.assert_array_equal(curve.get_xydata(), sorted(POINTS))
    np.testing.assert_array_equal(mark.get_xydata(), [(4.0, 12.5)])
    assert set(budget.get_ydata()) == {15.0}
    assert axes.get_yscale() == "log"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("number of layers", "condition number of T")
    check_texts(axes.figure)


def test_weight_norms_need_no_legend():
    axes = draw_weight_norm(POINTS, ax=axes_of_size())
    assert axes.get_ylabel() == "norm of all weights"
    assert axes.get_legend() is None


def test_the_door_of_a_form_marks_its_budget_and_its_choice():
    form = ltinet.block_diagonalize(ltinet.named_system("triangular").A, max_condition=15.0)
    axes = form.plot.tradeoff(ax=axes_of_size()).axes[0]
    np.testing.assert_array_equal(axes.lines[0].get_xydata(), form.tradeoff)
    assert {text for text, _ in shown_texts(axes.figure)} >= {
        f"{form.n_blocks} layers: {form.condition:.3g}",
        "budget 15",
    }


def test_one_point_and_no_budget_still_make_a_picture():
    axes = example(4).form.plot.tradeoff(ax=axes_of_size()).axes[0]
    low, high = axes.get_ylim()
    assert high / low > 10.0
    ticks = [text for text, _ in shown_texts(axes.figure) if text.isdigit()]
    assert "4" in ticks
    check_texts(axes.figure)


def test_an_unbounded_budget_is_no_line():
    form = ltinet.block_diagonalize(np.diag([-1.0, -2.0]), max_condition=np.inf)
    assert len(form.plot.tradeoff(ax=axes_of_size()).axes[0].lines) == 2


@pytest.mark.parametrize(
    ("points", "options", "message"),
    [
        ([], {}, "pairs"),
        ([1.0, 2.0], {}, "pairs"),
        ([("a", "b")], {}, "pairs"),
        ([(1, 0.0)], {}, "logarithmic"),
        ([(1, np.inf)], {}, "logarithmic"),
        (POINTS, {"budget": -1.0}, "budget must be .* got -1.0"),
        (POINTS, {"chosen": 7}, "chosen must be .* got 7"),
    ],
)
def test_bad_arguments_are_refused(points, options, message):
    with pytest.raises(ltinet.PlottingError, match=message):
        draw_condition(points, ax=axes_of_size(), **options)
