"""The whole record by one convolution with the response, through FFTs; equal to `ltinet.solve.steps.convolution`."""

import torch
from torch import Tensor

from ltinet.learn.one_step import OneStep
from ltinet.learn.powers import responses


def run_convolution(step: OneStep, u: Tensor, start: Tensor | None) -> Tensor:
    """Outputs `(B, T, p)` from inputs `(B, T, m)` and w at the first sample; None for a start from rest.

    From rest w = −G₁ u₀ with a linear hold, so that C Pᵏ w is a response to u₀ like others.
    """
    steps, dtype, m = u.shape[1], u.dtype, u.shape[2]
    drives = torch.cat([step.Gamma, step.G1], 1) if start is None else step.Gamma
    tail = responses(step, drives, steps)
    response = torch.cat([step.direct.unsqueeze(0), tail[:-1, :, :m]]).to(dtype)
    y = _convolved(u, response)
    if start is None:
        return y - torch.einsum("tpm,bm->btp", tail[:, :, m:].to(dtype), u[:, 0])
    free = responses(step, start.to(step.Gamma.dtype).mT, steps)
    return y + free.permute(2, 0, 1).to(dtype)


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
