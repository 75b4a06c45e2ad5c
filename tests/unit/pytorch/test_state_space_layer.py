"""State-space layers: starts, equality of all ways to run them, gradients, streaming, stacks and refusals."""

import copy
import re
import warnings

import numpy as np
import pytest
import torch
from torch import nn as torch_nn
from torch.nn.utils import prune

import ltinet
from ltinet import nn
from ltinet.errors import InvalidNetworkError, InvalidSignalError, InvalidSystemError
from ltinet.systems.hippo import s4d_inv_poles, s4d_legs_poles, s4d_lin_poles
from ltinet.torch.channels import _ChannelConvolution, run_channels_in_blocks
from ltinet.torch.planner import Plan
from ltinet.torch.uniform import time_block_kernels

SIZES = {"s4d_lin": 8, "s4d_inv": 8, "s4d_legs": 8, "hippo_legs": 8, "hippo_legt": 8, "hippo_fout": 9}
STARTS = tuple(SIZES)
# Coupled blocks are scaled by cond(T) ≤ 1e4 and lose as many units of rounding; others lose a few dozen.
ROUNDING = 1e-11
RINGING = ltinet.construct(([[-0.3, 2.0], [-2.0, -0.3]], [[1.0], [0.5]], [[1.0, 0.2]], [[0.1]]))
GROWING = ltinet.construct(([[0.4, 1.0], [0.0, -1.0]], [[0.0], [1.0]], [[1.0, 0.0]]))


def assert_close(computed, expected, tolerance=ROUNDING):
    computed, expected = (torch.as_tensor(values).detach().double() for values in (computed, expected))
    assert computed.shape == expected.shape
    assert float((computed - expected).abs().max()) <= tolerance * float(expected.abs().max())


def stream(model, u):
    """Outputs of single steps, and the last state."""
    outputs, state = [], None
    with torch.no_grad():
        for k in range(u.shape[-2]):
            y, state = model.step(u[..., k, :], state)
            outputs.append(y)
    return torch.stack(outputs, -2), state


@pytest.mark.parametrize("n", [2, 16, 64])
@pytest.mark.parametrize("mixing", [False, True])
def test_poles_of_s4d_starts_are_those_of_the_formulas(n, mixing):
    for init, formula in (("s4d_lin", s4d_lin_poles), ("s4d_inv", s4d_inv_poles), ("s4d_legs", s4d_legs_poles)):
        poles = nn.StateSpaceLayer(3, n, init=init, mixing=mixing).poles
        expected = np.concatenate([formula(n), formula(n).conj()])
        assert poles.shape == ((n,) if mixing else (3, n))
        assert np.all(np.abs(poles - expected) <= 1e-12 * np.abs(expected))


def test_poles_of_hippo_legs_are_the_negative_integers():
    poles = nn.StateSpaceLayer(2, 12, init="hippo_legs").poles
    assert np.allclose(np.sort(poles.real), -np.arange(12.0, 0.0, -1.0), rtol=1e-12, atol=0.0)
    assert not poles.imag.any()


@pytest.mark.parametrize("mixing", [False, True])
@pytest.mark.parametrize("init", STARTS)
def test_poles_stay_stable_under_large_random_steps(init, mixing):
    layer = nn.StateSpaceLayer(2, 65 if init == "hippo_fout" else 64, init=init, mixing=mixing)
    rng = torch.Generator().manual_seed(1)
    for _ in range(3):
        with torch.no_grad():
            for values in filter(lambda values: values.requires_grad, layer.parameters()):
                values.add_(torch.randn(values.shape, generator=rng, dtype=values.dtype))
        assert layer.poles.real.max() < 0.0


def test_fout_needs_pairs_of_cosine_and_sine():
    with pytest.raises(InvalidSystemError, match=r"n_states must be odd for hippo_fout, .* got 64; give 63 or 65"):
        nn.StateSpaceLayer(2, 64, init="hippo_fout")


def test_rates_that_do_not_decay_are_not_trained():
    """As in `net.to_torch`."""
    torch.manual_seed(0)
    layer = nn.StateSpaceLayer(1, init=(np.diag([0.0, 0.3, -1.0]), np.ones((3, 1)), np.ones((1, 3))), dt=0.1)
    before = layer.poles
    layer(torch.ones(1, 20, 1)).square().mean().backward()
    with torch.no_grad():
        for values in layer.parameters():
            if values.grad is not None:
                values -= 0.1 * values.grad
    after = layer.poles
    assert np.array_equal(np.sort(after.real)[:, 1:], np.sort(before.real)[:, 1:])
    assert not np.array_equal(after, before)


@pytest.mark.parametrize("mixing", [False, True])
def test_published_layers_are_those_with_another_C_and_D(mixing):
    """The recurrence x_k = Λ x_{k−1} + Γ u_k, y_k = Re(C x_k) + D u_k of S4D, S5 and LRU, from `layer.B` and `layer.C`."""
    torch.manual_seed(2)
    d, n = 3, 4
    layer = nn.StateSpaceLayer(d, 2 * n, dt=0.1, mixing=mixing)
    u = torch.randn(30, d, dtype=torch.complex128).real
    with torch.no_grad():
        if mixing:
            poles, (b_re, b_im) = torch.from_numpy(layer.poles[:n]), layer.B.view(2, n, d)
            c_re, c_im = layer.C.view(d, 2, n).movedim(1, 0)
            weights, gains = "nd,d->n", "dn,n->d"
        else:
            poles = torch.from_numpy(layer.poles[:, :n])
            (b_re, b_im), (c_re, c_im) = layer.B.view(2, d, n), layer.C.view(2, d, n)
            weights, gains = "dn,d->dn", "dn,dn->d"
        B, C, D = torch.complex(b_re, b_im), torch.complex(c_re, -c_im), layer.D if mixing else layer.D.flatten().diag()
        Lambda = torch.exp(0.1 * poles)
        Gamma = ((Lambda - 1.0) / poles).unsqueeze(-1) * B if mixing else (Lambda - 1.0) / poles * B
        state, here, published = torch.zeros_like(Lambda), [], []
        for sample in u:
            here.append(torch.einsum(gains, C, state).real + D @ sample)
            state = Lambda * state + torch.einsum(weights, Gamma, sample.to(Gamma.dtype))
            published.append(torch.einsum(gains, C, state).real + D @ sample)
        assert_close(layer(u), torch.stack(here))
        CP = C * Lambda
        c = torch.stack([CP.real, -CP.imag], 1 if mixing else 0)
        layer.C.copy_(c.reshape(layer.C.shape))
        layer.D += (C @ Gamma).real if mixing else (C * Gamma).sum(-1, keepdim=True).real
        assert_close(layer(u), torch.stack(published))


@pytest.mark.parametrize(
    ("init", "name"),
    [("hippo_legs", "hippo_legs"), ("hippo_legt", "hippo_legt"), ("legt", "hippo_legt"), ("fout", "hippo_fout")],
)
def test_hippo_starts_have_the_impulse_responses_of_the_named_systems(init, name):
    torch.manual_seed(0)
    layer = nn.StateSpaceLayer(7, 7, init=init, dt=0.02)
    u = torch.zeros(7, 40, 7, dtype=torch.float64)
    u[:, 0] = torch.eye(7, dtype=torch.float64)
    with torch.no_grad():
        responses = torch.stack([layer(u)[k, 1:, k] for k in range(7)], 1).numpy()
    t, pulse = 0.02 * np.arange(40), np.eye(1, 40).T
    states = ltinet.construct(ltinet.named_system(name, n_states=7)).simulate(pulse, t, hold="zero").y[1:]
    # Every response is a combination of the coefficients: C is random, the residual of a least-squares fit is rounding.
    C = np.linalg.lstsq(states, responses, rcond=None)[0]
    assert_close(states @ C, responses, 1e-10)


@pytest.mark.parametrize("hold", ["zero", "linear"])
@pytest.mark.parametrize("net", [RINGING, GROWING], ids=["ringing", "growing"])
def test_channels_of_a_network_equal_simulate(net, hold):
    layer = nn.StateSpaceLayer(3, init=net, dt=0.1, hold=hold)
    u = np.random.default_rng(0).standard_normal((2, 50, 3))
    y = layer(torch.from_numpy(u))
    for channel in range(3):
        truth = net.simulate(u[:, :, channel, None], 0.1 * np.arange(50), hold=hold).y[..., 0]
        assert_close(y[..., channel], truth)


@pytest.mark.parametrize("hold", ["zero", "linear"])
def test_a_mixing_layer_of_a_network_equals_simulate(hold):
    rng = np.random.default_rng(0)
    A = np.array([[-0.3, 2.0, 0.5], [-2.0, -0.3, 0.1], [0.0, 0.0, -1.0]])
    net = ltinet.construct((A, rng.standard_normal((3, 2)), rng.standard_normal((2, 3)), np.eye(2)))
    u = rng.standard_normal((4, 50, 2))
    y = nn.StateSpaceLayer(2, init=net, dt=0.1, mixing=True, hold=hold)(torch.from_numpy(u))
    assert_close(y, net.simulate(u, 0.1 * np.arange(50), hold=hold).y)


@pytest.mark.parametrize("hold", ["zero", "linear"])
@pytest.mark.parametrize("mixing", [False, True])
@pytest.mark.parametrize("init", STARTS)
def test_whole_records_pieces_and_single_steps_are_equal(init, mixing, hold):
    torch.manual_seed(1)
    layer = nn.StateSpaceLayer(3, SIZES[init], init=init, mixing=mixing, hold=hold)
    u = torch.randn(2, 75, 3, dtype=torch.float64)
    y = layer(u)
    streamed, state = stream(layer, u)
    first, middle = layer(u[:, :40], return_state=True)
    last, end = layer(u[:, 40:], state=middle, return_state=True)
    assert_close(streamed, y)
    assert_close(torch.cat([first, last], 1), y)
    assert_close(end, state)
    assert_close(layer(u.float()), y, 1e-6)
    assert layer(u.float()).dtype == torch.float32


def test_batches_of_any_shape_and_half_precision():
    layer = nn.StateSpaceLayer(3, 4)
    u = torch.randn(2, 5, 20, 3)
    y = layer(u)
    assert_close(layer(u[0, 1]), y[0, 1], 1e-6)
    state = stream(layer, u)[1]
    assert state.shape == (2, 5, 3, 4)
    assert layer(u.bfloat16()).dtype == torch.bfloat16


@pytest.mark.parametrize("width", [1, 4, 9, 32])
def test_blocks_of_time_of_any_width(width):
    layer = nn.StateSpaceLayer(2, 6, init="hippo_legt", hold="linear")
    u = torch.randn(3, 32, 2, dtype=torch.float64)
    y, _ = run_channels_in_blocks(time_block_kernels(layer.one_step(), width, 32, u.dtype), u, None)
    assert_close(y, layer(u))


@pytest.mark.parametrize("init", ["s4d_inv", "hippo_legs"])
def test_gradients_of_convolution_blocks_and_steps_are_equal(init):
    torch.manual_seed(2)
    layer = nn.StateSpaceLayer(2, 4, init=init, hold="linear")
    u = torch.randn(2, 12, 2, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(2, 12, 2, dtype=torch.float64)

    def gradients(y):
        parameters = [values for values in (u, *layer.parameters()) if values.requires_grad]
        return [g for g in torch.autograd.grad((y * weights).sum(), parameters, allow_unused=True) if g is not None]

    outputs, state = [], None
    for k in range(12):
        y, state = layer.step(u[:, k], state)
        outputs.append(y)
    truth = gradients(torch.stack(outputs, 1))
    assert len(truth) >= 6
    for y in (layer(u), layer(u, return_state=True)[0]):
        for computed, expected in zip(gradients(y), truth, strict=True):
            if expected.numel() and expected.abs().max() > 0.0:
                assert_close(computed, expected, 1e-9)


def test_convolution_has_exact_derivatives_of_all_kinds():
    u, h = torch.randn(2, 7, 3, dtype=torch.float64), torch.randn(3, 7, dtype=torch.float64)
    arguments = (u.requires_grad_(), h.requires_grad_())
    assert torch.autograd.gradcheck(_ChannelConvolution.apply, arguments, check_forward_ad=True)


def test_time_steps_are_trained_if_given_as_a_range():
    torch.manual_seed(3)
    drawn = nn.StateSpaceLayer(200, 2, dt=(1e-3, 1e-1))
    assert 1e-3 <= drawn.dt.min().item() < 2e-3
    assert 5e-2 < drawn.dt.max().item() <= 1e-1
    assert drawn.log_dt.requires_grad
    fixed = nn.StateSpaceLayer(3, 2, dt=0.05)
    assert fixed.dt.tolist() == [0.05] * 3
    assert not fixed.log_dt.requires_grad


def test_a_line_of_a_sequential_learns_and_is_copied():
    torch.manual_seed(4)
    u = torch.randn(8, 30, 1)
    y = u.cumsum(1) * 0.3
    model = torch_nn.Sequential(torch_nn.Linear(1, 8), nn.StateSpaceLayer(8, 8), torch_nn.GELU(), torch_nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = (model(u) - y).square().mean()
        loss.backward()
        torch_nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.5 * losses[0]
    other = torch_nn.Sequential(torch_nn.Linear(1, 8), nn.StateSpaceLayer(8, 8), torch_nn.GELU(), torch_nn.Linear(8, 1))
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(u), model(u))
    assert torch.equal(copy.deepcopy(model).float()(u), model(u))


@pytest.mark.parametrize("hold", ["zero", "linear"])
@pytest.mark.parametrize("init", ["s4d_inv", "hippo_legs"])
def test_networks_of_channels_have_their_outputs(init, hold):
    torch.manual_seed(8)
    layer = nn.StateSpaceLayer(3, 6, init=init, hold=hold)
    with torch.no_grad():
        layer.log_dt += 0.3
        layer.log_decay -= 0.2
    u = torch.randn(2, 60, 3, dtype=torch.float64)
    y = layer(u).detach()
    for channel in range(3):
        net = layer.to_network(channel)
        t = layer.dt[channel].item() * np.arange(60)
        assert (net.n_inputs, net.n_outputs, net.hold, net.sample_time) == (1, 1, hold, t[1])
        assert_close(net.simulate(u[..., channel, None].numpy(), t).y, y[..., channel, None])
        poles = np.sort_complex(layer.poles[channel])
        assert np.allclose(np.sort_complex(net.poles()), poles, rtol=1e-12, atol=0.0)
    unit = layer.to_network(2, dt=1.0)
    assert_close(unit.simulate(u[..., 2, None].numpy(), np.arange(60.0)).y, y[..., 2, None])


@pytest.mark.parametrize("init", ["s4d_lin", "hippo_legs"])
def test_networks_of_mixing_layers_have_their_outputs(init):
    torch.manual_seed(9)
    layer = nn.StateSpaceLayer(2, 8, init=init, mixing=True)
    u = torch.randn(50, 2, dtype=torch.float64)
    if init == "s4d_lin":
        with pytest.raises(InvalidNetworkError, match="time steps of the poles differ; give the time between samples"):
            layer.to_network()
    assert_close(layer.to_network(dt=0.5).simulate(u.numpy(), 0.5 * np.arange(50)).y, layer(u))
    fixed = nn.StateSpaceLayer(2, 8, init=init, mixing=True, dt=0.1)
    assert_close(fixed.to_network().simulate(u.numpy(), 0.1 * np.arange(50)).y, fixed(u))


def test_networks_that_do_not_exist_are_refused():
    layer, mixed = nn.StateSpaceLayer(2, 4), nn.StateSpaceLayer(2, 4, mixing=True)
    for channel in (None, 2, -1, 0.0):
        with pytest.raises(InvalidNetworkError, match=r"channel must be an integer from 0 to 1, got"):
            layer.to_network(channel)
    with pytest.raises(InvalidNetworkError, match="leave channel out"):
        mixed.to_network(0)
    for dt in (0.0, (0.1, 0.2)):
        with pytest.raises(InvalidSignalError, match=r"dt (is|has shape) .*; give .*positive time step"):
            layer.to_network(0, dt=dt)


@pytest.mark.parametrize("init", ["s4d_lin", "hippo_legs"])
@pytest.mark.parametrize("mixing", [False, True])
def test_files_of_state_dicts_restore_trained_layers(init, mixing, tmp_path):
    torch.manual_seed(10)
    layer, other = (nn.StateSpaceLayer(3, 6, init=init, mixing=mixing) for _ in range(2))
    u = torch.randn(2, 30, 3)
    optimizer = torch.optim.Adam(layer.parameters(), lr=1e-2)
    for _ in range(2):
        optimizer.zero_grad()
        layer(u).square().mean().backward()
        optimizer.step()
    with torch.no_grad():
        before = stream(other, u)[0]  # its matrices of a step are cached
        torch.save(layer.state_dict(), tmp_path / "layer.pt")
        other.load_state_dict(torch.load(tmp_path / "layer.pt", weights_only=True))
        assert not torch.equal(stream(other, u)[0], before)
        assert torch.equal(stream(other, u)[0], stream(layer, u)[0])
        assert torch.equal(other(u), layer(u))
    assert torch.equal(other.dt, layer.dt)
    with pytest.raises(InvalidNetworkError, match=re.escape("torch.save(model.state_dict(), path)")):
        nn.save(nn.Stack(layer), tmp_path / "layer.safetensors")


def test_seeds_of_pytorch_draw_the_weights():
    layers = []
    for seed in (7, 7, 8):
        torch.manual_seed(seed)
        layers.append(nn.StateSpaceLayer(2, 4))
    assert torch.equal(layers[0].C, layers[1].C)
    assert not torch.equal(layers[0].C, layers[2].C)


def residual_block(width, **options):
    layer = nn.StateSpaceLayer(width, 8, **options)
    gate = torch_nn.Sequential(
        torch_nn.GELU(), torch_nn.Dropout(0.2), torch_nn.Linear(width, 2 * width), torch_nn.GLU()
    )
    return nn.Stack(torch_nn.LayerNorm(width), layer, gate, residual=True)


def test_stacks_of_layers_and_pytorch_modules_stream():
    torch.manual_seed(5)
    first, second = residual_block(6), residual_block(6, init="hippo_legs", mixing=True)
    model = nn.Stack(torch_nn.Linear(2, 6), first, second, torch_nn.Linear(6, 3), torch_nn.Tanh()).double().eval()
    assert (model.n_inputs, model.n_outputs) == (2, 3)
    u = torch.randn(4, 60, 2, dtype=torch.float64)
    y = model(u)
    streamed, state = stream(model, u)
    assert_close(streamed, y)
    start, middle = model(u[:, :25], return_state=True)
    rest, end = model(u[:, 25:], state=middle, return_state=True)
    assert_close(torch.cat([start, rest], 1), y)
    assert_close(end[1][1], state[1][1])
    expected = u @ model.parts[0].weight.mT + model.parts[0].bias
    for block in (first, second):
        inner = expected
        for part in block.parts:
            inner = part(inner)
        expected = expected + inner
    assert_close(torch.tanh(model.parts[3](expected)), y)


def test_widths_of_stacks_follow_activations_and_gates():
    assert nn.Stack(torch_nn.GELU(), torch_nn.GLU(), torch_nn.Linear(3, 4), torch_nn.GLU()).n_inputs == 6
    assert nn.Stack(torch_nn.Linear(3, 4), torch_nn.RMSNorm(4), torch_nn.GLU(), nn.Polynomial(2)).n_outputs == 2


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((torch_nn.GELU(),), "the number of channels is not known; give at least one part"),
        ((torch_nn.Linear(3, 4), torch_nn.Linear(3, 4)), "part 0 has 4 outputs but part 1 takes 3 inputs"),
        ((torch_nn.Linear(3, 4), torch_nn.GELU(), torch_nn.Linear(3, 4)), "part 1 has 4 outputs but part 2 takes 3"),
        ((torch_nn.Linear(2, 3), torch_nn.GLU()), "part 1 is a GLU, which is not known to treat every sample of 3"),
        ((torch_nn.Conv1d(3, 3, 1),), "part 0 is a Conv1d, which is not known to treat every sample"),
        ((torch_nn.GRU(3, 3),), "part 0 is a GRU, which is not known"),
        ((torch_nn.BatchNorm1d(3),), "part 0 is a BatchNorm1d, which is not known"),
        (([torch_nn.Linear(3, 3)],), "part 0 is a list; give modules one by one: nn.Stack(*parts)"),
    ],
)
def test_stacks_refuse_parts_that_do_not_match_or_act_along_time(parts, message):
    with pytest.raises(InvalidNetworkError, match=re.escape(message)):
        nn.Stack(*parts)


def test_residual_stacks_need_equal_widths_and_are_not_exported():
    with pytest.raises(
        InvalidNetworkError, match="the stack has 3 inputs and 4 outputs; with residual=True they must be"
    ):
        nn.Stack(torch_nn.Linear(3, 4), residual=True)
    with pytest.raises(InvalidNetworkError, match="residual=True cannot be exported to ONNX"):
        nn.export_onnx(nn.Stack(RINGING.to_torch(0.1), residual=True), "model.onnx")


def test_residual_stacks_are_saved(tmp_path):
    model = nn.Stack(RINGING.to_torch(0.1), nn.Polynomial(1), residual=True)
    nn.save(model, tmp_path / "model.safetensors")
    u = torch.randn(20, 1, dtype=torch.float64)
    assert torch.equal(nn.load(tmp_path / "model.safetensors")(u), model(u))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"d_model": 0}, "d_model must be an integer of at least 1, got 0."),
        ({"n_states": 2.5}, "n_states must be an integer of at least 1, got 2.5."),
        ({"n_states": 3}, "n_states must be even for s4d_lin, which has conjugate pairs of poles, got 3."),
        (
            {"init": "s4d"},
            "init is 's4d'; give one of s4d_lin, s4d_inv, s4d_legs, hippo_legs, hippo_legt, hippo_fout, a",
        ),
        ({"dt": -1.0}, "dt must be a positive number or a range (low, high) with 0 < low ≤ high, got -1.0."),
        ({"dt": (0.1, 0.01)}, "got (0.1, 0.01)."),
        ({"dt": "fast"}, "got 'fast'."),
        ({"init": RINGING}, "dt is missing; a given system needs the time between samples: dt=0.1"),
        ({"init": RINGING, "dt": 0.1, "n_states": 4}, "n_states is 4 but init has 2 states; leave n_states out."),
        ({"init": RINGING, "dt": 0.1, "mixing": True}, "init has 1 inputs and 1 outputs; with mixing it must have 2"),
        ({"init": ltinet.named_system("hippo_legt"), "dt": 0.1}, "give a system with one of each for independent"),
    ],
)
def test_arguments_that_make_no_layer_are_refused(arguments, message):
    with pytest.raises(InvalidNetworkError, match=re.escape(message)):
        nn.StateSpaceLayer(**{"d_model": 2, **arguments})


def test_inputs_and_states_that_do_not_fit_are_refused():
    layer = nn.StateSpaceLayer(2, 4)
    with pytest.raises(InvalidSignalError, match=r"u has shape \(5, 3\); it must be \(…, T, 2\)"):
        layer(torch.ones(5, 3))
    with pytest.raises(InvalidSignalError, match="u has entries that are not finite"):
        layer(torch.full((5, 2), torch.nan))
    for state in (torch.zeros(8), torch.zeros(4, 2)):
        with pytest.raises(InvalidSignalError, match=r"state has shape .*; it must be \(…, 2, 4\)"):
            layer(torch.ones(5, 2), state=state)
    with pytest.raises(InvalidSignalError, match=r"x0\[0\] is for a StateSpaceLayer, which begins at rest"):
        nn.Stack(layer)(torch.ones(5, 2), x0=(torch.zeros(2, 4),))


def test_print_shows_sizes_poles_and_parameters():
    text = str(nn.Stack(torch_nn.Linear(1, 4), nn.StateSpaceLayer(4, 16, dt=0.1), torch_nn.GELU()))
    assert "1 → 4 channels" in text
    assert (
        "4 channels, each with 16 states (8 pairs), poles with real parts -0.5 … -0.5, frequencies up to 22 rad/s"
        in text
    )
    assert "200 parameters, 196 trained, init='s4d_lin', dt=0.1, hold='zero'" in text
    text = str(nn.wiener(RINGING.to_torch(0.1, trainable="poles"), nn.Polynomial(1)))
    assert "1 → 1 channels, 2 states (1 pair), poles with real parts -0.3 … -0.3, frequencies up to 2 rad/s" in text
    assert "7 parameters, 2 trained, dt=0.1, hold='linear'" in text
    assert "Polynomial(n_channels=1, degree=3, scale=1.0, start='identity')" in text
    text = str(nn.StateSpaceLayer(1, init=([[-1.0]], [[1.0]], [[1.0]]), dt=0.1))
    assert "1 channel, each with 1 state (1 real)" in text
    assert "init='system'" in text
    text = str(nn.StateSpaceLayer(2, 16, init="hippo_legs", mixing=True))
    assert re.search(r"mixed by 16 states \(3 reals, 1 coupled 13×13 block\), poles with real parts -16 … -1, ", text)


def legs_network(**options):
    system = ltinet.named_system("hippo_legs", n_states=16)
    C = np.random.default_rng(0).standard_normal((1, 16))
    return ltinet.construct((system.A, system.B, C), **options)


def test_single_precision_warns_where_states_cancel():
    u = torch.randn(1, 1000, 1, dtype=torch.float64)
    model = legs_network().to_torch(1e-2)
    with pytest.warns(UserWarning, match="single precision costs .* of the largest output"):
        y = model(u.float(), plan=Plan("scan", 1))
    truth = model(u)
    assert float((y - truth).detach().abs().max()) > 1e-4 * float(truth.detach().abs().max())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(u.float(), plan=Plan("scan", 1))  # once for each model
        assert_close(legs_network().to_torch(1e-2)(u.float()), truth, 1e-6)  # the default algorithm keeps its digits
        legs_network(max_condition=10).to_torch(1e-2)(u.float(), plan=Plan("scan", 1))
        assert_close(nn.StateSpaceLayer(1, init=legs_network(), dt=1e-2, hold="linear")(u.float()), truth, 1e-6)


@pytest.mark.parametrize("mixing", [False, True])
def test_outputs_without_derivatives_follow_every_write_to_parameters(mixing):
    torch.manual_seed(3)
    layer, u = nn.StateSpaceLayer(2, 8, mixing=mixing), torch.randn(1, 20, 2)
    net = ltinet.construct(([[-1.0]], [[1.0, 0.5]], [[1.0], [2.0]])).to_torch(0.1)
    for model in (layer, net):
        with torch.no_grad():
            model(u)
        fused = torch.optim.Adam(model.parameters(), lr=0.1, fused=True)  # does not count versions of tensors
        model(u).square().mean().backward()
        fused.step()
        with torch.no_grad():
            assert torch.equal(model(u), model(u.clone().requires_grad_()).detach())
            assert_close(model(u), copy.deepcopy(model)(u), 1e-7)
        trained = model(u).detach()
        with torch.no_grad():
            assert_close(model(u), trained, 1e-6)
            model.C.data.zero_()
            model.D.data.zero_()
            assert not model(u).any()


def test_layers_in_inference_mode_and_with_pruned_or_normalized_weights():
    u = torch.randn(1, 20, 4)
    with torch.inference_mode():
        layer = nn.StateSpaceLayer(4, 8)
        y = layer(u)
    with torch.no_grad():
        assert_close(layer(u), y, 1e-7)
    layer = nn.StateSpaceLayer(4, 8)
    with torch.inference_mode():
        layer(u)
    layer.requires_grad_(False)
    v = u.clone().requires_grad_()
    layer(v).sum().backward()  # matrices cached in inference mode could not be used here
    assert v.grad.any()
    layer = nn.StateSpaceLayer(4, 8)
    y = layer(u).detach()
    torch_nn.utils.parametrizations.weight_norm(layer, "C")
    assert_close(layer(u), y, 1e-6)
    with torch.no_grad():
        assert_close(layer(u), y, 1e-6)
    layer = nn.StateSpaceLayer(4, 8)
    prune.l1_unstructured(layer, "C", amount=layer.C.numel())
    assert_close(layer(u), layer.D.detach().T * u, 1e-6)


@pytest.mark.parametrize("init", ["hippo_legs", "hippo_legt", "hippo_fout"])
def test_mixing_layers_keep_one_time_step_for_systems_that_are_not_normal(init):
    """Different time steps of blocks that cancel would multiply outputs by cond(T)."""
    torch.manual_seed(0)
    matrices = (-np.eye(8), np.eye(8), np.eye(8))
    assert nn.StateSpaceLayer(8, init=matrices, dt=(0.1, 0.2), mixing=True).dt.shape == (1,)
    layer = nn.StateSpaceLayer(8, SIZES[init], init=init, mixing=True)
    assert layer.dt.shape == (1,)
    net = layer.to_network()
    step = float(layer.dt.detach())
    u = np.random.default_rng(0).standard_normal((50, 8))
    assert_close(layer(torch.from_numpy(u)), net.simulate(u, step * np.arange(50), hold="zero").y)


@pytest.mark.slow
@pytest.mark.parametrize("init", ["s4d_lin", "s4d_inv", "s4d_legs"])
def test_long_streams_equal_the_whole_call(init):
    """`make bench-layers` streams a million steps."""
    torch.manual_seed(6)
    layer, steps = nn.StateSpaceLayer(2, 16, init=init), 10_000
    u = torch.randn(steps, 2)
    with torch.no_grad():
        whole = layer(u)
        outputs, state = torch.empty_like(whole), None
        for k in range(steps):
            outputs[k], state = layer.step(u[k], state)
    assert_close(outputs, whole, 1e-5)
