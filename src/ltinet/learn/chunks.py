"""Chunks of time with carries: inside a chunk a product with a Toeplitz matrix, between chunks a scan of states.

Equal to `ltinet.solve.steps.time_blocks`. For one record of T samples and chunks of K: T K m p + T n (m + p) products,
T/K states. What goes through states is worked on in float64 whatever the input is: outputs are small differences of
states in many networks, of which single precision would leave four digits; the rest is in the type of the input.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ltinet.learn.decay import Decay
from ltinet.learn.one_step import OneStep
from ltinet.learn.powers import Scalars, columns_in, decay_over, rows_out, scalars_below
from ltinet.learn.state_scan import lone, scan_states


class ChunkKernels(NamedTuple):
    """What a chunk of K samples does, as matrices."""

    toeplitz: Tensor
    """From its inputs to its outputs, `(K m, K p)`."""
    into: Tensor
    """From its inputs to the state after it, `(K m, n)`."""
    out: Tensor
    """From the state before it to its outputs, `(n, K p)`."""
    decay: Decay
    """From the state before it to that after it, as scans take it."""
    decay_of_rest: Decay
    """The same for the samples that fill no chunk."""
    at_rest: Tensor
    """−G₁ᵀ: from the first sample to the state that awaits it at rest."""


def chunk_kernels(step: OneStep, width: int, steps: int, dtype: torch.dtype) -> ChunkKernels:
    """The matrices of a record in chunks of some width, built in the type of the system, the first rounded once."""
    width = min(width, steps)
    powers = scalars_below(step, width + 1)
    below: Scalars = (powers[0][:-1], powers[1][:-1], powers[2][:-1])
    out = rows_out(step, width, below)
    into = columns_in(step, step.Gamma, width, scalars=below)
    response = torch.cat([step.direct.unsqueeze(0), out[:-1] @ step.Gamma]).to(dtype)
    p, m = response.shape[1:]
    # Of [0 … 0, H₀ … H_{K−1}] the window that begins at K − 1 − i has H_{j−i} at j: what sample i does to output j.
    padded = torch.cat([response.new_zeros(width - 1, p, m), response])
    toeplitz = padded.unfold(0, width, 1).flip(0).permute(0, 2, 3, 1).reshape(width * m, width * p)
    decay = decay_over(step, width, powers)
    rest = decay_over(step, steps % width) if steps % width else decay
    return ChunkKernels(toeplitz, into.flip(0).flatten(0, 1), out.flatten(0, 1).mT, lone(decay), rest, -step.G1.mT)


def run_chunks(kernels: ChunkKernels, u: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs `(B, T, p)` and the state after the last step, from inputs `(B, T, m)` and w at the first sample."""
    batch, steps, m = u.shape
    width = kernels.toeplitz.shape[0] // m
    p = kernels.toeplitz.shape[1] // width
    count = steps // width
    whole = u[:, : count * width].reshape(batch, count, width * m)
    states, end = scan_states(kernels.decay, whole.to(start.dtype) @ kernels.into, start)
    y = (whole @ kernels.toeplitz + (states @ kernels.out).to(u.dtype)).reshape(batch, count * width, p)
    rest = steps - count * width
    if not rest:
        return y, end
    last = u[:, count * width :].reshape(batch, rest * m)
    own = last @ kernels.toeplitz[: rest * m, : rest * p] + (end @ kernels.out[:, : rest * p]).to(u.dtype)
    end = kernels.decay_of_rest.times(end) + last.to(end.dtype) @ kernels.into[(width - rest) * m :]
    return torch.cat([y, own.reshape(batch, rest, p)], dim=1), end


def state_after(step: OneStep, u: Tensor, start: Tensor, *, width: int) -> Tensor:
    """Only the state after the last step."""
    batch, steps, m = u.shape
    width = min(width, steps)
    into = columns_in(step, step.Gamma, width).flip(0).flatten(0, 1)
    u = u.to(into.dtype)
    rest = steps % width
    if rest:
        start = decay_over(step, rest).times(start) + u[:, :rest].flatten(1) @ into[(width - rest) * m :]
    whole = u[:, rest:].reshape(batch, steps // width, width * m)
    return scan_states(lone(decay_over(step, width)), whole @ into, start)[1]
