"""The page of `ltinet explore` in a real browser: start to all plots, key press to all plots, and drags.

    python -m benchmarks.explore [--only j100_jet_engine] [--tries 50]

Needs Chromium, playwright and ../shared/data. Times are those of the browser's own clock: from the key that was pressed
to the frame after the last drawing. Every press reaches another rung of the ladder; the first way over all of them is
cold, the second, back, warm. The certified band, which arrives later, does not count.
"""

import argparse
import random
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ltinet
from ltinet.explorer.files import as_dropped
from ltinet.explorer.server import PageServer
from ltinet.explorer.session import serving

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "lti"
SYSTEMS = ("j100_jet_engine", "pde", "mr_demo")
WATCH = """() => {
  const root = document.getElementById("explorer");
  window.presses = [];
  window.shown = [];
  let began = null;
  addEventListener("keydown", (event) => { began = event.timeStamp; }, true);
  new MutationObserver(() => {
    window.shown.push(root.dataset.shown);
    const from = began;
    requestAnimationFrame(() => { const gate = new MessageChannel();
      gate.port1.onmessage = () => window.presses.push(performance.now() - from); gate.port2.postMessage(null); });
  }).observe(root, { attributes: true, attributeFilter: ["data-draws"] });
}"""


def main() -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="benchmarks.explore", description=__doc__)
    parser.add_argument("--only", choices=SYSTEMS, action="append")
    parser.add_argument("--tries", type=int, default=50, help="drags")
    arguments = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        print(f"{'system':<18}{'rungs':>6}{'start, s':>10}{'cold, ms':>10}{'warm, ms':>10}{'worst':>8}")
        for name in arguments.only or SYSTEMS:
            print(_row(browser, name), flush=True)
        print(_drags(browser, arguments.tries))
        browser.close()
    return 0


def _row(browser: Any, name: str) -> str:
    began = time.perf_counter()
    with _program(DATA / f"{name}.mat") as address:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(address)
        page.wait_for_selector("#explorer[data-shown]", timeout=60_000)
        start = time.perf_counter() - began
        page.evaluate(WATCH)
        count = int(page.get_attribute("[data-id=budget]", "max")) + 1
        page.focus("[data-id=budget]")
        cold = _presses(page, "ArrowLeft", count - 1)
        warm = _presses(page, "ArrowRight", count - 1)
        page.close()
    worst = max([*cold, *warm], default=0.0)
    middle = [statistics.median(own) if own else 0.0 for own in (cold, warm)]
    return f"{name:<18}{count:>6}{start:>10.1f}{middle[0]:>10.0f}{middle[1]:>10.0f}{worst:>8.0f}"


def _presses(page: Any, key: str, count: int) -> list[float]:
    """Milliseconds of so many presses, each after the last was drawn."""
    for index in range(count):
        page.evaluate("() => { window.before = window.presses.length; }")
        page.keyboard.press(key)
        page.wait_for_function("() => window.presses.length > window.before", timeout=60_000, polling=5)
        assert page.evaluate("() => new Set(window.shown).size") >= 2 or index == 0
    found: list[float] = page.evaluate("() => window.presses.splice(0)")
    assert len(found) == count, "each press draws once"
    return found


def _drags(browser: Any, tries: int) -> str:
    """Drags over the whole range with delays in the server: how many budgets are drawn, where they end."""
    system = ltinet.load_system(DATA / "j100_jet_engine.mat")
    with _served(as_dropped(system, "j100")) as server:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(server.address)
        page.wait_for_selector("#explorer[data-shown]", timeout=60_000)
        page.evaluate(WATCH)
        distinct, right = [], 0
        for turn in range(tries):
            found, ended = _drag(page, forwards=turn % 2 == 1)
            distinct.append(found)
            right += ended
        page.close()
    return f"drags: {min(distinct)} to {max(distinct)} budgets drawn, {right} of {tries} end on the right one"


def _drag(page: Any, *, forwards: bool) -> tuple[int, bool]:
    box = page.locator("[data-id=budget]").bounding_box()
    y, ends = box["y"] + box["height"] / 2, (box["x"] + 8, box["x"] + box["width"] - 8)
    start, stop = ends if forwards else ends[::-1]
    page.mouse.move(start, y)
    page.mouse.down()
    page.evaluate("() => { window.shown = []; }")
    steps = 50
    for step in range(1, steps + 1):
        page.mouse.move(start + (stop - start) * step / steps, y)
        time.sleep(0.01)
    page.mouse.up()
    last = page.evaluate("() => Number(document.querySelector('[data-id=budget]').value)")
    page.wait_for_function("() => document.getElementById('explorer').getAttribute('aria-busy') === 'false'")
    shown = page.evaluate("() => window.shown")
    place = page.evaluate("() => document.querySelectorAll('[data-id=trade] .rung.now').length")
    budget = page.inner_text("[data-id=budget-value]")
    right = place == 1 and f"network {int(last) + 1} of" in budget
    return len(set(shown)), right


@contextmanager
def _program(file: Path) -> Iterator[str]:
    """The command as users start it; its address."""
    command = [sys.executable, "-m", "ltinet", "explore", str(file), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ourselves
    try:
        assert process.stdout is not None
        yield re.findall(r"http\S+", process.stdout.readline())[0]
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _served(file: Any) -> Iterator[PageServer]:
    """A page whose answers are late by up to 60 ms, drawn at random."""
    rng = random.Random(19)  # noqa: S311 - for delays
    with serving(file) as server:
        ask = server.staff.ask

        def late(*given: Any, **more: Any) -> Any:
            time.sleep(rng.uniform(0.0, 0.06))
            return ask(*given, **more)

        server.staff.ask = late  # type: ignore[method-assign]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


if __name__ == "__main__":
    sys.exit(main())
