"""Equations of a linear network with a static map in its feedback loop, and their linearization.

The last inputs are v = φ(ξ), a static map of the last outputs ξ. With w the state before a sample,

    ξ = C_ξ w + d_u u + d_v φ(ξ),    w⁺ = P w + Γ_u u + Γ_v φ(ξ).

A linear hold makes d_v small but not zero, so that ξ is found by Newton's method at each sample. The linearized step is
∂w⁺/∂w = P + Γ_v M (1 − d_v M)⁻¹ C_ξ with M = ∂φ/∂ξ.

Derivatives of a solved trajectory are those of one further Newton step about it, with the solution taken as constant:
that step contains neither a loop nor a branch, so that forward, backward and higher derivatives pass through, and
repeated derivatives need one solution only.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, final

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ltinet.torch.propagators import OneStep
from ltinet.torch.scan import scan_time_varying

StaticMap = Callable[[Tensor], Tensor]
_MAX_ITERATIONS = 30  # iterations at a sample; three or four usually suffice
# Relative to 1 + |ξ|: 45 eps, a few roundings of c + d_v φ(ξ). For ξ̈ + 0.1 ξ̇ + ξ = u − 0.5 ξ³, steps of 0.1 and random u,
# tolerances of 1e-15 and 1e-13 change outputs by rounding only, and 1e-10 by 1e-13 of the peak.
_MAP_INPUT_TOLERANCE = 1e-14


class FeedbackLoop(NamedTuple):
    """Matrices of a step, split into those of external (u, y) and of static_map-back signals (v, ξ)."""

    P: Tensor
    Gamma_u: Tensor
    Gamma_v: Tensor
    C_y: Tensor
    C_xi: Tensor
    y_u: Tensor
    y_v: Tensor
    xi_u: Tensor
    xi_v: Tensor


def split_feedback(step: OneStep, *, n_map_inputs: int, n_map_outputs: int) -> FeedbackLoop:
    """Split the matrices of a step whose last inputs are a map of its last outputs."""
    m, p = step.Gamma.shape[1] - n_map_outputs, step.direct.shape[0] - n_map_inputs
    identity = torch.eye(step.Gamma.shape[0], dtype=step.Gamma.dtype, device=step.Gamma.device)
    direct = step.direct
    return FeedbackLoop(
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


def solve_map_input(c: Tensor, xi_v: Tensor, static_map: StaticMap) -> Tensor:
    """Solve ξ = c + d_v φ(ξ) for c `(…, r)`, without derivatives.

    Fixed-point iteration as long as it halves the change, which is fast for a small d_v, then Newton's method.
    """
    if not bool(xi_v.any()):  # no feedthrough around the loop, as with a zero hold
        return c
    xi, last_change = c, math.inf
    for _ in range(_MAX_ITERATIONS):
        new = c + static_map(xi) @ xi_v.mT
        change, xi = _largest_change(new - xi, new), new
        if change == 0.0 or not change < 0.5 * last_change:
            break
        last_change = change
    for _ in range(0 if change == 0.0 else _MAX_ITERATIONS):
        correction = solve_per_sample(algebraic_jacobian(xi, xi_v, static_map), xi - c - static_map(xi) @ xi_v.mT)
        xi = xi - correction
        if _largest_change(correction, xi) == 0.0:
            break
    return xi


def _largest_change(change: Tensor, xi: Tensor) -> float:
    """Return the largest change of the samples that have not converged; samples with infinities count as converged."""
    size = change.abs()
    excess = size - _MAP_INPUT_TOLERANCE * (1.0 + xi.abs())  # NaN for infinities, which compares as not positive
    return float(torch.where(excess > 0.0, size, 0.0).max()) if size.numel() else 0.0


def map_jacobian(xi: Tensor, static_map: StaticMap) -> Tensor:
    """Compute ∂φ/∂ξ at every sample, `(…, q, r)`.

    A map acts on each sample separately, so that one backward pass gives a row for all samples.
    """
    with torch.enable_grad():
        xi = xi.detach().requires_grad_()
        v = static_map(xi)
        rows = [torch.autograd.grad(v[..., row].sum(), xi, retain_graph=True)[0] for row in range(v.shape[-1])]
    return torch.stack(rows, -2)


def state_jacobian(loop: FeedbackLoop, xi: Tensor, static_map: StaticMap) -> Tensor:
    """Compute ∂w⁺/∂w at every sample, `(…, n, n)`: P + Γ_v M (1 − d_v M)⁻¹ C_ξ with M = ∂φ/∂ξ."""
    M = map_jacobian(xi, static_map)
    identity = torch.eye(xi.shape[-1], dtype=xi.dtype, device=xi.device)
    xi_of_w = torch.linalg.solve_ex(identity - loop.xi_v @ M, loop.C_xi.expand(*M.shape[:-2], -1, -1)).result
    return loop.P + loop.Gamma_v @ M @ xi_of_w


def map_input(loop: FeedbackLoop, w: Tensor, u: Tensor, static_map: StaticMap) -> Tensor:
    """Solve for ξ at samples u, from the states w before them."""
    return solve_map_input(w @ loop.C_xi.mT + u @ loop.xi_u.mT, loop.xi_v, static_map)


def advance_states(loop: FeedbackLoop, w: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """Return w⁺, the states before the next samples."""
    return w @ loop.P.mT + u @ loop.Gamma_u.mT + v @ loop.Gamma_v.mT


def algebraic_jacobian(xi: Tensor, xi_v: Tensor, static_map: StaticMap) -> Tensor:
    """Compute 1 − d_v ∂φ/∂ξ at every sample, `(…, r, r)`."""
    identity = torch.eye(xi.shape[-1], dtype=xi.dtype, device=xi.device)
    return identity - xi_v @ map_jacobian(xi, static_map)


def solve_per_sample(matrices: Tensor, vectors: Tensor) -> Tensor:
    """Compute J⁻¹ v at every sample; singular matrices give numbers that are not finite, which callers test for."""
    return torch.linalg.solve_ex(matrices, vectors.unsqueeze(-1)).result.squeeze(-1)


class LoopLinearization(NamedTuple):
    """Solution ξ* of ξ = c + d_v φ(ξ) at samples and J = 1 − d_v φ′(ξ*), constant to derivatives."""

    xi: Tensor
    jacobian: Tensor

    def evaluate(self, c: Tensor, xi_v: Tensor, static_map: StaticMap) -> Tensor:
        """Return ξ as a function of c, d_v and the map: ξ* − J⁻¹(ξ* − c − d_v φ(ξ*)), the implicit function at ξ*."""
        return self.xi - solve_per_sample(self.jacobian, self.xi - c - static_map(self.xi) @ xi_v.mT)


class LoopSolution(NamedTuple):
    """Solved trajectory and its linearization, constant to derivatives."""

    first: LoopLinearization | None
    """Map input at the first sample of a run that begins in x0 or at rest; None if it continues another."""
    states: Tensor
    """States w before each sample."""
    map_inputs: LoopLinearization
    A: Tensor
    """∂w⁺/∂w at each sample."""


def linearize_map_input(c: Tensor, xi_v: Tensor, static_map: StaticMap) -> LoopLinearization:
    """Solve ξ = c + d_v φ(ξ) for c `(…, r)` and linearize it there."""
    xi = solve_map_input(c, xi_v, static_map)
    return LoopLinearization(xi, algebraic_jacobian(xi, xi_v, static_map))


def linearize_trajectory(
    loop: FeedbackLoop, u: Tensor, states: Tensor, static_map: StaticMap, *, first: LoopLinearization | None
) -> LoopSolution:
    """Linearize the loop about the states of a solved trajectory."""
    map_inputs = linearize_map_input(states @ loop.C_xi.mT + u @ loop.xi_u.mT, loop.xi_v, static_map)
    return LoopSolution(first, states, map_inputs, state_jacobian(loop, map_inputs.xi, static_map))


def run_linearized(
    solution: LoopSolution, loop: FeedbackLoop, u: Tensor, start: Tensor, static_map: StaticMap
) -> tuple[Tensor, Tensor]:
    """Return outputs and last state after one further Newton step, whose value is zero but whose derivatives are not.

    With w* the solution, a constant, the step is δ_{k+1} = A_k δ_k + (f(w*_k) − f(w*_k).detach()).
    """
    direct = u @ loop.xi_u.mT
    xi = solution.map_inputs.evaluate(solution.states @ loop.C_xi.mT + direct, loop.xi_v, static_map)
    after = advance_states(loop, solution.states, u, static_map(xi))
    delta, delta_end = scan_time_varying(solution.A, after - after.detach(), start - start.detach())
    w, end = solution.states + delta, after[:, -1].detach() + delta_end
    xi = solution.map_inputs.evaluate(w @ loop.C_xi.mT + direct, loop.xi_v, static_map)
    return w @ loop.C_y.mT + u @ loop.y_u.mT + static_map(xi) @ loop.y_v.mT, end


@final
class SolutionCache:
    """Solutions of the runs of a loop, returned again in the same order after `rewind`."""

    def __init__(self) -> None:
        self.solutions: list[LoopSolution] = []
        self.is_complete, self._n_returned = False, 0

    def next(self) -> LoopSolution:
        """Return the next solution."""
        self._n_returned += 1
        return self.solutions[self._n_returned - 1]

    def rewind(self) -> None:
        """Mark the solutions as complete, and continue with the first."""
        self.is_complete, self._n_returned = True, 0


@contextmanager
def no_derivatives() -> Iterator[None]:
    """Disable backward and forward derivatives."""
    with torch.no_grad(), forward_ad._set_fwd_grad_enabled(False):
        yield
