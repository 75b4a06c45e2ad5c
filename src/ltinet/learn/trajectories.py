"""The states of a loop over a record: by Newton's method on whole windows of time, or one by one where that fails.

Newton's method on all states of a window at once (Lim et al. 2024, DEER): linearise every step about the last guess,
solve the linear recursion by a scan, and again. It needs few passes where the loop is weakly nonlinear and may fail
elsewhere: then windows become shorter, and where the shortest fails the rest is walked. Walking always gives the right
states.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ltinet.errors import SimulationError
from ltinet.learn.loops import Loop, Map, advanced, linearised, seen_by_map
from ltinet.learn.varying_scan import scan_varying

_SHORTEST = 32  # steps: of shorter windows each pass costs more than walking
_MOST_PASSES = 20
_FEW_PASSES = 8  # after which a longer window is tried
_SETTLED = 1e-12  # of the largest state: what a pass may still change


class Trajectory(NamedTuple):
    """The states `(B, T, n)` that await each sample, and how they were found."""

    states: Tensor
    n_passes: int
    """Newton passes over windows, all together."""
    n_walked: int
    """Steps that were walked one by one."""


def find_states(loop: Loop, u: Tensor, start: Tensor, fed: Map, *, window: int) -> Trajectory:
    """All states from inputs `(B, T, m)` and the first state, without derivatives; a window of 0 walks.

    Raises:
        SimulationError: they exceed the largest floating-point number.
    """
    found, now, place, passes, walked = [], start, 0, 0, 0
    width = window
    with torch.no_grad():
        while place < u.shape[1]:
            own = u[:, place : place + width] if width else u[:, place:]
            states, end, taken = _window(loop, own, now, fed) if width else _walk(loop, own, now, fed, first=place)
            passes += taken
            if states is None or end is None:  # shorter, and in the end one by one
                width = own.shape[1] // 4 if own.shape[1] // 4 >= _SHORTEST else 0
                continue
            walked += own.shape[1] if taken == 0 else 0
            width = min(window, 2 * width) if taken <= _FEW_PASSES else width
            found.append(states)
            now, place = end, place + own.shape[1]
    return Trajectory(torch.cat(found, 1), passes, walked)


def _window(loop: Loop, u: Tensor, start: Tensor, fed: Map) -> tuple[Tensor | None, Tensor | None, int]:
    """The states of a window and the one after it, None where Newton's method does not settle; and passes taken."""
    w = start.unsqueeze(1).expand(-1, u.shape[1], -1)
    change = float("inf")
    for count in range(1, _MOST_PASSES + 1):
        xi = seen_by_map(loop, w, u, fed)
        A = linearised(loop, xi, fed)
        b = advanced(loop, w, u, fed(xi)) - (A @ w.unsqueeze(-1)).squeeze(-1)
        new, end = scan_varying(A, b, start)
        if not bool(torch.isfinite(new).all() & torch.isfinite(end).all()):
            return None, None, count
        size, before, change = float(new.abs().max()), change, float((new - w).abs().max())
        w = new
        if change <= _SETTLED * size:
            return w, end, count
        if count > 4 and change > before:  # it moves away
            return None, None, count
    return None, None, _MOST_PASSES


def _walk(loop: Loop, u: Tensor, start: Tensor, fed: Map, *, first: int) -> tuple[Tensor, Tensor, int]:
    """The same one by one, in no passes."""
    states, now = [], start
    for step in range(u.shape[1]):
        states.append(now)
        now = advanced(loop, now, u[:, step], fed(seen_by_map(loop, now, u[:, step], fed)))
        if not math.isfinite(float(now.sum())) and not bool(torch.isfinite(now).all()):
            raise SimulationError(
                f"the states of a feedback network exceed the largest floating-point number after sample {first + step}"
                "; take shorter steps, smaller inputs, or a map that grows less"
            )
    return torch.stack(states, 1), now, 0
