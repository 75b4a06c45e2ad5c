"""Hypothesis: the modules of the page can be put together as one, and none of them sets text from data as markup."""

import re
import tomllib
from pathlib import Path

import pytest

from ltinet.explorer.page import asset_text, bundle_script, load_assets

TOP = re.compile(r"^(?:export )?(?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE)


@pytest.mark.parametrize("entry", ["main.js", "shared.js", "widget.js"])
def test_modules_share_no_name_and_every_import_is_there(entry: str) -> None:
    whole = bundle_script(entry)
    assert "import {" not in whole
    names = TOP.findall(whole)
    assert len(names) == len(set(names))


SCRIPT_NAMES = sorted(name for name in load_assets() if name.endswith(".js"))


@pytest.mark.parametrize("name", SCRIPT_NAMES)
def test_imports_are_exported_where_they_come_from(name: str) -> None:
    for listed, other in re.findall(r'import \{([^}]*)\} from "\./([\w-]+\.js)"', asset_text(name)):
        for imported in listed.split(","):
            assert re.search(
                rf"^export (async )?(function|const|class) {imported.strip()}\b", asset_text(other), re.MULTILINE
            )


@pytest.mark.parametrize("name", sorted(load_assets()))
def test_no_markup_from_data_and_no_other_host(name: str) -> None:
    text = asset_text(name)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|srcdoc", text)
    assert re.findall(r"https?://[^\s\"'`<]+", text) in ([], ["http://www.w3.org/2000/svg"])
    assert not re.search(r"\son\w+=|<script>|style=", text)


def test_files_are_small_and_readable() -> None:
    assert sum(len(content) for _, content in load_assets().values()) < 300_000
    for name in SCRIPT_NAMES:
        assert len(asset_text(name).splitlines()) <= 250


def test_the_wheel_takes_the_files_of_the_page() -> None:
    root = Path(__file__).parents[3]
    built = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    assert built["targets"]["wheel"] == {"packages": ["src/ltinet"]}  # all that lies there, whatever its suffix
    assert {"index.html", "page.css", "main.js"} <= set(load_assets())
