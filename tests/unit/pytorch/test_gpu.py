"""Outputs and gradients on a GPU equal those on the CPU with every algorithm."""

import copy
from typing import get_args

import numpy as np
import pytest
import torch

from learnt_systems import KINDS, network_of
from ltinet.nn import StateSpaceLayer
from ltinet.torch.linear_network import LinearNetwork
from ltinet.torch.planner import AlgorithmName, Plan

if not torch.cuda.is_available():
    pytest.skip("there is no GPU that PyTorch can use", allow_module_level=True)


def samples(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def outputs_and_gradients(model: LinearNetwork, u: torch.Tensor, plan: Plan | None, **given: object) -> list:
    model.zero_grad()
    y = model(u.to(model.B.device), plan=plan, **given)
    y.square().mean().backward()
    return [y.detach().cpu(), *(own.grad.cpu() for own in model.parameters() if own.grad is not None)]


def assert_equal(one: list, other: list, bound: float = 1e-10) -> None:
    for a, b in zip(one, other, strict=True):
        if a.numel():  # a kind of neurons that a network lacks has no parameters
            assert float((a - b).abs().max()) <= bound * float(a.abs().max())


@pytest.mark.parametrize("hold", ["zero", "linear"])
@pytest.mark.parametrize("way", get_args(AlgorithmName))
@pytest.mark.parametrize("kind", KINDS)
def test_outputs_and_gradients(kind: str, way: str, hold: str) -> None:
    here = network_of(kind).to_torch(0.1, hold=hold)
    there, plan = copy.deepcopy(here).to("cuda"), Plan(way, 16)
    for call in range(5):  # from the third on kernels may be recorded
        u = samples(3, 200, 2, seed=call)
        assert_equal(outputs_and_gradients(here, u, plan), outputs_and_gradients(there, u, plan))
        with torch.no_grad():  # a replay must see what an optimiser changed
            here.C.mul_(1.1)
            there.C.mul_(1.1)
    assert there.cuda_graphs.failure is None


@pytest.mark.parametrize("way", ["convolution", "scan", "time blocks"])
def test_recordings_follow_what_changes(way: str) -> None:
    model, plan = network_of("pairs and reals").to_torch(0.1).to("cuda"), Plan(way, 16)
    for _ in range(4):
        outputs_and_gradients(model, samples(3, 200, 2), plan)
    for change in (lambda: model.at(0.2), lambda: copy.deepcopy(model), model.cpu):
        changed = change()
        for steps in (200, 200, 200, 37, 1):
            u = samples(2, steps, 2, seed=1)
            fresh = changed.to_network().to_torch(changed.dt, trainable=False)
            found = outputs_and_gradients(changed, u, plan)
            assert float((found[0] - fresh(u)).abs().max()) <= 1e-10 * float(fresh(u).abs().max())


@pytest.mark.parametrize("way", ["convolution", "scan", "time blocks"])
def test_two_runs_before_one_pass_back(way: str) -> None:
    here = network_of("pairs and reals").to_torch(0.1)
    there, plan = copy.deepcopy(here).to("cuda"), Plan(way, 16)
    for _ in range(4):
        outputs_and_gradients(there, samples(3, 200, 2), plan)
    found = []
    for model in (here, there):
        model.zero_grad()
        first, second = (model(samples(2, 200, 2, seed=own).to(model.B.device), plan=plan) for own in (0, 1))
        (first.square().mean() + second.square().mean()).backward(retain_graph=True)
        second.square().mean().backward()  # once more: its numbers are no longer there
        found.append([own.grad.cpu() for own in model.parameters() if own.grad is not None])
    assert_equal(*found)


@pytest.mark.parametrize("way", ["convolution", "scan", "time blocks"])
def test_second_derivatives(way: str) -> None:
    here = network_of("pairs and reals").to_torch(0.1)
    there, plan = copy.deepcopy(here).to("cuda"), Plan(way, 16)
    for _ in range(4):
        outputs_and_gradients(there, samples(3, 60, 2), plan)
    found = []
    for model in (here, there):
        loss = model(samples(2, 60, 2).to(model.B.device), plan=plan).square().mean()
        (once,) = torch.autograd.grad(loss, model.frequency, create_graph=True)
        found.append([own.cpu() for own in torch.autograd.grad(once.square().sum(), [model.frequency, model.C])])
    assert_equal(*found, bound=1e-9)


def test_runs_that_go_on_and_many_models() -> None:
    here = network_of("pairs and reals").to_torch(0.1)
    there = copy.deepcopy(here).to("cuda")
    u = samples(2, 400, 2)
    for plan in (Plan("scan", 1), Plan("time blocks", 16), Plan("convolution", 16)):
        for _ in range(5):
            y, state = there(u[:, :150].cuda(), return_state=True, plan=plan)
            rest = there(u[:, 150:].cuda(), state=state, plan=plan)
        assert_equal([here(u)], [torch.cat([y, rest], 1).detach().cpu()])


def test_per_sample_gradients_by_vmap() -> None:
    here = network_of("pairs and reals").to_torch(0.1)
    there = copy.deepcopy(here).to("cuda")
    for _ in range(4):
        outputs_and_gradients(there, samples(3, 60, 2), None)
    found = []
    for model in (here, there):
        values = {name: own.detach() for name, own in model.named_parameters()}

        def loss(own: dict, u: torch.Tensor, model: LinearNetwork = model) -> torch.Tensor:
            return torch.func.functional_call(model, own, (u,)).square().mean()

        each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(values, samples(4, 60, 2).to(model.B.device))
        found.append([own.cpu() for own in each.values()])
    assert_equal(*found)


@pytest.mark.parametrize("hold", ["zero", "linear"])
@pytest.mark.parametrize("mixing", [False, True])
@pytest.mark.parametrize("init", ["s4d_lin", "hippo_legt"])
def test_state_space_layers(init: str, mixing: bool, hold: str) -> None:
    torch.manual_seed(3)
    here = StateSpaceLayer(3, 8, init=init, mixing=mixing, hold=hold)
    there = copy.deepcopy(here).to("cuda")
    for call in range(5):
        u = samples(2, 150, 3, seed=call)
        found = []
        for layer in (here, there):
            layer.zero_grad()
            samples_there = u.to(layer.B.device)
            whole = layer(samples_there)
            first, state = layer(samples_there[:, :60], return_state=True)
            pieces = torch.cat([first, layer(samples_there[:, 60:], state=state)], 1)
            (whole.square().mean() + pieces.mean()).backward()
            grads = [own.grad for own in layer.parameters() if own.numel()]
            found.append([values.cpu() for values in (whole.detach(), pieces.detach(), *grads)])
        assert_equal(*found, bound=1e-9)
        with torch.no_grad():
            here.log_dt.add_(0.01)
            there.log_dt.add_(0.01)
    assert there.cuda_graphs.failure is None


def test_records_of_many_lengths_in_turn() -> None:
    torch.manual_seed(3)
    here = StateSpaceLayer(3, 8)
    there = copy.deepcopy(here).to("cuda")
    for _ in range(4):
        for steps in range(100, 107):
            u = samples(2, steps, 3, seed=steps)
            assert_equal([here(u).detach()], [there(u.cuda()).detach().cpu()])
