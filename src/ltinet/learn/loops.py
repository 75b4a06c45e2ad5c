"""A linear network whose last inputs are a static map of its last outputs, v = φ(ξ): the equations of its steps.

With w the state that awaits a sample: ξ = C_ξ w + d_u u + d_v φ(ξ), w⁺ = P w + Γ_u u + Γ_v φ(ξ). A linear hold makes
d_v small and not zero, so that ξ is found by Newton's method at each sample.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from ltinet.learn.one_step import OneStep

Map = Callable[[Tensor], Tensor]
_MOST = 30  # steps at a sample; three or four are taken
_SETTLED = 1e-14  # of the size of ξ


class Loop(NamedTuple):
    """The matrices of a step, split into what comes from outside and what is fed back."""

    P: Tensor
    Gamma_u: Tensor
    Gamma_v: Tensor
    C_y: Tensor
    C_xi: Tensor
    y_u: Tensor
    y_v: Tensor
    xi_u: Tensor
    xi_v: Tensor


def loop_of(step: OneStep, *, fed_back: int, seen: int) -> Loop:
    """The loop of a step whose last `fed_back` inputs are a map of its last `seen` outputs."""
    m, p = step.Gamma.shape[1] - fed_back, step.direct.shape[0] - seen
    identity = torch.eye(step.Gamma.shape[0], dtype=step.Gamma.dtype, device=step.Gamma.device)
    direct = step.direct
    return Loop(
        P=step.decay.times(identity).mT,
        Gamma_u=step.Gamma[:, :m],
        Gamma_v=step.Gamma[:, m:],
        C_y=step.system.C[:p],
        C_xi=step.system.C[p:],
        y_u=direct[:p, :m],
        y_v=direct[:p, m:],
        xi_u=direct[p:, :m],
        xi_v=direct[p:, m:],
    )


def settled(c: Tensor, xi_v: Tensor, fed: Map) -> Tensor:
    """ξ = c + d_v φ(ξ) for c `(…, r)`, without derivatives.

    By inserting ξ as long as that brings it nearer, which a small d_v makes fast, then by Newton's method.
    """
    if not bool(xi_v.any()):  # what is fed back comes a step later, as with a zero hold
        return c
    xi, last = c, math.inf
    for _ in range(_MOST):
        new = c + fed(xi) @ xi_v.mT
        change, xi = _still(new - xi, new), new
        if change == 0.0 or not change < 0.5 * last:
            break
        last = change
    for _ in range(0 if change == 0.0 else _MOST):
        correction = over(jacobian(xi, xi_v, fed), xi - c - fed(xi) @ xi_v.mT)
        xi = xi - correction
        if _still(correction, xi) == 0.0:
            break
    return xi


def _still(change: Tensor, xi: Tensor) -> float:
    """The largest change of all samples that have not settled, each by its own size; those that are lost have."""
    size = change.abs()
    beyond = size - _SETTLED * (1.0 + xi.abs())  # of infinities no number, and not positive
    return float(torch.where(beyond > 0.0, size, 0.0).max()) if size.numel() else 0.0


def slopes(xi: Tensor, fed: Map) -> Tensor:
    """∂φ/∂ξ at every sample, `(…, q, r)`: a map takes each sample by itself, so that one pass gives a row for all."""
    with torch.enable_grad():
        given = xi.detach().requires_grad_()
        v = fed(given)
        rows = [torch.autograd.grad(v[..., row].sum(), given, retain_graph=True)[0] for row in range(v.shape[-1])]
    return torch.stack(rows, -2)


def linearised(loop: Loop, xi: Tensor, fed: Map) -> Tensor:
    """∂w⁺/∂w at every sample, `(…, n, n)`: P + Γ_v M (1 − d_v M)⁻¹ C_ξ with M = ∂φ/∂ξ."""
    M = slopes(xi, fed)
    identity = torch.eye(xi.shape[-1], dtype=xi.dtype, device=xi.device)
    seen = torch.linalg.solve_ex(identity - loop.xi_v @ M, loop.C_xi.expand(*M.shape[:-2], -1, -1)).result
    return loop.P + loop.Gamma_v @ M @ seen


def seen_by_map(loop: Loop, w: Tensor, u: Tensor, fed: Map) -> Tensor:
    """ξ at samples, from the states that await them."""
    return settled(w @ loop.C_xi.mT + u @ loop.xi_u.mT, loop.xi_v, fed)


def advanced(loop: Loop, w: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """The states that await the next samples."""
    return w @ loop.P.mT + u @ loop.Gamma_u.mT + v @ loop.Gamma_v.mT


def outputs(loop: Loop, w: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """Y at samples."""
    return w @ loop.C_y.mT + u @ loop.y_u.mT + v @ loop.y_v.mT


def jacobian(xi: Tensor, xi_v: Tensor, fed: Map) -> Tensor:
    """1 − d_v ∂φ/∂ξ at every sample, `(…, r, r)`."""
    identity = torch.eye(xi.shape[-1], dtype=xi.dtype, device=xi.device)
    return identity - xi_v @ slopes(xi, fed)


def over(matrices: Tensor, vectors: Tensor) -> Tensor:
    """J⁻¹ v at every sample; where a matrix is singular the result is no number, which callers look for."""
    return torch.linalg.solve_ex(matrices, vectors.unsqueeze(-1)).result.squeeze(-1)
