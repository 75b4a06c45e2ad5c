"""Hypothesis: a network holds the parameters of the paper; counts and norms agree with a direct count."""

import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from ltinet.errors import InvalidNetworkError, LtinetError
from ltinet.network.network import Network, NetworkParameters
from network_examples import random_layer, random_network, random_parameters

ORDERS = ((1,), (2,), (1, 2, 2), (2, 1))


def flat(parameters):
    """All numbers of the parameter sets, in order."""
    sets = [*parameters.M, *parameters.C, *parameters.K, *(w for layer in parameters.W for w in layer)]
    sets += [phi for layer in parameters.Phi for phi in layer] + [parameters.Psi]
    return np.concatenate([np.ravel(values) for values in sets])


def test_parameters_round_trip_bit_for_bit():
    parameters = random_parameters(ORDERS, n_inputs=2, n_outputs=3, seed=1)
    network = Network.from_parameters(parameters)
    assert flat(network.parameters).tobytes() == flat(parameters).tobytes()
    assert Network.from_parameters(network.parameters) == network


def test_phi_has_one_column_per_neuron_output():
    network = random_network(ORDERS, n_inputs=2, n_outputs=3)
    widths = [[phi.shape[1] for phi in layer] for layer in network.parameters.Phi]
    assert widths == [[1], [2], [1, 2, 2], [2, 1]]
    # Values of all ξ first, then the ξ̇ of second-order neurons, in the order of the neurons.
    phi, (first, second, third) = network.Phi[2], network.parameters.Phi[2]
    np.testing.assert_array_equal(phi, np.column_stack([first, second[:, 0], third[:, 0], second[:, 1], third[:, 1]]))


def test_zero_rate_column_of_first_order_neuron_is_accepted():
    parameters = random_parameters(((1,),), n_inputs=1, n_outputs=2)
    padded = parameters._replace(Phi=((np.hstack([parameters.Phi[0][0], np.zeros((2, 1))]),),))
    assert Network.from_parameters(padded) == Network.from_parameters(parameters)


def test_counts():
    network = random_network(ORDERS, n_inputs=2, n_outputs=3)
    assert (network.n_layers, network.n_neurons, network.n_states) == (4, 7, 11)
    assert (network.n_first_order, network.n_second_order) == (3, 4)
    assert (network.n_inputs, network.n_outputs) == (2, 3)
    assert network.n_connections == 0 + 0 + 3 + 1


def test_weights_are_counted_without_zeros_and_leading_coefficients():
    network = random_network(((1,), (2, 2)), n_inputs=2, n_outputs=3)
    first = 1 + 2 + 2 + 3  # k, e, v and φ; c leads
    second = 2 * (2 + 2 + 2) + 2 + 2 * 3 * 2  # c, k, e, v; k_12, c_12; φ
    assert network.n_weights == first + second + 3 * 2
    assert network.n_weights_dense == (5 + 3) * (5 + 2)
    assert network.sparsity == 1.0 - network.n_weights / network.n_weights_dense


def test_weights_of_first_order_network_match_dense_network():
    network = Network([random_layer([1], 1)], [[[1.0]]], [[1.0]])
    assert network.n_weights - np.count_nonzero(network.layers[0].V) == network.n_weights_dense == 4


def test_weight_norm_is_euclidean():
    network = random_network(ORDERS, n_inputs=2, n_outputs=3, seed=4)
    parameters = network.parameters
    numbers = flat(parameters._replace(M=((),) * 4))
    # A sum of squares, exact to as many roundings as it has terms.
    assert network.weight_norm == pytest.approx(np.sqrt(np.sum(numbers**2)), rel=len(numbers) * 2.3e-16)


def test_weight_norm_neither_over_nor_underflows():
    layer = random_layer([1], 1)
    assert Network([layer], [[[3e300]]], [[4e300]]).weight_norm == pytest.approx(5e300, rel=1e-15)


def test_a_static_gain_is_a_network_without_layers():
    network = Network([], [], [[1.0, 2.0]])
    assert (network.n_layers, network.n_neurons, network.n_states, network.n_weights) == (0, 0, 0, 2)
    assert network.sparsity == 0.0
    assert Network.from_parameters(network.parameters) == network


def test_no_inputs_and_no_outputs_keep_their_axes():
    network = random_network(((1, 2),), n_inputs=0, n_outputs=0)
    assert network.Psi.shape == (0, 0)
    assert network.Phi[0].shape == (0, 3)
    assert Network.from_parameters(network.parameters) == network
    assert Network([], [], np.zeros((0, 0))).sparsity == 0.0


@pytest.mark.parametrize(
    ("layers", "Phi", "Psi", "message"),
    [
        ([random_layer([1], 1)], [], [[0.0]], "one output matrix for each of 1 layers, got 0"),
        ([random_layer([1], 1)], [[[1.0, 2.0]]], [[0.0]], r"Phi\[0\] has shape \(1, 2\)"),
        ([random_layer([2], 1)], [[[1.0]]], [[0.0]], r"must be 1 and \(1, 2\)"),
        ([random_layer([1], 2)], [[[1.0]]], [[0.0]], "layer 0 has 2 inputs"),
        ([random_layer([1], 1)], [[[1.0]]], [[0.0j]], "Psi is complex"),
        ([random_layer([1], 1)], [[[np.inf]]], [[0.0]], r"Phi\[0\] has entries that are not finite"),
    ],
)
def test_what_is_no_network_is_refused(layers, Phi, Psi, message):
    with pytest.raises(LtinetError, match=message):
        Network(layers, Phi, Psi)


@pytest.mark.parametrize("name", ["M", "C", "K", "W", "Phi"])
def test_sets_of_different_lengths_are_refused(name):
    parameters = random_parameters(ORDERS, n_inputs=2, n_outputs=3)
    shorter = parameters._replace(**{name: getattr(parameters, name)[:-1]})
    with pytest.raises(InvalidNetworkError, match="one entry per layer"):
        Network.from_parameters(shorter)


@pytest.mark.parametrize(
    ("phi", "message"),
    [
        ((), "one matrix φ for each of 1 neurons of a layer, got 0"),
        ((np.ones((1, 2)),), "a first-order neuron .* since its ξ̇ is not an output"),
        ((np.ones((2, 1)),), r"has shape \(2, 1\)"),
    ],
)
def test_output_weights_that_do_not_fit_are_refused(phi, message):
    good = random_parameters(((1,),), n_inputs=1, n_outputs=1)
    with pytest.raises(InvalidNetworkError, match=message):
        Network.from_parameters(good._replace(Phi=(phi,)))


def test_a_network_cannot_be_changed():
    network = random_network(ORDERS, n_inputs=2, n_outputs=3)
    for matrix in (*network.Phi, network.Psi):
        with pytest.raises(ValueError, match="read-only"):
            matrix[0, 0] = 1.0
    with pytest.raises(FrozenInstanceError):
        network.Psi = np.zeros((3, 2))
    network.parameters.W[0][0][:] = 7.0  # a copy, so that this hurts nobody
    assert not np.any(network.layers[0].E == 7.0)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda network: pickle.loads(pickle.dumps(network))])  # noqa: S301  our own bytes
def test_copies_are_equal_and_read_only(duplicate):
    network = random_network(ORDERS, n_inputs=2, n_outputs=3)
    other = duplicate(network)
    assert other == network
    assert hash(other) == hash(network)
    assert not other.Phi[0].flags.writeable


def test_equality_looks_at_every_set():
    network = random_network(ORDERS, n_inputs=2, n_outputs=3, seed=8)
    assert network == random_network(ORDERS, n_inputs=2, n_outputs=3, seed=8)
    assert network != Network(network.layers, network.Phi, network.Psi + 1.0)
    assert network != Network(network.layers, [network.Phi[0] + 1.0, *network.Phi[1:]], network.Psi)
    assert network != Network(network.layers[:-1], network.Phi[:-1], network.Psi)
    assert network != Network(network.layers[::-1], network.Phi[::-1], network.Psi)
    assert network != "network"


def test_repr_is_one_line():
    assert repr(random_network(ORDERS, 2, 3)) == (
        "Network(n_layers=4, n_first_order=3, n_second_order=4, n_inputs=2, n_outputs=3)"
    )


def test_parameter_sets_have_the_names_of_the_paper():
    assert NetworkParameters._fields == ("M", "C", "K", "W", "Phi", "Psi")
