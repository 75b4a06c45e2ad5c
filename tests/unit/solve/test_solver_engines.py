"""Hypothesis: the paper's forward passes give the exact solution to their tolerance, with any solver for any neuron."""

import numpy as np
import pytest

import ltinet
from ltinet import FunctionSignal, SampledSignal
from network_examples import pattern_block, random_network

T = np.linspace(0.0, 2.0, 9)
U = np.random.default_rng(1).standard_normal((9, 2))
X0 = np.linspace(-1.0, 1.0, 7)
METHODS = ["DOP853", "RK45", "RK23", "Radau", "BDF", "LSODA"]
FACTORS = {"DOP853": 1e2, "RK45": 1e2, "RK23": 1e3, "Radau": 1e3, "BDF": 1e4, "LSODA": 1e3}


@pytest.fixture(scope="module")
def net():
    """One coupled layer of three first- and two second-order neurons, with u(0) ≠ 0 and u̇ in its equations."""
    rng = np.random.default_rng(0)
    system = pattern_block(3, 2), rng.standard_normal((7, 2)), rng.standard_normal((2, 7)), rng.standard_normal((2, 2))
    net = ltinet.construct(system, n_layers=1)
    assert (net.n_first_order, net.n_second_order, net.n_layers) == (3, 2, 1)
    assert net.n_connections > 0
    return net


def _deviation(sol, exact):
    return np.abs(sol - exact).max() / np.abs(exact).max()


@pytest.mark.parametrize("hold", ["linear", "zero"])
@pytest.mark.parametrize("engine", ["neurons", "intervals"])
@pytest.mark.parametrize("method", METHODS)
def test_outputs_states_and_dense_output_of_every_method(net, method, engine, hold):
    rtol = 1e-8 if method in ("DOP853", "RK45", "LSODA") else 1e-6
    sol = net.simulate(U, T, x0=X0, hold=hold, engine=engine, method=method, rtol=rtol, atol=0.01 * rtol)
    exact = net.simulate(U, T, x0=X0, hold=hold)
    inside = np.linspace(0.0, 2.0, 101)
    bound = FACTORS[method] * rtol
    assert _deviation(sol.y, exact.y) <= bound
    assert _deviation(sol(inside), exact(inside)) <= bound
    assert _deviation(sol.states, exact.states) <= bound
    assert _deviation(sol.neuron_states, exact.neuron_states) <= bound
    assert len(sol.stats["evaluations"]) == 1
    assert len(sol.stats["evaluations"][0]) == len(sol.stats["seconds"][0]) == 5
    assert sol.stats["total_evaluations"] == sum(sol.stats["evaluations"][0]) > 0


@pytest.mark.parametrize("engine", ["neurons", "intervals"])
def test_jumps_by_repeated_times(net, engine):
    t = np.array([0.0, 0.0, 0.5, 0.5, 1.0, 1.5, 1.5])
    u = np.random.default_rng(2).standard_normal((7, 2))
    sol, exact = net.simulate(u, t, x0=X0, engine=engine), net.simulate(u, t, x0=X0)
    inside = np.array([0.0, 0.1, 0.5, 0.7, 1.0, 1.5])
    assert _deviation(sol(inside), exact(inside)) <= 1e-6
    assert _deviation(sol.states, exact.states) <= 1e-6


@pytest.mark.parametrize("engine", ["neurons", "intervals"])
@pytest.mark.parametrize("n_times", [1, 2])
def test_one_and_two_times(net, engine, n_times):
    sol, exact = (net.simulate(U[:n_times], T[:n_times], x0=X0, engine=name) for name in (engine, "exact"))
    assert sol.y.shape == (n_times, 2)
    assert _deviation(sol.y, exact.y) <= 1e-6
    assert _deviation(sol.states, exact.states) <= 1e-6


@pytest.mark.parametrize("engine", ["neurons", "intervals"])
def test_a_jump_at_the_only_time(net, engine):
    sol, exact = (net.simulate(U[:2], [1.0, 1.0], x0=X0, engine=name) for name in (engine, "exact"))
    assert _deviation(sol(1.0), exact(1.0)) <= 1e-12
    assert _deviation(sol.states, exact.states) <= 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_a_hat_that_begins_late_is_not_stepped_over(net, method):
    t = np.array([0.0, 1.0, 1.05, 1.1, 2.0])
    u = np.array([0.0, 0.0, 1.0, 0.0, 0.0])[:, None] * np.ones(2)
    sol = net.simulate(u, t, engine="neurons", method=method, rtol=1e-6, atol=1e-9)
    assert _deviation(sol.y, net.simulate(u, t).y) <= 1e-3


def test_across_knots_integrates_as_the_paper_does(net):
    t = np.linspace(0.0, 2.0, 101)
    u = np.cos(t)[:, None] * np.ones(2)
    exact = net.simulate(u, t, x0=X0)
    over = net.simulate(u, t, x0=X0, engine="neurons", across_knots=True, rtol=1e-6)
    between = net.simulate(u, t, x0=X0, engine="neurons", rtol=1e-6)
    assert _deviation(over.y, exact.y) <= 1e-3
    assert over.stats["across_knots"]
    assert over.stats["steps"] != between.stats["steps"]
    assert _deviation(between.y, exact.y) <= 1e-4


def test_options_by_layer_by_neuron_and_by_function():
    net = ltinet.DynamicNetwork(random_network([[1, 2], [1]], 2, 2, seed=3))
    exact = net.simulate(U, T)
    by_neuron = {(0, 1): "Radau", 1: "RK45"}
    first = net.simulate(U, T, engine="neurons", method=by_neuron, rtol={0: 1e-6}, atol=1e-9)
    second = net.simulate(
        U,
        T,
        engine="neurons",
        method=lambda neuron: "Radau" if neuron.order == 2 else "DOP853",
        rtol=lambda neuron: 1e-6 if neuron.order == 2 else 1e-8,
        atol=1e-9,
    )
    for sol in (first, second):
        assert _deviation(sol.y, exact.y) <= 1e-4
    assert first.stats["evaluations"][0] != second.stats["evaluations"][0]
    loose = net.simulate(U, T, engine="neurons", rtol={(1, 0): 1e-3}, atol={(1, 0): 1e-3})
    tight = net.simulate(U, T, engine="neurons", rtol={(1, 0): 1e-12}, atol={(1, 0): 1e-13})
    assert loose.stats["evaluations"][1][0] < tight.stats["evaluations"][1][0]
    assert loose.stats["evaluations"][0] == tight.stats["evaluations"][0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "Euler"}, "known are"),
        ({"rtol": 0.0}, "positive"),
        ({"atol": -1.0}, "positive"),
        ({"method": lambda _: None}, "known are"),
        ({"max_step": 0.0}, "max_step"),
        ({"first_step": -1.0}, "first_step"),
        ({"across_knots": True, "hold": "zero"}, "without jumps"),
    ],
)
def test_options_that_make_no_sense_are_refused(net, options, message):
    with pytest.raises(ltinet.SimulationError, match=message):
        net.simulate(U, T, engine="neurons", **options)


def test_layers_in_two_processes_and_a_batch():
    net = ltinet.DynamicNetwork(random_network([[1, 2], [1], [2]], 2, 2, seed=4))
    batch = np.stack([U, -U, U[::-1]])
    alone = net.simulate(batch, T, engine="neurons")
    together = net.simulate(batch, T, engine="neurons", n_jobs=2)
    np.testing.assert_array_equal(alone.y, together.y)
    assert _deviation(alone.y, net.simulate(batch, T).y) <= 1e-6
    assert _deviation(alone.states, net.simulate(batch, T).states) <= 1e-6
    assert alone(0.3).shape == (3, 2)


@pytest.mark.parametrize("engine", ["neurons", "intervals"])
def test_a_function_with_its_derivative(net, engine):
    u = FunctionSignal(
        lambda t: [np.cos(t), np.sin(2.0 * t)], n_inputs=2, derivative=lambda t: [-np.sin(t), 2.0 * np.cos(2.0 * t)]
    )
    sol, exact = net.simulate(u, T, x0=X0, engine=engine), net.simulate(u, T, x0=X0)
    assert _deviation(sol.y, exact.y) <= 1e-6
    assert _deviation(sol(np.linspace(0.0, 2.0, 33)), exact(np.linspace(0.0, 2.0, 33))) <= 1e-6


@pytest.mark.parametrize("engine", ["neurons", "intervals"])
def test_a_function_with_a_jump(net, engine):
    u = FunctionSignal(lambda t: [float(t >= 0.7), 1.0], n_inputs=2, derivative=lambda _: [0.0, 0.0], knots=[0.7])
    sol, exact = net.simulate(u, T, x0=X0, engine=engine), net.simulate(u, T, x0=X0)
    assert _deviation(sol.y, exact.y) <= 1e-6


def test_a_function_without_the_derivative_that_is_needed(net):
    with pytest.raises(ltinet.InvalidSignalError, match="derivative"):
        net.simulate(lambda t: [np.cos(t), 0.0], T, engine="neurons")


def test_samples_that_go_on_before_and_after(net):
    t = np.linspace(-1.0, 3.0, 17)
    u = SampledSignal(t, np.random.default_rng(5).standard_normal((17, 2)), hold="zero")
    times = np.array([0.1, 0.5, 1.9])
    for engine in ("neurons", "intervals"):
        sol = net.simulate(u, times, x0=X0, engine=engine)
        assert _deviation(sol.y, net.simulate(u, times, x0=X0).y) <= 1e-6


@pytest.mark.parametrize(
    ("method", "order", "steps"), [("RK23", 3, (32, 64, 128)), ("RK45", 5, (8, 16, 32)), ("DOP853", 7.8, (2, 4, 8))]
)
def test_fixed_steps_converge_with_the_order_of_the_method(net, method, order, steps):
    t = np.array([0.0, 2.0])
    u = np.ones((2, 2))
    exact = net.simulate(u, t, x0=X0).y[-1]
    errors = []
    for count in steps:
        h = 2.0 / count
        sol = net.simulate(u, t, x0=X0, engine="neurons", method=method, rtol=1e6, atol=1e6, first_step=h, max_step=h)
        errors.append(np.abs(sol.y[-1] - exact).max())
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert -slope >= order - 0.3
