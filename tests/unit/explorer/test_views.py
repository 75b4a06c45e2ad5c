"""Hypothesis: what a view holds are the numbers of the library, at every budget."""

import json

import numpy as np
import pytest

import ltinet
from ltinet.explorer.files import to_upload, upload_hash
from ltinet.explorer.requests import answer_request
from ltinet.explorer.state import ViewState
from ltinet.explorer.subject import EXAMPLES, example_system, plot_frequencies
from ltinet.explorer.view_service import ViewService

DIGITS = 6e-7  # curves have seven digits
QUICK = [name for name in EXAMPLES if name not in ("blobs", "plate")]


def ten_budgets(rungs: ltinet.TradeoffCurve) -> list[float]:
    """Spread over all rungs, some of them just below the next."""
    places = np.linspace(0, len(rungs) - 1, 5).round().astype(int)
    below = [np.nextafter(rungs[min(place + 1, len(rungs) - 1)].condition, 0.0) for place in places]
    return [rungs[place].condition for place in places] + [max(budget, 1.0) for budget in below]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("name", QUICK)
def test_views_have_the_numbers_of_the_library(name: str) -> None:
    service, system = ViewService(), example_system(name)
    rungs = ltinet.condition_tradeoff(system)
    for budget in ten_budgets(rungs):
        view = service.view(ViewState(system=f"example:{name}", k=float(budget)))
        net = rungs.within(float(budget)).network
        facts = view["facts"]
        assert facts["condition"] == net.form.condition
        assert facts["n_connections"] == net.n_connections
        assert (facts["n_layers"], facts["n_weights"]) == (net.n_layers, net.n_weights)
        assert view["after"]["count"] == np.count_nonzero(net.form.A)
        assert view["before"]["count"] == np.count_nonzero(system.A)
        np.testing.assert_allclose(view["poles"]["real"], net.poles().real, rtol=DIGITS)
        assert len(view["trade"]["budgets"]) == len(rungs)
        _check_response(view, net)
        _check_bode(view, system, net)


def _check_response(view: dict, net: ltinet.DynamicNetwork) -> None:
    t = np.linspace(0.0, view["response"]["end"], 801)
    u = np.zeros((801, net.n_inputs))
    u[:, 0] = 1.0
    y = net.simulate(u, t, hold="zero").y[:, 0]
    np.testing.assert_allclose(view["response"]["y"], y, rtol=DIGITS, atol=1e-12 * np.abs(y).max())
    assert view["response"]["largest"] == pytest.approx(np.abs(y).max(), rel=1e-12)


def _check_bode(view: dict, system: ltinet.StateSpace, net: ltinet.DynamicNetwork) -> None:
    omega = plot_frequencies(system)
    H, G = net.frequency_response(omega)[:, 0, 0], system.frequency_response(omega)[:, 0, 0]
    np.testing.assert_allclose(view["bode"]["omega"], omega, rtol=DIGITS)
    np.testing.assert_allclose(view["bode"]["network"], np.abs(H), rtol=DIGITS)
    np.testing.assert_allclose(view["bode"]["system"], np.abs(G), rtol=DIGITS)
    np.testing.assert_allclose(view["bode"]["difference"], np.abs(G - H), rtol=DIGITS)


def test_a_network_that_was_saved_is_explored_as_its_system() -> None:
    net = ltinet.construct(ltinet.named_system("triangular"), max_condition=100.0)
    file = to_upload(net, "mine")
    service = ViewService()
    service.files[upload_hash(file)] = file
    view = service.view(ViewState(system=f"file:{upload_hash(file)}", k=100.0))
    assert view["facts"]["n_connections"] == ltinet.condition_tradeoff(net.system).within(100.0).network.n_connections
    assert "network of" in view["notes"][0]


def test_a_reduction_says_what_it_left_out_and_bounds_count_it() -> None:
    service, state = ViewService(), ViewState(system="example:penzl", order=4)
    view, found = service.view(state), ltinet.reduce(example_system("penzl"), order=4)
    assert view["reduction"]["error_bound"] == found.error_bound
    assert view["facts"]["n_states"] == 4
    assert service.band(state)["parts"]["reduction"] > 0.0


@pytest.mark.parametrize("u", ["step", "impulse", "chirp"])
def test_bands_hold_what_the_library_certifies(u: str) -> None:
    service, state = ViewService(), ViewState(system="example:masses", u=u)
    run, solution = service.run(state)
    band = service.band(state)
    np.testing.assert_allclose(band["bound"], solution.error_bound(run.t)[:, 0], rtol=DIGITS)
    assert band["largest"] == pytest.approx(solution.error_bound()[0])


def test_an_impulse_is_the_impulse_response() -> None:
    service, state = ViewService(), ViewState(system="example:masses", u="impulse")
    run, solution = service.run(state)
    expected = example_system("masses").impulse_response(run.t, input=0, output=0).y[:, 0]
    np.testing.assert_allclose(solution.y[:, 0], expected, atol=1e-9 * np.abs(expected).max())


def test_engines_are_compared_on_the_same_run() -> None:
    service = ViewService()
    file = to_upload(ltinet.StateSpace([[-1.0, 2.0], [-2.0, -1.0]], [[1.0], [0.0]], [[1.0, 1.0]]), "small")
    service.files[upload_hash(file)] = file
    rows = service.engines(ViewState(system=f"file:{upload_hash(file)}"))["engines"]
    assert [row["name"] for row in rows] == ["exact", "per_neuron", "per_interval"]
    exact = rows[0]
    assert exact["evaluations"] is None
    assert exact["error"] == 0.0
    for row in rows[1:]:
        assert row["evaluations"] > 0
        assert row["error"] <= row["bound"] + exact["bound"]


def test_memory_of_what_was_seen_is_limited() -> None:
    service = ViewService()
    for order in (None, 6, 7, 8, 9):
        for budget in np.geomspace(1.0, 1e8, 20):
            service.run(ViewState(k=float(budget), order=order))
    assert len(service._subjects) <= 3
    assert len(service._views) <= 8
    assert len(service._runs) <= 8


@pytest.mark.parametrize(
    "query",
    [{"input": "99"}, {"output": "99"}, {"u": "file:" + "0" * 64}, {"system": "example:no_such"}],
)
def test_what_cannot_be_shown_is_a_sentence(query: dict[str, str]) -> None:
    answer = answer_request(ViewService(), "view", query)
    assert answer.status == 400
    assert len(json.loads(answer.content)["error"].split()) > 4


def test_a_neuron_that_another_budget_has_not_is_told_and_the_rest_shown() -> None:
    service = ViewService()
    view = service.view(ViewState(k=1.0, pick=(0, 9)))
    assert view["share"]["pick"] == "0.9"
    view = service.view(ViewState(k=1e8, pick=(0, 9)))
    assert view["share"] is None
    assert "no neuron 0.9" in view["notes"][0]


def test_views_pass_as_json_without_nan() -> None:
    growing = ltinet.StateSpace(np.array([[1.0]]), np.array([[1.0]]), np.array([[1.0]]))
    file = to_upload(growing, "growing")
    service = ViewService()
    service.files[upload_hash(file)] = file
    for system in ("example:masses", f"file:{upload_hash(file)}"):
        for kind in ("view", "band"):
            json.loads(answer_request(service, kind, {"system": system}).content, parse_constant=pytest.fail)
