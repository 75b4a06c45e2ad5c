"""Hypothesis: neurons left out of a network change its outputs by no more than the sum of their shares says."""

import numpy as np
import pytest

import ltinet
from reduction_cases import draw


def gap(net: ltinet.DynamicNetwork, found: ltinet.ReductionResult) -> float:
    sizes = np.abs(net.poles())
    omega = np.unique(np.concatenate([[0.0], sizes, np.geomspace(sizes.min() / 10.0, 10.0 * sizes.max(), 200)]))
    gaps = net.frequency_response(omega) - found.net.frequency_response(omega)
    return float(np.linalg.norm(gaps, 2, axis=(1, 2)).max())


@pytest.mark.parametrize("seed", [0, 3, 4, 7, 14, 24, 28, 35])
def test_no_share_is_below_what_is_lost(seed: int) -> None:
    """Dense, clustered (coupled neurons) and nearly unstable systems."""
    net = ltinet.construct(draw(seed).system)
    for order in (net.n_states // 3, net.n_states - 1, net.n_states):
        found = ltinet.reduce(net, order=order, method="neurons")
        assert found.order <= order
        assert set(found.net.layers) <= set(net.layers)
        assert gap(net, found) <= found.error_bound + 1e-13 * found.gain


def test_a_tolerance_and_the_bound_of_runs() -> None:
    net = ltinet.construct(ltinet.named_system("heat_rod", n_states=40))
    found = ltinet.reduce(net, tolerance=1e-2, method="neurons")
    assert 0 < found.net.n_neurons < net.n_neurons
    assert gap(net, found) <= found.error_bound <= 1e-2 * found.gain
    t = np.linspace(0.0, 2.0, 200)
    u = np.random.default_rng(0).standard_normal((len(t), net.n_inputs))
    small, whole = found.net.simulate(u, t), net.simulate(u, t)
    assert (np.abs(small.y - whole.y) <= small.error_bound(t) + whole.error_bound(t)).all()


def test_neurons_that_integrate_are_kept() -> None:
    rod = ltinet.named_system("heat_rod", n_states=6)
    A = np.block([[np.zeros((1, 1)), np.zeros((1, 6))], [np.zeros((6, 1)), rod.A]])
    net = ltinet.construct(
        (A, np.vstack([[[1.0] * rod.n_inputs], rod.B]), np.hstack([np.ones((rod.n_outputs, 1)), rod.C]))
    )
    found = ltinet.reduce(net, order=3, method="neurons")
    assert found.n_retained == 1
    assert 0.0 in found.net.poles()
    with pytest.raises(ltinet.InvalidSystemError, match="at least 1"):
        ltinet.reduce(net, order=0, method="neurons")


def test_what_was_left_out_before_counts_on() -> None:
    first = ltinet.construct(ltinet.named_system("heat_rod", n_states=40), tolerance=1e-3)
    for method in ("neurons", None):
        found = ltinet.reduce(first, order=first.n_states - 1, method=method)
        assert found.net.reduction_error == pytest.approx(first.reduction_error + found.pointwise_bound)
