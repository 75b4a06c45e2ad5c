"""Two ways that go through states: all of them by a scan, for layers with many inputs and outputs, or one by one."""

from typing import NamedTuple

import torch
from torch import Tensor

from ltinet.learn.decay import Decay
from ltinet.learn.one_step import OneStep
from ltinet.learn.state_scan import lone, scan_states


class ScanKernels(NamedTuple):
    """What a step does, its products in the type of the input and transposed."""

    Gamma: Tensor
    C: Tensor
    direct: Tensor
    decay: Decay
    """As scans take it."""
    at_rest: Tensor
    """−G₁ᵀ: from the first sample to the state that awaits it at rest."""


def scan_kernels(step: OneStep, dtype: torch.dtype) -> ScanKernels:
    """The matrices of a step, rounded once."""
    Gamma, C, direct = (own.to(dtype).mT for own in (step.Gamma, step.system.C, step.direct))
    return ScanKernels(Gamma, C, direct, lone(step.decay), -step.G1.mT)


def run_scan(kernels: ScanKernels, u: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs `(B, T, p)` and the state after the last step, by all states `(B, T, n)`."""
    states, end = scan_states(kernels.decay, u @ kernels.Gamma, start)
    y = torch.addmm(u.flatten(0, 1) @ kernels.direct, states.flatten(0, 1), kernels.C)
    return y.view(*u.shape[:2], kernels.C.shape[1]), end


def run_steps(step: OneStep, u: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """The same, one step at a time."""
    state, outputs = start, []
    for k in range(u.shape[1]):
        y, state = take_step(step, u[:, k], state)
        outputs.append(y)
    return torch.stack(outputs, 1), state


def take_step(step: OneStep, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """The output `(B, p)` at a sample `(B, m)` from w there, and w at the next, which is float64 as the step is."""
    sample = u.to(state.dtype)
    y = state @ step.system.C.mT + sample @ step.direct.mT
    return y.to(u.dtype), step.decay.times(state) + sample @ step.Gamma.mT
