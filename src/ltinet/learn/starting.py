"""How a run begins: at rest, in a state of the user's, or where another run ended."""

from typing import NamedTuple

import torch
from torch import Tensor

from ltinet.learn.one_step import OneStep
from ltinet.learn.ways import Plan, run

_FAST_GROWTH = 0.5  # λh up to which G₁ is of the size of h: w = z − G₁ u loses nothing (`solve.steps.one_step`)


class Start(NamedTuple):
    """The state that awaits the first sample, or the state z at it; at rest both are None."""

    awaiting: Tensor | None = None
    z: Tensor | None = None


def is_fast(growth: float) -> bool:
    """Whether a state grows so much in a step that the first sample must stand apart."""
    return growth > _FAST_GROWTH


def first_sample(step: OneStep, u: Tensor, z: Tensor | None) -> tuple[Tensor, Tensor]:
    """The output at the first sample `(B, m)` and the state after it: y = C z + D u, w⁺ = P z + G₀ u."""
    sample = u.to(step.G0.dtype)
    y, after = sample @ step.system.D.mT, sample @ step.G0.mT
    if z is not None:
        y, after = y + z @ step.system.C.mT, after + step.decay.times(z)
    return y.to(u.dtype), after


def run_from(
    step: OneStep, u: Tensor, start: Start, plan: Plan, *, growth: float, with_end: bool
) -> tuple[Tensor, Tensor | None]:
    """Outputs and last state; where a state grows fast, the first sample stands apart: w = z − G₁ u would lose z."""
    if start.awaiting is None and is_fast(growth * step.length):
        y, after = first_sample(step, u[:, 0], start.z)
        if u.shape[1] == 1:
            return y.unsqueeze(1), after
        rest, end = run(step, u[:, 1:], after, plan, with_end=with_end)
        return torch.cat([y.unsqueeze(1), rest], 1), end
    awaiting = start.awaiting
    if start.z is not None:
        awaiting = start.z - u[:, 0].to(step.G1.dtype) @ step.G1.mT
    return run(step, u, awaiting, plan, with_end=with_end)
