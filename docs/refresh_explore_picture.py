"""Take the picture of `ltinet explore` anew; needs playwright and Chromium."""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import ltinet

TARGET = Path(__file__).parent / "_static" / "explore.png"


def main() -> None:
    """Open the page of a system without a server, choose a budget, and look."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as tools:
        page = Path(folder) / "page.html"
        ltinet.explore(ltinet.named_system("triangular"), page=page, title="Triangular, 10 states")
        browser = tools.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(page.as_uri())
        tab.wait_for_selector("#explorer[data-banded]")
        tab.focus("[data-id=budget]")
        for _ in range(6):
            tab.keyboard.press("ArrowLeft")
        tab.wait_for_timeout(500)
        tab.screenshot(path=TARGET, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
