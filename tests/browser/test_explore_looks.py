"""Hypothesis: from telephones to walls, by day and by night, nothing overlaps, is cut or scrolls sideways."""

from typing import Any

import pytest

from browser_page import Explored
from explored_page import ServedPage

STATES = ("system=example%3Atriangular&k=11&pick=0.0", "system=example%3Atransport&u=chirp", "system=example%3Apenzl&order=5")
OVERLAPS = """() => {
  const found = [];
  const panels = [...document.querySelectorAll(".panel, .top, .error, .remarks")].filter((own) => own.offsetParent);
  const boxes = panels.map((own) => own.getBoundingClientRect());
  boxes.forEach((one, i) => boxes.slice(i + 1).forEach((two, j) => {
    const [wide, high] = [Math.min(one.right, two.right) - Math.max(one.left, two.left), Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top)];
    if (wide > 1 && high > 1) found.push(`${panels[i].className} over ${panels[i + 1 + j].className}`);
  }));
  for (const panel of panels) if (panel.scrollWidth > panel.clientWidth + 1) found.push(`${panel.dataset.panel} is wider than its frame`);
  for (const svg of document.querySelectorAll(".figure > svg")) {
    const frame = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll("text")) {
      const own = text.getBoundingClientRect();
      if (own.left < frame.left - 2 || own.right > frame.right + 2 || own.top < frame.top - 3 || own.bottom > frame.bottom + 3) found.push(`${svg.parentElement.dataset.id}: ${text.textContent} is cut`);
    }
    const names = [...svg.querySelectorAll(".axes text")].map((own) => own.getBoundingClientRect());
    names.forEach((one, i) => names.slice(i + 1).forEach((two) => {
      if (Math.min(one.right, two.right) - Math.max(one.left, two.left) > 2 && Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top) > 4) found.push(`${svg.parentElement.dataset.id}: names of ticks overlap`);
    }));
  }
  const ticks = [...document.querySelectorAll(".ticks span")].filter((own) => own.textContent).map((own) => own.getBoundingClientRect());
  ticks.forEach((one, i) => ticks.slice(i + 1).forEach((two) => { if (two.left < one.right && one.left < two.right) found.push("ticks of the slider overlap"); }));
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) found.push("the page scrolls sideways");
  return found;
}"""


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
