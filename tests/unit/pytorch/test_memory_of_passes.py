"""Hypothesis: a pass takes no more than four times its inputs, outputs and their gradients, and its kernels once.

Counted are the bytes that PyTorch holds at once, as its profiler logs every tensor that comes and goes: not those of
the process, which depend on what the allocator keeps.
"""

from collections.abc import Callable
from itertools import accumulate

import numpy as np
import pytest
import torch
from scipy import linalg
from torch.profiler import ProfilerActivity, profile

import ltinet
from learnt_systems import pair
from ltinet.torch.linear_network import LinearNetwork
from ltinet.torch.planner import ProblemSizes, build_kernels, select_plan

# States, channels, batch and steps of the layers that are timed: building twice, iss, and a wide one.
SHAPES = [(48, 1, 1, 100_000), (48, 1, 16, 4096), (270, 3, 1, 10_000), (256, 128, 1, 4096)]


def model_of(n_states: int, channels: int) -> LinearNetwork:
    rng = np.random.default_rng(0)
    A = linalg.block_diag(*[pair(rng.uniform(0.01, 0.5), rng.uniform(0.1, 30.0)) for _ in range(n_states // 2)])
    B, C = rng.standard_normal((n_states, channels)), rng.standard_normal((channels, n_states))
    return ltinet.construct((A, B, C, np.zeros((channels, channels)))).to_torch(0.02)


def peak(run: Callable[[], object]) -> int:
    """The most bytes that tensors take at once while something runs, of those that it makes."""
    run()  # what is made once stays
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        run()
    events = profiled.profiler.kineto_results.events()
    return max(accumulate(event.nbytes() for event in events if event.name() == "[memory]"))


def kernel_bytes(model: LinearNetwork, u: torch.Tensor) -> int:
    """What the kernels take that a record of this shape is run with."""
    sizes = ProblemSizes.of(u, n_states=model.n_states, n_outputs=model.n_outputs, growth=model.growth * model.dt)
    plan = select_plan(sizes)
    found = build_kernels(model.one_step(), plan, u.shape[1], u.dtype)
    tensors = [own for own in found if isinstance(own, torch.Tensor)]
    return sum(own.numel() * own.element_size() for own in tensors)


def test_bytes_are_counted() -> None:
    assert peak(lambda: torch.ones(1000, dtype=torch.float64) + torch.ones(1000, dtype=torch.float64)) == 24_000


@pytest.mark.parametrize(("n_states", "channels", "batch", "steps"), SHAPES)
def test_a_pass_takes_little_more_than_its_signals(n_states: int, channels: int, batch: int, steps: int) -> None:
    model = model_of(n_states, channels)
    u = torch.from_numpy(np.random.default_rng(1).standard_normal((batch, steps, channels)))
    allowed = 4 * 4 * u.numel() * u.element_size() + kernel_bytes(model, u)  # u, y, and a gradient of each

    def forward() -> None:
        with torch.no_grad():
            model(u)

    def both() -> None:
        model.zero_grad()
        given = u.clone().requires_grad_()
        model(given).square().mean().backward()

    assert peak(forward) <= allowed
    assert peak(both) <= allowed
