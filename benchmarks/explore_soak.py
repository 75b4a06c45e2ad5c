"""Random use of the page for minutes on end: memory of server and worker, and complaints of the browser.

    python -m benchmarks.explore_soak [--minutes 10] [--seed 19]

Ends with 1 where memory after the first fifth of the time grew by more than a tenth, or the browser's console has an
error. Needs Chromium and playwright; memory is read from /proc.
"""

import argparse
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

EXAMPLES = ("triangular", "transport", "masses", "rod", "penzl")
DRIVES = ("step", "impulse", "chirp")
KEYS = ("ArrowLeft", "ArrowRight", "PageUp", "PageDown", "Home", "End")
TABLE = "t,u,y\n" + "\n".join(f"{k},{k % 3},{k % 5}" for k in range(60))
GROWTH = 0.10


class Soak:
    """A tab with random actions."""

    def __init__(self, tab: Any, rng: random.Random) -> None:
        self.tab, self.rng, self.count = tab, rng, 0
        self.kept: list[str] = []
        tab.on("download", lambda found: self.kept.append(found.suggested_filename))
        self.acts = [*[self.press] * 12, *[self.drag] * 3, self.system, self.drive, self.channel, self.pick]
        self.acts += [self.order, self.back, self.upload, self.break_upload, self.download, self.engines, self.resize]

    def act(self) -> None:
        """One thing, and wait until it is drawn or has failed."""
        self.rng.choice(self.acts)()
        self.count += 1
        self.tab.wait_for_selector("#explorer[aria-busy=false]", timeout=120_000)

    def press(self) -> None:
        """A key on the slider."""
        self.tab.focus("[data-id=budget]:not([disabled]), [data-id=system]")
        if self.tab.evaluate("() => document.activeElement.dataset.id") == "budget":
            self.tab.keyboard.press(self.rng.choice(KEYS))

    def drag(self) -> None:
        """The slider by mouse."""
        box = self.tab.locator("[data-id=budget]").bounding_box()
        y = box["y"] + box["height"] / 2
        self.tab.mouse.move(box["x"] + box["width"] * self.rng.random(), y)
        self.tab.mouse.down()
        self.tab.mouse.move(box["x"] + box["width"] * self.rng.random(), y, steps=15)
        self.tab.mouse.up()

    def system(self) -> None:
        """Another example."""
        self.tab.select_option("[data-id=system]", f"example:{self.rng.choice(EXAMPLES)}")

    def drive(self) -> None:
        """Another input."""
        self.tab.select_option("[data-id=drive]", self.rng.choice(DRIVES))

    def channel(self) -> None:
        """Another output."""
        count = self.tab.locator("[data-id=output] option").count()
        self.tab.select_option("[data-id=output]", index=self.rng.randrange(count))

    def pick(self) -> None:
        """A neuron."""
        balls = self.tab.locator("[data-pick]")
        balls.nth(self.rng.randrange(balls.count())).click(force=True)

    def order(self) -> None:
        """Fewer states, or all of them."""
        whole = self.tab.locator("[data-id=whole]:not([disabled])")
        if whole.count() and self.rng.random() < 0.7:
            whole.click()
        else:
            self.tab.focus("[data-id=order]")
            self.tab.keyboard.press(self.rng.choice(("ArrowLeft", "PageDown")))

    def back(self) -> None:
        """The button back."""
        if self.tab.evaluate("() => history.length") > 3:
            self.tab.evaluate("() => history.back()")

    def upload(self) -> None:
        """A table, and its form closed."""
        self.drop(f"table{self.rng.randrange(20)}.csv", f"{TABLE}\n99,1,{self.rng.random()}\n".encode())
        self.tab.wait_for_selector("[data-id=columns]", state="visible", timeout=60_000)
        self.tab.click("[data-id=columns-close]")

    def break_upload(self) -> None:
        """An invalid file."""
        self.drop("broken.mat", self.rng.randbytes(2000))
        self.tab.wait_for_selector("[data-id=error]", state="visible", timeout=60_000)

    def download(self) -> None:
        """Download a file; a view that shows an error has none."""
        before = len(self.kept)
        self.tab.get_by_role("button", name=self.rng.choice(("network file", "script", "poles.svg"))).click()
        for _ in range(600):
            if len(self.kept) > before or self.tab.is_visible("[data-id=error]"):
                return
            self.tab.wait_for_timeout(100)
        raise TimeoutError("neither a file nor a sentence came within a minute")

    def engines(self) -> None:
        """Engines compared, or stopped; mostly they are left before they are done."""
        self.tab.click("[data-id=compare]")
        self.tab.wait_for_timeout(200)

    def resize(self) -> None:
        """Another window."""
        self.tab.set_viewport_size({"width": self.rng.choice((400, 900, 1280, 1900)), "height": 900})

    def drop(self, name: str, content: bytes) -> None:
        """A file on the page."""
        self.tab.set_input_files("[data-id=file]", {"name": name, "mimeType": "", "buffer": content})


def main() -> int:
    """Play, look at memory every few seconds, and judge."""
    parser = argparse.ArgumentParser(prog="benchmarks.explore_soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=19)
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "ltinet", "explore", "--no-browser"]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ourselves
    assert program.stdout is not None
    address = re.findall(r"http\S+", program.stdout.readline())[0]
    complaints: list[str] = []
    try:
        with sync_playwright() as tools:
            browser = tools.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            tab = browser.new_page(viewport={"width": 1280, "height": 900}, accept_downloads=True)
            tab.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
            tab.on("pageerror", lambda error: complaints.append(str(error)))
            tab.goto(address)
            tab.wait_for_selector("#explorer[data-shown]", timeout=120_000)
            soak = Soak(tab, random.Random(given.seed))  # noqa: S311 - for play
            memory = _play(soak, program.pid, given.minutes * 60.0)
            browser.close()
    finally:
        program.terminate()
        program.wait()
    # A request that is refused, such as an invalid file, is also reported in the console.
    errors = [words for words in complaints if "status of 4" not in words]
    return _judged(memory, errors, soak.count)


def _play(soak: Soak, server: int, seconds: float) -> list[tuple[float, float, float]]:
    began, memory = time.monotonic(), [(0.0, *_memory(server))]
    while (now := time.monotonic() - began) < seconds:
        soak.act()
        if now - memory[-1][0] >= 5.0:
            memory.append((now, *_memory(server)))
    return memory


def _judged(memory: list[tuple[float, float, float]], errors: list[str], count: int) -> int:
    end = memory[-1][0]
    print(f"{count} acts in {end / 60.0:.1f} minutes")
    flat = True
    for place, name in ((1, "server"), (2, "worker")):
        early = statistics.median([own[place] for own in memory if 0.2 * end <= own[0] <= 0.4 * end])
        late = statistics.median([own[place] for own in memory if own[0] >= 0.8 * end])
        flat = flat and late <= (1.0 + GROWTH) * early
        print(f"{name}: {early:.0f} MB after a fifth of the time, {late:.0f} MB at the end ({late / early - 1.0:+.1%})")
    print(f"errors in the console: {len(errors)}", *errors[:5], sep="\n  ")
    return 0 if flat and not errors else 1


def _memory(server: int) -> tuple[float, float]:
    """Megabytes of memory that the server and all its children have to themselves."""
    children = [process for process in _descendants(server) if process != server]
    return _own(server), sum(map(_own, children))


def _descendants(process: int) -> list[int]:
    try:
        listed = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()
    except OSError:
        return [process]
    return [process, *(own for child in listed for own in _descendants(int(child)))]


def _own(process: int) -> float:
    try:
        rows = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return sum(float(row.split()[1]) for row in rows if row.startswith("Private_")) / 1024.0


if __name__ == "__main__":
    sys.exit(main())
