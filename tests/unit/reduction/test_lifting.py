"""Fields reconstructed from solutions of reduced models, and bounds on their errors.

The oracles are matrix exponentials of the full model, whose errors are near 1e-13 of the largest value.
"""

import numpy as np
import pytest
from scipy import fft, linalg, sparse
from scipy.sparse.linalg import expm_multiply, splu

import ltinet
from ltinet import InvalidSignalError, InvalidSystemError
from ltinet.reduction import api

ORACLE = 1e-11  # relative error of the oracles, generously


def heat(k, *, mass=False, wind=0.0):
    """Heat plate of k² nodes with a consistent mass matrix and wind, if requested: E, A, B, C."""
    line = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(k, k)) * (k + 1.0)
    drift = sparse.diags_array([-wind, wind], offsets=[-1, 1], shape=(k, k))
    weights = sparse.diags_array([1.0, 4.0, 1.0], offsets=[-1, 0, 1], shape=(k, k)) / 6.0 / (k + 1.0)
    eye = sparse.eye_array(k) / (k + 1.0)
    E = sparse.kron(weights, weights) if mass else sparse.kron(eye, eye)
    A = -sparse.kron(line, eye) - sparse.kron(eye, line) - sparse.kron(drift, eye)
    B = np.zeros((k * k, 2))
    B[k // 2 : k, 0], B[-1, 1] = 1.0 / k, 1.0
    return sparse.csc_array(E), sparse.csc_array(0.5 * (A + A.T) if wind == 0.0 else A), B, np.eye(1, k * k, k * k // 3)


def plate(k, **options):
    E, A, B, C = heat(k, **options)
    return ltinet.StateSpace(A, B, C, E=E)


def held_run(system, u, h):
    """States of E x' = A x + B u with held inputs, by dense exponentials."""
    pencil = system.sparse
    E = np.eye(system.n_states) if pencil.mass is None else pencil.mass.toarray()
    A, B = np.linalg.solve(E, pencil.A.toarray()), np.linalg.solve(E, pencil.B)
    n, m = B.shape
    step = linalg.expm(h * np.block([[A, B], [np.zeros((m, n + m))]]))
    x = [np.zeros(n)]
    for value in u[:-1]:
        x.append(step[:n, :n] @ x[-1] + step[:n, n:] @ value)
    return np.array(x), E


CASES = {
    "symmetric": {"mass": False},
    "mass": {"mass": True},
    "wind": {"mass": True, "wind": 3.0},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("tolerance", [1e-2, 1e-5])
def test_fields_are_within_their_bounds(case, tolerance):
    system = plate(19, **CASES[case])
    red = ltinet.reduce(system, tolerance=tolerance)
    t, u = np.linspace(0.0, 0.5, 101), np.random.default_rng(1).standard_normal((101, 2))
    sol = red.net.simulate(u, t, hold="zero")
    x, E = held_run(system, u, t[1])
    field = red.lift(sol)
    error, noise = x - field.x, ORACLE * np.abs(x).max()
    energy = np.sqrt(np.einsum("ti,ij,tj->t", error, E, error))
    assert field.is_certified
    assert np.all(energy <= field.energy_error + noise)
    assert np.all(np.abs(error) <= field.error_bound + noise)
    # Useful bounds: not far above the errors, and small beside the field.
    assert field.energy_error.max() < 100.0 * energy.max()
    assert field.energy_error.max() < 10.0 * np.sqrt(tolerance) * np.sqrt(np.einsum("ti,ij,tj->t", x, E, x)).max()


def test_some_degrees_of_freedom_and_times_are_those_of_the_whole_field():
    red = ltinet.reduce(plate(19, mass=True), tolerance=1e-3)
    sol = red.net.simulate(np.random.default_rng(2).standard_normal((3, 6000, 2)), np.linspace(0.0, 3.0, 6000))
    whole = red.lift(sol, t=sol.t[::500])
    part = red.lift(sol, [7, 300, 2])
    assert part.x.shape == (3, 6000, 3)
    assert np.allclose(part.x[:, ::500], whole.x[..., [7, 300, 2]], rtol=0.0, atol=1e-13 * np.abs(whole.x).max())
    assert np.array_equal(part.energy_error[:, ::500], whole.energy_error)
    assert np.all(part.error_bound[:, ::500] <= whole.error_bound[..., [7, 300, 2]])
    assert np.array_equal(part.dofs, [7, 300, 2])


def test_linear_inputs_jumps_and_uneven_times_follow_the_system():
    system = plate(19)
    red = ltinet.reduce(system, tolerance=1e-8)
    t = np.concatenate([np.linspace(0.0, 0.1, 21), 0.1 + np.linspace(0.0, 0.4, 11)])  # a jump at 0.1
    u = np.random.default_rng(3).standard_normal((32, 2))
    field = red.lift(red.net.simulate(u, t), [50])
    A, B, h = system.sparse.A.toarray(), system.sparse.B, np.diff(t)
    E = system.sparse.E.toarray()
    A, B = np.linalg.solve(E, A), np.linalg.solve(E, B)
    n = len(A)
    x, values = np.zeros(n), {0.0: 0.0}
    for k, step in enumerate(h):
        if step > 0.0:
            ramp = np.zeros((n + 4, n + 4))
            ramp[:n, :n], ramp[:n, n : n + 2], ramp[n : n + 2, n + 2 :] = A * step, B * step, np.eye(2)
            x = (linalg.expm(ramp) @ np.concatenate([x, u[k], u[k + 1] - u[k]]))[:n]
        values[t[k + 1]] = x[50]
    exact = np.array([values[time] for time in field.t])
    assert np.all(np.abs(field.x[:, 0] - exact) <= field.error_bound[:, 0] + ORACLE * np.abs(exact).max())
    assert field.error_bound.max() < 1e-2 * np.abs(exact).max()


def beam(k, *, damping="rayleigh"):
    K = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(k, k), format="csc") * (k + 1.0) ** 2
    M = sparse.diags_array([1.0, 4.0, 1.0], offsets=[-1, 0, 1], shape=(k, k), format="csc") / 6.0
    D = 0.3 * M + 2e-3 * K
    if damping != "rayleigh":
        dampers = np.zeros(k)
        dampers[k // 5] = 2.0 if damping == "coupled" else 1e3
        D = sparse.csc_array(sparse.diags_array(dampers)) + (D if damping == "coupled" else 0.0 * K)
    return ltinet.SecondOrder(M, D, K, inputs=[k // 3], outputs=[k // 2])


@pytest.mark.parametrize("damping", ["rayleigh", "coupled", "local"])
def test_mechanical_fields_are_within_their_bounds(damping):
    model = beam(80, damping=damping)
    red = ltinet.reduce(model, tolerance=1e-3, method="krylov")
    t, u = np.linspace(0.0, 2.0, 81), np.random.default_rng(4).standard_normal((81, 1))
    field = red.lift(red.net.simulate(u, t, hold="zero"))
    n, M, K = model.n_positions, model.M.toarray(), model.K.toarray()
    states, _ = held_run(model.to_state_space(), u, t[1])
    q, v = states[:, :n], states[:, n:]
    error, noise = q - field.x, ORACLE * np.abs(q).max()
    energy = np.sqrt(np.einsum("ti,ij,tj->t", error, K, error))  # a part of the energy of the error
    if damping == "local":  # one damper does not make D definite
        assert not field.is_certified
        assert field.error_bound is None
    else:
        assert field.is_certified
    assert np.all(energy <= field.energy_error + noise)
    assert np.all(np.abs(error) <= field.error_estimate + noise)
    whole = np.sqrt(np.einsum("ti,ij,tj->t", q, K, q) + np.einsum("ti,ij,tj->t", v, M, v))
    assert field.energy_error.max() < whole.max()


def test_fields_without_proof_have_estimates():
    """A system that −(A + Aᵀ) does not prove to be dissipative."""
    E, A, B, C = heat(56)
    A = sparse.csc_array(A + 0.03 * sparse.diags_array([1.0], offsets=[1], shape=A.shape))
    red = ltinet.reduce(ltinet.StateSpace(A, B, C, E=E), tolerance=1e-3)
    h, n_steps = 2e-3, 40
    u = np.random.default_rng(6).standard_normal((n_steps + 1, 2))
    field = red.lift(red.net.simulate(u, h * np.arange(n_steps + 1), hold="zero"))
    assert not field.is_certified
    assert field.error_bound is None
    masses, at_rest, x = E.diagonal(), -splu(A).solve(B), np.zeros(len(B))
    G = sparse.csc_array(sparse.diags_array(h / masses) @ A)
    for step in range(n_steps):
        steady = at_rest @ u[step]
        x = expm_multiply(G, x - steady) + steady
    error = np.sqrt(masses @ (x - field.x[-1]) ** 2)
    assert 0.2 * error < field.energy_error[-1] < 1e3 * error


def test_what_cannot_be_lifted_is_one_clear_error(monkeypatch):
    monkeypatch.setattr(api, "_MAX_FIELD_NUMBERS", 4000)
    red = ltinet.reduce(plate(19), tolerance=1e-3)
    t = np.linspace(0.0, 1.0, 11)
    sol = red.net.simulate(np.ones((11, 2)), t)
    refused = [
        (lambda: red.lift(red.net.simulate(lambda t: [np.sin(t), 1.0], t)), "inputs of samples"),
        (lambda: red.lift(red.net.simulate(None, t, x0=np.ones(red.order))), "from rest"),
        (lambda: red.lift(sol.y), "takes a solution"),
        (lambda: red.lift(sol, t=[0.05]), "some of the times"),
        (lambda: red.lift(sol, t=[2.0]), "some of the times"),
        (lambda: red.lift(red.net.simulate(np.ones((12, 2)), np.arange(12.0))), r"pass dofs=\[…\]"),
        (lambda: red.lift(red.net.simulate(np.ones((500, 2)), np.arange(500.0) ** 2), [0]), "different steps"),
        (lambda: red.lift(ltinet.construct((-np.eye(1), [[1.0]], [[1.0]])).simulate(np.ones(11), t)), "1 inputs"),
    ]
    for call, message in refused:
        with pytest.raises(InvalidSignalError, match=message):
            call()
    with pytest.raises(InvalidSystemError, match="the last is 360"):
        red.lift(sol, [361])
    small = ltinet.reduce((-np.diag(np.arange(1.0, 9.0)), np.ones((8, 1)), np.ones((1, 8))), order=3)
    with pytest.raises(InvalidSystemError, match="not projected"):
        small.lift(small.net.simulate(np.ones(11), t))
    delayed = ltinet.reduce(plate(19).with_signal_settings(input_delay=0.1), tolerance=1e-3)
    with pytest.raises(InvalidSystemError, match="without delays"):
        delayed.lift(sol)


def test_solutions_of_other_models_are_refused():
    system = plate(19)
    red, other = (ltinet.reduce(ltinet.StateSpace(c * system.sparse.A, system.sparse.B, system.C, E=system.sparse.E),
                  tolerance=1e-3) for c in (1.0, 2.0))  # fmt: skip
    t = np.linspace(0.0, 1.0, 11)
    u = np.random.default_rng(7).standard_normal((11, 2))
    for run in (other.net.simulate(u, t), other.net.step_response(t), system.simulate(u, t)):
        with pytest.raises(InvalidSignalError, match="not one of this reduced model"):
            red.lift(run, t=[0.4])
    large = ltinet.named_system("heat_plate", n=56**2)
    with pytest.raises(InvalidSignalError, match="not one of this reduced model"):  # reduced to another tolerance
        ltinet.reduce(large, tolerance=1e-6).lift(large.simulate(u, t), [5])


def test_solutions_of_the_same_model_are_lifted_in_every_form():
    red = ltinet.reduce(plate(19), tolerance=1e-3)
    t = np.linspace(0.0, 1.0, 11)
    u = np.random.default_rng(7).standard_normal((11, 2))
    whole = red.lift(red.net.simulate(u, t), [5])
    for run in (red.system.simulate(u, t), ltinet.construct(red.system).simulate(u, t)):
        assert np.array_equal(red.lift(run, [5]).x, whole.x)
    for options in ({}, {"input": 1}, {"input": 0, "output": 0}):
        assert red.lift(red.net.step_response(t, **options), [5]).x.shape[-2:] == (11, 1)


def twenty_inputs(kind, t):
    """Held inputs `(20, T, 2)`."""
    rng = np.random.default_rng(5)
    noise = rng.standard_normal((20, len(t), 2))
    if kind == "steps":
        times = rng.uniform(0.0, t[-1], (20, 1, 2, 4))
        return ((t[:, None, None] >= times) * rng.standard_normal((20, 1, 2, 4))).sum(-1)
    return noise if kind == "noise" else np.cumsum(np.cumsum(noise, axis=1), axis=1) / len(t)


@pytest.mark.slow
@pytest.mark.parametrize("tolerance", [1e-4, 1e-7])
@pytest.mark.parametrize("kind", ["noise", "steps", "smooth"])
def test_twenty_random_inputs_are_within_their_bounds(tolerance, kind):
    """Against sine transforms, in which the plate is diagonal and steps are exact to rounding."""
    k, t = 60, np.linspace(0.0, 0.12, 121)

    def transform(values):
        return fft.dstn(values.reshape(-1, k, k), type=1, norm="ortho", axes=(1, 2)).reshape(len(values), -1)

    system = ltinet.named_system("heat_plate", n=k * k)
    u = twenty_inputs(kind, t)
    red = ltinet.reduce(system, tolerance=tolerance)
    field = red.lift(red.net.simulate(u, t, hold="zero"))
    sines = 4.0 * (k + 1) ** 2 * np.sin(0.5 * np.pi * np.arange(1, k + 1) / (k + 1)) ** 2
    rates, B = np.add.outer(sines, sines).ravel(), transform(system.sparse.B.T)
    z, largest = np.zeros((20, k * k)), np.zeros(20)
    for step in range(len(t) - 1):
        z = np.exp(-rates * t[1]) * z - np.expm1(-rates * t[1]) / rates * (u[:, step] @ B)
        x = transform(z)
        error, noise = x - field.x[:, step + 1], ORACLE * np.abs(x).max()
        largest = np.maximum(largest, np.linalg.norm(x, axis=1))
        assert np.all(np.linalg.norm(error, axis=1) <= field.energy_error[:, step + 1] + k * noise)
        assert np.all(np.abs(error) <= field.error_bound[:, step + 1] + noise)
    assert np.all(field.energy_error.max(axis=1) < np.sqrt(tolerance) * largest)
