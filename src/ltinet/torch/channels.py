"""Independent channels: d systems of one structure, each with one input and one output, side by side.

The matrices of a step have a leading axis of channels, otherwise they are those of `propagators`. A record is run in
blocks of time of K samples as in `uniform`, by products of one matrix for each channel: a Toeplitz matrix inside each
block, and a scan of states between blocks. States and the products with them are float64 for every type of input; only
the Toeplitz matrix is rounded to it. Single precision therefore costs no more than its own rounding, whatever cond(T).
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ltinet.torch.propagators import (
    OneStep,
    Propagator,
    ScalarPowers,
    StateLayout,
    TensorSystem,
    input_columns,
    output_rows,
    propagator_and_input_integrals,
    propagator_power,
    scalar_power_table,
)
from ltinet.torch.scan import StateScan, propagate


def scale_time(system: TensorSystem, scale: Tensor) -> TensorSystem:
    """Multiply A and B by a factor for each state `(n,)`, equal within blocks: the time step of samples at unit steps."""
    re, _, reals, blocks = system.layout.split(scale)
    return system._replace(
        pair_rates=system.pair_rates * re,
        frequencies=system.frequencies * re,
        real_rates=system.real_rates * reals,
        blocks=tuple(F * factors[:, :1, None] for F, factors in zip(system.blocks, blocks, strict=True)),
        B=system.B * scale.unsqueeze(-1),
    )


def split_channels(system: TensorSystem, n_channels: int) -> TensorSystem:
    """Reshape d systems side by side, B `(d n, 1)`, C `(1, d n)` and D `(d, 1)`, to one system with an axis of channels."""

    def split_states(rows: Tensor) -> Tensor:
        """Reshape `(1, d n)`, in which the states of a kind stand together, to `(d, 1, n)`."""
        re, im, reals, blocks = system.layout.split(rows)
        scalars = (part.unflatten(-1, (n_channels, -1)).movedim(-2, 0) for part in (re, im, reals))
        dense = tuple(part.unflatten(-2, (n_channels, -1)).movedim(-3, 0) for part in blocks)
        return StateLayout.join(*scalars, dense)

    return TensorSystem(
        pair_rates=system.pair_rates.unflatten(0, (n_channels, -1)),
        frequencies=system.frequencies.unflatten(0, (n_channels, -1)),
        real_rates=system.real_rates.unflatten(0, (n_channels, -1)),
        blocks=tuple(F.unflatten(0, (n_channels, -1)) for F in system.blocks),
        B=split_states(system.B.mT).mT,
        C=split_states(system.C),
        D=system.D.unsqueeze(-1),
    )


def channel_step(system: TensorSystem, *, linear: bool) -> OneStep:
    """Compute the matrices of a step of unit length; all have an axis of channels in front."""
    decay, first, second = propagator_and_input_integrals(system, 1.0)
    if not linear:
        return OneStep(system, 1.0, decay, first, torch.zeros_like(first), first, system.D)
    Gamma = propagate(decay, second.mT).mT + (first - second)
    return OneStep(system, 1.0, decay, first - second, second, Gamma, system.D + system.C @ second)


class ChannelKernels(NamedTuple):
    """Matrices of a block of K samples, one for each of d channels."""

    toeplitz: Tensor
    """Inputs to outputs, `(d, K, K)`."""
    into: Tensor
    """Inputs to the state after the block, `(d, K, n)`."""
    out: Tensor
    """State before the block to outputs, `(d, n, K)`."""
    decay: Propagator
    """State before the block to the state after it."""
    decay_of_remainder: Propagator
    """State before the remaining samples, fewer than K, to the state after them."""
    rest_weights: Tensor
    """−G₁ᵀ: first sample to the state w before it, at rest, `(d, 1, n)`."""


def channel_kernels(step: OneStep, width: int, steps: int, dtype: torch.dtype) -> ChannelKernels:
    """Compute the matrices of blocks of time in the type of the system; the Toeplitz matrix is rounded once to `dtype`."""
    width = min(width, steps)
    powers = scalar_power_table(step, width + 1)
    below = _first_powers(powers, width)
    out = output_rows(step, width, below).squeeze(-2)  # (d, K, n)
    into = input_columns(step, step.Gamma, width, scalars=below).squeeze(-2)
    response = torch.cat([step.direct.flatten(1), (out[:, :-1] @ step.Gamma).squeeze(-1)], 1).to(dtype)
    # The window of [0 … 0, h₀ … h_{K−1}] that begins at K − 1 − i has h_{j−i} at j: the response of output j to sample i.
    padded = torch.cat([response.new_zeros(len(response), width - 1), response], 1)
    toeplitz = padded.unfold(1, width, 1).flip(1)
    decay = propagator_power(step, width, powers)
    remainder = steps % width
    shorter = _first_powers(powers, remainder + 1)
    decay_of_remainder = propagator_power(step, remainder, shorter) if remainder else decay
    return ChannelKernels(toeplitz, into.flip(1), out.mT, decay, decay_of_remainder, -step.G1.mT)


def _first_powers(powers: ScalarPowers, count: int) -> ScalarPowers:
    re, im, reals = powers
    return re[..., :count, :], im[..., :count, :], reals[..., :count, :]


def run_channels(kernels: ChannelKernels, u: Tensor, start: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return outputs `(B, T, d)` and the state after the last step `(d, B, n)`, for inputs `(B, T, d)` and a state w."""
    batch, steps, channels = u.shape
    width = kernels.toeplitz.shape[-1]
    count = steps // width
    samples = u.permute(2, 0, 1).contiguous()
    if start is None:
        start = samples[..., :1].to(kernels.into.dtype) @ kernels.rest_weights
    in_blocks = samples[..., : count * width].reshape(channels, batch * count, width)
    drive = (in_blocks.to(start.dtype) @ kernels.into).unflatten(1, (batch, count))
    decay = kernels.decay
    states, end = StateScan.apply(False, decay.re, decay.im, decay.reals, start, drive, *decay.blocks)
    y = (states.flatten(1, 2) @ kernels.out).to(u.dtype).baddbmm(in_blocks, kernels.toeplitz)
    y = y.view(channels, batch, count * width)
    n_left = steps - count * width
    if n_left:
        last = samples[..., count * width :]
        y_last = (end @ kernels.out[..., :n_left]).to(u.dtype).baddbmm(last, kernels.toeplitz[:, :n_left, :n_left])
        y = torch.cat([y, y_last], -1)
        end = propagate(kernels.decay_of_remainder, end) + last.to(end.dtype) @ kernels.into[:, width - n_left :]
    return y.permute(1, 2, 0).contiguous(), end


def advance_channels(step: OneStep, u: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the output `(B, d)` at a sample `(B, d)` from the state w before it `(d, B, n)`, and the next w."""
    sample = u.mT.unsqueeze(-1).to(step.Gamma.dtype)
    if state is None:
        state = -(sample @ step.G1.mT)
    y = state @ step.system.C.mT + sample @ step.direct
    return y.squeeze(-1).mT.to(u.dtype), propagate(step.decay, state) + sample @ step.Gamma.mT
