"""docs/architecture.md names functions in the order in which three runs call them first."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

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
    "x₀": lambda net: net.simulate(np.sin(T[:20]), T[:20], x0=np.ones(8), engine="per_neuron").states,
}


def functions_called(run: Callable[[], object]) -> list[str]:
    """Qualified names of functions of the package, in the order of their first call."""
    called: dict[str, None] = {}

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and Path(frame.f_code.co_filename).is_relative_to(SOURCE):
            called.setdefault(frame.f_code.co_qualname)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(before)
    return list(called)


@pytest.mark.parametrize("run", RUNS)
def test_functions_are_called_in_the_order_of_the_page(run: str) -> None:
    section = PAGE.split(f"## What happens to {run}\n")[1].split("\n## ")[0]
    named = re.findall(r"^\d+\. `([\w.]+)`", section, re.M)
    assert len(named) >= 10
    net = construct()  # a new one, for which nothing is prepared
    called = functions_called(lambda: RUNS[run](net))
    assert set(named) - set(called) == set(), "not called in this run"
    assert sorted(named, key=called.index) == named


def test_every_section_has_its_run() -> None:
    assert set(re.findall(r"^## What happens to (.*)$", PAGE, re.M)) == set(RUNS)
