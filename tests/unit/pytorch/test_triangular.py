"""`nn.Triangular` is its network with the identity, and solves the equations of Algorithm 3 otherwise."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from torch.func import functional_call, jvp, vmap

import ltinet
from learnt_systems import KINDS, network_of, off_by
from ltinet import nn
from ltinet.nn.triangular import validate_neuron_groups

DT = 0.1


def one_layer(n_inputs: int = 2) -> ltinet.DynamicNetwork:
    """Three reals and three pairs in a layer of six neurons, each fed by all after it."""
    rng = np.random.default_rng(5)
    A = np.triu(0.5 * rng.standard_normal((9, 9)), 1) - np.diag([0.3, 0.4, 0.5, 0.35, 0.35, 0.6, 0.6, 0.45, 0.45])
    for i, w in zip((3, 5, 7), (2.0, 1.1, 3.0), strict=True):
        A[i, i + 1], A[i + 1, i] = w, -w
    B, C = rng.standard_normal((9, n_inputs)), rng.standard_normal((2, 9))
    return ltinet.construct((A, B, C, rng.standard_normal((2, n_inputs))), n_layers=1)


def network(kind: str) -> ltinet.DynamicNetwork:
    return one_layer() if kind == "one layer" else network_of(kind)


def samples(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def disturbed(model: nn.Triangular, size: float = 0.1) -> nn.Triangular:
    rng = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for own in model.parameters():
            own.add_(size * torch.randn(own.shape, generator=rng, dtype=own.dtype))
    return model


def softened(net: ltinet.DynamicNetwork, **options: object) -> nn.Triangular:
    """φ(s) = s + a s² + b s³ with other a and b for each neuron."""
    model = nn.Triangular(net, nn.Polynomial(net.n_neurons, 3), **{"dt": DT, **options})
    with torch.no_grad():
        model.map.weights[1:] = 0.05 * samples(2, net.n_neurons, seed=9)
    return model


@pytest.mark.default_cases(5)
@pytest.mark.parametrize("hold", ["linear", "zero"])
@pytest.mark.parametrize("kind", [*KINDS, "one layer"])
def test_with_the_identity_it_is_the_network(kind: str, hold: str) -> None:
    net, u = network(kind), samples(2, 300, 2)
    x0, t = samples(2, net.n_states, seed=1), DT * np.arange(300)
    for map in (nn.Polynomial(1, 3), nn.Spline(net.n_neurons, 5), nn.MLP(1, 1)):
        model = nn.Triangular(net, map, dt=DT, hold=hold)
        assert off_by(model(u).detach().numpy(), net.simulate(u.numpy(), t, hold=hold).y) <= 1e-12
    y = model(u, x0=x0).detach().numpy()
    assert off_by(y, net.simulate(u.numpy(), t, hold=hold, x0=x0.numpy()).y) <= 1e-12


def by_a_solver(net: ltinet.DynamicNetwork, u: np.ndarray, t: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The paper's equations as they stand, with ζ = ξ̇ − V u: ζ̇ = φ(s) − c ξ̇ − k ξ, and ξ̇ = (φ(s) − k ξ)/c."""
    numbers = np.cumsum([0, *(layer.n_neurons for layer in net.layers)])

    def parts(time: float, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        now, slope, at = np.array([np.interp(time, t, own) for own in u.T]), [], 0
        output = net.Psi @ now
        for layer, Phi, first in zip(net.layers, net.Phi, numbers, strict=False):
            n, second = layer.n_neurons, layer.is_second_order
            xi, zeta = x[at : at + n], x[at + n : at + layer.n_states]
            at += layer.n_states
            rate = np.zeros(n)
            rate[second] = zeta + layer.V[second] @ now
            force = np.zeros(n)
            for i in layer.solving_order:
                s = layer.E[i] @ now - layer.K[i, i + 1 :] @ xi[i + 1 :] - layer.C[i, i + 1 :] @ rate[i + 1 :]
                force[i] = weights[:, first + i] @ [s, s**2, s**3]
                if not second[i]:
                    rate[i] = (force[i] - layer.K[i, i] * xi[i]) / layer.C[i, i]
            slope += [rate, (force - layer.C.diagonal() * rate - layer.K.diagonal() * xi)[second]]
            output = output + Phi @ np.concatenate([xi, rate[second]])
        return np.concatenate(slope), output

    found = solve_ivp(
        lambda time, x: parts(time, x)[0], (t[0], t[-1]), np.zeros(net.n_states), t_eval=t, rtol=1e-8, atol=1e-10
    ).y
    return np.array([parts(time, x)[1] for time, x in zip(t, found.T, strict=True)])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["coupled", "one layer"])
def test_it_solves_the_equations_of_the_paper(kind: str) -> None:
    net, errors = network(kind), []
    for dt in (0.04, 0.02):
        t = dt * np.arange(round(4.0 / dt) + 1)
        u = np.column_stack([np.sin(1.3 * t), np.cos(0.7 * t) - 1.0])
        model = softened(net, dt=dt)
        y = model(torch.from_numpy(u)).detach().numpy()
        errors.append(off_by(y, by_a_solver(net, u, t, model.map.weights.detach().numpy())))
        plain = net.simulate(u, t).y
    assert off_by(y, plain) > 0.01  # the activations do something
    # What is held between samples is off by h²/8 of its curvature: half the step leaves a quarter.
    assert 3.5 < errors[0] / errors[1] < 4.5
    assert errors[1] < 0.1 * off_by(y, plain)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("hold", ["linear", "zero"])
@pytest.mark.parametrize("kind", ["pairs and reals", "one layer", "integrators"])
def test_derivatives(kind: str, hold: str) -> None:
    model, u = softened(network(kind), hold=hold), samples(1, 6, 2).requires_grad_()
    disturbed(model, 0.05)
    x0 = samples(1, model.network.n_states).requires_grad_()
    names = [key for key, own in model.named_parameters() if own.numel() and own.requires_grad]
    values = [dict(model.named_parameters())[key].detach().clone().requires_grad_() for key in names]

    def outputs(u: torch.Tensor, x0: torch.Tensor, *given: torch.Tensor) -> torch.Tensor:
        return functional_call(model, dict(zip(names, given, strict=True)), (u,), {"x0": x0})

    assert torch.autograd.gradcheck(outputs, (u, x0, *values), fast_mode=True)
    along = [samples(*own.shape, seed=4) for own in values]
    _, forward = jvp(lambda *given: outputs(u, x0, *given), tuple(values), tuple(along))
    moved = [
        outputs(u, x0, *(own + size * way for own, way in zip(values, along, strict=True))).detach()
        for size in (1e-5, -1e-5)
    ]
    torch.testing.assert_close(forward, (moved[0] - moved[1]) / 2e-5, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_pieces_single_steps_and_batches_give_the_record() -> None:
    model, u = softened(one_layer()), samples(3, 40, 2)
    y = model(u)
    first, state = model(u[:, :17], return_state=True)
    torch.testing.assert_close(torch.cat([first, model(u[:, 17:], state=state)], 1), y, rtol=0.0, atol=1e-11)
    state, steps = None, []
    for k in range(40):
        out, state = model.step(u[:, k], state)
        steps.append(out)
    torch.testing.assert_close(torch.stack(steps, 1), y, rtol=0.0, atol=1e-11)
    torch.testing.assert_close(vmap(model)(u), y, rtol=0.0, atol=1e-12)
    assert model(u[:0]).shape == (0, 40, 2)


def test_copies_types_and_compilers_keep_the_numbers() -> None:
    model, u = softened(one_layer()), samples(2, 50, 2)
    y = model(u)
    twin = copy.deepcopy(model).to(torch.float32)  # parameters stay in double precision
    assert torch.equal(twin(u), y)
    fresh = nn.Triangular(one_layer(), nn.Polynomial(6, 3), dt=DT)
    fresh.load_state_dict(model.state_dict())
    assert torch.equal(fresh(u), y)
    scale = float(y.detach().abs().max())
    torch.testing.assert_close(model(u.float()).double(), y, rtol=0.0, atol=1e-5 * scale)
    assert model(u.bfloat16()).dtype == torch.bfloat16
    torch.testing.assert_close(torch.compile(model, backend="eager")(u), y, rtol=0.0, atol=1e-13)
    slow = softened(one_layer(), dt=0.2)
    torch.testing.assert_close(model.at(0.2)(u), slow(u), rtol=0.0, atol=1e-12)
    assert torch.equal(model(u), y)


def test_files_restore_every_bit(tmp_path: Path) -> None:
    model, u = nn.Stack(nn.Polynomial(2), disturbed(softened(one_layer()))), samples(2, 30, 2)
    nn.save(model, tmp_path / "model.safetensors")
    again = nn.load(tmp_path / "model.safetensors")
    assert torch.equal(again(u), model(u))
    assert {key for key, own in again.named_parameters() if own.requires_grad} == {
        key for key, own in model.named_parameters() if own.requires_grad
    }


def test_the_linear_part_is_a_network_again() -> None:
    net, u = one_layer(), samples(200, 2)
    model = disturbed(nn.Triangular(net, nn.Polynomial(1), dt=DT), 0.02)
    with torch.no_grad():
        model.map.weights.copy_(nn.Polynomial(1).weights)
    assert off_by(model(u).detach().numpy(), model.to_network().simulate(u.numpy(), DT * np.arange(200)).y) <= 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("method", ["lm", "adam"])
def test_a_fit_finds_the_activation(method: str) -> None:
    net = network("coupled")
    true, model = softened(net, trainable=False), nn.Triangular(net, nn.Polynomial(4, 3), dt=DT, trainable=False)
    u = samples(1, 120, 2)
    history = nn.fit(model, (u, true(u).detach()), method=method, steps=6 if method == "lm" else 60)
    assert history.train[-1] < (1e-6 if method == "lm" else 0.5) * history.train[0]


def test_a_first_state_is_found() -> None:
    model, u = softened(network("pairs and reals"), trainable=False), samples(6, 2)
    x0 = samples(6)
    found = nn.initial_state(model, u, model(u, x0=x0))
    torch.testing.assert_close(model(u, x0=found), model(u, x0=x0), rtol=0.0, atol=1e-6)


NET = network_of("coupled")
BAD_MAPS = {
    "MLP of all neurons": nn.MLP(4, 4),
    "too few": nn.Polynomial(3),
    "no map": torch.nn.Tanh(),
}


@pytest.mark.parametrize("case", BAD_MAPS)
def test_maps_that_do_not_fit(case: str) -> None:
    with pytest.raises(ltinet.InvalidNetworkError, match="Polynomial or Spline with 4"):
        nn.Triangular(NET, BAD_MAPS[case], dt=DT)


def test_what_does_not_fit_is_refused() -> None:
    model = nn.Triangular(NET, nn.Polynomial(1), dt=DT)
    with pytest.raises(ltinet.InvalidNetworkError, match="net is a LinearNetwork"):
        nn.Triangular(NET.to_torch(DT), nn.Polynomial(1), dt=DT)
    for dt in (0.0, -1.0, float("nan")):
        with pytest.raises(ltinet.InvalidSignalError, match="dt is"):
            nn.Triangular(NET, nn.Polynomial(1), dt=dt)
    for u, message in (
        (np.zeros((5, 2)), "is a ndarray"),
        (torch.zeros(5, 3), r"shape \(5, 3\)"),
        (torch.zeros(5, 2, dtype=torch.int64), "torch.int64"),
        (torch.zeros(5, 2, device="meta"), "on meta but the model on cpu"),
        (torch.full((5, 2), float("nan")), "u has entries that are not finite"),
    ):
        with pytest.raises(ltinet.InvalidSignalError, match=message):
            model(u)
    with pytest.raises(ltinet.InvalidSignalError, match="batch of shape"):
        model(samples(3, 5, 2), state=samples(4, 5))
    with pytest.raises(ltinet.InvalidSignalError, match="both state and x0"):
        model(samples(3, 5, 2), state=samples(3, 5), x0=samples(5))
    with pytest.raises(ltinet.InvalidNetworkError, match="Triangular has no graph"):
        nn.export_onnx(model, "model.onnx")


class Summing(torch.nn.Module):
    """No map of samples: it loses an axis."""

    n_inputs = n_outputs = 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(-1)


def test_a_map_that_loses_an_axis_is_refused() -> None:
    with pytest.raises(ltinet.InvalidNetworkError, match="must keep the shape"):
        nn.Triangular(NET, Summing(), dt=DT)(samples(3, 5, 2))


def test_an_activation_that_overflows_is_named() -> None:
    model = softened(NET)
    with pytest.raises(ltinet.SimulationError, match=r"activation of neuron \d+ \(Polynomial\) is not finite"):
        model(1e200 * samples(10, 2))


@pytest.mark.parametrize("name", ["states", "block_indices", "neurons", "basis"])
def test_layers_of_a_file_that_are_not_those_of_the_model_are_refused(name: str) -> None:
    net = ltinet.construct(ltinet.named_system("mass_spring_damper", n_masses=3))
    model = nn.Triangular(net, nn.Polynomial(net.n_neurons, 3), dt=0.1)
    groups, system = model.groups, model.network.system()
    validate_neuron_groups(groups, system)
    wrong = getattr(groups[0], name).clone(memory_format=torch.contiguous_format)
    wrong.view(-1)[0] = np.nan if name == "basis" else 10**6
    with pytest.raises(ValueError, match="layers"):
        validate_neuron_groups([groups[0]._replace(**{name: wrong}), *groups[1:]], system)
