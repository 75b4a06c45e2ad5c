"""The page of a model with delays and an operating point: its curves are late, and what is set is told."""

import numpy as np
import pytest

import ltinet
from ltinet.explorer.files import Upload, to_upload, upload_hash
from ltinet.explorer.requests import generate_script
from ltinet.explorer.state import ViewState
from ltinet.explorer.view_service import ViewService

DIGITS = 6e-7  # curves have seven digits


@pytest.fixture
def model() -> ltinet.StateSpace:
    return ltinet.StateSpace(
        [[0.0, 1.0, 0.0], [-4.0, -0.8, 0.0], [0.0, 0.0, -1.0]],
        [[0.0, 1.0], [4.0, 0.0], [1.0, 1.0]],
        [[1.0, 0.0, 0.5], [0.0, 1.0, 1.0]],
        input_delay=[0.25, 0.0],
        output_delay=[0.0, 0.7],
        u0=[1.0, 2.0],
        y0=[300.0, 0.0],
        hold="zero",
        sample_time=0.1,
        inputs=["valve (V)", "pump"],
        outputs=["T (K)", "p (bar)"],
    )


def opened(thing: ltinet.StateSpace | Upload, name: str = "rig") -> tuple[ViewService, str]:
    file = thing if isinstance(thing, Upload) else to_upload(thing, name)
    service = ViewService()
    service.files[upload_hash(file)] = file
    return service, f"file:{upload_hash(file)}"


@pytest.mark.parametrize("output", [1, 2])
@pytest.mark.parametrize("kind", ["step", "impulse"])
def test_curves_over_time_are_the_delayed_responses(model: ltinet.StateSpace, kind: str, output: int) -> None:
    service, system = opened(model)
    view = service.view(ViewState(system=system, u=kind, output=output))
    t = np.array(view["response"]["t"])
    respond = model.step_response if kind == "step" else model.impulse_response
    y = respond(np.linspace(0.0, view["response"]["end"], 801), input=0, output=output - 1)
    expected = y(t)[:, 0]
    np.testing.assert_allclose(view["response"]["y"], expected, rtol=0.0, atol=1e-5 * np.abs(expected).max())
    assert "curves over time are deviations from the operating point" in view["notes"]
    assert np.isfinite(service.band(ViewState(system=system, u=kind, output=output))["largest"])


def test_shares_of_neurons_are_as_late_as_the_output(model: ltinet.StateSpace) -> None:
    service, system = opened(model)
    state = ViewState(system=system, output=2)
    net = service.cached_view(state).net
    total = 0.0
    for layer, own in enumerate(net.layers):
        for neuron in range(own.n_neurons):
            share = service.view(ViewState(system=system, output=2, pick=(layer, neuron)))["share"]
            total = total + np.interp(np.linspace(0.0, 5.0, 50), share["t"], share["share"])
    view = service.view(state)["response"]
    y = np.interp(np.linspace(0.0, 5.0, 50), view["t"], view["y"])
    np.testing.assert_allclose(total, y, atol=0.02 * np.abs(y).max())  # curves are thinned to what a screen shows


def test_phases_follow_the_delay(model: ltinet.StateSpace) -> None:
    service, system = opened(model)
    bode = service.view(ViewState(system=system, output=2))["bode"]
    omega = np.array(bode["omega"])
    core = model.with_signal_settings(input_delay=0, output_delay=0)
    phase = np.degrees(np.unwrap(np.angle(core.frequency_response(omega)[:, 1, 0]))) - np.degrees(0.95 * omega)
    np.testing.assert_allclose(bode["system_phase"], phase, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(bode["network_phase"], phase, rtol=1e-5, atol=1e-3)


def test_what_is_set_is_told(model: ltinet.StateSpace) -> None:
    service, system = opened(model)
    facts = service.view(ViewState(system=system))["facts"]
    assert facts["details"] == {
        "input delay": "0.25, 0",
        "output delay": "0, 0.7",
        "u0": "1, 2",
        "y0": "300, 0",
        "hold": "zero",
        "sample time": "0.1",
    }
    assert (facts["inputs"], facts["outputs"]) == (["valve (V)", "pump"], ["T (K)", "p (bar)"])


@pytest.fixture
def table() -> Upload:
    """A record whose input comes late by six samples and whose output stands around 292.8."""
    rng = np.random.default_rng(0)
    t = 0.1 * np.arange(600)
    u = rng.choice([-1.0, 1.0], 600)
    plant = ltinet.StateSpace([[0.0, 1.0], [-4.0, -0.8]], [[0.0], [4.0]], [[1.0, 0.0]], input_delay=0.6, y0=292.8)
    y = plant.simulate(u, t, hold="zero").y[:, 0] + 0.01 * rng.standard_normal(600)
    rows = "".join(f"{a!r},{b!r},{c!r}\n" for a, b, c in zip(t.tolist(), u.tolist(), y.tolist(), strict=True))
    return Upload("rig.csv", f"time (s),valve (V),T (K)\n{rows}".encode())


def test_an_identified_table_is_shown_with_its_delay_offset_and_names(table: Upload) -> None:
    service, system = opened(table)
    view = service.view(ViewState(system=system, drive=(1,), answer=(2,)))
    told = view["facts"]["details"]
    assert told["input delay"] == "0.6"
    assert told["y0"].startswith("292.8")
    assert (told["hold"], told["sample time"]) == ("zero", "0.1")
    assert (view["facts"]["inputs"], view["facts"]["outputs"]) == (["valve (V)"], ["T (K)"])
    late = np.array(view["response"]["t"]) < 0.6
    assert late.sum() >= 1
    assert not np.any(np.array(view["response"]["y"])[late])


@pytest.mark.parametrize("kind", ["step", "impulse", "chirp", "table"])
def test_the_script_of_a_view_gives_its_numbers(
    model: ltinet.StateSpace, table: Upload, kind: str, tmp_path, monkeypatch
) -> None:
    file = table if kind == "table" else to_upload(model, "rig")
    service, system = opened(file)
    own = {"drive": (1,), "answer": (2,), "u": system} if kind == "table" else {"u": kind, "output": 2}
    state = ViewState(system=system, **own)
    (tmp_path / file.name).write_bytes(file.content)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile(generate_script(service, state), "view.py", "exec"), names)  # noqa: S102
    _, solution = service.run(state)
    assert np.array_equal(names["solution"].y, solution.y)
