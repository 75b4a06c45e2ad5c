"""Hypothesis: a neuron has the numbers of the paper, accurate poles, and is immutable."""

import copy
import pickle
from dataclasses import FrozenInstanceError

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ltinet.network.neuron import Neuron
from network_examples import random_layer
from support.tiers import n_examples

EPS = np.finfo(float).eps
EMPTY = np.zeros(0)


def neuron(m, c, k):
    return Neuron(0, m, c, k, EMPTY, EMPTY, EMPTY, EMPTY)


def test_w_has_the_order_of_the_paper():
    own = Neuron(
        1,
        2.0,
        3.0,
        4.0,
        np.array([1.0, 2.0]),
        np.array([3.0, 4.0]),
        stiffness_couplings=np.array([5.0, 6.0]),
        damping_couplings=np.array([7.0, 8.0]),
    )
    np.testing.assert_array_equal(own.w, [1.0, 2.0, 3.0, 4.0, -5.0, -7.0, -6.0, -8.0])


def test_neurons_have_the_rows_of_their_layer():
    layer = random_layer([1, 2, 2, 1], n_inputs=2, seed=3)
    for i, (own, w) in enumerate(zip(layer.neurons, layer.parameters.weights, strict=True)):
        assert (own.index, own.m, own.c, own.k) == (i, layer.M[i, i], layer.C[i, i], layer.K[i, i])
        assert own.order == (1, 2, 2, 1)[i]
        assert own.w.tobytes() == w.tobytes()
        np.testing.assert_array_equal(own.e, layer.E[i])
        np.testing.assert_array_equal(own.v, layer.V[i])


def test_a_first_order_neuron_has_one_pole():
    assert neuron(0.0, 2.0, 3.0).poles == (-1.5,)
    assert neuron(0.0, 2.0, 3.0).order == 1


def test_an_integrator_has_its_pole_at_plus_zero():
    for own in (neuron(0.0, 1.0, 0.0), neuron(1.0, 0.0, 0.0)):
        assert all(np.copysign(1.0, pole.real) == 1.0 and pole == 0.0 for pole in own.poles)


@pytest.mark.parametrize(
    ("m", "c", "k"),
    [
        (1.0, 1e8, 1.0),  # roots −1e8 and −1e-8: the textbook formula gives −7.45e-9 for the second
        (1.0, -1e8, 1.0),
        (3.0, 1e12, 7.0),
        (1e-9, 1.0, 1e-9),
        (1.0, 0.0, -2.0),
        (1.0, 2.0, 0.0),
        (2.0, 0.5, 8.0),
        (-1.0, 0.5, 3.0),
    ],
)
def test_poles_keep_their_digits(m, c, k):
    own = neuron(m, c, k)
    root = mpmath.sqrt(mpmath.mpf(c) ** 2 - 4 * mpmath.mpf(m) * k)
    expected = [(-c + root) / (2 * mpmath.mpf(m)), (-c - root) / (2 * mpmath.mpf(m))]
    for pole in own.poles:
        distance = min(abs(mpmath.mpmathify(pole) - value) / max(abs(value), 1e-300) for value in expected)
        # c² and 4mk do not cancel here; a few roundings remain.
        assert distance <= 8 * EPS
    assert len({complex(pole) for pole in own.poles}) == 2


@settings(max_examples=n_examples(200), deadline=None, derandomize=True)
@given(*[st.floats(-1e3, 1e3).filter(lambda x: x == 0 or abs(x) > 1e-3)] * 3)
def test_poles_are_those_of_a_nearby_neuron(m, c, k):
    if m == 0.0:
        return
    poles = [mpmath.mpmathify(pole) for pole in neuron(m, c, k).poles]
    # Backward stability: sum and product of the roots are −c/m and k/m but for some roundings of the larger terms.
    total, product = sum(poles), poles[0] * poles[1]
    half = abs(mpmath.mpf(c) / m) / 2
    assert abs(total + mpmath.mpf(c) / m) <= 8 * EPS * (half + max(map(abs, poles)))
    assert abs(product - mpmath.mpf(k) / m) <= 8 * EPS * (half**2 + abs(mpmath.mpf(k) / m))


def test_pole_with_positive_imaginary_part_comes_first():
    first, second = neuron(1.0, 2.0, 5.0).poles
    assert (first, second) == (-1 + 2j, -1 - 2j)


def test_a_neuron_cannot_be_changed():
    source = np.array([1.0, 2.0])
    own = Neuron(0, 1.0, 2.0, 3.0, source, source, EMPTY, EMPTY)
    source[0] = 99.0
    assert own.e[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        own.e[0] = 0.0
    with pytest.raises(FrozenInstanceError):
        own.m = 2.0


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda own: pickle.loads(pickle.dumps(own))])  # noqa: S301  our own bytes
def test_copies_are_equal_and_read_only(duplicate):
    own = random_layer([2, 1, 2], n_inputs=2).neurons[0]
    other = duplicate(own)
    assert other == own
    assert hash(other) == hash(own)
    assert not other.stiffness_couplings.flags.writeable
    assert own != random_layer([2, 1, 2], n_inputs=2).neurons[1]
    assert own != "neuron"
