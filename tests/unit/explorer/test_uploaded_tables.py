"""Hypothesis: a dropped table is read with options of the page, and its inputs and outputs are guessed."""

import json
import re

import numpy as np
import pytest

import ltinet
from ltinet.explorer.files import Upload, upload_hash
from ltinet.explorer.page import asset_text
from ltinet.explorer.requests import answer_request
from ltinet.explorer.uploaded_tables import OPTION_LABELS, guess_roles, page_messages
from ltinet.explorer.view_service import ViewService
from ltinet.tables.options import TableOptions


def service_with(file: Upload) -> tuple[ViewService, str]:
    service = ViewService()
    service.files[upload_hash(file)] = file
    return service, f"file:{upload_hash(file)}"


PLANT = ltinet.StateSpace(
    [[0.0, 1.0, 0.0], [-4.0, -0.8, 0.0], [0.0, 0.0, -0.5]],
    [[0.0, 0.0], [4.0, 0.0], [0.5, 0.5]],
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
)


def record(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    u = rng.choice([-1.0, 1.0], (800, 2))
    y = PLANT.simulate(u, 0.1 * np.arange(800), hold="zero").y
    return u, y + 0.02 * y.std(axis=0) * rng.standard_normal(y.shape)


@pytest.mark.parametrize("seed", range(10))
def test_columns_without_telling_names_get_roles_from_their_past(seed: int) -> None:
    rng = np.random.default_rng([100, seed])
    values = np.column_stack([*record(seed), rng.standard_normal(800), np.full(800, 5.0)])
    order = rng.permutation(6)
    expected = np.array(["drive", "drive", "answer", "answer", "", ""])[order].tolist()
    assert guess_roles([f"ch{k}" for k in range(6)], values[:, order]) == expected


def test_names_come_before_correlation() -> None:
    values = np.random.default_rng(1).standard_normal((50, 6))
    names = ["u1", "y", "valve (%)", "Temperatur [K]", "Force", "position (mm)"]
    assert guess_roles(names, values) == ["drive", "answer", "drive", "answer", "drive", "answer"]


def test_gaps_and_short_tables_have_roles() -> None:
    u, y = record(3)
    values = np.column_stack([u[:, 0], y[:, 0]])
    values[100:120, 1] = np.nan
    assert guess_roles(["a", "b"], values) == ["drive", "answer"]
    assert guess_roles(["a", "b"], values[:3]) == ["drive", "answer"]
    assert guess_roles(["a"], values[:, :1]) == ["drive"]


def german_table() -> bytes:
    rows = (f"01.03.2026 08:00:{k:02d};{k % 5},5;{300 + k % 7},25;ok" for k in range(60))
    return "\n".join(["Zeit;Ventil;Temperatur (K);Notiz", *rows, ""]).encode()


def test_messages_name_the_options_of_the_page() -> None:
    service, name = service_with(Upload("rig.csv", german_table().replace(b";ok", b";1")))
    error = json.loads(answer_request(service, "open", {"system": name}).content)["error"]
    assert "Dates: day first" in error
    assert "day_first" not in error
    options = "day_first=true"
    service, name = service_with(Upload("rig.csv", german_table(), options))
    error = json.loads(answer_request(service, "open", {"system": name}).content)["error"]
    assert "'Notiz'" in error
    service, name = service_with(Upload("rig.csv", german_table(), f"{options}&columns=Ventil,Temperatur"))
    told = json.loads(answer_request(service, "open", {"system": name}).content)
    assert told["columns"] == ["Ventil", "Temperatur (K)"]
    assert told["roles"] == ["drive", "answer"]


def test_every_option_of_tables_but_gaps_is_one_of_the_page() -> None:
    from dataclasses import fields

    assert {field.name for field in fields(TableOptions)} - {"gaps"} <= set(OPTION_LABELS)
    page = asset_text("index.html")
    for key, label in OPTION_LABELS.items():
        assert re.search(rf'<label>{label} <\w+ data-option="{key}"', page), key
    assert page_messages('give decimal="," or columns=[1, 3] or header=False with time="1"') == (
        "give Decimal mark: , or Columns: 1,3 or Header: no with Time column: 1"
    )


@pytest.mark.parametrize("options", ["nonsense=1", "dt=fast", "day_first=maybe", "gaps=split", "resample=-1"])
def test_options_are_validated(options: str) -> None:
    service, name = service_with(Upload("rig.csv", b"t,u,y\n0,1,2\n1,2,3\n", options))
    response = answer_request(service, "open", {"system": name})
    assert response.status == 400
    assert (
        options.partition("=")[0] in json.loads(response.content)["error"] or "Time step" in response.content.decode()
    )


def test_gaps_in_unused_columns_do_not_matter() -> None:
    u, y = record(4)
    t = 0.1 * np.arange(800)
    rows = "".join(
        f"{a!r},{b!r},{c!r},{'' if k % 2 else 1}\n"
        for k, (a, b, c) in enumerate(zip(t.tolist(), u[:, 0].tolist(), y[:, 0].tolist(), strict=True))
    )
    service, name = service_with(Upload("rig.csv", f"t,a,b,flow\n{rows}".encode()))
    told = json.loads(answer_request(service, "open", {"system": name}).content)
    assert told["roles"][:2] == ["drive", "answer"]
    view = json.loads(answer_request(service, "view", {"system": name, "drive": "1", "answer": "2"}).content)
    assert view["facts"]["inputs"] == ["a"]
    driven = {"system": "example:masses", "u": name, "drive": "3"}
    assert "missing" in json.loads(answer_request(service, "view", driven).content)["error"]


def test_uneven_tables_are_resampled_by_an_option_and_the_script_says_so() -> None:
    rng = np.random.default_rng(6)
    t = 0.1 * np.arange(400) + rng.uniform(-0.01, 0.01, 400)
    u = np.sin(np.cumsum(rng.uniform(0.0, 0.4, 400)))
    y = PLANT.simulate(np.column_stack([u, 0 * u]), t).y[:, 0]
    rows = "".join(f"{a!r},{b!r},{c!r}\n" for a, b, c in zip(t.tolist(), u.tolist(), y.tolist(), strict=True))
    content = f"t,u,y\n{rows}".encode()
    query = {"drive": "1", "answer": "2"}
    service, name = service_with(Upload("rig.csv", content))
    error = json.loads(answer_request(service, "view", {"system": name, **query}).content)["error"]
    assert "Resample to step: 0.1" in error
    service, name = service_with(Upload("rig.csv", content, "resample=0.1"))
    view = answer_request(service, "view", {"system": name, **query})
    assert view.status == 200
    script = answer_request(service, "script", {"system": name, **query}).content.decode()
    assert "resample=0.1" in script
    compile(script, "view.py", "exec")
