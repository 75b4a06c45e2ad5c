"""Hypothesis: each way in is as short as the page says, from the installation to a picture that is there."""

import re
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from page_code import DOCS, run_page

PAGE = DOCS / "walk-throughs.md"
MOST_LINES = 8
_FENCE = re.compile(r"^```(sh|console|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PICTURE = re.compile(r"\(_generated/walk-throughs/(\S+)\)")

SECTIONS = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]


def typed(section: str) -> list[str]:
    """What somebody types: commands after `$`, and lines of Python."""
    lines = []
    for kind, text in _FENCE.findall(section):
        lines += [line for line in text.splitlines() if (line if kind == "python" else line.startswith("$ "))]
    return lines


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.splitlines()[0])
def test_from_the_installation_to_a_picture_in_eight_lines(section: str) -> None:
    lines = typed(section)
    assert len(lines) <= MOST_LINES
    assert "pip install" in lines[0]
    assert _PICTURE.findall(section)[0] in lines[-1]


@pytest.mark.slow
def test_every_picture_shows_something(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("control")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    for _ in run_page(PAGE, tmp_path):
        pass
    for name in _PICTURE.findall(PAGE.read_text(encoding="utf-8")):
        picture = matplotlib.image.imread(tmp_path / name)[..., :3]
        assert min(picture.shape[:2]) >= 300
        assert np.mean(np.any(picture < 0.9, axis=-1)) > 0.005  # ink: lines, words, numbers
    assert len(SECTIONS) == 3
