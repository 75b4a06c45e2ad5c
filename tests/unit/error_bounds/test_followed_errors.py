"""Error estimates and bounds of piecewise polynomial dense outputs."""

import numpy as np
import pytest
from numpy.polynomial import chebyshev

from ltinet._util.piecewise_polynomials import PiecewisePolynomial
from ltinet.error_bounds.defect import (
    LayerDenseOutput,
    PiecewiseValues,
    bound_layer_error,
    common_pieces,
    evaluate_on_pieces,
    integrated_defect,
    max_over_cells,
    radau_rule,
    solve_error_equation,
)
from ltinet.error_bounds.gains import LayerEquations, layer_gains


@pytest.mark.parametrize("n_nodes", [2, 5, 9, 16])
def test_radau_rule_is_exact_for_polynomials(n_nodes):
    rule = radau_rule(n_nodes)
    assert rule.nodes[-1] == pytest.approx(1.0)
    for power in range(n_nodes):
        values = rule.nodes**power
        np.testing.assert_allclose(rule.integrals @ values, rule.nodes ** (power + 1) / (power + 1), atol=1e-13)
        assert rule.at_start @ values == pytest.approx(0.0**power, abs=1e-11)
    series = rule.to_series @ np.append(0.0, rule.nodes) ** n_nodes
    middle = chebyshev.chebval(0.0, series)
    assert middle == pytest.approx(0.5**n_nodes, abs=1e-12)


@pytest.mark.parametrize("n_nodes", [3, 8, 16])
def test_node_polynomial_is_largest_at_the_start(n_nodes):
    # The reason why the defect of a corrected solution is needed there only.
    nodes = radau_rule(n_nodes).nodes
    x = np.linspace(0.0, 1.0, 2001)
    product = np.prod((nodes - x[:, None]) / nodes, axis=1)
    assert np.max(np.abs(product)) <= 1.0 + 1e-12


def test_evaluate_on_pieces_matches_chebval():
    rng = np.random.default_rng(0)
    breaks, coefficients = np.array([0.0, 0.5, 2.0]), rng.standard_normal((2, 4, 1))
    grid, rule = np.array([0.0, 0.25, 0.5, 1.0, 2.0]), radau_rule(5)
    values = evaluate_on_pieces(PiecewisePolynomial(breaks, coefficients), grid=grid, rule=rule)
    for piece in range(4):
        parent = 0 if piece < 2 else 1
        left, right = breaks[parent : parent + 2]
        times = grid[piece] + (grid[piece + 1] - grid[piece]) * np.append(0.0, rule.nodes)
        expected = chebyshev.chebval(2 * (times - left) / (right - left) - 1, coefficients[parent, :, 0])
        np.testing.assert_allclose(np.append(values.start[piece], values.nodes[piece]), expected, atol=1e-14)


def straight_lines(decay, grid):
    """exp(−decay t) as a solver with straight lines between its steps would give it, and its record without input."""
    at = np.exp(-decay * grid)
    coefficients = np.stack([(at[:-1] + at[1:]) / 2, (at[1:] - at[:-1]) / 2], axis=1)[:, :, None]
    outputs = (PiecewisePolynomial(grid, coefficients),)
    grid, rule = common_pieces(outputs, np.empty(0))
    none = PiecewiseValues(np.zeros((len(grid) - 1, 1)), np.zeros((len(grid) - 1, rule.n_nodes, 1)))
    return LayerDenseOutput(outputs, grid, rule, none, none, np.zeros(1), np.zeros(1))


def test_error_estimate_matches_the_error():
    decay, grid = 3.0, np.linspace(0.0, 1.0, 9)
    layer = LayerEquations(np.array([[-decay]]), np.zeros((1, 0)), np.zeros((1, 0)), ((0,),))
    record = straight_lines(decay, grid)
    bound = bound_layer_error(layer_gains(layer, horizon=1.0), record, cells=np.linspace(0.0, 1.0, 5))
    t = np.linspace(0.0, 1.0, 101)
    error = np.exp(-decay * t) - np.interp(t, grid, np.exp(-decay * grid))
    # Five nodes on pieces of length 3/8 decay times leave about 1e-9.
    assert np.max(np.abs(bound.error_estimate(t)[:, 0] - error)) <= 1e-8
    cell = np.minimum((t * 4).astype(int), 3)
    assert np.all(np.abs(bound.error_estimate(t)[:, 0] - error) <= bound.rest[cell, 0])
    assert np.all(
        np.abs(error) <= bound.output_error(np.linspace(0.0, 1.0, 5), np.ones((1, 1)))[cell, 0] + bound.rest[cell, 0]
    )


def test_error_estimate_includes_jumps():
    # ẑ = 0, then 1 from t = 0.5 on, for z' = −z: the error is −exp(0.5 − t) + … there, zero before.
    rule, lengths = radau_rule(6), np.array([0.5, 0.5])
    dense = PiecewiseValues(np.array([[0.0], [1.0]]), np.stack([np.zeros((6, 1)), np.ones((6, 1))]))
    F, none = np.array([[-1.0]]), PiecewiseValues(np.zeros((2, 1)), np.zeros((2, 6, 1)))
    defect = integrated_defect(F, none, dense, lengths=lengths, rule=rule)
    error = solve_error_equation(F, defect, np.array([[0.0], [-1.0]]), lengths=lengths, rule=rule)
    np.testing.assert_allclose(error.nodes[:, -1, 0], [0.0, -1.0], atol=1e-12)  # the exact solution is zero


def test_max_over_cells():
    grid, values = np.array([0.0, 1.0, 2.0, 4.0]), np.array([[1.0], [5.0], [2.0]])
    found = max_over_cells(grid, values, np.array([0.0, 0.5, 1.5, 2.0, 4.0]))
    np.testing.assert_array_equal(found[:, 0], [1.0, 5.0, 5.0, 2.0])
