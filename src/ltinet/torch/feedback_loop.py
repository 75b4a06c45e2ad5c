"""Equations of a linear network with a static map in its feedback loop, and their linearization.

The last inputs are v = φ(ξ), a static map of the last outputs ξ. With w the state that awaits a sample,

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

# MERGED ltinet.torch.feedback_loop
# A linear network whose last inputs are a static map of its last outputs, v = φ(ξ): the equations of its steps.
#
# With w the state that awaits a sample: ξ = C_ξ w + d_u u + d_v φ(ξ), w⁺ = P w + Γ_u u + Γ_v φ(ξ). A linear hold makes
# d_v small and not zero, so that ξ is found by Newton's method at each sample.

StaticMap = Callable[[Tensor], Tensor]
_MAX_ITERATIONS = 30  # steps at a sample; three or four are taken
_MAP_INPUT_TOLERANCE = 1e-14  # of the size of ξ


class FeedbackLoop(NamedTuple):
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


def split_feedback(step: OneStep, *, fed_back: int, seen: int) -> FeedbackLoop:
    """The loop of a step whose last `fed_back` inputs are a map of its last `seen` outputs."""
    m, p = step.Gamma.shape[1] - fed_back, step.direct.shape[0] - seen
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


def solve_map_input(c: Tensor, xi_v: Tensor, fed: StaticMap) -> Tensor:
    """ξ = c + d_v φ(ξ) for c `(…, r)`, without derivatives.

    By inserting ξ as long as that brings it nearer, which a small d_v makes fast, then by Newton's method.
    """
    if not bool(xi_v.any()):  # what is fed back comes a step later, as with a zero hold
        return c
    xi, last = c, math.inf
    for _ in range(_MAX_ITERATIONS):
        new = c + fed(xi) @ xi_v.mT
        change, xi = _largest_change(new - xi, new), new
        if change == 0.0 or not change < 0.5 * last:
            break
        last = change
    for _ in range(0 if change == 0.0 else _MAX_ITERATIONS):
        correction = solve_per_sample(algebraic_jacobian(xi, xi_v, fed), xi - c - fed(xi) @ xi_v.mT)
        xi = xi - correction
        if _largest_change(correction, xi) == 0.0:
            break
    return xi


def _largest_change(change: Tensor, xi: Tensor) -> float:
    """The largest change of all samples that have not settled, each by its own size; those that are lost have."""
    size = change.abs()
    beyond = size - _MAP_INPUT_TOLERANCE * (1.0 + xi.abs())  # of infinities no number, and not positive
    return float(torch.where(beyond > 0.0, size, 0.0).max()) if size.numel() else 0.0


def map_jacobian(xi: Tensor, fed: StaticMap) -> Tensor:
    """∂φ/∂ξ at every sample, `(…, q, r)`: a map takes each sample by itself, so that one pass gives a row for all."""
    with torch.enable_grad():
        given = xi.detach().requires_grad_()
        v = fed(given)
        rows = [torch.autograd.grad(v[..., row].sum(), given, retain_graph=True)[0] for row in range(v.shape[-1])]
    return torch.stack(rows, -2)


def state_jacobian(loop: FeedbackLoop, xi: Tensor, fed: StaticMap) -> Tensor:
    """∂w⁺/∂w at every sample, `(…, n, n)`: P + Γ_v M (1 − d_v M)⁻¹ C_ξ with M = ∂φ/∂ξ."""
    M = map_jacobian(xi, fed)
    identity = torch.eye(xi.shape[-1], dtype=xi.dtype, device=xi.device)
    seen = torch.linalg.solve_ex(identity - loop.xi_v @ M, loop.C_xi.expand(*M.shape[:-2], -1, -1)).result
    return loop.P + loop.Gamma_v @ M @ seen


def map_input(loop: FeedbackLoop, w: Tensor, u: Tensor, fed: StaticMap) -> Tensor:
    """ξ at samples, from the states that await them."""
    return solve_map_input(w @ loop.C_xi.mT + u @ loop.xi_u.mT, loop.xi_v, fed)


def advance_states(loop: FeedbackLoop, w: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """The states that await the next samples."""
    return w @ loop.P.mT + u @ loop.Gamma_u.mT + v @ loop.Gamma_v.mT


def loop_outputs(loop: FeedbackLoop, w: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """Y at samples."""
    return w @ loop.C_y.mT + u @ loop.y_u.mT + v @ loop.y_v.mT


def algebraic_jacobian(xi: Tensor, xi_v: Tensor, fed: StaticMap) -> Tensor:
    """1 − d_v ∂φ/∂ξ at every sample, `(…, r, r)`."""
    identity = torch.eye(xi.shape[-1], dtype=xi.dtype, device=xi.device)
    return identity - xi_v @ map_jacobian(xi, fed)


def solve_per_sample(matrices: Tensor, vectors: Tensor) -> Tensor:
    """J⁻¹ v at every sample; where a matrix is singular the result is no number, which callers look for."""
    return torch.linalg.solve_ex(matrices, vectors.unsqueeze(-1)).result.squeeze(-1)


# MERGED ltinet.torch.feedback_loop
# A loop about its solution: the states that were found, with the derivatives of one Newton step more.
#
# With the solution a constant, that step has no loop and no decision in it: derivatives of any kind pass through, many
# directions at once too, and whoever takes them again and again needs to solve but once.


class LoopLinearization(NamedTuple):
    """ξ = c + d_v φ(ξ) at samples, and 1 − d_v φ′ there: constants to derivatives."""

    xi: Tensor
    slope: Tensor

    def at(self, c: Tensor, xi_v: Tensor, fed: StaticMap) -> Tensor:
        """ξ as a function of c, d_v and the map: ξ* − J⁻¹(ξ* − c − d_v φ(ξ*)), the implicit function about ξ*."""
        return self.xi - solve_per_sample(self.slope, self.xi - c - fed(self.xi) @ xi_v.mT)


class LoopSolution(NamedTuple):
    """The states that await each sample, what the map sees there, and ∂w⁺/∂w: constants to derivatives."""

    first: LoopLinearization | None
    """At x0, where a run begins in one."""
    states: Tensor
    seen: LoopLinearization
    A: Tensor


def linearize_map_input(c: Tensor, xi_v: Tensor, fed: StaticMap) -> LoopLinearization:
    """Solve ξ = c + d_v φ(ξ) for c `(…, r)`."""
    xi = solve_map_input(c, xi_v, fed)
    return LoopLinearization(xi, algebraic_jacobian(xi, xi_v, fed))


def linearize_trajectory(
    loop: FeedbackLoop, u: Tensor, states: Tensor, fed: StaticMap, *, first: LoopLinearization | None
) -> LoopSolution:
    """What derivatives are taken about, from the states that were found."""
    at = linearize_map_input(states @ loop.C_xi.mT + u @ loop.xi_u.mT, loop.xi_v, fed)
    return LoopSolution(first, states, at, state_jacobian(loop, at.xi, fed))


def run_linearized(
    found: LoopSolution, loop: FeedbackLoop, u: Tensor, start: Tensor, fed: StaticMap
) -> tuple[Tensor, Tensor]:
    """Outputs and the last state. What the step adds to the states is zero but for its derivatives."""
    direct = u @ loop.xi_u.mT
    xi = found.seen.at(found.states @ loop.C_xi.mT + direct, loop.xi_v, fed)
    after = advance_states(loop, found.states, u, fed(xi))
    moved, moved_end = scan_time_varying(found.A, after - after.detach(), start - start.detach())
    w, end = found.states + moved, after[:, -1].detach() + moved_end
    return loop_outputs(loop, w, u, fed(found.seen.at(w @ loop.C_xi.mT + direct, loop.xi_v, fed))), end


@final
class SolutionCache:
    """Solutions in the order in which they were found, given again in that order as often as one asks."""

    def __init__(self) -> None:
        self.found: list[LoopSolution] = []
        self.is_complete, self._place = False, 0

    def next(self) -> LoopSolution:
        """The next one."""
        self._place += 1
        return self.found[self._place - 1]

    def rewind(self) -> None:
        """All are found; begin with the first again."""
        self.is_complete, self._place = True, 0


@contextmanager
def no_derivatives() -> Iterator[None]:
    """Without derivatives, neither backward nor forward ones."""
    with torch.no_grad(), forward_ad._set_fwd_grad_enabled(False):
        yield
