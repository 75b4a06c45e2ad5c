"""Error bounds of layers from gains of their neurons."""

import numpy as np
import pytest
from scipy import linalg

from ltinet.error_bounds.gains import (
    DecompositionMismatch,
    LayerEquations,
    bound_decomposition,
    bound_rounding,
    layer_error_constant,
    layer_gains,
    layer_state_indices,
    theorem2_constant,
)
from ltinet.network.realization import realize_layer
from network_examples import random_layer


def equations(orders, seed=0):
    layer = random_layer(orders, 2, seed=seed)
    return LayerEquations(*realize_layer(layer), state_indices=layer_state_indices(layer.is_second_order))


def largest_responses(F, source, horizon, *, seed, steps=400):
    """The largest |z| of z' = F z + d for random d with |d| ≤ source, constant on steps: exact up to rounding."""
    rng = np.random.default_rng(seed)
    n, h = len(F), horizon / steps
    step = linalg.expm(np.block([[F * h, np.eye(n) * h], [np.zeros((n, 2 * n))]]))
    z, largest = np.zeros(n), np.zeros(n)
    sign = np.sign(rng.standard_normal(n))
    for _ in range(steps):
        sign = np.where(rng.random(n) < 0.05, -sign, sign)
        z = step[:n, :n] @ z + step[:n, n:] @ (sign * source)
        largest = np.maximum(largest, np.abs(z))
    return largest


@pytest.mark.parametrize("orders", [[1], [2], [1, 1, 2], [2, 1, 2, 1], [1] * 6, [2] * 4])
def test_random_responses_stay_below_the_bound(orders):
    layer = equations(orders, seed=len(orders))
    source = np.random.default_rng(1).uniform(0.1, 1.0, layer.n_states)
    bound = layer_gains(layer, horizon=5.0).propagate(source[None])[0]
    for seed in range(5):
        assert np.all(largest_responses(layer.F, source, 5.0, seed=seed) <= bound)


def test_propagate_solves_the_triangular_system():
    layer = equations([1, 2, 1, 2], seed=3)
    gains = layer_gains(layer, horizon=2.0)
    source = np.arange(1.0, layer.n_states + 1)
    Gamma = np.zeros((layer.n_states, layer.n_states))
    for places, gain in zip(layer.state_indices, gains.matrices, strict=True):
        Gamma[np.ix_(places, places)] = gain[0]
    between = np.abs(layer.F)
    for places in layer.state_indices:
        between[np.ix_(places, places)] = 0.0
    expected = np.linalg.solve(np.eye(layer.n_states) - Gamma @ between, Gamma @ source)
    np.testing.assert_allclose(gains.propagate(source[None])[0], expected, rtol=1e-12)


def test_growing_errors_are_bounded_tightly():
    # ε' = ε + d with d = exp(t): ε = t exp(t). Gains alone would square the growth.
    layer = LayerEquations(np.array([[1.0]]), np.zeros((1, 0)), np.zeros((1, 0)), ((0,),))
    cells = np.linspace(0.0, 20.0, 201)
    bound = layer_gains(layer, horizon=20.0).propagate_in_time(np.exp(cells[1:])[:, None], cells=cells)[:, 0]
    true = cells[1:] * np.exp(cells[1:])
    assert np.all(bound >= true)
    assert bound[-1] <= 5.0 * true[-1]


def test_layer_constant_is_far_below_theorem2():
    ratios = []
    for seed in range(20):
        gains = layer_gains(equations([1, 2] * 5, seed=seed), horizon=10.0)
        assert layer_error_constant(gains) <= theorem2_constant(gains)
        ratios.append(theorem2_constant(gains) / layer_error_constant(gains))
    assert min(ratios) >= 1e3


def test_theorem2_constant_is_a_geometric_sum():
    # Three equal neurons ξ̇ + ξ = f, each fed by the next with weight 2: C = 2 (1 − e^−T).
    F = np.array([[-1.0, 2.0, 0.0], [0.0, -1.0, 2.0], [0.0, 0.0, -1.0]])
    layer = LayerEquations(F, np.zeros((3, 0)), np.zeros((3, 0)), ((0,), (1,), (2,)))
    C = 2.0 * -np.expm1(-3.0)
    assert theorem2_constant(layer_gains(layer, horizon=3.0)) == pytest.approx(1.0 + C + C**2)


def pair_rounding(omega):
    """Rounding bound of a pair with frequency and times in units of 1/ω, and ξ̇ in units of ω."""
    F = np.array([[0.0, 1.0], [-(omega**2), -0.2 * omega]])
    layer = LayerEquations(F, np.array([[0.0], [omega**2]]), np.zeros((2, 1)), ((0, 1),))
    cells = np.linspace(0.0, 3.0, 5) / omega
    start = np.array([1.0, 0.5 * omega])
    gains = layer_gains(layer, horizon=3.0 / omega)
    bound = bound_rounding(gains, largest_input=np.ones(1), start=start, step=0.125 / omega, cells=cells)
    return bound.error / [1.0, omega]


@pytest.mark.parametrize("omega", [2.0**-10, 2.0**10])
def test_rounding_bound_of_a_pair_is_independent_of_the_unit_of_time(omega):
    np.testing.assert_allclose(pair_rounding(omega), pair_rounding(1.0), rtol=1e-13)


@pytest.mark.parametrize("rate", [-1.0, 0.0, 2.0])
def test_decomposition_bound_covers_the_rounding_of_the_start(rate):
    # Without ΔF and ΔG the error is shift · exp(rate t), and the bound is shift (1 + |rate| ∫exp(rate s) ds) at most.
    layer = LayerEquations(np.array([[rate]]), np.zeros((1, 0)), np.zeros((1, 0)), ((0,),))
    mismatch = DecompositionMismatch(np.zeros((1, 1)), np.zeros((1, 0)), np.zeros((1, 1)), np.array([[1e-3]]))
    cells, shift = np.linspace(0.0, 1.0, 5), 2e-3
    bound = bound_decomposition(
        (layer_gains(layer, horizon=1.0),),
        mismatch,
        size=np.ones((4, 1)),
        largest_input=np.zeros(0),
        start=np.array([-2.0]),
        cells=cells,
    )[:, 0]
    true = shift * np.exp(np.maximum(rate * cells[:-1], rate * cells[1:]))
    assert np.all(bound >= (1.0 - 1e-14) * true)
    assert np.all(bound <= (1.0 + 1e-14) * shift * (1.0 + abs(np.expm1(rate))))


def test_decomposition_bound_is_infinite_without_contraction():
    # ε' = ΔF (z + ε) with ΔF T = 1 in the first of two integrators: the fixed point b/(1 − r) does not exist.
    layer = LayerEquations(np.zeros((2, 2)), np.zeros((2, 0)), np.zeros((2, 0)), ((0,), (1,)))
    mismatch = DecompositionMismatch(np.diag([1.0, 0.0]), np.zeros((2, 0)), np.zeros((1, 2)), np.zeros((2, 2)))
    bound = bound_decomposition(
        (layer_gains(layer, horizon=1.0),),
        mismatch,
        size=np.ones((1, 2)),
        largest_input=np.zeros(0),
        start=np.zeros(2),
        cells=np.array([0.0, 1.0]),
    )
    assert np.all(np.isposinf(bound))
