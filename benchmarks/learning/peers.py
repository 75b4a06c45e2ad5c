"""Layers with a linear hold, as other libraries run them: scans of complex states, a kernel and FFTs, or filters.

All begin as a network does, by its poles and weights or by the transfer function of its steps, so that their outputs
can be compared with the truth. The first sample of a record is zero: a filter has no state to begin in.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.signal import cont2discrete, ss2tf
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


def by_ported_scan(layer: DiagonalLayer, u: Tensor) -> Tensor:
    """The same by the scan of JAX written in PyTorch, odd and even places in turn, as LRUs have it."""
    _, P, Gamma, G1, C = layer.matrices()
    drive = u.to(Gamma.dtype) @ Gamma.T
    drive = torch.cat([-(u[:, :1].to(G1.dtype) @ G1.T), drive[:, :-1]], 1)
    states = ported_scan(P.expand_as(drive), drive)[1]
    return (states @ C.T).real + u @ (layer.D + (C @ G1).real).T


def ported_scan(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """All of (a_1, b_1) ∘ … ∘ (a_k, b_k) along the second axis."""
    count = a.shape[1]
    if count < 2:
        return a, b
    halves = a[:, 1::2] * a[:, : count - 1 : 2], a[:, 1::2] * b[:, : count - 1 : 2] + b[:, 1::2]
    odd_a, odd_b = ported_scan(*halves)
    before = slice(None, (count - 1) // 2)
    even_a = torch.cat([a[:, :1], a[:, 2::2] * odd_a[:, before]], 1)
    even_b = torch.cat([b[:, :1], a[:, 2::2] * odd_b[:, before] + b[:, 2::2]], 1)
    return _interleaved(even_a, odd_a), _interleaved(even_b, odd_b)


def _interleaved(even: Tensor, odd: Tensor) -> Tensor:
    count = odd.shape[1]
    both = torch.stack([even[:, :count], odd], 2).flatten(1, 2)
    return both if even.shape[1] == count else torch.cat([both, even[:, count:]], 1)


def dynonet_layer(net: ltinet.DynamicNetwork, dt: float, dtype: Any) -> nn.Module | None:
    """The transfer function of a step in dynoNet, all channels with one denominator; None where it is not installed."""
    try:
        from dynonet.lti import MimoLinearDynamicalOperator
    except ImportError:
        return None
    system = net.to_state_space()
    A, B, C, D, _ = cont2discrete((system.A, system.B, system.C, system.D), dt, method="foh")
    order = len(A)
    layer: nn.Module = MimoLinearDynamicalOperator(B.shape[1], len(C), order + 1, order).to(dtype)
    with torch.no_grad(), np.errstate(all="ignore"):
        for column in range(B.shape[1]):
            numerators, denominator = ss2tf(A, B, C, D, input=column)
            layer.b_coeff[:, column] = torch.tensor(numerators, dtype=dtype)
            layer.a_coeff[:, column] = torch.tensor(denominator[1:], dtype=dtype)
    return layer


_MOST_LAGS = 10_000_000
PEERS: dict[str, Way] = {"S4D, FFT": by_transform, "associative_scan": by_scan}
_SCANS: dict[str, Way] = {"associative_scan": by_scan, "LRU, ported scan": by_ported_scan}


def peers_for(net: ltinet.DynamicNetwork, dt: float, steps: int, dtype: Any) -> dict[str, nn.Module]:
    """Those that can run such a layer: kernels of all inputs to all outputs would not fit into memory for wide ones."""
    fits = net.n_inputs * net.n_outputs * steps <= _MOST_LAGS
    ways = {**_SCANS, "S4D, FFT": by_transform} if fits else _SCANS
    found: dict[str, nn.Module] = {name: DiagonalLayer(net, dt, way, dtype) for name, way in ways.items()}
    filters = dynonet_layer(net, dt, dtype) if fits and not torch.cuda.is_available() else None
    return found if filters is None else {**found, "dynoNet": filters}
