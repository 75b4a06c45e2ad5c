"""Hypothesis: a drag draws what there is time for, and ends where it ended, however late the answers come."""

import random
import time
from typing import Any

import numpy as np
import pytest

from browser_page import Explored
from explored_page import ServedPage
from ltinet.explorer.subject import example_system, readable_budgets
from ltinet.tradeoff import condition_tradeoff

pytestmark = pytest.mark.slow  # pages in a browser

WATCH = """() => {
  const root = document.getElementById("explorer");
  window.seen = [];
  new MutationObserver(() => window.seen.push(root.dataset.shown)).observe(root, { attributeFilter: ["data-draws"] });
}"""

ENDED = """([stop, count]) => {
  const place = Number(document.querySelector("[data-id='budget']").value);
  const told = document.querySelector("[data-id='budget-value']").textContent.match(/network (\\d+) of (\\d+)/);
  // Between two networks the slider may stand a rounding of its budget below the upper one.
  return Math.abs(place - stop) <= 1.5 && told && Number(told[2]) === count && Math.abs(told[1] - 1 - place) < 1;
}"""


@pytest.mark.parametrize("seed", range(3))
def test_a_drag_ends_on_the_right_budget(
    browser: Any, served: ServedPage, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng, backend = random.Random(seed), served.server.session.backend  # noqa: S311 - for delays
    ask = backend.ask

    def late(*given: Any, **more: Any) -> Any:
        time.sleep(rng.uniform(0.0, 0.2))
        return ask(*given, **more)

    monkeypatch.setattr(backend, "ask", late)
    page = Explored(browser, served.server.address)
    page.tab.evaluate(WATCH)
    box = page.part("budget").bounding_box()
    y, left, width = box["y"] + box["height"] / 2, box["x"] + 8, box["width"] - 16
    stop = rng.uniform(0.0, 0.5)
    page.tab.mouse.move(left + width, y)
    page.tab.mouse.down()
    for share in np.linspace(1.0, stop, 30):
        page.tab.mouse.move(left + width * share, y)
    page.tab.mouse.up()
    budgets = readable_budgets([rung.condition for rung in condition_tradeoff(example_system("triangular"))])
    # Where the mouse was let go, to the width of its thumb; the last moves may come after it.
    page.tab.wait_for_function(ENDED, arg=[stop * (len(budgets) - 1), len(budgets)])
    assert len(set(page.tab.evaluate("() => window.seen"))) >= 2
    page.close()


def test_every_budget_of_a_slow_drag_is_drawn(page: Explored) -> None:
    page.tab.evaluate(WATCH)
    box = page.part("budget").bounding_box()
    y, left, width = box["y"] + box["height"] / 2, box["x"] + 8, box["width"] - 16
    page.tab.mouse.move(left + width, y)
    page.tab.mouse.down()
    for share in np.linspace(1.0, 0.0, 25):
        page.tab.mouse.move(left + width * share, y)
        page.wait_shown()
    page.tab.mouse.up()
    page.wait_shown()
    assert len(set(page.tab.evaluate("() => window.seen"))) >= 20
    assert page.facts()["n_connections"] == 45
