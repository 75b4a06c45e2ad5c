"""Hypothesis: every output's response to every input has its panel, or the title says how many are left out."""

import numpy as np
import pytest

import ltinet
from drawing_checks import check_texts
from ltinet.plotting import draw_responses

T = np.linspace(0.0, 5.0, 101)
RISE = 1.0 - np.exp(-T)


def responses(m, p):
    gains = 1.0 + np.arange(m * p).reshape(m, p)
    return RISE[None, :, None] * gains[:, None, :], gains.T


def test_panels_are_outputs_by_inputs_with_final_values():
    y, final = responses(2, 3)
    panels = draw_responses(T, y, final=final, names=["a (m)", "b", "c"], input_names=["u", "v"])
    assert panels.shape == (3, 2)
    for i in range(3):
        for j in range(2):
            goal, line = panels[i, j].lines
            assert set(goal.get_ydata()) == {final[i, j]}
            np.testing.assert_array_equal(line.get_xydata(), np.column_stack([T, y[j, :, i]]))
    assert [axes.get_ylabel() for axes in panels[:, 0]] == ["a (m)", "b", "c"]
    assert [axes.get_title() for axes in panels[0]] == ["from u", "from v"]
    assert panels[0, 0].get_ylim() == panels[0, 1].get_ylim()
    check_texts(panels[0, 0].figure)


def test_a_single_response_may_come_as_times_by_outputs_and_endless_goals_are_not_drawn():
    panels = draw_responses(T, np.column_stack([T]), final=[[np.inf]], notes=["there is an integrator"])
    assert [len(axes.lines) for axes in panels.ravel()] == [1]
    assert panels[0, 0].figure.get_suptitle() == "there is an integrator"


@pytest.mark.slow
def test_of_many_the_largest_are_drawn_and_the_title_says_so():
    y, _ = responses(6, 28)
    panels = draw_responses(T, y)
    assert panels.shape == (4, 4)
    assert "4 of 28 outputs, 4 of 6 inputs" in panels[0, 0].figure.get_suptitle()
    np.testing.assert_array_equal(panels[3, 3].lines[0].get_ydata(), y[5, :, 27])
    check_texts(panels[0, 0].figure)


def test_responses_of_other_scales_in_a_row_have_their_own():
    y = np.stack([RISE[:, None], 1e-3 * RISE[:, None]])
    left, right = draw_responses(T, y)[0]
    assert left.get_ylim()[1] > 100.0 * right.get_ylim()[1]


def test_times_that_grow_have_a_logarithmic_axis_that_leaves_out_zero():
    t = np.concatenate([[0.0], np.geomspace(1e-4, 1e2, 500)])
    axes = draw_responses(t, np.exp(-t)[:, None])[0, 0]
    assert axes.get_xscale() == "log"
    assert axes.get_xlabel() == "time (logarithmic)"
    assert axes.lines[0].get_xdata()[0] == 1e-4
    assert draw_responses(T, RISE[:, None])[0, 0].get_xscale() == "linear"


def test_a_logarithmic_axis_begins_shortly_before_the_response_does():
    t = np.concatenate([[0.0], np.geomspace(1e-6, 1e2, 800)])
    left, right = draw_responses(t, np.where(t > 1.0, t, 0.0)[:, None])[0, 0].get_xlim()
    assert 0.3 < left < 0.4
    assert right >= 1e2


@pytest.mark.parametrize(
    ("t", "y", "options", "message"),
    [
        (T, np.zeros((3, 5)), {}, "t has shape"),
        (T, np.zeros((0, 101, 2)), {}, "t has shape"),
        (T, "y", {}, "real numbers"),
        (T, RISE[:, None], {"final": [1.0, 2.0]}, "final has shape"),
        (T, RISE[:, None], {"names": "ab"}, "one for each"),
    ],
)
def test_bad_arguments_are_refused(t, y, options, message):
    with pytest.raises(ltinet.PlottingError, match=message):
        draw_responses(t, y, **options)


def test_names_of_outputs_fit_beside_their_rows():
    names = [f"Temperature of wall {k} (°C)" for k in range(4)]
    panels = draw_responses(T, np.random.default_rng(0).standard_normal((1, 101, 4)), names=names)
    check_texts(panels[0, 0].figure)
    assert [row[0].get_ylabel().replace("\n", " ") for row in panels] == names
