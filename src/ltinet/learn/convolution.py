"""The whole record by one convolution with the response, through FFTs; equal to `ltinet.solve.steps.convolution`."""

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ltinet.learn.one_step import OneStep
from ltinet.learn.powers import responses
from ltinet.learn.signed_once import signed_once


class ResponseKernels(NamedTuple):
    """What each sample does to all that follow, of a record that begins at rest; both `(T, p, m)`."""

    response: Tensor
    of_first: Tensor
    """C Pᵏ G₁. At rest w = −G₁ u₀ with a linear hold, so that the start is a response to u₀ like others."""


def response_kernels(step: OneStep, steps: int, dtype: torch.dtype) -> ResponseKernels:
    """The responses of all lags, built in the type of the system and rounded once."""
    m = step.Gamma.shape[1]
    tail = responses(step, torch.cat([step.Gamma, step.G1], 1), steps)
    response = torch.cat([step.direct.unsqueeze(0), tail[:-1, :, :m]])
    return ResponseKernels(response.to(dtype), tail[:, :, m:].to(dtype))


def run_convolution(kernels: ResponseKernels, u: Tensor) -> Tensor:
    """Outputs `(B, T, p)` from inputs `(B, T, m)`, from rest."""
    y = convolved(u, kernels.response)
    of_first = kernels.of_first.flatten(0, 1)
    return torch.addmm(y.flatten(1), u[:, 0], of_first.mT, alpha=-1.0).view(y.shape)


def run_convolution_from(step: OneStep, u: Tensor, start: Tensor) -> Tensor:
    """The same from w at the first sample."""
    steps, dtype = u.shape[1], u.dtype
    tail = responses(step, step.Gamma, steps)
    response = torch.cat([step.direct.unsqueeze(0), tail[:-1]]).to(dtype)
    free = responses(step, start.to(step.Gamma.dtype).mT, steps)
    return convolved(u, response) + free.permute(2, 0, 1).to(dtype)


def convolved(u: Tensor, response: Tensor) -> Tensor:
    """Σ H_k u_{t−k} `(B, T, p)` of samples `(B, T, m)` and a response H `(T, p, m)`."""
    y: Tensor = _Convolution.apply(u.mT.contiguous(), response.permute(1, 2, 0).contiguous())
    return y.mT.contiguous()


class _Convolution(torch.autograd.Function):
    """Along the last axis, samples `(B, m, T)` and responses `(p, m, T)` to `(B, p, T)`.

    The gradient of each is a correlation of the other with that of y: transforms again, one for each tensor, where
    PyTorch's own derivatives of real transforms take complex ones of the full length. Only what was given is kept.
    """

    generate_vmap_rule = True

    @staticmethod
    @signed_once
    def forward(u: Tensor, h: Tensor) -> Tensor:
        steps, length = u.shape[-1], _length(u)
        y = _from(_times(_to(h, length), _to(u, length)), length)
        return y[..., :steps].clone(memory_format=torch.contiguous_format)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:  # noqa: ARG004 - PyTorch's
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        u, h = ctx.saved_tensors
        steps, length = u.shape[-1], _length(u)
        transformed = _to(grad, length)
        grad_u = grad_h = None
        if ctx.needs_input_grad[0]:
            product = _times(_to(h, length).conj().transpose(0, 1), transformed)
            grad_u = _from(product, length)[..., :steps]
        if ctx.needs_input_grad[1]:
            product = _summed(transformed, _to(u, length).conj())
            grad_h = _from(product, length)[..., :steps]
        return grad_u, grad_h

    @staticmethod
    def jvp(ctx: Any, along_u: Tensor | None, along_h: Tensor | None) -> Tensor | None:
        u, h = ctx.saved_tensors
        moved = [
            _Convolution.apply(*own) for own in ((along_u, h), (u, along_h)) if all(part is not None for part in own)
        ]
        return sum(moved[1:], moved[0]) if moved else None


_FEW = 16  # inputs times outputs up to which products at each frequency are sums of outer ones


def _times(weights: Tensor, signals: Tensor) -> Tensor:
    """At each frequency weights `(p, m)` times signals `(B, m)`."""
    if weights.shape[0] * weights.shape[1] == 1:
        return signals * weights[0]
    if weights.shape[0] * weights.shape[1] <= _FEW:
        return (weights * signals.unsqueeze(1)).sum(2)
    return torch.einsum("pmf,bmf->bpf", weights, signals)


def _summed(one: Tensor, other: Tensor) -> Tensor:
    """At each frequency Σ over the batch of outer products of `(B, p)` and `(B, m)`."""
    if one.shape[1] * other.shape[1] <= _FEW:
        return (one.unsqueeze(2) * other.unsqueeze(1)).sum(0)
    return torch.einsum("bpf,bmf->pmf", one, other)


def _to(signals: Tensor, length: int) -> Tensor:
    """Transforms; of nothing none, which not every library of them takes."""
    if not signals.numel():
        shape = (*signals.shape[:-1], length // 2 + 1)
        return torch.zeros(shape, dtype=signals.dtype.to_complex(), device=signals.device)
    return torch.fft.rfft(signals, n=length)


def _from(transformed: Tensor, length: int) -> Tensor:
    """And back."""
    if not transformed.numel():
        shape = (*transformed.shape[:-1], length)
        return torch.zeros(shape, dtype=transformed.dtype.to_real(), device=transformed.device)
    return torch.fft.irfft(transformed, n=length)


def _length(signals: Tensor) -> int:
    """One at which nothing comes around."""
    return fast_length(2 * signals.shape[-1] - 1)


@lru_cache(maxsize=256)
def fast_length(least: int) -> int:
    """The smallest 2ᵃ 3ᵇ 5ᶜ that is even and not less."""
    best = 1 << max(least - 1, 1).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            number = three * 2
            while number < least:
                number *= 2
            best = min(best, number)
            three *= 3
        five *= 5
    return best
