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
from ltinet.torch.validation import all_finite


class _BlockTridiagonal(NamedTuple):
    """U_{k−1}ᵀ x_{k−1} + D_k x_k + U_k x_{k+1} = g_k for K blocks, each tensor `(B, K, n, …)`; the last U is zero."""

    D: Tensor
    U: Tensor
    g: Tensor


def solve_damped_step(A: Tensor, r: Tensor, damping: float) -> Tensor:
    """Compute Δ_1 … Δ_T `(B, T, n)` from A `(B, T, n, n)`, whose first matrix is not used, and residuals `(B, T, n)`.

    The normal equations have the diagonal blocks (1 + λ) + A_kᵀ A_k, the blocks −A_kᵀ above them, and the right-hand
    sides r_{k−1} − A_kᵀ r_k, for k = 1 … T with A_T = 0. Cost O(T n³).
    """
    n = r.shape[-1]
    later = A[:, 1:]
    identity = torch.eye(n, dtype=A.dtype, device=A.device)
    last = torch.zeros_like(A[:, :1])
    D = (1.0 + damping) * identity + torch.cat([later.mT @ later, last], 1)
    U = torch.cat([-later.mT, last], 1)
    g = torch.cat([r[:, :-1] - (later.mT @ r[:, 1:].unsqueeze(-1)).squeeze(-1), r[:, -1:]], 1)
    return _solve_cyclic_reduction(_BlockTridiagonal(D, U, g.unsqueeze(-1))).squeeze(-1)


def _solve_cyclic_reduction(chain: _BlockTridiagonal) -> Tensor:
    """Solve a block tridiagonal system by eliminating every other block until one is left."""
    D, U, g = chain
    count, n = D.shape[1], D.shape[-1]
    if count == 1:
        return torch.linalg.solve_ex(D, g).result
    if count % 2 == 0:  # append an uncoupled block, so that each remaining block has two eliminated neighbors
        identity = torch.eye(n, dtype=D.dtype, device=D.device).expand(len(D), 1, n, n)
        zeros = torch.zeros_like(g[:, :1])
        D, U, g = torch.cat([D, identity], 1), torch.cat([U, 0.0 * identity], 1), torch.cat([g, zeros], 1)
    lower = torch.cat([torch.zeros_like(U[:, :1]), U[:, :-1].mT], 1)  # the blocks left of the diagonal
    # Eliminate blocks 0, 2, 4 …: x = constant − right x_next − left x_previous.
    eliminated = torch.linalg.solve_ex(D[:, ::2], torch.cat([U[:, ::2], lower[:, ::2], g[:, ::2]], -1)).result
    right, left, constant = eliminated.split([n, n, 1], -1)
    U_before, U_after = lower[:, 1::2], U[:, 1::2]
    odd = _solve_cyclic_reduction(
        _BlockTridiagonal(
            D[:, 1::2] - U_before @ right[:, :-1] - U_after @ left[:, 1:],
            -U_after @ right[:, 1:],
            g[:, 1::2] - U_before @ constant[:, :-1] - U_after @ constant[:, 1:],
        )
    )
    zeros = torch.zeros_like(odd[:, :1])
    even = constant - right @ torch.cat([odd, zeros], 1) - left @ torch.cat([zeros, odd], 1)
    interleaved = torch.stack([even[:, :-1], odd], 2).flatten(1, 2)
    return torch.cat([interleaved, even[:, -1:]], 1)[:, :count]


# Damped Newton passes over a window


# Relative to the largest state so far: change in a pass up to which a window counts as converged. Newton's method is
# quadratic: the error after a change δ is of the order δ², below rounding for any tolerance up to √eps = 1.5e-8.
_STEP_TOLERANCE = 1e-12
# Relative residual of the recurrence up to which single states count as converged: 50 units of rounding of the sums in a
# step. It decides only where the steps after a divergent pass begin again.
_RESIDUAL_TOLERANCE = 1e-14
# Damping decides the number of passes and never the states, which satisfy the recurrence to the tolerances above.
_INITIAL_DAMPING, _MIN_DAMPING = 1e-2, 1e-5  # λ, in units of |∂r/∂w|² = 1; below the minimum λ = 0
_DAMPING_INCREASE, _DAMPING_DECREASE = 4.0, 0.1


class _Iterate(NamedTuple):
    """States after and before each sample of a window, map inputs, f(before), and Σ |f(before) − after|²."""

    after: Tensor
    before: Tensor
    xi: Tensor
    image: Tensor
    distance: float


def solve_damped_newton(
    loop: FeedbackLoop, u: Tensor, start: Tensor, static_map: StaticMap, *, max_passes: int
) -> tuple[Tensor, int]:
    """Return the states after the first samples, `(B, T, n)` or fewer, that converge, and the number of passes."""
    current = _evaluate_iterate(loop, u, start, static_map, start.unsqueeze(1).expand(-1, u.shape[1], -1))
    if not math.isfinite(current.distance):
        return current.after[:, :0], 0
    A, damping = state_jacobian(loop, current.xi, static_map), _INITIAL_DAMPING
    for count in range(1, max_passes + 1):
        if damping >= _MIN_DAMPING:
            states = current.after + solve_damped_step(A, current.image - current.after, damping)
        else:
            offset = current.image - (A @ current.before.unsqueeze(-1)).squeeze(-1)
            states, end = scan_time_varying(A, offset, start)
            states = torch.cat([states[:, 1:], end.unsqueeze(1)], 1)
        if damping < _MIN_DAMPING and has_converged(states, current.after):
            return states, count
        candidate = _evaluate_iterate(loop, u, start, static_map, states)
        if candidate.distance < current.distance:
            current, A, damping = candidate, state_jacobian(loop, candidate.xi, static_map), _DAMPING_DECREASE * damping
        else:
            damping = _DAMPING_INCREASE * max(damping, _MIN_DAMPING)
    return converged_prefix(current.after, current.image), max_passes


def converged_prefix(after: Tensor, image: Tensor) -> Tensor:
    """Return the first states, as many as satisfy the recurrence after = f(before) = image up to rounding."""
    return image[:, : _n_converged(after, image, _RESIDUAL_TOLERANCE)]


def has_converged(new: Tensor, old: Tensor) -> bool:
    """Return True if a pass changed no state of a window by more than the tolerance."""
    return _n_converged(new, old, _STEP_TOLERANCE) == int(new.shape[1])


def _n_converged(states: Tensor, reference: Tensor, tolerance: float) -> int:
    """Count the states from the first on that agree in all records `(B, T, n)`, relative to the largest so far.

    The largest so far and not of the window: states that grow later must not hide earlier errors.
    """
    size = reference.abs().amax(2).cummax(1).values
    differs = ~((states - reference).abs().amax(2) <= tolerance * size).all(0)  # True for NaN
    return int(differs.nonzero()[0]) if bool(differs.any()) else states.shape[1]


def _evaluate_iterate(loop: FeedbackLoop, u: Tensor, start: Tensor, static_map: StaticMap, after: Tensor) -> _Iterate:
    before = torch.cat([start.unsqueeze(1), after[:, :-1]], 1)
    xi = map_input(loop, before, u, static_map)
    image = advance_states(loop, before, u, static_map(xi))
    return _Iterate(after, before, xi, image, float((image - after).square().sum()))


# Windows of a record. The constants are empirical: `benchmarks.learning.loops` counts passes and steps.

_MIN_WINDOW = 32  # steps; in shorter windows passes cost more than single steps
_MAX_PASSES = 20  # for time: Newton's method squares the error, and what has not converged is computed with damping
_MAX_PASSES_TO_GROW = 8  # passes up to which the next window is twice as long
_MIN_DAMPED_PASSES, _MAX_DAMPED_PASSES = 16, 30  # limits on damped passes in a window
_STEPS_PER_PASS = 8  # steps of equal cost as a damped pass; more passes than steps divided by this do not pay


class Trajectory(NamedTuple):
    """States `(B, T, n)` before each sample, and statistics of the solver."""

    states: Tensor
    n_passes: int
    """Total number of Newton passes over windows."""
    n_sequential: int
    """Number of steps that were solved one by one."""
    n_damped: int
    """Number of steps in windows that needed damping."""


def solve_trajectory(
    loop: FeedbackLoop,
    u: Tensor,
    start: Tensor,
    static_map: StaticMap,
    *,
    window: int,
    max_damped_passes: int = _MAX_DAMPED_PASSES,
) -> Trajectory:
    """Solve for all states from inputs `(B, T, m)` and the first state, without derivatives.

    With a window of 0 all steps are solved one by one. Raises SimulationError if the states overflow.
    """
    pieces, state, first = [], start, 0
    n_passes = n_sequential = n_damped = 0
    width = window or u.shape[1]
    with torch.no_grad():
        while first < u.shape[1]:
            samples = u[:, first : first + width]
            states, passes, is_damped = samples[:, :0], 0, False
            if window:
                states, passes, is_damped = _solve_window(loop, samples, state, static_map, max_damped_passes)
            n_passes += passes
            if states.shape[1] < min(samples.shape[1], _MIN_WINDOW // 2):
                if window and samples.shape[1] > _MIN_WINDOW:
                    width = max(samples.shape[1] // 4, _MIN_WINDOW)
                    continue
                states = _step_sequentially(loop, samples, state, static_map, first=first)
                n_sequential += samples.shape[1]
            elif is_damped:
                n_damped += states.shape[1]
            if states.shape[1] < samples.shape[1]:
                width = max(states.shape[1], _MIN_WINDOW)
            elif passes <= _MAX_PASSES_TO_GROW:
                width = min(window or width, 2 * width)
            pieces.append(torch.cat([state.unsqueeze(1), states[:, :-1]], 1))
            state, first = states[:, -1], first + states.shape[1]
    return Trajectory(torch.cat(pieces, 1), n_passes, n_sequential, n_damped)


def _solve_window(
    loop: FeedbackLoop, u: Tensor, start: Tensor, static_map: StaticMap, max_damped_passes: int
) -> tuple[Tensor, int, bool]:
    """Return the states after the first samples of a window that converge, the number of passes, and True if damped."""
    states, passes = _solve_newton(loop, u, start, static_map)
    max_passes = min(max_damped_passes, max(_MIN_DAMPED_PASSES, u.shape[1] // _STEPS_PER_PASS))
    if states.shape[1] >= min(u.shape[1], _MIN_WINDOW // 2) or not max_passes:
        return states, passes, False
    states, damped_passes = solve_damped_newton(loop, u, start, static_map, max_passes=max_passes)
    return states, passes + damped_passes, True


def _solve_newton(loop: FeedbackLoop, u: Tensor, start: Tensor, static_map: StaticMap) -> tuple[Tensor, int]:
    """Return the states after the first samples of a window that converge without damping, and the number of passes."""
    w = start.unsqueeze(1).expand(-1, u.shape[1], -1)
    change = float("inf")
    for count in range(1, _MAX_PASSES + 1):
        xi = map_input(loop, w, u, static_map)
        A, after = state_jacobian(loop, xi, static_map), advance_states(loop, w, u, static_map(xi))
        states, end = scan_time_varying(A, after - (A @ w.unsqueeze(-1)).squeeze(-1), start)
        last_change, change = change, float((states - w).abs().max())
        if has_converged(states, w):
            return torch.cat([states[:, 1:], end.unsqueeze(1)], 1), count
        if not math.isfinite(change) or (count > 4 and change > last_change):  # it diverges
            break
        w = states
    return converged_prefix(torch.cat([w[:, 1:], after[:, -1:]], 1), after), count


def _step_sequentially(loop: FeedbackLoop, u: Tensor, start: Tensor, static_map: StaticMap, *, first: int) -> Tensor:
    """Return the states after the samples of a window, computed one by one."""
    states, state = [], start
    for step in range(u.shape[1]):
        state = advance_states(loop, state, u[:, step], static_map(map_input(loop, state, u[:, step], static_map)))
        if not all_finite(state):
            raise SimulationError(
                f"the states of a feedback network overflow after sample {first + step}"
                "; take shorter steps, smaller inputs, or a map that grows less"
            )
        states.append(state)
    return torch.stack(states, 1)
