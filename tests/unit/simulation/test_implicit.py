"""Implicit runs of sparse models agree with exact ones within their error estimate."""

import numpy as np
import pytest
from scipy import sparse

from ltinet import FunctionSignal, InvalidSignalError, SimulationError, StateSpace, named_system

T = np.linspace(0.0, 0.3, 16)


def plate(n=100, **matrices):
    own = named_system("convection_diffusion_plate", n=n, V=30.0)
    return StateSpace(own.sparse.A, own.B, own.C, **matrices)


def assert_near(system, u, tolerance, **options):
    exact, run = system.simulate(u, T, **options), system.simulate(u, T, tolerance=tolerance, **options)
    peak = np.abs(exact.y).max(axis=-2)
    assert run.y.shape == exact.y.shape
    assert np.all(run.error_estimate <= tolerance * peak)
    between = np.linspace(0.003, 0.297, 40)
    for times in (T, between):
        error = np.abs(run(times) - exact(times)).max(axis=-2)
        assert np.all(error <= run.error_estimate + exact.error_bound())


@pytest.mark.parametrize("hold", ["linear", "zero"])
@pytest.mark.parametrize("tolerance", [1e-3, 1e-6])
def test_implicit_batch_from_state(hold, tolerance):
    rng = np.random.default_rng(4)
    u, x0 = rng.standard_normal((3, len(T), 2)), rng.standard_normal((3, 100))
    assert_near(plate(), u, tolerance, hold=hold, x0=x0)


def test_implicit_function_feedthrough_and_mass_matrix():
    n = 81
    E = sparse.diags_array([np.full(n - 1, 0.2), 2.0 + np.arange(n) % 4, np.full(n - 1, 0.2)], offsets=[-1, 0, 1])
    system = plate(n, D=[[1.0, 0.0], [0.0, -2.0]], E=E)
    assert_near(system, lambda t: np.stack([np.sin(30.0 * t), np.exp(-t)], -1), 1e-5)


def test_implicit_no_input_and_unstable_models():
    A = sparse.csr_array(sparse.diags_array([3.0, -50.0, -1e4]))
    system = StateSpace(A, np.ones(3), np.eye(3))
    run = system.simulate(None, T, x0=[1.0, 1.0, 1.0], tolerance=1e-7)
    expected = np.exp(np.outer(T, [3.0, -50.0, -1e4]))
    assert np.all(np.abs(run.y - expected) <= run.error_estimate)


def test_sdirk_has_order_four():
    # x' = −x + cos 9t from rest, solved with fixed steps by a large tolerance and knots where steps shall end.
    system = StateSpace(sparse.csr_array([[-1.0]]), [1.0], [1.0])
    exact = (np.cos(9.0 * 2.0) + 9.0 * np.sin(9.0 * 2.0) - np.exp(-2.0)) / 82.0
    errors = []
    for steps in (64, 128):
        knots = np.linspace(0.0, 2.0, steps + 1)
        u = ltinet_function(knots)
        errors.append(abs(system.simulate(u, [0.0, 2.0], tolerance=0.1).y[-1, 0] - exact))
    assert 3.5 <= np.log2(errors[0] / errors[1]) <= 4.6


def ltinet_function(knots):

    return FunctionSignal(lambda t: np.cos(9.0 * t), n_inputs=1, knots=knots)


def test_large_model_reports_estimate_without_bound():
    n = 3600
    system = named_system("heat_plate", n=n)
    run = system.simulate(np.ones((3, 2)), [0.0, 0.05, 0.1], tolerance=1e-4)
    assert run.stats["engine"] == "implicit"
    assert np.isinf(run.error_bound()).all()
    assert "no bound" in run.notes[0]
    # Heat from a quarter of the plate: after 0.1 close to rest, which is H(0) 1.
    modes = (2.0 * np.arange(1, 4) - 1.0) * np.pi
    assert np.all(np.abs(run.y[-1] - system.dcgain().sum(axis=1)) <= np.exp(-2.0 * modes[0] ** 2 * 0.1) * 0.02)
    with pytest.raises(SimulationError, match="states of a large sparse model are not stored"):
        _ = run.states
    with pytest.raises(SimulationError, match="no neurons"):
        _ = run.neuron_states


@pytest.mark.parametrize(
    ("system", "options", "error", "message"),
    [
        (plate(), {"tolerance": 1e-20}, SimulationError, "tolerance must be from"),
        (plate(), {"tolerance": 1e-3, "x0": np.ones(3)}, InvalidSignalError, "x0 has shape"),
        (plate(), {"tolerance": 1e-3, "x0": np.ones((2, 100))}, InvalidSignalError, "batch of shape"),
        (StateSpace([[-1.0]], [1.0], [1.0]), {"tolerance": 1e-3}, SimulationError, "Omit tolerance"),
        (plate(E=sparse.csr_array((100, 100))), {"tolerance": 1e-3}, SimulationError, "E is singular"),
        (plate(dt=0.1), {"tolerance": 1e-3}, Exception, "discrete"),
    ],
)
def test_implicit_rejects_invalid_arguments(system, options, error, message):
    u = np.ones((len(T), system.n_inputs))
    with pytest.raises(error, match=message):
        system.simulate(u, T, **options)


def test_implicit_overflow_raises():
    system = StateSpace(sparse.csr_array([[1e5]]), [1.0], [1.0])
    with pytest.raises(SimulationError, match=r"overflow|too short"):
        system.simulate(None, [0.0, 1.0], x0=[1.0], tolerance=1e-3)
