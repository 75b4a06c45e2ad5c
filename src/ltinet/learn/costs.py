"""What a run costs by each way through time: estimates fitted to measurements, for a processor and for a GPU."""

from dataclasses import dataclass
from typing import Literal

Way = Literal["chunks", "convolution", "scan", "steps"]
WAYS: tuple[Way, ...] = ("chunks", "convolution", "scan", "steps")


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
    on_gpu: bool = False
    number_size: int = 8
    """Bytes of a number of the record."""


def cost(plan: Plan, sizes: Sizes) -> float:
    """The time of a forward and backward pass in nanoseconds."""
    return cost_on_gpu(plan, sizes) if sizes.on_gpu else cost_on_processor(plan, sizes)


def cost_on_processor(plan: Plan, sizes: Sizes) -> float:
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


_CALL = 1e4  # ns from one call of a kernel to the next, as PyTorch makes them
_BYTE = 4e-4  # ns to move a byte to or from memory
_PRODUCT = 5e-5  # ns for a multiplication and an addition inside products of matrices


def cost_on_gpu(plan: Plan, sizes: Sizes) -> float:
    """Of one H200: calls, bytes moved and products, as many as each way has in its two passes."""
    samples, n, m, p = sizes.batch * sizes.steps, sizes.n_states, sizes.n_inputs, sizes.n_outputs
    size = sizes.number_size
    if plan.way == "convolution":  # numbers of the record are twice as many when padded, lags are float64 at first
        moved = 40.0 * samples * (m + p) * size + sizes.steps * m * p * (160 + 20 * size)
        return 100 * _CALL + _BYTE * moved + _PRODUCT * (12 * samples * m * p + 6 * sizes.steps * m * p * n)
    if plan.way == "steps":
        return sizes.steps * 60 * _CALL
    products = 3 * samples * n * (m + p)
    if plan.way == "scan":  # drives and states, their gradients, and the states once more for the gradient of P
        return 120 * _CALL + _BYTE * samples * (9 * n + 6 * (m + p)) * size + _PRODUCT * products
    width = plan.width
    moved = samples * (72 * n / width + 10 * (m + p) * size) + 24 * width * (n * (m + p) + width * m * p)
    return 140 * _CALL + _BYTE * moved + _PRODUCT * (products + 3 * samples * width * m * p)
