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
    plans = [Plan("scan", 1), Plan("steps", 1)]
    plans += [Plan("chunks", width) for width in _WIDTHS if width < 2 * sizes.steps]
    if sizes.growth <= _MOST_GROWTH:
        plans.append(Plan("convolution", _best_width(sizes)))
    return min(plans, key=lambda plan: cost(plan, sizes))


def cost(plan: Plan, sizes: Sizes) -> float:
    """The time of a forward and backward pass in nanoseconds: fitted to one core, within a third of what was measured.

    What other devices take differs by factors, but less so what one way takes beside another.
    """
    samples, n, m, p = sizes.batch * sizes.steps, sizes.n_states, sizes.n_inputs, sizes.n_outputs
    if plan.way == "convolution":
        per_lag = 200.0 + 0.6 * n  # its transform, and C Pᵏ Γ
        return 11e6 + samples * (45.0 * (m + p) + 2.0 * m * p) + sizes.steps * m * p * per_lag
    products = 0.6 * n * (m + p)  # into states and out of them
    if plan.way == "scan":
        return 13e6 + samples * (products + 80.0 * n)
    if plan.way == "steps":
        return sizes.steps * 2e5 + samples * (products + 10.0 * n)
    width = plan.width
    kernels = 40.0 * width * n * (m + p) + 15.0 * width * width * m * p
    return 13e6 + samples * (0.4 * width * m * p + products + 120.0 * n / width) + kernels


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
