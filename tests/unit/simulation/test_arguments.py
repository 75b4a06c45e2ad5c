"""Options without effect or meaning are rejected by name before a run."""

import inspect
import os
import signal

import numpy as np
import pytest

import ltinet
from ltinet.simulation.options import validate_n_jobs

T = np.linspace(0.0, 1.0, 5)
U = np.ones((5, 4))
SOLVER_OPTIONS = {
    "method": "DOP853", "rtol": 1e-6, "atol": {0: 1e-6}, "first_step": 0.1, "max_step": np.inf, "across_knots": False,
}  # fmt: skip
NO_NUMBERS = ["a", "1e-6", b"1", None, np.nan, np.inf, -1.0, 0, 1j, [1e-6], (1,), {}, True, np.datetime64("2024-01-01")]


@pytest.fixture(scope="module")
def net():
    return ltinet.construct(ltinet.named_system("triangular", n_states=4), n_layers=2)


@pytest.mark.parametrize("name", SOLVER_OPTIONS)
def test_exact_engine_rejects_solver_options(net, name):
    with pytest.raises(
        ltinet.SimulationError, match=rf'engine="exact" does not accept {name}.*engine="per_neuron" and'
    ) as caught:
        net.simulate(U, T, **{name: SOLVER_OPTIONS[name]})
    assert 'engine="per_interval"' in str(caught.value)
    net.simulate(U, T, **{name: None})  # not given


@pytest.mark.parametrize("engine", ["per_neuron", "per_interval"])
def test_solvers_reject_input_tolerance(net, engine):
    with pytest.raises(
        ltinet.SimulationError, match=rf'engine="{engine}" does not accept input_tolerance.*engine="exact"'
    ):
        net.simulate(U, T, engine=engine, input_tolerance=1e-8)
    net.simulate(U, T, engine=engine, **SOLVER_OPTIONS)


def test_error_names_all_unknown_options(net):
    with pytest.raises(ltinet.SimulationError, match="does not accept method, rtol and across_knots"):
        net.simulate(U, T, method="nonsense", rtol=-3, across_knots=True)


@pytest.mark.parametrize("engine", ["warp", None, ["exact"], "EXACT", "\x1b[2J"])
def test_unknown_engines(net, engine):
    with pytest.raises(ltinet.SimulationError, match="engine must be one of") as caught:
        net.simulate(U, T, engine=engine)
    assert str(caught.value).isprintable()


def test_every_option_belongs_to_an_engine():
    parameters = inspect.signature(ltinet.DynamicNetwork.simulate).parameters
    # `options` are those of engines that `simulate` does not know by name.
    assert set(parameters) - {"self", "u", "t", "x0", "hold", "engine", "n_jobs", "options"} == {
        *SOLVER_OPTIONS,
        "coordinates",
        "input_tolerance",
    }
    options = (*SOLVER_OPTIONS, "coordinates", "input_tolerance")
    assert {name: parameters[name].default for name in options} == dict.fromkeys(options)


@pytest.mark.parametrize("value", [value for value in NO_NUMBERS if value not in (None, {})])
@pytest.mark.parametrize("name", ["rtol", "atol", "first_step", "max_step"])
def test_solver_numbers_must_be_positive(net, name, value):
    if name == "max_step" and value is np.inf:
        return  # no limit
    with pytest.raises(ltinet.SimulationError, match=f"{name} must be a positive, finite number"):
        net.simulate(U, T, engine="per_neuron", **{name: value})


@pytest.mark.parametrize("value", NO_NUMBERS)
@pytest.mark.parametrize("name", ["rtol", "atol"])
def test_solver_numbers_of_mappings_and_functions(net, name, value):
    for option in ({0: 1e-6, (1, 0): value}, lambda neuron: value if neuron.index else 1e-6):
        with pytest.raises(ltinet.SimulationError, match=f"{name} must be a positive, finite number"):
            net.simulate(U, T, engine="per_neuron", **{name: option})


@pytest.mark.parametrize("method", ["Euler", "", 5, ["RK45"], {0: "rk45"}, lambda _: None])
def test_unknown_methods(net, method):
    with pytest.raises(ltinet.SimulationError, match="method must be one of RK23"):
        net.simulate(U, T, engine="per_neuron", method=method)


@pytest.mark.parametrize("value", [value for value in NO_NUMBERS if value is not None] + [1e-17, 1e-300])
def test_input_tolerances(net, value):
    with pytest.raises(ltinet.SimulationError, match="input_tolerance must be"):
        net.simulate(lambda t: [t, 1.0, 2.0, 3.0], T, input_tolerance=value)


@pytest.mark.parametrize("engine", ["exact", "per_neuron", "per_interval"])
@pytest.mark.parametrize("n_jobs", [1.5, 1.0, 0, -(os.cpu_count() or 1) - 1, -1000, "2", None, True, [1], 1j, np.nan])
def test_invalid_n_jobs(net, engine, n_jobs):
    with pytest.raises(ltinet.SimulationError, match="n_jobs must be a positive integer"):
        net.simulate(U, T, engine=engine, n_jobs=n_jobs)


def test_validate_n_jobs():
    cores = os.cpu_count() or 1
    for n_jobs in (1, 7, np.int64(3), -1, -cores):
        assert validate_n_jobs(n_jobs) == n_jobs


@pytest.mark.parametrize("target", NO_NUMBERS)
def test_invalid_tolerance_targets(net, target):
    with pytest.raises(ltinet.SimulationError, match="target must be"):
        ltinet.tolerances_for(net, target, u=U, t=T)


@pytest.mark.slow
def test_killed_worker_raises_simulation_error(net):
    """The next run starts new workers."""
    here = os.getpid()

    def method(_):
        if os.getpid() != here:
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
        return "DOP853"

    with pytest.raises(ltinet.SimulationError, match=r"worker process was terminated.*fewer processes"):
        net.simulate(U, T, engine="per_neuron", method=method, n_jobs=2)
    alone = net.simulate(U, T, engine="per_neuron").y
    np.testing.assert_array_equal(net.simulate(U, T, engine="per_neuron", n_jobs=2).y, alone)
