"""Hypothesis: poles and H(jω) computed from neurons agree with the definition in 50 digits."""

import warnings

import mpmath
import numpy as np
import pytest

from ltinet.errors import LtinetError
from ltinet.network import realization
from ltinet.network.network import Network
from ltinet.network.realization import frequency_response, poles, to_state_space
from network_examples import exact, network_response, random_layer, random_network, rounded

EPS = np.finfo(float).eps
ORDERS = ((1,), (2,), (1, 2, 1), (2, 2), (2, 1), (1,))
OMEGA = np.array([0.0, 1e-3, 0.7, 3.0, 1e3, -2.0])


def tolerance(network, omega):
    """Back substitution is stable row by row: n·eps times the same sums with magnitudes (Higham, Theorem 8.5)."""
    total = np.abs(network.Psi)
    for layer, Phi in zip(network.layers, network.Phi, strict=True):
        s = 1j * omega
        diagonal = layer.M.diagonal() * s**2 + layer.C.diagonal() * s + layer.K.diagonal()
        coupling = np.abs(np.triu(layer.C, 1)) * abs(s) + np.abs(np.triu(layer.K, 1))
        xi = np.linalg.solve(np.diag(np.abs(diagonal)) - coupling, np.abs(layer.E) + np.abs(layer.V) * abs(s))
        # What rounding does to a diagonal entry, relative to it, is at most the growth of its three terms.
        terms = np.abs(layer.M.diagonal() * s**2) + np.abs(layer.C.diagonal() * s) + np.abs(layer.K.diagonal())
        growth = np.max(terms / np.abs(diagonal))
        xi = np.vstack([xi, abs(s) * xi[layer.is_second_order]])
        total = total + layer.n_neurons * growth * np.abs(Phi) @ np.abs(xi)
    return 30 * EPS * total


@pytest.mark.parametrize("seed", range(3))
def test_frequency_response_is_that_of_the_definition(seed):
    network = random_network(ORDERS, n_inputs=2, n_outputs=3, seed=seed)
    H = frequency_response(network, OMEGA)
    assert H.shape == (len(OMEGA), 3, 2)
    assert H.dtype == np.complex128
    for found, omega in zip(H, OMEGA.tolist(), strict=True):
        error = np.abs(found - rounded(network_response(network, mpmath.mpc(0, omega))))
        assert np.all(error <= tolerance(network, omega))


def test_poles_are_the_eigenvalues_of_the_state_space():
    network = random_network(ORDERS, n_inputs=1, n_outputs=1, seed=2)
    found = poles(network)
    assert len(found) == network.n_states
    A = exact(to_state_space(network).A)
    for pole in found:
        shifted = A - mpmath.mpmathify(complex(pole)) * mpmath.eye(network.n_states)
        # A pole of a block-triangular matrix in companion form: det(A − λ) vanishes but for rounding of a few factors.
        assert abs(mpmath.det(shifted)) <= 1e4 * EPS * np.prod(1.0 + np.abs(found - pole))


def test_poles_are_ordered_by_layer_and_imaginary_part():
    network = random_network(((2,), (1,), (2,)), n_inputs=1, n_outputs=1, seed=0)
    expected = [pole for layer in network.layers for neuron in layer.neurons for pole in neuron.poles]
    np.testing.assert_array_equal(poles(network), expected)


@pytest.mark.parametrize("omega", [1.0, [1.0], np.float32(1.0), 1, [True]])
def test_one_frequency_keeps_its_axis(omega):
    network = random_network(((1,),), n_inputs=1, n_outputs=1)
    assert frequency_response(network, omega).shape == (1, 1, 1)


def test_no_frequency_and_no_channels_keep_their_axes():
    assert frequency_response(random_network(((1, 2),), 2, 3), []).shape == (0, 3, 2)
    assert frequency_response(random_network(((1, 2), (1,)), 0, 3), [1.0, 2.0]).shape == (2, 3, 0)
    assert frequency_response(random_network(((1, 2), (2,)), 2, 0), [1.0]).shape == (1, 0, 2)
    np.testing.assert_array_equal(frequency_response(Network([], [], [[2.0]]), [0.0, 5.0]), [[[2.0]], [[2.0]]])
    assert poles(Network([], [], [[2.0]])).shape == (0,)


@pytest.mark.parametrize("omega", [[[1.0]], [np.nan], [np.inf], [1j], "fast", [None], [[1.0, 2.0], [3.0]]])
def test_what_is_no_list_of_frequencies_is_refused(omega):
    with pytest.raises(LtinetError, match="omega"):
        frequency_response(random_network(((1,),), 1, 1), omega)


@pytest.mark.parametrize("orders", [((1,),), ((1, 1),)])
def test_frequency_response_at_a_pole(orders):
    layers = [random_layer(orders[0], 1)]
    layers[0] = type(layers[0])(layers[0].M, layers[0].C, np.triu(layers[0].K, 1), layers[0].E, layers[0].V)
    network = Network(layers, [np.ones((1, layer.n_states)) for layer in layers], [[0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        H = frequency_response(network, [0.0, 1.0])
    assert np.isinf(np.abs(H[0, 0, 0]))
    assert np.isfinite(H[1, 0, 0])


def test_chunks_do_not_change_the_response(monkeypatch):
    network = random_network(ORDERS, n_inputs=2, n_outputs=3)
    omega = np.geomspace(1e-2, 1e2, 37)
    whole = frequency_response(network, omega)
    monkeypatch.setattr(realization, "_CHUNK_SIZE", 100)
    # The same sums in products of other sizes: a few roundings of what is summed.
    error = np.abs(frequency_response(network, omega) - whole)
    assert np.all(error <= np.stack([tolerance(network, value) for value in omega]))
