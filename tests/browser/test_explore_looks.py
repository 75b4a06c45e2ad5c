"""Hypothesis: from telephones to walls, by day and by night, nothing overlaps, is cut or scrolls sideways."""

from pathlib import Path
from typing import Any

import pytest

from browser_page import Explored
from explored_page import ServedPage

pytestmark = pytest.mark.slow  # pages in a browser

STATES = (
    "system=example%3Atriangular&k=11&pick=0.0",
    "system=example%3Atransport&u=chirp",
    "system=example%3Apenzl&order=5",
)
OVERLAPS = (Path(__file__).parent / "overlaps.js").read_text(encoding="utf-8").partition("\n")[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280, 2560])
def test_nothing_overlaps_is_cut_or_scrolls_sideways(browser: Any, served: ServedPage, width: int, scheme: str) -> None:
    page = Explored(browser, served.server.address, width=width, scheme=scheme)
    for query in STATES:
        page.turn(query)
        page.tab.evaluate("() => scrollTo(0, 0)")
        assert page.tab.evaluate(OVERLAPS) == [], query
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Any, served: ServedPage, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    page = Explored(browser, served.server.address, scheme=scheme)
    page.turn(STATES[0])
    page.tab.wait_for_selector("#explorer[data-banded]")
    found = axe.Axe().run(page.tab).response["violations"]
    serious = [(own["id"], own["nodes"][0]["html"]) for own in found if own["impact"] in ("serious", "critical")]
    assert serious == []
    page.close()
