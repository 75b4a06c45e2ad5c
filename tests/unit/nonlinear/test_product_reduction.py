"""Reduction of models with products: errors on inputs that the bases have not seen, and refusals."""

import numpy as np
import pytest
from scipy import linalg

import ltinet
from ltinet.nonlinear.reduction import truncated_gramians


def heat_input(t):
    return np.column_stack([-4.0 * np.exp(-t) * np.cos(7.0 * t) ** 2, -2.0 + np.sin(9.0 * t), np.cos(5.0 * t)])


def burgers_input(t):
    return 0.35 * (1.0 - np.cos(3.0 * t)) + 0.2 * np.sin(5.0 * t) ** 2


def test_balanced_truncation_of_bilinear_heat():
    reduced = ltinet.reduce_products(ltinet.named_system("boundary_heat"), order=16, scale=0.3)
    t = np.linspace(0.0, 1.0, 201)
    assert reduced.measure_error(heat_input(t), t) <= 1e-5


def test_balanced_truncation_and_pod_of_burgers():
    model = ltinet.named_system("burgers")
    t = np.linspace(0.0, 4.0, 401)
    balanced = ltinet.reduce_products(model, order=24)
    assert balanced.measure_error(burgers_input(t), t) <= 1e-5
    training = ltinet.construct(model).simulate(np.sin(2.0 * np.pi * t) ** 2, t)
    pod = ltinet.reduce_products(model, order=24, method="pod", training=training)
    assert pod.measure_error(burgers_input(t), t) <= 1e-5
    field = pod.lift(ltinet.construct(pod.model).simulate(np.sin(2.0 * np.pi * t) ** 2, t))
    assert np.abs(field - training.states).max() <= 1e-3 * np.abs(training.states).max()


def test_scheduled_models_are_reduced():
    chain = ltinet.named_system("mass_spring_damper", n_masses=8, damping=0.4)
    damper = np.zeros((16, 16))
    damper[8, 8] = -0.5
    model = ltinet.LPV(chain.A, chain.B, chain.C, A_p=[damper], scheduling=["valve"])
    reduced = ltinet.reduce_products(model, order=12)
    t = np.linspace(0.0, 20.0, 401)
    error = reduced.measure_error(np.sin(t), t, p=0.5 + 0.5 * np.sin(0.3 * t))
    assert error <= 1e-2
    assert reduced.model.scheduling_names == ("valve",)


def test_gramians_without_products_are_those_of_the_linear_part():
    rng = np.random.default_rng(0)
    A, B, C = rng.normal(size=(5, 5)) - 5.0 * np.eye(5), rng.normal(size=(5, 2)), rng.normal(size=(1, 5))
    P, Q = truncated_gramians(ltinet.Bilinear(A, B, C), 1.0)
    assert np.allclose(P, linalg.solve_continuous_lyapunov(A, -B @ B.T))
    assert np.allclose(Q, linalg.solve_continuous_lyapunov(A.T, -C.T @ C))


def test_gramian_of_quadratic_terms_is_that_of_the_kronecker_product():
    rng = np.random.default_rng(1)
    A, B, H = rng.normal(size=(4, 4)) - 5.0 * np.eye(4), rng.normal(size=(4, 1)), rng.normal(size=(4, 16))
    model = ltinet.QuadraticBilinear(A, B, np.ones((1, 4)), H=H)
    P1 = linalg.solve_continuous_lyapunov(A, -B @ B.T)
    symmetric = model.H.toarray()
    P2 = linalg.solve_continuous_lyapunov(A, -symmetric @ np.kron(P1, P1) @ symmetric.T)
    assert np.allclose(truncated_gramians(model, 1.0)[0], P1 + P2, rtol=1e-12)


def test_refusals():
    model = ltinet.named_system("burgers", n_states=10)
    unstable = ltinet.Bilinear(np.diag([1.0, -1.0]), [1, 1], [1, 1], N=[np.eye(2)])
    faults = [
        (lambda: ltinet.reduce_products(model, order=10), "order must be below"),
        (lambda: ltinet.reduce_products(model, order=4, method="pod"), "needs training"),
        (lambda: ltinet.reduce_products(model, order=4, method="krylov"), "method must be"),
        (lambda: ltinet.reduce_products(unstable, order=1), "stable A"),
        (lambda: ltinet.reduce_products(model.linear, order=4), "ltinet.reduce"),
    ]
    for call, message in faults:
        with pytest.raises(ltinet.InvalidSystemError, match=message):
            call()
