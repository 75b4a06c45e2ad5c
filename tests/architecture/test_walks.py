"""Hypothesis: the walks of docs/architecture.md name files in the order in which a run enters them."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ltinet

SOURCE = Path(ltinet.__file__).parent
PAGE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
RNG = np.random.default_rng(0)
SYSTEM = (RNG.standard_normal((8, 8)) - 3.0 * np.eye(8), np.ones((8, 1)), np.ones((1, 8)))
T = 0.1 * np.arange(2000)


def construct() -> ltinet.DynamicNetwork:
    return ltinet.construct(ltinet.StateSpace(*SYSTEM))


RUNS = {
    "A": lambda _: construct(),
    "u": lambda net: net.simulate(np.sin(T), T),
    "x₀": lambda net: net.simulate(np.sin(T[:20]), T[:20], x0=np.ones(8), engine="neurons").states,
}


def files_entered(run: Callable[[], object]) -> list[str]:
    """Files of the package in the order in which a function of theirs is called first."""
    entered: dict[str, None] = {}

    def watch(frame: object, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(SOURCE):
            entered.setdefault(path.relative_to(SOURCE).as_posix())

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(before)
    return list(entered)


@pytest.mark.parametrize("what", RUNS)
def test_files_are_entered_in_the_order_that_the_page_tells(what):
    told = re.findall(r"^\d+\. `([\w/]+\.py)`", PAGE.split(f"## What happens to {what}\n")[1].split("\n## ")[0], re.M)
    assert len(told) >= 10
    net = construct()  # a new one, for which nothing is prepared
    entered = files_entered(lambda: RUNS[what](net))
    assert [name for name in entered if name in told] == told


def test_every_walk_is_run():
    assert set(re.findall(r"^## What happens to (.*)$", PAGE, re.M)) == set(RUNS)
