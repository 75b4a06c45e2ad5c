"""Times of layers beside their peers, run in turns: `python -m benchmarks.learning`, with `--device cuda` on a GPU.

`--write benchmarks/learning/RESULTS.md` keeps the table.

Ratios are those of two runs one after the other, and the median of them counts; a peer whose outputs are further than
1e-6 of their peak from the truth (1e-3 in single precision) does not count.
"""

import argparse
import math
import platform
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.learning.peers import peers_for
from benchmarks.learning.shapes import Shape, cpu_shapes, gpu_shapes

_GOOD = {torch.float64: 1e-6, torch.float32: 1e-3}
_CHECKED = 2000  # samples that are compared with the truth


def main() -> None:
    """Print a line for each shape and precision."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning", description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--precision", choices=["double", "single", "both"], default="double")
    parser.add_argument("--write", type=Path, help="a Markdown file for the table")
    given = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False  # the same on both sides
    if given.device == "cpu":
        torch.set_num_threads(1)
    wanted = {"double": [torch.float64], "single": [torch.float32], "both": [torch.float32, torch.float64]}
    rows: list[Row] = []
    for shape in cpu_shapes() if given.device == "cpu" else gpu_shapes():
        for dtype in wanted[given.precision]:
            rows += compare(shape, given.device, dtype, given.rounds)
    if given.write is not None:
        given.write.write_text(markdown(rows, given.device, given.rounds))


class Row(NamedTuple):
    """What was measured of a layer: medians of seconds, and of ltinet's over its own, forward and both ways."""

    shape: str
    name: str
    error: float
    counts: bool
    forward: tuple[float, float]
    both: tuple[float, float]

    @property
    def text(self) -> str:
        """As a line of a table."""
        times = (f"{seconds * 1e3:.3g} | {ratio:.2f}" for seconds, ratio in (self.forward, self.both))
        error = f"{self.error:.0e}" if math.isfinite(self.error) else "not finite"
        return (
            f"| {self.shape} | {self.name} | {' | '.join(times)} | {error}{'' if self.counts else ', does not count'} |"
        )


def markdown(rows: list[Row], device: str, rounds: int) -> str:
    """The table of a run, with what it ran on."""
    machine = f"{platform.machine()}, one core" if device == "cpu" else torch.cuda.get_device_name()
    return "\n".join(
        [
            "# The network in PyTorch beside its peers",
            "",
            f"Written by `python -m benchmarks.learning --write …`: {machine}, PyTorch {torch.__version__}, medians of",
            f"{rounds} rounds in turns. The ratio is ltinet's time over that of the line, the error the largest one",
            "over the peak of its output. A peer further than 1e-6 from the truth (1e-3 in single precision) does not",
            "count.",
            "",
            "| layer | by | forward, ms | ratio | forward and backward, ms | ratio | error |",
            "|---|---|---|---|---|---|---|",
            *(row.text for row in rows),
            "",
        ]
    )


def compare(shape: Shape, device: str, dtype: torch.dtype, rounds: int) -> list[Row]:
    """Time one shape."""
    rng = np.random.default_rng(0)
    u = rng.standard_normal((shape.batch, shape.steps, shape.net.n_inputs))
    u[:, 0] = 0.0
    samples = torch.tensor(u, dtype=dtype, device=device)
    models: dict[str, nn.Module] = {"ltinet": shape.net.to_torch(shape.dt).to(device)}
    peers = peers_for(shape.net, shape.dt, shape.steps, dtype)
    models |= {name: peer.to(device) for name, peer in peers.items()}
    truth = shape.net.simulate(u[0, :_CHECKED], shape.dt * np.arange(min(_CHECKED, shape.steps))).y
    errors = {name: error_of(model, samples[:1, :_CHECKED], truth) for name, model in models.items()}
    measured = [medians(in_turns(run, models, samples, device, rounds)) for run in (forward, both)]
    label = f"{shape.name}, {str(dtype).removeprefix('torch.')}"
    rows = [
        Row(label, name, error, error <= _GOOD[dtype], measured[0][name], measured[1][name])
        for name, error in errors.items()
    ]
    for row in rows:
        print(row.text, flush=True)
    return rows


def medians(times: dict[str, list[float]]) -> dict[str, tuple[float, float]]:
    """The median of each layer's seconds, and of ltinet's over them, round by round."""
    first = times["ltinet"]
    return {
        name: (statistics.median(own), statistics.median(a / b for a, b in zip(first, own, strict=True)))
        for name, own in times.items()
    }


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
