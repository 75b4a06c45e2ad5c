"""Algorithms for records with one time step: FFT convolution, blocks of time, scan of states and single steps.

*Convolution* of the whole record with the impulse response by FFTs, from rest or from a state.

*Blocks of time* of K samples: a product with a Toeplitz matrix inside each block and a scan of states between blocks,
T K m p + T n (m + p) products and T/K states.

*Scan* of all states, for layers with many inputs and outputs, and *single steps*.

Each algorithm has kernels that depend on the network only and a function that runs them on a record. States are float64
for every type of input: outputs are small differences of states in many networks, of which float32 would
leave four digits. The results equal those of `ltinet.simulation`.
"""

from typing import Any, NamedTuple

import torch
from scipy.fft import next_fast_len
from torch import Tensor

from ltinet.torch.exponentials import cache_signature
from ltinet.torch.propagators import (
    OneStep,
    Propagator,
    impulse_responses,
    input_columns,
    output_rows,
    propagator_power,
    scalar_power_table,
    select_powers,
)
from ltinet.torch.scan import add_group_axis, scan_states


class ResponseKernels(NamedTuple):
    """Impulse responses for a record that begins at rest; both `(T, p, m)`."""

    response: Tensor
    of_first: Tensor
    """C Pᵏ G₁: with a linear hold the state at rest is w = −G₁ u₀, so that the start is a response to u₀."""


def response_kernels(step: OneStep, steps: int, dtype: torch.dtype) -> ResponseKernels:
    """Compute the responses of all lags in the type of the system and round them once."""
    m = step.Gamma.shape[1]
    tail = impulse_responses(step, torch.cat([step.Gamma, step.G1], 1), steps)
    response = torch.cat([step.direct.unsqueeze(0), tail[:-1, :, :m]])
    return ResponseKernels(response.to(dtype), tail[:, :, m:].to(dtype))


def run_convolution(kernels: ResponseKernels, u: Tensor) -> Tensor:
    """Return outputs `(B, T, p)` for inputs `(B, T, m)`, from rest."""
    y = fft_convolve(u, kernels.response)
    of_first = kernels.of_first.flatten(0, 1)
    return torch.addmm(y.flatten(1), u[:, 0], of_first.mT, alpha=-1.0).view(y.shape)


def run_convolution_from_state(step: OneStep, u: Tensor, start: Tensor) -> Tensor:
    """Return outputs `(B, T, p)` for inputs `(B, T, m)`, from the state w before the first sample."""
    steps, dtype = u.shape[1], u.dtype
    tail = impulse_responses(step, step.Gamma, steps)
    response = torch.cat([step.direct.unsqueeze(0), tail[:-1]]).to(dtype)
    free = impulse_responses(step, start.to(step.Gamma.dtype).mT, steps)
    return fft_convolve(u, response) + free.permute(2, 0, 1).to(dtype)


def fft_convolve(u: Tensor, response: Tensor) -> Tensor:
    """Compute Σ H_k u_{t−k} `(B, T, p)` for samples `(B, T, m)` and a response H `(T, p, m)`."""
    y: Tensor = _Convolution.apply(u.mT.contiguous(), response.permute(1, 2, 0).contiguous())
    return y.mT.contiguous()


class _Convolution(torch.autograd.Function):
    """Convolution along the last axis of samples `(B, m, T)` and responses `(p, m, T)` to `(B, p, T)`.

    The gradient with respect to each argument is the correlation of the other one with the gradient of y: one real FFT
    for each tensor, where PyTorch's derivatives of real FFTs take complex ones of the full length. Only the arguments
    are saved.
    """

    generate_vmap_rule = True

    @staticmethod
    @cache_signature
    def forward(u: Tensor, h: Tensor) -> Tensor:
        steps, length = u.shape[-1], padded_length(u)
        y = inverse_transform(_multiply_spectra(transform(h, length), transform(u, length)), length)
        return y[..., :steps].clone(memory_format=torch.contiguous_format)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:  # noqa: ARG004 - PyTorch's
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        u, h = ctx.saved_tensors
        steps, length = u.shape[-1], padded_length(u)
        transformed = transform(grad, length)
        grad_u = grad_h = None
        if ctx.needs_input_grad[0]:
            product = _multiply_spectra(transform(h, length).conj().transpose(0, 1), transformed)
            grad_u = inverse_transform(product, length)[..., :steps]
        if ctx.needs_input_grad[1]:
            product = _sum_outer_products(transformed, transform(u, length).conj())
            grad_h = inverse_transform(product, length)[..., :steps]
        return grad_u, grad_h

    @staticmethod
    def jvp(ctx: Any, along_u: Tensor | None, along_h: Tensor | None) -> Tensor | None:
        u, h = ctx.saved_tensors
        pairs = ((along_u, h), (u, along_h))
        terms = [_Convolution.apply(*pair) for pair in pairs if all(part is not None for part in pair)]
        return sum(terms[1:], terms[0]) if terms else None


# Inputs times outputs up to which broadcasting is faster than einsum; empirical, speed only.
_MAX_OUTER_PRODUCT_CHANNELS = 16


def _multiply_spectra(weights: Tensor, signals: Tensor) -> Tensor:
    """Multiply weights `(p, m)` and signals `(B, m)` at each frequency."""
    if weights.shape[0] * weights.shape[1] == 1:
        return signals * weights[0]
    if weights.shape[0] * weights.shape[1] <= _MAX_OUTER_PRODUCT_CHANNELS:
        return (weights * signals.unsqueeze(1)).sum(2)
    return torch.einsum("pmf,bmf->bpf", weights, signals)


def _sum_outer_products(one: Tensor, other: Tensor) -> Tensor:
    """Sum the outer products of `(B, p)` and `(B, m)` over the batch at each frequency."""
    if one.shape[1] * other.shape[1] <= _MAX_OUTER_PRODUCT_CHANNELS:
        return (one.unsqueeze(2) * other.unsqueeze(1)).sum(0)
    return torch.einsum("bpf,bmf->pmf", one, other)


def transform(signals: Tensor, length: int) -> Tensor:
    """Return the real FFT; empty tensors, which not every FFT library accepts, give empty ones."""
    if not signals.numel():
        shape = (*signals.shape[:-1], length // 2 + 1)
        return torch.zeros(shape, dtype=signals.dtype.to_complex(), device=signals.device)
    return torch.fft.rfft(signals, n=length)


def inverse_transform(transformed: Tensor, length: int) -> Tensor:
    """Return the inverse real FFT."""
    if not transformed.numel():
        shape = (*transformed.shape[:-1], length)
        return torch.zeros(shape, dtype=transformed.dtype.to_real(), device=transformed.device)
    return torch.fft.irfft(transformed, n=length)


def padded_length(signals: Tensor) -> int:
    """Return the smallest even 2ᵃ 3ᵇ 5ᶜ at which the circular convolution of T samples equals the linear one."""
    return 2 * next_fast_len(signals.shape[-1], real=True)  # at least 2 T − 1


# Blocks of time


class TimeBlockKernels(NamedTuple):
    """Matrices of a block of K samples; leading axes are those of several systems."""

    toeplitz: Tensor
    """Inputs to outputs, `(…, K m, K p)`."""
    into: Tensor
    """Inputs to the state after the block, `(…, K m, n)`."""
    out: Tensor
    """State before the block to outputs, `(…, n, K p)`."""
    decay: Propagator
    """State before the block to the state after it."""
    decay_of_remainder: Propagator
    """State before the remaining samples, fewer than K, to the state after them."""
    rest_weights: Tensor
    """−G₁ᵀ: first sample to the state w before it, at rest, `(…, m, n)`."""


def time_block_kernels(step: OneStep, width: int, steps: int, dtype: torch.dtype) -> TimeBlockKernels:
    """Compute the matrices of blocks of time in the type of the system; the Toeplitz matrix is rounded once to `dtype`."""
    width = min(width, steps)
    powers = scalar_power_table(step, width + 1)
    below = select_powers(powers, slice(width))
    out = output_rows(step, width, below).flatten(-3, -2)  # (…, K p, n)
    into = input_columns(step, step.Gamma, width, scalars=below)
    p, m = step.direct.shape[-2:]
    tail = (out[..., : (width - 1) * p, :] @ step.Gamma).unflatten(-2, (width - 1, p))
    response = torch.cat([step.direct.unsqueeze(-3), tail], -3).to(dtype)
    # The window of [0 … 0, H₀ … H_{K−1}] that begins at K − 1 − i has H_{j−i} at j: the response of output j to sample i.
    padded = torch.cat([response.new_zeros(*response.shape[:-3], width - 1, p, m), response], -3)
    toeplitz = padded.unfold(-3, width, 1).flip(-4).movedim(-3, -1).flatten(-4, -3).flatten(-2)
    remainder = steps % width
    decay = propagator_power(step, width, powers)
    return TimeBlockKernels(
        toeplitz,
        into.flip(-3).flatten(-3, -2),
        out.mT,
        decay,
        propagator_power(step, remainder, select_powers(powers, slice(remainder + 1))) if remainder else decay,
        -step.G1.mT,
    )


def run_time_blocks(kernels: TimeBlockKernels, u: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """Return outputs `(B, T, p)` and the state after the last step, for inputs `(B, T, m)` and a state w."""
    batch, steps, m = u.shape
    width = kernels.toeplitz.shape[0] // m
    p = kernels.toeplitz.shape[1] // width
    count = steps // width
    in_blocks = u[:, : count * width].reshape(batch, count, width * m)
    drive = in_blocks.to(start.dtype) @ kernels.into
    states, end = scan_states(add_group_axis(kernels.decay), drive, start)
    y = (in_blocks @ kernels.toeplitz + (states @ kernels.out).to(u.dtype)).reshape(batch, count * width, p)
    n_left = steps - count * width
    if not n_left:
        return y, end
    last = u[:, count * width :].reshape(batch, n_left * m)
    y_last = last @ kernels.toeplitz[: n_left * m, : n_left * p] + (end @ kernels.out[:, : n_left * p]).to(u.dtype)
    end = kernels.decay_of_remainder.times(end) + last.to(end.dtype) @ kernels.into[(width - n_left) * m :]
    return torch.cat([y, y_last.reshape(batch, n_left, p)], dim=1), end


def compute_end_state(step: OneStep, u: Tensor, start: Tensor, *, width: int) -> Tensor:
    """Return the state after the last step; the samples that do not fill a block come first."""
    batch, steps, m = u.shape
    width = min(width, steps)
    into = input_columns(step, step.Gamma, width).flip(0).flatten(0, 1)
    u = u.to(into.dtype)
    n_first = steps % width
    if n_first:
        start = propagator_power(step, n_first).times(start) + u[:, :n_first].flatten(1) @ into[(width - n_first) * m :]
    in_blocks = u[:, n_first:].reshape(batch, steps // width, width * m)
    return scan_states(add_group_axis(propagator_power(step, width)), in_blocks @ into, start)[1]


# Scan of all states, and single steps


class ScanKernels(NamedTuple):
    """Matrices of a step, transposed: Γ, C and D + C G₁ in the type of the input, P and −G₁ in that of the system."""

    Gamma: Tensor
    C: Tensor
    direct: Tensor
    decay: Propagator
    rest_weights: Tensor
    """−G₁ᵀ: first sample to the state w before it, at rest."""


def scan_kernels(step: OneStep, dtype: torch.dtype) -> ScanKernels:
    """Return the matrices of a step, rounded once."""
    Gamma, C, direct = (matrix.to(dtype).mT for matrix in (step.Gamma, step.system.C, step.direct))
    return ScanKernels(Gamma, C, direct, add_group_axis(step.decay), -step.G1.mT)


def run_scan(kernels: ScanKernels, u: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """Return outputs `(B, T, p)` and the state after the last step, by way of all states `(B, T, n)`."""
    states, end = scan_states(kernels.decay, u @ kernels.Gamma, start)
    y = torch.addmm(u.flatten(0, 1) @ kernels.direct, states.flatten(0, 1), kernels.C)
    return y.view(*u.shape[:2], kernels.C.shape[1]), end


def run_steps(step: OneStep, u: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """Return outputs `(B, T, p)` and the state after the last step, one step at a time."""
    state, outputs = start, []
    for k in range(u.shape[1]):
        y, state = advance_one_step(step, u[:, k], state)
        outputs.append(y)
    return torch.stack(outputs, 1), state


def advance_one_step(step: OneStep, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Return the output `(B, p)` at a sample `(B, m)` from the state w before it, and the next w in float64."""
    sample = u.to(state.dtype)
    y = state @ step.system.C.mT + sample @ step.direct.mT
    return y.to(u.dtype), step.decay.times(state) + sample @ step.Gamma.mT
