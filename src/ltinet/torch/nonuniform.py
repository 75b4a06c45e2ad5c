"""Simulation on nonuniform sample times in chunks of steps.

Equal to `net.simulate(u, t)` at such times. Each chunk of K steps has its own propagators e^{A h_k} `(K, n)` and is
recomputed in the backward pass, so that memory does not grow with all steps times all states.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ltinet.torch.exponentials import matrix_phi, pair_phi
from ltinet.torch.propagators import BlockStep, Propagator, TensorSystem

# MERGED ltinet.torch.nonuniform
# Samples at any ascending times, in chunks of steps; equal to what `net.simulate(u, t)` does at such times.
#
# A chunk has factors for its own steps only, `(K, n)`; for derivatives it is worked through again on the way back, so
# that nothing of the size of all steps times all states is ever kept.

_CHUNK_STEPS = 128


class VariableSteps(NamedTuple):
    """Steps of different lengths `(…, K)`: P of each, and h φ₁ and h φ₂ as what B u is multiplied by."""

    decay: Propagator
    first: Propagator
    second: Propagator


def run_nonuniform(system: TensorSystem, u: Tensor, times: Tensor, z: Tensor, *, linear: bool) -> tuple[Tensor, Tensor]:
    """Outputs `(B, T, p)` and the last state from samples `(B, T, m)`, times `(B or 1, T)` and a start `(B, n)`.

    All in the type of the system, float64: differences of large times are small.
    """
    entering = u @ system.B.mT
    lengths = times.diff(dim=-1)
    states = []
    n_steps = lengths.shape[-1]
    keeps = n_steps > _CHUNK_STEPS and torch.is_grad_enabled() and not torch._C._are_functorch_transforms_active()
    for start in range(0, n_steps, _CHUNK_STEPS):
        stop = min(start + _CHUNK_STEPS, n_steps)
        given = (system, lengths[:, start:stop], entering[:, start : stop + 1], z)
        own, z = checkpoint(_chunk, *given, linear, use_reentrant=False) if keeps else _chunk(*given, linear)
        states.append(own @ system.C.mT)
    states.append((z @ system.C.mT).unsqueeze(1))
    return torch.cat(states, 1) + u @ system.D.mT, z


def _chunk(system: TensorSystem, lengths: Tensor, entering: Tensor, z: Tensor, linear: bool) -> tuple[Tensor, Tensor]:
    """States before each step of a chunk, and after the last; `entering` is B u at all samples of it."""
    steps = propagators_of_steps(system, lengths)
    now = entering[:, :-1]
    drive = steps.first.times(now)
    if linear:
        drive = drive + steps.second.times(entering[:, 1:] - now)
    layout = system.layout
    scalars = 2 * layout.n_pairs + layout.n_reals
    alone = _scan_scalars(steps.decay, drive[..., :scalars], z[:, :scalars])
    coupled = [
        _scan_blocks(P, d, own)
        for P, d, own in zip(steps.decay.blocks, layout.split(drive)[3], layout.split(z)[3], strict=True)
    ]
    after = torch.cat([alone, *(own.flatten(-2) for own in coupled)], -1)
    return torch.cat([z.unsqueeze(1), after[:, :-1]], 1), after[:, -1]


def propagators_of_steps(system: TensorSystem, lengths: Tensor) -> VariableSteps:
    """The steps of lengths `(B or 1, K)`."""
    h = lengths.unsqueeze(-1)
    x, y = system.scalar_rates * h, system.scalar_frequencies * h
    n_pairs = system.frequencies.shape[-1]
    first, second = pair_phi(x, y)
    blocks = [
        BlockStep(P, h[..., None, None] * first, h[..., None, None] * second)
        for P, first, second in (matrix_phi(F * h[..., None, None]) for F in system.blocks)
    ]
    size = torch.exp(x)
    re, im = size * torch.cos(y), size * torch.sin(y)

    def parts(re: Tensor, im: Tensor, place: int) -> Propagator:
        return Propagator(re[..., :n_pairs], im[..., :n_pairs], re[..., n_pairs:], tuple(own[place] for own in blocks))

    return VariableSteps(parts(re, im, 0), parts(h * first.re, h * first.im, 1), parts(h * second.re, h * second.im, 2))


def _scan_scalars(decay: Propagator, drive: Tensor, start: Tensor) -> Tensor:
    """The states after each step of pairs and reals: each pass joins stretches of twice the length."""
    only = Propagator(decay.re, decay.im, decay.reals, ())
    total = torch.cat([drive[:, :1] + _select_steps(only, slice(0, 1)).times(start.unsqueeze(1)), drive[:, 1:]], 1)
    shift = 1
    while shift < drive.shape[1]:
        late = _select_steps(only, slice(shift, None))
        total = torch.cat([total[:, :shift], total[:, shift:] + late.times(total[:, :-shift])], 1)
        only = _compose_stretches(only, late, shift)
        shift *= 2
    return total


def _select_steps(decay: Propagator, steps: slice) -> Propagator:
    return Propagator(decay.re[:, steps], decay.im[:, steps], decay.reals[:, steps], ())


def _compose_stretches(decay: Propagator, late: Propagator, shift: int) -> Propagator:
    """P over a stretch of steps that ends at each: that of the later half times that of the earlier one."""
    re, im, reals = decay.re[:, :-shift], decay.im[:, :-shift], decay.reals[:, :-shift]
    return Propagator(
        torch.cat([decay.re[:, :shift], late.re * re - late.im * im], 1),
        torch.cat([decay.im[:, :shift], late.re * im + late.im * re], 1),
        torch.cat([decay.reals[:, :shift], late.reals * reals], 1),
        (),
    )


def _scan_blocks(P: Tensor, drive: Tensor, start: Tensor) -> Tensor:
    """The states `(B, K, count, k)` after each step of coupled blocks, one by one."""
    states, now = [], start
    for step in range(drive.shape[1]):
        now = (P[:, step] @ now.unsqueeze(-1)).squeeze(-1) + drive[:, step]
        states.append(now)
    return torch.stack(states, 1)
