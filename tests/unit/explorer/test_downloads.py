"""Hypothesis: what is taken away from the page is what the page showed."""

import base64
import hashlib
import html.parser
import io
import json
import zipfile

import numpy as np
import pytest

import ltinet
from ltinet.explorer.files import Upload, to_upload, upload_hash
from ltinet.explorer.requests import answer_request
from ltinet.explorer.state import ViewState
from ltinet.explorer.view_service import ViewService

TABLE = "t,force,place\n" + "\n".join(
    f"{0.1 * k:.1f},{np.sin(0.3 * k * k / 40):.6f},{np.cos(0.05 * k) - 1:.6f}" for k in range(300)
)


def service_with(file: Upload) -> tuple[ViewService, str]:
    service = ViewService()
    service.files[upload_hash(file)] = file
    return service, f"file:{upload_hash(file)}"


@pytest.mark.parametrize(
    "query",
    [
        {"k": "11.0"},
        {"system": "example:masses", "u": "impulse", "order": "6"},
        {"system": "example:transport", "u": "chirp", "input": "2", "output": "3"},
    ],
)
def test_the_script_gives_the_same_numbers(query: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    service = ViewService()
    script = answer_request(service, "script", query).content.decode()
    names: dict = {}
    exec(compile(script, "view.py", "exec"), names)  # noqa: S102 - a script that the page wrote
    view, output = json.loads(answer_request(service, "view", query).content), int(query.get("output", "1")) - 1
    assert names["net"].n_connections == view["facts"]["n_connections"]
    y = names["solution"].y[:, output]
    np.testing.assert_allclose(view["response"]["y"], y, rtol=6e-7, atol=1e-11 * np.abs(y).max())
    assert "certified error" in capsys.readouterr().out


def test_scripts_of_files_name_them_and_nothing_breaks_out(monkeypatch: pytest.MonkeyPatch) -> None:
    name = 'a"b\'c\\n"""; import os; """.npz'
    file = to_upload(ltinet.named_system("triangular"), "x")._replace(name=name)
    service, system = service_with(file)
    script = answer_request(service, "script", {"system": system}).content.decode()
    asked: list[str] = []
    monkeypatch.setattr(ltinet, "load_system", lambda path: asked.append(path) or ltinet.named_system("triangular"))
    exec(compile(script, "view.py", "exec"), {})  # noqa: S102 - a script that the page wrote
    assert asked == [name]


def test_the_network_file_is_the_network() -> None:
    service, state = ViewService(), ViewState(k=11.0)
    content = answer_request(service, "network", {"k": "11.0"}).content
    service2, system = service_with(Upload("net.safetensors", content))
    assert service2.subject(ViewState(system=system)).system == service.subject(state).system


def test_the_archive_of_c_has_its_files() -> None:
    with zipfile.ZipFile(io.BytesIO(answer_request(ViewService(), "c", {}).content)) as archive:
        assert {"network_c/model.c", "network_c/model.h"} <= set(archive.namelist())


class _Parts(html.parser.HTMLParser):
    """Contents of scripts and styles, the policy, and what a page would fetch."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.scripts: list[tuple[str, str]] = []
        self.styles: list[str] = []
        self.policy, self.fetched, self._inside = "", [], ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._inside = f"{tag} {given.get('type', '')}".strip()
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"] or ""
        self.fetched += [value for name, value in attrs if name in ("src", "href") and value != "data:,"]
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        if self._inside.startswith("script"):
            self.scripts.append((self._inside, data))
        elif self._inside == "style":
            self.styles.append(data)

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 - its signature
        self._inside = ""


@pytest.mark.slow
def test_the_shared_page_is_one_file_whose_scripts_are_allowed_by_hash() -> None:
    parts = _Parts(answer_request(ViewService(), "page", {"k": "11.0"}).content.decode())
    ((_, script),) = [own for own in parts.scripts if own[0] == "script module"]
    ((_, data),) = [own for own in parts.scripts if own[0] == "script application/json"]
    for text in (script, *parts.styles):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in parts.policy
    assert parts.fetched == []
    assert "default-src 'none'" in parts.policy
    shared = json.loads(data)
    assert len(shared["views"]) == len(ltinet.condition_tradeoff(ltinet.named_system("triangular")))


def test_markup_in_names_stays_data_on_the_shared_page() -> None:
    system = ltinet.StateSpace([[-1.0]], [[1.0]], [[1.0]], inputs=["</script><img src=x onerror=alert(1)>"])
    service, name = service_with(to_upload(system, "<img onerror>"))
    page = answer_request(service, "page", {"system": name}).content.decode()
    assert "<img" not in page
    parts = _Parts(page)
    assert (
        "<img src=x"
        in json.loads(next(own for kind, own in parts.scripts if "json" in kind))["views"][0]["facts"]["inputs"][0]
    )


@pytest.mark.slow
def test_a_table_is_identified_and_drives() -> None:
    service, name = service_with(Upload("record.csv", TABLE.encode()))
    asked = json.loads(answer_request(service, "view", {"system": name}).content)["error"]
    assert "input and output columns" in asked
    view = json.loads(answer_request(service, "view", {"system": name, "drive": "1", "answer": "2"}).content)
    assert "identified" in view["facts"]["details"]
    driven = json.loads(answer_request(service, "view", {"system": "example:masses", "u": name}).content)
    assert driven["response"]["end"] == pytest.approx(29.9)
    told = json.loads(answer_request(service, "open", {"system": name}).content)
    assert (told["kind"], told["columns"], told["rows"]) == ("table", ["force", "place"], 300)
