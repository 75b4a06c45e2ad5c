"""The states of a loop over a record: by Newton's method on whole windows of time, or one by one where that fails.

Newton's method on all states of a window at once (Lim et al. 2024, DEER): linearise every step about the last guess,
solve the linear recursion by a scan, and again. It needs few passes where the loop is weakly nonlinear and may explode
elsewhere. States settle from the first to the last, so that those that have are kept. Where they are few, passes are
damped (`damped_newton`), then windows become shorter, and of the shortest those that fail are walked, which always
gives the right states.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ltinet.errors import SimulationError
from ltinet.learn.damped_newton import has_settled, settled_part, settled_with_damping
from ltinet.learn.loops import Loop, Map, advanced, linearised, seen_by_map
from ltinet.learn.varying_scan import scan_varying

_SHORTEST = 32  # steps: of shorter windows passes cost more than walking
_MOST_PASSES = 20
_FEW_PASSES = 8  # after which a longer window is tried
_FEWEST_DAMPED, _MOST_DAMPED = 16, 30  # passes with damping that a window may take
_WALKED_IN_A_PASS = 8  # steps: after more passes than these walking the window would have cost less


class Trajectory(NamedTuple):
    """The states `(B, T, n)` that await each sample, and how they were found."""

    states: Tensor
    n_passes: int
    """Newton passes over windows, all together."""
    n_walked: int
    """Steps that were walked one by one."""
    n_damped: int
    """Steps in windows that needed damping."""


def find_states(
    loop: Loop, u: Tensor, start: Tensor, fed: Map, *, window: int, most_damped: int = _MOST_DAMPED
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
                states, taken, is_damped = _window(loop, own, now, fed, most_damped)
            passes += taken
            if states.shape[1] < min(own.shape[1], _SHORTEST // 2):
                if window and own.shape[1] > _SHORTEST:
                    width = max(own.shape[1] // 4, _SHORTEST)
                    continue
                states = _walk(loop, own, now, fed, first=place)
                walked += own.shape[1]
            elif is_damped:
                damped += states.shape[1]
            if states.shape[1] < own.shape[1]:
                width = max(states.shape[1], _SHORTEST)
            elif taken <= _FEW_PASSES:
                width = min(window or width, 2 * width)
            found.append(torch.cat([now.unsqueeze(1), states[:, :-1]], 1))
            now, place = states[:, -1], place + states.shape[1]
    return Trajectory(torch.cat(found, 1), passes, walked, damped)


def _window(loop: Loop, u: Tensor, start: Tensor, fed: Map, most_damped: int) -> tuple[Tensor, int, bool]:
    """The states after the first samples of a window, as many as have settled; passes taken, and whether damped."""
    states, taken = _settled(loop, u, start, fed)
    most = min(most_damped, max(_FEWEST_DAMPED, u.shape[1] // _WALKED_IN_A_PASS))
    if states.shape[1] >= min(u.shape[1], _SHORTEST // 2) or not most:
        return states, taken, False
    damped, more = settled_with_damping(loop, u, start, fed, most=most)
    return damped, taken + more, True


def _settled(loop: Loop, u: Tensor, start: Tensor, fed: Map) -> tuple[Tensor, int]:
    """The states after the first samples of a window that plain passes settle, all of them or fewer; and passes."""
    w = start.unsqueeze(1).expand(-1, u.shape[1], -1)
    change = float("inf")
    for count in range(1, _MOST_PASSES + 1):
        xi = seen_by_map(loop, w, u, fed)
        A, after = linearised(loop, xi, fed), advanced(loop, w, u, fed(xi))
        new, end = scan_varying(A, after - (A @ w.unsqueeze(-1)).squeeze(-1), start)
        before, change = change, float((new - w).abs().max())
        if has_settled(new, w):
            return torch.cat([new[:, 1:], end.unsqueeze(1)], 1), count
        if not math.isfinite(change) or (count > 4 and change > before):  # it moves away
            break
        w = new
    return settled_part(torch.cat([w[:, 1:], after[:, -1:]], 1), after), count


def _walk(loop: Loop, u: Tensor, start: Tensor, fed: Map, *, first: int) -> Tensor:
    """The same one by one."""
    states, now = [], start
    for step in range(u.shape[1]):
        now = advanced(loop, now, u[:, step], fed(seen_by_map(loop, now, u[:, step], fed)))
        if not math.isfinite(float(now.sum())) and not bool(torch.isfinite(now).all()):
            raise SimulationError(
                f"the states of a feedback network exceed the largest floating-point number after sample {first + step}"
                "; take shorter steps, smaller inputs, or a map that grows less"
            )
        states.append(now)
    return torch.stack(states, 1)
