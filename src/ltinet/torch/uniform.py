"""Algorithms for records with one time step: FFT convolution, time blocks, scan of states and single steps.

*Convolution* of the whole record with the impulse response by FFTs, from rest or from a state.

*Time blocks* of K samples: a product with a Toeplitz matrix inside each block and a scan of states between blocks,
T K m p + T n (m + p) products and T/K states.

*Scan* of all states, for layers with many inputs and outputs, and *single steps*.

Each algorithm has kernels that depend on the network only and a function that runs them on a record. States are float64
whatever the type of the input is: outputs are small differences of states in many networks, of which float32 would
leave four digits. The results equal those of `ltinet.simulation`.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ltinet.torch.exponentials import cache_signature
from ltinet.torch.propagators import (
    OneStep,
    Propagator,
    ScalarPowers,
    impulse_responses,
    input_columns,
    output_rows,
    propagator_power,
    scalar_power_table,
)
from ltinet.torch.scan import add_group_axis, scan_states

# MERGED ltinet.torch.uniform
# The whole record by one convolution with the response, through FFTs; equal to `ltinet.simulation.convolution`.


class ResponseKernels(NamedTuple):
    """What each sample does to all that follow, of a record that begins at rest; both `(T, p, m)`."""

    response: Tensor
    of_first: Tensor
    """C Pᵏ G₁. At rest w = −G₁ u₀ with a linear hold, so that the start is a response to u₀ like others."""


def response_kernels(step: OneStep, steps: int, dtype: torch.dtype) -> ResponseKernels:
    """The responses of all lags, built in the type of the system and rounded once."""
    m = step.Gamma.shape[1]
    tail = impulse_responses(step, torch.cat([step.Gamma, step.G1], 1), steps)
    response = torch.cat([step.direct.unsqueeze(0), tail[:-1, :, :m]])
    return ResponseKernels(response.to(dtype), tail[:, :, m:].to(dtype))


def run_convolution(kernels: ResponseKernels, u: Tensor) -> Tensor:
    """Outputs `(B, T, p)` from inputs `(B, T, m)`, from rest."""
    y = fft_convolve(u, kernels.response)
    of_first = kernels.of_first.flatten(0, 1)
    return torch.addmm(y.flatten(1), u[:, 0], of_first.mT, alpha=-1.0).view(y.shape)


def run_convolution_from_state(step: OneStep, u: Tensor, start: Tensor) -> Tensor:
    """The same from w at the first sample."""
    steps, dtype = u.shape[1], u.dtype
    tail = impulse_responses(step, step.Gamma, steps)
    response = torch.cat([step.direct.unsqueeze(0), tail[:-1]]).to(dtype)
    free = impulse_responses(step, start.to(step.Gamma.dtype).mT, steps)
    return fft_convolve(u, response) + free.permute(2, 0, 1).to(dtype)


def fft_convolve(u: Tensor, response: Tensor) -> Tensor:
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
    @cache_signature
    def forward(u: Tensor, h: Tensor) -> Tensor:
        steps, length = u.shape[-1], _padded_length(u)
        y = _inverse_transform(_multiply_spectra(_transform(h, length), _transform(u, length)), length)
        return y[..., :steps].clone(memory_format=torch.contiguous_format)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:  # noqa: ARG004 - PyTorch's
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        u, h = ctx.saved_tensors
        steps, length = u.shape[-1], _padded_length(u)
        transformed = _transform(grad, length)
        grad_u = grad_h = None
        if ctx.needs_input_grad[0]:
            product = _multiply_spectra(_transform(h, length).conj().transpose(0, 1), transformed)
            grad_u = _inverse_transform(product, length)[..., :steps]
        if ctx.needs_input_grad[1]:
            product = _sum_outer_products(transformed, _transform(u, length).conj())
            grad_h = _inverse_transform(product, length)[..., :steps]
        return grad_u, grad_h

    @staticmethod
    def jvp(ctx: Any, along_u: Tensor | None, along_h: Tensor | None) -> Tensor | None:
        u, h = ctx.saved_tensors
        moved = [
            _Convolution.apply(*own) for own in ((along_u, h), (u, along_h)) if all(part is not None for part in own)
        ]
        return sum(moved[1:], moved[0]) if moved else None


_MAX_OUTER_PRODUCT_CHANNELS = 16  # inputs times outputs up to which products at each frequency are sums of outer ones


def _multiply_spectra(weights: Tensor, signals: Tensor) -> Tensor:
    """At each frequency weights `(p, m)` times signals `(B, m)`."""
    if weights.shape[0] * weights.shape[1] == 1:
        return signals * weights[0]
    if weights.shape[0] * weights.shape[1] <= _MAX_OUTER_PRODUCT_CHANNELS:
        return (weights * signals.unsqueeze(1)).sum(2)
    return torch.einsum("pmf,bmf->bpf", weights, signals)


def _sum_outer_products(one: Tensor, other: Tensor) -> Tensor:
    """At each frequency Σ over the batch of outer products of `(B, p)` and `(B, m)`."""
    if one.shape[1] * other.shape[1] <= _MAX_OUTER_PRODUCT_CHANNELS:
        return (one.unsqueeze(2) * other.unsqueeze(1)).sum(0)
    return torch.einsum("bpf,bmf->pmf", one, other)


def _transform(signals: Tensor, length: int) -> Tensor:
    """Transforms; of nothing none, which not every library of them takes."""
    if not signals.numel():
        shape = (*signals.shape[:-1], length // 2 + 1)
        return torch.zeros(shape, dtype=signals.dtype.to_complex(), device=signals.device)
    return torch.fft.rfft(signals, n=length)


def _inverse_transform(transformed: Tensor, length: int) -> Tensor:
    """And back."""
    if not transformed.numel():
        shape = (*transformed.shape[:-1], length)
        return torch.zeros(shape, dtype=transformed.dtype.to_real(), device=transformed.device)
    return torch.fft.irfft(transformed, n=length)


def _padded_length(signals: Tensor) -> int:
    """One at which nothing comes around."""
    return fast_fft_length(2 * signals.shape[-1] - 1)


@lru_cache(maxsize=256)
def fast_fft_length(least: int) -> int:
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


# MERGED ltinet.torch.uniform
# Chunks of time with carries: inside a chunk a product with a Toeplitz matrix, between chunks a scan of states.
#
# Equal to `ltinet.simulation.time_blocks`. For one record of T samples and chunks of K: T K m p + T n (m + p) products,
# T/K states. What goes through states is worked on in float64 whatever the input is: outputs are small differences of
# states in many networks, of which single precision would leave four digits; the rest is in the type of the input.


class ChunkKernels(NamedTuple):
    """What a chunk of K samples does, as matrices."""

    toeplitz: Tensor
    """From its inputs to its outputs, `(K m, K p)`."""
    into: Tensor
    """From its inputs to the state after it, `(K m, n)`."""
    out: Tensor
    """From the state before it to its outputs, `(n, K p)`."""
    decay: Propagator
    """From the state before it to that after it, as scans take it."""
    decay_of_rest: Propagator
    """The same for the samples that fill no chunk."""
    at_rest: Tensor
    """−G₁ᵀ: from the first sample to the state that awaits it at rest."""


def chunk_kernels(step: OneStep, width: int, steps: int, dtype: torch.dtype) -> ChunkKernels:
    """The matrices of a record in chunks of some width, built in the type of the system, the first rounded once."""
    width = min(width, steps)
    powers = scalar_power_table(step, width + 1)
    below: ScalarPowers = (powers[0][:-1], powers[1][:-1], powers[2][:-1])
    out = output_rows(step, width, below)
    into = input_columns(step, step.Gamma, width, scalars=below)
    response = torch.cat([step.direct.unsqueeze(0), out[:-1] @ step.Gamma]).to(dtype)
    p, m = response.shape[1:]
    # Of [0 … 0, H₀ … H_{K−1}] the window that begins at K − 1 − i has H_{j−i} at j: what sample i does to output j.
    padded = torch.cat([response.new_zeros(width - 1, p, m), response])
    toeplitz = padded.unfold(0, width, 1).flip(0).permute(0, 2, 3, 1).reshape(width * m, width * p)
    decay = propagator_power(step, width, powers)
    rest = propagator_power(step, steps % width) if steps % width else decay
    return ChunkKernels(
        toeplitz, into.flip(0).flatten(0, 1), out.flatten(0, 1).mT, add_group_axis(decay), rest, -step.G1.mT
    )


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


def compute_end_state(step: OneStep, u: Tensor, start: Tensor, *, width: int) -> Tensor:
    """Only the state after the last step."""
    batch, steps, m = u.shape
    width = min(width, steps)
    into = input_columns(step, step.Gamma, width).flip(0).flatten(0, 1)
    u = u.to(into.dtype)
    rest = steps % width
    if rest:
        start = propagator_power(step, rest).times(start) + u[:, :rest].flatten(1) @ into[(width - rest) * m :]
    whole = u[:, rest:].reshape(batch, steps // width, width * m)
    return scan_states(add_group_axis(propagator_power(step, width)), whole @ into, start)[1]


# MERGED ltinet.torch.uniform
# Two ways that go through states: all of them by a scan, for layers with many inputs and outputs, or one by one.


class ScanKernels(NamedTuple):
    """What a step does, its products in the type of the input and transposed."""

    Gamma: Tensor
    C: Tensor
    direct: Tensor
    decay: Propagator
    """As scans take it."""
    at_rest: Tensor
    """−G₁ᵀ: from the first sample to the state that awaits it at rest."""


def scan_kernels(step: OneStep, dtype: torch.dtype) -> ScanKernels:
    """The matrices of a step, rounded once."""
    Gamma, C, direct = (own.to(dtype).mT for own in (step.Gamma, step.system.C, step.direct))
    return ScanKernels(Gamma, C, direct, add_group_axis(step.decay), -step.G1.mT)


def run_scan(kernels: ScanKernels, u: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs `(B, T, p)` and the state after the last step, by all states `(B, T, n)`."""
    states, end = scan_states(kernels.decay, u @ kernels.Gamma, start)
    y = torch.addmm(u.flatten(0, 1) @ kernels.direct, states.flatten(0, 1), kernels.C)
    return y.view(*u.shape[:2], kernels.C.shape[1]), end


def run_steps(step: OneStep, u: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """The same, one step at a time."""
    state, outputs = start, []
    for k in range(u.shape[1]):
        y, state = advance_one_step(step, u[:, k], state)
        outputs.append(y)
    return torch.stack(outputs, 1), state


def advance_one_step(step: OneStep, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """The output `(B, p)` at a sample `(B, m)` from w there, and w at the next, which is float64 as the step is."""
    sample = u.to(state.dtype)
    y = state @ step.system.C.mT + sample @ step.direct.mT
    return y.to(u.dtype), step.decay.times(state) + sample @ step.Gamma.mT
