"""e^M, φ₁(M) and φ₂(M) of square matrices: a Taylor series of M/2ˢ, then s doublings.

PyTorch's own exponential chooses too low a degree at some norms and is off by 2e-11 there (2.13, float64). The series
here ends at M¹⁹/21!, below rounding for a norm of one.

Rounding e^M = 1 + E loses the digits of E that are below those of 1, and squaring doubles that error each time: beside
fast states, whose norm decides s, slow ones would lose the last s bits of their E. Doublings are therefore those of E,
which becomes 2 E + E² and keeps digits of its own size (N. J. Higham, Functions of Matrices, 2008, section 10.3, on
halving too often). Where ‖e^M‖ ≤ ½, squaring no longer increases its error, at most 2 ‖e^M‖ times the one before, and
what is left of e^M keeps digits of its own size by that.

Where states are in units that are decades apart, norms tell of units, and doublings that only these call for cost
digits: matrices are halved and doubled in units that suit them, powers of two that cost no digit there and back.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ltinet.bounds.units import best_units

_COEFFICIENTS = [[1.0 / math.factorial(4 * row + column + 2) for column in range(4)] for row in range(5)]
_MOST_DOUBLINGS = 1100  # beyond the largest double there is nothing to halve
_BLIND_DOUBLINGS = 40  # where values cannot be looked at: norms up to 1e12


def matrix_phi(M: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """e^M, φ₁(M) and φ₂(M) for matrices `(…, k, k)`.

    φ₁(2z) = φ₁(z)(1 + E/2) and φ₂(2z) = (φ₁(z)² + 2 φ₂(z))/4. Cost 9 + 3 s products.
    """
    units = _units(M)
    M = M * units
    doublings, most = _n_doublings(M)
    identity = torch.eye(M.shape[-1], dtype=M.dtype, device=M.device)
    small = M * torch.exp2(-doublings)
    second = _series(small, identity)
    first = identity + small @ second
    power = _Power(less_one=small @ first, whole=identity + small @ first)
    for count in range(most):
        goes_on = doublings > count
        second = torch.where(goes_on, 0.25 * (first @ first + 2.0 * second), second)
        first = torch.where(goes_on, first + 0.5 * (power.less_one @ first), first)
        power = _doubled(power, identity, goes_on)
    return power.whole / units, first / units, second / units


def matrix_exponential(M: Tensor) -> Tensor:
    """e^M alone. Cost 9 + s products."""
    units = _units(M)
    M = M * units
    doublings, most = _n_doublings(M)
    identity = torch.eye(M.shape[-1], dtype=M.dtype, device=M.device)
    small = M * torch.exp2(-doublings)
    less_one = small @ (identity + small @ _series(small, identity))
    power = _Power(less_one, identity + less_one)
    for count in range(most):
        power = _doubled(power, identity, doublings > count)
    return power.whole / units


class _Power(NamedTuple):
    """E = e^M − 1 and e^M, of which one may have digits that the other has not."""

    less_one: Tensor
    whole: Tensor


def _doubled(power: _Power, identity: Tensor, goes_on: Tensor) -> _Power:
    """The same of 2 M, for the matrices that go on; cost one product."""
    E, whole = power
    decayed = _norm(whole) <= 0.5
    factor = torch.where(decayed, whole, E)
    square = factor @ factor
    less_one = torch.where(decayed, square - identity, 2.0 * E + square)
    return _Power(
        torch.where(goes_on, less_one, E),
        torch.where(goes_on, torch.where(decayed, square, identity + less_one), whole),
    )


def _units(M: Tensor) -> Tensor:
    """Units of the columns over those of the rows, `(k, k)`, the same for all matrices; 1 where none need doubling."""
    sizes, none = M.detach().abs(), torch.ones((), dtype=M.dtype, device=M.device)
    norms = sizes.sum(-2, keepdim=True).amax(-1, keepdim=True)
    try:
        if not M.numel() or not bool((norms > 1.0).any()) or not bool(torch.isfinite(norms).all()):
            return none
        shapes = (sizes / torch.where(norms > 0.0, norms, none)).reshape(-1, *M.shape[-2:]).amax(0)
        units = best_units(shapes.double().cpu().numpy())
    except RuntimeError:  # within torch.func.vmap values cannot be asked for
        return none
    scale = torch.as_tensor(units, dtype=M.dtype, device=M.device)
    ratios = scale / scale[:, None]
    return ratios if bool(torch.isfinite(ratios).all() & (ratios > 0.0).all()) else none


def _series(M: Tensor, identity: Tensor) -> Tensor:
    """φ₂ of matrices of norm one at most: rows of four terms with 1, M, M², M³, then Horner's rule in M⁴."""
    square = M @ M
    powers = (identity, M, square, square @ M)
    fourth = square @ square
    rows = [sum(c * power for c, power in zip(row, powers, strict=True)) for row in _COEFFICIENTS]
    total = rows[-1]
    for row in rows[-2::-1]:
        total = total @ fourth + row
    return total


def _n_doublings(M: Tensor) -> tuple[Tensor, int]:
    """How often each matrix is halved until its norm is one, `(…, 1, 1)`, and the most of it."""
    doublings = torch.ceil(torch.log2(_norm(M).clamp(1.0, torch.finfo(M.dtype).max)))
    try:
        most = int(doublings.max()) if doublings.numel() else 0
    except RuntimeError:  # within torch.func.vmap values cannot be asked for
        return doublings, _BLIND_DOUBLINGS
    return doublings, min(most, _MOST_DOUBLINGS)


def _norm(M: Tensor) -> Tensor:
    """The largest sum of a column, `(…, 1, 1)`, as a number without derivatives."""
    return M.detach().abs().sum(-2, keepdim=True).amax(-1, keepdim=True)
