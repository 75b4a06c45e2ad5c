"""Trainable models: functions from parameters and samples `(B, T, 1)` to outputs, and how each begins."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import functional_call

from benchmarks.fine_tuning.task import Task
from ltinet.torch.uniform import fft_convolve

Parameters = dict[str, Tensor]


@dataclass(frozen=True)
class Learner:
    """A kind of model: its outputs, and its parameters before the first step, by a seed."""

    name: str
    outputs: Callable[[Parameters, Tensor], Tensor]
    begin: Callable[[int], Parameters]

    def n_parameters(self) -> int:
        """Number of trained parameters."""
        return sum(own.numel() for own in self.begin(0).values())


def constructed(task: Task, device: str) -> Learner:
    """The network of the beam that is known."""
    model = task.known.to_torch(task.dt).to(device)
    values = {name: own.detach() for name, own in model.named_parameters() if own.requires_grad and own.numel()}
    return Learner("constructed", lambda own, u: functional_call(model, own, (u,)), lambda _: dict(values))


def lru(n_pairs: int, device: str, *, is_log: bool) -> Learner:
    """A linear recurrent unit (Orvieto et al. 2023): |λ| in a ring, angles uniform or log-uniform, weights random."""

    def begin(seed: int) -> Parameters:
        draw = torch.Generator().manual_seed(seed)

        def uniform(low: float, high: float) -> Tensor:
            return low + (high - low) * torch.rand(n_pairs, generator=draw, dtype=torch.float64)

        sizes = torch.sqrt(uniform(0.9**2, 0.999**2))
        angles = torch.exp(uniform(math.log(0.005), math.log(math.pi))) if is_log else uniform(0.005, math.pi)
        weights = torch.randn(4, n_pairs, generator=draw, dtype=torch.float64)
        found = {"nu": torch.log(-torch.log(sizes)), "theta": torch.log(angles), "D": torch.zeros(1).double()}
        names = ("B_re", "B_im", "C_re", "C_im")
        scales = (2.0**-0.5, 2.0**-0.5, n_pairs**-0.5, n_pairs**-0.5)
        found |= {name: own * by for name, own, by in zip(names, weights, scales, strict=True)}
        return {name: own.to(device) for name, own in found.items()}

    return Learner(f"LRU, {'log-' if is_log else ''}uniform angles", _lru_outputs, begin)


def _lru_outputs(own: Parameters, u: Tensor) -> Tensor:
    """By its response, D and then Re C λᵏ γ B, as one convolution."""
    decay, angle = torch.exp(own["nu"]), torch.exp(own["theta"])
    k = torch.arange(u.shape[1], dtype=decay.dtype, device=u.device)[:, None]
    norm = torch.sqrt(1.0 - torch.exp(-2.0 * decay))
    re = (own["B_re"] * own["C_re"] - own["B_im"] * own["C_im"]) * norm
    im = (own["B_re"] * own["C_im"] + own["B_im"] * own["C_re"]) * norm
    size = torch.exp(-k * decay)
    response = (size * (torch.cos(k * angle) * re - torch.sin(k * angle) * im)).sum(-1)
    response = torch.cat([response[:1] + own["D"], response[1:]])
    return fft_convolve(u, response[:, None, None])


def gru(hidden: int, device: str) -> Learner:
    """A gated recurrent unit (Cho et al. 2014) and a line."""

    def begin(seed: int) -> Parameters:
        draw = torch.Generator().manual_seed(seed)
        shapes = {"W": (1, 3 * hidden), "U": (hidden, 3 * hidden), "b": (3 * hidden,), "C": (hidden, 1), "D": (1,)}
        bound = hidden**-0.5
        return {
            name: ((2.0 * torch.rand(shape, generator=draw, dtype=torch.float64) - 1.0) * bound).to(device)
            for name, shape in shapes.items()
        }

    return Learner("GRU", _gru_outputs, begin)


def _gru_outputs(own: Parameters, u: Tensor) -> Tensor:
    n = own["C"].shape[0]
    entering = u @ own["W"] + own["b"]
    state, states = torch.zeros_like(entering[:, 0, :n]), []
    for k in range(u.shape[1]):
        from_state = state @ own["U"]
        gates = torch.sigmoid(entering[:, k, : 2 * n] + from_state[:, : 2 * n])
        new = torch.tanh(entering[:, k, 2 * n :] + gates[:, :n] * from_state[:, 2 * n :])
        state = new + gates[:, n:] * (state - new)
        states.append(state)
    return torch.stack(states, 1) @ own["C"] + own["D"]
