"""Hypothesis: heights are the counts that a solver engine reports, per neuron and averaged per layer."""

import numpy as np
import pytest

import ltinet
from drawing_checks import axes_of_size, check_texts, shown_texts
from ltinet.plotting import draw_evaluations_per_layer, draw_evaluations_per_neuron

COUNTS = [[100, 140], [50], [80, 90, 130]]
DRAWINGS = [draw_evaluations_per_neuron, draw_evaluations_per_layer]


def test_every_neuron_is_a_point_at_its_count():
    axes = draw_evaluations_per_neuron(COUNTS, full_system=120, ax=axes_of_size())
    points = np.concatenate([group.get_offsets() for group in axes.collections])
    np.testing.assert_array_equal(points[np.argsort(points[:, 0])], list(enumerate([100, 140, 50, 80, 90, 130])))
    assert set(axes.lines[0].get_ydata()) == {120}
    assert {"full system: 120", "layer", "0", "1", "2"} <= {text for text, _ in shown_texts(axes.figure)}
    assert "a few numbers" in axes.get_title()  # an evaluation of a neuron costs less than one of the system
    check_texts(axes.figure)


def test_every_layer_is_a_bar_of_its_mean():
    axes = draw_evaluations_per_layer(COUNTS, ax=axes_of_size())
    assert [bar.get_height() for bar in axes.patches] == [120.0, 50.0, 100.0]
    assert axes.get_legend() is None


def test_what_a_solver_engine_reports_can_be_drawn():
    net = ltinet.construct(ltinet.named_system("triangular", n_states=3), n_layers=2)
    sol = net.simulate(np.zeros((3, 3)), [0.0, 0.5, 1.0], engine="per_neuron")
    axes = draw_evaluations_per_layer(sol.stats["evaluations"], ax=axes_of_size())
    assert len(axes.patches) == 2


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("draw", DRAWINGS)
@pytest.mark.parametrize("counts", [[[5]], [[k] for k in range(10)], [[k, k] for k in range(10)], [[1700]] * 400])
def test_texts_neither_overlap_nor_leave_the_figure(draw, counts):
    axes = draw(counts, full_system=1739, ax=axes_of_size())
    check_texts(axes.figure)
    assert axes.get_ylim()[0] == 0.0


@pytest.mark.parametrize("draw", DRAWINGS)
def test_no_neurons_is_said_in_words(draw):
    assert any("static gain" in text for text, _ in shown_texts(draw([], ax=axes_of_size()).figure))


@pytest.mark.parametrize("draw", DRAWINGS)
@pytest.mark.parametrize(
    ("counts", "options", "message"),
    [
        ([1, 2], {}, "per layer"),
        (["ab"], {}, "per layer"),
        ([[-1]], {}, "must be finite"),
        ([[np.nan]], {}, "must be finite"),
        (COUNTS, {"full_system": -3}, "full_system must be .* got -3"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_drawn(draw, counts, options, message):
    axes = axes_of_size()
    with pytest.raises(ltinet.PlottingError, match=message):
        draw(counts, ax=axes, **options)
    assert not axes.has_data()
