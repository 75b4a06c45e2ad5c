"""Hypothesis: in a real browser the page shows the library's numbers, obeys keys, and goes on after every error."""

import os
import re
import signal
import threading
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from benchmarks.support.shown_numbers import Expected, read_shown

import ltinet
from browser_page import Explored
from explored_page import ServedPage
from ltinet.explorer.files import table_upload
from ltinet.explorer.server import running_server
from ltinet.explorer.state import ViewState
from ltinet.explorer.subject import EXAMPLES

pytestmark = pytest.mark.slow  # pages in a browser

SLOW = ("blobs", "plate")  # `make bench-explore` looks at all examples


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in SLOW])
def test_the_page_shows_the_numbers_of_the_library(page: Explored, name: str) -> None:
    expected = Expected.of(name)
    for budget in expected.budgets():
        page.turn(ViewState(system=f"example:{name}", k=budget).query())
        assert expected.differences(read_shown(page.tab), budget) == []
    other = expected.budgets()[0]
    assert (expected.differences(read_shown(page.tab), other) == []) == (
        expected.points.within(other).condition == expected.points.within(budget).condition
    )


def test_every_press_reaches_another_rung(page: Explored) -> None:
    page.part("budget").focus()
    page.press("Home")
    seen = [page.part("budget-value").inner_text()]
    for _ in range(5):
        page.press("ArrowRight")
        seen.append(page.part("budget-value").inner_text())
    assert [re.search(r"network (\d+) of", words)[1] for words in seen] == [str(number) for number in range(1, 7)]
    page.press("End")
    assert page.facts()["n_connections"] == 0
    page.press("ArrowLeft")
    assert page.facts()["n_connections"] > 0


def test_back_and_forward_lead_through_states(page: Explored) -> None:
    page.part("budget").focus()
    page.press("Home")
    page.tab.wait_for_url("**k=1*")
    most = page.facts()["n_connections"]
    page.part("system").select_option("example:masses")
    page.tab.wait_for_url("**masses*")
    page.wait_shown()
    page.tab.go_back()
    page.tab.wait_for_function(f"() => document.querySelector('[data-fact=n_connections]').dataset.value === '{most}'")
    page.tab.go_forward()
    page.tab.wait_for_function("() => document.querySelector('[data-fact=n_neurons]').dataset.value === '10'")
    assert "masses" in page.tab.url


def test_a_neuron_is_picked_by_keyboard_and_its_share_shown(page: Explored) -> None:
    page.turn("system=example%3Amasses")
    ball = page.tab.locator("[data-pick='0.0']")
    ball.focus()
    assert "ξ" in page.part("equation").inner_text()
    page.press("Enter")
    assert page.part("share-title").inner_text() == "Contribution of neuron 0.0 to the output"
    assert page.tab.locator("[data-pick='0.0']").get_attribute("aria-pressed") == "true"
    assert page.tab.evaluate("() => document.activeElement.dataset.pick") == "0.0"
    page.part("unpick").click()
    page.tab.wait_for_selector("[data-panel=share]", state="hidden")


def test_the_certified_band_arrives_after_the_curve(page: Explored) -> None:
    page.tab.wait_for_selector("#explorer[data-banded]")
    assert re.match(r"Certified: y1 is within \S+ of the exact output", page.part("band").inner_text())
    assert page.tab.locator("[data-id=response] path.band").count() == 1


def test_a_band_that_arrives_takes_no_focus_away(page: Explored) -> None:
    page.turn("system=example%3Atriangular&k=11")
    page.tab.focus("[data-id=response] summary")
    page.tab.wait_for_function(
        "() => { const own = document.getElementById('explorer').dataset; return own.banded === own.shown; }"
    )
    assert page.tab.evaluate("() => document.activeElement.matches('[data-id=response] summary')")


def test_files_are_dropped_and_shown(page: Explored, tmp_path: Path) -> None:
    name = "<img src=x onerror=alert(1)>.npz"
    ltinet.save_system(ltinet.named_system("mass_spring_damper", n_masses=3), tmp_path / "three.npz")
    page.part("file").set_input_files({"name": name, "mimeType": "", "buffer": (tmp_path / "three.npz").read_bytes()})
    page.tab.wait_for_function("() => document.querySelector('[data-fact=n_neurons]').dataset.value === '3'")
    page.wait_shown()
    assert name in page.part("system").locator("option:checked").inner_text()
    assert page.tab.locator("img").count() == 0
    net = ltinet.construct(ltinet.named_system("triangular"), max_condition=100.0)
    net.save(tmp_path / "net.safetensors")
    page.part("file").set_input_files(tmp_path / "net.safetensors")
    page.tab.wait_for_function(
        "() => document.querySelector('[data-id=notes]').textContent.includes('holds a network')"
    )


def test_a_table_is_identified_from_the_page(page: Explored, tmp_path: Path) -> None:
    t = 0.1 * np.arange(400)
    u = np.random.default_rng(3).choice([-1.0, 1.0], (400, 1))
    y = ltinet.construct(([[-1.0]], [[1.0]], [[2.0]])).simulate(u, t, hold="zero").y
    rows = "\n".join(f"{a:.1f},{b:.0f},{c:.9f}" for a, b, c in zip(t, u[:, 0], y[:, 0], strict=True))
    (tmp_path / "record.csv").write_text(f"t,valve,level\n{rows}\n")
    page.part("file").set_input_files(tmp_path / "record.csv")
    page.part("columns").wait_for(state="visible")
    page.tab.get_by_role("button", name="Identify a system").click()
    page.tab.wait_for_function(
        "() => document.querySelector('[data-fact=details]')?.textContent.includes('identified: 1 state,')"
    )
    page.wait_shown()
    pole = float(page.table("poles")[0][0])
    assert pole == pytest.approx(-1.0, abs=1e-4)


@pytest.mark.parametrize("day_first", [None, "day first"])
def test_a_page_that_starts_with_a_table_identifies_its_system(
    browser: Any, tmp_path: Path, day_first: str | None
) -> None:
    u = np.random.default_rng(3).choice([-1.0, 1.0], 400)
    y = ltinet.construct(([[-1.0]], [[1.0]], [[2.0]])).simulate(u, 1.0 * np.arange(400), hold="zero").y[:, 0]
    date = "2026-03-01" if day_first is None else "01.03.2026"  # which may have the month first
    rows = (f"{date} 08:{k // 60:02d}:{k % 60:02d};{u[k]:.0f};{y[k]:.9f}" for k in range(400))
    (tmp_path / "rig.csv").write_text("\n".join(["Zeit;valve (%);level (m)", *rows, ""]))
    with running_server(table_upload(tmp_path / "rig.csv")) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        page = Explored(browser, server.address)
        if day_first is not None:
            assert "Dates: day first" in page.error()
            page.tab.get_by_label("Dates").select_option(day_first)
            page.tab.get_by_role("button", name="Read again").click()
        page.tab.wait_for_function(
            "() => document.querySelector('[data-fact=details]')?.textContent.includes('identified: 1 state,')"
        )
        assert page.part("input").locator("option").all_inner_texts() == ["valve (%)"]
        assert page.part("output").locator("option").all_inner_texts() == ["level (m)"]
        assert re.search(r"\b1 layer\b.*\b1 neuron\b", page.part("facts").inner_text(), re.DOTALL)
        # The form stays, so that the guess can be corrected.
        assert page.part("columns-title").inner_text() == "rig.csv: 400 rows"
        assert page.tab.get_by_role("button", name="Identify a system").is_visible()
        page.close()
        server.shutdown()
        thread.join()


def test_errors_are_sentences_and_the_page_goes_on(page: Explored) -> None:
    page.part("end").fill("minus one")
    page.part("end").press("Enter")
    page.part("error").wait_for(state="visible")
    assert "must be a positive time" in page.part("error").inner_text()
    page.part("file").set_input_files({"name": "broken.mat", "mimeType": "", "buffer": b"nothing of the kind"})
    page.tab.wait_for_function("() => document.querySelector('[data-id=error]').textContent.includes('broken.mat')")
    page.turn("system=example%3Amasses")
    assert page.part("error").is_hidden()
    assert page.facts()["n_neurons"] == 10


def test_a_long_computation_is_shown_and_cancelled(page: Explored) -> None:
    page.part("system").select_option("example:plate")
    page.part("busy").wait_for(state="visible")
    page.part("cancel").click()
    page.part("error").wait_for(state="visible")
    assert "stopped" in page.part("error").inner_text()
    page.turn("system=example%3Atriangular")
    assert page.facts()["n_neurons"] == 10


def test_the_page_goes_on_when_its_worker_dies(page: Explored, served: ServedPage) -> None:
    os.kill(served.server.session.backend.process, signal.SIGKILL)
    page.turn("system=example%3Arod")
    if page.part("error").is_visible():  # it was asked in the very moment
        page.turn("system=example%3Arod")
    assert page.facts()["n_neurons"] == 40


def test_what_is_downloaded_is_what_is_shown(page: Explored, tmp_path: Path) -> None:
    page.turn("system=example%3Atriangular&k=11")
    with page.tab.expect_download() as started:
        page.tab.get_by_role("button", name="network file").click()
    started.value.save_as(tmp_path / "network.safetensors")
    assert ltinet.load(tmp_path / "network.safetensors").n_connections == page.facts()["n_connections"]
    with page.tab.expect_download() as started:
        page.tab.get_by_role("button", name="architecture.svg").click()
    started.value.save_as(tmp_path / "architecture.svg")
    root = ElementTree.parse(tmp_path / "architecture.svg").getroot()  # noqa: S314 - our own drawing
    fills = {own.get("fill") for own in root.iter("{http://www.w3.org/2000/svg}circle")}
    assert any(fill.startswith("rgb") for fill in fills if fill)


def test_the_shared_page_slides_without_a_server(browser: Any, served: ServedPage, tmp_path: Path) -> None:
    path = tmp_path / "shared.html"
    path.write_bytes(served.get("page?system=example:triangular&k=11")[1])
    shared = Explored(browser, path.as_uri())
    rungs = ltinet.condition_tradeoff(ltinet.named_system("triangular"))
    assert shared.facts()["condition"] == rungs.within(11.0).condition
    shared.part("budget").focus()
    shared.press("End")
    assert shared.facts()["n_connections"] == 0
    shared.tab.wait_for_selector("#explorer[data-banded]")
    assert "Certified" in shared.part("band").inner_text()
    assert [url for url in shared.asked if not url.startswith(("file:", "data:"))] == []
    assert shared.complaints == []
    shared.close()


def test_a_table_that_cannot_be_read_is_read_again_with_options_of_the_page(page: Explored) -> None:
    rng = np.random.default_rng(4)
    u = rng.choice([-1.0, 1.0], 300)
    y = ltinet.construct(([[-1.0]], [[1.0]], [[2.0]])).simulate(u, 1.0 * np.arange(300), hold="zero").y[:, 0]
    rows = (f"01.03.2026 08:{k // 60:02d}:{k % 60:02d};{y[k]:.6f};{u[k]:.0f}" for k in range(300))
    content = "\n".join(["Zeit;a;b", *rows, ""])
    page.part("file").set_input_files({"name": "rig.csv", "mimeType": "", "buffer": content.encode()})
    page.part("error").wait_for(state="visible")
    assert "Dates: day first" in page.error()
    assert page.tab.get_by_role("button", name="Identify a system").is_hidden()
    page.tab.get_by_label("Dates").select_option("day first")
    page.tab.get_by_role("button", name="Read again").click()
    page.tab.get_by_role("button", name="Identify a system").wait_for(state="visible")
    assert page.part("error").is_hidden()
    # The second column drives the first one.
    assert page.part("columns-list").locator("select").first.input_value() == "answer"
    assert page.part("columns-list").locator("select").last.input_value() == "drive"
    page.tab.get_by_role("button", name="Identify a system").click()
    page.tab.wait_for_function(
        "() => document.querySelector('[data-fact=details]')?.textContent.includes('identified: 1 state,')"
    )
    assert page.part("input").locator("option").all_inner_texts() == ["b"]
    assert page.part("output").locator("option").all_inner_texts() == ["a"]
