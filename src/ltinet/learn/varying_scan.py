"""All states of x⁺ = A_k x + b_k with a matrix for every step, parallel in time, and derivatives by b and the start.

About √T chunks side by side: in each the product of its matrices and its own response, then the walk over the chunks,
then each chunk once more from its true start; 3 √T calls. Cost O(T n³), for the few states that feed back.
"""

import math
from typing import Any

import torch
from torch import Tensor


def scan_varying(A: Tensor, b: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """The states before each step `(B, T, n)` and after the last, from A `(B, T, n, n)`, b `(B, T, n)` and a start.

    A is a constant to derivatives: those who linearise about a solution have all of them in b.
    """
    states, end = _VaryingScan.apply(A, b, start)
    return states, end


class _VaryingScan(torch.autograd.Function):
    """With λ_T the gradient of the last state, λ_k = g_k + A_kᵀ λ_{k+1}: the gradient of b_k is λ_{k+1}."""

    @staticmethod
    def forward(A: Tensor, b: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
        return _walk(A, b, start)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, Tensor]) -> None:  # noqa: ARG004
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *given: Tensor
    ) -> tuple[tuple[Tensor, Tensor], tuple[int | None, int | None]]:
        """Those of all directions side by side."""
        if all(dim is None for dim in in_dims):
            return _VaryingScan.apply(*given), (None, None)
        both = zip(given, in_dims, strict=True)
        batches = [own.expand(info.batch_size, *own.shape) if dim is None else own.movedim(dim, 0) for own, dim in both]
        found = _VaryingScan.apply(*(own.flatten(0, 1) for own in batches))
        states, end = (own.unflatten(0, (info.batch_size, -1)) for own in found)
        return (states, end), (0, 0)

    @staticmethod
    def jvp(ctx: Any, _: Tensor | None, b: Tensor | None, start: Tensor | None) -> tuple[Tensor, Tensor]:
        (A,) = ctx.saved_tensors
        b = A.new_zeros(A.shape[:3]) if b is None else b
        return _walk(A, b, b.new_zeros(b.shape[::2]) if start is None else start)

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, grad_states: Tensor, grad_end: Tensor) -> tuple[None, Tensor, Tensor]:
        (A,) = ctx.saved_tensors
        later, first = _walk(A.flip(1).mT, grad_states.flip(1), grad_end)
        return None, later.flip(1), first


def _walk(A: Tensor, b: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    steps = b.shape[1]
    width = max(math.isqrt(steps), 1)
    count = steps // width
    whole = count * width
    A_chunks, b_chunks = A[:, :whole].unflatten(1, (count, width)), b[:, :whole].unflatten(1, (count, width))
    product, local = A_chunks[:, :, 0], b_chunks[:, :, 0]
    for step in range(1, width):
        own = A_chunks[:, :, step]
        product, local = own @ product, _moved(own, local) + b_chunks[:, :, step]
    starts, end = _one_by_one(product, local, start)
    states, _ = _one_by_one(A_chunks.transpose(1, 2), b_chunks.transpose(1, 2), starts)
    found = states.transpose(1, 2).flatten(1, 2)
    if whole == steps:
        return found, end
    rest, end = _one_by_one(A[:, whole:], b[:, whole:], end)
    return torch.cat([found, rest], 1), end


def _one_by_one(A: Tensor, b: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """Walk along the second axis, all after it side by side."""
    states, now = [], start
    for step in range(b.shape[1]):
        states.append(now)
        now = _moved(A[:, step], now) + b[:, step]
    return torch.stack(states, 1), now


def _moved(A: Tensor, states: Tensor) -> Tensor:
    return (A @ states.unsqueeze(-1)).squeeze(-1)
