"""Hypothesis: rotating pairs in their planes preserves system and condition number, and avoids cancellation."""

import numpy as np
import pytest
from scipy.linalg import block_diag

import ltinet
from hard_matrices import pair
from ltinet.network.block_system import align_pairs, to_block_coordinates
from ltinet.network.synthesis import synthesize
from network_examples import network_response, rounded, system_response

EPS = np.finfo(float).eps
COUPLED = np.array([[-1.0, 1.0, 0.3], [-1.0, -1.0, 0.2], [0.0, 0.0, -1.1]])


def system_with(n_inputs, n_outputs, seed=0):
    """Return a system with a non-normal pair, a normal one, a real state and a coupled block, in skew coordinates."""
    rng = np.random.default_rng(seed)
    A = block_diag([[-0.5, 4.0], [-0.25, -0.5]], pair(-3.0, 1.0), [[-6.0]], COUPLED - 8.0 * np.eye(3))
    V = np.eye(8) + 0.2 * rng.standard_normal((8, 8))
    B, C = rng.standard_normal((8, n_inputs)), rng.standard_normal((n_outputs, 8))
    return ltinet.StateSpace(V @ A @ np.linalg.inv(V), B, C, rng.standard_normal((n_outputs, n_inputs)))


def aligned(system):
    form = ltinet.block_diagonalize(system.A, n_blocks=4)
    return form, align_pairs(form, B=system.B, C=system.C)


@pytest.mark.parametrize("channels", [(1, 1), (1, 3), (3, 1), (2, 2), (5, 4)])
def test_the_form_stays_a_form(channels):
    system = system_with(*channels)
    before, after = aligned(system)
    n = system.n_states
    assert after.block_sizes == before.block_sizes
    size = np.linalg.norm(system.A) * np.linalg.norm(after.T)
    assert np.linalg.norm(system.A @ after.T - after.T @ after.A) <= 30 * n * EPS * size  # LAPACK's own threshold
    assert np.linalg.norm(after.T @ after.T_inv - np.eye(n)) <= 30 * n * EPS * before.condition_raw
    # Orthogonal turns inside blocks: singular values stay.
    assert after.condition_raw == pytest.approx(before.condition_raw, rel=100 * n * EPS * before.condition_raw)
    for index, values in enumerate(after.eigenvalues):
        np.testing.assert_array_equal(values, before.eigenvalues[index])
        if len(values) == 2:
            assert after.block(index)[0, 1] > 0.0
        else:
            np.testing.assert_array_equal(after.block(index), before.block(index))
    assert not any(array.flags.writeable for array in (after.A, after.T, after.T_inv))


@pytest.mark.parametrize("channels", [(1, 1), (1, 3)])
def test_single_input_has_no_derivative_weights(channels):
    system = system_with(*channels)
    _, form = aligned(system)
    network = synthesize(to_block_coordinates(system, form))
    for layer in network.layers:
        if layer.n_neurons == 1:
            assert np.linalg.norm(layer.V) <= 10 * 8 * EPS * np.linalg.norm(form.T_inv, 2) * np.linalg.norm(system.B)


def test_single_output_uses_no_derivative():
    system = system_with(3, 1)
    _, form = aligned(system)
    network = synthesize(to_block_coordinates(system, form))
    for layer, Phi in zip(network.layers, network.Phi, strict=True):
        if layer.n_neurons == 1 and layer.n_second_order:
            noise = 10 * 8 * EPS * np.linalg.norm(form.T, 2) * np.linalg.norm(system.C)
            b = min(form.block(index)[0, 1] for index, size in enumerate(form.block_sizes) if size == 2)
            assert np.linalg.norm(Phi[:, 1]) <= noise / b or np.linalg.norm(layer.V) <= noise


@pytest.mark.parametrize("channels", [(2, 2), (3, 5)])
def test_what_cancels_never_grows(channels):
    for seed in range(10):
        system = system_with(*channels, seed=seed)
        sizes = []
        for form in aligned(system):
            network = synthesize(to_block_coordinates(system, form))
            sizes.append(
                [
                    np.linalg.norm(Phi[:, 1]) * np.linalg.norm(layer.V)
                    for layer, Phi in zip(network.layers, network.Phi, strict=True)
                    if layer.n_neurons == 1 and layer.n_second_order
                ]
            )
        assert len(sizes[0]) >= 1
        # A turn across the inputs is taken even if another is better by up to two.
        assert all(after <= 2.0 * before * (1.0 + 1e-12) for before, after in zip(*sizes, strict=True))


@pytest.mark.parametrize("channels", [(1, 1), (2, 3)])
def test_the_transfer_function_stays(channels):
    system = system_with(*channels)
    _, form = aligned(system)
    network = synthesize(to_block_coordinates(system, form))
    for s in (0.1j, 2.0j, 1e3j):
        error = rounded(network_response(network, s)) - rounded(system_response(system, s))
        resolvent = np.linalg.norm(np.linalg.inv(s * np.eye(8) - system.A), 2)
        size = np.linalg.norm(system.C, 2) * resolvent * np.linalg.norm(system.B, 2) + np.linalg.norm(system.D, 2)
        assert np.linalg.norm(error, 2) <= 100 * 8 * EPS * form.condition_raw * size


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_units_of_inputs_and_outputs_do_not_matter(scale):
    system = system_with(2, 2)
    form = ltinet.block_diagonalize(system.A, n_blocks=4)
    turned = align_pairs(form, B=system.B, C=system.C)
    other = align_pairs(form, B=system.B * scale, C=system.C / scale)
    np.testing.assert_allclose(other.T, turned.T, rtol=0.0, atol=100 * EPS * np.max(np.abs(turned.T)))


def test_unconnected_pair_inside_a_layer_is_aligned():
    rng = np.random.default_rng(1)
    A = block_diag(pair(-0.1, 3.0), pair(0.0, 2.0), pair(-0.2, 1.0), [[-1.0]])
    A[2, 4] = 0.5  # connects the second with the third
    system = ltinet.StateSpace(A, rng.standard_normal((7, 1)), rng.standard_normal((1, 7)))
    before = ltinet.block_diagonalize(system.A, n_blocks=1)
    after = align_pairs(before, B=system.B, C=system.C)
    moved = np.flatnonzero(np.abs(after.T - before.T).max(axis=0) > 0.0)
    where = np.flatnonzero(np.isclose(np.concatenate(before.eigenvalues).imag, 3.0))[0]
    assert moved.tolist() == [where, where + 1]
    size = np.linalg.norm(system.A) * np.linalg.norm(after.T)
    assert np.linalg.norm(system.A @ after.T - after.T @ after.A) <= 30 * 7 * EPS * size
    layer = synthesize(to_block_coordinates(system, after)).layers[0]
    row = (where + 1) // 2  # one real neuron stands first
    assert np.linalg.norm(layer.V[row]) <= 10 * 7 * EPS * np.linalg.norm(system.B)


@pytest.mark.parametrize("channels", [(0, 2), (2, 0)])
def test_without_inputs_or_outputs_nothing_is_turned(channels):
    system = system_with(2, 2)
    form = ltinet.block_diagonalize(system.A)
    B, C = system.B[:, : channels[0]], system.C[: channels[1]]
    assert align_pairs(form, B=B, C=C) is form


def test_pair_without_inputs():
    A = block_diag(pair(-1.0, 2.0), [[-3.0]])
    net = ltinet.construct((A, [[0.0], [0.0], [1.0]], [[0.0, 0.0, 1.0]]))
    assert np.all(np.isfinite(net.frequency_response([0.0, 1.0, 100.0])))
    np.testing.assert_allclose(np.sort_complex(net.poles()), [-3.0, -1 - 2j, -1 + 2j], rtol=0.0, atol=100 * EPS)
