"""Hypothesis: wherever a drawing takes a number of an input or output it takes its name, and draws the same."""

import numpy as np
import pytest
from matplotlib import pyplot

from ltinet import PlottingError, StateSpace, construct


@pytest.fixture
def system():
    A = np.array([[0.0, 1.0], [-4.0, -0.4]])
    return StateSpace(A, np.eye(2), np.eye(2), inputs=["Force (N)", "Torque (Nm)"], outputs=["x (m)", "v (m/s)"])


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def lines(figure):
    return [line.get_xydata() for axis in figure.axes for line in axis.get_lines()]


def assert_same(one, other):
    assert len(lines(one)) == len(lines(other)) > 0
    for mine, theirs in zip(lines(one), lines(other), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("kind", ["bode", "nyquist"])
def test_pairs_by_name(system, kind):
    for own in (system, construct(system)):
        by_name = getattr(own.plot, kind)(pairs=[("v (m/s)", "Force (N)"), ("x (m)", 1)])
        by_number = getattr(own.plot, kind)(pairs=[(1, 0), (0, 1)])
        assert_same(by_name, by_number)
    with pytest.raises(PlottingError, match=r"pairs: there is no input 'force'; did you mean 'Force \(N\)'"):
        getattr(system.plot, kind)(pairs=[(0, "force")])
    for bad in ("xv", [], [(0,)], 3, [(True, 0)], [(0.5, 0)], [(2, 0)]):
        with pytest.raises(PlottingError, match="pairs"):
            getattr(system.plot, kind)(pairs=bad)


def test_outputs_of_a_solution_by_name(system):
    sol = system.step_response(input="Force (N)")
    assert_same(sol.plot(outputs=["v (m/s)"]), sol.plot(outputs=[1]))
    assert_same(sol.plot(outputs="v (m/s)"), sol.plot(outputs=[1]))
    with pytest.raises(PlottingError, match=r"there is no output 'v'; known are x \(m\), v \(m/s\)"):
        sol.plot(outputs=["v"])
    unnamed = StateSpace(-np.eye(2), np.eye(2), np.eye(2)).step_response(input=0)
    assert_same(unnamed.plot(outputs=["y2"]), unnamed.plot(outputs=[1]))


def test_channels_without_names_are_called_as_in_tables():
    unnamed = StateSpace(-np.eye(2), np.eye(2), np.eye(2))
    legend = unnamed.plot.bode().axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["y1 ← u1", "y1 ← u2", "y2 ← u1", "y2 ← u2"]
    panels = unnamed.plot.step().axes
    assert [axes.get_title() for axes in panels[:2]] == ["from u1", "from u2"]
    assert [axes.get_ylabel() for axes in panels[::2]] == ["y1", "y2"]
    sol = unnamed.simulate(np.ones((5, 2)), np.arange(5.0))
    for axes, letter in zip(sol.plot().axes, "yu", strict=True):
        assert [text.get_text() for text in axes.get_legend().get_texts()] == [f"{letter}1", f"{letter}2"]
    single = StateSpace([[-1.0]], [[1.0]], [[1.0]]).plot
    assert single.step().axes[0].get_ylabel() == "y1"
    assert "y1" in [axes.get_ylabel() for axes in single().axes]
