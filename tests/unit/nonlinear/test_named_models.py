"""Named models with products satisfy the equations that they are lifted from."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import ltinet


def values_with_ends(v, u):
    return np.concatenate([[u], v, v[-1:]])


def test_burgers_is_the_difference_equation():
    v, u, h = np.random.default_rng(0).normal(size=7), 0.3, 1.0 / 8.0
    full = values_with_ends(v, u)
    expected = 0.1 * np.diff(full, 2) / h**2 - v * (full[2:] - full[:-2]) / (2.0 * h)
    model = ltinet.named_system("burgers", n_states=7, viscosity=0.1)
    assert np.allclose(model.derivative(v, [u]), expected, rtol=1e-12)


def test_chafee_infante_is_lifted():
    v, u, h = np.random.default_rng(1).normal(size=7), 0.3, 1.0 / 8.0
    rate = np.diff(values_with_ends(v, u), 2) / h**2 + v - v**3
    model = ltinet.named_system("chafee_infante", points=7)
    derivative = model.derivative(np.concatenate([v, v**2]), [u])
    assert np.allclose(derivative, np.concatenate([rate, 2.0 * v * rate]), rtol=1e-12)


def test_fitzhugh_nagumo_is_lifted():
    k, eps, q = 6, 0.015, 0.05
    v, w = np.random.default_rng(2).normal(size=(2, k))
    full = np.concatenate([v[:1] + 0.7 / k, v, v[-1:]])  # v_x = −u at the left end
    rate = eps * np.diff(full, 2) * k**2 + (v * (v - 0.1) * (1.0 - v) - w + q) / eps
    model = ltinet.named_system("fitzhugh_nagumo", points=k)
    derivative = model.derivative(np.concatenate([v, w, v**2]), [0.7, 1.0])
    expected = np.concatenate([rate, 0.5 * v - 2.0 * w + q, 2.0 * v * rate])
    assert np.allclose(derivative, expected, rtol=1e-11)


def test_diode_ladder_is_lifted():
    k, u = 5, 0.3
    v = 0.01 * np.random.default_rng(3).normal(size=k)
    d = np.concatenate([v[:1], v[:-1] - v[1:]])
    current = d + np.exp(40.0 * d) - 1.0
    rate = np.concatenate([[u - current[0]], current[1:]]) - np.append(current[1:], 0.0)
    model = ltinet.named_system("diode_ladder", nodes=k)
    z = np.exp(40.0 * d) - 1.0
    change = np.concatenate([rate[:1], rate[:-1] - rate[1:]])
    expected = np.concatenate([rate, 40.0 * (z + 1.0) * change])
    assert np.allclose(model.derivative(np.concatenate([v, z]), [u]), expected, rtol=1e-10)


def test_boundary_heat_is_at_rest_at_one():
    model = ltinet.named_system("boundary_heat", points=4)
    rest = model.linearize(u0=[-3.0, -2.0, 1.0])
    assert np.all(rest.poles().real < 0.0)
    # With w = 1 on all edges but the bottom, heat flows to the bottom only; far less without control of the edges.
    assert rest.y0 > model.linearize(u0=[0.0, 0.0, 1.0]).y0 > 0.0


@pytest.mark.parametrize("name", ["boundary_heat", "burgers", "chafee_infante", "diode_ladder", "fitzhugh_nagumo"])
def test_named_models_are_listed_and_simulate(name):
    parameter = ltinet.named_system()[name].split("=")[0]
    model = ltinet.named_system(name, **{parameter: 5})
    t = np.linspace(0.0, 0.2, 21)
    u = np.zeros((21, model.n_inputs))
    u[:, 0] = 0.1 * np.sin(8.0 * t)
    solution = ltinet.construct(model).simulate(u, t, tol=1e-6)
    assert np.all(np.isfinite(solution.y))
    assert np.all(solution.error_estimate <= 3e-6 * np.abs(solution.y).max(axis=0))


def test_unknown_parameters_are_refused():
    with pytest.raises(ltinet.InvalidSystemError, match="burgers has no parameter n"):
        ltinet.named_system("burgers", n=4)
    with pytest.raises(ltinet.InvalidSystemError, match="is not linear"):
        ltinet.reduce(ltinet.named_system("burgers", n_states=4), order=2)


def smooth_input(name, t):
    if name == "boundary_heat":
        return [-5.0 * np.sin(4.0 * np.pi * t) ** 2, -3.0 * np.cos(6.0 * t) ** 2 + 1.5, np.sin(3.0 * t)]
    if name == "fitzhugh_nagumo":
        return [5e4 * t**3 * np.exp(-15.0 * t), 1.0 + 0.0 * t]
    if name == "diode_ladder":
        return [0.5 * (1.0 + np.cos(0.2 * np.pi * t))]
    return [np.sin(2.0 * np.pi * t) ** 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "parameters", "duration"),
    [
        ("boundary_heat", {"points": 7}, 1.0),
        ("burgers", {"n_states": 60}, 3.0),
        ("burgers", {"n_states": 60, "viscosity": 0.01}, 3.0),
        ("chafee_infante", {"points": 20}, 3.0),
        ("diode_ladder", {"nodes": 20}, 4.0),
        ("fitzhugh_nagumo", {"points": 20}, 3.0),
    ],
)
@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-8])
def test_smooth_runs_against_radau(name, parameters, duration, tol):
    model = ltinet.named_system(name, **parameters)
    t = np.linspace(0.0, duration, 31)

    def rate(time, x):
        return model.evaluate(x, np.array(smooth_input(name, time)), np.zeros(0))

    def jacobian(time, x):
        return model.evaluate_jacobian(x, np.array(smooth_input(name, time)), np.zeros(0)).toarray()

    x0 = np.zeros(model.n_states)
    x = solve_ivp(rate, (0.0, duration), x0, method="Radau", jac=jacobian, t_eval=t, rtol=1e-11, atol=1e-14).y.T
    y = x @ model.C.T
    solution = ltinet.construct(model).simulate(lambda time: smooth_input(name, time), t, tol=tol)
    peak, error = np.abs(y).max(axis=0), np.abs(solution.y - y).max(axis=0)
    assert np.all(error <= 3.0 * tol * peak)
    visible = error > 1e-9 * peak  # Radau's own error is about 1e-10
    assert np.all(solution.error_estimate[visible] >= 0.3 * error[visible])
    assert np.all(solution.error_estimate[visible] <= 10.0 * error[visible])


# The equations before they are lifted, solved by DOP853 with all output times as ends of steps.


def unlifted_burgers(t, v, k):
    full, h = values_with_ends(v, np.sin(3.0 * t) ** 2), 1.0 / (k + 1)
    return 0.05 * np.diff(full, 2) / h**2 - v * (full[2:] - full[:-2]) / (2.0 * h)


def unlifted_chafee_infante(t, v, k):
    return np.diff(values_with_ends(v, np.sin(3.0 * t) ** 2), 2) * (k + 1) ** 2 + v - v**3


def unlifted_fitzhugh_nagumo(t, x, k):
    eps, q, (v, w) = 0.015, 0.05, x.reshape(2, k)
    full = np.concatenate([v[:1] + 5e4 * t**3 * np.exp(-15.0 * t) / k, v, v[-1:]])
    rate = eps * np.diff(full, 2) * k**2 + (v * (v - 0.1) * (1.0 - v) - w + q) / eps
    return np.concatenate([rate, 0.5 * v - 2.0 * w + q])


def unlifted_diode_ladder(t, v, _):
    d = np.concatenate([v[:1], v[:-1] - v[1:]])
    current = d + np.expm1(40.0 * d)
    return np.concatenate([[0.5 * (1.0 + np.cos(0.6 * t)) - current[0]], current[1:]]) - np.append(current[1:], 0.0)


UNLIFTED = {
    "burgers": (unlifted_burgers, "n_states", 1, lambda t: np.sin(3.0 * t) ** 2, 1),
    "chafee_infante": (unlifted_chafee_infante, "points", 1, lambda t: np.sin(3.0 * t) ** 2, 1),
    "fitzhugh_nagumo": (unlifted_fitzhugh_nagumo, "points", 2, lambda t: [5e4 * t**3 * np.exp(-15.0 * t), 1.0], 2),
    "diode_ladder": (unlifted_diode_ladder, "nodes", 1, lambda t: 0.5 * (1.0 + np.cos(0.6 * t)), 1),
}


@pytest.mark.parametrize("name", UNLIFTED)
def test_lifted_models_solve_the_equations_that_they_are_lifted_from(name):
    rate, parameter, factor, u, n_inputs = UNLIFTED[name]
    k, t = 10, np.linspace(0.0, 2.0, 9)
    v = np.zeros(factor * k)
    states = [v]
    for ends in pairwise(t):  # dense output of DOP853 is less accurate than its steps
        v = solve_ivp(rate, ends, v, method="DOP853", rtol=1e-12, atol=1e-14, args=(k,)).y[:, -1]
        states.append(v)
    expected = np.array(states)
    model = ltinet.named_system(name, **{parameter: k})
    solution = ltinet.construct(model).simulate(ltinet.FunctionSignal(u, n_inputs=n_inputs), t, tol=1e-9)
    computed = solution.states[:, : factor * k]
    assert np.abs(computed - expected).max() <= 3e-9 * np.abs(expected).max()
    assert np.abs(expected).max() > 0.01
