"""Hypothesis: the picture of the README is the one that the code beside it draws, and its diagram fills its half."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import ltinet
from drawing_checks import check_texts
from ltinet.plotting import save_figure

ROOT = Path(__file__).parents[3]
BLOCK = 10  # pixels, so that a text that another version of matplotlib moves by a pixel makes no difference


def block_averages(picture):
    grey = np.asarray(picture, dtype=float)[..., :3].mean(axis=-1)
    height, width = (size // BLOCK for size in grey.shape)
    return grey[: height * BLOCK, : width * BLOCK].reshape(height, BLOCK, width, BLOCK).mean(axis=(1, 3))


@pytest.fixture(scope="module")
def overview():
    return runpy.run_path(str(ROOT / "docs" / "refresh_readme_picture.py"))["draw"]()


def test_the_picture_of_the_readme_is_made_by_the_code_beside_it(overview, tmp_path):
    from matplotlib.image import imread

    save_figure(overview, tmp_path / "overview.png")
    drawn = block_averages(imread(tmp_path / "overview.png"))
    shown = block_averages(imread(ROOT / "docs" / "_static" / "overview.png"))
    assert drawn.shape == shown.shape
    # A logarithmic step axis and fewer rows of neurons gave 0.029, a diagram 6 % smaller 0.010.
    assert np.mean(np.abs(drawn - shown)) < 0.005


def test_the_step_response_is_drawn_as_far_as_its_oscillations_can_be_seen(overview):
    system = ltinet.named_system("mass_spring_damper", n_masses=24)
    axes = next(axes for axes in overview.axes if axes.get_title().startswith("step response"))
    (response,) = [line for line in axes.lines if line.get_linestyle() == "-"]
    t, y = response.get_data()
    assert axes.get_title() == f"step response, first {t[-1]:g} of {system.step_response().t[-1]:g}"
    np.testing.assert_allclose(y, system.step_response(t).y[0, :, 0], atol=1e-12)
    turns = np.flatnonzero(np.diff(np.sign(np.diff(y))))
    assert np.count_nonzero(np.abs(np.diff(y[turns])) > 0.02 * np.ptp(y)) < 60
    (note,) = [line for line in system.plot.step()._suptitle.get_text().splitlines() if "oscillates" in line]
    assert f"t=np.linspace(0, {t[-1]:g}, 2001)" in note
    assert system.plot.step(t)._suptitle is None


def test_readme_and_index_show_the_same_code():
    pages = [(ROOT / name).read_text("utf-8") for name in ("README.md", "docs/index.md")]
    first, second = (re.search(r"```python\n(.*?^net\.plot\(\))", page, re.DOTALL | re.MULTILINE)[1] for page in pages)
    assert first == second


def test_the_diagram_fills_the_left_half(overview):
    check_texts(overview)
    diagram = overview.axes[0].get_window_extent()
    half = overview.subfigs[0].bbox
    assert diagram.width * diagram.height > 0.7 * half.width * half.height
    assert "direct path Ψ u" not in [text.get_text() for text in overview.axes[0].texts]  # D is zero
