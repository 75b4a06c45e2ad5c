"""What README and examples show runs as it stands there."""

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def python_blocks(path: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", path.read_text(), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("block", python_blocks(ROOT / "README.md"))
def test_readme_examples_run(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {})  # noqa: S102


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run_and_print(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("path", [ROOT / "README.md", ROOT / "docs" / "index.md"], ids=lambda path: path.stem)
def test_first_pages_have_a_problem_a_picture_ten_lines_and_limits(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    places = [
        text.index(mark) for mark in ("You have a linear model", "![", "```python", "pip install", "When not to use it")
    ]
    assert places == sorted(places)
    assert len(python_blocks(path)[0].strip().splitlines()) <= 12  # ten statements, comments and blank lines
    assert 'pip install ".[plot]"' in text
    assert 'pip install "ltinet[plot]"' in text
