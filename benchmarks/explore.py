"""The page of `ltinet explore` in a real browser: start and key press to all plots, drags, and what it shows.

    python -m benchmarks.explore [--only j100_jet_engine] [--tries 50] [--skip numbers]

Needs Chromium, playwright and ../shared/data. A start is measured from the call of the program `ltinet explore MODEL`
to the frame after the last drawing, in a browser that runs already and has an empty tab; libraries are compiled to
bytecode, as after an installation, and BLAS has the threads that it takes by itself. Times of key presses are those of
the browser's own clock: from the key to the frame after the last drawing. Every press reaches another point of the
trade-off curve; the first pass over all of them is cold, the second, back, warm. The certified band, which comes later,
does not count. At the end the numbers in the DOM are compared with those of the library: every example at ten limits.
"""

import argparse
import os
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
from tempfile import TemporaryDirectory
from typing import Any

import ltinet
from benchmarks.support.shown_numbers import Expected, read_shown
from ltinet.explorer.files import to_upload
from ltinet.explorer.server import PageServer, running_server
from ltinet.explorer.state import ViewState
from ltinet.explorer.subject import EXAMPLES

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "lti"
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
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
    """Print a table; 1 where the page ends a drag on the wrong budget or shows other numbers than the library."""
    parser = argparse.ArgumentParser(prog="benchmarks.explore", description=__doc__)
    parser.add_argument("--only", choices=SYSTEMS, action="append")
    parser.add_argument("--tries", type=int, default=50, help="drags")
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--skip", choices=("drags", "numbers"), action="append", default=[])
    arguments = parser.parse_args()
    from playwright.sync_api import sync_playwright

    is_right = True
    with sync_playwright() as tools, TemporaryDirectory(prefix="bytecode-") as bytecode:
        browser = tools.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
        print(f"{'system':<18}{'points':>7}{'start, s':>10}{'best':>6}{'cold, ms':>10}{'warm, ms':>10}{'worst':>8}")
        for name in arguments.only or SYSTEMS:
            print(_row(browser, name, starts=arguments.starts, bytecode=bytecode), flush=True)
        if "drags" not in arguments.skip:
            is_right = _drags(browser, arguments.tries) and is_right
        if "numbers" not in arguments.skip:
            is_right = _numbers(browser) and is_right
        browser.close()
    return 0 if is_right else 1


def _row(browser: Any, name: str, *, starts: int, bytecode: str) -> str:
    file, seconds = DATA / f"{name}.mat", []
    for turn in range(starts + 1):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        began = time.perf_counter()
        with _program(file, bytecode) as address:
            page.goto(address)
            page.wait_for_selector("#explorer[data-shown]", timeout=60_000)
            page.evaluate("() => new Promise(requestAnimationFrame)")
            seconds.append(time.perf_counter() - began)
            if turn == starts:
                count, cold, warm = _walked(page)
        page.close()
    kept = seconds[1:]  # the first one compiled
    worst = max([*cold, *warm], default=0.0)
    middle = [statistics.median(own) if own else 0.0 for own in (cold, warm)]
    start = f"{statistics.median(kept):>10.2f}{min(kept):>6.2f}"
    return f"{name:<18}{count:>6}{start}{middle[0]:>10.0f}{middle[1]:>10.0f}{worst:>8.0f}"


def _walked(page: Any) -> tuple[int, list[float], list[float]]:
    """Return the number of points, and the milliseconds of presses down and up all of them."""
    page.evaluate(WATCH)
    count = int(page.get_attribute("[data-id=budget]", "max")) + 1
    page.focus("[data-id=budget]")
    return count, _presses(page, "ArrowLeft", count - 1), _presses(page, "ArrowRight", count - 1)


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


def _drags(browser: Any, tries: int) -> bool:
    """Drags over the whole range with delays in the server: how many budgets are drawn, where they end."""
    system = ltinet.load_system(DATA / "j100_jet_engine.mat")
    with _served(to_upload(system, "j100"), latest=0.06) as server:
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
    print(
        f"drags: {min(distinct)} to {max(distinct)} budgets drawn, {right} of {tries} end on the right one", flush=True
    )
    return right == tries


def _numbers(browser: Any) -> bool:
    """Every example at ten budgets: what the DOM says beside what the library says."""
    wrong = 0
    with _served(None, latest=0.0) as server:
        for name in EXAMPLES:
            expected = Expected.of(name)
            for budget in expected.budgets():
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                page.goto(f"{server.address}?{ViewState(system=f'example:{name}', k=budget).query()}")
                page.wait_for_selector("#explorer[data-shown]", timeout=300_000)
                found = expected.differences(read_shown(page), budget)
                wrong += bool(found)
                print(*([f"  {name} at {budget:g} differs: {found}\n"] if found else []), end="")
                page.close()
    print(f"numbers: {len(EXAMPLES)} examples at ten budgets, {wrong} views differ from the library")
    return wrong == 0


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
    place = page.evaluate("() => document.querySelectorAll('[data-id=trade] .point.now').length")
    budget = page.inner_text("[data-id=budget-value]")
    right = place == 1 and f"network {int(last) + 1} of" in budget
    return len(set(shown)), right


@contextmanager
def _program(file: Path, bytecode: str) -> Iterator[str]:
    """The command as users start it, compiled as an installed one; its address."""
    command = [sys.executable, "-m", "ltinet", "explore", str(file), "--no-browser"]
    usual = {name: own for name, own in os.environ.items() if name not in ("PYTHONDONTWRITEBYTECODE", *THREADS)}
    process = subprocess.Popen(  # noqa: S603
        command,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**usual, "PYTHONPYCACHEPREFIX": bytecode},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        yield re.findall(r"http\S+", process.stdout.readline())[0]
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _served(file: Any, *, latest: float) -> Iterator[PageServer]:
    """A page whose answers are late by up to so many seconds, drawn at random."""
    rng = random.Random(19)  # noqa: S311 - for delays
    with running_server(file) as server:
        ask = server.session.backend.ask

        def late(*given: Any, **more: Any) -> Any:
            time.sleep(rng.uniform(0.0, latest))
            return ask(*given, **more)

        server.session.backend.ask = late  # type: ignore[method-assign]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


if __name__ == "__main__":
    sys.exit(main())
