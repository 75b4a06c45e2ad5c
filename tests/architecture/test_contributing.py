"""Files named in CONTRIBUTING.md exist, and every package has its line there."""

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


def test_every_package_is_described() -> None:
    described = {name.split(".")[0] for name in LEVEL} - {"__main__", "__init__"}
    packages = {f"{name}/" if (SOURCE / name).is_dir() else f"{name}.py" for name in described}
    table = PAGE.split("| package | contents |")[1].split("\n\n")[0]
    assert {package for package in packages if f"`{package}`" not in table} == set()
