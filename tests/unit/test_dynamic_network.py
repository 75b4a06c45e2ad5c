"""Hypothesis: `construct` takes what users have, and the network it gives goes back to every library it came from."""

import builtins
import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import scipy.signal

import ltinet
from ltinet.export.api import to_control, to_scipy
from network_examples import network_response, random_parameters, rounded, system_response

EPS = np.finfo(float).eps
A = np.array([[-1.0, 2.0, 0.5], [-2.0, -1.0, 0.25], [0.0, 0.0, -3.0]])
B, C, D = np.array([[1.0, 0.0], [0.5, 1.0], [0.0, 2.0]]), np.array([[1.0, 0.0, -1.0]]), np.array([[0.0, 0.5]])
SYSTEM = ltinet.StateSpace(A, B, C, D)
OMEGA = np.geomspace(1e-2, 1e2, 9)


@pytest.fixture(scope="module")
def net():
    return ltinet.construct(SYSTEM)


def response_of(system):
    return np.array([rounded(system_response(system, 1j * omega)) for omega in OMEGA])


def assert_same_response(net, system):
    # ‖C‖‖(jω − A)⁻¹‖‖B‖ + ‖D‖ ≤ 4, cond(T) ≤ 2 and 1/b ≤ 1 for these systems of at most five states.
    assert np.max(np.abs(net.frequency_response(OMEGA) - response_of(system))) <= 100 * 5 * EPS * 2 * 4


@pytest.mark.parametrize(
    "form",
    [
        (A, B, C, D),
        [A.tolist(), B.tolist(), C.tolist(), D.tolist()],
        SYSTEM,
        scipy.signal.StateSpace(A, B, C, D),
        (2.0 * A, 2.0 * B, C, D, 2.0 * np.eye(3)),
    ],
    ids=["tuple", "lists", "StateSpace", "scipy", "descriptor"],
)
def test_construct_takes_what_people_have(form, net):
    assert ltinet.construct(form) == net


def test_construct_takes_transfer_functions():
    num, den = [1.0, 3.0], [1.0, 2.0, 5.0]
    expected = ltinet.StateSpace([[-2.0, -5.0], [1.0, 0.0]], [[1.0], [0.0]], [[1.0, 3.0]])
    for obj in (
        (num, den),
        scipy.signal.TransferFunction(num, den),
        scipy.signal.ZerosPolesGain([-3], [-1 + 2j, -1 - 2j], 1),
    ):
        assert_same_response(ltinet.construct(obj), expected)


def test_construct_takes_python_control(net):
    control = pytest.importorskip("control")
    assert ltinet.construct(control.StateSpace(A, B, C, D)) == net
    assert_same_response(
        ltinet.construct(control.TransferFunction([1.0, 3.0], [1.0, 2.0, 5.0])),
        ltinet.StateSpace([[-2.0, -5.0], [1.0, 0.0]], [[1.0], [0.0]], [[1.0, 3.0]]),
    )


def test_layers_are_chosen_in_three_ways(net):
    class BySign:
        def fit_predict(self, X):
            return (X[:, 1] == 0).astype(int)

    assert net.n_layers == 2
    assert net.form.budget == 1e4
    single = ltinet.construct(SYSTEM, n_layers=1)
    assert (single.n_layers, single.layers[0].kind, single.n_connections) == (1, "mixed", 1)
    assert ltinet.construct(SYSTEM, clustering=BySign()).n_layers == 2
    assert ltinet.construct(SYSTEM, max_condition=1.0).n_layers == 1
    for choice in (single, ltinet.construct(SYSTEM, clustering=BySign()), ltinet.construct(SYSTEM, balance=False)):
        assert_same_response(choice, SYSTEM)


def test_kmeans_chooses_layers():
    cluster = pytest.importorskip("sklearn.cluster")
    net = ltinet.construct(SYSTEM, clustering=cluster.KMeans(2, n_init=1, random_state=0))
    assert net.n_layers == 2


def test_errors_speak_of_layers():
    with pytest.raises(ltinet.PartitionError, match="n_layers is 9") as caught:
        ltinet.construct(SYSTEM, n_layers=9)
    assert "n_blocks" not in str(caught.value)
    with pytest.raises(ltinet.PartitionError, match="n_layers must be an integer ≥ 1, got 0"):
        ltinet.construct(SYSTEM, n_layers=0)
    with pytest.raises(ltinet.PartitionError, match="n_layers and clustering exclude each other"):
        ltinet.construct(SYSTEM, n_layers=2, clustering=object())
    with pytest.raises(ltinet.PartitionError, match="max_condition"):
        ltinet.construct(SYSTEM, max_condition=0.5)
    with pytest.raises(ltinet.InvalidSystemError):
        ltinet.construct("system")
    with pytest.raises(ltinet.InvalidSystemError, match="pass options by name"):
        ltinet.construct(SYSTEM, 10.0)


def test_properties_are_those_of_the_network(net):
    names = ("n_inputs", "n_outputs", "n_states", "n_layers", "n_neurons", "n_first_order", "n_second_order")
    names += ("n_connections", "n_weights", "n_weights_dense", "sparsity", "weight_norm", "layers", "Phi", "Psi")
    for name in names:
        assert getattr(net, name) is getattr(net.network, name) or getattr(net, name) == getattr(net.network, name)
    assert (net.n_states, net.n_neurons, net.n_first_order, net.n_second_order) == (3, 2, 1, 1)


def test_poles_are_the_eigenvalues(net):
    # A is 3×3 of norm 4 with eigenvalues at least 2.8 apart: n·eps·‖A‖·cond(T).
    found, expected = np.sort_complex(net.poles()), np.sort_complex(np.array([-1 + 2j, -1 - 2j, -3.0]))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=10 * 3 * EPS * 4.0 * net.form.condition)


def test_the_way_back_to_state_space(net):
    system = net.to_state_space()
    assert isinstance(system, ltinet.StateSpace)
    again = ltinet.construct(system)
    assert_same_response(again, SYSTEM)


def test_scipy_round_trip(net):
    theirs = net.to_scipy()
    assert isinstance(theirs, scipy.signal.StateSpace)
    assert ltinet.as_state_space(theirs) == net.to_state_space()
    theirs.A[0, 0] = 99.0  # their copy, not ours
    assert net.to_state_space().A[0, 0] != 99.0


def test_control_round_trip(net):
    control = pytest.importorskip("control")
    theirs = net.to_control()
    assert isinstance(theirs, control.StateSpace)
    assert ltinet.as_state_space(theirs) == net.to_state_space()
    theirs.A[0, 0] = 99.0
    assert net.to_state_space().A[0, 0] != 99.0


def test_control_keeps_states_that_do_nothing():
    control = pytest.importorskip("control")
    idle = ltinet.StateSpace(np.zeros((2, 2)), np.zeros((2, 1)), np.zeros((1, 2))).matrices
    assert to_control(idle).nstates == 2
    assert isinstance(to_control(idle), control.StateSpace)


def test_static_gains_leave_and_return():
    pytest.importorskip("control")
    gain = ltinet.StateSpace([], np.zeros((0, 2)), np.zeros((1, 0)), [[1.0, 2.0]]).matrices
    for there in (to_scipy, to_control):
        np.testing.assert_array_equal(ltinet.as_state_space(there(gain)).D, gain.D)


def test_without_python_control_the_message_names_the_extra(net, monkeypatch):
    real_import = builtins.__import__

    def without_control(name, *rest):
        if name == "control":
            raise ImportError(name)
        return real_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_control)
    with pytest.raises(ltinet.MissingDependencyError, match=r"ltinet\[control\]"):
        net.to_control()


def test_a_network_from_parameters_alone():
    parameters = random_parameters(((1, 2), (2,)), n_inputs=2, n_outputs=1, seed=3)
    net = ltinet.DynamicNetwork.from_parameters(parameters)
    assert net.form is None
    assert ltinet.DynamicNetwork.from_parameters(net.parameters) == net
    expected = np.array([rounded(network_response(net.network, 1j * omega)) for omega in OMEGA])
    # Weights and inverses of O(1); two layers of at most two neurons.
    assert np.max(np.abs(net.frequency_response(OMEGA) - expected)) <= 1000 * EPS * np.max(np.abs(expected))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])  # noqa: S301  our own bytes
def test_copies_are_equal_and_keep_the_form(duplicate, net):
    other = duplicate(net)
    assert other == net
    assert hash(other) == hash(net)
    assert other.form.T.tobytes() == net.form.T.tobytes()
    assert str(other) == str(net)


def test_equality_is_that_of_the_parameters(net):
    assert net == ltinet.DynamicNetwork.from_parameters(net.parameters)
    assert net != ltinet.construct((A, B, C, 2.0 * D))
    assert net != net.network
    assert len({net, ltinet.construct(SYSTEM), ltinet.construct((A, B, C))}) == 2


def test_a_network_cannot_be_changed(net):
    with pytest.raises(FrozenInstanceError):
        net.form = None
    with pytest.raises(ValueError, match="read-only"):
        net.Psi[0, 0] = 1.0


def test_repr_print_and_html(net):
    assert repr(net) == "DynamicNetwork(n_layers=2, n_first_order=1, n_second_order=1, n_inputs=2, n_outputs=1)"
    assert len(str(net).splitlines()) <= 12
    assert str(net).startswith("dynamic neural network, 2 inputs → 1 output")
    assert net._repr_html_().startswith("<table>")


def test_parameters_that_are_none_are_told():
    with pytest.raises(ltinet.InvalidNetworkError, match=r"give NetworkParameters\(M, C, K, W, Phi, Psi\)"):
        ltinet.DynamicNetwork.from_parameters(None)


def test_chunks_that_are_a_number_are_told():
    with pytest.raises(ltinet.InvalidSignalError, match="give a list or a generator of arrays"):
        list(ltinet.construct(([[-1.0]], [[1.0]], [[1.0]])).simulate_stream(3, 0.1))
