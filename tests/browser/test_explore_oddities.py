"""Hypothesis: whatever is dropped or done, and in whatever order, the page shows it or says in a sentence why not."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser_page import Explored
from explored_page import ServedPage
from ltinet.explorer.files import file_bytes

pytestmark = pytest.mark.slow  # pages in a browser

OVERLAPS = (Path(__file__).parent / "overlaps.js").read_text(encoding="utf-8").partition("\n")[2]
RNG = np.random.default_rng(60)
SHOWN = {
    "60 inputs": (RNG.normal(size=(12, 12)) - 6.0 * np.eye(12), RNG.normal(size=(12, 60)), RNG.normal(size=(60, 12))),
    "no states": (np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0))),
    "huge": (-1e200 * np.eye(2), 1e150 * np.ones((2, 1)), 1e150 * np.ones((1, 2))),
    "tiny": (-1e-200 * np.eye(2), 1e-150 * np.ones((2, 1)), 1e-150 * np.ones((1, 2))),
    "unstable": (np.array([[300.0, 2.0], [0.0, -3.0]]), np.ones((2, 1)), np.ones((1, 2))),
    "one state": (-np.ones((1, 1)), np.ones((1, 1)), np.ones((1, 1))),
    "unseen": (-np.eye(3), np.ones((3, 1)), np.zeros((1, 3))),
    "300 rows": (-np.diag(np.arange(1.0, 301.0)), np.ones((300, 1)), np.ones((1, 300))),
}  # fmt: skip
REFUSED = {
    "no outputs": ((-np.eye(2), np.ones((2, 1)), np.zeros((0, 2))), "no inputs or no outputs"),
    "not finite": ((np.full((2, 2), np.nan), np.ones((2, 1)), np.ones((1, 2))), "not finite"),
    "complex": ((-1j * np.eye(2), np.ones((2, 1)), np.ones((1, 2))), "systems must be real"),
}
FOCUSED = """() => {
  const [own, header] = [document.activeElement, document.querySelector(".top")];
  if (own === document.body) return null;
  const box = own.getBoundingClientRect();
  const isCovered = !header.contains(own) && box.top < header.getBoundingClientRect().bottom - 1;
  return [own.dataset.id ?? own.dataset.pick ?? own.textContent, isCovered || box.bottom > innerHeight + 1];
}"""
LEFT = """() => document.querySelector("[data-fact=n_neurons]").dataset.value === "10"
  && document.getElementById("explorer").dataset.shown.includes("masses")"""
DECIMAL = "Zeit;u;y\n" + "".join(f"{0.1 * k:.1f};{k % 3};{np.cos(0.3 * k):.6f}\n" for k in range(60)).replace(".", ",")


def drop(page: Explored, name: str, content: bytes) -> None:
    """Give the page a file, and wait for what becomes of it."""
    page.tab.evaluate(
        "() => { const own = document.getElementById('explorer').dataset; delete own.shown; delete own.failed; }"
    )
    page.part("file").set_input_files({"name": name, "mimeType": "", "buffer": content})


def stored(A: Any, B: Any, C: Any) -> bytes:
    return file_bytes(lambda path: np.savez(path, A=A, B=B, C=C), ".npz")


@pytest.mark.parametrize("width", [400, 1280])
def test_odd_systems_are_shown_whole(browser: Any, served: ServedPage, width: int) -> None:
    page = Explored(browser, served.server.address, width=width)
    for name, matrices in SHOWN.items():
        drop(page, f"{name}.npz", stored(*matrices))
        page.wait_shown()
        assert page.part("error").is_hidden(), (name, page.error())
        assert page.facts()["n_layers"] >= 0
        assert page.tab.evaluate(OVERLAPS) == [], name
    assert page.complaints == []
    page.close()


def test_files_that_cannot_be_shown_are_told_in_a_sentence(page: Explored) -> None:
    for name, (matrices, words) in REFUSED.items():
        drop(page, f"{name}.npz", stored(*matrices))
        page.wait_shown()
        assert words in page.error(), name
    for name in ("empty.csv", "empty.mat", "empty.npz", "empty.safetensors"):
        drop(page, name, b"")
        page.wait_shown()
        assert name in page.error()
    drop(page, f"{'n' * 300}.csv", DECIMAL.encode())
    # The columns of empty.csv, whose options may be wrong, are visible before.
    page.tab.wait_for_function(
        "() => document.querySelector('[data-id=columns-title]').textContent.includes('60 rows')"
    )


def test_whoever_leaves_a_long_computation_does_not_wait_for_it(page: Explored, served: ServedPage) -> None:
    worker = served.server.session.backend.process
    page.part("system").select_option("example:plate")
    page.part("system").select_option("example:masses")
    page.tab.wait_for_function(LEFT)
    assert page.part("error").is_hidden()
    assert served.server.session.backend.process != worker  # it was ended, and did not answer


def test_rapid_changes_back_forward_and_reload_end_where_the_address_says(page: Explored) -> None:
    for name in ("masses", "rod", "transport", "triangular", "masses"):
        page.part("system").select_option(f"example:{name}")
        page.tab.wait_for_url(f"**{name}*")
    # A timer starts the navigation, since evaluate fails if the page is replaced before it returns.
    page.tab.evaluate("() => { setTimeout(() => { history.back(); history.back(); history.forward(); }); }")
    page.tab.wait_for_url("**triangular*")
    page.tab.reload()
    page.wait_shown()
    with page.tab.expect_event("load"):
        page.tab.evaluate("() => { setTimeout(() => { history.back(); location.reload(); }); }")
    page.tab.wait_for_function("() => document.getElementById('explorer')?.dataset.shown === location.search.slice(1)")
    assert page.part("error").is_hidden()


def test_two_tabs_do_not_end_each_other(browser: Any, served: ServedPage, page: Explored) -> None:
    other = Explored(browser, served.server.address)
    other.part("system").select_option("example:plate")
    other.part("busy").wait_for(state="visible")
    page.part("system").select_option("example:rod")
    other.close()
    page.tab.wait_for_function("() => document.querySelector('[data-fact=n_neurons]').dataset.value === '40'")
    assert page.part("error").is_hidden()


@pytest.mark.parametrize(("times", "ends_well"), [(1, True), (3, False)])
def test_what_was_stopped_by_others_is_asked_again(page: Explored, times: int, ends_well: bool) -> None:
    left = [None] * times

    def stop(route: Any) -> None:
        if left:
            left.pop()
            route.fulfill(status=409, content_type="application/json", body='{"error": "this was stopped"}')
        else:
            route.continue_()

    page.tab.route("**/upload?*", stop)
    drop(page, "record.csv", DECIMAL.encode())
    page.part("columns" if ends_well else "error").wait_for(state="visible")
    assert not left


def test_every_control_is_reached_by_keys_and_seen(browser: Any, served: ServedPage) -> None:
    page = Explored(browser, served.server.address, width=400)
    page.turn("system=example%3Atriangular&pick=0.0")
    page.tab.evaluate(
        "() => { scrollTo(0, 0); document.activeElement.blur(); }"
    )  # the band comes while keys are pressed
    seen = set()
    while (found := _next_stop(page)) is not None and len(seen) < 80:
        assert not found[1], f"{found[0]} has the focus and is not seen"
        seen.add(found[0])
    wanted = {"system", "file", "budget", "0.0", "drive", "input", "output", "end", "unpick", "order", "compare"}
    assert wanted | {"as a table", "network file", "shareable page"} <= seen
    page.close()


def _next_stop(page: Explored) -> list[Any] | None:
    """What Tab leads to, and whether it is covered or outside of the window; None after the last one."""
    page.tab.keyboard.press("Tab")
    found: list[Any] | None = page.tab.evaluate(FOCUSED)
    return found


def test_a_page_whose_server_is_gone_says_so(browser: Any) -> None:
    command = [sys.executable, "-m", "ltinet", "explore", "example:triangular", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # noqa: S603
    try:
        page = Explored(browser, re.findall(r"http\S+", process.stdout.readline())[0])
    finally:
        process.terminate()
        process.wait()
    page.part("budget").focus()
    page.tab.keyboard.press("ArrowLeft")
    page.part("error").wait_for(state="visible")
    assert "cannot reach its server" in page.error()
    page.close()
