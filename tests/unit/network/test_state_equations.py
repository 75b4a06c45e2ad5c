"""Hypothesis: any layer of Definition 7 is a first-order system without u̇, with the same transfer function.

Not only constructed layers: first-order neurons anywhere, c_ij from first-order neurons, u̇ into first-order neurons,
m and c other than 1. The oracle is (M s² + C s + K)⁻¹ (E + V s) in 50 digits.
"""

import numpy as np
import pytest

from ltinet.network.layer import HorizontalLayer
from ltinet.network.maps import m_lti
from ltinet.network.network import Network
from ltinet.network.realization import modal_blocks, realize_layer, sparse_block_diagonal, to_state_space
from network_examples import (
    exact,
    layer_response,
    network_response,
    pattern_block,
    random_layer,
    random_network,
    rounded,
    solve,
    system_response,
)

EPS = np.finfo(float).eps
ARRANGEMENTS = [[1], [2], [1, 2], [2, 1], [1, 1, 1], [2, 2, 2], [2, 1, 2, 1], [1, 2, 1, 2, 2], [2, 1, 1, 2]]
POINTS = (0.3j, 1.0 + 2.0j, 20.0j)


def realised_response(part, s):
    """(ξ, ξ̇) from z' = F z + G u, (ξ, ξ̇) = z + J u, in 50 digits."""
    n = len(part.F)
    left = complex(s) * exact(np.eye(n)) - exact(part.F)
    return rounded(solve(left, exact(part.G)) + exact(part.J))


@pytest.mark.parametrize("s", POINTS)
@pytest.mark.parametrize("orders", ARRANGEMENTS, ids=lambda orders: "".join(map(str, orders)))
def test_any_layer_keeps_its_transfer_function(orders, s):
    layer = random_layer(orders, n_inputs=2, seed=len(orders))
    part = realize_layer(layer)
    xi = rounded(layer_response(layer, s))
    expected = np.vstack([xi, s * xi[np.array(orders) == 2]])
    # F and G come from triangular solves with C_ff and divisions by m: their relative errors are n·eps·cond, and what
    # they do to the result is amplified by (s − F)⁻¹. All factors below are O(10) here.
    resolvent = np.linalg.norm(np.linalg.inv(s * np.eye(len(part.F)) - part.F), 2)
    growth = (1.0 + np.linalg.norm(part.F)) * resolvent * (np.linalg.norm(part.G) * resolvent + np.linalg.norm(part.J))
    first = np.ix_(np.array(orders) == 1, np.array(orders) == 1)
    condition = np.linalg.cond(layer.C[first]) if 1 in orders else 1.0
    np.testing.assert_allclose(
        realised_response(part, s), expected, rtol=0.0, atol=30 * len(part.F) * EPS * condition * growth
    )


def test_z_is_continuous_at_jumps():
    # ζ = ξ̇ − (V/m) u for a second-order neuron; ξ − (v/c) u for a first-order one that sees u̇.
    second = realize_layer(HorizontalLayer([[2.0]], [[1.0]], [[3.0]], [[5.0]], [[4.0]]))
    np.testing.assert_array_equal(second.J, [[0.0], [2.0]])
    np.testing.assert_array_equal(second.F, [[0.0, 1.0], [-1.5, -0.5]])
    np.testing.assert_array_equal(second.G, [[2.0], [2.5 - 0.5 * 2.0]])
    first = realize_layer(HorizontalLayer([[0.0]], [[2.0]], [[3.0]], [[5.0]], [[4.0]]))
    np.testing.assert_array_equal(first.J, [[2.0]])
    np.testing.assert_array_equal(first.F, [[-1.5]])
    np.testing.assert_array_equal(first.G, [[2.5 - 1.5 * 2.0]])


def test_initial_state_of_constructed_layer():
    # Erratum 1: ξ̇_c(0⁺) = V_c u(0); first-order neurons start at zero.
    layer = HorizontalLayer(*m_lti(pattern_block(2, 2), np.arange(12.0).reshape(6, 2), n_real=2))
    part = realize_layer(layer)
    np.testing.assert_array_equal(part.J[:4], 0.0)
    np.testing.assert_array_equal(part.J[4:], layer.V[2:])


@pytest.mark.parametrize("s", POINTS)
def test_a_network_keeps_its_transfer_function(s):
    network = random_network(((1,), (2,), (1, 2, 1), (2, 2)), n_inputs=2, n_outputs=3, seed=9)
    system = to_state_space(network)
    assert (system.n_states, system.n_inputs, system.n_outputs) == (network.n_states, 2, 3)
    found, expected = rounded(system_response(system, s)), rounded(network_response(network, s))
    # As above; weights, C_ff and masses are O(1) and (s − A)⁻¹ O(10).
    resolvent = np.linalg.norm(np.linalg.inv(s * np.eye(len(system.A)) - system.A), 2)
    scale = (1.0 + np.linalg.norm(system.C)) * (1.0 + np.linalg.norm(system.B)) * (1.0 + np.linalg.norm(system.A))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=30 * EPS * scale * (1.0 + resolvent) ** 2)


def test_a_is_block_diagonal():
    network = random_network(((1, 1), (2,), (1,)), n_inputs=1, n_outputs=1)
    A = to_state_space(network).A
    outside = A.copy()
    for start, stop in ((0, 2), (2, 4), (4, 5)):
        outside[start:stop, start:stop] = 0.0
    assert not np.any(outside)


@pytest.mark.parametrize(("n_inputs", "n_outputs"), [(0, 0), (0, 2), (2, 0)])
def test_missing_inputs_and_outputs_keep_their_axes(n_inputs, n_outputs):
    system = to_state_space(random_network(((1, 2), (1,)), n_inputs, n_outputs))
    assert (system.n_states, system.n_inputs, system.n_outputs) == (4, n_inputs, n_outputs)


def test_a_static_gain():
    system = to_state_space(Network([], [], [[1.0, 2.0]]))
    assert system.n_states == 0
    np.testing.assert_array_equal(system.D, [[1.0, 2.0]])


def test_no_blocks_form_a_matrix_without_entries():
    assert sparse_block_diagonal([]).shape == (0, 0)


def test_undamped_pairs_without_a_form_are_rotations_in_block_coordinates():
    layer = HorizontalLayer(np.eye(1), np.full((1, 1), 2.0), np.full((1, 1), 26.0), np.ones((1, 1)), np.zeros((1, 1)))
    A = modal_blocks(Network([layer], [np.ones((1, 2))], [[0.0]])).system.A
    np.testing.assert_allclose(A, [[-1.0, 5.0], [-5.0, -1.0]], rtol=1e-14)
