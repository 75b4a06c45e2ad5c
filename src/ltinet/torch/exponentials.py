"""Matrix exponentials and φ-functions of tensors, with derivatives.

φ₁(z) = (eᶻ − 1)/z and φ₂(z) = (φ₁(z) − 1)/z of complex pairs z = x ± iy and of reals, as one operation with the
hand-written derivative φₖ′ = φₖ − k φₖ₊₁; the derivative that automatic differentiation finds takes about a hundred
operations and is infinite at z = 0. Equal to `ltinet.simulation` in NumPy.

e^M, φ₁(M) and φ₂(M) of square matrices come from a Taylor series of M/2ˢ, ended at M¹⁹/21! (below rounding for a norm
of one), and s doublings. `torch.matrix_exp` chooses too low a degree at some norms (error 2e-11 in PyTorch 2.13,
float64). Doublings act on E = e^M − 1, which becomes 2 E + E² and keeps digits of its own size; rounding 1 + E and
squaring would lose s bits of slow states beside fast ones (N. J. Higham, Functions of Matrices, 2008, section 10.3).
Where ‖e^M‖ ≤ ½, squaring e^M itself no longer amplifies its error. States are first scaled by powers of two, so that
the number of doublings does not depend on the units of the states.
"""

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from ltinet._util.floating_point import balancing_units

Forward = TypeVar("Forward", bound=Callable[..., Any])
_SERIES_RADIUS = 1.0  # |z| below which φₖ comes from a Taylor series, because (φₖ − 1/k!)/z would cancel
_ROWS, _COLUMNS = 5, 4  # coefficients: twenty terms, below rounding for |z| ≤ 1
_MAX_DOUBLINGS = 1100  # covers the whole range of doubles
_FIXED_DOUBLINGS = 40  # for norms up to 1e12, where torch.func.vmap hides the values


def cache_signature(forward: Forward) -> Forward:
    """Store the signature of a forward function: PyTorch inspects it in every call, which takes 50 µs."""
    forward.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]
    return forward


# Scalars


class ComplexPair(NamedTuple):
    """Complex numbers as their real and imaginary parts."""

    re: Tensor
    im: Tensor


def pair_phi(x: Tensor, y: Tensor, *, count: int = 2) -> tuple[ComplexPair, ...]:
    """Compute φ₁ … φ_count of x + iy."""
    re, im = _Phi.apply(count, x, y)
    return tuple(ComplexPair(re[k], im[k]) for k in range(count))


class _Phi(torch.autograd.Function):
    """φ₁ … φ_{n+1} as real and imaginary parts; the last serves the derivatives of the others and has none itself."""

    generate_vmap_rule = True

    @staticmethod
    @cache_signature
    def forward(n: int, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        values = _phi_values(n + 1, x, y)
        return values.real.contiguous(), values.imag.contiguous()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.n = inputs[0]
        ctx.save_for_backward(*inputs[1:], *output)
        ctx.save_for_forward(*inputs[1:], *output)

    @staticmethod
    def backward(ctx: Any, grad_re: Tensor, grad_im: Tensor) -> tuple[None, Tensor, Tensor]:
        """Apply the Cauchy–Riemann equations: ∂ Re f/∂x = Re f′ = ∂ Im f/∂y and ∂ Im f/∂x = Im f′ = −∂ Re f/∂y."""
        x, y, re, im = ctx.saved_tensors
        if torch.is_grad_enabled():  # differentiable again with one more function
            re, im = (values[: ctx.n + 1] for values in _Phi.apply(ctx.n + 1, x, y))
        slope_re, slope_im = _phi_derivatives(re), _phi_derivatives(im)
        grad_re, grad_im = grad_re[: ctx.n], grad_im[: ctx.n]
        grad_x, grad_y = grad_re * slope_re + grad_im * slope_im, grad_im * slope_re - grad_re * slope_im
        return None, grad_x.sum(0), grad_y.sum(0)

    @staticmethod
    def jvp(ctx: Any, _: None, along_x: Tensor, along_y: Tensor) -> tuple[Tensor, Tensor]:
        _, _, re, im = ctx.saved_tensors
        slope_re, slope_im = _phi_derivatives(re), _phi_derivatives(im)
        last = torch.zeros_like(re[:1])
        tangent_re = slope_re * along_x - slope_im * along_y
        tangent_im = slope_im * along_x + slope_re * along_y
        return torch.cat([tangent_re, last]), torch.cat([tangent_im, last])


def _phi_derivatives(values: Tensor) -> Tensor:
    """Return φₖ′ = φₖ − k φₖ₊₁ for all k but the last."""
    n = len(values) - 1
    k = torch.arange(1, n + 1, dtype=values.dtype, device=values.device).view(-1, *(1 for _ in values.shape[1:]))
    return values[:-1] - k * values[1:]


def _phi_values(count: int, x: Tensor, y: Tensor) -> Tensor:
    """Return φ₁ … φ_count, `(count, …)`, as complex numbers.

    φₖ = 1/k! + z φₖ₊₁ is applied downwards from a series near zero, and upwards from φ₁ elsewhere.
    """
    small = x * x + y * y < _SERIES_RADIUS
    z = torch.complex(x, y)
    near, far = torch.where(small, z, 0.0), torch.where(small, 1.0, z)
    downwards, upwards = [_scalar_series(near, count)], [_complex_expm1(far) / far]
    for k in range(count - 1, 0, -1):
        downwards.append(1.0 / math.factorial(k) + near * downwards[-1])
    for k in range(1, count):
        upwards.append((upwards[-1] - 1.0 / math.factorial(k)) / far)
    return torch.where(small, torch.stack(downwards[::-1]), torch.stack(upwards))


def _complex_expm1(z: Tensor) -> Tensor:
    """Return eᶻ − 1 without cancellation: expm1(x) cos y − 2 sin²(y/2) + i eˣ sin y."""
    x, y = z.real, z.imag
    half = torch.sin(0.5 * y)
    return torch.complex(torch.expm1(x) * torch.cos(y) - 2.0 * half * half, torch.exp(x) * torch.sin(y))


def _scalar_series(z: Tensor, order: int) -> Tensor:
    """Evaluate Σ zᵏ/(k + order)!: rows of four terms with powers 1, z, z², z³, then Horner's rule in z⁴."""
    square = z * z
    powers = torch.stack([torch.ones_like(z), z, square, square * z], -1)
    rows = powers @ _coefficients(order, z.dtype, z.device)
    fourth = square * square
    total = rows[..., -1]
    for row in range(_ROWS - 2, -1, -1):
        total = rows[..., row] + total * fourth
    return total


def _coefficients(order: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return 1/(k + order)! for k = row · _COLUMNS + column, `(_COLUMNS, _ROWS)`; k + order ≥ 1.

    Computed on the device: a copy to a GPU synchronizes it and cannot be captured in a CUDA graph. A cached tensor would
    outlive the tracing of `torch.export`, whose tensors have no values.
    """
    factorials = torch.arange(1, _ROWS * _COLUMNS + order, dtype=dtype.to_real(), device=device).cumprod(0)
    return factorials[order - 1 :].reciprocal().to(dtype).view(_ROWS, _COLUMNS).mT


# Matrices

_COEFFICIENTS = [[1.0 / math.factorial(4 * row + column + 2) for column in range(4)] for row in range(5)]


def matrix_exponential(M: Tensor) -> Tensor:
    """Compute e^M for matrices `(…, k, k)`. Cost 9 + s products."""
    return matrix_phi(M, with_phi=False)[0]


def matrix_phi(M: Tensor, *, with_phi: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Compute e^M, φ₁(M) and φ₂(M) for matrices `(…, k, k)`; the latter two are not doubled without `with_phi`.

    Doublings use φ₁(2z) = φ₁(z)(1 + E/2) and φ₂(2z) = (φ₁(z)² + 2 φ₂(z))/4. Cost 9 + 3 s products.
    """
    units = _scaling_units(M)
    M = M * units
    doublings, max_doublings = _n_doublings(M)
    identity = torch.eye(M.shape[-1], dtype=M.dtype, device=M.device)
    scaled = M * torch.exp2(-doublings)
    second = _phi2_series(scaled, identity)
    first = identity + scaled @ second
    E = scaled @ first
    power = _MatrixExponential(E, identity + E)
    for count in range(max_doublings):
        is_active = doublings > count
        if with_phi:
            second = torch.where(is_active, 0.25 * (first @ first + 2.0 * second), second)
            first = torch.where(is_active, first + 0.5 * (power.E @ first), first)
        power = _double(power, identity, is_active)
    return power.full / units, first / units, second / units


class _MatrixExponential(NamedTuple):
    """E = e^M − 1 and e^M, stored both because each may have digits that the other has lost."""

    E: Tensor
    full: Tensor


def _double(power: _MatrixExponential, identity: Tensor, is_active: Tensor) -> _MatrixExponential:
    """Return the exponential of 2 M for the active matrices; cost one product."""
    E, full = power
    decayed = _norm(full) <= 0.5
    factor = torch.where(decayed, full, E)
    square = factor @ factor
    E_doubled = torch.where(decayed, square - identity, 2.0 * E + square)
    full_doubled = torch.where(decayed, square, identity + E_doubled)
    return _MatrixExponential(torch.where(is_active, E_doubled, E), torch.where(is_active, full_doubled, full))


def _scaling_units(M: Tensor) -> Tensor:
    """Return the units of the columns over those of the rows, `(k, k)`, for all matrices; 1 if none needs doublings."""
    sizes, one = M.detach().abs(), torch.ones((), dtype=M.dtype, device=M.device)
    norms = sizes.sum(-2, keepdim=True).amax(-1, keepdim=True)
    try:
        if not M.numel() or not bool((norms > 1.0).any()) or not bool(torch.isfinite(norms).all()):
            return one
        shapes = (sizes / torch.where(norms > 0.0, norms, one)).reshape(-1, *M.shape[-2:]).amax(0)
        units = balancing_units(shapes.double().cpu().numpy())
    except RuntimeError:  # values are not available inside torch.func.vmap
        return one
    scale = torch.as_tensor(units, dtype=M.dtype, device=M.device)
    ratios = scale / scale[:, None]
    return ratios if bool(torch.isfinite(ratios).all() & (ratios > 0.0).all()) else one


def _phi2_series(M: Tensor, identity: Tensor) -> Tensor:
    """Compute φ₂ of matrices of norm at most one: rows of four terms with 1, M, M², M³, then Horner's rule in M⁴."""
    square = M @ M
    powers = (identity, M, square, square @ M)
    fourth = square @ square
    rows = [sum(c * power for c, power in zip(row, powers, strict=True)) for row in _COEFFICIENTS]
    total = rows[-1]
    for row in rows[-2::-1]:
        total = total @ fourth + row
    return total


def _n_doublings(M: Tensor) -> tuple[Tensor, int]:
    """Return the number of halvings that bring the norm of each matrix to one, `(…, 1, 1)`, and its maximum."""
    doublings = torch.ceil(torch.log2(_norm(M).clamp(1.0, torch.finfo(M.dtype).max)))
    try:
        max_doublings = int(doublings.max()) if doublings.numel() else 0
    except RuntimeError:  # values are not available inside torch.func.vmap
        return doublings, _FIXED_DOUBLINGS
    return doublings, min(max_doublings, _MAX_DOUBLINGS)


def _norm(M: Tensor) -> Tensor:
    """Return the 1-norm, `(…, 1, 1)`, without derivatives."""
    return M.detach().abs().sum(-2, keepdim=True).amax(-1, keepdim=True)
