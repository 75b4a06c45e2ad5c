"""Hypothesis: what CONTRIBUTING.md names is there, and every room has its line."""

import re
from pathlib import Path

from test_imports import LEVEL, SOURCE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ADDING = PAGE.split("## Adding something")[1].split("\n## ")[0]


def test_every_file_named_for_additions_exists() -> None:
    named = re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", ADDING) + re.findall(r"`(\w+\.py)`", ADDING)
    assert len(named) > 8
    missing = [name for name in named if not (SOURCE / name).exists() and not (ROOT / name).exists()]
    assert missing == []


def test_every_room_is_described() -> None:
    described = LEVEL.keys() - {"__main__", "__init__"}
    rooms = {f"{room}/" if (SOURCE / room).is_dir() else f"{room}.py" for room in described}
    table = PAGE.split("| room | what is in it |")[1].split("\n\n")[0]
    assert {room for room in rooms if f"`{room}`" not in table} == set()
