"""Hypothesis: on a GPU a model gives the same numbers and gradients as on the processor, by every way through time."""

import numpy as np
import pytest
import torch

from learnt_systems import KINDS, network_of
from ltinet.learn.ways import WAYS, Plan

if not torch.cuda.is_available():
    pytest.skip("there is no GPU that PyTorch can use", allow_module_level=True)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_outputs_and_gradients(kind: str, way: str) -> None:
    found = []
    u = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 200, 2)))
    for device in ("cpu", "cuda"):
        model = network_of(kind).to_torch(0.1).to(device)
        y = model(u.to(device), plan=Plan(way, 16))
        y.square().mean().backward()
        found.append([y.detach().cpu(), *(own.grad.cpu() for own in model.parameters() if own.grad is not None)])
    for one, other in zip(*found, strict=True):
        if one.numel():  # a kind of neurons that a network lacks has no parameters
            assert float((one - other).abs().max()) <= 1e-10 * float(one.abs().max())
