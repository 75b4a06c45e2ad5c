"""Rounding of single steps compared with closed forms and with steps in exact arithmetic."""

from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import integrate

from ltinet.error_bounds.step_rounding import DenseSteps, ScalarSteps, StepMagnitudes


def magnitudes(states, inputs):
    """Sizes in one cell, steps of one sample."""
    states, inputs = np.abs(states)[None], np.abs(inputs)[None]
    return StepMagnitudes(states, states, states, inputs, inputs, inputs[0])


def scalar_steps(rates, weights, *, h=1.0, width=1):
    rates = np.asarray(rates, dtype=complex)
    return ScalarSteps(rates, weights, np.ones((1, len(rates))), h, width, length_shares=None, held_inputs=False)


def exact_product(matrix, vector):
    return [sum(Fraction(a) * Fraction(x) for a, x in zip(row, vector, strict=True)) for row in matrix.tolist()]


def test_input_response_is_the_integral_of_the_worst_input():
    rates, weights = np.array([-3.0, -0.2 + 5.0j, 0.0, 0.7]), np.random.default_rng(0).uniform(0.1, 8.0, (4, 2))
    steps, inputs = scalar_steps(rates, weights, h=0.25, width=6), np.array([2.0, 0.5])
    sizes = replace(magnitudes(np.zeros(4), inputs), input_sums=np.full((1, 2), np.inf))
    integrals = [integrate.quad(lambda s, g=rate.real: np.exp(g * s), 0.0, 1.5)[0] for rate in rates]
    np.testing.assert_allclose(steps.input_response(sizes)[0], integrals * (weights @ inputs), rtol=1e-12)


@pytest.mark.parametrize("z", [-1.0, -30.0, 1.0, 3.0j, -4.0 + 2.0j])
def test_delay_response_of_straight_lines_matches_mpmath(z):
    with mpmath.workdps(30):
        first = mpmath.hyp1f1(1, 2, mpmath.mpmathify(z))
        second = mpmath.hyp1f1(1, 3, mpmath.mpmathify(z)) / 2
        expected = float(abs(first) + 2 * abs(second))
    weights = np.array([[3.0, 0.25]])
    np.testing.assert_allclose(scalar_steps([z], weights).delay_response(linear=True), expected * weights, rtol=1e-13)


@pytest.mark.parametrize("h", [0.1, 2.0])
def test_local_errors_cover_a_dense_step(h):
    rng = np.random.default_rng(1)
    F, G = np.array([[-0.5, 2.0, 1.0], [-2.0, -0.5, 0.3], [0.0, 0.0, -1.0]]), rng.standard_normal((3, 2))
    with mpmath.workdps(40):
        augmented = mpmath.zeros(5)
        augmented[:3, :3], augmented[:3, 3:] = mpmath.matrix(F.tolist()), mpmath.matrix(G.tolist())
        exponential = mpmath.expm(augmented * h)
        P = np.array(exponential[:3, :3].tolist(), dtype=float)
        Gamma = np.array(exponential[:3, 3:].tolist(), dtype=float)
    steps = DenseSteps(F, np.abs(G), np.eye(3), h, 1, None, held_inputs=False, computed_exponential=lambda _: P)
    for size in (0.0, 1e-3, 1.0):  # of states beside inputs
        for _ in range(20):
            z, u = size * rng.standard_normal(3), rng.standard_normal(2)
            with mpmath.workdps(40):
                exact = (exponential * mpmath.matrix([*z, *u]))[:3]
                error = np.array([float(abs(a - b)) for a, b in zip(P @ z + Gamma @ u, exact, strict=True)])
            assert np.all(error <= steps.local_errors(magnitudes(z, u))[0])


def test_local_errors_cover_steps_shorter_than_all_levels():
    # The exponential of a whole step is a short series, so that there is one level; all steps have length h/64.
    rng = np.random.default_rng(2)
    F = 0.1 * rng.standard_normal((3, 3))
    shares = np.eye(7)[6:]
    steps = DenseSteps(
        F, np.ones((3, 1)), np.eye(3), 1.0, 1, shares, held_inputs=False, computed_exponential=lambda _: np.eye(3)
    )
    assert len(steps.chain.errors) == 1
    P = np.eye(3) + F / 64 + F @ F / 8192
    for _ in range(20):
        z = rng.standard_normal(3)
        error = [abs(float(Fraction(x) - y)) for x, y in zip((P @ z).tolist(), exact_product(P, z), strict=True)]
        assert np.all(error <= steps.local_errors(magnitudes(z, np.zeros(1)))[0])
