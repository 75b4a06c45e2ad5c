"""Hypothesis: the contributions of all neurons and Ψ u add up to the outputs."""

import numpy as np
import pytest

import ltinet
from ltinet._util.floating_point import EPS
from ltinet.errors import InvalidNetworkError
from ltinet.network.network import neuron_contribution


@pytest.mark.parametrize("seed", range(6))
def test_shares_sum_to_the_outputs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m, p = int(rng.integers(2, 9)), 2, 3
    A = rng.standard_normal((n, n)) - 2.0 * np.sqrt(n) * np.eye(n)
    system = ltinet.StateSpace(A, *(rng.standard_normal(shape) for shape in ((n, m), (p, n), (p, m))))
    rungs = ltinet.condition_tradeoff(system)
    net = rungs[int(rng.integers(len(rungs)))].network
    t = np.linspace(0.0, 2.0, 41)
    u = rng.standard_normal((41, m))
    sol = net.simulate(u, t)
    shares = [
        neuron_contribution(net.network, sol.neuron_states, layer=layer, neuron=neuron)
        for layer, own in enumerate(net.layers)
        for neuron in range(own.n_neurons)
    ]
    total = np.sum(shares, axis=0) + u @ net.Psi.T
    # Terms are rounded once each, and the states are known to what the transformation leaves of the digits.
    room = 1e3 * EPS * n * (np.abs(shares).sum(axis=0).max() + 1.0) * net.form.condition_raw
    assert np.abs(total - sol.y).max() <= room


def test_a_neuron_that_is_not_there_is_refused() -> None:
    net = ltinet.construct(ltinet.named_system("triangular"))
    states = np.zeros((1, net.n_states))
    for layer, neuron in ((net.n_layers, 0), (0, net.layers[0].n_neurons)):
        with pytest.raises(InvalidNetworkError, match="no neuron"):
            neuron_contribution(net.network, states, layer=layer, neuron=neuron)
