"""Runs by ODE solvers and their bounds do not depend on an offset of all times."""

import numpy as np
import pytest

import ltinet
from network_examples import random_network

ENGINES = ["per_neuron", "per_interval"]
K = np.array([0, 1, 2, 3, 3, 4, 5, 9, 10])
U = np.random.default_rng(1).standard_normal((len(K), 2))


@pytest.fixture(scope="module")
def net():
    return ltinet.DynamicNetwork(random_network([[1, 2], [1], [2]], 2, 2, seed=4))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("offset", [1.7e9, -1.7e9, 2.0**40])
def test_time_offset_changes_no_bit(net, engine, offset):
    """0.125 k and these offsets are dyadic, so that all differences are exact."""
    t = 0.125 * K
    here, there = (net.simulate(U, own, engine=engine, rtol=1e-6) for own in (t, offset + t))
    np.testing.assert_array_equal(there.t, offset + t)
    np.testing.assert_array_equal(there.y, here.y)
    np.testing.assert_array_equal(there.states, here.states)
    np.testing.assert_array_equal(there.neuron_states, here.neuron_states)
    between = t[0] + 0.0625 * np.arange(20)
    np.testing.assert_array_equal(there(offset + between), here(between))
    np.testing.assert_array_equal(there.error_bound(), here.error_bound())
    np.testing.assert_array_equal(there.error_bound(offset + between), here.error_bound(between))
    assert there.stats["evaluations"] == here.stats["evaluations"]


@pytest.mark.parametrize("engine", ENGINES)
def test_steps_near_rounding_of_times(engine):
    h = 2.0**-20  # four of them at 1.7e9
    net = ltinet.construct(([[-1.0 / h]], [[1.0 / h]], [[1.0]]))
    sol, exact = net.simulate(U[:, 0], 1.7e9 + K * h, engine=engine), net.simulate(U[:, 0], 1.7e9 + K * h)
    assert np.all(np.abs(sol.y - exact.y) <= sol.error_bound() + exact.error_bound())
    assert np.abs(sol.y - exact.y).max() <= 1e-6


@pytest.mark.parametrize("engine", ENGINES)
def test_signals_that_cannot_be_shifted(net, engine):
    t = np.arange(5.0) + 10.0
    early = ltinet.SampledSignal(np.arange(20.0), np.random.default_rng(2).standard_normal((20, 2)))
    wave = ltinet.FunctionSignal(
        lambda s: [np.cos(s), np.sin(s)], n_inputs=2, derivative=lambda s: [-np.sin(s), np.cos(s)]
    )
    for u in (early, wave):
        assert np.abs(net.simulate(u, t, engine=engine).y - net.simulate(u, t).y).max() <= 1e-6


def test_tolerances_for_at_offset(net):
    t = 1.7e9 + 0.125 * np.arange(9)
    chosen = ltinet.tolerances_for(net, 1e-3, u=U, t=t, method="RK23")
    sol = net.simulate(U, t, engine="per_neuron", method="RK23", rtol=chosen.rtol, atol=chosen.atol)
    assert np.all(sol.error_bound() <= 1e-3)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_failure_names_time_origin():
    growing = ltinet.construct(([[1e3]], [[1.0]], [[1.0]]))  # beyond 1e300 after 0.698
    with pytest.raises(ltinet.SimulationError, match=r"at t = 0\.6979.*times are counted from t\[0\] = 1700000000\.0"):
        growing.simulate(np.ones(3), 1.7e9 + np.arange(3.0), engine="per_neuron")


@pytest.mark.parametrize("engine", ["exact", *ENGINES])
def test_solutions_are_asked_in_durations_and_nothing_stranger(net, engine):
    sol = net.simulate(U, 0.125 * K, engine=engine)
    np.testing.assert_array_equal(sol(np.array([125, 500], dtype="m8[ms]")), sol([0.125, 0.5]))
    np.testing.assert_array_equal(sol(np.timedelta64(125, "ms")), sol(0.125))
    for ask in (sol, sol.error_bound, sol.error_parts):
        for t in ("0.1", [0.1 + 0j], np.ma.array([0.1], mask=[True]), np.array(["2024"], dtype="M8[Y]")):
            with pytest.raises(ltinet.InvalidSignalError, match=r"^t "):
                ask(t)
