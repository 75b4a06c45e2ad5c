"""Networks rebuilt from trained models have the outputs of the models."""

import numpy as np
import pytest
import torch

import ltinet
from learnt_systems import KINDS, network_of, off_by


@pytest.mark.parametrize("kind", KINDS)
def test_the_network_of_a_changed_model(kind: str) -> None:
    net, dt = network_of(kind), 0.1
    model = net.to_torch(dt)
    rng = np.random.default_rng(3)
    with torch.no_grad():
        for own in model.parameters():
            own.add_(0.05 * torch.from_numpy(rng.standard_normal(own.shape)) if own.requires_grad else 0.0)
    rebuilt = model.to_network()
    assert isinstance(rebuilt, ltinet.DynamicNetwork)
    assert rebuilt.n_states == net.n_states
    u, x0, t = rng.standard_normal((100, 2)), rng.standard_normal(net.n_states), dt * np.arange(100)
    y = model(torch.from_numpy(u), x0=torch.from_numpy(x0)).detach().numpy()
    solution = rebuilt.simulate(u, t, x0=x0)
    assert off_by(solution.y, y) <= 1e-11
    assert np.isfinite(solution.error_bound()).all()
    assert off_by(rebuilt.to_torch(dt)(torch.from_numpy(u), x0=torch.from_numpy(x0)).detach().numpy(), y) <= 1e-11


def test_names_come_back() -> None:
    system = ltinet.StateSpace(
        KINDS["coupled"], np.ones((5, 1)), np.ones((1, 5)), inputs=["Force (N)"], outputs=["y (m)"]
    )
    rebuilt = ltinet.construct(system).to_torch(0.1).to_network()
    assert rebuilt.input_names == ("Force (N)",)
    assert rebuilt.output_names == ("y (m)",)
