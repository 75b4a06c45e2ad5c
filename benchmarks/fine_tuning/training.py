"""Adam on many runs side by side: all learning rates and seeds of one kind of model in one tensor each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import grad, vmap

from benchmarks.fine_tuning.models import Learner, Parameters
from benchmarks.fine_tuning.task import Task

RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
_BATCH, _LOOK = 4, 10
_FIRST, _SECOND, _SMALL = 0.9, 0.999, 1e-8  # Adam's own constants


@dataclass(frozen=True)
class Runs:
    """Errors on the validation records `(looks, rates, seeds)`, in deviations of the output, and the steps of looks."""

    name: str
    n_parameters: int
    steps: np.ndarray
    errors: np.ndarray


def train(learner: Learner, task: Task, *, n_seeds: int, n_steps: int, device: str) -> Runs:
    """Train all runs; on a GPU a step is recorded once and replayed."""
    runs = len(RATES) * n_seeds
    starts = [learner.begin(seed) for _ in RATES for seed in range(n_seeds)]
    own = {name: torch.stack([start[name] for start in starts]) for name in starts[0]}
    rates = torch.tensor(RATES, dtype=torch.float64, device=device).repeat_interleave(n_seeds)
    data, unseen = ([torch.from_numpy(each).to(device) for each in pair] for pair in (task.train, task.validation))
    draws = [np.random.default_rng(seed) for seed in range(n_seeds)]
    chosen = torch.zeros(runs, _BATCH, dtype=torch.int64, device=device)
    take = _recorded(_adam(learner, own, rates, data, chosen), device)
    look = vmap(lambda each: (learner.outputs(each, unseen[0]) - unseen[1]).square().mean().sqrt())
    errors, steps = [], []
    for step in range(n_steps + 1):
        if step % _LOOK == 0:
            with torch.no_grad():
                errors.append(look(own).view(len(RATES), n_seeds).cpu().numpy())
            steps.append(step)
        each = np.stack([draw.integers(len(data[0]), size=_BATCH) for draw in draws])
        chosen.copy_(torch.from_numpy(np.tile(each, (len(RATES), 1))))
        take()
    return Runs(learner.name, learner.n_parameters(), np.array(steps), np.array(errors))


def _adam(learner: Learner, own: Parameters, rates: Tensor, data: list[Tensor], chosen: Tensor) -> Callable[[], None]:
    """A step of every run with its own rate and the records that its seed has drawn."""
    first, second = ({name: torch.zeros_like(each) for name, each in own.items()} for _ in range(2))
    count = torch.zeros((), dtype=torch.float64, device=rates.device)

    def loss(each: Parameters, u: Tensor, y: Tensor) -> Tensor:
        return (learner.outputs(each, u) - y).square().mean()

    def take() -> None:
        u, y = (each[chosen] for each in data)
        slopes = vmap(grad(loss))(own, u, y)
        count.add_(1.0)
        for name, slope in slopes.items():
            rate = rates.view(-1, *(1 for _ in slope.shape[1:]))
            first[name].mul_(_FIRST).add_(slope, alpha=1.0 - _FIRST)
            second[name].mul_(_SECOND).addcmul_(slope, slope, value=1.0 - _SECOND)
            size = torch.sqrt(second[name] / (1.0 - _SECOND**count)) + _SMALL
            own[name].sub_(rate * (first[name] / (1.0 - _FIRST**count)) / size)

    return take


def _recorded(take: Callable[[], None], device: str) -> Callable[[], None]:
    """The same as a CUDA graph. Three steps before it, which set libraries up, train on the first record already."""
    if device == "cpu":
        return take
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            take()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        take()

    return _Replay(graph, take)


@dataclass(frozen=True)
class _Replay:
    """A recorded step, and the function that was recorded: what it works on lives as long as that."""

    graph: Any
    take: Callable[[], None]

    def __call__(self) -> None:
        self.graph.replay()
