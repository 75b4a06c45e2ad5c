"""φ₁(z) = (eᶻ − 1)/z and φ₂(z) = (φ₁(z) − 1)/z of pairs z = x ± iy, and of reals with y = 0, in real arithmetic.

Equal to `ltinet.solve.steps.propagators.phi_functions`, with derivatives that are finite at z = 0 too: of the two
expressions in a `torch.where` each sees only arguments at which it is good.
"""

import math
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

_SMALL = 1.0  # |z| below which φ₂ is a Taylor series: the subtraction in (φ₁ − 1)/z would lose digits
_COEFFICIENTS = [[1.0 / math.factorial(4 * row + column + 2) for column in range(4)] for row in range(5)]


class PairNumber(NamedTuple):
    """Complex numbers by their real and imaginary parts."""

    re: Tensor
    im: Tensor

    def __mul__(self, other: "PairNumber") -> "PairNumber":  # type: ignore[override]  # numbers, not a tuple
        return PairNumber(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def over(self, other: "PairNumber") -> "PairNumber":
        """The quotient; the caller keeps the divisor away from zero."""
        square = other.re * other.re + other.im * other.im
        number = self * PairNumber(other.re, -other.im)
        return PairNumber(number.re / square, number.im / square)


def pair_phi(x: Tensor, y: Tensor) -> tuple[PairNumber, PairNumber]:
    """φ₁ and φ₂ of x + iy."""
    small = x * x + y * y < _SMALL
    near = PairNumber(torch.where(small, x, 0.0), torch.where(small, y, 0.0))
    far = PairNumber(torch.where(small, 1.0, x), torch.where(small, 0.0, y))
    half = torch.sin(0.5 * far.im)
    less_one = PairNumber(
        torch.expm1(far.re) * torch.cos(far.im) - 2.0 * half * half, torch.exp(far.re) * torch.sin(far.im)
    )
    first = less_one.over(far)
    second = PairNumber(first.re - 1.0, first.im).over(far)
    second_near = _pair_series(near)
    first_near = near * second_near
    return (
        PairNumber(torch.where(small, 1.0 + first_near.re, first.re), torch.where(small, first_near.im, first.im)),
        PairNumber(torch.where(small, second_near.re, second.re), torch.where(small, second_near.im, second.im)),
    )


def _pair_series(z: PairNumber) -> PairNumber:
    """Σ zᵏ/(k+2)! to k = 19: rows of four terms with powers 1, z, z², z³, then Horner's rule in z⁴."""
    one = PairNumber(torch.ones_like(z.re), torch.zeros_like(z.re))
    square = z * z
    powers = [one, z, square, square * z]
    coefficients = _coefficients(z.re.dtype, z.re.device)
    rows_re = torch.stack([power.re for power in powers], -1) @ coefficients.T
    rows_im = torch.stack([power.im for power in powers], -1) @ coefficients.T
    fourth = square * square
    total = PairNumber(rows_re[..., -1], rows_im[..., -1])
    for row in range(len(_COEFFICIENTS) - 2, -1, -1):
        total = total * fourth
        total = PairNumber(total.re + rows_re[..., row], total.im + rows_im[..., row])
    return total


@cache
def _coefficients(dtype: torch.dtype, device: torch.device) -> Tensor:
    """Once for each device: a copy to a GPU makes it wait, and cannot be recorded."""
    with torch.inference_mode(False):
        return torch.tensor(_COEFFICIENTS, dtype=dtype, device=device)
