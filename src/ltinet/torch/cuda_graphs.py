"""CUDA graphs that compute kernels from parameters in one call, and their cache.

Building kernels takes hundreds of operations of microseconds each, of which PyTorch needs about ten microseconds to
launch one. They are captured once and then replayed. A CUDA graph has its own memory, which each replay overwrites:
inputs are copied in and outputs are copied out, and a backward pass that does not directly follow its own forward pass
replays that first. A model captures a graph when the same kernels are requested for the third time, and keeps the most
recent graphs only.
"""

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, final

import torch
from torch import Tensor
from torch.utils import _pytree

from ltinet.torch.exponentials import cache_signature
from ltinet.torch.planner import Kernels, Plan

# MERGED ltinet.torch.cuda_graphs
# On a GPU, from parameters to kernels in one call: hundreds of small operations, recorded once and then replayed.
#
# They take microseconds each, of which PyTorch needs ten to call them. A CUDA graph has its own memory, which each replay
# overwrites: what is given is copied in and what is made is copied out, and a pass back that is not the one after its own
# forward pass replays that first.

TensorFunction = Callable[..., tuple[Tensor, ...]]
"""From tensors to tensors, without looking at a value."""
_WARM_UP_CALLS = 3  # calls before a recording: libraries set themselves up in the first ones


class CapturedGraph:
    """A function at tensors of fixed shapes, and its derivatives."""

    def __init__(self, make: TensorFunction, given: tuple[Tensor, ...]) -> None:
        self.make = make
        self.run = 0
        """Which forward pass was the last one."""
        self._ready = 0  # the forward pass whose numbers are still there
        with torch.inference_mode(False), torch.enable_grad():
            self._given = tuple(own.detach().clone().requires_grad_() for own in given)
            self._warm_up()
            self._forward, self._backward = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
            with _capture(self._forward):
                made = make(*self._given)
            self._weights = tuple(torch.zeros_like(own) for own in made)
            with _capture(self._backward, pool=self._forward.pool()):
                self._pulled = vector_jacobian_products(made, self._given, self._weights)
            self._made = tuple(own.detach() for own in made)

    def forward(self, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """What the function makes of tensors."""
        _copy_into(self._given, given)
        self._forward.replay()
        self.run += 1
        self._ready = self.run
        return _clone_all(self._made)

    def backward(
        self, given: tuple[Tensor, ...], weights: tuple[Tensor, ...], *, run: int
    ) -> tuple[Tensor | None, ...]:
        """The gradients of what a run was given, from those of what it made; None where nothing hangs on it."""
        if self._ready != run:
            _copy_into(self._given, given)
            self._forward.replay()
        _copy_into(self._weights, weights)
        self._backward.replay()
        self._ready = 0  # the pass back works in the memory of what it no longer needs
        found = iter(_clone_all(tuple(own for own in self._pulled if own is not None)))
        return tuple(None if own is None else next(found) for own in self._pulled)

    def _warm_up(self) -> None:
        """On a stream of its own, as recordings are made."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP_CALLS):
                made = self.make(*self._given)
                vector_jacobian_products(made, self._given, tuple(torch.zeros_like(own) for own in made))
        torch.cuda.current_stream().wait_stream(stream)


@contextmanager
def _capture(graph: Any, pool: Any = None) -> Iterator[None]:
    """What is called meanwhile is recorded; nothing is collected then, for another graph that ends would break it."""
    collects = gc.isenabled()
    with torch.cuda.graph(graph, pool=pool):
        gc.disable()
        try:
            yield
        finally:
            if collects:
                gc.enable()


def _copy_into(own: tuple[Tensor, ...], given: tuple[Tensor, ...]) -> None:
    """All of them in one call."""
    with torch.no_grad():
        torch._foreach_copy_(list(own), list(given))


def _clone_all(own: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    found = tuple(torch.empty_like(each) for each in own)
    _copy_into(found, own)
    return found


def vector_jacobian_products(
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


class GraphReplay(torch.autograd.Function):
    """A recording as an operation; second derivatives, tangents and batches go through the function itself."""

    @staticmethod
    @cache_signature
    def forward(recording: CapturedGraph, *given: Tensor) -> tuple[Tensor, ...]:
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
            return (None, *vector_jacobian_products(ctx.recording.make(*given), given, weights, again=True))
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
    def vmap(_: Any, in_dims: tuple[Any, ...], recording: CapturedGraph, *given: Tensor) -> tuple[Any, Any]:
        """The function itself, for each."""
        made = torch.func.vmap(recording.make, in_dims=tuple(in_dims[1:]))(*given)
        return made, tuple(0 for _ in made)


# MERGED ltinet.torch.cuda_graphs
# The recordings of a model on a GPU: made when the same kernels are asked for a third time, and the last few kept.

_CALLS_BEFORE_CAPTURE = 2  # a recording takes as long as some tens of calls: one that is used once or twice is not made
_MAX_GRAPHS = 4  # each holds the memory of what it computes
_MAX_COUNTED_KEYS = 1000


@final
class CudaGraphCache:
    """Recordings by what they depend on; a copy of a model begins without any."""

    def __init__(self) -> None:
        self._kept: dict[Any, tuple[CapturedGraph, Any]] = {}
        self._calls: Counter[Any] = Counter()
        self.failure: str | None = None
        """Why recording was given up: kernels are then made call by call."""

    def kernels(self, key: Any, make: Callable[..., Kernels], given: tuple[Tensor, ...]) -> Kernels | None:
        """Kernels made by a recording, or None while there is none."""
        if key not in self._kept:
            self._calls[key] += 1
            if len(self._calls) > _MAX_COUNTED_KEYS:
                self._calls.clear()
            if self.failure is not None or self._calls[key] <= _CALLS_BEFORE_CAPTURE:
                return None
            self._record(key, make, given)
        if key not in self._kept:
            return None
        recording, spec = self._kept[key]
        made: Kernels = _pytree.tree_unflatten(list(GraphReplay.apply(recording, *given)), spec)
        return made

    def _record(self, key: Any, make: Callable[..., Kernels], given: tuple[Tensor, ...]) -> None:
        found: list[Any] = []

        def flat(*own: Tensor) -> tuple[Tensor, ...]:
            leaves, spec = _pytree.tree_flatten(make(*own))
            found[:] = [spec]
            return tuple(leaves)

        try:
            recording = CapturedGraph(flat, given)
        except RuntimeError as error:
            self.failure = str(error)
            return
        while len(self._kept) >= _MAX_GRAPHS:
            self._kept.pop(next(iter(self._kept)))
        self._kept[key] = recording, found[0]

    def __deepcopy__(self, memo: Any) -> "CudaGraphCache":
        return CudaGraphCache()

    def __reduce__(self) -> tuple[type["CudaGraphCache"], tuple[()]]:
        return CudaGraphCache, ()


def can_capture(parameters: list[Any], plan: Plan) -> bool:
    """Whether kernels may come from a recording: plain parameters on a GPU, outside of transforms and recordings."""
    return (
        plan.way != "steps"
        and all(type(own) is torch.nn.Parameter and own.is_cuda for own in parameters)
        and not torch._C._are_functorch_transforms_active()
        and not torch.cuda.is_current_stream_capturing()
    )


def graph_key(plan: Plan, steps: int, dtype: torch.dtype) -> tuple[Any, ...]:
    """What kernels of a plan depend on beside the network: the length of a record, or its rest, or nothing."""
    if plan.way == "scan":
        return plan.way, dtype
    if plan.way == "convolution":
        return plan.way, dtype, steps
    width = min(plan.width, steps)
    return plan.way, dtype, width, steps % width
