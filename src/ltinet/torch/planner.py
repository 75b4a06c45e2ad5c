"""Plans of runs: selection of the algorithm by a cost model, its kernels, and the first sample.

The cost of a forward and backward pass of each algorithm is estimated from the sizes of the problem. The coefficients
are empirical: they were fitted to measurements on one CPU core (within a third of the measured times) and on one NVIDIA
H200, where calls of kernels, bytes moved and multiplications are counted. The fastest plan is cached by sizes.

A scan in single precision rounds all states. Where outputs are small differences of states this costs up to cond(T)
units of rounding, which the first run of a module measures on its own samples; the other algorithms form the responses
in float64.

A run begins at rest, in a given state z, or in the state w = z − G₁ u in which another run ended. Where a state grows
much in one step, the first sample is computed apart, because w = z − G₁ u would lose the digits of z.
"""

import math
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from ltinet.torch.propagators import OneStep
from ltinet.torch.uniform import (
    ResponseKernels,
    ScanKernels,
    TimeBlockKernels,
    compute_end_state,
    response_kernels,
    run_convolution,
    run_convolution_from_state,
    run_scan,
    run_steps,
    run_time_blocks,
    scan_kernels,
    time_block_kernels,
)

AlgorithmName = Literal["convolution", "scan", "steps", "time blocks"]


@dataclass(frozen=True)
class Plan:
    """An algorithm, and the number of samples in its blocks of time."""

    algorithm: AlgorithmName
    width: int


@dataclass(frozen=True)
class ProblemSizes:
    """Quantities on which the cost of a run depends."""

    batch: int
    steps: int
    n_states: int
    n_inputs: int
    n_outputs: int
    growth: float = 0.0
    """Logarithm of the growth of states over the record: an FFT has errors of the size of the largest outputs."""
    on_gpu: bool = False
    bytes_per_number: int = 8

    @classmethod
    def of(cls, u: Tensor, *, n_states: int, n_outputs: int, growth: float) -> "ProblemSizes":
        """Return the sizes of a run on samples `(B, T, m)`, in each of which states grow by a factor e^growth."""
        batch, steps, n_inputs = u.shape
        growth = max(growth, 0.0) * steps
        return cls(batch, steps, n_states, n_inputs, n_outputs, growth, u.is_cuda, u.element_size())


def estimate_cpu_cost(plan: Plan, sizes: ProblemSizes) -> float:
    """Estimate the time on one CPU core; empirical: within a third of the measured times."""
    samples, n, m, p = sizes.batch * sizes.steps, sizes.n_states, sizes.n_inputs, sizes.n_outputs
    if plan.algorithm == "convolution":
        per_lag = 200.0 + 0.6 * n  # FFT of the impulse response, and C Pᵏ Γ
        return 11e6 + samples * (45.0 * (m + p) + 2.0 * m * p) + sizes.steps * m * p * per_lag
    products = 0.6 * n * (m + p)  # u to states and states to y
    if plan.algorithm == "scan":
        return 13e6 + samples * (products + 80.0 * n)
    if plan.algorithm == "steps":
        return sizes.steps * 2e5 + samples * (products + 10.0 * n)
    width = plan.width
    kernels = 40.0 * width * n * (m + p) + 15.0 * width * width * m * p
    return 13e6 + samples * (0.4 * width * m * p + products + 120.0 * n / width) + kernels


# Empirical, measured on an NVIDIA H200 with PyTorch.
_NS_PER_LAUNCH = 1e4  # ns from one kernel call to the next
_NS_PER_BYTE = 4e-4  # ns to read or write a byte of memory
_NS_PER_MULTIPLY_ADD = 5e-5  # ns for a multiplication and an addition in a matrix product


def estimate_gpu_cost(plan: Plan, sizes: ProblemSizes) -> float:
    """Estimate the time on an NVIDIA H200 from kernel calls, bytes moved and multiplications of both passes."""
    samples, n, m, p = sizes.batch * sizes.steps, sizes.n_states, sizes.n_inputs, sizes.n_outputs
    size, width, products = sizes.bytes_per_number, plan.width, 3 * samples * n * (m + p)
    match plan.algorithm:
        case "convolution":  # the record is padded to twice its length; lags are built in float64
            launches, products = 100, 12 * samples * m * p + 6 * sizes.steps * m * p * n
            moved = 40.0 * samples * (m + p) * size + sizes.steps * m * p * (160 + 20 * size)
        case "steps":
            launches, moved, products = 60 * sizes.steps, 0.0, 0
        case "scan":  # drives and states, their gradients, and the states again for the gradient of P
            launches, moved = 120, samples * (9.0 * n + 6 * (m + p)) * size
        case "time blocks":
            launches, products = 140, products + 3 * samples * width * m * p
            moved = samples * (72 * n / width + 10 * (m + p) * size) + 24 * width * (n * (m + p) + width * m * p)
    return launches * _NS_PER_LAUNCH + moved * _NS_PER_BYTE + products * _NS_PER_MULTIPLY_ADD


Kernels: TypeAlias = TimeBlockKernels | ResponseKernels | ScanKernels
"""Arrays of an algorithm that depend on the network only."""
MAX_CONVOLUTION_GROWTH = 1.0  # logarithm of the growth of states: an FFT then loses less than a digit
# Candidates of which the estimated time selects one.
_BLOCK_WIDTHS = (16, 32, 64, 128, 256, 512)


@lru_cache(maxsize=256)
def select_plan(sizes: ProblemSizes) -> Plan:
    """Return the plan with the smallest estimated time."""
    plans = [Plan("scan", 1), Plan("steps", 1)]
    plans += [Plan("time blocks", width) for width in _BLOCK_WIDTHS if width < 2 * sizes.steps]
    if sizes.growth <= MAX_CONVOLUTION_GROWTH:
        # Blocks of time for the end state alone: about as many samples in a block as there are blocks.
        plans.append(Plan("convolution", max(16, min(512, math.isqrt(sizes.steps)))))
    estimate_cost = estimate_gpu_cost if sizes.on_gpu else estimate_cpu_cost
    return min(plans, key=lambda plan: estimate_cost(plan, sizes))


@lru_cache(maxsize=256)
def select_block_width(sizes: ProblemSizes) -> int:
    """Return the number of samples in blocks of time with the smallest estimated time."""
    estimate_cost = estimate_gpu_cost if sizes.on_gpu else estimate_cpu_cost
    widths = [width for width in _BLOCK_WIDTHS if width < 2 * sizes.steps]
    return min(widths, key=lambda width: estimate_cost(Plan("time blocks", width), sizes), default=1)


def run_plan(
    step: OneStep, u: Tensor, start: Tensor | None, plan: Plan, *, with_end: bool
) -> tuple[Tensor, Tensor | None]:
    """Run a record and return the outputs and, if required, the state after the last step; start None is rest."""
    if plan.algorithm != "steps" and (plan.algorithm != "convolution" or (start is None and not with_end)):
        return run_kernels(build_kernels(step, plan, u.shape[1], u.dtype), u, start)
    w = _state_at_rest(-step.G1.mT, u) if start is None else start
    if plan.algorithm == "steps":
        return run_steps(step, u, w)
    if start is None:
        y = run_convolution(response_kernels(step, u.shape[1], u.dtype), u)
    else:
        y = run_convolution_from_state(step, u, start)
    return y, compute_end_state(step, u, w, width=plan.width) if with_end else None


def needs_kernels_only(plan: Plan, initial: "InitialState", *, growth: float, with_end: bool) -> bool:
    """Return True if a run is one of kernels: no single steps, no first sample apart, no states of a convolution."""
    if plan.algorithm == "steps" or initial.z is not None or grows_fast(growth):
        return False
    return plan.algorithm != "convolution" or (initial.w is None and not with_end)


def build_kernels(step: OneStep, plan: Plan, steps: int, dtype: torch.dtype) -> Kernels:
    """Build the kernels of a plan other than single steps for records of a length and a type."""
    if plan.algorithm == "convolution":
        return response_kernels(step, steps, dtype)
    if plan.algorithm == "scan":
        return scan_kernels(step, dtype)
    return time_block_kernels(step, plan.width, steps, dtype)


def run_kernels(kernels: Kernels, u: Tensor, start: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Run a record with kernels and return the outputs and the last state; a convolution starts at rest and has none."""
    if isinstance(kernels, ResponseKernels):
        return run_convolution(kernels, u), None
    w = _state_at_rest(kernels.rest_weights, u) if start is None else start
    if isinstance(kernels, ScanKernels):
        return run_scan(kernels, u, w)
    return run_time_blocks(kernels, u, w)


def _state_at_rest(weights: Tensor, u: Tensor) -> Tensor:
    """Return the state w = z − G₁ u before the first sample, for z = 0."""
    return u[:, 0].to(weights.dtype) @ weights


_MAX_SINGLE_PRECISION_ERROR = 1e-4  # of the largest output, above which a module warns
_CHECKED_SAMPLES = 1024


def warn_of_single_precision(step: OneStep, u: Tensor) -> None:
    """Warn if a scan of the first record in single precision differs much from one in double precision."""
    with torch.no_grad():
        record = u[:1, :_CHECKED_SAMPLES]
        truth, y = (
            run_plan(step, samples, None, Plan("scan", 1), with_end=False)[0] for samples in (record.double(), record)
        )
        error = float((y - truth).abs().max() / truth.abs().max().clamp(min=torch.finfo(truth.dtype).tiny))
    if error > _MAX_SINGLE_PRECISION_ERROR:
        warnings.warn(
            f"single precision costs {error:.0e} of the largest output, because the states of the network are much larger "
            "than its outputs; run it in double precision, model(u.double()), or construct the network with another "
            "max_condition",
            UserWarning,
            stacklevel=4,
        )


# Start of a run

_MAX_GROWTH_PER_STEP = 0.5  # λh up to which G₁ is of the size of h, so that w = z − G₁ u keeps the digits of z


class InitialState(NamedTuple):
    """State w = z − G₁ u before the first sample, as another run returned it, or z at the sample; None for rest."""

    w: Tensor | None = None
    z: Tensor | None = None


def grows_fast(growth: float) -> bool:
    """Return True if states grow so much in a step that the first sample must be computed apart."""
    return growth > _MAX_GROWTH_PER_STEP


def run_first_sample(step: OneStep, u: Tensor, z: Tensor | None) -> tuple[Tensor, Tensor]:
    """Compute the output at the first sample `(B, m)` and the state after it: y = C z + D u, w⁺ = P z + G₀ u."""
    sample = u.to(step.G0.dtype)
    y, after = sample @ step.system.D.mT, sample @ step.G0.mT
    if z is not None:
        y, after = y + z @ step.system.C.mT, after + step.decay.times(z)
    return y.to(u.dtype), after


def run_from_initial_state(
    step: OneStep, u: Tensor, initial: InitialState, plan: Plan, *, growth: float, with_end: bool
) -> tuple[Tensor, Tensor | None]:
    """Run a record and return the outputs and the last state; the first sample apart where states grow fast."""
    if initial.w is None and grows_fast(growth * step.length):
        y, after = run_first_sample(step, u[:, 0], initial.z)
        if u.shape[1] == 1:
            return y.unsqueeze(1), after
        rest, end = run_plan(step, u[:, 1:], after, plan, with_end=with_end)
        return torch.cat([y.unsqueeze(1), rest], 1), end
    w = initial.w if initial.z is None else initial.z - u[:, 0].to(step.G1.dtype) @ step.G1.mT
    return run_plan(step, u, w, plan, with_end=with_end)
