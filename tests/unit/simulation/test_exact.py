"""Hypothesis: the exact engine agrees with lsim, keeps all axes, and refuses invalid arguments."""

import pickle

import numpy as np
import pytest
from scipy import signal

import ltinet
from ltinet import FunctionSignal, SampledSignal
from ltinet.signals.times import TimeAxis
from ltinet.simulation import nonuniform
from network_examples import pattern_block, random_network


def _system(m=2, p=2, n_real=3, n_pairs=2, seed=0):
    rng = np.random.default_rng(seed)
    A = pattern_block(n_real, n_pairs, seed)
    n = len(A)
    S = np.eye(n) + 0.2 * rng.standard_normal((n, n))
    A = np.linalg.solve(S, A @ S)
    return A, rng.standard_normal((n, m)), rng.standard_normal((p, n)), rng.standard_normal((p, m))


SYSTEM = _system()
X0 = np.linspace(-1.0, 1.0, 7)
LAYERS = [None, 1]


@pytest.fixture(scope="module", params=LAYERS)
def net(request):
    return ltinet.construct(SYSTEM, n_layers=request.param)


def _u(t, m=2, seed=0):
    return np.random.default_rng(seed).standard_normal((len(t), m))


@pytest.mark.parametrize("hold", ["linear", "zero"])
def test_outputs_and_states_of_lsim(net, hold):
    t = np.linspace(0.0, 4.0, 81)
    u = 1.0 + _u(t)  # u(0) ≠ 0
    _, y, x = signal.lsim(SYSTEM, u, t, X0=X0, interp=hold == "linear")
    sol = net.simulate(u, t, x0=X0, hold=hold)
    np.testing.assert_allclose(sol.y, y, atol=1e-11)
    np.testing.assert_allclose(sol.states, x, atol=1e-11)
    assert sol.neuron_states.shape == x.shape
    np.testing.assert_allclose(sol.states[0], X0, atol=1e-12)
    assert sol.stats["grid"] == "uniform"


@pytest.mark.parametrize("hold", ["linear", "zero"])
def test_dense_output_is_the_solution_with_more_samples(net, hold):
    t = np.linspace(0.0, 2.0, 9)
    fine = np.linspace(0.0, 2.0, 81)
    u = SampledSignal(t, _u(t), hold=hold)
    sol = net.simulate(u, t, x0=X0)
    more = net.simulate(u.value(fine), fine, x0=X0, hold=hold)
    np.testing.assert_allclose(sol(fine), more.y, atol=1e-11)
    np.testing.assert_allclose(sol(t), sol.y, atol=1e-12)
    np.testing.assert_allclose(sol(fine[7]), more.y[7], atol=1e-11)
    np.testing.assert_allclose(sol(fine[::-1]), more.y[::-1], atol=1e-11)
    assert sol(0.5).shape == (2,)
    with pytest.raises(ltinet.InvalidSignalError, match="times must be within the solution"):
        sol(2.1)


def test_outputs_at_other_times_than_the_samples(net):
    t = np.linspace(0.0, 2.0, 21)
    u = SampledSignal(t, _u(t))
    whole = net.simulate(u, t, x0=X0)
    other = np.array([0.0, 0.31, 0.4, 1.777])
    np.testing.assert_allclose(net.simulate(u, other, x0=X0).y, whole(other), atol=1e-12)
    later = np.array([0.37, 0.4, 1.3])  # the state is given at the first time asked for
    sol = net.simulate(u, later, x0=whole.trajectory.user_states(np.array([0.37]))[0])
    np.testing.assert_allclose(sol.y, whole(later), atol=1e-11)
    with pytest.raises(ltinet.InvalidSignalError, match="defined from 0 to 2 only"):
        net.simulate(u, [0.0, 3.0])


@pytest.mark.parametrize("hold", ["linear", "zero"])
def test_jump_is_the_limit_of_steep_lines(net, hold):
    t = np.array([0.0, 0.5, 0.5, 1.0, 1.5])
    u = _u(t)
    whole = net.simulate(u, t, x0=X0, hold=hold)
    first = net.simulate(u[:2], t[:2], x0=X0, hold=hold)
    second = net.simulate(u[2:], t[2:], x0=first.states[-1], hold=hold)
    np.testing.assert_allclose(whole.y, np.vstack([first.y, second.y]), atol=1e-12)
    np.testing.assert_allclose(whole(0.5), second.y[0], atol=1e-12)
    np.testing.assert_allclose(whole.states[1], whole.states[2], atol=1e-12)


def test_irregular_times_agree_with_even_ones(net):
    t = np.linspace(0.0, 2.0, 2101)  # more than one chunk
    u = _u(t[::100])
    lines = SampledSignal(t[::100], u)
    kept = np.unique(np.concatenate([t[::100], t[np.random.default_rng(5).integers(0, len(t), 1500)]]))
    sol = net.simulate(lines.value(kept), kept, x0=X0)
    assert sol.stats["grid"] == "irregular"
    np.testing.assert_allclose(sol.y, net.simulate(lines, t[::100], x0=X0)(kept), atol=1e-11)
    np.testing.assert_allclose(sol(kept[5:9]), sol.y[5:9], atol=1e-12)


@pytest.mark.parametrize("n_times", [1, 2])
@pytest.mark.parametrize("hold", ["linear", "zero"])
def test_one_and_two_times(net, n_times, hold):
    t = np.array([0.5, 1.0])[:n_times]
    u = _u(t)
    _, _, C, D = SYSTEM
    sol = net.simulate(u, t, x0=X0, hold=hold)
    assert sol.y.shape == (n_times, 2)
    np.testing.assert_allclose(sol.y[0], C @ X0 + D @ u[0], atol=1e-11)
    if n_times == 2:
        y = signal.lsim(SYSTEM, u, t - t[0], X0=X0, interp=hold == "linear")[1]
        np.testing.assert_allclose(sol.y, y, atol=1e-11)
    assert sol.states.shape == (n_times, 7)
    assert sol(0.5).shape == (2,)


@pytest.mark.parametrize(("m", "p"), [(1, 1), (1, 3), (3, 1), (0, 2), (2, 0), (0, 0)])
def test_axes_are_kept(m, p):
    A, B, C, D = _system(m, p)
    net = ltinet.construct((A, B, C, D))
    t = np.linspace(0.0, 1.0, 5)
    u = _u(t, m)
    for times in (t, t**2):
        sol = net.simulate(u, times, x0=X0)
        assert sol.y.shape == (5, p)
        assert sol(0.3).shape == (p,)
        assert sol.states.shape == (5, 7)
        assert net.simulate(np.stack([u, u]), times).y.shape == (2, 5, p)
    assert net.stepper(0.1, x0=X0).step(u[0]).shape == (p,)
    free = net.simulate(None, t, x0=X0)
    np.testing.assert_allclose(free.y, net.simulate(np.zeros((5, m)), t, x0=X0).y)


def test_a_single_input_as_a_plain_list():
    net = ltinet.construct(_system(1, 1))
    t = np.linspace(0.0, 1.0, 5)
    np.testing.assert_array_equal(net.simulate(t, t).y, net.simulate(t[:, None], t).y)


def test_a_static_gain():
    D = np.array([[1.0, 2.0]])
    net = ltinet.construct((np.zeros((0, 0)), np.zeros((0, 2)), np.zeros((1, 0)), D))
    t = np.linspace(0.0, 1.0, 4)
    u = _u(t)
    for engine in ("exact", "per_neuron", "per_interval"):
        sol = net.simulate(u, t, engine=engine)
        np.testing.assert_allclose(sol.y, u @ D.T)
        assert sol.states.shape == (4, 0)
    np.testing.assert_allclose(net.simulate(u, t**2).y, u @ D.T)
    stepper = net.stepper(0.1)
    np.testing.assert_allclose(np.vstack([stepper.step(row) for row in u]), u @ D.T)


def test_integer_matrices_and_inputs():
    net = ltinet.construct(([[-1]], [[1]], [[1]], [[0]]))
    t = np.arange(4)
    np.testing.assert_allclose(net.simulate([1, 1, 1, 1], t, hold="zero").y[:, 0], 1.0 - np.exp(-t), atol=1e-15)


def test_an_undamped_oscillator_keeps_its_amplitude():
    net = ltinet.construct(([[0.0, 1.0], [-1.0, 0.0]], [[0.0], [0.0]], np.eye(2), np.zeros((2, 1))))
    t = np.arange(1_000_001) * 0.1
    y = net.simulate(None, t, x0=[1.0, 0.0]).y
    assert np.abs(np.linalg.norm(y[-1000:], axis=1) - 1.0).max() <= 1e-9


@pytest.mark.parametrize("A", [np.diag([2.0, -1.0]), [[2.0, 1.0], [-1.0, 2.0]], [[2.0, 1.0], [0.0, 2.0]]])
@pytest.mark.parametrize("hold", ["linear", "zero"])
def test_unstable_system_without_input_stays_at_rest(A, hold):
    net = ltinet.construct((A, [[1.0], [1.0]], np.eye(2), np.zeros((2, 1))))
    u = np.zeros(5000)
    u[4990:] = 1.0
    y = net.simulate(u, np.arange(5000.0), hold=hold).y
    assert not y[:4990].any()
    np.testing.assert_allclose(y[4990:], net.simulate(u[4989:], np.arange(11.0), hold=hold).y[1:], rtol=1e-10)


@pytest.mark.parametrize(
    ("u", "t"),
    [
        (np.zeros((3, 2)), [0.0, 2.0, 1.0]),
        (np.zeros((3, 2)), [0.0, np.nan, 1.0]),
        (np.zeros((2, 3)), [0.0, 1.0, 2.0]),
        (np.zeros((3, 1)), [0.0, 1.0, 2.0]),
        (np.zeros(3), [0.0, 1.0, 2.0]),
        (np.zeros((4, 2)), [0.0, 1.0, 2.0]),
        (np.full((3, 2), np.nan), [0.0, 1.0, 2.0]),
        (FunctionSignal(np.cos, n_inputs=1), [0.0, 1.0, 2.0]),
    ],
)
def test_wrong_inputs_are_refused(net, u, t):
    for engine in ("exact", "per_neuron"):
        with pytest.raises(ltinet.InvalidSignalError):
            net.simulate(u, t, engine=engine)


@pytest.mark.parametrize("x0", [np.zeros(6), 1.0, np.full(7, np.nan), np.zeros((3, 7)), np.zeros((7, 1))])
def test_wrong_initial_states_are_refused(net, x0):
    with pytest.raises(ltinet.InvalidSignalError, match="x0"):
        net.simulate(np.zeros((3, 2)), [0.0, 1.0, 2.0], x0=x0)
    with pytest.raises(ltinet.InvalidSignalError, match="x0"):
        net.stepper(0.1, x0=x0)


def test_unknown_engines_and_holds_are_refused(net):
    with pytest.raises(ltinet.SimulationError, match="must be one of"):
        net.simulate(np.zeros((2, 2)), [0.0, 1.0], engine="magic")
    with pytest.raises(ltinet.InvalidSignalError, match="hold"):
        net.simulate(np.zeros((2, 2)), [0.0, 1.0], hold="cubic")


def test_a_state_for_each_input_of_a_batch(net):
    t = np.linspace(0.0, 1.0, 6)
    u, x0 = np.stack([_u(t, seed=s) for s in range(3)]), np.random.default_rng(1).standard_normal((3, 7))
    sol = net.simulate(u, t, x0=x0)
    for k in range(3):
        np.testing.assert_allclose(sol.y[k], net.simulate(u[k], t, x0=x0[k]).y, atol=1e-12)
        np.testing.assert_allclose(sol.states[k], net.simulate(u[k], t, x0=x0[k]).states, atol=1e-12)
    assert net.simulate(u.reshape(3, 1, 6, 2), t).y.shape == (3, 1, 6, 2)


def test_a_cosine_against_its_closed_form():
    net = ltinet.construct(([[-2.0]], [[1.0]], [[1.0]], [[0.0]]))
    t = np.linspace(0.0, 5.0, 21)
    truth = (2.0 * np.cos(t) + np.sin(t) - 2.0 * np.exp(-2.0 * t)) / 5.0
    for times in (t, t**2 / 5.0):
        sol = net.simulate(np.cos, times)
        truth = (2.0 * np.cos(times) + np.sin(times) - 2.0 * np.exp(-2.0 * times)) / 5.0
        np.testing.assert_allclose(sol.y[:, 0], truth, atol=1e-8)
        assert sol.stats["samples_per_interval"] > 1
    inside = np.linspace(0.0, 5.0, 77)
    truth = (2.0 * np.cos(inside) + np.sin(inside) - 2.0 * np.exp(-2.0 * inside)) / 5.0
    np.testing.assert_allclose(sol(inside)[:, 0], truth, atol=1e-8)


def test_a_kink_or_jump_is_named_or_found():
    net = ltinet.construct(([[-2.0]], [[1.0]], [[1.0]], [[0.0]]))

    def hat(t):
        return max(0.0, 1.0 - abs(t - np.sqrt(0.5)))

    t = np.linspace(0.0, 2.0, 11)
    knots = [np.sqrt(0.5), 1.0 + np.sqrt(0.5)]
    named = net.simulate(FunctionSignal(hat, n_inputs=1, knots=knots), t)
    times = np.union1d(t, knots)
    sampled = net.simulate(np.array([hat(time) for time in times]), times)
    np.testing.assert_allclose(named.y, sampled(t), atol=1e-12)
    np.testing.assert_allclose(net.simulate(hat, t, input_tolerance=1e-9).y, named.y, atol=1e-9)
    jump = net.simulate(lambda t: float(t >= np.sqrt(0.5)), t)
    after = 0.5 - 0.5 * np.exp(-2.0 * np.maximum(t - np.sqrt(0.5), 0.0))
    np.testing.assert_allclose(jump.y[:, 0], after, atol=1e-8)
    with pytest.raises(ltinet.SimulationError, match="knots"):
        net.simulate(lambda t: np.sin(1e9 * t**2), t)


def test_a_jump_of_a_function_at_a_knot():
    net = ltinet.construct(([[-2.0]], [[1.0]], [[1.0]], [[0.0]]))
    t = np.linspace(0.0, 2.0, 11)
    sol = net.simulate(FunctionSignal(lambda t: float(t >= 0.7), n_inputs=1, knots=[0.7]), t)
    np.testing.assert_allclose(sol.y[:, 0], np.where(t > 0.7, 0.5 - 0.5 * np.exp(-2.0 * (t - 0.7)), 0.0), atol=1e-12)


def test_network_without_form_simulates_its_own_states():
    net = ltinet.DynamicNetwork(random_network([[1, 2], [2]], 2, 2, seed=3))
    own = net.to_state_space()
    t = np.linspace(0.0, 1.0, 30)
    u, x0 = _u(t), np.arange(net.n_states, dtype=float)
    _, y, x = signal.lsim((own.A, own.B, own.C, own.D), u, t, X0=x0)
    sol = net.simulate(u, t, x0=x0)
    np.testing.assert_allclose(sol.y, y, atol=1e-10)
    np.testing.assert_allclose(sol.states, x, atol=1e-10)


def test_a_network_that_ran_can_be_pickled(net):
    t = np.linspace(0.0, 1.0, 6)
    sol = net.simulate(_u(t), t)
    again = pickle.loads(pickle.dumps(net))  # noqa: S301 - our own bytes
    np.testing.assert_array_equal(again.simulate(_u(t), t).y, sol.y)


def test_times_beside_their_grid_count_as_they_are():
    # At 1e8 times are rounded by 7e-9: outputs of the even grid would differ by as much.
    t = 1e8 + 0.1 * np.arange(40)
    assert TimeAxis.of(t).step is not None
    u = _u(t, m=1)
    x = [0.0]
    for h, value in zip(np.diff(t), u[:-1, 0], strict=True):
        x.append(np.exp(-3.0 * h) * x[-1] - np.expm1(-3.0 * h) * value)
    y = ltinet.construct(([[-3.0]], [[3.0]], [[1.0]])).simulate(u, t, hold="zero").y[:, 0]
    np.testing.assert_allclose(y, x, rtol=0.0, atol=1e-13)


@pytest.mark.parametrize("n_times", range(5, 11))
def test_uneven_outputs_in_chunks_are_those_of_lsim(monkeypatch, n_times):
    monkeypatch.setattr(nonuniform, "_MIN_STEPS_AT_ONCE", 4)
    monkeypatch.setattr(nonuniform, "_MAX_STATE_NUMBERS", 1)
    t = np.cumsum(np.random.default_rng(0).uniform(0.1, 1.0, n_times))
    u = _u(t)
    y = np.zeros((n_times, 2))
    state = np.zeros(7)
    for k, h in enumerate(np.diff(t)):
        _, two, states = signal.lsim(SYSTEM, u[k : k + 2], [0.0, h], X0=state)
        state, y[k + 1] = states[-1], two[-1]
    y[0] = u[0] @ SYSTEM[3].T
    for n_layers in LAYERS:
        sol = ltinet.construct(SYSTEM, n_layers=n_layers).simulate(u, t)
        np.testing.assert_allclose(sol.y, y, atol=1e-11)
