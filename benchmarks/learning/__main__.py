"""Times of layers beside their peers, run in turns: `python -m benchmarks.learning`, with `--device cuda` on a GPU.

Ratios are those of two runs one after the other, and the median of them counts; a peer whose outputs are further than
1e-6 of their peak from the truth (1e-3 in single precision) does not count.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.learning.peers import DiagonalLayer, peers_for
from benchmarks.learning.shapes import Shape, cpu_shapes, gpu_shapes

_GOOD = {torch.float64: 1e-6, torch.float32: 1e-3}
_CHECKED = 2000  # samples that are compared with the truth


def main() -> None:
    """Print a line for each shape and precision."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning", description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--precision", choices=["double", "single", "both"], default="double")
    given = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False  # the same on both sides
    if given.device == "cpu":
        torch.set_num_threads(1)
    wanted = {"double": [torch.float64], "single": [torch.float32], "both": [torch.float32, torch.float64]}
    for shape in cpu_shapes() if given.device == "cpu" else gpu_shapes():
        for dtype in wanted[given.precision]:
            compare(shape, given.device, dtype, given.rounds)


def compare(shape: Shape, device: str, dtype: torch.dtype, rounds: int) -> None:
    """Time one shape."""
    rng = np.random.default_rng(0)
    u = rng.standard_normal((shape.batch, shape.steps, shape.net.n_inputs))
    samples = torch.tensor(u, dtype=dtype, device=device)
    models: dict[str, nn.Module] = {"ltinet": shape.net.to_torch(shape.dt).to(device)}
    peers = peers_for(shape.net.n_inputs, shape.net.n_outputs, shape.steps)
    models |= {name: DiagonalLayer(shape.net, shape.dt, way, dtype).to(device) for name, way in peers.items()}
    truth = shape.net.simulate(u[0, :_CHECKED], shape.dt * np.arange(min(_CHECKED, shape.steps))).y
    errors = {name: error_of(model, samples[:1, :_CHECKED], truth) for name, model in models.items()}
    print(f"{shape.name}, {dtype}, {device}")
    for kind, run in (("forward", forward), ("forward and backward", both)):
        times = in_turns(run, models, samples, device, rounds)
        for name, own in times.items():
            ratio = statistics.median(a / b for a, b in zip(times["ltinet"], own, strict=True))
            counts = "" if errors[name] <= _GOOD[dtype] else ", does not count"
            print(
                f"  {kind:<21}{name:<18}{statistics.median(own) * 1e3:9.2f} ms, ltinet over it {ratio:5.2f}, "
                f"error {errors[name]:.0e}{counts}",
                flush=True,
            )


def in_turns(
    run: Callable[[nn.Module, Tensor], None], models: dict[str, nn.Module], samples: Tensor, device: str, rounds: int
) -> dict[str, list[float]]:
    """Seconds of each model in each round; a round before all is not counted."""
    times: dict[str, list[float]] = {name: [] for name in models}
    for number in range(rounds + 1):
        for name, model in models.items():
            taken = timed(partial(run, model, samples), device)
            times[name] += [taken] if number else []
    return times


def error_of(model: nn.Module, samples: Tensor, truth: np.ndarray) -> float:
    """The largest difference over the peak."""
    with torch.no_grad():
        y = model(samples)[0].double().cpu().numpy()
    return float(np.nanmax(np.abs(y - truth)) / np.abs(truth).max()) if np.isfinite(y).all() else float("inf")


def forward(model: nn.Module, samples: Tensor) -> None:
    """Outputs alone."""
    with torch.no_grad():
        model(samples)


def both(model: nn.Module, samples: Tensor) -> None:
    """Outputs and the gradients of all parameters."""
    model.zero_grad()
    model(samples).square().mean().backward()


def timed(run: Callable[[], None], device: str) -> float:
    """Seconds: of the processor on a CPU, of the clock where others compute."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    start = clock()
    run()
    if device != "cpu":
        torch.cuda.synchronize()
    return clock() - start


if __name__ == "__main__":
    main()
