"""Hypothesis: `sol.plot()` shows the outputs of any solution, however many outputs, times and simulations it has."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

import ltinet
from drawing_checks import axes_of_size, check_texts, example, shown_texts
from ltinet.plotting import draw_outputs, draw_solution

T = np.linspace(0.0, 2.0, 21)


def texts(axes):
    return [text for text, _ in shown_texts(axes.figure)]


def test_a_solution_draws_its_outputs():
    sol = example(4).simulate(np.sin(np.outer(T, np.arange(1, 11))), T)
    axes = axes_of_size()
    assert sol.plot(ax=axes) is axes.figure
    assert len(axes.lines) == 10
    np.testing.assert_array_equal(axes.lines[3].get_xydata(), np.column_stack([T, sol.y[:, 3]]))
    assert axes.get_xlabel() == "time"
    check_texts(axes.figure)


def test_outputs_are_chosen_by_index():
    y = np.arange(3.0) + T[:, None]
    axes = draw_outputs(T, y, outputs=[2, 0], ax=axes_of_size())
    assert [line.get_ydata()[0] for line in axes.lines] == [2.0, 0.0]
    assert {"y3", "y1", "output\n(2 of 3)"} <= set(texts(axes))


def test_of_many_outputs_ten_are_drawn_and_the_key_says_so():
    axes = draw_outputs(T, np.arange(400.0) + T[:, None], ax=axes_of_size())
    assert [line.get_ydata()[0] for line in axes.lines] == [0, 44, 89, 133, 177, 222, 266, 310, 355, 399]
    assert "output\n(10 of 400)" in texts(axes)
    check_texts(axes.figure)


def test_more_than_eight_outputs_have_a_colour_bar_instead_of_a_legend():
    y = np.arange(40.0) + T[:, None]
    axes = draw_outputs(T, y, outputs=range(40), ax=axes_of_size())
    assert axes.get_legend() is None
    assert axes.figure.axes == [axes]  # the bar belongs to the axes
    colours = [line.get_color() for line in axes.lines]
    assert len(set(colours)) == 40
    (bar,) = axes.child_axes
    assert [label.get_text() for label in bar.get_yticklabels()] == [f"y{number}" for number in range(1, 41, 4)]
    mappable = next(image for image in bar.collections if image.get_array() is not None)
    drawn = [to_hex(mappable.to_rgba(number)) for number in range(40)]
    assert drawn == colours
    check_texts(axes.figure)
    assert draw_outputs(T, y[:, :8], ax=axes_of_size()).get_legend() is not None


def test_a_single_output_needs_no_legend():
    axes = draw_outputs(T, T**2, ax=axes_of_size())
    assert axes.get_legend() is None
    assert axes.get_ylabel() == "y1"


def test_a_small_batch_is_drawn_line_by_line_and_a_large_one_as_its_range():
    rng = np.random.default_rng(0)
    assert len(draw_outputs(T, rng.random((2, 3, 21, 2)), ax=axes_of_size()).lines) == 12
    y = rng.random((64, 21, 2))
    axes = draw_outputs(T, y, ax=axes_of_size())
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), np.median(y[..., 1], axis=0))
    edge = axes.collections[0].get_paths()[0].vertices
    assert edge[:, 1].min() == y[..., 0].min()
    assert edge[:, 1].max() == y[..., 0].max()
    assert axes.get_title() == "median and range of 64 simulations"


@pytest.mark.parametrize("shape", [(0, 2), (21, 0), (0, 21, 2)])
def test_nothing_to_draw_is_said_in_words(shape):
    axes = draw_outputs(T[: shape[-2]], np.zeros(shape), ax=axes_of_size())
    assert any("nothing to draw" in text for text in texts(axes))


@pytest.mark.parametrize(
    ("t", "y", "outputs", "message"),
    [
        (T, np.zeros((20, 2)), None, r"\(21,\) and y \(20, 2\)"),
        (T[None], np.zeros((21, 2)), None, "shape"),
        (T, np.zeros((21, 2)), [2], "of 2 outputs"),
        (T, np.zeros((21, 2)), [-1], "of 2 outputs"),
        (T, np.zeros((21, 2)), [0.5], "no output 0.5 of 2 outputs"),
        (T, np.zeros((21, 2)), [], "must be indices or names"),
        (T, np.zeros((21, 2)), "y", "did you mean 'y2' or 'y1'"),
        (T, ["a"] * 21, None, "real numbers"),
    ],
)
def test_bad_arguments_are_refused(t, y, outputs, message):
    with pytest.raises(ltinet.PlottingError, match=message):
        draw_outputs(t, y, outputs=outputs, ax=axes_of_size())


def test_names_and_units_reach_labels_and_legend():
    axes = draw_outputs(T, np.column_stack([T, 2 * T]), names=["in (K)", "_out$ (K)"], ax=axes_of_size())
    assert axes.get_ylabel() == "outputs (K)"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["in (K)", r" _out\$ (K)"]
    check_texts(axes.figure)
    assert draw_outputs(T, T, names=["Force (N)"], ax=axes_of_size()).get_ylabel() == "Force (N)"
    with pytest.raises(ltinet.PlottingError, match="one for each of 2 outputs"):
        draw_outputs(T, np.zeros((21, 2)), names=["a"], ax=axes_of_size())


def test_the_time_axis_has_its_unit_where_it_is_known():
    sol = example(4).simulate(np.sin(np.outer(T, np.arange(1, 11))), T)
    assert sol.plot(time_unit="s").axes[-1].get_xlabel() == "time (s)"
    assert sol.plot(time_unit="min", ax=axes_of_size()).axes[0].get_xlabel() == "time (min)"
    assert sol.plot().axes[-1].get_xlabel() == "time"
    times = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 200)])
    panels = draw_solution(times, np.exp(-times), time_unit="s")
    assert panels[-1].get_xlabel() == "time (s, logarithmic)"


def test_a_long_name_keeps_its_unit():
    from ltinet.plotting.channels import escape_label

    assert escape_label("temperature of the outermost wall of the house (°C)") == "temperature of the out… (°C)"


def test_a_bound_is_a_band_where_it_can_be_seen_and_always_a_number():
    y = np.sin(T)
    wide = draw_outputs(T, y, bound=np.full((21, 1), 0.1), ax=axes_of_size())
    edge = wide.collections[0].get_paths()[0].vertices
    assert edge[:, 1].max() == pytest.approx(y.max() + 0.1)
    assert wide.get_title() == "numerical errors below 0.1"
    thin = draw_outputs(T, y, bound=[1e-12], ax=axes_of_size())
    assert len(thin.collections) == 0
    assert thin.get_title() == "numerical errors below 1e-12"


def test_a_bound_without_limits_leaves_the_lines_readable():
    axes = draw_outputs(T, np.sin(T), bound=[np.inf], ax=axes_of_size())
    low, high = axes.get_ylim()
    assert high - low < 3.5 * np.ptp(np.sin(T))
    assert axes.get_title() == "no bound on the errors is known"
    with pytest.raises(ltinet.PlottingError, match="bound has shape"):
        draw_outputs(T, np.zeros((21, 2)), bound=np.zeros((3, 7)), ax=axes_of_size())
