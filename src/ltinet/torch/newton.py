"""Newton's method on all states of a time window, parallel in time, for networks with a feedback loop.

All steps are linearized about the last iterate, the linear recurrence is solved by a scan, and this is repeated until
the states satisfy the recurrence up to rounding (DEER: Lim et al., 2024). States converge from the first to the last;
converged ones are kept. Where few converge, damped passes follow, then shorter windows; in the shortest windows that
still fail, the states are computed step by step, which always gives the right states.

A damped pass (ELK: Gonzalez et al., 2024, who find the same Δ by a Kalman smoother) takes, with A_k = ∂w_{k+1}/∂w_k
and r_k = f(w_k) − w_{k+1}, the Δ_1 … Δ_T that minimize

    Σ |Δ_{k+1} − A_k Δ_k − r_k|² + λ Σ |Δ_k|²,   Δ_0 = 0.

λ = 0 is Newton's method; λ > 0 acts as a trust region. The normal equations are block tridiagonal and positive
definite and are solved by cyclic reduction in log₂ T rounds, cost O(T n³). As in Levenberg–Marquardt, a pass is
accepted where it lowers Σ |r_k|², and λ is reduced after it; otherwise it is rejected and λ is increased.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ltinet.errors import SimulationError
from ltinet.torch.feedback_loop import FeedbackLoop, StaticMap, advance_states, map_input, state_jacobian
from ltinet.torch.scan import scan_time_varying

# MERGED ltinet.torch.newton
# A damped Newton pass over a window: the steps Δ that bring all states nearer to their recursion, and stay small.
#
# With A_k = ∂w_{k+1}/∂w_k and r_k = f(w_k) − w_{k+1}, the Δ_1 … Δ_T with the least
#
#     Σ |Δ_{k+1} − A_k Δ_k − r_k|² + λ Σ |Δ_k|²,   Δ_0 = 0.
#
# λ = 0 is Newton's method, which explodes where the A_k of a poor guess do; λ > 0 is a trust region (ELK, Gonzalez et al.
# 2024, who find the same Δ by a Kalman smoother). The normal equations are block tridiagonal and positive definite:
# here they are solved by cyclic reduction, log₂ T rounds of T/2, T/4, … solves side by side, parallel in time.


class _BlockTridiagonal(NamedTuple):
    """U_{k−1}ᵀ x_{k−1} + D_k x_k + U_k x_{k+1} = g_k for K blocks, each tensor `(B, K, n, …)`; the last U is zero."""

    D: Tensor
    U: Tensor
    g: Tensor


def solve_damped_step(A: Tensor, r: Tensor, damping: float) -> Tensor:
    """Δ_1 … Δ_T `(B, T, n)` from A `(B, T, n, n)`, whose first is not used, and residuals `(B, T, n)`; cost O(T n³)."""
    n = r.shape[-1]
    later = A[:, 1:]
    identity = torch.eye(n, dtype=A.dtype, device=A.device)
    last = torch.zeros_like(A[:, :1])
    D = (1.0 + damping) * identity + torch.cat([later.mT @ later, last], 1)
    U = torch.cat([-later.mT, last], 1)
    g = torch.cat([r[:, :-1] - (later.mT @ r[:, 1:].unsqueeze(-1)).squeeze(-1), r[:, -1:]], 1)
    return _solve_cyclic_reduction(_BlockTridiagonal(D, U, g.unsqueeze(-1))).squeeze(-1)


def _solve_cyclic_reduction(chain: _BlockTridiagonal) -> Tensor:
    """All x of a chain: every other block is put into its neighbours, until one is left."""
    D, U, g = chain
    count, n = D.shape[1], D.shape[-1]
    if count == 1:
        return torch.linalg.solve_ex(D, g).result
    if count % 2 == 0:  # one more that is not coupled to any: each that stays then has two neighbours that go
        identity = torch.eye(n, dtype=D.dtype, device=D.device).expand(len(D), 1, n, n)
        nothing = torch.zeros_like(g[:, :1])
        D, U, g = torch.cat([D, identity], 1), torch.cat([U, 0.0 * identity], 1), torch.cat([g, nothing], 1)
    before = torch.cat([torch.zeros_like(U[:, :1]), U[:, :-1].mT], 1)  # the blocks left of the diagonal
    # Blocks 0, 2, 4 … go: x = own − right x_next − left x_before.
    gone = torch.linalg.solve_ex(D[:, ::2], torch.cat([U[:, ::2], before[:, ::2], g[:, ::2]], -1)).result
    right, left, own = gone.split([n, n, 1], -1)
    U_before, U_after = before[:, 1::2], U[:, 1::2]
    kept = _solve_cyclic_reduction(
        _BlockTridiagonal(
            D[:, 1::2] - U_before @ right[:, :-1] - U_after @ left[:, 1:],
            -U_after @ right[:, 1:],
            g[:, 1::2] - U_before @ own[:, :-1] - U_after @ own[:, 1:],
        )
    )
    nothing = torch.zeros_like(kept[:, :1])
    found = own - right @ torch.cat([kept, nothing], 1) - left @ torch.cat([nothing, kept], 1)
    both = torch.stack([found[:, :-1], kept], 2).flatten(1, 2)
    return torch.cat([both, found[:, -1:]], 1)[:, :count]


# MERGED ltinet.torch.newton
# All states of a window by damped Newton passes, as Levenberg and Marquardt take them: where plain ones explode.
#
# A pass is taken where it lowers Σ |f(w_k) − w_{k+1}|², and the next has less damping; else it is taken back for one with
# more. Near the solution damping is gone, and the passes are those of Newton's method.

_STEP_TOLERANCE = 1e-12  # of the largest state so far: what a pass may still change
_RESIDUAL_TOLERANCE = 1e-14  # of the same: how far a state may be from its recursion, about what rounding leaves
_INITIAL_DAMPING, _MIN_DAMPING = 1e-2, 1e-5  # damping, in units of |∂r/∂w|² = 1; below the least there is none
_DAMPING_INCREASE, _DAMPING_DECREASE = 4.0, 0.1


class _Iterate(NamedTuple):
    """States after each sample of a window, and how far they are from their recursion."""

    after: Tensor
    before: Tensor
    xi: Tensor
    wanted: Tensor
    """f of the states before, which those after should be."""
    distance: float


def solve_damped_newton(
    loop: FeedbackLoop, u: Tensor, start: Tensor, fed: StaticMap, *, most: int
) -> tuple[Tensor, int]:
    """The states after the first samples, `(B, T, n)` or fewer, that settle in so many passes; and passes taken."""
    guess = _evaluate_iterate(loop, u, start, fed, start.unsqueeze(1).expand(-1, u.shape[1], -1))
    if not math.isfinite(guess.distance):
        return guess.after[:, :0], 0
    A, damping = state_jacobian(loop, guess.xi, fed), _INITIAL_DAMPING
    for count in range(1, most + 1):
        new = _updated_states(A, guess, start, damping)
        if damping < _MIN_DAMPING and has_converged(new, guess.after):
            return new, count
        judged = _evaluate_iterate(loop, u, start, fed, new)
        if judged.distance < guess.distance:
            guess, A, damping = judged, state_jacobian(loop, judged.xi, fed), _DAMPING_DECREASE * damping
        else:
            damping = _DAMPING_INCREASE * max(damping, _MIN_DAMPING)
    return converged_prefix(guess.after, guess.wanted), most


def converged_prefix(after: Tensor, wanted: Tensor) -> Tensor:
    """The first of the states after samples, as many as are what their recursion wants but for rounding."""
    return wanted[:, : _n_converged(after, wanted, _RESIDUAL_TOLERANCE)]


def has_converged(new: Tensor, old: Tensor) -> bool:
    """Whether a pass changed no state of a window by more than rounding may."""
    return _n_converged(new, old, _STEP_TOLERANCE) == int(new.shape[1])


def _n_converged(one: Tensor, other: Tensor, share: float) -> int:
    """How many states from the first on are alike but for a share of the largest so far, in all records `(B, T, n)`.

    So far, lest states that explode later hide what is wrong before.
    """
    size = other.abs().amax(2).cummax(1).values
    is_off = ~((one - other).abs().amax(2) <= share * size).all(0)  # those that are no numbers are off too
    return int(is_off.nonzero()[0]) if bool(is_off.any()) else one.shape[1]


def _evaluate_iterate(loop: FeedbackLoop, u: Tensor, start: Tensor, fed: StaticMap, after: Tensor) -> _Iterate:
    before = torch.cat([start.unsqueeze(1), after[:, :-1]], 1)
    xi = map_input(loop, before, u, fed)
    wanted = advance_states(loop, before, u, fed(xi))
    return _Iterate(after, before, xi, wanted, float((wanted - after).square().sum()))


def _updated_states(A: Tensor, guess: _Iterate, start: Tensor, damping: float) -> Tensor:
    """The states after each sample after one more pass."""
    if damping >= _MIN_DAMPING:
        return guess.after + solve_damped_step(A, guess.wanted - guess.after, damping)
    states, end = scan_time_varying(A, guess.wanted - (A @ guess.before.unsqueeze(-1)).squeeze(-1), start)
    return torch.cat([states[:, 1:], end.unsqueeze(1)], 1)


# MERGED ltinet.torch.newton
# The states of a loop over a record: by Newton's method on whole windows of time, or one by one where that fails.
#
# Newton's method on all states of a window at once (Lim et al. 2024, DEER): linearise every step about the last guess,
# solve the linear recursion by a scan, and again. It needs few passes where the loop is weakly nonlinear and may explode
# elsewhere. States settle from the first to the last, so that those that have are kept. Where they are few, passes are
# damped (`damped_newton`), then windows become shorter, and of the shortest those that fail are walked, which always
# gives the right states.

_MIN_WINDOW = 32  # steps: of shorter windows passes cost more than walking
_MAX_PASSES = 20
_MAX_PASSES_TO_GROW = 8  # after which a longer window is tried
_MIN_DAMPED_PASSES, _MAX_DAMPED_PASSES = 16, 30  # passes with damping that a window may take
_STEPS_PER_PASS = 8  # steps: after more passes than these walking the window would have cost less


class Trajectory(NamedTuple):
    """The states `(B, T, n)` that await each sample, and how they were found."""

    states: Tensor
    n_passes: int
    """Newton passes over windows, all together."""
    n_walked: int
    """Steps that were walked one by one."""
    n_damped: int
    """Steps in windows that needed damping."""


def solve_trajectory(
    loop: FeedbackLoop, u: Tensor, start: Tensor, fed: StaticMap, *, window: int, most_damped: int = _MAX_DAMPED_PASSES
) -> Trajectory:
    """All states from inputs `(B, T, m)` and the first state, without derivatives; a window of 0 walks.

    Raises:
        SimulationError: they exceed the largest floating-point number.
    """
    found, now, place = [], start, 0
    passes = walked = damped = 0
    width = window or u.shape[1]
    with torch.no_grad():
        while place < u.shape[1]:
            own = u[:, place : place + width]
            states, taken, is_damped = own[:, :0], 0, False
            if window:
                states, taken, is_damped = _solve_window(loop, own, now, fed, most_damped)
            passes += taken
            if states.shape[1] < min(own.shape[1], _MIN_WINDOW // 2):
                if window and own.shape[1] > _MIN_WINDOW:
                    width = max(own.shape[1] // 4, _MIN_WINDOW)
                    continue
                states = _step_sequentially(loop, own, now, fed, first=place)
                walked += own.shape[1]
            elif is_damped:
                damped += states.shape[1]
            if states.shape[1] < own.shape[1]:
                width = max(states.shape[1], _MIN_WINDOW)
            elif taken <= _MAX_PASSES_TO_GROW:
                width = min(window or width, 2 * width)
            found.append(torch.cat([now.unsqueeze(1), states[:, :-1]], 1))
            now, place = states[:, -1], place + states.shape[1]
    return Trajectory(torch.cat(found, 1), passes, walked, damped)


def _solve_window(
    loop: FeedbackLoop, u: Tensor, start: Tensor, fed: StaticMap, most_damped: int
) -> tuple[Tensor, int, bool]:
    """The states after the first samples of a window, as many as have settled; passes taken, and whether damped."""
    states, taken = _solve_newton(loop, u, start, fed)
    most = min(most_damped, max(_MIN_DAMPED_PASSES, u.shape[1] // _STEPS_PER_PASS))
    if states.shape[1] >= min(u.shape[1], _MIN_WINDOW // 2) or not most:
        return states, taken, False
    damped, more = solve_damped_newton(loop, u, start, fed, most=most)
    return damped, taken + more, True


def _solve_newton(loop: FeedbackLoop, u: Tensor, start: Tensor, fed: StaticMap) -> tuple[Tensor, int]:
    """The states after the first samples of a window that plain passes settle, all of them or fewer; and passes."""
    w = start.unsqueeze(1).expand(-1, u.shape[1], -1)
    change = float("inf")
    for count in range(1, _MAX_PASSES + 1):
        xi = map_input(loop, w, u, fed)
        A, after = state_jacobian(loop, xi, fed), advance_states(loop, w, u, fed(xi))
        new, end = scan_time_varying(A, after - (A @ w.unsqueeze(-1)).squeeze(-1), start)
        before, change = change, float((new - w).abs().max())
        if has_converged(new, w):
            return torch.cat([new[:, 1:], end.unsqueeze(1)], 1), count
        if not math.isfinite(change) or (count > 4 and change > before):  # it moves away
            break
        w = new
    return converged_prefix(torch.cat([w[:, 1:], after[:, -1:]], 1), after), count


def _step_sequentially(loop: FeedbackLoop, u: Tensor, start: Tensor, fed: StaticMap, *, first: int) -> Tensor:
    """The same one by one."""
    states, now = [], start
    for step in range(u.shape[1]):
        now = advance_states(loop, now, u[:, step], fed(map_input(loop, now, u[:, step], fed)))
        if not math.isfinite(float(now.sum())) and not bool(torch.isfinite(now).all()):
            raise SimulationError(
                f"the states of a feedback network exceed the largest floating-point number after sample {first + step}"
                "; take shorter steps, smaller inputs, or a map that grows less"
            )
        states.append(now)
    return torch.stack(states, 1)
