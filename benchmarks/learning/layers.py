"""State-space layers beside S4D, LRU and GRU: `python -m benchmarks.learning.layers`.

`--speed` times one layer beside S4D's FFT layer, `--tasks` trains models of four layers on two tasks: digits read row by
row, and a copy of symbols after a delay. `--stream` compares a million single steps with the whole call; it takes minutes.
`--write benchmarks/learning/LAYERS.md` keeps the tables.

Every model is trained by the same Adam, batches and number of steps. Its learning rate is the one of two with the
smallest training loss for a seed that does not count; the seeds that count use it. Initial time steps are from 0.5/T to
5/T for both tasks.
"""

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.learning.peers import ported_scan
from ltinet.nn import Stack, StateSpaceLayer

WIDTH, STATES, LAYERS = 32, 16, 4
RATES = (3e-3, 1e-2)
BATCH, EVERY, TUNING_SEED = 32, 20, 100


def main() -> None:
    """Print the tables, and keep them on request."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning.layers", description=__doc__)
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--tasks", action="store_true")
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--samples", type=int, default=1_000_000, help="steps of --stream")
    parser.add_argument("--starts", nargs="+", default=["s4d_lin", "s4d_inv", "s4d_legs"], help="starts of --stream")
    parser.add_argument("--only", choices=["digits", "copy"], help="one of the tasks")
    parser.add_argument("--device", default="cpu", help="where layers are timed: cpu, the default, or cuda")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--write", type=Path, help="a Markdown file for the tables")
    given = parser.parse_args()
    torch.set_num_threads(1)
    both = given.speed == given.tasks and not given.stream
    text = ["# State-space layers beside their peers", "", f"PyTorch {torch.__version__}, one CPU core, float32.", ""]
    if given.speed or both:
        text += speed_table(given.rounds, given.device)
    if given.tasks or both:
        text += task_table(given.seeds, given.steps, given.only)
    if given.stream:
        text += stream_table(given.samples, given.starts)
    if given.write is not None:
        given.write.write_text("\n".join(text))


# Speed


class S4D(nn.Module):  # type: ignore[misc]  # PyTorch's types are not looked at
    """S4D as its authors wrote it: a kernel as a Vandermonde product in complex numbers, then FFTs; zero-order hold."""

    def __init__(self, d_model: int, n_states: int) -> None:
        super().__init__()
        low, high = math.log(1e-3), math.log(1e-1)
        self.log_dt = nn.Parameter(low + (high - low) * torch.rand(d_model))
        self.log_decay = nn.Parameter(torch.full((d_model, n_states // 2), math.log(0.5)))
        self.frequency = nn.Parameter(math.pi * torch.arange(n_states // 2).repeat(d_model, 1))
        self.C = nn.Parameter(torch.view_as_real(torch.randn(d_model, n_states // 2, dtype=torch.cfloat)))
        self.D = nn.Parameter(torch.randn(d_model))

    def forward(self, u: Tensor) -> Tensor:
        """`(B, T, d)` to `(B, T, d)`, from rest."""
        steps, samples = u.shape[1], u.mT
        rates = torch.complex(-torch.exp(self.log_decay), self.frequency)
        scaled = rates * torch.exp(self.log_dt).unsqueeze(-1)
        C = torch.view_as_complex(self.C) * (torch.exp(scaled) - 1.0) / rates
        powers = torch.exp(scaled.unsqueeze(-1) * torch.arange(steps, device=u.device))
        kernel = 2.0 * torch.einsum("hn,hnt->ht", C, powers).real
        product = torch.fft.rfft(samples, n=2 * steps) * torch.fft.rfft(kernel, n=2 * steps)
        y = torch.fft.irfft(product, n=2 * steps)[..., :steps]
        return (y + samples * self.D.unsqueeze(-1)).mT


def speed_table(rounds: int, device: str) -> list[str]:
    """Time layers in turns: batch 32, length 1,024, 64 channels of 64 states."""
    u = torch.randn(32, 1024, 64, requires_grad=True, device=device)
    layers: dict[str, nn.Module] = {"S4D, FFT": S4D(64, 64), "StateSpaceLayer, s4d_lin": StateSpaceLayer(64, 64)}
    layers["StateSpaceLayer, hippo_legs"] = StateSpaceLayer(64, 64, init="hippo_legs")
    for layer in layers.values():
        layer.to(device)
    runs: dict[str, Callable[[nn.Module], None]] = {
        "forward": partial(forward, u),
        "both": partial(forward_and_backward, u),
    }
    times: dict[tuple[str, str], list[float]] = {(layer, run): [] for layer in layers for run in runs}
    for number in range(rounds + 1):
        for name, layer in layers.items():
            for run_name, run in runs.items():
                start = now(device)
                run(layer)
                times[name, run_name] += [now(device) - start] if number else []
    rows = ["## Time: batch 32, length 1,024, 64 channels of 64 states", ""]
    measured = "time of the processor" if device == "cpu" else f"elapsed on {torch.cuda.get_device_name()}"
    rows += [f"Medians of {rounds} rounds in turns, {measured}.", ""]
    rows += ["| layer | forward, ms | forward and backward, ms |", "|---|---|---|"]
    for name in layers:
        values = (f"{1e3 * statistics.median(times[name, run]):.3g}" for run in runs)
        rows.append(f"| {name} | {' | '.join(values)} |")
    print("\n".join(rows), flush=True)
    return [*rows, ""]


def now(device: str) -> float:
    """Time of the processor, or of a device that has finished its work, in seconds."""
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def forward(u: Tensor, layer: nn.Module) -> None:
    """Outputs alone."""
    with torch.no_grad():
        layer(u)


def forward_and_backward(u: Tensor, layer: nn.Module) -> None:
    """Outputs and the gradients of the input and all parameters."""
    layer.zero_grad()
    layer(u).square().mean().backward()


# Single steps


def stream_table(samples: int, starts: list[str]) -> list[str]:
    """Compare single steps with the whole call: two channels of 16 states, noise as input."""
    rows = [f"## {samples:,} single steps: 2 channels of 16 states, float32", ""]
    rows += ["| init | largest difference from the whole call / largest output | time of a step, µs |", "|---|---|---|"]
    print("\n".join(rows), flush=True)
    for init in starts:
        torch.manual_seed(6)
        layer, u = StateSpaceLayer(2, 16, init=init), torch.randn(samples, 2)
        with torch.no_grad():
            whole = layer(u)
            outputs, state = torch.empty_like(whole), None
            start = time.process_time()
            for k in range(samples):
                outputs[k], state = layer.step(u[k], state)
            seconds = time.process_time() - start
        difference = float((outputs - whole).abs().max() / whole.abs().max())
        rows.append(f"| {init} | {difference:.1e} | {1e6 * seconds / samples:.0f} |")
        print(rows[-1], flush=True)
    return [*rows, ""]


# Tasks

Batch: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""Inputs `(B, T, m)`, labels `(B, T)` and a mask of the samples that count."""


class Task(NamedTuple):
    """Batches for training by a seed, and data for the accuracy."""

    name: str
    n_inputs: int
    n_classes: int
    length: int
    target: float
    train: Callable[[int], Iterator[Batch]]
    test: Batch


def digits() -> Task:
    """Handwritten digits of 8 × 8 points, a row at each step; the class is read after the last row."""
    from sklearn.datasets import load_digits

    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    u = torch.tensor(data.images[order] / 16.0, dtype=torch.float32)
    labels = torch.tensor(data.target[order]).unsqueeze(-1).expand(-1, 8)
    mask = (torch.arange(8) == 7).expand(len(u), -1)
    n_train = 1400

    def train(seed: int) -> Iterator[Batch]:
        generator = torch.Generator().manual_seed(seed)
        while True:
            rows = torch.randint(n_train, (BATCH,), generator=generator)
            yield u[rows], labels[rows], mask[rows]

    return Task("digits, row by row", 8, 10, 8, 0.95, train, (u[n_train:], labels[n_train:], mask[n_train:]))


def delayed_copy(length: int = 60, delay: int = 20, n_symbols: int = 4) -> Task:
    """Symbols drawn at random; the output is the symbol of 20 steps before."""

    def draw(generator: torch.Generator, count: int) -> Batch:
        symbols = torch.randint(n_symbols, (count, length), generator=generator)
        late = torch.cat([torch.zeros(count, delay, dtype=torch.long), symbols[:, :-delay]], 1)
        mask = (torch.arange(length) >= delay).expand(count, -1)
        return nn.functional.one_hot(symbols, n_symbols).float(), late, mask

    def train(seed: int) -> Iterator[Batch]:
        generator = torch.Generator().manual_seed(seed)
        while True:
            yield draw(generator, BATCH)

    test = draw(torch.Generator().manual_seed(12345), 256)
    return Task(f"copy after {delay} of {length} steps", n_symbols, n_symbols, length, 0.95, train, test)


class LRU(nn.Module):  # type: ignore[misc]
    """Linear recurrent unit (Orvieto et al. 2023): eigenvalues uniform on a ring, normalized inputs."""

    def __init__(self, d_model: int, n_states: int, *, r_min: float = 0.9, r_max: float = 0.999) -> None:
        super().__init__()
        self.n_inputs = self.n_outputs = d_model
        radius = torch.sqrt(torch.rand(n_states) * (r_max**2 - r_min**2) + r_min**2)
        self.log_nu = nn.Parameter(torch.log(-torch.log(radius)))
        self.log_theta = nn.Parameter(torch.log(2.0 * math.pi * torch.rand(n_states)))
        self.log_gamma = nn.Parameter(0.5 * torch.log(1.0 - radius**2))
        self.B = nn.Parameter(torch.randn(n_states, d_model, 2) / math.sqrt(2 * d_model))
        self.C = nn.Parameter(torch.randn(d_model, n_states, 2) / math.sqrt(n_states))
        self.D = nn.Parameter(torch.randn(d_model))

    def forward(self, u: Tensor) -> Tensor:
        """`(B, T, d)` to `(B, T, d)`, from rest."""
        rates = torch.exp(torch.complex(-torch.exp(self.log_nu), torch.exp(self.log_theta)))
        B, C = torch.view_as_complex(self.B) * torch.exp(self.log_gamma).unsqueeze(-1), torch.view_as_complex(self.C)
        drive = u.to(B.dtype) @ B.mT
        states = ported_scan(rates.expand_as(drive), drive)[1]
        return (states @ C.mT).real + u * self.D


class GRU(nn.Module):  # type: ignore[misc]
    """A GRU of four layers, its hidden units chosen so that it has as many parameters as the layers beside it."""

    def __init__(self, n_inputs: int, n_classes: int, n_parameters: int) -> None:
        super().__init__()
        counts = {
            hidden: sum(p.numel() for p in self.make_parts(n_inputs, n_classes, hidden).parameters())
            for hidden in range(8, 65)
        }
        hidden = min(counts, key=lambda size: abs(counts[size] - n_parameters))
        self.rnn, self.read = self.make_parts(n_inputs, n_classes, hidden)

    @staticmethod
    def make_parts(n_inputs: int, n_classes: int, hidden: int) -> nn.ModuleList:
        """Recurrent layers and the output weights."""
        rnn = nn.GRU(n_inputs, hidden, LAYERS, batch_first=True)
        return nn.ModuleList([rnn, nn.Linear(hidden, n_classes)])

    def forward(self, u: Tensor) -> Tensor:
        """`(B, T, m)` to `(B, T, classes)`."""
        y: Tensor = self.read(self.rnn(u)[0])
        return y


def layered(task: Task, make_layer: Callable[[], nn.Module]) -> Stack:
    """Four layers, each with normalization before and a gate after it, and a connection past it."""
    blocks = []
    for _ in range(LAYERS):
        gate = (nn.GELU(), nn.Linear(WIDTH, 2 * WIDTH), nn.GLU())
        blocks.append(Stack(nn.LayerNorm(WIDTH), make_layer(), *gate, residual=True))
    return Stack(nn.Linear(task.n_inputs, WIDTH), *blocks, nn.LayerNorm(WIDTH), nn.Linear(WIDTH, task.n_classes))


def models(task: Task) -> dict[str, Callable[[], nn.Module]]:
    """Models by name."""
    dt = (0.5 / task.length, 5.0 / task.length)
    starts = {
        "StateSpaceLayer, s4d_lin": partial(StateSpaceLayer, WIDTH, STATES, dt=dt),
        "StateSpaceLayer, s4d_lin, mixing": partial(StateSpaceLayer, WIDTH, 2 * STATES, dt=dt, mixing=True),
        "LRU": partial(LRU, WIDTH, STATES),
    }
    made: dict[str, Callable[[], nn.Module]] = {name: partial(layered, task, make) for name, make in starts.items()}
    n_parameters = count_parameters(made["StateSpaceLayer, s4d_lin"]())
    return {**made, "GRU": partial(GRU, task.n_inputs, task.n_classes, n_parameters)}


def count_parameters(model: nn.Module) -> int:
    """Number of trained numbers."""
    return sum(values.numel() for values in model.parameters() if values.requires_grad)


class Score(NamedTuple):
    """Result of a training run."""

    loss: float
    test_loss: float
    accuracy: float
    steps: float
    """Steps until the accuracy reached the target; infinite if it never did."""


def train(task: Task, make: Callable[[], nn.Module], *, lr: float, seed: int, steps: int) -> Score:
    """Train a model of a seed."""
    torch.manual_seed(seed)
    model, losses, reached = make(), [], math.inf
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for step, batch in zip(range(1, steps + 1), task.train(seed), strict=False):
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
        if step % EVERY == 0 and reached == math.inf and accuracy_of(model, task.test) >= task.target:
            reached = step
    with torch.no_grad():
        test_loss = float(loss_of(model, task.test))
    return Score(statistics.fmean(losses[-EVERY:]), test_loss, accuracy_of(model, task.test), reached)


def loss_of(model: nn.Module, batch: Batch) -> Tensor:
    """Cross entropy of the samples that count."""
    u, labels, mask = batch
    return nn.functional.cross_entropy(model(u)[mask], labels[mask])


def accuracy_of(model: nn.Module, batch: Batch) -> float:
    """Share of samples that count whose class is right."""
    u, labels, mask = batch
    with torch.no_grad():
        return float((model(u)[mask].argmax(-1) == labels[mask]).float().mean())


def task_table(seeds: int, steps: int, only: str | None) -> list[str]:
    """Train all models on both tasks, or one of them."""
    rows = [f"## Four layers, {steps} steps of Adam, {seeds} seeds", ""]
    rows += ["Medians, the worst seed in parentheses. Steps are those until 95 % of the test samples are right.", ""]
    rows += [
        "| task | model | parameters | rate | training loss | test loss | accuracy, % | steps |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(rows), flush=True)
    tasks = {"digits": digits, "copy": delayed_copy}
    for task in (make() for name, make in tasks.items() if only in (None, name)):
        for name, make in models(task).items():
            tuning = {lr: train(task, make, lr=lr, seed=TUNING_SEED, steps=steps).loss for lr in RATES}
            lr = min(tuning, key=lambda rate: tuning[rate])
            scores = [train(task, make, lr=lr, seed=seed, steps=steps) for seed in range(seeds)]
            rows.append(f"| {task.name} | {name} | {count_parameters(make()):,} | {lr:g} | {summary(scores)} |")
            print(rows[-1], flush=True)
    return [*rows, ""]


def summary(scores: list[Score]) -> str:
    """Medians and worst values as cells of a table."""
    cells = []
    for column in ("loss", "test_loss"):
        values = [getattr(score, column) for score in scores]
        cells.append(f"{statistics.median(values):.2g} ({max(values):.2g})")
    accuracies = [100.0 * score.accuracy for score in scores]
    cells.append(f"{statistics.median(accuracies):.1f} ({min(accuracies):.1f})")
    reached = [score.steps for score in scores]
    median, worst = (
        "never" if math.isinf(value) else f"{value:.0f}" for value in (statistics.median(reached), max(reached))
    )
    cells.append(f"{median} ({worst})")
    return " | ".join(cells)


if __name__ == "__main__":
    main()
