"""Simulation on nonuniform sample times in blocks of time.

Equal to `net.simulate(u, t)` at such times. Each block of K steps has its own propagators e^{A h_k} `(K, n)` and is
recomputed in the backward pass, so that memory does not grow with all steps times all states.
"""

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ltinet.torch.exponentials import matrix_phi, pair_phi
from ltinet.torch.propagators import BlockStep, Propagator, TensorSystem

_BLOCK_STEPS = 128  # steps that are recomputed together in the backward pass


class VariableSteps(NamedTuple):
    """Steps of different lengths `(…, K)`: P, and the factors h φ₁ and h φ₂ of B u, all as propagators."""

    decay: Propagator
    first: Propagator
    second: Propagator


def run_nonuniform(system: TensorSystem, u: Tensor, times: Tensor, z: Tensor, *, linear: bool) -> tuple[Tensor, Tensor]:
    """Return outputs `(B, T, p)` and the last state for samples `(B, T, m)`, times `(B or 1, T)` and a state `(B, n)`.

    All arithmetic is in float64, the type of the system, because time steps are differences of large times.
    """
    drive = u @ system.B.mT
    lengths = times.diff(dim=-1)
    outputs = []
    n_steps = lengths.shape[-1]
    recomputes = n_steps > _BLOCK_STEPS and torch.is_grad_enabled() and not torch._C._are_functorch_transforms_active()
    run_block = partial(checkpoint, _run_time_block, use_reentrant=False) if recomputes else _run_time_block
    for start in range(0, n_steps, _BLOCK_STEPS):
        stop = min(start + _BLOCK_STEPS, n_steps)
        before, z = run_block(system, lengths[:, start:stop], drive[:, start : stop + 1], z, linear)
        outputs.append(before @ system.C.mT)
    outputs.append((z @ system.C.mT).unsqueeze(1))
    return torch.cat(outputs, 1) + u @ system.D.mT, z


def _run_time_block(
    system: TensorSystem, lengths: Tensor, Bu: Tensor, z: Tensor, linear: bool
) -> tuple[Tensor, Tensor]:
    """Return the states before each step of a block of time and after the last step, from B u at all of its samples."""
    steps = variable_steps(system, lengths)
    drive = steps.first.times(Bu[:, :-1])
    if linear:
        drive = drive + steps.second.times(Bu[:, 1:] - Bu[:, :-1])
    layout = system.layout
    n_scalars = 2 * layout.n_pairs + layout.n_reals
    scalars = _scan_scalars(steps.decay, drive[..., :n_scalars], z[:, :n_scalars])
    blocks = [
        _scan_blocks(P, d, x).flatten(-2)
        for P, d, x in zip(steps.decay.blocks, layout.split(drive)[3], layout.split(z)[3], strict=True)
    ]
    after = torch.cat([scalars, *blocks], -1)
    return torch.cat([z.unsqueeze(1), after[:, :-1]], 1), after[:, -1]


def variable_steps(system: TensorSystem, lengths: Tensor) -> VariableSteps:
    """Compute the steps of lengths `(B or 1, K)`."""
    h = lengths.unsqueeze(-1)
    x, y = system.scalar_rates * h, system.scalar_frequencies * h
    n_pairs = system.frequencies.shape[-1]
    first, second = pair_phi(x, y)
    h_of_blocks = h[..., None, None]
    phi_of_blocks = (matrix_phi(F * h_of_blocks) for F in system.blocks)
    blocks = [BlockStep(P, h_of_blocks * first, h_of_blocks * second) for P, first, second in phi_of_blocks]
    magnitude = torch.exp(x)

    def propagator(re: Tensor, im: Tensor, matrices: list[Tensor]) -> Propagator:
        return Propagator(re[..., :n_pairs], im[..., :n_pairs], re[..., n_pairs:], tuple(matrices))

    return VariableSteps(
        propagator(magnitude * torch.cos(y), magnitude * torch.sin(y), [block.P for block in blocks]),
        propagator(h * first.re, h * first.im, [block.first for block in blocks]),
        propagator(h * second.re, h * second.im, [block.second for block in blocks]),
    )


def _scan_scalars(decay: Propagator, drive: Tensor, start: Tensor) -> Tensor:
    """Return the states of pairs and reals after each step by a scan: each pass joins segments of twice the length."""
    total = torch.cat([drive[:, :1] + _select_steps(decay, slice(0, 1)).times(start.unsqueeze(1)), drive[:, 1:]], 1)
    shift = 1
    while shift < drive.shape[1]:
        later = _select_steps(decay, slice(shift, None))
        total = torch.cat([total[:, :shift], total[:, shift:] + later.times(total[:, :-shift])], 1)
        # P over the segment that ends at each step: that of its later half times that of its earlier half.
        product = later.compose(_select_steps(decay, slice(None, -shift)))
        re, im, reals = (torch.cat([P[:, :shift], Q], 1) for P, Q in zip(decay[:3], product[:3], strict=True))
        decay = Propagator(re, im, reals, ())
        shift *= 2
    return total


def _select_steps(decay: Propagator, steps: slice) -> Propagator:
    """Return the propagators of pairs and reals for some of the steps."""
    return Propagator(decay.re[:, steps], decay.im[:, steps], decay.reals[:, steps], ())


def _scan_blocks(P: Tensor, drive: Tensor, start: Tensor) -> Tensor:
    """Return the states `(B, K, count, k)` of coupled blocks after each step, one by one."""
    states, state = [], start
    for step in range(drive.shape[1]):
        state = (P[:, step] @ state.unsqueeze(-1)).squeeze(-1) + drive[:, step]
        states.append(state)
    return torch.stack(states, 1)
