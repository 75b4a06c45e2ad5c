"""Hypothesis: matplotlib is needed only by those who draw, and nothing of it is changed for the rest of a program."""

import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

import ltinet
from drawing_checks import example, network_of
from ltinet.plotting import draw_comparison, draw_outputs, new_figure, save_figure


def test_importing_ltinet_does_not_import_matplotlib():
    code = "import sys, ltinet, ltinet.plotting; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603 - the interpreter itself


@pytest.mark.slow
def test_a_missing_matplotlib_is_named_with_the_command_that_brings_it():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import ltinet\n"
        "net = ltinet.construct(ltinet.named_system('triangular', n_states=2))\n"
        "sol = net.simulate([[0.0, 0.0], [0.0, 0.0]], [0.0, 1.0])\n"
        "doors = [net.plot.architecture, net.plot.spectrum, net.plot.sparsity, net.plot.overview, net.plot.step]\n"
        "doors += [net.plot, net.plot.bode, net.plot.nyquist, net.system.plot, net.system.plot.impulse]\n"
        "for draw in [*doors, sol.plot, net.form.plot.tradeoff, net.form.plot.spectrum, net.form.plot.sparsity]:\n"
        "    try:\n"
        "        draw()\n"
        "    except ltinet.MissingDependencyError as error:\n"
        "        assert 'pip install \"ltinet[plot]\"' in str(error)\n"
        "    else:\n"
        "        sys.exit(f'{draw} drew without matplotlib')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603 - the interpreter itself


@pytest.mark.parametrize("name", ["architecture", "spectrum", "sparsity"])
def test_without_axes_a_figure_is_made_that_a_notebook_shows(name):
    figure = getattr(example(4).plot, name)()
    assert isinstance(figure, Figure)
    assert pyplot.get_fignums() == [figure.number]


@pytest.mark.slow
def test_global_settings_stay_as_they_are(tmp_path):
    before = dict(matplotlib.rcParams)
    save_figure(example(4).plot.overview(), tmp_path / "overview.svg")
    example(4).form.plot.tradeoff()
    assert dict(matplotlib.rcParams) == before


def test_the_overview_fits_any_empty_figure_and_leaves_none_behind():
    figure = new_figure(12.0, 7.0)
    assert ltinet.DynamicNetwork(network_of([1, 2], [1])).plot(figure=figure) is figure
    assert pyplot.get_fignums() == []
    with pytest.raises(ltinet.PlottingError, match="must be empty"):
        example(4).plot.overview(figure=figure)


@pytest.mark.parametrize("bad", [3, "ax", Figure()])
def test_what_is_no_axes_is_refused(bad):
    with pytest.raises(ltinet.PlottingError, match=f"got a {type(bad).__name__}"):
        draw_outputs([0.0, 1.0], [0.0, 1.0], ax=bad)


def test_what_is_no_figure_is_refused():
    with pytest.raises(ltinet.PlottingError, match="got a int"):
        draw_comparison([0.0, 1.0], {"a": [0.0, 1.0]}, reference=[0.0, 1.0], figure=3)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_same_drawing_gives_the_same_bytes(tmp_path, suffix):
    for name in ("a", "b"):
        figure = new_figure()
        example(4).plot.architecture(ax=figure.subplots())
        save_figure(figure, tmp_path / f"{name}.{suffix}")
    first, second = ((tmp_path / f"{name}.{suffix}").read_bytes() for name in ("a", "b"))
    assert len(first) > 1000
    assert first == second


def test_files_that_cannot_be_written_are_refused_and_leave_nothing(tmp_path):
    figure = new_figure()
    figure.subplots().plot(np.arange(3))
    with pytest.raises(ltinet.PlottingError, match="is not supported"):
        save_figure(figure, tmp_path / "a.bmp")
    with pytest.raises(ltinet.FileFormatError, match="cannot be written"):
        save_figure(figure, tmp_path / "no" / "a.png")
    assert list(tmp_path.iterdir()) == []
