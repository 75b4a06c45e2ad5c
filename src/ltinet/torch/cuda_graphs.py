"""CUDA graphs that compute kernels from parameters in one call, and their cache.

Building kernels takes hundreds of operations of microseconds each, of which PyTorch needs about ten microseconds to
launch one. They are captured once and then replayed. A CUDA graph has its own memory, which each replay overwrites:
inputs are copied in and outputs are copied out, and a backward pass that does not directly follow its own forward pass
replays that first. A model captures a graph when the same kernels are requested for the third time, and keeps the most
recent graphs only.
"""

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, final

import torch
from torch import Tensor
from torch.utils import _pytree

from ltinet.torch.exponentials import cache_signature
from ltinet.torch.parameters import n_block_sizes
from ltinet.torch.planner import Plan

TensorFunction = Callable[..., tuple[Tensor, ...]]
"""Function of tensors that does not branch on their values."""
Kernels = TypeVar("Kernels")
_WARM_UP_CALLS = 3  # calls before a capture, in which libraries initialize themselves
_CALLS_BEFORE_CAPTURE = 2  # a capture takes as long as some tens of calls
_MAX_GRAPHS = 4  # each holds the memory of its computation
_MAX_COUNTED_KEYS = 1000


class CapturedGraph:
    """Forward and backward pass of a function at tensors of fixed shapes, as CUDA graphs."""

    def __init__(self, function: TensorFunction, arguments: tuple[Tensor, ...]) -> None:
        self.function = function
        self.run = 0
        """Number of forward passes."""
        self._intact_run = 0  # forward pass whose intermediate results are still in the memory of the graph
        with torch.inference_mode(False), torch.enable_grad():
            self._inputs = tuple(values.detach().clone().requires_grad_() for values in arguments)
            self._warm_up()
            self._forward, self._backward = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
            with _capture(self._forward):
                outputs = function(*self._inputs)
            self._output_grads = tuple(torch.zeros_like(values) for values in outputs)
            with _capture(self._backward, pool=self._forward.pool()):
                self._input_grads = vector_jacobian_products(outputs, self._inputs, self._output_grads)
            self._outputs = tuple(values.detach() for values in outputs)

    def forward(self, arguments: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Return the values of the function."""
        _copy(arguments, self._inputs)
        self._forward.replay()
        self.run += 1
        self._intact_run = self.run
        return _clone_all(self._outputs)

    def backward(
        self, arguments: tuple[Tensor, ...], output_grads: tuple[Tensor, ...], *, run: int
    ) -> tuple[Tensor | None, ...]:
        """Return the gradients of the arguments of a run, None for those on which no output depends."""
        if self._intact_run != run:
            _copy(arguments, self._inputs)
            self._forward.replay()
        _copy(output_grads, self._output_grads)
        self._backward.replay()
        self._intact_run = 0  # the backward pass overwrites intermediate results
        grads = iter(_clone_all(tuple(grad for grad in self._input_grads if grad is not None)))
        return tuple(None if grad is None else next(grads) for grad in self._input_grads)

    def _warm_up(self) -> None:
        """Call the function on a side stream, as captures do."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP_CALLS):
                outputs = self.function(*self._inputs)
                vector_jacobian_products(outputs, self._inputs, tuple(torch.zeros_like(values) for values in outputs))
        torch.cuda.current_stream().wait_stream(stream)


@contextmanager
def _capture(graph: Any, pool: Any = None) -> Iterator[None]:
    """Capture the enclosed calls without garbage collection: destroying another graph would break the capture."""
    collects = gc.isenabled()
    with torch.cuda.graph(graph, pool=pool):
        gc.disable()
        try:
            yield
        finally:
            if collects:
                gc.enable()


def _copy(source: tuple[Tensor, ...], target: tuple[Tensor, ...]) -> None:
    """Copy all tensors in one call."""
    with torch.no_grad():
        torch._foreach_copy_(list(target), list(source))


def _clone_all(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    copies = tuple(torch.empty_like(values) for values in tensors)
    _copy(tensors, copies)
    return copies


def vector_jacobian_products(
    outputs: tuple[Tensor, ...],
    inputs: tuple[Tensor, ...],
    output_grads: tuple[Tensor, ...],
    *,
    create_graph: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of the inputs of a function, None for those that have no gradient."""
    pairs = [(values, grad) for values, grad in zip(outputs, output_grads, strict=True) if values.requires_grad]
    dependent, along = [values for values, _ in pairs], [grad for _, grad in pairs]
    required = [values for values in inputs if values.requires_grad]
    grads = iter(torch.autograd.grad(dependent, required, along, create_graph=create_graph, allow_unused=True))
    return tuple(next(grads) if values.requires_grad else None for values in inputs)


class GraphReplay(torch.autograd.Function):
    """Replay of a captured graph; second derivatives, tangents and vmap use the function itself."""

    @staticmethod
    @cache_signature
    def forward(graph: CapturedGraph, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Replay the forward pass."""
        return graph.forward(inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:  # noqa: ARG004 - the signature is PyTorch's
        """Save the inputs; PyTorch then rejects a backward pass after they were changed."""
        ctx.graph, ctx.run = inputs[0], inputs[0].run
        ctx.save_for_backward(*inputs[1:])
        ctx.save_for_forward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, *output_grads: Tensor) -> tuple[Any, ...]:
        """Replay the backward pass, or call the function if the gradients must be differentiable."""
        inputs = ctx.saved_tensors
        if torch.is_grad_enabled():
            outputs = ctx.graph.function(*inputs)
            return (None, *vector_jacobian_products(outputs, inputs, output_grads, create_graph=True))
        return (None, *ctx.graph.backward(inputs, output_grads, run=ctx.run))

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Tensor | None) -> tuple[Tensor, ...]:
        """Return the tangents of the outputs."""
        inputs = ctx.saved_tensors
        pairs = zip(inputs, tangents, strict=True)
        directions = tuple(torch.zeros_like(values) if tangent is None else tangent for values, tangent in pairs)
        output_tangents: tuple[Tensor, ...] = torch.func.jvp(ctx.graph.function, inputs, directions)[1]
        return output_tangents

    @staticmethod
    def vmap(_: Any, in_dims: tuple[Any, ...], graph: CapturedGraph, *inputs: Tensor) -> tuple[Any, Any]:
        """Map the function itself."""
        outputs = torch.func.vmap(graph.function, in_dims=tuple(in_dims[1:]))(*inputs)
        return outputs, tuple(0 for _ in outputs)


@final
class CudaGraphCache:
    """Captured graphs of a model by the quantities that they depend on; a copy of a model begins with none."""

    def __init__(self) -> None:
        self._graphs: dict[Any, tuple[CapturedGraph, Any]] = {}
        self._calls: Counter[Any] = Counter()
        self.failure: str | None = None
        """Error of the capture that failed, after which kernels are computed without graphs."""

    def kernels(
        self,
        key: tuple[Any, ...],
        build: Callable[[dict[str, Tensor]], Kernels],
        parameters: dict[str, Tensor],
        constants: dict[str, Tensor],
    ) -> Kernels | None:
        """Return the kernels that `build` computes from tensors by name; None where they are computed without a graph.

        These are the first calls for a key, and systems with coupled blocks, whose exponentials branch on values.
        """
        if n_block_sizes(constants) or not can_capture(parameters.values()):
            return None
        key = (*key, *map(id, constants.values()))
        inputs = tuple(parameters.values())
        if key not in self._graphs:
            self._calls[key] += 1
            if len(self._calls) > _MAX_COUNTED_KEYS:
                self._calls.clear()
            if self.failure is not None or self._calls[key] <= _CALLS_BEFORE_CAPTURE:
                return None
            self._capture(
                key, lambda *values: build({**dict(zip(parameters, values, strict=True)), **constants}), inputs
            )
        if key not in self._graphs:
            return None
        graph, spec = self._graphs[key]
        kernels: Kernels = _pytree.tree_unflatten(list(GraphReplay.apply(graph, *inputs)), spec)
        return kernels

    def _capture(self, key: Any, function: Callable[..., Kernels], inputs: tuple[Tensor, ...]) -> None:
        spec: Any = None

        def flat(*values: Tensor) -> tuple[Tensor, ...]:
            nonlocal spec
            leaves, spec = _pytree.tree_flatten(function(*values))
            return tuple(leaves)

        try:
            graph = CapturedGraph(flat, inputs)
        except RuntimeError as error:
            self.failure = str(error)
            return
        if len(self._graphs) >= _MAX_GRAPHS:
            self._graphs.pop(next(iter(self._graphs)))
            self._calls.clear()  # otherwise each of many keys in turn would be captured again in every call
        self._graphs[key] = graph, spec

    def __reduce__(self) -> tuple[type["CudaGraphCache"], tuple[()]]:
        return CudaGraphCache, ()


def can_capture(parameters: Iterable[Tensor]) -> bool:
    """Return True for plain parameters on a GPU outside of transforms and captures."""
    return (
        all(type(values) is torch.nn.Parameter and values.is_cuda for values in parameters)
        and not torch._C._are_functorch_transforms_active()
        and not torch.cuda.is_current_stream_capturing()
    )


def graph_key(plan: Plan, steps: int, dtype: torch.dtype) -> tuple[Any, ...]:
    """Return the quantities other than the network on which the kernels of a plan depend."""
    if plan.algorithm == "scan":
        return plan.algorithm, dtype
    if plan.algorithm == "convolution":
        return plan.algorithm, dtype, steps
    width = min(plan.width, steps)
    return plan.algorithm, dtype, width, steps % width
