"""Hypothesis: with vanishing products a model with products responds as its linear part does, by every own method."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import linalg

import ltinet
from network_examples import pattern_block
from support.tiers import n_examples

_MAX_CONDITION = 30.0  # of T, which multiplies rounding errors in either run: 30 eps is 7e-15


@st.composite
def linear_runs(draw):
    """A stable system of up to seven coupled states with samples of its input, at times with jumps, and a state."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    A = pattern_block(draw(st.integers(0, 3)), draw(st.integers(0, 2)), seed=int(rng.integers(2**32)))
    n, m, p = len(A), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    t = np.cumsum(rng.choice([0.125, 0.25, 0.5], size=draw(st.integers(2, 30))))
    t = np.sort(np.append(t, rng.choice(t)))
    matrices = A, rng.standard_normal((n, m)), rng.standard_normal((p, n)), rng.standard_normal((p, m))
    return matrices, rng.standard_normal((len(t), m)), t, rng.standard_normal(n)


def vanishing_models(A, B, C, D, size):
    """Models of all classes whose products have matrices of the given size."""
    n, m = B.shape
    N = [size * np.ones((n, n))] * m
    yield ltinet.Bilinear(A, B, C, D, N), None
    yield ltinet.QuadraticBilinear(A, B, C, D, N, H=size * np.ones((n, n * n))), None
    lpv = {
        "A_p": [N[0]],
        "B_p": [size * np.ones((n, m))],
        "C_p": [size * np.ones(C.shape)],
        "D_p": [size * np.ones(D.shape)],
    }
    yield ltinet.LPV(A, B, C, D, **lpv), 1.0


@pytest.mark.parametrize("size", [0.0, 1e-40])
@pytest.mark.parametrize("hold", ["linear", "zero"])
@settings(
    max_examples=n_examples(8), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)  # fmt: skip
@given(run=linear_runs())
def test_vanishing_products_leave_the_linear_response(size, hold, run):
    matrices, u, t, x0 = run
    linear = ltinet.construct(matrices, max_condition=_MAX_CONDITION)
    expected = linear.simulate(u, t, x0=x0, hold=hold).y
    peak = np.abs(expected).max(axis=0)
    for model, scheduling in vanishing_models(*matrices, size):
        net = ltinet.construct(model, max_condition=_MAX_CONDITION)
        p = None if scheduling is None else np.full(len(t), scheduling)
        methods = [None, "collocation"]
        methods += ["exact_steps"] if hold == "zero" and model.terms.H is None else []
        for method in methods:
            y = net.simulate(u, t, p=p, x0=x0, hold=hold, method=method, tol=1e-11).y
            assert np.all(np.abs(y - expected).max(axis=0) <= 1e-13 * peak)


@pytest.mark.parametrize("hold", ["linear", "zero"])
def test_vanishing_products_against_exponentials(hold):
    """Reference of the linear response: a matrix exponential for each step, with the input as states."""
    rng = np.random.default_rng(3)
    A, B, C = rng.normal(size=(4, 4)) - 3.0 * np.eye(4), rng.normal(size=(4, 1)), rng.normal(size=(2, 4))
    t, u, x = 0.25 * np.arange(41), rng.normal(size=41), rng.normal(size=4)
    x0, expected = x, [C @ x]
    for k in range(40):
        slope = (u[k + 1] - u[k]) / 0.25 if hold == "linear" else 0.0
        M = np.zeros((6, 6))
        M[:4, :4], M[:4, 4], M[4, 5] = A, B[:, 0], 1.0
        x = (linalg.expm(0.25 * M) @ np.concatenate([x, [u[k], slope]]))[:4]
        expected.append(C @ x)
    for model, scheduling in vanishing_models(A, B, C, np.zeros((2, 1)), 1e-40):
        p = None if scheduling is None else np.ones(41)
        y = ltinet.construct(model).simulate(u, t, p=p, x0=x0, hold=hold, tol=1e-11).y
        assert np.all(np.abs(y - expected).max(axis=0) <= 1e-13 * np.abs(expected).max(axis=0))
