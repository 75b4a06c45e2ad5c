"""Responses of models in discrete time, and characteristics of their samples."""

import numpy as np
import pytest
from scipy import signal

import ltinet
from ltinet.errors import InvalidSignalError


def oscillating() -> ltinet.StateSpace:
    A = np.array([[1.6, -0.8, 0.0], [1.0, 0.0, 0.0], [0.0, 0.1, -0.5]])
    B, C = np.array([[1.0, 0.0], [0.0, 0.5], [0.0, 1.0]]), np.array([[0.1, 0.1, 0.0], [0.0, 0.0, 1.0]])
    return ltinet.StateSpace(A, B, C, [[0.0, 0.2], [0.0, 0.0]], dt=0.1)


def matrices(system: ltinet.StateSpace) -> tuple[np.ndarray, ...]:
    return system.A, system.B, system.C, system.D, system.dt


def test_step_response_equals_scipy_and_settles() -> None:
    system = oscillating()
    response = system.step_response()
    _, y = signal.dstep(matrices(system), n=len(response.t))
    assert response.y.shape == (2, len(response.t), 2)
    assert np.allclose(response.y, np.array(y), rtol=0, atol=1e-13)
    assert np.allclose(response.t, 0.1 * np.arange(len(response.t)))
    late = response.y[:, -len(response.t) // 20 :]
    final = system.dcgain().T[:, None]
    assert (np.abs(late - final) <= 0.02 * np.abs(final)).all()
    assert not response.notes
    net = ltinet.construct(system)
    assert np.allclose(net.step_response(len(response.t)).y, response.y, rtol=0, atol=1e-13)


def test_impulse_response_has_area_one() -> None:
    system = oscillating()
    _, y = signal.dimpulse(matrices(system), n=40)
    response = system.impulse_response(40)
    assert np.allclose(response.y * 0.1, np.array(y), rtol=0, atol=1e-13)
    assert np.allclose(response.y[:, 0] * 0.1, system.D.T)
    control = pytest.importorskip("control")
    other = control.impulse_response(control.ss(*matrices(system)), T=0.1 * np.arange(40))
    assert np.allclose(response.y, other.outputs.transpose(1, 2, 0), rtol=0, atol=1e-12)


def test_initial_response_of_a_batch() -> None:
    system, starts = oscillating(), np.random.default_rng(0).standard_normal((4, 3))
    response = system.initial_response(starts, 30, output="y2")
    assert response.y.shape == (4, 30, 1)
    for start, y in zip(starts, response.y, strict=True):
        x = start
        for value in y[:, 0]:
            assert abs(value - x[2]) <= 1e-13
            x = system.A @ x
    assert np.abs(system.initial_response(starts).y[:, -1]).max() < 1e-2


def test_responses_with_delays_of_samples() -> None:
    core = oscillating()
    model = core.with_signal_settings(input_delay=[0.2, 0.0], output_delay=[0.0, 0.3], u0=[5.0, 1.0], y0=[7.0, -1.0])
    for name in ("step_response", "impulse_response"):
        y, expected = getattr(model, name)(50).y, getattr(core, name)(50).y
        for j, d in enumerate((2, 0)):
            for i, e in enumerate((0, 3)):
                late = d + e
                assert np.allclose(y[j, late:, i], expected[j, : 50 - late, i], rtol=0, atol=1e-13)
                assert not y[j, :late, i].any()
    info = model.step_info()
    assert np.allclose(info.dead_time, [[0.2, 0.0], [0.5, 0.3]])
    assert np.allclose(info.settling_time, core.step_info().settling_time + info.dead_time)


def test_times_may_skip_samples() -> None:
    system = oscillating()
    y = system.step_response(31, input=0).y
    assert np.array_equal(system.step_response([0.0, 0.5, 3.0], input=0).y, y[[0, 5, 30]])
    with pytest.raises(InvalidSignalError, match="begin at 0"):
        system.step_response([0.1, 0.2])
    with pytest.raises(InvalidSignalError, match="multiples of the time step"):
        system.step_response([0.0, 0.15])


def test_step_info_equals_python_control() -> None:
    control = pytest.importorskip("control")
    system = oscillating()
    info = system.step_info()
    T = 0.1 * np.arange(400)
    others = control.step_info(control.ss(*matrices(system)), T=T)
    for i in range(2):
        for j in range(2):
            other = others[i][j]
            if not system.dcgain()[i, j]:
                continue
            assert info.final_value[i, j] == pytest.approx(other["SteadyStateValue"], rel=1e-9)
            assert info.rise_time[i, j] == pytest.approx(other["RiseTime"], abs=1e-9)
            assert info.settling_time[i, j] == pytest.approx(other["SettlingTime"], abs=1e-9)
            assert info.overshoot[i, j] == pytest.approx(other["Overshoot"], abs=1e-6)
            assert info.undershoot[i, j] == pytest.approx(other["Undershoot"], abs=1e-6)
            if np.isfinite(info.peak_time[i, j]):
                assert info.peak[i, j] == pytest.approx(other["Peak"], rel=1e-12)
                assert info.peak_time[i, j] == pytest.approx(other["PeakTime"], abs=1e-9)


def test_step_info_of_deadbeat_and_of_systems_that_never_settle() -> None:
    register = ltinet.StateSpace(np.diag(np.ones(3), 1), np.eye(4)[:, 3:], [[0.25] * 4], dt=1.0)
    info = register.step_info()
    values = info.rise_time, info.settling_time, info.overshoot, info.peak, info.peak_time
    assert [float(value[0, 0]) for value in values] == [3.0, 4.0, 0.0, 1.0, 4.0]
    rotation = ltinet.StateSpace([[0.0, 1.0], [-1.0, 0.0]], [[0.0], [1.0]], [[1.0, 0.0]], dt=1.0)
    assert np.isnan(rotation.step_info().settling_time).all()
    assert any("not damped" in note for note in rotation.step_response().notes)
    integrator = ltinet.StateSpace([[1.0, 0.1], [0.0, 1.0]], [[0.0], [1.0]], [[1.0, 0.0]], dt=0.1)
    assert np.isinf(integrator.step_info().peak).all()
    assert any("integrator" in note for note in integrator.step_response().notes)
    growing = ltinet.StateSpace([[1.1]], [[1.0]], [[1.0]], dt=1.0).step_response()
    assert any("grows without bound" in note for note in growing.notes)
    assert 1e2 < growing.y[0, -1, 0] < 1e6


def test_slow_poles_show_some_of_the_samples() -> None:
    system = ltinet.StateSpace(np.diag([1.0 - 1e-5, 0.5]), np.ones((2, 1)), [[1e-5, 1.0]], dt=1.0)
    response = system.step_response(input=0)
    assert len(response.t) <= 5000
    assert any("samples is shown" in note for note in response.notes)
    expected = 1.0 - (1.0 - 1e-5) ** response.t + 2.0 * (1.0 - 0.5**response.t)
    assert np.abs(response.y[:, 0] - expected).max() < 1e-9
    assert np.isfinite(response.error_bound(response.t)).all()
    settled = np.log(0.02 * 3.0) / np.log1p(-1e-5)
    assert system.step_info().settling_time[0, 0] == pytest.approx(settled, abs=1.5)


def test_bandwidth_is_that_of_the_frequency_response() -> None:
    system = ltinet.StateSpace([[0.8]], [[0.2]], [[1.0]], dt=0.1)
    omega = float(system.bandwidth()[0, 0])
    assert abs(system.frequency_response([omega])[0, 0, 0]) == pytest.approx(10.0 ** (-3.0 / 20.0), rel=1e-9)
    assert omega < np.pi / 0.1
