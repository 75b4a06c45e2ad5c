"""Derivatives of every kind that PyTorch supports, with every algorithm."""

import copy
from typing import get_args

import numpy as np
import pytest
import torch
from torch.func import functional_call, jvp, vmap

from learnt_systems import KINDS, network_of
from ltinet.torch.linear_network import LinearNetwork
from ltinet.torch.planner import AlgorithmName, Plan

ALL = ("poles", "held", "couplings", "B", "C", "D")


def small_model(kind: str, *, hold: str = "linear") -> LinearNetwork:
    return network_of(kind, n_inputs=1, n_outputs=2).to_torch(0.3, hold=hold, trainable=ALL)


def samples(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("way", get_args(AlgorithmName))
@pytest.mark.parametrize("kind", ["pairs and reals", "coupled", "integrators"])
def test_gradcheck_of_every_way_and_parameter(kind: str, way: str) -> None:
    model = small_model(kind)
    names = [name for name, own in model.named_parameters() if own.numel()]
    values = [own.detach().clone().requires_grad_() for _, own in model.named_parameters() if own.numel()]
    u, x0 = samples(2, 7, 1).requires_grad_(), samples(2, model.n_states, seed=1).requires_grad_()

    def outputs(u: torch.Tensor, x0: torch.Tensor, *given: torch.Tensor) -> torch.Tensor:
        own = dict(zip(names, given, strict=True))
        y, end = functional_call(model, own, (u,), {"x0": x0, "plan": Plan(way, 3), "return_state": True})
        return torch.cat([y.flatten(), end.flatten()])

    fast = (way, kind) != ("time blocks", "pairs and reals")  # one entry by entry, the others by a random direction
    assert torch.autograd.gradcheck(outputs, (u, x0, *values), fast_mode=fast)


@pytest.mark.parametrize("kind", ["pairs and reals", "coupled"])
def test_gradcheck_at_uneven_times(kind: str) -> None:
    model = small_model(kind)
    names = [name for name, own in model.named_parameters() if own.numel()]
    values = [own.detach().clone().requires_grad_() for _, own in model.named_parameters() if own.numel()]
    u = samples(1, 6, 1).requires_grad_()
    times = torch.tensor([0.0, 0.2, 0.25, 0.9, 0.9, 1.5], dtype=torch.float64).requires_grad_()

    def outputs(u: torch.Tensor, *given: torch.Tensor) -> torch.Tensor:
        return functional_call(model, dict(zip(names, given, strict=True)), (u,), {"times": times.detach()})

    assert torch.autograd.gradcheck(outputs, (u, *values), fast_mode=True)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("hold", ["zero", "linear"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_ways_have_the_same_gradients(kind: str, hold: str) -> None:
    u, weights = samples(2, 120, 1), samples(2, 120, 2, seed=1)
    found = []
    for plan in (
        Plan("steps", 1),
        Plan("scan", 1),
        Plan("convolution", 16),
        Plan("time blocks", 16),
        Plan("time blocks", 128),
    ):
        model = small_model(kind, hold=hold)
        given = u.clone().requires_grad_()
        (model(given, plan=plan) * weights).sum().backward()
        found.append([given.grad, *(own.grad for own in model.parameters())])
    model, times = small_model(kind, hold=hold), 0.3 * torch.arange(120, dtype=torch.float64)
    given = u.clone().requires_grad_()
    (model(given, times=times) * weights).sum().backward()
    found.append([given.grad, *(own.grad for own in model.parameters())])
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            if one is not None and one.numel():
                assert float((one - other).abs().max()) <= 1e-10 * float(one.abs().max())


def test_gradients_are_finite_at_rates_of_zero() -> None:
    model = small_model("integrators")
    model(samples(1, 50, 1)).square().sum().backward()
    assert all(bool(torch.isfinite(own.grad).all()) for own in model.parameters())


@pytest.mark.parametrize("way", ["time blocks", "convolution", "scan"])
@pytest.mark.parametrize("kind", ["pairs and reals", "coupled"])
def test_vmap_and_jvp(kind: str, way: str) -> None:
    model, u = small_model(kind), samples(4, 3, 60, 1)
    plan = Plan(way, 16)
    inside = vmap(lambda one: model(one, plan=plan))(u)
    torch.testing.assert_close(inside, model(u, plan=plan), rtol=0.0, atol=1e-12)
    given = {name: own.detach() for name, own in model.named_parameters()}
    along = {name: samples(*own.shape, seed=3) for name, own in given.items()}

    def run(given: dict[str, torch.Tensor]) -> torch.Tensor:
        return functional_call(model, given, (u[0],), {"plan": plan})

    _, slope = jvp(run, (given,), (along,))
    step = 1e-6
    ahead, behind = (run({k: own + sign * step * along[k] for k, own in given.items()}) for sign in (1.0, -1.0))
    torch.testing.assert_close(slope, (ahead - behind) / (2.0 * step), rtol=1e-6, atol=1e-6)
    # Five networks at once, each with its own parameters.
    many = {name: torch.stack([own * (1.0 + 0.01 * k) for k in range(5)]) for name, own in given.items()}
    together = vmap(run)(many)
    for k in range(5):
        alone = run({name: own[k] for name, own in many.items()})
        torch.testing.assert_close(together[k], alone, rtol=0.0, atol=1e-11)


def test_copies_and_state_dicts_are_complete() -> None:
    model, u = small_model("coupled"), samples(2, 30, 1)
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for own in twin.parameters():
            own.add_(0.01)
    assert not torch.equal(model(u), twin(u))
    model.load_state_dict(twin.state_dict())
    assert torch.equal(model(u), twin(u))


def test_step_cache_follows_parameters() -> None:
    model, u = small_model("pairs and reals"), samples(1, 30, 1)
    with torch.no_grad():
        before = model(u)
        model.C.mul_(2.0)
        model.D.mul_(2.0)
        torch.testing.assert_close(model(u), 2.0 * before, rtol=1e-14, atol=0.0)


def test_parameters_stay_in_double_precision_and_autocast_is_off_inside() -> None:
    model, u = small_model("coupled"), samples(2, 100, 1)
    y = model(u).detach()
    model.float()
    assert {own.dtype for own in model.parameters()} == {torch.float64}
    with torch.autocast("cpu", dtype=torch.bfloat16):
        single = model(u.float()).detach()
    assert single.dtype == torch.float32
    assert float((single.double() - y).abs().max()) <= 1e-5 * float(y.abs().max())
    half = model(u.half()).detach()
    assert half.dtype == torch.float16
    expected = model(u.half().double()).detach()
    assert float((half.double() - expected).abs().max()) <= 2.0**-10 * float(expected.abs().max())


def test_a_compiled_model_gives_equal_numbers() -> None:
    model, u = small_model("coupled"), samples(2, 50, 1)
    compiled = torch.compile(model, backend="eager")
    torch.testing.assert_close(compiled(u), model(u), rtol=0.0, atol=1e-13)
