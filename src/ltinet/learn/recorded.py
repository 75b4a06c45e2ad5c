"""On a GPU, from parameters to kernels in one call: hundreds of small operations, recorded once and then replayed.

They take microseconds each, of which PyTorch needs ten to call them. A CUDA graph has its own memory, which each replay
overwrites: what is given is copied in and what is made is copied out, and a pass back that is not the one after its own
forward pass replays that first.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from ltinet.learn.signed_once import signed_once

Make = Callable[..., tuple[Tensor, ...]]
"""From tensors to tensors, without looking at a value."""
_WARM_UPS = 3  # calls before a recording: libraries set themselves up in the first ones


class Recording:
    """A function at tensors of fixed shapes, and its derivatives."""

    def __init__(self, make: Make, given: tuple[Tensor, ...]) -> None:
        self.make = make
        self.run = 0
        """Which forward pass was the last one."""
        self._ready = 0  # the forward pass whose numbers are still there
        with torch.inference_mode(False), torch.enable_grad():
            self._given = tuple(own.detach().clone().requires_grad_() for own in given)
            self._warm_up()
            self._forward, self._backward = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
            with _recording(self._forward):
                made = make(*self._given)
            self._weights = tuple(torch.zeros_like(own) for own in made)
            with _recording(self._backward, pool=self._forward.pool()):
                self._pulled = gradients(made, self._given, self._weights)
            self._made = tuple(own.detach() for own in made)

    def forward(self, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """What the function makes of tensors."""
        _copy(self._given, given)
        self._forward.replay()
        self.run += 1
        self._ready = self.run
        return _copies(self._made)

    def backward(
        self, given: tuple[Tensor, ...], weights: tuple[Tensor, ...], *, run: int
    ) -> tuple[Tensor | None, ...]:
        """The gradients of what a run was given, from those of what it made; None where nothing hangs on it."""
        if self._ready != run:
            _copy(self._given, given)
            self._forward.replay()
        _copy(self._weights, weights)
        self._backward.replay()
        self._ready = 0  # the pass back works in the memory of what it no longer needs
        found = iter(_copies(tuple(own for own in self._pulled if own is not None)))
        return tuple(None if own is None else next(found) for own in self._pulled)

    def _warm_up(self) -> None:
        """On a stream of its own, as recordings are made."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UPS):
                made = self.make(*self._given)
                gradients(made, self._given, tuple(torch.zeros_like(own) for own in made))
        torch.cuda.current_stream().wait_stream(stream)


@contextmanager
def _recording(graph: Any, pool: Any = None) -> Iterator[None]:
    """What is called meanwhile is recorded; nothing is collected then, for another graph that ends would break it."""
    collects = gc.isenabled()
    with torch.cuda.graph(graph, pool=pool):
        gc.disable()
        try:
            yield
        finally:
            if collects:
                gc.enable()


def _copy(own: tuple[Tensor, ...], given: tuple[Tensor, ...]) -> None:
    """All of them in one call."""
    with torch.no_grad():
        torch._foreach_copy_(list(own), list(given))


def _copies(own: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    found = tuple(torch.empty_like(each) for each in own)
    _copy(found, own)
    return found


def gradients(
    made: tuple[Tensor, ...], given: tuple[Tensor, ...], weights: tuple[Tensor, ...], *, again: bool = False
) -> tuple[Tensor | None, ...]:
    """The gradients of what a function was given, from those of what it made; differentiable once more if asked."""
    hangs = [place for place, own in enumerate(made) if own.requires_grad]
    asked = [place for place, own in enumerate(given) if own.requires_grad]
    found = torch.autograd.grad(
        [made[place] for place in hangs],
        [given[place] for place in asked],
        [weights[place] for place in hangs],
        create_graph=again,
        allow_unused=True,
    )
    by_place = dict(zip(asked, found, strict=True))
    return tuple(by_place.get(place) for place in range(len(given)))


class Replay(torch.autograd.Function):
    """A recording as an operation; second derivatives, tangents and batches go through the function itself."""

    @staticmethod
    @signed_once
    def forward(recording: Recording, *given: Tensor) -> tuple[Tensor, ...]:
        """Replay it."""
        return recording.forward(given)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:  # noqa: ARG004 - PyTorch's names
        """Keep what was given: PyTorch then refuses a backward pass after it was changed."""
        ctx.recording, ctx.run = inputs[0], inputs[0].run
        ctx.save_for_backward(*inputs[1:])
        ctx.save_for_forward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, *weights: Tensor) -> tuple[Any, ...]:
        """Replay the pass back, or take it step by step where derivatives of it are wanted."""
        given = ctx.saved_tensors
        if torch.is_grad_enabled():
            return (None, *gradients(ctx.recording.make(*given), given, weights, again=True))
        return (None, *ctx.recording.backward(given, weights, run=ctx.run))

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Tensor | None) -> tuple[Tensor, ...]:
        """The tangents of what is made."""
        given = ctx.saved_tensors
        moved = tuple(
            torch.zeros_like(own) if tangent is None else tangent for own, tangent in zip(given, tangents, strict=True)
        )
        made: tuple[Tensor, ...] = torch.func.jvp(ctx.recording.make, given, moved)[1]
        return made

    @staticmethod
    def vmap(_: Any, in_dims: tuple[Any, ...], recording: Recording, *given: Tensor) -> tuple[Any, Any]:
        """The function itself, for each."""
        made = torch.func.vmap(recording.make, in_dims=tuple(in_dims[1:]))(*given)
        return made, tuple(0 for _ in made)
