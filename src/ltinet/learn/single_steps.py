"""Two ways that go through states: all of them by a scan, for layers with many inputs and outputs, or one by one."""

import torch
from torch import Tensor

from ltinet.learn.one_step import OneStep
from ltinet.learn.state_scan import scan_states


def run_scan(step: OneStep, u: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs `(B, T, p)` and the state after the last step, by all states `(B, T, n)`."""
    C, Gamma, direct = (own.to(u.dtype).mT for own in (step.system.C, step.Gamma, step.direct))
    states, end = scan_states(step.decay, u @ Gamma, start)
    return states @ C + u @ direct, end


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
