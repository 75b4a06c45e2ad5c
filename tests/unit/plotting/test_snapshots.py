"""Hypothesis: fields share one scale of colours, and the rows below are their distances from the reference."""

import numpy as np
import pytest

import ltinet
from drawing_checks import check_texts
from ltinet.plotting import draw_snapshots, new_figure

TIMES = [0.0, 0.5, 10.0]
RNG = np.random.default_rng(0)
FIELD, OTHER = RNG.random((3, 4, 5)), RNG.random((3, 4, 5))


def test_rows_are_solutions_reference_and_errors():
    panels = draw_snapshots(TIMES, {"A": FIELD, "B": FIELD}, reference=OTHER)
    assert panels.shape == (5, 3)
    images = np.array([[axes.images[0] for axes in row] for row in panels])
    np.testing.assert_array_equal(images[0, 2].get_array(), FIELD[2])
    np.testing.assert_array_equal(images[2, 1].get_array(), OTHER[1])
    np.testing.assert_array_equal(images[4, 0].get_array(), np.abs(FIELD - OTHER)[0])
    low, high = min(FIELD.min(), OTHER.min()), max(FIELD.max(), OTHER.max())
    assert {image.get_clim() for image in images[:3].ravel()} == {(low, high)}
    assert [axes.get_title() for axes in panels[0]] == ["time 0", "time 0.5", "time 10"]
    assert panels[0, 0].images[0].origin == "lower"
    assert [axes.get_xlabel() for axes in panels[-1]] == ["x"] * 3
    assert panels[0, 0].get_ylabel() == "A\ny"


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("extent", [None, (0.0, 10.0, 0.0, 9.5)])
def test_texts_neither_overlap_nor_leave_the_figure(extent):
    times, fields = [0.2, 0.4, 1.0, 3.0, 10.0], RNG.random((5, 20, 20))
    panels = draw_snapshots(times, {"Algorithm 3": fields}, reference=fields + 1e-12 * fields, extent=extent)
    check_texts(panels[0, 0].figure)


def test_fields_alone_need_no_error_rows_and_a_figure_may_be_given():
    figure = new_figure(6.0, 2.0)
    panels = draw_snapshots(TIMES, {"A": FIELD}, quantity="temperature", figure=figure)
    assert panels.shape == (1, 3)
    assert len(figure.axes) == 3 + 1  # one colour bar
    assert figure.axes[-1].get_ylabel() == "temperature"


def test_an_error_of_zero_is_drawn_dark():
    panels = draw_snapshots(TIMES, {"A": FIELD}, reference=FIELD)
    assert panels[2, 0].images[0].norm(0.0) == 0.0


@pytest.mark.parametrize(
    ("times", "solutions", "reference", "message"),
    [
        ([], {"A": FIELD}, None, "at least one"),
        (TIMES, {}, None, "empty"),
        (TIMES, {"A": FIELD[:2]}, None, "'A' has shape"),
        (TIMES, {"A": FIELD[0]}, None, "'A' has shape"),
        (TIMES, {"A": FIELD}, FIELD[:, :2], "'A' has shape"),
        (TIMES, {"A": np.where(FIELD > 0.5, np.nan, FIELD)}, None, "must be finite"),
    ],
)
def test_bad_arguments_are_refused(times, solutions, reference, message):
    with pytest.raises(ltinet.PlottingError, match=message):
        draw_snapshots(times, solutions, reference=reference)
