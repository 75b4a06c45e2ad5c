"""Feedback networks drawn at random: how often their parallel solver walks, with and without damping.

`python -m benchmarks.learning.loops` draws 200 networks of one to three oscillators with a spring on their sum, and
prints for how many of them, and of their steps, Newton's method did not settle, and how far its states are from those
of walking. A network whose walk exceeds the largest floating-point number must be refused by all.
"""

import argparse
import time
from typing import Literal

import numpy as np
import torch
from torch import Tensor

import ltinet
from ltinet import nn
from ltinet.torch.feedback_loop import FeedbackLoop
from ltinet.torch.newton import Trajectory, solve_trajectory

_WAYS = {"plain": 0, "damped": 30}


def main() -> None:
    """Print a line for each way."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning.loops", description=__doc__)
    parser.add_argument("--networks", type=int, default=200)
    parser.add_argument("--steps", type=int, default=400)
    given = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(11)
    tallies = {name: _Tally() for name in _WAYS}
    exploding = 0
    for case in range(given.networks):
        model = drawn(rng, n_neurons=1 + case % 3, hold="zero" if case % 2 else "linear")
        u = torch.from_numpy(rng.standard_normal((1, given.steps, 1)))
        exploding += not compare(model, u, tallies)
    print(f"{given.networks} networks, {given.steps} steps each, {exploding} explode and are refused")
    for name, tally in tallies.items():
        print(f"  {name:<8}{tally.networks:4} networks walked {tally.steps:6} steps, {tally}")


class _Tally:
    """What was counted of a way."""

    def __init__(self) -> None:
        self.networks = self.steps = self.passes = 0
        self.worst = self.seconds = 0.0

    def __str__(self) -> str:
        return f"{self.passes} passes, {self.seconds:.1f} s, furthest from walking {self.worst:.0e}"


def drawn(rng: np.random.Generator, *, n_neurons: int, hold: Literal["linear", "zero"], dt: float = 0.1) -> nn.Feedback:
    """Oscillators in parallel with a quadratic and cubic spring on their sum."""
    A = np.zeros((2 * n_neurons, 2 * n_neurons))
    B, C = np.zeros((2 * n_neurons, 2)), np.zeros((2, 2 * n_neurons))
    for k in range(n_neurons):
        w, d = rng.uniform(0.5, 2.0), rng.uniform(0.02, 0.3)
        A[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = [[0.0, 1.0], [-(w**2), -2.0 * d * w]]
        B[2 * k + 1], C[:, 2 * k] = rng.uniform(0.5, 1.0), 1.0
    hardness = 10.0 ** rng.uniform(-3.0, 1.5)
    spring = nn.Polynomial(1, 3, start="zero")
    with torch.no_grad():
        spring.weights[1:, 0] = torch.tensor([-0.2 * hardness * rng.standard_normal(), -hardness])
    return nn.Feedback(ltinet.construct((A, B, C)).to_torch(dt, hold=hold), spring)


def compare(model: nn.Feedback, u: Tensor, tallies: dict[str, _Tally]) -> bool:
    """Count a network; whether it can be walked."""
    with torch.no_grad():
        loop = model.loop()
        start = model.rest_state(loop, u)
        expected = states_of(model, loop, u, start, window=0, max_damped_passes=0)
        for name, tally in tallies.items():
            begun = time.process_time()
            run = states_of(model, loop, u, start, window=1024, max_damped_passes=_WAYS[name])
            if (run is None) != (expected is None):
                raise AssertionError("one way explodes and another does not")
            if run is None or expected is None:
                continue
            tally.seconds += time.process_time() - begun
            tally.networks += run.n_sequential > 0
            tally.steps += run.n_sequential
            tally.passes += run.n_passes
            off = float((run.states - expected.states).abs().max() / expected.states.abs().max())
            tally.worst = max(tally.worst, off)
    return expected is not None


def states_of(
    model: nn.Feedback, loop: FeedbackLoop, u: Tensor, start: Tensor, *, window: int, max_damped_passes: int
) -> Trajectory | None:
    """A run, None where it explodes."""
    try:
        return solve_trajectory(loop, u, start, model.map, window=window, max_damped_passes=max_damped_passes)
    except ltinet.SimulationError:
        return None


if __name__ == "__main__":
    main()
