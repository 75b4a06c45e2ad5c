"""Layers on a GPU by every way through time, beside their peers: `python -m benchmarks.gpu`.

Milliseconds of a forward pass and of a forward and backward pass, medians.
"""

import argparse
import statistics
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from benchmarks.learning.__main__ import both, error_of, forward, timed
from benchmarks.learning.jax_peer import JaxTime, time_of_jax
from benchmarks.learning.peers import PEERS, DiagonalLayer
from benchmarks.learning.shapes import Shape, gpu_shapes
from ltinet.torch.linear_network import LinearNetwork
from ltinet.torch.planner import Plan, ProblemSizes, select_plan

_PLANS = [Plan("convolution", 64), Plan("scan", 1), *(Plan("time blocks", width) for width in (32, 64, 128, 256))]
_WARM = 4  # runs that are not counted: kernels are compiled, and on a GPU recorded in the third
_CHECKED = 500  # samples that are compared with the truth
_FEW_STEPS = 32  # of single steps, from which the whole record is scaled
_LONG = 100_000  # steps of a record that JAX is not timed with: its states do not fit
_SLOW = 0.1  # seconds of a run from which its second time counts


def main() -> None:
    """Print a block for each shape and precision, then JAX's times beside ours."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--no-jax", action="store_true")
    parser.add_argument("--shapes", type=int, nargs="*", default=[0, 1, 2, 3, 4])
    given = parser.parse_args()
    if not torch.cuda.is_available():
        print("there is no GPU here that PyTorch can use; python -m benchmarks.learning runs on a CPU")
        return
    torch.backends.cuda.matmul.allow_tf32 = False  # the same on both sides
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    shapes = [shape for place, shape in enumerate(gpu_shapes()) if place in given.shapes]
    ours = {}
    for shape in shapes:
        for dtype in (torch.float32, torch.float64):
            ours[shape.name, dtype] = times_of(shape, dtype, given.rounds)
            torch.cuda.empty_cache()
    if given.no_jax:
        return
    for shape in (own for own in shapes if own.steps < _LONG):
        for dtype in (torch.float32, torch.float64):
            print_jax(shape, dtype, ours[shape.name, dtype], given.rounds)


def print_jax(shape: Shape, dtype: torch.dtype, ours: float, rounds: int) -> None:
    """JAX's time, and what it is over ours."""
    found = time_of_jax(shape, double=dtype == torch.float64, rounds=max(3, rounds // 4))
    text = found
    if isinstance(found, JaxTime):
        text = f"{found.milliseconds:9.2f} ms run at batch {found.batch}, over ltinet {found.milliseconds / ours:6.2f}"
    print(f"JAX associative_scan, {shape.name}, {dtype}: {text}", flush=True)


def times_of(shape: Shape, dtype: torch.dtype, rounds: int) -> float:
    """Print a block; return the time of what the cost model chooses."""
    rng = np.random.default_rng(0)
    u = rng.standard_normal((shape.batch, shape.steps, shape.net.n_inputs))
    samples = torch.tensor(u, dtype=dtype, device="cuda")
    truth = shape.net.simulate(u[0, :_CHECKED], shape.dt * np.arange(_CHECKED)).y
    model = shape.net.to_torch(shape.dt).to("cuda")
    batch, steps, m = samples.shape
    chosen = select_plan(
        ProblemSizes(
            batch, steps, model.n_states, m, model.n_outputs, on_gpu=True, bytes_per_number=samples.element_size()
        )
    )
    print(f"{shape.name}, {dtype}: the model chooses {chosen}", flush=True)
    own = measured("ltinet as it is", model, samples, truth, rounds)
    for plan in _PLANS:
        forced = shape.net.to_torch(shape.dt).to("cuda")
        measured(f"{plan.algorithm} {plan.width}", Forced(forced, plan), samples, truth, rounds)
        if forced.cuda_graphs.failure:
            print(f"    not captured: {forced.cuda_graphs.failure}")
    few = samples[:, :_FEW_STEPS]
    stepped = Forced(shape.net.to_torch(shape.dt).to("cuda"), Plan("steps", 1))
    scaled = median_of(partial(both, stepped, few), 3) * shape.steps / _FEW_STEPS
    print(f"  {'steps, scaled':<20}           / {scaled:9.2f} ms")
    for name, way in PEERS.items():
        measured(name, DiagonalLayer(shape.net, shape.dt, way, dtype).to("cuda"), samples, truth, rounds)
    return own


class Forced(torch.nn.Module):  # type: ignore[misc]  # PyTorch's types are not looked at
    """A model that runs by one plan."""

    def __init__(self, model: LinearNetwork[object], plan: Plan) -> None:
        super().__init__()
        self.model, self.plan = model, plan

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        """Outputs."""
        y: torch.Tensor = self.model(u, plan=self.plan)
        return y


def measured(name: str, model: torch.nn.Module, samples: torch.Tensor, truth: np.ndarray, rounds: int) -> float:
    """Print and return the milliseconds of both passes; infinite where memory does not suffice."""
    try:
        off = error_of(model, samples[:1, :_CHECKED], truth)
        one = median_of(partial(forward, model, samples), rounds)
        torch.cuda.reset_peak_memory_stats()
        two = median_of(partial(both, model, samples), rounds)
    except Exception as error:  # a way that fails must not hide the others
        print(f"  {name:<20}{type(error).__name__}: {str(error)[:300]}", flush=True)
        torch.cuda.empty_cache()
        return float("inf")
    memory = torch.cuda.max_memory_allocated() / 2**30
    print(f"  {name:<20}{one:9.2f} / {two:9.2f} ms, {memory:5.1f} GiB, error {off:.0e}", flush=True)
    return two


def median_of(run: Callable[[], None], rounds: int) -> float:
    """Milliseconds; what is slow is run less often."""
    first = [timed(run, "cuda") for _ in range(2)]
    if first[1] > _SLOW:
        return 1e3 * first[1]
    for _ in range(_WARM):
        run()
    return 1e3 * statistics.median(timed(run, "cuda") for _ in range(rounds))


if __name__ == "__main__":
    main()
