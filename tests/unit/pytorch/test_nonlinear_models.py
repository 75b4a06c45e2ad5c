"""Models with static maps: initial linear part, derivatives, streaming and files."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.func import functional_call

import ltinet
from learnt_systems import network_of
from ltinet import nn


def network(n_inputs: int = 1, n_outputs: int = 1, *, seed: int = 0) -> nn.LinearNetwork:
    return network_of("coupled", n_inputs=n_inputs, n_outputs=n_outputs, seed=seed).to_torch(0.2)


def maps(channels: int, *, start: str = "identity") -> list[torch.nn.Module]:
    return [
        nn.Polynomial(channels, 3, scale=2.0, start=start),
        nn.Spline(channels, 6, low=-2.0, high=2.0, start=start),
        nn.MLP(channels, channels, hidden=5, start=start),
    ]


def disturbed(model: torch.nn.Module, size: float = 0.1) -> torch.nn.Module:
    rng = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for own in model.parameters():
            own.add_(size * torch.randn(own.shape, generator=rng, dtype=own.dtype))
    return model


def samples(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def models() -> dict[str, torch.nn.Module]:
    one, two = network(1, 2), network(2, 1, seed=1)
    found = {f"Wiener–Hammerstein, {type(own).__name__}": nn.wiener_hammerstein(one, own, two) for own in maps(2)}
    found["Hammerstein"] = nn.hammerstein(nn.Polynomial(1), network())
    found["Wiener"] = nn.wiener(network(), nn.Spline(1))
    found["Wiener, increasing"] = nn.wiener(network(), nn.Monotone(1, 4, low=-2.0, high=1.0))
    found["feedback"] = nn.Feedback(network(2, 2), nn.Polynomial(1, start="zero"), window=64)
    found["feedback between"] = nn.Stack(
        network(), nn.Feedback(network(2, 2), nn.MLP(1, 1, start="zero")), nn.Spline(1)
    )
    return found


@pytest.mark.parametrize("name", models())
def test_a_model_begins_as_its_linear_part(name: str) -> None:
    model, u = models()[name], samples(2, 80, 1)
    parts = model.parts if isinstance(model, nn.Stack) else [model]
    signal = u
    for part in parts:
        if isinstance(part, nn.Feedback):
            fed = torch.cat([signal, torch.zeros_like(signal)], -1)
            signal = part.network(fed)[..., :1]
        elif isinstance(part, nn.LinearNetwork):
            signal = part(signal)
    torch.testing.assert_close(model(u), signal, rtol=0.0, atol=1e-12 * float(signal.detach().abs().max()))


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("name", models())
def test_derivatives(name: str) -> None:
    model, u = disturbed(models()[name], 0.05), samples(1, 7, 1).requires_grad_()
    names = [key for key, own in model.named_parameters() if own.numel() and own.requires_grad]
    values = [dict(model.named_parameters())[key].detach().clone().requires_grad_() for key in names]

    def outputs(u: torch.Tensor, *given: torch.Tensor) -> torch.Tensor:
        return functional_call(model, dict(zip(names, given, strict=True)), (u,))

    assert torch.autograd.gradcheck(outputs, (u, *values), fast_mode=True)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("name", models())
def test_pieces_and_single_steps_give_the_record(name: str) -> None:
    model, u = disturbed(models()[name]), samples(2, 30, 1)
    y = model(u)
    first, state = model(u[:, :11], return_state=True)
    torch.testing.assert_close(torch.cat([first, model(u[:, 11:], state=state)], 1), y, rtol=1e-10, atol=1e-10)
    state, steps = None, []
    for k in range(30):
        out, state = model.step(u[:, k], state)
        steps.append(out)
    torch.testing.assert_close(torch.stack(steps, 1), y, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", models())
def test_files_restore_every_bit(name: str, tmp_path: Path) -> None:
    model, u = disturbed(models()[name]), samples(2, 30, 1)
    nn.save(model, tmp_path / "model.safetensors")
    again = nn.load(tmp_path / "model.safetensors")
    assert torch.equal(again(u), model(u))
    assert {key for key, own in again.named_parameters() if own.requires_grad} == {
        key for key, own in model.named_parameters() if own.requires_grad
    }


def test_files_keep_names_and_lead_back_to_networks(tmp_path: Path) -> None:
    system = ltinet.StateSpace([[-1.0]], [[1.0]], [[1.0]], inputs=["Force (N)"])
    nn.save(ltinet.construct(system).to_torch(0.1, hold="zero", trainable="C"), tmp_path / "model.safetensors")
    again = nn.load(tmp_path / "model.safetensors")
    assert (again.dt, again.hold, again.trainable) == (0.1, "zero", ("C",))
    assert again.to_network().input_names == ("Force (N)",)


def test_damaged_files_and_other_modules_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    nn.save(network(), path)
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ltinet.FileFormatError, match="checksum"):
        nn.load(path)
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ltinet.FileFormatError, match="not a readable safetensors"):
        nn.load(path)
    network_of("coupled").save(path)
    with pytest.raises(ltinet.FileFormatError, match="is not a model"):
        nn.load(path)
    with pytest.raises(ltinet.InvalidNetworkError, match=r"nn\.save does not write a ReLU; save the state_dict"):
        nn.save(nn.Stack(network(), relu()), path)


def relu() -> torch.nn.Module:
    module = torch.nn.ReLU()
    module.n_inputs = module.n_outputs = 1
    return module


def test_parts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ltinet.InvalidNetworkError, match="part 0 has 2 outputs but part 1 takes 1"):
        nn.Stack(network(1, 2), nn.Polynomial(1))
    with pytest.raises(ltinet.InvalidNetworkError, match="at least one part"):
        nn.Stack()
    with pytest.raises(ltinet.InvalidNetworkError, match="network has 1 inputs and 1 outputs, but the last 2 inputs"):
        nn.Feedback(network(), nn.Polynomial(2))
    with pytest.raises(ltinet.InvalidNetworkError, match="the last 1 inputs and 1 outputs are those of the map; give"):
        nn.Feedback(network(), nn.Polynomial(1))  # would have no inputs and no outputs
    for swapped in (
        lambda: nn.wiener(nn.Polynomial(1), network()),
        lambda: nn.hammerstein(network(), nn.Polynomial(1)),
        lambda: nn.wiener_hammerstein(network(), network(), nn.Polynomial(1)),
    ):
        with pytest.raises(ltinet.InvalidNetworkError, match=r"; the order is nn\.(wiener|hammerstein)"):
            swapped()
    with pytest.raises(ltinet.InvalidNetworkError, match="degree must be an integer of at least 1, got 0"):
        nn.Polynomial(1, 0)
    with pytest.raises(ltinet.InvalidSignalError, match="tuple of 2"):
        nn.wiener(network(), nn.Polynomial(1))(samples(10, 1), state=samples(1, 5))


def test_the_part_that_overflows_is_named() -> None:
    model, u = nn.Stack(network(), nn.Polynomial(1, 3), network()), 1e160 * samples(20, 1)
    with torch.no_grad():
        model.parts[1].weights[2] = 1.0
    for run in (lambda: model(u), lambda: nn.Stack(*list(model.parts)[:2])(u), lambda: model.step(u[5])):
        with pytest.raises(ltinet.SimulationError, match="part 1, a Polynomial, are not finite"):
            run()
    with pytest.raises(ltinet.InvalidSignalError, match="u has entries that are not finite"):
        nn.Stack(nn.Polynomial(1), network())(float("nan") * u)


def test_overflowing_step_is_rejected() -> None:
    model, u = nn.wiener(network(), nn.Polynomial(1, 3)), samples(20, 1)
    history = nn.fit(model, (u, model(u).detach() + 0.1), steps=3, lr=1e200)
    assert "rejected" in history.notes[0]


def test_networks_of_a_stack_by_name() -> None:
    found = nn.wiener_hammerstein(network(), nn.Polynomial(1), network(seed=1)).to_networks()
    assert list(found) == ["part0", "part1", "part2"]
    assert isinstance(found["part0"], ltinet.DynamicNetwork)
    assert isinstance(found["part1"], nn.Polynomial)
