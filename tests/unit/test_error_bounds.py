"""Hypothesis: every solution can say how wrong it may be, whatever it was made from, and certificates need no run."""

import pickle

import numpy as np
import pytest
from scipy import linalg

import ltinet
from network_examples import random_parameters

ENGINES = ["exact", "per_neuron", "per_interval"]
T = np.linspace(0.0, 1.0, 9)


@pytest.fixture(scope="module")
def net():
    return ltinet.construct(ltinet.named_system("triangular", n_states=4), n_layers=2)


def inputs(count=1, seed=0):
    return np.random.default_rng(seed).standard_normal((count, len(T), 4))


def outputs_for_sine(system, omega):
    """Outputs at T for sin ωt at all inputs: the sine is made by two more states, and the exponential is exact."""
    n = system.n_states
    A = np.zeros((n + 2, n + 2))
    A[:n, :n], A[:n, n] = system.A, np.sum(system.B, axis=1)
    A[n, n + 1], A[n + 1, n] = omega, -omega
    states = np.array([linalg.expm(A * t)[:, n + 1] for t in T])
    return states[:, :n] @ system.C.T + np.multiply.outer(states[:, n], np.sum(system.D, axis=1))


@pytest.mark.parametrize("engine", ENGINES)
def test_shapes_are_those_of_the_outputs(net, engine):
    batch = net.simulate(inputs(2), T, engine=engine)
    assert batch.error_bound().shape == (2, 4)
    assert batch.error_bound([0.1, 0.2, 0.9]).shape == (2, 3, 4)
    assert batch.error_bound(0.3).shape == (2, 4)
    single = net.simulate(inputs()[0], T, engine=engine)
    np.testing.assert_allclose(single.error_bound(), net.simulate(inputs(), T, engine=engine).error_bound()[0])


@pytest.mark.parametrize("engine", ENGINES)
def test_no_time_has_a_larger_bound_than_all_times(net, engine):
    options = {} if engine == "exact" else {"rtol": 1e-4, "atol": 1e-4}
    solution = net.simulate(inputs()[0], T, engine=engine, **options)
    times = T if engine == "exact" else np.linspace(0.0, 1.0, 301)  # those of the outputs, or all
    assert np.all(solution.error_bound(times) <= solution.error_bound() * (1.0 + 1e-12) + 1e-15)


def test_parts_have_names_and_add_up(net):
    solution = net.simulate(inputs()[0], T, engine="per_neuron", method="RK23", rtol=1e-4, atol=1e-4)
    parts = solution.error_parts(T)
    assert list(parts) == ["solver", "rounding", "decomposition"]
    np.testing.assert_allclose(sum(parts.values()), solution.error_bound(T))
    assert np.max(parts["solver"]) > 1e3 * np.max(parts["rounding"])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_single_time_is_off_by_rounding_only(net, engine):
    solution = net.simulate(inputs()[0, :1], T[:1], x0=np.ones(4), engine=engine)
    assert np.all(solution.error_bound() < 1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_functions_have_bounds_too(net, engine):
    signal = ltinet.FunctionSignal(
        lambda t: [np.sin(3 * t)] * 4, n_inputs=4, derivative=lambda t: [3 * np.cos(3 * t)] * 4
    )
    options = {"input_tolerance": 1e-4} if engine == "exact" else {"rtol": 1e-5, "atol": 1e-5}
    solution = net.simulate(signal, T, engine=engine, **options)
    assert np.all(
        np.abs(solution.y - outputs_for_sine(ltinet.named_system("triangular", n_states=4), 3.0))
        <= solution.error_bound(T)
    )
    assert ("input" in solution.error_parts()) == (engine == "exact")


def test_integration_across_knots_is_judged_by_what_it_missed(net):
    u = inputs()[0]
    crossed = net.simulate(u, T, engine="per_neuron", across_knots=True, rtol=1e-3, atol=1e-3)
    error = np.abs(crossed.y - net.simulate(u, T).y)
    assert np.all(error <= crossed.error_bound(T))
    assert np.max(crossed.error_bound()) < 1e3 * np.max(error)


@pytest.mark.parametrize("engine", ENGINES)
def test_networks_of_parameters_alone_have_no_decomposition(engine):
    net = ltinet.DynamicNetwork.from_parameters(random_parameters([[1, 2], [2]], 4, 1, seed=2))
    solution = net.simulate(inputs()[0], T, engine=engine)
    assert np.all(solution.error_parts().get("decomposition", 0.0) == 0.0)
    assert np.all(solution.error_bound() < 1e-6)


def test_a_loaded_network_assumes_what_it_cannot_measure(net, tmp_path):
    net.save(tmp_path / "net.safetensors")
    loaded = ltinet.load(tmp_path / "net.safetensors")
    mine, theirs = (own.certificate(horizon=1.0).decomposition for own in (net, loaded))
    assert np.all(mine <= theirs)
    assert np.all(theirs < 1e-11)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_solution_that_was_pickled_says_the_same(net, engine):
    solution = net.simulate(inputs()[0], T, engine=engine)
    again = pickle.loads(pickle.dumps(solution))  # noqa: S301 - our own bytes
    np.testing.assert_array_equal(again.error_bound(), solution.error_bound())


@pytest.mark.parametrize("engine", ENGINES)
def test_a_static_gain_is_off_by_rounding_only(engine):
    static = ltinet.construct((np.zeros((0, 0)), np.zeros((0, 4)), np.zeros((1, 0)), np.ones((1, 4))))
    assert static.simulate(inputs()[0], T, engine=engine).error_bound()[0] < 1e-12


def test_a_certificate_reads_well_and_scales_with_the_horizon(net):
    short, long = net.certificate(horizon=1.0), net.certificate(horizon=10.0)
    assert "rounding" in str(short)
    np.testing.assert_allclose(short.total, short.rounding + short.decomposition)
    assert np.all(short.gain <= long.gain)


@pytest.mark.parametrize("horizon", [-1.0, 0.0, np.nan, np.inf, "1", None, [1.0], 1j])
def test_a_certificate_refuses_a_horizon_that_is_no_time(net, horizon):
    with pytest.raises(ltinet.SimulationError, match="horizon must be"):
        net.certificate(horizon=horizon)


@pytest.mark.parametrize("n_steps", [0, -3, 2.5, "10", None])
def test_a_certificate_refuses_what_is_no_number_of_steps(net, n_steps):
    with pytest.raises(ltinet.SimulationError, match="n_steps must be"):
        net.certificate(horizon=1.0, n_steps=n_steps)


def test_chosen_tolerances_meet_the_target_with_fewer_evaluations_than_the_tightest_for_all():
    net = ltinet.construct(ltinet.named_system("triangular", n_states=4), n_layers=2)
    t = np.linspace(0.0, 4.0, 5)
    u = np.sin(np.outer(t, np.arange(1, 5) / 2))
    chosen = ltinet.tolerances_for(net, target=1e-3, u=u, t=t, method="RK23")
    solution = net.simulate(u, t, engine="per_neuron", method="RK23", rtol=chosen.rtol, atol=chosen.atol)
    assert np.max(solution.error_bound()) == chosen.bound <= 1e-3
    assert solution.stats["total_evaluations"] == chosen.evaluations
    tightest = min(chosen.rtol.values())
    for_all = net.simulate(u, t, engine="per_neuron", method="RK23", rtol=tightest, atol=tightest)
    assert chosen.evaluations < for_all.stats["total_evaluations"]


def test_a_target_below_rounding_is_refused(net):
    with pytest.raises(ltinet.SimulationError, match="rounding"):
        ltinet.tolerances_for(net, target=1e-17, u=inputs()[0], t=T)
    with pytest.raises(ltinet.SimulationError, match="target"):
        ltinet.tolerances_for(net, target=0.0, u=inputs()[0], t=T)
