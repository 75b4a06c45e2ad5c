"""Delays, operating point and hold from the data to every way out: kept, or refused with a remedy."""

import numpy as np
import pytest

import ltinet
from ltinet.errors import InvalidSystemError

DT, COUNT = 0.1, 1200


@pytest.fixture(scope="module")
def record():
    """An oscillator whose input comes late by six samples and whose output stands around 292.8."""
    rng = np.random.default_rng(0)
    plant = ltinet.construct(([[0.0, 1.0], [-4.0, -0.8]], [[0.0], [4.0]], [[1.0, 0.0]]))
    u = rng.choice([-1.0, 1.0], COUNT)
    late = np.concatenate([np.zeros(6), u[:-6]])
    y = plant.simulate(late, DT * np.arange(COUNT), hold="zero").y[:, 0]
    return u, y + 0.01 * rng.standard_normal(COUNT) + 292.8


@pytest.fixture(scope="module")
def found(record):
    u, y = record
    return ltinet.identify(u[:800], y[:800], dt=DT, order=2)


@pytest.fixture
def model():
    return ltinet.StateSpace(
        [[0.0, 1.0], [-4.0, -0.8]], [[0.0], [4.0]], [[1.0, 0.0]], input_delay=0.25, y0=3.0, hold="zero"
    )


def test_what_identify_finds_is_in_the_network_and_its_file(record, found, tmp_path):
    u, y = record
    t = DT * np.arange(COUNT)
    found.net.save(tmp_path / "net.safetensors")
    ways = [found.simulate(u), found.net.simulate(u, t).y, ltinet.load(tmp_path / "net.safetensors").simulate(u, t).y]
    fits = [100.0 * (1.0 - np.linalg.norm(own[800:, 0] - y[800:]) / np.std(y[800:]) / np.sqrt(400)) for own in ways]
    assert fits[0] > 97.0
    assert max(fits) - min(fits) <= 1e-9
    assert found.net.input_delay == pytest.approx([0.6])
    assert found.net.y0 == pytest.approx([292.8], abs=0.1)
    assert (found.net.hold, found.net.sample_time) == ("zero", DT)


def test_print_shows_what_was_found(found):
    assert "292.8" in str(found)
    assert "292.8" in str(found.net)


def test_slopes_are_left_out_with_a_note(record):
    u, y = record
    drifting = ltinet.identify(u, y + 1e-3 * np.arange(COUNT), dt=DT, order=2, trend="linear", delay=6)
    for text in (str(drifting), str(drifting.net)):
        assert "slopes are not part of the model" in text


def test_the_model_at_samples_carries_them(found):
    assert found.discrete.input_delay == pytest.approx([0.6])
    assert found.discrete.y0.tolist() == found.net.y0.tolist()


def test_reduce_and_construct_carry_them(model):
    settings = model.signal_settings
    assert ltinet.reduce(model, order=2).net.signal_settings == settings
    assert ltinet.reduce(ltinet.construct(model), order=2, method="neurons").net.signal_settings == settings
    assert ltinet.construct(model, tolerance=1e-6).signal_settings == settings
    assert ltinet.eliminate_algebraic(model).signal_settings == settings
    assert all(rung.network.signal_settings == settings for rung in ltinet.condition_tradeoff(model))


@pytest.mark.parametrize("method", ["modes", "krylov"])
def test_mechanical_models_carry_them(method):
    M, K = np.diag([1.0, 2.0] * 4), 4.0 * (2.0 * np.eye(8) - np.eye(8, k=1) - np.eye(8, k=-1))
    set_beside = {"input_delay": 0.25, "output_delay": 0.1, "u0": 1.0, "y0": 3.0, "hold": "zero", "sample_time": 0.1}
    B, C = np.eye(8)[0], np.eye(8)[2]
    plain = ltinet.SecondOrder(M, 0.1 * K, K, B, C)
    mechanical = ltinet.SecondOrder(M, 0.1 * K, K, B, C, **set_beside)
    assert mechanical != plain
    assert mechanical == plain.with_signal_settings(**set_beside)
    assert "input_delay=[0.25]" in repr(mechanical)
    small = ltinet.reduce(mechanical, order=4, method=method)
    for carried in (mechanical.to_state_space(), ltinet.construct(mechanical), small.net, small.second_order,
                    ltinet.construct(mechanical, tolerance=1e-3)):  # fmt: skip
        assert carried.signal_settings == mechanical.signal_settings
    omega = np.array([0.3, 2.0])
    H = plain.frequency_response(omega) * np.exp(-0.35j * omega)[:, None, None]
    assert np.allclose(mechanical.frequency_response(omega), H, rtol=1e-13)
    t, u = 0.1 * np.arange(50), np.random.default_rng(0).standard_normal(50)
    y = mechanical.simulate(u, t).y
    assert np.allclose(ltinet.construct(mechanical).simulate(u, t).y, y, rtol=0.0, atol=1e-12)
    assert np.abs(small.net.simulate(u, t).y - y).max() < 0.5 * np.ptp(y)


def test_discrete_time_keeps_whole_delays_and_refuses_others(model):
    discrete = model.to_discrete(0.125)
    assert discrete.input_delay.tolist() == [0.25]
    assert discrete.to_continuous().signal_settings == model.signal_settings
    with pytest.raises(InvalidSystemError, match="multiples of the time step"):
        model.to_discrete(0.1)


@pytest.mark.parametrize("call", ["to_scipy", "to_control"])
def test_other_libraries_need_a_remedy(model, call):
    if call == "to_control":
        pytest.importorskip("control")
    net = ltinet.construct(model)
    with pytest.raises(InvalidSystemError, match="operating point"):
        getattr(net, call)()
    centred = net.with_signal_settings(y0=0)
    with pytest.raises(InvalidSystemError, match=r"pade=4"):
        getattr(centred, call)()
    other = getattr(centred, call)(pade=4)
    omega = np.array([0.1, 1.0, 2.0])
    pairs = [np.linalg.solve(1j * own * np.eye(len(other.A)) - other.A, other.B) for own in omega]
    H = np.array([other.C @ own + other.D for own in pairs])
    assert np.allclose(H, centred.frequency_response(omega), rtol=0.0, atol=1e-7)


def test_pade_of_several_inputs_and_outputs():
    system = ltinet.StateSpace(
        [[-1.0]],
        [[1.0, 2.0]],
        [[1.0], [0.5]],
        [[0.0, 1.0], [0.0, 0.0]],
        input_delay=[0.3, 0.0],
        output_delay=[0.0, 0.2],
    )
    net = ltinet.construct(system)
    other = net.to_scipy(pade=5)
    H = other.C @ np.linalg.solve(1.5j * np.eye(len(other.A)) - other.A, other.B) + other.D
    assert np.allclose(H, net.frequency_response([1.5])[0], rtol=0.0, atol=1e-10)
    with pytest.raises(InvalidSystemError, match="between 1 and 20"):
        net.to_scipy(pade=0)
