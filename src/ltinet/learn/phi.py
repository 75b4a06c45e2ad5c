"""φ₁(z) = (eᶻ − 1)/z and φ₂(z) = (φ₁(z) − 1)/z of pairs z = x ± iy, and of reals with y = 0.

Equal to `ltinet.solve.steps.propagators.phi_functions`. One operation with derivatives of its own, φₖ′ = φₖ − k φₖ₊₁:
those that PyTorch would find have some hundred steps, and are infinite at z = 0.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ltinet.learn.signed_once import signed_once

_SMALL = 1.0  # |z| below which they come from a Taylor series: subtractions in (φₖ − 1/k!)/z would lose digits
_ROWS, _COLUMNS = 5, 4  # of coefficients: twenty terms, below rounding for |z| ≤ 1


class PairNumber(NamedTuple):
    """Complex numbers by their real and imaginary parts."""

    re: Tensor
    im: Tensor


def pair_phi(x: Tensor, y: Tensor) -> tuple[PairNumber, PairNumber]:
    """φ₁ and φ₂ of x + iy."""
    re, im = _Phi.apply(2, x, y)
    return PairNumber(re[0], im[0]), PairNumber(re[1], im[1])


class _Phi(torch.autograd.Function):
    """φ₁ … φ_{n+1}, each by its parts; the last one is there for derivatives of the others, and has none itself."""

    generate_vmap_rule = True

    @staticmethod
    @signed_once
    def forward(n: int, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        values = _values(n + 1, x, y)
        return values.real.contiguous(), values.imag.contiguous()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.n = inputs[0]
        ctx.save_for_backward(*inputs[1:], *output)
        ctx.save_for_forward(*inputs[1:], *output)

    @staticmethod
    def backward(ctx: Any, grad_re: Tensor, grad_im: Tensor) -> tuple[None, Tensor, Tensor]:
        """Of a holomorphic f: ∂ Re f/∂x = Re f′ = ∂ Im f/∂y and ∂ Im f/∂x = Im f′ = −∂ Re f/∂y."""
        x, y, re, im = ctx.saved_tensors
        if torch.is_grad_enabled():  # to be differentiated again: with one function more
            re, im = (own[: ctx.n + 1] for own in _Phi.apply(ctx.n + 1, x, y))
        slope_re, slope_im = _slopes(re), _slopes(im)
        grad_re, grad_im = grad_re[: ctx.n], grad_im[: ctx.n]
        return (
            None,
            (grad_re * slope_re + grad_im * slope_im).sum(0),
            (grad_im * slope_re - grad_re * slope_im).sum(0),
        )

    @staticmethod
    def jvp(ctx: Any, _: None, along_x: Tensor, along_y: Tensor) -> tuple[Tensor, Tensor]:
        _, _, re, im = ctx.saved_tensors
        slope_re, slope_im = _slopes(re), _slopes(im)
        last = torch.zeros_like(re[:1])
        moved_re = slope_re * along_x - slope_im * along_y
        moved_im = slope_im * along_x + slope_re * along_y
        return torch.cat([moved_re, last]), torch.cat([moved_im, last])


def _slopes(values: Tensor) -> Tensor:
    """φₖ − k φₖ₊₁ for all k but the last."""
    n = len(values) - 1
    k = torch.arange(1, n + 1, dtype=values.dtype, device=values.device).view(-1, *(1 for _ in values.shape[1:]))
    return values[:-1] - k * values[1:]


def _values(count: int, x: Tensor, y: Tensor) -> Tensor:
    """φ₁ … φ_count, `(count, …)`, as complex numbers."""
    small = x * x + y * y < _SMALL
    z = torch.complex(x, y)
    near, far = torch.where(small, z, 0.0), torch.where(small, 1.0, z)
    downwards, upwards = [_series(near, count)], [_less_one(far) / far]
    for k in range(count - 1, 0, -1):
        downwards.append(1.0 / math.factorial(k) + near * downwards[-1])
    for k in range(1, count):
        upwards.append((upwards[-1] - 1.0 / math.factorial(k)) / far)
    return torch.where(small, torch.stack(downwards[::-1]), torch.stack(upwards))


def _less_one(z: Tensor) -> Tensor:
    """eᶻ − 1 without the digits that the subtraction would take."""
    x, y = z.real, z.imag
    half = torch.sin(0.5 * y)
    return torch.complex(torch.expm1(x) * torch.cos(y) - 2.0 * half * half, torch.exp(x) * torch.sin(y))


def _series(z: Tensor, order: int) -> Tensor:
    """Σ zᵏ/(k + order)!: rows of four terms with powers 1, z, z², z³, then Horner's rule in z⁴."""
    square = z * z
    powers = torch.stack([torch.ones_like(z), z, square, square * z], -1)
    rows = powers @ _coefficients(order, z.dtype, z.device)
    fourth = square * square
    total = rows[..., -1]
    for row in range(_ROWS - 2, -1, -1):
        total = rows[..., row] + total * fourth
    return total


@cache
def _coefficients(order: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Once for each device: a copy to a GPU makes it wait, and cannot be recorded."""
    terms = [
        [1.0 / math.factorial(_COLUMNS * row + column + order) for row in range(_ROWS)] for column in range(_COLUMNS)
    ]
    with torch.inference_mode(False):
        return torch.tensor(terms, dtype=dtype, device=device)
