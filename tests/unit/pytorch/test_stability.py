"""Stable modes stay stable, and values and gradients finite, with any optimizer."""

import numpy as np
import pytest
import torch

from learnt_systems import KINDS, network_of
from ltinet.torch.linear_network import dense_matrices
from ltinet.torch.parameters import LOG_RANGE

STABLE = ["pairs and reals", "coupled", "nearly real pair"]


@pytest.mark.parametrize("kind", STABLE)
def test_a_thousand_large_random_steps(kind: str) -> None:
    model = network_of(kind).to_torch(0.1)
    rng = torch.Generator().manual_seed(5)
    u = torch.randn(1, 40, 2, generator=rng, dtype=torch.float64)
    for _ in range(1000):
        with torch.no_grad():
            for own in model.parameters():
                own.add_(torch.randn(own.shape, generator=rng, dtype=own.dtype))
    y = model(u)
    y.square().mean().backward()
    assert bool(torch.isfinite(y).all())
    assert all(bool(torch.isfinite(own.grad).all()) for own in model.parameters() if own.grad is not None)
    assert np.linalg.eigvals(dense_matrices(model.system())[0]).real.max() < 0.0


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("kind", STABLE)
def test_gradients_stay_finite_all_the_way(kind: str) -> None:
    """Each step is against the gradient of a loss, far too large."""
    model = network_of(kind).to_torch(0.1)
    u = torch.from_numpy(np.random.default_rng(0).standard_normal((1, 40, 2)))
    optimiser = torch.optim.SGD([own for own in model.parameters() if own.numel()], lr=10.0)
    for _ in range(30):
        optimiser.zero_grad()
        loss = (model(u) - 1.0).square().mean()
        loss.backward()
        assert all(bool(torch.isfinite(own.grad).all()) for own in model.parameters() if own.grad is not None)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    system = model.system()
    assert bool((system.pair_rates < 0.0).all())
    assert bool((system.real_rates < 0.0).all())


def test_the_limits_of_decays_are_as_stated() -> None:
    model = network_of("pairs and reals").to_torch(0.1)
    start = model.system().real_rates.detach().clone()
    with torch.no_grad():
        model.log_decay.add_(1e6)
    torch.testing.assert_close(model.system().real_rates, start * float(np.exp(LOG_RANGE)))


@pytest.mark.parametrize("kind", ["integrators", "unstable"])
def test_poles_that_do_not_decay_are_held_unless_named(kind: str) -> None:
    net = network_of(kind)
    model = net.to_torch(0.1)
    assert not model.held_rates.requires_grad
    assert len(model.held_rates) == np.count_nonzero(np.diag(_standard(KINDS[kind])) >= 0.0)
    assert model.trainable == ("poles", "couplings", "B", "C", "D")
    assert net.to_torch(0.1, trainable=("held", "C")).trainable == ("held", "C")
    assert not any(own.requires_grad for own in net.to_torch(0.1, trainable=False).parameters())


def _standard(A: np.ndarray) -> np.ndarray:
    """The matrix with each pair once: rows of the second state of a pair left out."""
    second = np.flatnonzero(np.diag(A, -1)) + 1
    keep = np.setdiff1d(np.arange(len(A)), second)
    return A[np.ix_(keep, keep)]
