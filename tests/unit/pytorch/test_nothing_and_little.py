"""Empty batches, records of one sample, copies and initial states."""

import copy
from typing import get_args

import numpy as np
import pytest
import torch

import ltinet
from learnt_systems import network_of
from ltinet import nn
from ltinet.torch.planner import AlgorithmName, Plan

LINEAR = network_of("pairs and reals", n_inputs=2, n_outputs=2)
SECOND = network_of("pairs and reals", n_inputs=2, n_outputs=1)


def feedback() -> nn.Feedback:
    return nn.Feedback(LINEAR.to_torch(0.1), nn.Polynomial(1, 3, start="zero"))


MODELS = {
    "network": lambda: LINEAR.to_torch(0.1),
    "feedback": feedback,
    "stack": lambda: nn.Stack(LINEAR.to_torch(0.1), nn.Polynomial(2, 3), SECOND.to_torch(0.1)),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_batch_of_nothing(kind: str) -> None:
    model = MODELS[kind]()
    y, _ = model(torch.zeros(0, 5, model.n_inputs, dtype=torch.float64), return_state=True)
    assert tuple(y.shape) == (0, 5, model.n_outputs)
    y.sum().backward()


@pytest.mark.parametrize("way", get_args(AlgorithmName))
@pytest.mark.parametrize(("batch", "steps"), [(0, 5), (2, 1), (1, 2)])
def test_every_way_through_little(way: str, batch: int, steps: int) -> None:
    model = LINEAR.to_torch(0.1)
    u = torch.from_numpy(np.random.default_rng(0).standard_normal((batch, steps, 2)))
    y, state = model(u, plan=Plan(way, 3), return_state=True)
    assert tuple(y.shape) == (batch, steps, 2)
    assert tuple(state.shape) == (batch, model.n_states)
    if batch:
        expected = LINEAR.simulate(u.numpy(), 0.1 * np.arange(steps)).y if steps > 1 else y.detach().numpy()
        assert np.abs(y.detach().numpy() - expected).max() <= 1e-12 * np.abs(expected).max()


def test_steps_and_uneven_times_of_nothing() -> None:
    model = LINEAR.to_torch(0.1)
    y, state = model.step(torch.zeros(0, 2, dtype=torch.float64))
    assert tuple(y.shape) == (0, 2)
    assert tuple(state.shape) == (0, model.n_states)
    assert tuple(model(torch.zeros(0, 5, 2, dtype=torch.float64), times=torch.arange(5.0)).shape) == (0, 5, 2)


@pytest.mark.parametrize("kind", MODELS)
def test_copies_are_models_of_their_own(kind: str) -> None:
    model = MODELS[kind]()
    u = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 30, model.n_inputs)))
    other = copy.deepcopy(model)
    before = model(u)
    with torch.no_grad():
        for own in other.parameters():
            own.mul_(0.9)
    assert torch.equal(model(u), before)


def test_a_loop_says_that_it_cannot_be_batched_by_vmap() -> None:
    with pytest.raises(ltinet.InvalidSignalError, match=r"torch.func.vmap.*axis of u"):
        torch.func.vmap(feedback())(torch.zeros(3, 5, 1, dtype=torch.float64))


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_the_state_that_explains_first_samples(kind: str) -> None:
    model, draw = MODELS[kind](), torch.Generator().manual_seed(0)
    if kind == "feedback":
        with torch.no_grad():
            model.map.weights[2] = -0.01
    u = 0.1 * torch.randn(30, model.n_inputs, generator=draw, dtype=torch.float64)
    sizes = [own.n_states if hasattr(own, "n_states") else None for own in getattr(model, "parts", [LINEAR])]
    x0 = tuple(None if n is None else 0.1 * torch.randn(n, generator=draw, dtype=torch.float64) for n in sizes)
    given = x0 if kind == "stack" else x0[0]
    with torch.no_grad():
        y = model(u, x0=given)
        found = model(u, x0=nn.initial_state(model, u, y))
    # Directions that samples say less of than 1e-6 of the most are left alone.
    assert float((found - y).abs().max()) <= 1e-5 * float(y.abs().max())


def test_what_no_state_is_sought_for() -> None:
    stack = MODELS["stack"]()
    u, y = torch.zeros(5, 2, dtype=torch.float64), torch.zeros(4, 1, dtype=torch.float64)
    with pytest.raises(ltinet.InvalidSignalError, match=r"y has shape \(4, 1\)"):
        nn.initial_state(stack, u, y)
    with pytest.raises(ltinet.InvalidSignalError, match="one record"):
        nn.initial_state(stack, u[None], y[None, :1].expand(1, 5, 1))
    with pytest.raises(ltinet.InvalidNetworkError, match="model is a Polynomial"):
        nn.initial_state(nn.Polynomial(1, 3), u[:, :1], y)
