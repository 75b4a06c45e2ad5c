"""A browser that Playwright drives, where there is one, and a page of `ltinet explore` in it."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from headless_browser import find_browser

PATIENCE = 60_000  # milliseconds: browsers are slow on a busy machine


@contextmanager
def driven_browser() -> Iterator[Any]:
    """Chromium of the system; skips, with the reason, where there is none."""
    tools = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra test)")
    program = find_browser()
    if program is None or shutil.which(program) is None:
        pytest.skip("there is no Chromium on the PATH")
    with tools.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


class Explored:
    """A tab with the page, what it complained of and whom it asked."""

    def __init__(self, browser: Any, address: str, *, width: int = 1280, scheme: str = "light") -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.tab = self.context.new_page()
        self.tab.set_default_timeout(PATIENCE)
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.tab.on(
            "console", lambda said: self.complaints.append(said.text) if said.type in ("error", "warning") else None
        )
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.tab.goto(address)
        self.wait_shown()

    def wait_shown(self) -> None:
        """Until the newest wish was drawn or has failed."""
        self.tab.wait_for_function(
            "() => { const own = document.getElementById('explorer').dataset;"
            " return (own.shown || own.failed) && document.querySelector('#explorer[aria-busy=false]'); }"
        )

    def turn(self, query: str) -> None:
        """Go to a state, as the button back does."""
        self.tab.evaluate(
            "(query) => { const own = document.getElementById('explorer').dataset; delete own.shown; delete own.failed;"
            " history.pushState(null, '', '?' + query); dispatchEvent(new PopStateEvent('popstate')); }",
            query,
        )
        self.wait_shown()
        assert self.tab.evaluate("() => document.getElementById('explorer').dataset.shown") is not None, self.error()

    def error(self) -> str:
        """The sentence that the page shows."""
        return str(self.part("error").inner_text())

    def press(self, key: str) -> None:
        """A key, and wait for what it brings."""
        before = self.tab.evaluate("() => document.getElementById('explorer').dataset.draws")
        self.tab.keyboard.press(key)
        self.tab.wait_for_function(
            "(before) => document.getElementById('explorer').dataset.draws !== before", arg=before
        )
        self.wait_shown()

    def part(self, name: str) -> Any:
        """An element by its name."""
        return self.tab.locator(f"[data-id='{name}']")

    def facts(self) -> dict[str, float]:
        """The numbers of the line above all drawings."""
        found = self.tab.eval_on_selector_all(
            "[data-fact][data-value]", "all => all.map(own => [own.dataset.fact, own.dataset.value])"
        )
        return {name: json.loads(value) for name, value in found}

    def table(self, name: str) -> list[list[str]]:
        """The rows of the table of a drawing."""
        self.tab.wait_for_selector(f"[data-id='{name}'] details table", state="attached")
        rows: list[list[str]] = self.tab.eval_on_selector_all(
            f"[data-id='{name}'] tbody tr", "all => all.map(row => [...row.cells].map(cell => cell.textContent))"
        )
        return rows

    def close(self) -> None:
        self.context.close()
