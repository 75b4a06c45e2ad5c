"""Hypothesis: in JupyterLab `net.explore()` is the same page, and answers to its slider."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ltinet
from browser_page import PATIENCE
from ltinet.explorer.desk import Desk
from ltinet.explorer.widget import reply, widget_of

CELL = 'import ltinet\nltinet.construct(ltinet.named_system("triangular")).explore()'


def test_messages_are_answered_as_requests_are() -> None:
    answer = reply(Desk(), {"id": 3, "kind": "view", "query": {"system": "example:masses"}})
    assert (answer["id"], answer["status"]) == (3, 200)
    assert json.loads(answer["text"])["facts"]["n_neurons"] == 10
    assert reply(Desk(), {"id": 4, "kind": "open"})["status"] == 404
    assert reply(Desk(), {"id": 5, "kind": "view", "query": {"k": "0"}})["status"] == 400


def test_without_anywidget_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(ltinet.MissingDependencyError, match=r"ltinet\[jupyter\]"):
        widget_of(None)


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[str]:
    """JupyterLab with one notebook; its address."""
    for library in ("jupyterlab", "ipykernel", "anywidget"):
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    cell = {"cell_type": "code", "source": CELL, "metadata": {}, "outputs": [], "execution_count": None, "id": "one"}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"cells": [cell], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "page.ipynb").write_text(json.dumps(notebook))
    options = ["--no-browser", "--allow-root", "--port=0", f"--ServerApp.root_dir={tmp_path}", "--ServerApp.token=test"]
    options.append("--LabApp.news_url=None")
    places = {f"JUPYTER_{name}_DIR": str(tmp_path / name) for name in ("CONFIG", "RUNTIME")}
    process = subprocess.Popen(  # noqa: S603 - a program that was found to be installed
        [sys.executable, "-m", "jupyterlab", *options],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env={**os.environ, **places},
    )  # fmt: skip
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"http://(?:localhost|127\.0\.0\.1):(\d+)/lab", line):
                break
        assert found is not None
        yield f"http://localhost:{found[1]}/lab/tree/page.ipynb?token=test"
    finally:
        process.terminate()
        process.wait(60)


def test_the_widget_slides_in_jupyterlab(browser: Any, laboratory: str) -> None:
    tab = browser.new_page(viewport={"width": 1400, "height": 1000})
    tab.set_default_timeout(PATIENCE)
    tab.goto(laboratory)
    tab.locator(".jp-Notebook .jp-Cell .cm-content").first.click()
    tab.locator(".jp-Notebook .jp-Cell").first.wait_for()
    tab.wait_for_function("() => document.querySelector('.jp-Notebook-ExecutionIndicator, .jp-NotebookPanel') !== null")
    tab.keyboard.press("Control+Enter")
    tab.wait_for_selector(".explorer[data-shown]")
    assert tab.inner_text(".explorer [data-fact=n_neurons]") == "10 neurons"
    tab.focus(".explorer [data-id=budget]")
    tab.keyboard.press("End")
    tab.wait_for_function("() => document.querySelector('.explorer [data-fact=n_connections]').dataset.value === '0'")
    tab.close()
