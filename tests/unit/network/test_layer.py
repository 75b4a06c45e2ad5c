"""Hypothesis: a layer satisfies Definition 7, is immutable, and invalid layers raise errors."""

import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from ltinet.errors import InvalidNetworkError, LtinetError
from ltinet.network.layer import HorizontalLayer
from ltinet.network.maps import LayerParameters
from network_examples import random_layer

M, C, K = np.diag([0.0, 1.0]), np.array([[1.0, 0.5], [0.0, 0.2]]), np.array([[2.0, 0.0], [0.0, 3.0]])
E, V = np.array([[1.0], [2.0]]), np.array([[0.0], [4.0]])


def test_counts_kind_and_order():
    layer = random_layer([1, 1, 2, 2, 2], n_inputs=3)
    assert (layer.n_neurons, layer.n_first_order, layer.n_second_order) == (5, 2, 3)
    assert (layer.n_states, layer.n_inputs, layer.n_connections) == (8, 3, 10)
    assert layer.kind == "mixed"
    assert list(layer.solving_order) == [4, 3, 2, 1, 0]
    assert random_layer([1, 1], n_inputs=1).kind == "first-order"
    assert random_layer([2], n_inputs=1).kind == "second-order"


def test_edges_are_the_couplings_that_are_not_zero():
    layer = HorizontalLayer(
        np.eye(3),
        [[1.0, 0.0, 0.0], [0.0, 1.0, 5.0], [0.0, 0.0, 1.0]],
        [[1.0, 0.0, 6.0], [0.0, 1.0, 7.0], [0.0, 0.0, 1.0]],
        np.ones((3, 1)),
        np.ones((3, 1)),
    )
    assert layer.edges == ((0, 2), (1, 2))
    assert layer.n_connections == 2  # of three pairs of neurons


def test_edges_follow_the_order_of_solution():
    layer = random_layer([2, 1, 2, 1], n_inputs=1)
    place = {neuron: position for position, neuron in enumerate(layer.solving_order)}
    assert len(layer.edges) == 6
    assert all(place[j] < place[i] for i, j in layer.edges)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C": np.eye(3)}, "C is 3×3 but M is 2×2"),
        ({"K": np.eye(1)}, "K is 1×1 but M is 2×2"),
        ({"C": C.T}, "C has entries below its diagonal"),
        ({"K": np.array([[1.0, 0.0], [1e-300, 1.0]])}, "K has entries below its diagonal"),
        ({"M": np.ones((2, 2))}, "M has entries off its diagonal"),
        ({"E": np.ones((3, 1))}, r"E has shape \(3, 1\)"),
        ({"V": np.ones((2, 2))}, r"V \(2, 2\)"),
        ({"C": np.array([[0.0, 0.5], [0.0, 0.2]])}, "neuron 0 has m = c = 0"),
    ],
)
def test_what_is_no_layer_is_refused(change, message):
    with pytest.raises(InvalidNetworkError, match=message):
        HorizontalLayer(**({"M": M, "C": C, "K": K, "E": E, "V": V} | change))


@pytest.mark.parametrize(
    "value", [M * 1j, np.full((2, 2), np.nan), np.ones((2, 3)), [[1.0], [1.0, 2.0]], "matrix", None]
)
@pytest.mark.parametrize("name", ["M", "C", "K"])
def test_what_is_no_real_matrix_is_refused(name, value):
    with pytest.raises(LtinetError, match=name):
        HorizontalLayer(**({"M": M, "C": C, "K": K, "E": E, "V": V} | {name: value}))


def test_a_layer_cannot_be_changed():
    source = C.copy()
    layer = HorizontalLayer(M, source, K, E, V)
    source[0, 0] = 99.0
    assert layer.C[0, 0] == 1.0
    for matrix in layer.matrices:
        with pytest.raises(ValueError, match="read-only"):
            matrix[0, 0] = 5.0
    with pytest.raises(FrozenInstanceError):
        layer.M = M


def test_parameters_round_trip():
    layer = random_layer([2, 1, 2], n_inputs=2, seed=5)
    assert HorizontalLayer.from_parameters(layer.parameters, n_inputs=2) == layer


def test_parameters_may_be_plain_lists():
    layer = random_layer([2, 1], n_inputs=1, seed=6)
    masses, dampings, stiffnesses, weights = layer.parameters
    lists = LayerParameters(list(masses), list(dampings), list(stiffnesses), [w.tolist() for w in weights])
    assert HorizontalLayer.from_parameters(lists, n_inputs=1) == layer


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"masses": (1.0,)}, "as many masses as"),
        ({"weights": ()}, "as many masses as"),
        ({"weights": (np.zeros(4), np.zeros(4))}, "neuron 1 has weights of shape"),
        ({"weights": (np.zeros((1, 4)), np.zeros(3))}, "neuron 1 has weights of shape"),
        ({"weights": (np.zeros((2, 2)), np.zeros(2))}, "neuron 0 has weights of shape"),
        ({"weights": (np.zeros(4) * 1j, np.zeros(2))}, "weights of neuron 0 is complex"),
        ({"weights": ("a", "b")}, "weights of neuron 0"),
        ({"masses": (np.nan, 1.0)}, "masses has entries that are not finite"),
        ({"dampings": ("x", "y")}, "dampings"),
        ({"masses": (0.0, 0.0), "dampings": (1.0, 0.0)}, "neuron 1 has m = c = 0"),
    ],
)
def test_parameters_that_are_no_layer_are_refused(change, message):
    good = LayerParameters((1.0, 1.0), (1.0, 1.0), (1.0, 1.0), (np.zeros(4), np.zeros(2)))
    with pytest.raises(LtinetError, match=message):
        HorizontalLayer.from_parameters(good._replace(**change), n_inputs=1)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])  # noqa: S301  our own bytes
def test_copies_are_equal_and_read_only(duplicate):
    layer = random_layer([1, 2], n_inputs=2)
    _ = layer.neurons  # a cached view must not travel
    other = duplicate(layer)
    assert other == layer
    assert hash(other) == hash(layer)
    assert not any(matrix.flags.writeable for matrix in other.matrices)


def test_equality_looks_at_every_matrix():
    layer = HorizontalLayer(M, C, K, E, V)
    assert layer == HorizontalLayer(M, C, K, E, V)
    assert layer == HorizontalLayer(M, C, K, E, -0.0 + V)
    for name in ("M", "C", "K", "E", "V"):
        matrices = {"M": M, "C": C, "K": K, "E": E, "V": V}
        matrices[name] = matrices[name] + np.eye(2)[:, -1:] * (np.eye(2)[-1:] if name in "MCK" else 1.0)
        assert HorizontalLayer(**matrices) != layer
    assert layer != "layer"


def test_repr_is_one_line():
    assert repr(random_layer([1, 2, 2], 3)) == "HorizontalLayer(n_first_order=1, n_second_order=2, n_inputs=3)"
