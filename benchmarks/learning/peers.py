"""Diagonal complex layers with a linear hold, as other libraries run them: a scan of states, or a kernel and FFTs.

Both begin with the poles and weights of a network, so that their outputs can be compared with the truth.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import ltinet

Way = Callable[["DiagonalLayer", Tensor], Tensor]


class DiagonalLayer(nn.Module):  # type: ignore[misc]  # PyTorch's types are not looked at
    """x' = λ x + B u, y = Re(C x) + D u with complex λ, one for each pair."""

    def __init__(self, net: ltinet.DynamicNetwork, dt: float, way: Way, dtype: Any) -> None:
        super().__init__()
        system = net.to_state_space()
        values, vectors = np.linalg.eig(system.A)
        upper = values.imag >= 0.0
        twice = np.where(values.imag > 0.0, 2.0, 1.0)[upper]
        inverse = np.linalg.inv(vectors)
        real = {
            "log_decay": np.log(-values.real[upper]),
            "frequency": values.imag[upper],
            "D": np.array(system.D),
        }
        weights = {"B": (inverse @ system.B)[upper], "C": (system.C @ vectors)[:, upper] * twice}
        for name, own in real.items():
            self.register_parameter(name, nn.Parameter(torch.tensor(own, dtype=dtype)))
        for name, own in weights.items():
            parts = np.stack([own.real, own.imag], -1)
            self.register_parameter(name, nn.Parameter(torch.tensor(parts, dtype=dtype)))
        self.dt, self.way = dt, way

    def matrices(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """λ, P, Γ, G₁ and C of a step."""
        rates = torch.complex(-torch.exp(self.log_decay), self.frequency)
        z = rates * self.dt
        P = torch.exp(z)
        first = (P - 1.0) / z
        second = (first - 1.0) / z
        B, C = torch.view_as_complex(self.B), torch.view_as_complex(self.C)
        G0, G1 = ((factor * self.dt)[:, None] * B for factor in (first - second, second))
        return rates, P, G0 + P[:, None] * G1, G1, C

    def forward(self, u: Tensor) -> Tensor:
        """`(B, T, m)` to `(B, T, p)`, from rest."""
        y: Tensor = self.way(self, u)
        return y


def by_transform(layer: DiagonalLayer, u: Tensor) -> Tensor:
    """A Vandermonde kernel for all lags, then FFTs, as S4D does."""
    rates, _, Gamma, G1, C = layer.matrices()
    steps = u.shape[1]
    powers = torch.exp(rates * (layer.dt * torch.arange(steps, device=u.device, dtype=u.dtype))[:, None])
    m = u.shape[2]

    def responses(drive: Tensor) -> Tensor:
        weights = (C[:, None, :] * drive.T[None]).flatten(0, 1)
        each = powers.real @ weights.real.T - powers.imag @ weights.imag.T
        return each.unflatten(1, (-1, m))

    kernel = torch.cat([(layer.D + (C @ G1).real)[None], responses(Gamma)[:-1]])
    kernel_f, u_f = torch.fft.rfft(kernel, n=2 * steps, dim=0), torch.fft.rfft(u, n=2 * steps, dim=1)
    is_single = m == 1 and kernel.shape[1] == 1
    product = u_f * kernel_f[:, 0] if is_single else torch.einsum("fpm,bfm->bfp", kernel_f, u_f)
    ghost = torch.einsum("tpm,bm->btp", responses(G1), u[:, 0])
    return torch.fft.irfft(product, n=2 * steps, dim=1)[:, :steps] - ghost


def by_scan(layer: DiagonalLayer, u: Tensor) -> Tensor:
    """All states by PyTorch's own associative scan, as S5 and LRU do."""
    from torch._higher_order_ops.associative_scan import associative_scan

    _, P, Gamma, G1, C = layer.matrices()
    drive = u.to(Gamma.dtype) @ Gamma.T
    start = -(u[:, :1].to(G1.dtype) @ G1.T)
    drive = torch.cat([start, drive[:, :-1]], 1)

    def joined(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return one[0] * other[0], other[0] * one[1] + other[1]

    _, states = associative_scan(joined, (P.expand_as(drive).contiguous(), drive), dim=1, combine_mode="generic")
    return (states @ C.T).real + u @ (layer.D + (C @ G1).real).T


_MOST_LAGS = 10_000_000
PEERS: dict[str, Way] = {"S4D, FFT": by_transform, "associative_scan": by_scan}


def peers_for(n_inputs: int, n_outputs: int, steps: int) -> dict[str, Way]:
    """Those that can run such a layer: kernels of all inputs to all outputs would not fit into memory for wide ones."""
    return PEERS if n_inputs * n_outputs * steps <= _MOST_LAGS else {"associative_scan": by_scan}
