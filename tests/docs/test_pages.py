"""All code on the pages of the documentation runs, page by page in order, and prints what the page says it prints.

Numbers are compared to the digits that are shown, except those that are rounding errors: they are small on every
machine, but not the same.
"""

import re
from itertools import zip_longest
from pathlib import Path

import pytest
from matplotlib import pyplot
from page_code import DOCS, read_blocks, run_page

PAGES = sorted(path for path in DOCS.rglob("*.md") if not {"_build", "_generated"} & set(path.parts))
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?")
_ROUNDING = 1e-11
_SHOWN_DIGITS = 2e-3  # pages show four digits and fewer; of the last one rounding decides


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "page", [page for page in PAGES if read_blocks(page)], ids=lambda page: str(page.relative_to(DOCS))
)
def test_code_of_a_page_runs_and_prints_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    if "\nimport torch\n" in page.read_text(encoding="utf-8"):
        pytest.importorskip("torch", reason="PyTorch is not installed, which this page shows")
    for block, printed in run_page(page, tmp_path):
        assert same_text(printed, block.shown or ""), f"{page.name}:{block.line} prints\n{printed}"
    pyplot.close("all")


@pytest.mark.parametrize(
    ("printed", "shown", "same"),
    [
        ("cond(T)  4475 of 3e-16\n", "cond(T)  4475 of 7e-16\n", True),
        ("cond(T)  4475\n", "cond(T)  4575\n", False),
        ("error 3e-5\n", "error 3e-16\n", False),
        ("10 layers\n", "10 neurons\n", False),
        ("10 layers\nmore\n", "10 layers\n", False),
    ],
)
def test_comparison_of_texts(printed: str, shown: str, same: bool) -> None:
    assert same_text(printed, shown) is same


def test_every_page_is_found() -> None:
    assert {"tutorial", "condition-limit", "times-and-jumps", "streaming"} <= {page.stem for page in PAGES}


def same_text(printed: str, shown: str) -> bool:
    """Return whether two texts have the same words, and the same numbers to the first digits."""
    printed = printed.replace("[COMMAND]", "COMMAND")  # how some versions of click write it, which typer took in later
    words = _NUMBER.split(printed.rstrip()), _NUMBER.split(shown.rstrip())
    numbers = zip_longest(_NUMBER.findall(printed), _NUMBER.findall(shown), fillvalue="nan")
    return _spaced_alike(*words) and all(_same_number(float(a), float(b)) for a, b in numbers)


def _spaced_alike(printed: list[str], shown: list[str]) -> bool:
    return [part.split() for part in printed] == [part.split() for part in shown]


def _same_number(a: float, b: float) -> bool:
    return (abs(a) < _ROUNDING and abs(b) < _ROUNDING) or abs(a - b) <= _SHOWN_DIGITS * abs(b)
