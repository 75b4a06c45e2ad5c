"""Hypothesis: T⁻¹B, C T and the weights are accurate, and zero where only rounding would remain."""

import numpy as np
import pytest
from scipy import linalg

import ltinet
from evidence import EPS
from hard_matrices import rotated
from ltinet.network.block_system import add_eigenvector_errors, to_block_coordinates
from ltinet.network.maps import TermMagnitudes


def blocks_of(A, B, C, **options):
    system = ltinet.StateSpace(A, B, C)
    form = ltinet.block_diagonalize(A, **options)
    return form, to_block_coordinates(system, form)


def test_coordinates_are_those_of_the_form():
    rng = np.random.default_rng(0)
    A, B, C = rng.standard_normal((7, 7)), rng.standard_normal((7, 2)), rng.standard_normal((3, 7))
    form, blocks = blocks_of(A, B, C)
    noise = 100 * EPS * form.condition_raw * np.linalg.norm(B) * np.linalg.norm(C)
    np.testing.assert_allclose(form.T @ blocks.B, B, atol=noise)
    np.testing.assert_allclose(blocks.C @ form.T_inv, C, atol=noise)
    assert blocks.n_blocks == form.n_blocks
    assert not blocks.B.flags.writeable
    assert [own.stop - own.start for own in blocks.slices] == list(form.block_sizes)


def test_modes_that_are_not_driven_have_no_weight():
    A = rotated(np.diag([-1.0, -2.0, -3.0, -5.0]), 3)
    form = ltinet.block_diagonalize(A)
    B = form.T[:, [1]]  # the direction of one mode
    net = ltinet.construct((A, B, np.ones((1, 4))), balance=True)
    driven = [layer.E[0, 0] for layer in net.layers]
    assert np.count_nonzero(driven) == 1
    assert np.count_nonzero(net.blocks.B) <= 4


def test_small_weight_beside_a_large_one():
    # What acts on one neuron says nothing about what acts on another: A is triangular, and its vectors are exact.
    A = np.array([[-1.0, 0.0], [0.0, -2.0]])
    net = ltinet.construct((A, [[1e18], [1.6]], [[1.0, 1.0]]))
    assert sorted(abs(layer.E[0, 0]) for layer in net.layers) == [1.6, 1e18]
    A = np.array([[-1.0, 1.0], [0.0, -2.0]])
    net = ltinet.construct((A, [[1.0], [1.0]], [[1.6, 1e18]]))
    assert min(abs(phi[0, 0]) for phi in net.Phi) == pytest.approx(1.6)


def test_weights_of_a_chain():
    # Each of ten modes has one stiffness, one damping, one weight of u and one of ξ: no u̇, no ξ̇, no direct path.
    assert ltinet.construct(ltinet.named_system("mass_spring_damper")).n_weights == 40


def test_modes_with_node_at_input_have_zero_weight():
    net = ltinet.construct(ltinet.named_system("heat_rod"))
    missing = 600 - net.n_weights
    assert missing == 66  # every third mode of 200 has a node at a third of the rod


def test_exact_engine_is_accurate_for_small_entries():
    system = ltinet.named_system("heat_rod")
    net = ltinet.construct(system)
    form = net.form
    np.testing.assert_allclose(form.T @ net.blocks.B, system.B, atol=200 * EPS * np.linalg.norm(system.B))


def test_small_weights_are_known_relative_to_neighbours_within_the_rotation_of_their_vectors():
    # Pairs −1 ± 2i and −1 ± 5i at a distance of 3; inputs reach the first one weakly.
    A = linalg.block_diag([[-1.0, 2.0], [-2.0, -1.0]], [[-1.0, 5.0], [-5.0, -1.0]])
    A[:2, 2:] = 1e-3
    form = ltinet.block_diagonalize(A, max_condition=10.0)
    assert form.n_blocks == 2
    at = np.repeat([abs(values.imag).max() for values in form.eigenvalues], form.block_sizes)
    B = np.where(at == at.min(), 1e-20, 1.0)[:, None]
    terms = add_eigenvector_errors(TermMagnitudes(np.abs(B), np.ones((1, 4))), form, B=B, C=np.ones((1, 4)))
    size = np.abs(form.T_inv) @ np.abs(A) @ np.abs(form.T)
    added = [size[i, at != at[i]] @ np.minimum(np.abs(B[at != at[i], 0]), 100.0) / 3.0 for i in range(4)]
    np.testing.assert_allclose(terms.B[:, 0], np.abs(B[:, 0]) + np.where(B[:, 0] < 1.0, added, 0.0), rtol=1e-9)


def test_a_small_damping_survives_where_no_pair_is_rotated():
    net = ltinet.construct(([[-1e-17, 1.0], [-1.0, -1e-17]], [[0.0], [1.0]], [[1.0, 0.0]]))
    assert net.poles().real.tolist() == pytest.approx([-1e-17, -1e-17], rel=1e-12, abs=0.0)
