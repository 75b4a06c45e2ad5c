"""The whole record by one convolution with the response, through FFTs; equal to `ltinet.solve.steps.convolution`."""

from typing import NamedTuple

import torch
from torch import Tensor

from ltinet.learn.one_step import OneStep
from ltinet.learn.powers import responses


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
    return _convolved(u, kernels.response) - torch.einsum("tpm,bm->btp", kernels.of_first, u[:, 0])


def run_convolution_from(step: OneStep, u: Tensor, start: Tensor) -> Tensor:
    """The same from w at the first sample."""
    steps, dtype = u.shape[1], u.dtype
    tail = responses(step, step.Gamma, steps)
    response = torch.cat([step.direct.unsqueeze(0), tail[:-1]]).to(dtype)
    free = responses(step, start.to(step.Gamma.dtype).mT, steps)
    return _convolved(u, response) + free.permute(2, 0, 1).to(dtype)


def _convolved(u: Tensor, response: Tensor) -> Tensor:
    """Σ H_k u_{t−k}, by transforms of a length at which nothing comes around."""
    steps = u.shape[1]
    length = fast_length(2 * steps - 1)
    transformed = torch.fft.rfft(u, n=length, dim=1)
    weights = torch.fft.rfft(response, n=length, dim=0)
    if u.shape[2] == 1 and response.shape[1] == 1:
        product = transformed * weights[:, 0]
    else:
        product = torch.einsum("fpm,bfm->bfp", weights, transformed)
    return torch.fft.irfft(product, n=length, dim=1)[:, :steps]


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
