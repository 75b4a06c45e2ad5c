"""Hypothesis: each solution has a column whose errors are those against the reference, all to the same scales."""

import numpy as np
import pytest

import ltinet
from drawing_checks import check_texts, shown_texts
from ltinet.plotting import draw_comparison, new_figure

T = np.linspace(0.0, 10.0, 101)
EXACT = np.sin(np.outer(T, [1.0, 2.0]))


@pytest.mark.slow
def test_errors_are_against_the_reference():
    worse = EXACT + 1e-6 * (1.0 + np.cos(T))[:, None]
    figure = new_figure(10.0, 6.6)
    panels = draw_comparison(
        T, {"exact": EXACT, "worse": worse}, reference=EXACT, reference_name="closed form", figure=figure
    )
    assert panels.shape == (3, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.abs(worse - EXACT)[1:, 1] / np.abs(EXACT)[1:, 1]
    np.testing.assert_allclose(panels[1, 1].lines[1].get_ydata(), np.abs(worse - EXACT)[:, 1], rtol=0)
    np.testing.assert_array_equal(panels[2, 1].lines[1].get_ydata()[1:], relative)
    assert np.isnan(panels[2, 1].lines[1].get_ydata()[0])  # the reference is zero there
    assert panels[1, 0].get_ylim() == panels[1, 1].get_ylim()
    texts = [text for text, _ in shown_texts(figure)]
    assert {"exact", "worse", "closed form", "time", "absolute error", "relative error"} <= set(texts)
    assert texts.count("zero everywhere") == 2  # both error panels of the exact column say so, none is empty
    check_texts(figure)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("n_outputs", [1, 400])
@pytest.mark.parametrize("n_solutions", [1, 3])
def test_texts_neither_overlap_nor_leave_the_figure(n_outputs, n_solutions):
    rng = np.random.default_rng(0)
    reference = np.cumsum(rng.standard_normal((101, n_outputs)), axis=0)
    solutions = {
        f"Algorithm {k}": reference + 10.0 ** (-3 * k) * rng.random(reference.shape) for k in range(n_solutions)
    }
    check_texts(draw_comparison(T, solutions, reference=reference)[0, 0].figure)


def test_one_tiny_error_does_not_press_all_others_together():
    y = EXACT + 1e-10
    y[0] = 1e-24  # where the exact value is zero
    panels = draw_comparison(T, {"network": y}, reference=EXACT)
    assert panels[1, 0].get_ylim()[0] > 1e-12


@pytest.mark.parametrize(
    ("solutions", "message"),
    [
        ({}, "empty"),
        ({"a": EXACT[:, :1]}, "'a' has shape"),
        ({"a": np.stack([EXACT, EXACT])}, "'a' has shape"),
        ({"a": EXACT[:50]}, "shape"),
    ],
)
def test_bad_arguments_are_refused(solutions, message):
    with pytest.raises(ltinet.PlottingError, match=message):
        draw_comparison(T, solutions, reference=EXACT)
