"""Hypothesis: in JupyterLab `net.explore()` is the same page; can be cancelled, takes files, keeps the kernel free."""

import importlib.util
import json
import os
import queue
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import ltinet
from browser_page import PATIENCE
from ltinet.explorer.page_session import PageSession
from ltinet.explorer.widget import create_widget, handle_message
from ltinet.explorer.worker_manager import WorkerManager

pytestmark = pytest.mark.slow  # pages in a browser

CELL = 'import ltinet\nltinet.construct(ltinet.named_system("triangular")).explore()'

DROP = """(text) => {
  const held = new DataTransfer();
  held.items.add(new File([text], "record.csv"));
  document.querySelector(".explorer").dispatchEvent(
    new DragEvent("drop", { dataTransfer: held, bubbles: true, cancelable: true }));
}"""


@pytest.fixture(params=["forkserver", "spawn"])
def session(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[PageSession]:
    """Session with processes that are forked, and with processes that are started as programs, as on Windows."""
    if request.param == "spawn":
        monkeypatch.setattr("multiprocessing.get_all_start_methods", lambda: ["spawn"])
    with closing(WorkerManager()) as backend:
        yield PageSession(backend)


def asked(session: PageSession, kind: str, *buffers: bytes | memoryview, **query: str) -> tuple[int, Any]:
    told, content = handle_message(session, {"id": 3, "kind": kind, "query": query}, buffers, tab="one")
    assert told["id"] == 3
    return told["status"], json.loads(content) if told["type"] == "application/json" else content


def test_messages_are_answered_as_requests_are(session: PageSession) -> None:
    status, view = asked(session, "view", system="example:masses")
    assert (status, view["facts"]["n_neurons"]) == (200, 10)
    assert asked(session, "open")[0] == asked(session, "start")[0] == 404
    assert asked(session, "view", k="0")[0] == 400
    assert asked(session, "network", system="example:masses")[1][8:10] == b'{"'
    assert asked(session, "cancel") == (200, {})


def test_files_are_dropped_in_a_notebook(session: PageSession, tmp_path: Path) -> None:
    ltinet.save_system(ltinet.named_system("mass_spring_damper", n_masses=3), tmp_path / "three.npz")
    content = (tmp_path / "three.npz").read_bytes()
    status, told = asked(session, "upload", memoryview(content), name="three.npz")
    assert (status, told["kind"], told["n_states"]) == (200, "system", 6)
    assert asked(session, "view", system=f"file:{told['hash']}")[1]["facts"]["n_neurons"] == 3
    status, told = asked(session, "upload", b"nothing of the kind", name="broken.mat")
    assert status == 400
    assert "broken.mat" in told["error"]
    assert len(session.uploads.listed()) == 1


def test_a_widget_keeps_the_kernel_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked is answered later, by another thread; what is cancelled in the meantime is answered as stopped."""
    pytest.importorskip("anywidget", reason="anywidget is not installed (extra jupyter)")
    with closing(WorkerManager()) as backend:
        monkeypatch.setattr("ltinet.explorer.widget._shared_backend", lambda: backend)
        widget, answers = create_widget(None), queue.SimpleQueue[Any]()
        monkeypatch.setattr(type(widget), "send", lambda _, told, buffers: answers.put((told, buffers)))
        widget._handle_custom_msg({"id": 1, "kind": "view", "query": {"system": "example:plate"}}, [])
        while backend.process is None:
            time.sleep(0.01)
        widget._handle_custom_msg({"id": 2, "kind": "cancel", "query": {}}, [])
        found = {told["id"]: told["status"] for told, _ in (answers.get(timeout=60) for _ in range(2))}
        assert found == {1: 409, 2: 200}


def test_without_anywidget_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(ltinet.MissingDependencyError, match=r"ltinet\[jupyter\]"):
        create_widget(None)


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
    process = subprocess.Popen(  # noqa: S603
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


def test_the_widget_slides_is_cancelled_and_takes_files_in_jupyterlab(browser: Any, laboratory: str) -> None:
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
    tab.select_option(".explorer [data-id=system]", "example:plate")
    tab.click(".explorer [data-id=cancel]")
    tab.wait_for_function("() => document.querySelector('.explorer [data-id=error]').textContent.includes('stopped')")
    tab.evaluate(DROP, "t,u,y\n" + "".join(f"{k},{k % 3},{k % 5}\n" for k in range(60)))
    tab.wait_for_selector(".explorer [data-id=columns]")
    assert tab.inner_text(".explorer [data-id=columns-title]") == "record.csv: 60 rows"
    tab.close()
