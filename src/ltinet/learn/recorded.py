"""On a GPU, from parameters to kernels in one call: hundreds of small operations, recorded once and then replayed.

They take microseconds each, of which PyTorch needs ten to call them. A CUDA graph has its own memory, which each replay
overwrites, so what is given is copied in and what is made is copied out; the recorded backward pass computes the
forward pass once more from what it is given, so that nothing is left over from another call.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Make = Callable[..., tuple[Tensor, ...]]
"""From tensors to tensors, without looking at a value."""
_WARM_UPS = 3  # calls before a recording: libraries set themselves up in the first ones


class Recording:
    """A function at tensors of fixed shapes, and its derivatives."""

    def __init__(self, make: Make, given: tuple[Tensor, ...]) -> None:
        self.make = make
        with torch.inference_mode(False), torch.enable_grad():
            self._given = tuple(own.detach().clone().requires_grad_() for own in given)
            self._warm_up()
            self._forward, self._backward = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._forward), torch.no_grad():
                self._made = make(*self._given)
            self._weights = tuple(torch.zeros_like(own) for own in self._made)
            with torch.cuda.graph(self._backward):
                self._pulled = self._pull()

    def forward(self, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """What the function makes of tensors."""
        self._take(self._given, given)
        self._forward.replay()
        return tuple(own.clone() for own in self._made)

    def backward(self, given: tuple[Tensor, ...], weights: tuple[Tensor, ...]) -> tuple[Tensor | None, ...]:
        """The gradients of what was given, from those of what was made; None where nothing hangs on it."""
        self._take(self._given, given)
        self._take(self._weights, weights)
        self._backward.replay()
        return tuple(None if own is None else own.clone() for own in self._pulled)

    def _warm_up(self) -> None:
        """On a stream of its own, as recordings are made."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UPS):
                self._weights = tuple(torch.zeros_like(own) for own in self.make(*self._given))
                self._pull()
        torch.cuda.current_stream().wait_stream(stream)

    def _pull(self) -> tuple[Tensor | None, ...]:
        return pulled_back(self.make, self._given, self._weights)

    @staticmethod
    def _take(own: tuple[Tensor, ...], given: tuple[Tensor, ...]) -> None:
        with torch.no_grad():
            torch._foreach_copy_(list(own), list(given))


def pulled_back(
    make: Make, given: tuple[Tensor, ...], weights: tuple[Tensor, ...], *, again: bool = False
) -> tuple[Tensor | None, ...]:
    """The gradients of what a function is given, from those of what it makes; differentiable once more if asked."""
    made = make(*given)
    hangs = [place for place, own in enumerate(made) if own.requires_grad]
    asked = [place for place, own in enumerate(given) if own.requires_grad]
    found = torch.autograd.grad(
        [made[place] for place in hangs],
        [given[place] for place in asked],
        [weights[place] for place in hangs],
        create_graph=again,
        allow_unused=True,
    )
    gradients = dict(zip(asked, found, strict=True))
    return tuple(gradients.get(place) for place in range(len(given)))


class Replay(torch.autograd.Function):
    """A recording as an operation; second derivatives, tangents and batches go through the function itself."""

    @staticmethod
    def forward(recording: Recording, *given: Tensor) -> tuple[Tensor, ...]:
        """Replay it."""
        return recording.forward(given)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:  # noqa: ARG004 - PyTorch's names
        """Keep what was given: PyTorch then refuses a backward pass after it was changed."""
        ctx.recording = inputs[0]
        ctx.save_for_backward(*inputs[1:])
        ctx.save_for_forward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, *weights: Tensor) -> tuple[Any, ...]:
        """Replay the pass back, or take it step by step where derivatives of it are wanted."""
        given = ctx.saved_tensors
        if torch.is_grad_enabled():
            return (None, *pulled_back(ctx.recording.make, given, weights, again=True))
        return (None, *ctx.recording.backward(given, weights))

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
