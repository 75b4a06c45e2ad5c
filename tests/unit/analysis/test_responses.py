"""Hypothesis: responses are what a simulation of the same input gives, at times that show them until they settle."""

import numpy as np
import pytest
from scipy import linalg

import ltinet
from ball_oracle import respond
from ltinet import InvalidSignalError, StateSpace, construct
from small_systems import SMALL_SYSTEMS


def drawn(A, seed, m=2, p=3):
    rng = np.random.default_rng(seed)
    n = len(A)
    return StateSpace(A, rng.standard_normal((n, m)), rng.standard_normal((p, n)), rng.standard_normal((p, m)))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("name", SMALL_SYSTEMS)
def test_responses_of_every_kind_of_spectrum_lie_within_their_bounds(name):
    system = drawn(SMALL_SYSTEMS[name], 1)
    n, t = system.n_states, np.arange(9) * 2.0**-4
    start = np.random.default_rng(2).standard_normal(n)
    u = np.zeros((5, 9, 2))
    u[:2] = np.eye(2)[:, None, :]
    x0 = np.concatenate([np.zeros((2, n)), system.B.T, start[None]])
    truth = respond(system.A, system.B, system.C, system.D, u=u, t=t, x0=x0, hold="zero").y
    for own in (system, construct(system)):
        runs = own.step_response(t), own.impulse_response(t), own.initial_response(start, t)
        y = np.concatenate([runs[0].y, runs[1].y, runs[2].y[None]])
        bounds = np.concatenate([runs[0].error_bound(), runs[1].error_bound(), runs[2].error_bound()[None]])
        assert np.all(truth.distance(y) <= bounds[:, None, :])
        assert np.all(truth.distance(y) <= 1e-9 * np.abs(truth.mid).max(axis=1, keepdims=True))


@pytest.mark.default_cases(11)
@pytest.mark.parametrize("name", SMALL_SYSTEMS)
def test_chosen_times_fit_every_kind_of_spectrum(name):
    system = drawn(SMALL_SYSTEMS[name], 1)
    poles, sol = system.poles(), system.step_response()
    assert 200 < len(sol.t) <= 5000
    assert sol.t[0] == 0.0
    assert np.all(np.isfinite(sol.y))
    gain = system.dcgain()
    if np.all(poles.real < -1e-12 * np.abs(poles).max()) and np.isfinite(gain).all():
        late = sol.y[:, sol.t >= 0.95 * sol.t[-1]]
        assert np.all(np.abs(late - gain.T[:, None]) <= 0.02 * np.maximum(np.abs(gain.T), 1e-9)[:, None])
        assert all("times do not follow" in note for note in sol.notes)
    else:
        assert any(word in sol.notes[0] for word in ("grows", "not damped", "integrator"))
        assert f"{sol.t[-1]:g}" in sol.notes[0]


def test_axes_are_kept_and_pairs_chosen():
    system = drawn(SMALL_SYSTEMS["six pairs"], 3)
    t = np.linspace(0.0, 1.0, 11)
    whole = system.step_response(t)
    assert whole.y.shape == (2, 11, 3)
    for kind in ("step_response", "impulse_response"):
        every = getattr(system, kind)(t)
        pair = getattr(system, kind)(t, input=1, output=2)
        assert pair.y.shape == (11, 1)
        np.testing.assert_allclose(pair.y[:, 0], every.y[1, :, 2], rtol=0.0, atol=1e-13)  # of order one
        assert pair.error_bound().shape == (1,)
        assert pair([0.25]).shape == (1, 1)
        assert set(pair.error_parts([0.5])) == set(every.error_parts([0.5]))
        assert pair.states.shape == (11, 12)
        assert pair.neuron_states.shape == (11, 12)
    assert system.initial_response(np.ones((4, 12)), t).y.shape == (4, 11, 3)
    assert system.initial_response(np.ones(12), output=0).y.shape[1] == 1
    single = StateSpace(-1.0, 1.0, 1.0)
    assert single.step_response(t).y.shape == (1, 11, 1)  # nothing is squeezed


def test_a_step_response_is_that_of_the_simulation():
    system = drawn(SMALL_SYSTEMS["six pairs"], 3)
    net, t = construct(system), np.linspace(0.0, 3.0, 61)
    u = np.zeros((61, 2))
    u[:, 1] = 1.0
    y = net.simulate(u, t, hold="zero").y
    np.testing.assert_allclose(net.step_response(t, input=1).y, y, rtol=0.0, atol=1e-12 * np.abs(y).max())


def test_slow_and_fast_modes_are_both_visible():
    system = StateSpace(np.diag([-1e6, -1e-3]), [1e6, 1e-3], [1.0, 1.0])
    sol = system.step_response(input=0)
    assert sol.t[-1] > 4e3
    assert sol.t[1] < 1e-6
    assert np.interp(1.0, sol.t, sol.y[:, 0]) == pytest.approx(1.001, abs=1e-3)
    hidden = StateSpace(np.diag([-1e6, -1e-3]), [0.0, 1e-3], [1.0, 1.0]).step_response(input=0)
    assert np.ptp(np.diff(hidden.t)) <= 1e-9 * hidden.t[-1]  # what nobody sees needs no times


@pytest.mark.default_cases(5)
@pytest.mark.parametrize("seed", range(20))
def test_integrators_that_rounding_moved_are_no_slow_poles(seed):
    """In other coordinates an integrator is a pole of ±1e-15, a chain of them a circle of √eps around zero."""
    rng = np.random.default_rng(seed)
    rates = rng.uniform(0.5, 2.0, 4)
    A = linalg.block_diag(np.eye(int(rng.integers(1, 4)), k=1), -np.diag(rates))
    Q, _ = np.linalg.qr(rng.standard_normal(A.shape))
    B, C = rng.standard_normal((len(A), 1)), rng.standard_normal((2, len(A)))
    plain, turned = StateSpace(A, B, C), StateSpace(Q @ A @ Q.T, Q @ B, C @ Q.T)
    x0 = rng.standard_normal(len(A))
    for own, other in (
        (plain.step_response(), turned.step_response()),
        (plain.impulse_response(), turned.impulse_response()),
        (plain.initial_response(x0), turned.initial_response(Q @ x0)),
    ):
        assert other.t[-1] <= 2.0 * own.t[-1] <= 4.0 * other.t[-1]  # what is strong in a block nobody knows exactly
        assert "integrator" in other.notes[0]
        assert "grows" not in other.notes[0]


def test_diffusion_without_losses_is_shown_until_it_is_even():
    system = ltinet.named_system("diffusion", points=6)
    sol = system.step_response(input=0, output=0)
    assert sol.t[-1] < 50.0 / np.sort(np.abs(system.poles()))[1]
    assert "it never settles" in sol.notes[0]


def test_hidden_integrators_and_slow_poles_are_none():
    rng = np.random.default_rng(5)
    Q, _ = np.linalg.qr(rng.standard_normal((4, 4)))
    hidden = StateSpace(Q @ np.diag([0.0, -1.0, -2.0, -3.0]) @ Q.T, Q @ [0.0, 1.0, 1.0, 1.0], Q @ [1.0, 1.0, 1.0, 1.0])
    assert hidden.step_response().t[-1] < 20.0
    assert hidden.step_response().notes == ()
    slow = StateSpace(np.diag([-1e-7, -1e7]), [1e-7, 1e7], [1.0, 1.0]).step_response()
    assert slow.t[-1] > 1e7
    assert slow.notes == ()


@pytest.mark.slow
def test_many_curves_take_fewer_times():
    system = StateSpace([[-1.0, 250.0], [-250.0, -1.0]], np.ones((2, 80)), np.ones((80, 2)))
    assert system.step_response(input=0, output=0).t.size > 3125
    sol, gain = system.step_response(), system.dcgain()
    assert 201 <= sol.t.size <= 3125  # 20 million numbers
    assert np.all(np.abs(sol.y[:, -1] - gain.T) <= 0.02 * np.abs(gain.T))


def test_the_impulse_of_a_feedthrough_is_told():
    assert "D δ(t)" in StateSpace(-1.0, 1.0, 1.0, 2.0).impulse_response().notes[0]
    assert StateSpace(-1.0, 1.0, 1.0).impulse_response().notes == ()
    two = StateSpace(-1.0, [[1.0, 1.0]], 1.0, [[0.0, 1.0]])
    assert two.impulse_response(input=0).notes == ()
    assert two.impulse_response(input=1).notes != ()


def test_descriptor_systems_start_from_where_their_impulse_leads():
    system = StateSpace([[-2.0]], [[3.0]], [[1.0]], E=[[4.0]])
    sol = system.impulse_response(np.linspace(0.0, 2.0, 5))
    np.testing.assert_allclose(sol.y[0, :, 0], 0.75 * np.exp(-0.5 * sol.t), rtol=1e-14)


def test_static_gains_networks_of_parameters_and_no_inputs():
    gain = StateSpace(np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), 3.0)
    assert np.all(gain.step_response().y == 3.0)
    assert np.all(gain.impulse_response().y == 0.0)
    bare = ltinet.DynamicNetwork.from_parameters(construct(StateSpace(-1.0, 1.0, 1.0)).parameters)
    sol = bare.step_response(input=0)
    np.testing.assert_allclose(sol.y[:, 0], -np.expm1(-sol.t), atol=1e-14)
    assert StateSpace(-1.0, np.zeros((1, 0)), 1.0).step_response().y.shape[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"input": 2}, r"input must be between 0 and 1 or a name, got 2"),
        ({"output": -1}, r"output must be between 0 and 2 or a name, got -1"),
        ({"input": True}, r"input must be .* got True"),
        ({"input": "u"}, r"no input 'u'; did you mean 'u2' or 'u1'"),
        ({"t": [1.0, 2.0]}, r"t must begin at 0, .* got 1"),
    ],
)
def test_bad_arguments_are_told(arguments, message):
    with pytest.raises(InvalidSignalError, match=message):
        drawn(SMALL_SYSTEMS["real"], 0).step_response(**arguments)


def test_times_of_coupled_blocks_with_many_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    A = np.diag([-1.0, -1.0, -3.0]) + np.diag([1.0, 0.0], k=1)  # a Jordan block, which does not decouple
    system = ltinet.StateSpace(A, np.eye(3), np.eye(3))
    expected = system.step_response()
    monkeypatch.setattr("ltinet.analysis.response_times._MAX_AMPLITUDES", 0)  # as with 400 inputs and outputs
    response = system.step_response()
    assert response.t[-1] >= 0.5 * expected.t[-1]
    np.testing.assert_allclose(response.y[:, -1].T, system.dcgain(), atol=0.02)
