"""Hypothesis: a simulation is drawn whole: what differs in scale or unit on its own axes, the input as it was below."""

import numpy as np
import pytest

import ltinet
from drawing_checks import check_texts, example
from ltinet.plotting import draw_solution

T = np.linspace(0.0, 2.0, 41)
SYSTEM = ltinet.StateSpace([[-1.0]], [1.0], [1.0])


def lines(axes):
    return [line.get_xydata() for line in axes.lines]


def test_outputs_of_other_scales_have_axes_of_their_own():
    y = np.column_stack([np.sin(T), 1e-3 * np.cos(T), 0.5 * np.cos(T), 1e-3 * T, 0.0 * T])
    panels = draw_solution(T, y)
    assert [len(axes.lines) for axes in panels] == [2, 3]
    np.testing.assert_array_equal(lines(panels[1])[0], np.column_stack([T, y[:, 1]]))
    assert [text.get_text() for text in panels[1].get_legend().get_texts()] == ["y2", "y4", "y5"]
    check_texts(panels[0].figure)


def test_outputs_within_a_factor_of_thirty_share_axes():
    assert len(draw_solution(T, np.column_stack([29.0 * np.sin(T), np.sin(T)]))) == 1
    assert len(draw_solution(T, np.column_stack([31.0 * np.sin(T), np.sin(T)]))) == 2


def test_outputs_of_other_units_have_axes_of_their_own():
    panels = draw_solution(T, np.column_stack([T, T, T]), names=["a (m)", "b (s)", "c [m]"])
    assert [axes.get_ylabel() for axes in panels] == ["outputs (m)", "b (s)"]


def test_ten_scales_are_at_most_four_panels_that_show_all():
    panels = draw_solution(T, np.sin(T)[:, None] * 10.0 ** (-2.0 * np.arange(10)))
    assert sum(len(axes.lines) for axes in panels) == 10
    assert len(panels) == 4
    check_texts(panels[0].figure)


def test_what_is_left_out_is_said():
    panels = draw_solution(T, np.sin(T)[:, None] * np.where(np.arange(40) < 20, 1.0, 1e-3))
    assert panels[0].get_title() == "10 of 40 outputs"


@pytest.mark.parametrize("engine", ["exact", "per_neuron"])
@pytest.mark.parametrize("start", [0.0, 1000.0])
def test_a_held_input_is_drawn_as_steps(engine, start):
    t = start + np.array([0.0, 1.0, 2.0])
    figure = ltinet.construct(SYSTEM).simulate([1.0, 3.0, 2.0], t, hold="zero", engine=engine).plot()
    below = figure.axes[-1]
    corners = [(0, 1), (1, 1), (1, 3), (2, 3), (2, 2)]
    seen = {(round(float(x - start), 9), float(y)) for x, y in lines(below)[0]}
    assert seen == set(corners)
    assert below.get_ylabel() == "u1"


def test_a_jump_stands_upright_between_its_two_values():
    figure = ltinet.construct(SYSTEM).simulate([0.0, 1.0, 5.0, 5.0], [0.0, 1.0, 1.0, 2.0]).plot()
    at_jump = [y for x, y in lines(figure.axes[-1])[0] if x == 1.0]
    assert at_jump == [1.0, 5.0]


def test_a_run_without_input_has_no_panel_for_it():
    sol = ltinet.construct(SYSTEM).simulate(None, T, x0=[1.0])
    assert len(sol.plot().axes) == 1


def test_the_bound_is_told_for_short_runs_and_on_request():
    net = ltinet.construct(SYSTEM)
    t = np.linspace(0.0, 1.0, 20_002)
    assert net.simulate(t, t).plot().axes[0].get_title() == ""
    assert net.simulate(t, t).plot(bound=True).axes[0].get_title().startswith("numerical errors below")
    assert net.simulate(T, T).plot().axes[0].get_title().startswith("numerical errors below")
    assert net.simulate(T, T).plot(bound=False).axes[0].get_title() == ""


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("shape", [(), (3,), (40,)])
def test_texts_neither_overlap_nor_leave_the_figure(shape):
    u = np.random.default_rng(0).random((*shape, 41, 10))
    figure = example(4).simulate(u, T).plot(input_names=[f"valve {k} (%)" for k in range(10)])
    check_texts(figure)
    assert figure.axes[-1].get_legend().get_title().get_text() == "input\n(4 of 10)"


@pytest.mark.parametrize("shape", [(0, 2), (41, 0), (0, 41, 2)])
def test_nothing_to_draw_is_said_in_words(shape):
    panels = draw_solution(T[: shape[-2]], np.zeros(shape))
    assert "nothing to draw" in panels[0].texts[0].get_text()


def test_approximated_delays_are_in_the_title():
    plant = ltinet.pade(ltinet.tf([2], [10, 1], input_delay=3), 4)
    loop = ltinet.feedback(ltinet.pid(1.0, 0.1) * plant)
    title = loop.simulate(np.ones(61), np.linspace(0.0, 60.0, 61)).plot().axes[0].get_title()
    assert "Padé approximants of order 4" in " ".join(title.split())
    assert "numerical errors below" in title


def test_long_names_fit_beside_their_panels():
    names = [
        "Temperature of the wall (°C)",
        "Displacement of the tip (mm)",
        "Pressure in the chamber (Pa)",
        "Flow (l/s)",
    ]
    panels = draw_solution(T, np.stack([T, T, T, T], axis=1), names=names, inputs=(T, T), input_names=["Opening (%)"])
    check_texts(panels[0].figure)
    assert [axes.get_ylabel().replace("\n", " ") for axes in panels] == [*names, "Opening (%)"]
