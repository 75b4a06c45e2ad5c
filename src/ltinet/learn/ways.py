"""Which algorithm runs a record: the one that a cost model, fitted to measurements, says is fastest."""

import math
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from ltinet.learn.chunks import run_chunks, state_after
from ltinet.learn.convolution import run_convolution
from ltinet.learn.one_step import OneStep
from ltinet.learn.single_steps import run_scan, run_steps

Way = Literal["chunks", "convolution", "scan", "steps"]
WAYS: tuple[Way, ...] = ("chunks", "convolution", "scan", "steps")
_MOST_GROWTH = 1.0  # e: what states may grow by in a record that is run by a transform
_WIDTHS = (16, 32, 64, 128, 256, 512)


@dataclass(frozen=True)
class Plan:
    """A way through a record, and the width of its chunks."""

    way: Way
    width: int


@dataclass(frozen=True)
class Sizes:
    """What the cost of a run hangs on."""

    batch: int
    steps: int
    n_states: int
    n_inputs: int
    n_outputs: int
    growth: float = 0.0
    """The logarithm of how much states grow over the record: a transform has errors of the size of the last outputs."""


def plan_for(sizes: Sizes) -> Plan:
    """The plan with the smallest estimate."""
    if sizes.steps <= 2:
        return Plan("steps", 1)
    plans = [Plan("chunks", width) for width in _WIDTHS if width < 2 * sizes.steps]
    plans.append(Plan("scan", 1))
    if sizes.growth <= _MOST_GROWTH:
        plans.append(Plan("convolution", _best_width(sizes)))
    return min(plans, key=lambda plan: cost(plan, sizes))


def cost(plan: Plan, sizes: Sizes) -> float:
    """An estimate of the time of a forward and backward pass, in nanoseconds."""
    total = sizes.batch * sizes.steps
    n, m, p = sizes.n_states, sizes.n_inputs, sizes.n_outputs
    if plan.way == "scan":
        return total * (0.3 * n * (m + p) + 12.0 * n) + 4e5 * math.log2(sizes.steps)
    if plan.way == "convolution":
        transforms = 20.0 * math.log2(2 * sizes.steps) * (m + p) + 8.0 * m * p
        kernel = sizes.steps * m * p * (0.3 * n + 40.0 * math.log2(2 * sizes.steps))
        return total * transforms + kernel + 1e6
    width = plan.width
    inside = 0.3 * (width * m * p + n * (m + p)) + 12.0 * n / width
    kernels = width * n * (m + p) * 20.0 + 4.0 * width * width * m * p + width * n * m * p * 0.3
    return total * inside + kernels + 2e6


def run(step: OneStep, u: Tensor, start: Tensor | None, plan: Plan, *, with_end: bool) -> tuple[Tensor, Tensor | None]:
    """Outputs, and the state after the last step where it is wanted, by a plan; no start is a start from rest."""
    begun = -(u[:, 0].to(step.G1.dtype) @ step.G1.mT) if start is None else start
    if plan.way == "convolution":
        y = run_convolution(step, u, start)
        return y, state_after(step, u, begun, width=plan.width) if with_end else None
    if plan.way == "scan":
        return run_scan(step, u, begun)
    if plan.way == "steps":
        return run_steps(step, u, begun)
    return run_chunks(step, u, begun, width=plan.width)


def _best_width(sizes: Sizes) -> int:
    """Chunks for the last state alone: as many samples in one as there are chunks."""
    return max(16, min(512, math.isqrt(sizes.steps)))
