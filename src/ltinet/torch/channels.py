"""Independent channels: d systems of one structure, each with one input and one output, side by side.

The matrices of a step have a leading axis of channels, otherwise they are those of `propagators`. The algorithms are two
of those in `uniform`: convolution with the impulse responses by FFTs for a record that begins at rest, and blocks of
time of K samples for one that continues or is continued, by products of one matrix for each channel: a Toeplitz matrix
inside each block, and a scan of states between blocks.

Impulse responses are computed in float64 and rounded once to the type of the input; states and the products with them
are float64 for every type. Single precision therefore costs no more than its own rounding, whatever cond(T).
"""

from typing import Any, TypeAlias

import torch
from torch import Tensor

from ltinet.torch.exponentials import cache_signature
from ltinet.torch.planner import Plan
from ltinet.torch.propagators import (
    OneStep,
    StateLayout,
    TensorSystem,
    impulse_responses,
    propagator_and_input_integrals,
)
from ltinet.torch.scan import StateScan, propagate
from ltinet.torch.uniform import TimeBlockKernels, inverse_transform, padded_length, time_block_kernels, transform


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
        *scalars, blocks = system.layout.split(rows)
        re, im, reals = (part.unflatten(-1, (n_channels, -1)).movedim(-2, 0) for part in scalars)
        dense = tuple(part.unflatten(-2, (n_channels, -1)).movedim(-3, 0) for part in blocks)
        return StateLayout.join(re, im, reals, dense)

    return TensorSystem(
        pair_rates=system.pair_rates.unflatten(0, (n_channels, -1)),
        frequencies=system.frequencies.unflatten(0, (n_channels, -1)),
        real_rates=system.real_rates.unflatten(0, (n_channels, -1)),
        blocks=tuple(F.unflatten(0, (n_channels, -1)) for F in system.blocks),
        B=split_states(system.B.mT).mT,
        C=split_states(system.C),
        D=system.D.unsqueeze(-1),
    )


def channel_of(system: TensorSystem, channel: int) -> TensorSystem:
    """Return the system of one channel, without the axis of channels."""
    return TensorSystem(
        pair_rates=system.pair_rates[channel],
        frequencies=system.frequencies[channel],
        real_rates=system.real_rates[channel],
        blocks=tuple(F[channel] for F in system.blocks),
        B=system.B[channel],
        C=system.C[channel],
        D=system.D[channel],
    )


def channel_step(system: TensorSystem, *, linear: bool) -> OneStep:
    """Compute the matrices of a step of unit length; all have an axis of channels in front."""
    decay, integrals = propagator_and_input_integrals(system, 1.0, count=2 if linear else 1)
    first, second = integrals[0], integrals[-1]
    if not linear:
        return OneStep(system, 1.0, decay, first, torch.zeros_like(first), first, system.D)
    Gamma = propagate(decay, second.mT).mT + (first - second)
    return OneStep(system, 1.0, decay, first - second, second, Gamma, system.D + system.C @ second)


ChannelKernels: TypeAlias = Tensor | TimeBlockKernels
"""Arrays of an algorithm that depend on the systems only: responses of a convolution or matrices of blocks of time."""


def build_channel_kernels(step: OneStep, plan: Plan, steps: int, dtype: torch.dtype, *, linear: bool) -> ChannelKernels:
    """Build the kernels of a convolution or of blocks of time for records of a length and a type."""
    if plan.algorithm == "convolution":
        return channel_responses(step, steps, dtype, linear=linear)
    return time_block_kernels(step, plan.width, steps, dtype)


def run_channels(kernels: ChannelKernels, u: Tensor, start: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Return outputs `(B, T, d)` for inputs `(B, T, d)` and the last state; a convolution starts at rest and has none."""
    if isinstance(kernels, Tensor):
        return run_channels_from_rest(kernels, u), None
    return run_channels_in_blocks(kernels, u, start)


# Convolution from rest


def channel_responses(step: OneStep, steps: int, dtype: torch.dtype, *, linear: bool) -> Tensor:
    """Compute the impulse responses `(d, 1, T)`, with a linear hold beside C Pᵏ G₁ `(d, 2, T)`, and round them once."""
    G = torch.cat([step.Gamma, step.G1], -1) if linear else step.Gamma
    tail = impulse_responses(step, G, steps).squeeze(-2).mT
    response = torch.cat([step.direct, tail[:, :1, :-1]], -1)
    return torch.cat([response, tail[:, 1:]], 1).to(dtype) if linear else response.to(dtype)


def run_channels_from_rest(responses: Tensor, u: Tensor) -> Tensor:
    """Return outputs `(B, T, d)` for inputs `(B, T, d)`, from rest."""
    y: Tensor = _ChannelConvolution.apply(u, responses[:, 0])
    for of_first in responses.unbind(1)[1:]:  # with a linear hold the state at rest is w = −G₁ u₀
        y = torch.addcmul(y, u[:, :1], of_first.mT, value=-1.0)
    return y


class _ChannelConvolution(torch.autograd.Function):
    """Convolution along time of samples `(B, T, d)` with responses `(d, T)`, one for each channel.

    The gradient with respect to each argument is the correlation of the other one with the gradient of y, summed over
    the batch for the responses: one real FFT for each tensor. Only the arguments are saved.
    """

    generate_vmap_rule = True

    @staticmethod
    @cache_signature
    def forward(u: Tensor, h: Tensor) -> Tensor:
        length = padded_length(h)
        y = inverse_transform(transform(u.mT, length) * transform(h, length), length)
        return y[..., : h.shape[-1]].mT.clone(memory_format=torch.contiguous_format)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:  # noqa: ARG004 - PyTorch's
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        u, h = ctx.saved_tensors
        steps, length = h.shape[-1], padded_length(h)
        transformed = transform(grad.mT, length)
        grad_u = grad_h = None
        if ctx.needs_input_grad[0]:
            grad_u = inverse_transform(transformed * transform(h, length).conj(), length)[..., :steps].mT
        if ctx.needs_input_grad[1]:
            product = (transformed * transform(u.mT, length).conj()).sum(0)
            grad_h = inverse_transform(product, length)[..., :steps]
        return grad_u, grad_h

    @staticmethod
    def jvp(ctx: Any, along_u: Tensor | None, along_h: Tensor | None) -> Tensor | None:
        u, h = ctx.saved_tensors
        pairs = ((along_u, h), (u, along_h))
        terms = [_ChannelConvolution.apply(*pair) for pair in pairs if all(part is not None for part in pair)]
        return sum(terms[1:], terms[0]) if terms else None


# Blocks of time, and single steps


def run_channels_in_blocks(kernels: TimeBlockKernels, u: Tensor, start: Tensor | None) -> tuple[Tensor, Tensor]:
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
    y = torch.baddbmm(sample * step.direct, state, step.system.C.mT)
    return y.squeeze(-1).mT.to(u.dtype), torch.addcmul(propagate(step.decay, state), sample, step.Gamma.mT)
