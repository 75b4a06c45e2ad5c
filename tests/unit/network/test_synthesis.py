"""Hypothesis: every block of a form becomes the layer given by the maps, and outputs add up to those of the system."""

import numpy as np
import pytest

import ltinet
from ltinet.network.block_system import BlockSystem, to_block_coordinates
from ltinet.network.maps import TermMagnitudes, m_lti, m_o
from ltinet.network.synthesis import synthesize
from network_examples import network_response, rounded, system_response

EPS = np.finfo(float).eps


@pytest.fixture(scope="module")
def blobs():
    system = ltinet.named_system("blobs")
    form = ltinet.block_diagonalize(system.A, n_blocks=6)
    return system, form, synthesize(to_block_coordinates(system, form))


def test_layers_are_the_images_of_the_blocks(blobs):
    system, form, network = blobs
    B, C = form.transformation.to_blocks(system.B), form.transformation.from_blocks(system.C).T
    Psi, start = system.D.copy(), 0
    for index, (layer, size) in enumerate(zip(network.layers, form.block_sizes, strict=True)):
        rows = slice(start, start + size)
        n_real = int(np.sum(form.eigenvalues[index].imag == 0))
        assert (layer.n_first_order, layer.n_second_order) == (n_real, (size - n_real) // 2)
        for own, expected in zip(layer.matrices, m_lti(form.block(index), B[rows], n_real=n_real), strict=True):
            np.testing.assert_array_equal(own, expected)
        values, rates, feedthrough = m_o(form.block(index), B[rows], C[rows].T, n_real=n_real)
        # C·T was formed as (Tᵀ·Cᵀ)ᵀ here: the same sums in another order.
        scale = EPS * len(system.A) * np.linalg.norm(system.C) * np.linalg.norm(form.T) * np.max(np.abs(form.A))
        np.testing.assert_allclose(network.Phi[index], np.hstack([values, rates]), rtol=1e-10, atol=100 * scale)
        Psi, start = Psi + feedthrough, rows.stop
    np.testing.assert_allclose(network.Psi, Psi, rtol=1e-10, atol=1e-10 * np.max(np.abs(Psi)))


def test_layer_kinds_follow_the_eigenvalues(blobs):
    _, form, network = blobs
    for layer, values in zip(network.layers, form.eigenvalues, strict=True):
        real, pairs = np.any(values.imag == 0), np.any(values.imag != 0)
        assert layer.kind == ("mixed" if real and pairs else "first-order" if real else "second-order")


@pytest.mark.parametrize("n_layers", [1, 3])
def test_network_has_the_transfer_function_of_its_system(n_layers):
    rng = np.random.default_rng(3)
    A = np.array([[-1.0, 2.0, 0.3, 0.1], [-2.0, -1.0, 0.2, 0.4], [0.0, 0.0, -3.0, 0.5], [0.0, 0.0, 0.0, -5.0]])
    system = ltinet.StateSpace(A, rng.standard_normal((4, 2)), rng.standard_normal((3, 4)), rng.standard_normal((3, 2)))
    form = ltinet.block_diagonalize(A, n_blocks=n_layers)
    network = synthesize(to_block_coordinates(system, form))
    for s in (0.0, 0.5j, 3.0j, -2.0 + 1.0j):
        error = rounded(network_response(network, s)) - rounded(system_response(system, s))
        # ‖C‖‖(s − A)⁻¹‖‖B‖ + ‖D‖ is below 20 here, the couplings and 1/b below 3.
        assert np.linalg.norm(error, 2) <= 100 * 4 * EPS * form.condition * 20


def test_number_of_layers_equals_number_of_blocks():
    system = ltinet.named_system("diffusion", points=4)
    form = ltinet.block_diagonalize(system.A)
    assert len(synthesize(to_block_coordinates(system, form)).layers) == form.n_blocks == 16


def test_a_static_gain_has_no_layers():
    system = ltinet.StateSpace([], np.zeros((0, 2)), np.zeros((1, 0)), [[1.0, 2.0]])
    network = synthesize(to_block_coordinates(system, ltinet.block_diagonalize(system.A)))
    assert network.n_layers == 0
    np.testing.assert_array_equal(network.Psi, system.D)


@pytest.mark.parametrize(("m", "p"), [(0, 1), (1, 0), (0, 0)])
def test_missing_inputs_and_outputs_keep_their_axes(m, p):
    A = np.array([[-1.0, 2.0, 0.0], [-2.0, -1.0, 0.0], [0.0, 0.0, -3.0]])
    system = ltinet.StateSpace(A, np.zeros((3, m)), np.zeros((p, 3)))
    network = synthesize(to_block_coordinates(system, ltinet.block_diagonalize(A)))
    assert (network.n_inputs, network.n_outputs, network.n_states) == (m, p, 3)


def test_weights_dropped_as_rounding_do_not_hide_small_ones():
    A, D = np.array([[-1.0, 1.0], [-1.0, -1.0]]), np.zeros((1, 1))
    small = np.array([[1e-15, 1e-15]])  # the first is exact, the second a rounding error of terms of the size of one
    magnitudes = TermMagnitudes(B=np.array([[1e-15], [1.0]]), C=np.array([[1e-15, 1.0]]))
    network = synthesize(BlockSystem(A, small.T, small, D, (2,), (0,), magnitudes))
    layer = network.layers[0]
    assert (layer.V.item(), layer.E.item()) == (1e-15, 1e-15)  # E = b B₂ − d B₁ with B₂ = 0
    np.testing.assert_array_equal(network.Phi[0], [[1e-15, 0.0]])
