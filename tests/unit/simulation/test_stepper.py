"""Hypothesis: single samples, with a state that can be read, set and saved, give the outputs of one run."""

import pickle

import numpy as np
import pytest

import ltinet
from network_examples import pattern_block


@pytest.fixture(scope="module", params=[None, 1])
def net(request):
    rng = np.random.default_rng(0)
    A = pattern_block(2, 2, seed=1)
    system = A, rng.standard_normal((6, 2)), rng.standard_normal((3, 6)), rng.standard_normal((3, 2))
    return ltinet.construct(system, n_layers=request.param)


T = np.arange(40) * 0.1
U = np.random.default_rng(1).standard_normal((40, 2))
X0 = np.arange(6.0)


@pytest.mark.parametrize("hold", ["linear", "zero"])
def test_restored_state_continues_the_run(net, hold):
    whole = net.simulate(U, T, x0=X0, hold=hold)
    stepper = net.stepper(0.1, hold=hold, x0=X0)
    np.testing.assert_allclose(stepper.x, X0, atol=1e-12)
    y = [stepper.step(u) for u in U[:17]]
    np.testing.assert_allclose(stepper.x, whole.states[16], atol=1e-11)
    saved = pickle.loads(pickle.dumps(stepper.state()))  # noqa: S301 - our own bytes
    for u in U[17:20]:
        stepper.step(u)
    other = net.stepper(0.1, hold=hold)
    other.restore(saved)
    stepper.restore(saved)
    rest = [other.step(u) for u in U[17:]]
    np.testing.assert_allclose(np.vstack(y + rest), whole.y, atol=1e-11)
    np.testing.assert_allclose(np.vstack([stepper.step(u) for u in U[17:]]), rest, atol=1e-12)


def test_a_state_saved_before_the_first_sample(net):
    stepper = net.stepper(0.1, x0=X0)
    saved = stepper.state()
    stepper.step(U[0])
    stepper.restore(saved)
    np.testing.assert_allclose(stepper.step(U[0]), net.simulate(U[:1], T[:1], x0=X0).y[0], atol=1e-12)


@pytest.mark.parametrize("hold", ["linear", "zero"])
def test_a_state_that_was_set(net, hold):
    stepper = net.stepper(0.1, hold=hold)
    for u in U[:5]:
        stepper.step(u)
    stepper.x = X0
    np.testing.assert_allclose(stepper.x, X0, atol=1e-11)
    rest = np.vstack([stepper.step(u) for u in U[5:]])
    np.testing.assert_allclose(rest, net.simulate(U[4:], T[4:], x0=X0, hold=hold).y[1:], atol=1e-11)
    fresh = net.stepper(0.1, hold=hold)
    fresh.x = X0
    np.testing.assert_allclose(fresh.step(U[0]), net.simulate(U[:1], T[:1], x0=X0).y[0], atol=1e-12)


def test_stepper_copies_the_array_of_a_sample(net):
    buffer, stepper = np.empty(2), net.stepper(0.1)
    y = []
    for u in U:
        buffer[:] = u
        y.append(stepper.step(buffer))
    np.testing.assert_allclose(y, net.simulate(U, T).y, atol=1e-11)


def test_what_does_not_fit_is_refused(net):
    stepper = net.stepper(0.1)
    for wrong in (np.zeros(3), np.zeros((1, 2)), 1.0):
        with pytest.raises(ltinet.InvalidSignalError, match="one per input"):
            stepper.step(wrong)
    with pytest.raises(ltinet.InvalidSignalError, match="chunk"):
        list(net.simulate_stream([np.zeros((3, 3))], 0.1))
    for dt in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ltinet.InvalidSignalError, match="positive"):
            net.stepper(dt)
    with pytest.raises(ltinet.InvalidSignalError, match="hold"):
        net.stepper(0.1, hold="cubic")
    with pytest.raises(ltinet.InvalidSignalError, match="belongs to dt"):
        net.stepper(0.2).restore(stepper.state())


@pytest.mark.parametrize("hold", ["linear", "zero"])
@pytest.mark.parametrize("n_before", [0, 1, 9])
def test_a_state_goes_through_a_file(net, hold, n_before, tmp_path):
    stepper = net.stepper(0.1, hold=hold, x0=X0)
    for u in U[:n_before]:
        stepper.step(u)
    np.savez(tmp_path / "state.npz", **stepper.state())
    other = net.stepper(0.1, hold=hold)
    with np.load(tmp_path / "state.npz", allow_pickle=False) as saved:
        other.restore(saved)
    assert other.state().keys() == stepper.state().keys()
    np.testing.assert_allclose(
        [other.step(u) for u in U[n_before:]], [stepper.step(u) for u in U[n_before:]], rtol=0.0, atol=1e-11
    )


def test_a_state_without_inputs():
    net = ltinet.construct((-np.eye(2), np.zeros((2, 0)), np.ones((1, 2)), np.zeros((1, 0))))
    stepper = net.stepper(0.5, x0=[1.0, 2.0])
    stepper.step([])
    saved = stepper.state()
    later = stepper.step([])
    stepper.restore(saved)
    np.testing.assert_allclose(stepper.step([]), later, rtol=1e-14)
    np.testing.assert_allclose(later, 3.0 * np.exp(-0.5), rtol=1e-14)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": None}, "no x;"),
        ({"last_input": None, "hold": None}, "no last_input, hold;"),
        ({"x": np.zeros(5)}, r"x has shape \(5,\)"),
        ({"x": np.zeros((1, 6))}, r"x has shape \(1, 6\)"),
        ({"last_input": np.zeros(3)}, r"last_input has shape \(3,\)"),
        ({"last_input": [np.nan, 0.0]}, "all finite"),
        ({"x": np.full(6, np.inf)}, "all finite"),
        ({"x": np.zeros(6, dtype=complex)}, "real numbers"),
        ({"x": "lost"}, "real numbers"),
        ({"dt": 0.2}, "belongs to dt"),
        ({"hold": "zero"}, "belongs to dt"),
    ],
)
def test_invalid_state_is_refused_without_effect(net, change, message):
    stepper = net.stepper(0.1, x0=X0)
    stepper.step(U[0])
    before = stepper.state()
    wrong = {key: value for key, value in (before | change).items() if value is not None}
    with pytest.raises(ltinet.InvalidSignalError, match=message):
        stepper.restore(wrong)
    np.testing.assert_array_equal(stepper.x, before["x"])
    np.testing.assert_allclose(stepper.step(U[1]), net.simulate(U[:2], T[:2], x0=X0).y[1], atol=1e-11)


@pytest.mark.filterwarnings("error")  # NumPy only warns when it drops an imaginary part
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([np.nan, 0.0], "not finite"),
        ([np.inf, -np.inf], "not finite"),
        ([1j, 0.0], "real numbers"),
        (np.zeros(2, dtype=complex), "real numbers"),
        (["1", "2"], "real numbers"),
        ([None, 0.0], "real numbers"),
    ],
)
def test_values_must_be_finite_and_real(net, wrong, message):
    stepper = net.stepper(0.1)
    stepper.step(U[0])
    with pytest.raises(ltinet.InvalidSignalError, match=message):
        stepper.step(wrong)
    with pytest.raises(ltinet.InvalidSignalError, match=message):
        list(stepper.run([np.array([wrong] * 30)]))
    np.testing.assert_allclose(stepper.step(U[1]), net.simulate(U[:2], T[:2]).y[1], atol=1e-11)


@pytest.mark.filterwarnings("error")
def test_a_complex_state_is_refused(net):
    with pytest.raises(ltinet.InvalidSignalError, match="x0 is complex"):
        net.stepper(0.1, x0=X0 * 1j)
    with pytest.raises(ltinet.InvalidSignalError, match="x is complex"):
        net.stepper(0.1).x = X0 * 1j


def test_masked_samples_and_states_are_refused(net):
    """NumPy drops masks silently; the values below them would be used as samples."""
    hidden = np.ma.masked_array([1.0, 1e9], mask=[False, True])
    stepper = net.stepper(0.1)
    with pytest.raises(ltinet.InvalidSignalError, match="u has masked entries"):
        stepper.step(hidden)
    with pytest.raises(ltinet.InvalidSignalError, match="a chunk has masked entries"):
        list(stepper.run([np.ma.masked_array(np.ones((3, 2)), mask=np.eye(3, 2, dtype=bool))]))
    with pytest.raises(ltinet.InvalidSignalError, match="x has masked entries"):
        stepper.x = np.ma.masked_array(X0, mask=np.median(X0) < X0)


def test_large_values_are_finite(net):
    huge = np.full(2, 1e308)  # their sum is not
    assert net.stepper(0.1).step(huge).shape == (3,)


def test_numbers_that_are_integers_are_taken_as_real(net):
    np.testing.assert_array_equal(net.stepper(0.1).step([1, 2]), net.stepper(0.1).step([1.0, 2.0]))


def test_a_stream_of_nothing(net):
    assert list(net.simulate_stream([], 0.1)) == []
    assert [y.shape for y in net.simulate_stream([np.zeros((0, 2)), np.zeros((3, 2))], 0.1)] == [(0, 3), (3, 3)]


@pytest.mark.parametrize("dt", [None, 0.1])
def test_systems_have_the_stepper_of_their_network(dt: float | None) -> None:
    continuous = ltinet.named_system("mass_spring_damper", n_masses=3)
    system = continuous if dt is None else continuous.to_discrete(dt)
    u = np.random.default_rng(0).standard_normal((30, system.n_inputs))
    for one in (system, system.with_signal_settings(input_delay=0.2)):
        stepper, other = one.stepper(0.1), ltinet.construct(one).stepper(0.1)
        y = np.array([stepper.step(sample) for sample in u])
        assert np.allclose(y, [other.step(sample) for sample in u], rtol=0, atol=1e-14 * np.abs(y).max())
        assert np.allclose(y, one.simulate(u, 0.1 * np.arange(30)).y, rtol=0, atol=1e-13 * np.abs(y).max())


@pytest.mark.parametrize(
    "delays", [{}, {"input_delay": 0.7}, {"input_delay": 0.33, "output_delay": 0.18}, {"u0": 2.0, "y0": 5.0}]
)
def test_a_loop_is_closed_through_the_output_at_the_next_sample(delays: dict[str, float]) -> None:
    dt, n = 0.05, 300
    plant = ltinet.StateSpace([[0.0, 1.0], [-1.0, -0.6]], [[0.0], [1.0]], [[1.0, 0.3]], **delays)
    controller = ltinet.StateSpace([[1.0]], [[0.2 * dt]], [[1.0]], [[0.5]], dt=dt)
    stepper, control = plant.stepper(dt, hold="zero"), controller.stepper()
    u, y = np.zeros(n), np.zeros(n)
    for k in range(n):
        y[k] = stepper.output()[0]
        u[k] = control.step([1.0 - y[k]])[0]
        assert stepper.step([u[k]])[0] == y[k]
    # The plant, simulated for the whole input that the loop has made, has the same outputs.
    whole = plant.simulate(u, dt * np.arange(n), hold="zero")
    np.testing.assert_allclose(y, whole.y[:, 0], rtol=0.0, atol=1e-12 * np.abs(y).max())
    if not delays:
        loop = ltinet.feedback(plant.to_discrete(dt, "zoh") * controller)
        np.testing.assert_allclose(y, loop.simulate(np.ones(n)).y[:, 0], rtol=0.0, atol=1e-12)


def test_outputs_that_depend_on_the_next_input_are_refused() -> None:
    static = ltinet.StateSpace([[-1.0]], [[1.0]], [[1.0]], [[0.5]])
    with pytest.raises(ltinet.InvalidSignalError, match="D is not zero"):
        static.stepper(0.1, hold="zero").output()
    dynamic = ltinet.StateSpace([[-1.0]], [[1.0]], [[1.0]])
    with pytest.raises(ltinet.InvalidSignalError, match='hold is "linear"'):
        dynamic.stepper(0.1).output()
    with pytest.raises(ltinet.InvalidSignalError, match='hold is "linear"'):
        ltinet.StateSpace([[-1.0]], [[1.0]], [[1.0]], input_delay=0.05).stepper(0.1).output()
    late = ltinet.StateSpace([[-1.0]], [[1.0]], [[1.0]], [[0.5]], input_delay=0.3)
    assert late.stepper(0.1).output() == [0.0]
