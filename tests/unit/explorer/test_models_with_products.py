"""The page of a model with products: its linear layers, and a list of its product neurons."""

import numpy as np
import pytest

import ltinet
from ltinet.explorer.files import to_upload, upload_hash
from ltinet.explorer.requests import describe_upload, generate_script
from ltinet.explorer.state import ViewState
from ltinet.explorer.view_service import ViewService


def model():
    A, A_p = np.array([[0.0, 1.0, 0.0], [-4.0, -0.4, 0.0], [0.0, 1.0, -2.0]]), np.zeros((3, 3))
    A_p[1, 1] = -1.0
    return ltinet.LPV(A, [0, 1, 0], [0, 0, 1], A_p=[A_p], scheduling=["damper"], inputs=["force"], outputs=["tip"])


def opened(thing):
    file = to_upload(thing, "rig")
    service = ViewService()
    service.files[upload_hash(file)] = file
    return service, ViewState(system=f"file:{upload_hash(file)}")


@pytest.mark.parametrize("make", [model, lambda: ltinet.construct(model())], ids=["model", "network"])
def test_page_lists_products_beside_the_linear_part(make):
    service, state = opened(make())
    view, linear = service.view(state), model().linear
    assert view["products"]["count"] == 1
    assert view["products"]["kinds"] == "1 state × scheduling"
    assert view["products"]["listed"][0].startswith("(2 states) · damper →")
    assert "linear part" in view["notes"][0]
    expected = linear.frequency_response(view["bode"]["omega"])
    assert np.allclose(view["bode"]["system"], np.abs(expected[:, 0, 0]), rtol=1e-5)  # frequencies have seven digits
    assert view["facts"]["outputs"] == ["tip"]
    assert describe_upload(service, state)["n_states"] == 3


def test_script_of_the_page_runs(tmp_path, monkeypatch):
    service, state = opened(model())
    monkeypatch.chdir(tmp_path)
    ltinet.save_system(model(), "rig.npz")
    names = {}
    exec(generate_script(service, state), names)  # noqa: S102 - written by the library
    assert np.allclose(names["H"][:, 0, 0], model().linear.frequency_response(names["omega"])[:, 0, 0])


def test_linear_models_have_no_list():
    service, state = opened(model().linear)
    assert service.view(state)["products"] is None


def test_standalone_page_has_the_list(tmp_path):
    page = ltinet.explore(model(), page=tmp_path / "page.html").read_text(encoding="utf-8")
    assert "\\u00b7 damper" in page
