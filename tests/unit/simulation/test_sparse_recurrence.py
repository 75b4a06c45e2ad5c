"""Large sparse models in discrete time: steps with sparse matrices, and clear errors of what needs dense ones."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import spsolve

import ltinet
from ltinet.errors import InvalidSystemError, SimulationError

N = 5000


def large(*, with_mass: bool = False) -> ltinet.StateSpace:
    rng = np.random.default_rng(3)
    A = sparse.diags_array([np.full(N - 1, 0.2), np.full(N, 0.5), np.full(N - 1, 0.29)], offsets=[-1, 0, 1]).tocsr()
    A = A + sparse.csr_array(([0.01], ([0], [N - 1])), shape=(N, N))
    E = sparse.diags_array([np.full(N, 1.5), np.full(N - 1, 0.2)], offsets=[0, 1]).tocsc() if with_mass else None
    B, C = np.zeros((N, 2)), np.zeros((2, N))
    B[:5] = rng.standard_normal((5, 2))
    C[:, 3:8] = rng.standard_normal((2, 5))
    return ltinet.StateSpace(A, B, C, [[0.5, 0.0], [0.0, 0.0]], E, dt=0.1)


@pytest.mark.parametrize("with_mass", [False, True])
def test_outputs_and_states_are_those_of_the_recurrence(*, with_mass: bool) -> None:
    rng = np.random.default_rng(4)
    system, u, x0 = large(with_mass=with_mass), rng.standard_normal((2, 30, 2)), rng.standard_normal(N)
    solution = system.simulate(u, x0=x0)
    assert solution.stats["algorithm"] == "sparse steps"
    assert np.isinf(solution.error_bound()).all()
    E, A, B = system.matrices.state_equation
    for member in range(2):
        x = x0
        for k in range(30):
            assert np.allclose(solution.y[member, k], system.C @ x + system.D @ u[member, k], rtol=1e-12, atol=1e-13)
            assert np.allclose(solution.states[member, k], x, rtol=0, atol=1e-12)
            x = A @ x + B @ u[member, k]
            x = x if E is None else spsolve(E.tocsc(), x)
    some = system.simulate(lambda t: np.ones((*np.shape(t), 2)), [0.0, 0.5, 2.9])
    assert np.allclose(some.y, system.simulate(np.ones((30, 2))).y[[0, 5, 29]], rtol=1e-14)
    with pytest.raises(SimulationError, match="no neurons"):
        _ = solution.neuron_states


def test_delays_and_operating_points_are_applied() -> None:
    system = large()
    u = np.random.default_rng(5).standard_normal((20, 2))
    shifted = system.with_signal_settings(input_delay=[0.2, 0.0], output_delay=[0.0, 0.1], u0=[1.0, 0.0], y0=[0.0, 3.0])
    v = u - [1.0, 0.0]
    v[:, 0] = np.concatenate([np.zeros(2), v[:-2, 0]])
    w = system.simulate(v).y
    expected = np.column_stack([w[:, 0], 3.0 + np.concatenate([[0.0], w[:-1, 1]])])
    assert np.allclose(shifted.simulate(u).y, expected, rtol=1e-13, atol=1e-13)


def test_overflow_and_options_are_reported() -> None:
    growing = ltinet.StateSpace(2.0 * sparse.eye_array(N).tocsr(), np.ones((N, 1)), np.ones((1, N)), dt=1.0)
    with pytest.raises(SimulationError, match="overflow at sample 10"):
        growing.simulate(np.ones((2000, 1)))
    with pytest.raises(SimulationError, match="tolerance"):
        growing.simulate(np.ones((20, 1)), tolerance=1e-3)
    for call in (ltinet.construct, lambda system: system.stepper(), lambda system: system.poles()):
        with pytest.raises(InvalidSystemError, match=r"system\.simulate\(u, t\)"):
            call(large())
