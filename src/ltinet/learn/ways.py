"""Which algorithm runs a record: the one that a cost model, fitted to measurements, says is fastest."""

import math
from functools import lru_cache
from typing import TypeAlias

import torch
from torch import Tensor

from ltinet.learn.chunks import ChunkKernels, chunk_kernels, run_chunks, state_after
from ltinet.learn.convolution import ResponseKernels, response_kernels, run_convolution, run_convolution_from
from ltinet.learn.costs import WAYS, Plan, Sizes, Way, cost
from ltinet.learn.one_step import OneStep
from ltinet.learn.single_steps import ScanKernels, run_scan, run_steps, scan_kernels

__all__ = ["WAYS", "Kernels", "Plan", "Sizes", "Way", "kernels_for", "plan_for", "run", "run_with"]

Kernels: TypeAlias = ChunkKernels | ResponseKernels | ScanKernels
"""What a way needs of a network before it sees a record."""
_MOST_GROWTH = 1.0  # e: what states may grow by in a record that is run by a transform
_WIDTHS = (16, 32, 64, 128, 256, 512)


@lru_cache(maxsize=256)
def plan_for(sizes: Sizes) -> Plan:
    """The plan with the smallest estimate; kept, as records of one size come again and again."""
    plans = [Plan("scan", 1), Plan("steps", 1)]
    plans += [Plan("chunks", width) for width in _WIDTHS if width < 2 * sizes.steps]
    if sizes.growth <= _MOST_GROWTH:
        plans.append(Plan("convolution", _best_width(sizes)))
    return min(plans, key=lambda plan: cost(plan, sizes))


def run(step: OneStep, u: Tensor, start: Tensor | None, plan: Plan, *, with_end: bool) -> tuple[Tensor, Tensor | None]:
    """Outputs, and the state after the last step where it is wanted, by a plan; no start is a start from rest."""
    if plan.way != "steps" and (plan.way != "convolution" or (start is None and not with_end)):
        return run_with(kernels_for(step, plan, u.shape[1], u.dtype), u, start)
    begun = _at_rest(-step.G1.mT, u) if start is None else start
    if plan.way == "steps":
        return run_steps(step, u, begun)
    if start is None:
        y = run_convolution(response_kernels(step, u.shape[1], u.dtype), u)
    else:
        y = run_convolution_from(step, u, start)
    return y, state_after(step, u, begun, width=plan.width) if with_end else None


def kernels_for(step: OneStep, plan: Plan, steps: int, dtype: torch.dtype) -> Kernels:
    """What a plan other than single steps needs for records of a length and a type."""
    if plan.way == "convolution":
        return response_kernels(step, steps, dtype)
    if plan.way == "scan":
        return scan_kernels(step, dtype)
    return chunk_kernels(step, plan.width, steps, dtype)


def run_with(kernels: Kernels, u: Tensor, start: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Outputs, and the state after the last step where the way has it; responses are for a start from rest."""
    if isinstance(kernels, ResponseKernels):
        return run_convolution(kernels, u), None
    begun = _at_rest(kernels.at_rest, u) if start is None else start
    if isinstance(kernels, ScanKernels):
        return run_scan(kernels, u, begun)
    return run_chunks(kernels, u, begun)


def _at_rest(weights: Tensor, u: Tensor) -> Tensor:
    """The state w = z − G₁ u that awaits the first sample, for z = 0."""
    return u[:, 0].to(weights.dtype) @ weights


def _best_width(sizes: Sizes) -> int:
    """Chunks for the last state alone: as many samples in one as there are chunks."""
    return max(16, min(512, math.isqrt(sizes.steps)))
