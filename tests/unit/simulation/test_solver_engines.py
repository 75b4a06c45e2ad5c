"""Hypothesis: the paper's forward passes give the exact solution to their tolerance, with any solver for any neuron."""

import math
import os
from time import perf_counter

import numpy as np
import pytest
from scipy import special

import ltinet
from ltinet import FunctionSignal, SampledSignal
from ltinet.error_bounds.defect import radau_rule
from ltinet.simulation.solver_errors import _InputProbe, _refine_grid
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


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("hold", ["linear", "zero"])
@pytest.mark.parametrize("engine", ["per_neuron", "per_interval"])
@pytest.mark.parametrize("method", METHODS)
def test_solver_engines_match_exact(net, method, engine, hold):
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


@pytest.mark.parametrize("engine", ["per_neuron", "per_interval"])
def test_solver_jumps_at_repeated_times(net, engine):
    t = np.array([0.0, 0.0, 0.5, 0.5, 1.0, 1.5, 1.5])
    u = np.random.default_rng(2).standard_normal((7, 2))
    sol, exact = net.simulate(u, t, x0=X0, engine=engine), net.simulate(u, t, x0=X0)
    inside = np.array([0.0, 0.1, 0.5, 0.7, 1.0, 1.5])
    assert _deviation(sol(inside), exact(inside)) <= 1e-6
    assert _deviation(sol.states, exact.states) <= 1e-6


@pytest.mark.parametrize("engine", ["per_neuron", "per_interval"])
@pytest.mark.parametrize("n_times", [1, 2])
def test_one_and_two_times(net, engine, n_times):
    sol, exact = (net.simulate(U[:n_times], T[:n_times], x0=X0, engine=name) for name in (engine, "exact"))
    assert sol.y.shape == (n_times, 2)
    assert _deviation(sol.y, exact.y) <= 1e-6
    assert _deviation(sol.states, exact.states) <= 1e-6


@pytest.mark.parametrize("engine", ["per_neuron", "per_interval"])
def test_solver_jump_at_single_time(net, engine):
    sol, exact = (net.simulate(U[:2], [1.0, 1.0], x0=X0, engine=name) for name in (engine, "exact"))
    assert _deviation(sol(1.0), exact(1.0)) <= 1e-12
    assert _deviation(sol.states, exact.states) <= 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_late_hat_is_not_stepped_over(net, method):
    t = np.array([0.0, 1.0, 1.05, 1.1, 2.0])
    u = np.array([0.0, 0.0, 1.0, 0.0, 0.0])[:, None] * np.ones(2)
    sol = net.simulate(u, t, engine="per_neuron", method=method, rtol=1e-6, atol=1e-9)
    assert _deviation(sol.y, net.simulate(u, t).y) <= 1e-3


def test_across_knots(net):
    t = np.linspace(0.0, 2.0, 101)
    u = np.cos(t)[:, None] * np.ones(2)
    exact = net.simulate(u, t, x0=X0)
    over = net.simulate(u, t, x0=X0, engine="per_neuron", across_knots=True, rtol=1e-6)
    between = net.simulate(u, t, x0=X0, engine="per_neuron", rtol=1e-6)
    assert _deviation(over.y, exact.y) <= 1e-3
    assert over.stats["across_knots"]
    assert over.stats["steps"] != between.stats["steps"]
    assert _deviation(between.y, exact.y) <= 1e-4


def test_options_by_layer_neuron_and_function():
    """The last neuron of a layer depends on no other: its steps follow from its own options alone."""
    net = ltinet.DynamicNetwork(random_network([[1, 2], [1], [2]], 2, 2, seed=3))
    exact = net.simulate(U, T)
    mapped = net.simulate(U, T, engine="per_neuron", method={(0, 1): "Radau", 1: "RK45"}, rtol={0: 1e-6, (2, 0): 1e-4})
    chosen = net.simulate(
        U,
        T,
        engine="per_neuron",
        method=lambda neuron: "Radau" if neuron.order == 2 else "RK45",
        rtol=lambda neuron: 1e-6 if neuron.order == 2 else 1e-8,
    )
    same = {
        ("Radau", 1e-6): [(mapped, 0, 1), (chosen, 0, 1), (chosen, 2, 0)],
        ("RK45", 1e-8): [(mapped, 1, 0), (chosen, 1, 0)],
        ("DOP853", 1e-4): [(mapped, 2, 0)],
    }
    counts = set()
    for (method, rtol), places in same.items():
        plain = net.simulate(U, T, engine="per_neuron", method=method, rtol=rtol)
        for sol, layer, neuron in places:
            for count in ("evaluations", "steps"):
                assert sol.stats[count][layer][neuron] == plain.stats[count][layer][neuron]
        counts.add(plain.stats["evaluations"])
    assert len(counts) == 3  # they do differ
    for sol in (mapped, chosen):
        assert _deviation(sol.y, exact.y) <= 1e-3


def test_absolute_tolerances_by_neuron():
    net = ltinet.DynamicNetwork(random_network([[1, 2], [1]], 2, 2, seed=3))
    loose = net.simulate(U, T, engine="per_neuron", rtol={(1, 0): 1e-3}, atol={(1, 0): 1e-3})
    tight = net.simulate(U, T, engine="per_neuron", rtol={(1, 0): 1e-12}, atol={(1, 0): 1e-13})
    assert loose.stats["evaluations"][1][0] < tight.stats["evaluations"][1][0]
    assert loose.stats["evaluations"][0] == tight.stats["evaluations"][0]


@pytest.mark.parametrize("key", [1, -1, (0, 5), (1, 0), "0", None])
@pytest.mark.parametrize("option", ["method", "rtol", "atol"])
def test_options_with_unknown_keys_are_rejected(net, option, key):
    with pytest.raises(ltinet.SimulationError, match=f"{option} has the unknown key"):
        net.simulate(U, T, engine="per_neuron", **{option: {key: 1e-6}})


@pytest.mark.parametrize("engine", ["per_neuron", "per_interval"])
def test_evaluation_counts_match_calls(engine):
    """The derivative of u is evaluated once in each function evaluation."""
    net = ltinet.DynamicNetwork(random_network([[2], [2]], 1, 1, seed=0))
    asked = []

    def slope(t):
        asked.append(t)
        return math.cos(t)

    sol = net.simulate(FunctionSignal(math.sin, n_inputs=1, derivative=slope), T, engine=engine)
    assert len(asked) == sol.stats["total_evaluations"] == sum(sum(own) for own in sol.stats["evaluations"])


@pytest.mark.parametrize("engine", ["per_neuron", "per_interval"])
def test_steps_and_seconds_per_neuron(net, engine):
    """With steps of a quarter of an interval there are four in each of eight, and a step of RK45 is six evaluations.

    One more begins each interval; neurons that others feed begin anew at the seams of those, with every step.
    """
    h = float(T[1] - T[0]) / 4.0
    begin = perf_counter()
    sol = net.simulate(U, T, engine=engine, method="RK45", rtol=1e6, atol=1e6, first_step=h, max_step=h)
    elapsed = perf_counter() - begin
    assert sol.stats["steps"] == ((32,) * 5,)
    assert sol.stats["evaluations"] == ((*(8 * 4 * (1 + 6),) * 4, 8 * (1 + 4 * 6)),)
    assert sol.stats["total_steps"] == 5 * 32
    assert all(seconds > 0.0 for seconds in sol.stats["seconds"][0])
    assert sum(sol.stats["seconds"][0]) == pytest.approx(sol.stats["total_seconds"])
    assert sol.stats["total_seconds"] < elapsed


@pytest.mark.parametrize("engine", ["per_neuron", "per_interval"])
def test_jump_of_held_input_is_impulse_in_rate(engine):
    """At a jump of u in m ξ̈ + c ξ̇ + k ξ = e u + v u̇ the rate ξ̇ jumps by v Δu / m, and ξ does not."""
    net = ltinet.DynamicNetwork(random_network([[2]], 2, 1, seed=7))
    neuron = net.layers[0].neurons[0]
    sol = net.simulate(U, T, hold="zero", engine=engine, rtol=1e-10, atol=1e-12)
    before, after = (sol.trajectory.neuron_states(times) for times in (np.nextafter(T[1:], 0.0), T[1:]))
    moved = np.diff(U, axis=0) @ neuron.v / neuron.m
    assert np.abs(moved).max() > 0.1
    scale = np.abs(after).max()
    # Dense outputs of adjoining steps meet to the tolerance of the solver.
    np.testing.assert_allclose(after[:, 0], before[:, 0], rtol=0.0, atol=1e-8 * scale)
    np.testing.assert_allclose(after[:, 1] - before[:, 1], moved, rtol=0.0, atol=1e-8 * scale)
    start = sol.trajectory.neuron_states(T[:1])[0]
    np.testing.assert_allclose(start, [0.0, U[0] @ neuron.v / neuron.m], rtol=0.0, atol=1e-14 * scale)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("engine", ["per_neuron", "per_interval"])
@pytest.mark.parametrize("method", METHODS)
def test_no_step_crosses_a_knot(net, method, engine):
    """All evaluations of a step that begins before a knot lie before the knot, for every solver."""
    knots = np.array([0.31, 0.33, 1.7])
    asked = []

    def slope(t):
        asked.append(t)
        return [0.0, 0.0]

    u = FunctionSignal(lambda t: [float(np.searchsorted(knots, t, side="right")), 1.0], n_inputs=2,
                       derivative=slope, knots=knots)  # fmt: skip
    sol = net.simulate(u, [0.0, 2.0], engine=engine, method=method, rtol=1e-6, atol=1e-8)
    # A neuron's evaluations go from interval to interval, in order; every return to an earlier one is a new neuron.
    interval = np.searchsorted(knots, asked, side="right")
    returns = np.count_nonzero(np.diff(interval) < 0)
    assert set(interval.tolist()) == {0, 1, 2, 3}
    assert set(np.nextafter(knots, 0.0)) <= set(asked)  # steps end there
    assert returns == (net.n_second_order - 1 if engine == "per_neuron" else 0)
    assert _deviation(sol.y, net.simulate(u, [0.0, 2.0]).y) <= FACTORS[method] * 1e-6


@pytest.mark.parametrize("orders", [[2, 1], [1, 1, 1], [2, 1, 1, 2, 1], [1, 2, 1, 2]])
@pytest.mark.parametrize("engine", ["per_neuron", "per_interval"])
def test_first_order_rates_feed_other_neurons(engine, orders):
    """Definition 1 lets ξ̇ of any later neuron enter, though layers of constructed networks have no such weights."""
    net = ltinet.DynamicNetwork(random_network([orders], 2, 2, seed=5))
    assert np.any(np.triu(net.layers[0].C, 1)[:, ~net.layers[0].is_second_order])
    for hold in ("linear", "zero"):
        sol, exact = (net.simulate(U, T, hold=hold, engine=name) for name in (engine, "exact"))
        assert _deviation(sol.y, exact.y) <= 1e-6
        assert _deviation(sol.neuron_states, exact.neuron_states) <= 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_many_equal_steps_end_at_interval_end(seed):
    """Radau fails when rounding leaves a last step of a few units in the last place, as 25 steps of 0.01 may."""
    net = ltinet.DynamicNetwork(random_network([[2, 2]], 2, 2, seed=seed))
    sol = net.simulate(U, T, engine="per_neuron", method="Radau", rtol=1e-7)
    assert _deviation(sol.y, net.simulate(U, T).y) <= 1e-4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "Euler"}, "must be one of"),
        ({"rtol": 0.0}, "positive"),
        ({"atol": -1.0}, "positive"),
        ({"method": lambda _: None}, "must be one of"),
        ({"max_step": 0.0}, "max_step"),
        ({"first_step": -1.0}, "first_step"),
        ({"across_knots": True, "hold": "zero"}, "without jumps"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_invalid_solver_options_are_rejected(net, options, message):
    with pytest.raises(ltinet.SimulationError, match=message):
        net.simulate(U, T, engine="per_neuron", **options)


def test_batch_in_two_processes():
    net = ltinet.DynamicNetwork(random_network([[1, 2], [1], [2]], 2, 2, seed=4))
    batch = np.stack([U, -U, U[::-1]])
    alone = net.simulate(batch, T, engine="per_neuron")
    here = os.getpid()
    together = net.simulate(
        batch, T, engine="per_neuron", n_jobs=2, method=lambda _: "DOP853" if os.getpid() != here else "none: not here"
    )
    # Two processes may round differently; what both promise, they keep together.
    assert np.all(np.abs(alone.y - together.y) <= alone.error_bound(T) + together.error_bound(T))
    assert _deviation(alone.y, net.simulate(batch, T).y) <= 1e-6
    assert _deviation(alone.states, net.simulate(batch, T).states) <= 1e-6
    assert alone(0.3).shape == (3, 2)


@pytest.mark.parametrize("engine", ["per_neuron", "per_interval"])
def test_function_with_derivative(net, engine):
    u = FunctionSignal(
        lambda t: [np.cos(t), np.sin(2.0 * t)], n_inputs=2, derivative=lambda t: [-np.sin(t), 2.0 * np.cos(2.0 * t)]
    )
    sol, exact = net.simulate(u, T, x0=X0, engine=engine), net.simulate(u, T, x0=X0)
    assert _deviation(sol.y, exact.y) <= 1e-6
    assert _deviation(sol(np.linspace(0.0, 2.0, 33)), exact(np.linspace(0.0, 2.0, 33))) <= 1e-6


@pytest.mark.parametrize("engine", ["per_neuron", "per_interval"])
def test_function_with_jump(net, engine):
    u = FunctionSignal(lambda t: [float(t >= 0.7), 1.0], n_inputs=2, derivative=lambda _: [0.0, 0.0], knots=[0.7])
    sol, exact = net.simulate(u, T, x0=X0, engine=engine), net.simulate(u, T, x0=X0)
    assert _deviation(sol.y, exact.y) <= 1e-6


def test_function_without_derivative_raises(net):
    with pytest.raises(ltinet.InvalidSignalError, match="derivative"):
        net.simulate(lambda t: [np.cos(t), 0.0], T, engine="per_neuron")


def test_samples_beyond_the_run(net):
    t = np.linspace(-1.0, 3.0, 17)
    u = SampledSignal(t, np.random.default_rng(5).standard_normal((17, 2)), hold="zero")
    times = np.array([0.1, 0.5, 1.9])
    for engine in ("per_neuron", "per_interval"):
        sol = net.simulate(u, times, x0=X0, engine=engine)
        assert _deviation(sol.y, net.simulate(u, times, x0=X0).y) <= 1e-6


@pytest.mark.parametrize("engine", ["per_neuron", "per_interval"])
@pytest.mark.parametrize("seed", range(8))
def test_bound_covers_pulse_that_solver_misses(seed, engine):
    """X' = −a x + e^{−((t − c)/w)²} has the solution e^{−a(t − c) + (aw/2)²} w √π/2 (erf(v(t)) − erf(v(0)))."""
    rng = np.random.default_rng(seed)
    a, c, w = rng.uniform(0.2, 3.0), rng.uniform(0.5, 3.5), 10.0 ** rng.uniform(-2.3, -1.0)
    t = np.linspace(0.0, 4.0, int(rng.integers(5, 60)))
    sol = ltinet.construct(([[-a]], [[1.0]], [[1.0]])).simulate(
        lambda s: np.exp(-(((s - c) / w) ** 2)), t, engine=engine
    )
    below, above = special.erf(-c / w - 0.5 * a * w), special.erf((t - c) / w - 0.5 * a * w)
    exact = np.exp(-a * (t - c) + (0.5 * a * w) ** 2) * 0.5 * w * math.sqrt(math.pi) * (above - below)
    rounding = 1e-14 * np.max(exact)  # of the closed form: exponents and erf to some units in the last place
    assert np.all(np.abs(sol.y[:, 0] - exact) <= sol.error_bound(t)[:, 0] + rounding)


@pytest.mark.parametrize("engine", ["exact", "per_neuron", "per_interval"])
def test_empty_batch(net, engine):
    sol = net.simulate(np.zeros((3, 0, 9, 2)), T, engine=engine)
    assert sol.y.shape == (3, 0, 9, 2)
    assert sol.error_bound().shape == (3, 0, 2)
    assert sol.error_bound(T[:4]).shape == (3, 0, 4, 2)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_solver_overflow_names_time(method):
    growing = ltinet.construct(([[1000.0]], [[1.0]], [[1.0]]))
    with pytest.raises(ltinet.SimulationError, match=r"overflows at t = 0\.6"):
        growing.simulate(np.ones(3), [0.0, 0.5, 1.0], engine="per_neuron", method=method, rtol=1e-5, atol=1e-5)


def test_input_polynomials_need_no_finer_pieces():
    rule, grid, t = radau_rule(5), np.array([0.0, 1.0, 2.0]), np.linspace(0.0, 2.0, 41)
    smooth, kink = FunctionSignal(lambda s: s**4 - s, n_inputs=1), FunctionSignal(lambda s: abs(s - 0.7), n_inputs=1)
    np.testing.assert_array_equal(_refine_grid(smooth, _InputProbe(t, smooth.value(t)), grid, rule), grid)
    refined = _refine_grid(kink, _InputProbe(t, kink.value(t)), grid, rule)
    assert set(grid) < set(refined)
    assert np.all((refined <= 1.0) | (refined == 2.0))  # beyond the kink the input is a straight line
