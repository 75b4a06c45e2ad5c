"""Selection of the algorithm that runs a record, by a cost model, and the start of a run.

The cost of a forward and backward pass of each algorithm is estimated from the sizes of the problem. The coefficients
are empirical: they were fitted to measurements on one CPU core (within a third of the measured times) and on one NVIDIA
H200, where calls of kernels, bytes moved and multiplications are counted. The fastest plan is cached by sizes.

A run begins at rest, in a given state z, or in the state w = z − G₁ u in which another run ended. Where a state grows
much in one step, the first sample is computed apart, because w = z − G₁ u would lose the digits of z.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from ltinet.torch.propagators import OneStep
from ltinet.torch.uniform import (
    ChunkKernels,
    ResponseKernels,
    ScanKernels,
    chunk_kernels,
    compute_end_state,
    response_kernels,
    run_chunks,
    run_convolution,
    run_convolution_from_state,
    run_scan,
    run_steps,
    scan_kernels,
)

# MERGED ltinet.torch.planner
# What a run costs by each way through time: estimates fitted to measurements, for a processor and for a GPU.

AlgorithmName = Literal["chunks", "convolution", "scan", "steps"]
ALGORITHMS: tuple[AlgorithmName, ...] = ("chunks", "convolution", "scan", "steps")


@dataclass(frozen=True)
class Plan:
    """A way through a record, and the width of its chunks."""

    way: AlgorithmName
    width: int


@dataclass(frozen=True)
class ProblemSizes:
    """What the cost of a run hangs on."""

    batch: int
    steps: int
    n_states: int
    n_inputs: int
    n_outputs: int
    growth: float = 0.0
    """The logarithm of how much states grow over the record: a transform has errors of the size of the last outputs."""
    on_gpu: bool = False
    number_size: int = 8
    """Bytes of a number of the record."""


def estimate_cost(plan: Plan, sizes: ProblemSizes) -> float:
    """The time of a forward and backward pass in nanoseconds."""
    return estimate_gpu_cost(plan, sizes) if sizes.on_gpu else estimate_cpu_cost(plan, sizes)


def estimate_cpu_cost(plan: Plan, sizes: ProblemSizes) -> float:
    """Fitted to one core, within a third of what was measured."""
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


_NS_PER_LAUNCH = 1e4  # ns from one call of a kernel to the next, as PyTorch makes them
_NS_PER_BYTE = 4e-4  # ns to move a byte to or from memory
_NS_PER_MULTIPLY_ADD = 5e-5  # ns for a multiplication and an addition inside products of matrices


def estimate_gpu_cost(plan: Plan, sizes: ProblemSizes) -> float:
    """Of one H200: calls, bytes moved and products, as many as each way has in its two passes."""
    samples, n, m, p = sizes.batch * sizes.steps, sizes.n_states, sizes.n_inputs, sizes.n_outputs
    size = sizes.number_size
    if plan.way == "convolution":  # numbers of the record are twice as many when padded, lags are float64 at first
        moved = 40.0 * samples * (m + p) * size + sizes.steps * m * p * (160 + 20 * size)
        return (
            100 * _NS_PER_LAUNCH
            + _NS_PER_BYTE * moved
            + _NS_PER_MULTIPLY_ADD * (12 * samples * m * p + 6 * sizes.steps * m * p * n)
        )
    if plan.way == "steps":
        return sizes.steps * 60 * _NS_PER_LAUNCH
    products = 3 * samples * n * (m + p)
    if plan.way == "scan":  # drives and states, their gradients, and the states once more for the gradient of P
        return (
            120 * _NS_PER_LAUNCH
            + _NS_PER_BYTE * samples * (9 * n + 6 * (m + p)) * size
            + _NS_PER_MULTIPLY_ADD * products
        )
    width = plan.width
    moved = samples * (72 * n / width + 10 * (m + p) * size) + 24 * width * (n * (m + p) + width * m * p)
    return 140 * _NS_PER_LAUNCH + _NS_PER_BYTE * moved + _NS_PER_MULTIPLY_ADD * (products + 3 * samples * width * m * p)


# MERGED ltinet.torch.planner
# Which algorithm runs a record: the one that a cost model, fitted to measurements, says is fastest.


Kernels: TypeAlias = ChunkKernels | ResponseKernels | ScanKernels
"""What a way needs of a network before it sees a record."""
_MAX_CONVOLUTION_GROWTH = 1.0  # e: what states may grow by in a record that is run by a transform
_CHUNK_WIDTHS = (16, 32, 64, 128, 256, 512)


@lru_cache(maxsize=256)
def select_plan(sizes: ProblemSizes) -> Plan:
    """The plan with the smallest estimate; kept, as records of one size come again and again."""
    plans = [Plan("scan", 1), Plan("steps", 1)]
    plans += [Plan("chunks", width) for width in _CHUNK_WIDTHS if width < 2 * sizes.steps]
    if sizes.growth <= _MAX_CONVOLUTION_GROWTH:
        plans.append(Plan("convolution", _end_state_width(sizes)))
    return min(plans, key=lambda plan: estimate_cost(plan, sizes))


def run_plan(
    step: OneStep, u: Tensor, start: Tensor | None, plan: Plan, *, with_end: bool
) -> tuple[Tensor, Tensor | None]:
    """Outputs, and the state after the last step where it is wanted, by a plan; no start is a start from rest."""
    if plan.way != "steps" and (plan.way != "convolution" or (start is None and not with_end)):
        return run_kernels(build_kernels(step, plan, u.shape[1], u.dtype), u, start)
    begun = _state_at_rest(-step.G1.mT, u) if start is None else start
    if plan.way == "steps":
        return run_steps(step, u, begun)
    if start is None:
        y = run_convolution(response_kernels(step, u.shape[1], u.dtype), u)
    else:
        y = run_convolution_from_state(step, u, start)
    return y, compute_end_state(step, u, begun, width=plan.width) if with_end else None


def build_kernels(step: OneStep, plan: Plan, steps: int, dtype: torch.dtype) -> Kernels:
    """What a plan other than single steps needs for records of a length and a type."""
    if plan.way == "convolution":
        return response_kernels(step, steps, dtype)
    if plan.way == "scan":
        return scan_kernels(step, dtype)
    return chunk_kernels(step, plan.width, steps, dtype)


def run_kernels(kernels: Kernels, u: Tensor, start: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Outputs, and the state after the last step where the way has it; responses are for a start from rest."""
    if isinstance(kernels, ResponseKernels):
        return run_convolution(kernels, u), None
    begun = _state_at_rest(kernels.at_rest, u) if start is None else start
    if isinstance(kernels, ScanKernels):
        return run_scan(kernels, u, begun)
    return run_chunks(kernels, u, begun)


def _state_at_rest(weights: Tensor, u: Tensor) -> Tensor:
    """The state w = z − G₁ u that awaits the first sample, for z = 0."""
    return u[:, 0].to(weights.dtype) @ weights


def _end_state_width(sizes: ProblemSizes) -> int:
    """Chunks for the last state alone: as many samples in one as there are chunks."""
    return max(16, min(512, math.isqrt(sizes.steps)))


# MERGED ltinet.torch.planner
# How a run begins: at rest, in a state of the user's, or where another run ended.

_MAX_GROWTH_PER_STEP = 0.5  # λh up to which G₁ is of the size of h: w = z − G₁ u loses nothing (`solve.steps.one_step`)


class InitialState(NamedTuple):
    """The state that awaits the first sample, or the state z at it; at rest both are None."""

    awaiting: Tensor | None = None
    z: Tensor | None = None


def grows_fast(growth: float) -> bool:
    """Whether a state grows so much in a step that the first sample must stand apart."""
    return growth > _MAX_GROWTH_PER_STEP


def run_first_sample(step: OneStep, u: Tensor, z: Tensor | None) -> tuple[Tensor, Tensor]:
    """The output at the first sample `(B, m)` and the state after it: y = C z + D u, w⁺ = P z + G₀ u."""
    sample = u.to(step.G0.dtype)
    y, after = sample @ step.system.D.mT, sample @ step.G0.mT
    if z is not None:
        y, after = y + z @ step.system.C.mT, after + step.decay.times(z)
    return y.to(u.dtype), after


def run_from_initial_state(
    step: OneStep, u: Tensor, start: InitialState, plan: Plan, *, growth: float, with_end: bool
) -> tuple[Tensor, Tensor | None]:
    """Outputs and last state; where a state grows fast, the first sample stands apart: w = z − G₁ u would lose z."""
    if start.awaiting is None and grows_fast(growth * step.length):
        y, after = run_first_sample(step, u[:, 0], start.z)
        if u.shape[1] == 1:
            return y.unsqueeze(1), after
        rest, end = run_plan(step, u[:, 1:], after, plan, with_end=with_end)
        return torch.cat([y.unsqueeze(1), rest], 1), end
    awaiting = start.awaiting
    if start.z is not None:
        awaiting = start.z - u[:, 0].to(step.G1.dtype) @ step.G1.mT
    return run_plan(step, u, awaiting, plan, with_end=with_end)
