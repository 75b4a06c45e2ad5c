"""Errors against steps of a constructed start, LRUs and a GRU: `python -m benchmarks.fine_tuning [--device cuda]`.

The same Adam, batches and loss for all; seven learning rates, of which each kind gets the one whose median over seeds
is smallest on validation records. The picture shows all runs.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from benchmarks.fine_tuning.models import constructed, gru, lru
from benchmarks.fine_tuning.picture import draw
from benchmarks.fine_tuning.task import beam_task
from benchmarks.fine_tuning.training import RATES, Runs, train


def main() -> None:
    """Train, print and draw."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fine_tuning", description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--gru-steps", type=int, default=1000, help="its steps go sample by sample")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--length", type=int, default=1024, help="samples of a record")
    parser.add_argument("--picture", type=Path, default=Path("fine_tuning.png"))
    given = parser.parse_args()
    if given.device == "cpu":
        torch.set_num_threads(1)
    task = beam_task(steps=given.length)
    n_pairs = task.known.n_states // 2
    kinds = [
        (constructed(task, given.device), given.steps),
        (lru(n_pairs, given.device, is_log=False), given.steps),
        (lru(n_pairs, given.device, is_log=True), given.steps),
        (gru(2, given.device), given.gru_steps),
    ]
    found = []
    for learner, n_steps in kinds:
        found.append(train(learner, task, n_seeds=given.seeds, n_steps=n_steps, device=given.device))
        print_kind(found[-1])
        draw(found, given.picture)
    print_verdict(found[0], found[1:3])


def print_kind(runs: Runs) -> None:
    """The rate that validation chooses, and where it leads."""
    rate = chosen_rate(runs)
    ends = best_of(runs)[rate]
    print(
        f"{runs.name}: {runs.n_parameters} parameters, rate {RATES[rate]:.0e}, error at first "
        f"{np.median(runs.errors[0, rate]):.4f}, smallest {np.median(ends):.5f} ({ends.min():.5f} to {ends.max():.5f})",
        flush=True,
    )


def print_verdict(constructed_runs: Runs, others: list[Runs]) -> None:
    """After which share of the best LRU's steps the constructed start has its error."""
    best = min(others, key=lambda runs: float(np.median(best_of(runs)[chosen_rate(runs)])))
    own = best.errors[:, chosen_rate(best)]
    target = float(np.median(best_of(best)[chosen_rate(best)]))
    needed = float(np.median(best.steps[own.argmin(0)]))
    start = constructed_runs.errors[:, chosen_rate(constructed_runs)]
    reached = [first_step(run <= target, constructed_runs.steps) for run in start.T]
    share = float(np.median(reached)) / needed
    print(f"best LRU: {best.name}, {target:.5f} after {needed:.0f} steps (median)")
    print(f"constructed start: {start[0, 0]:.5f} at first, there after {np.median(reached):.0f} steps: {share:.4f}")
    print(f"the best LRU lies below the constructed start: {target < start[0, 0]}")


def first_step(is_there: np.ndarray, steps: np.ndarray) -> float:
    """The first step at which something holds; infinite if it never does."""
    return float(steps[np.argmax(is_there)]) if is_there.any() else float("inf")


def chosen_rate(runs: Runs) -> int:
    """The place of the rate whose median over seeds is smallest."""
    return int(np.argmin(np.median(best_of(runs), axis=1)))


def best_of(runs: Runs) -> np.ndarray:
    """The smallest error of each run `(rates, seeds)`; infinite where it explodes at once."""
    return np.asarray(np.nan_to_num(runs.errors, nan=np.inf).min(0))


if __name__ == "__main__":
    main()
