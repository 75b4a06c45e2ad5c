"""All states of a window by damped Newton passes, as Levenberg and Marquardt take them: where plain ones explode.

A pass is taken where it lowers Σ |f(w_k) − w_{k+1}|², and the next has less damping; else it is taken back for one with
more. Near the solution damping is gone, and the passes are those of Newton's method.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ltinet.learn.damped_pass import damped_steps
from ltinet.learn.loops import Loop, Map, advanced, linearised, seen_by_map
from ltinet.learn.varying_scan import scan_varying

_SETTLED = 1e-12  # of the largest state so far: what a pass may still change
_KEPT = 1e-14  # of the same: how far a state may be from its recursion, about what rounding leaves
_FIRST, _LEAST = 1e-2, 1e-5  # damping, in units of |∂r/∂w|² = 1; below the least there is none
_MORE, _LESS = 4.0, 0.1


class _Guess(NamedTuple):
    """States after each sample of a window, and how far they are from their recursion."""

    after: Tensor
    before: Tensor
    xi: Tensor
    wanted: Tensor
    """f of the states before, which those after should be."""
    distance: float


def settled_with_damping(loop: Loop, u: Tensor, start: Tensor, fed: Map, *, most: int) -> tuple[Tensor, int]:
    """The states after the first samples, `(B, T, n)` or fewer, that settle in so many passes; and passes taken."""
    guess = _judged(loop, u, start, fed, start.unsqueeze(1).expand(-1, u.shape[1], -1))
    if not math.isfinite(guess.distance):
        return guess.after[:, :0], 0
    A, damping = linearised(loop, guess.xi, fed), _FIRST
    for count in range(1, most + 1):
        new = _moved(A, guess, start, damping)
        if damping < _LEAST and has_settled(new, guess.after):
            return new, count
        judged = _judged(loop, u, start, fed, new)
        if judged.distance < guess.distance:
            guess, A, damping = judged, linearised(loop, judged.xi, fed), _LESS * damping
        else:
            damping = _MORE * max(damping, _LEAST)
    return settled_part(guess.after, guess.wanted), most


def settled_part(after: Tensor, wanted: Tensor) -> Tensor:
    """The first of the states after samples, as many as are what their recursion wants but for rounding."""
    return wanted[:, : _n_near(after, wanted, _KEPT)]


def has_settled(new: Tensor, old: Tensor) -> bool:
    """Whether a pass changed no state of a window by more than rounding may."""
    return _n_near(new, old, _SETTLED) == int(new.shape[1])


def _n_near(one: Tensor, other: Tensor, share: float) -> int:
    """How many states from the first on are alike but for a share of the largest so far, in all records `(B, T, n)`.

    So far, lest states that explode later hide what is wrong before.
    """
    size = other.abs().amax(2).cummax(1).values
    is_off = ~((one - other).abs().amax(2) <= share * size).all(0)  # those that are no numbers are off too
    return int(is_off.nonzero()[0]) if bool(is_off.any()) else one.shape[1]


def _judged(loop: Loop, u: Tensor, start: Tensor, fed: Map, after: Tensor) -> _Guess:
    before = torch.cat([start.unsqueeze(1), after[:, :-1]], 1)
    xi = seen_by_map(loop, before, u, fed)
    wanted = advanced(loop, before, u, fed(xi))
    return _Guess(after, before, xi, wanted, float((wanted - after).square().sum()))


def _moved(A: Tensor, guess: _Guess, start: Tensor, damping: float) -> Tensor:
    """The states after each sample after one more pass."""
    if damping >= _LEAST:
        return guess.after + damped_steps(A, guess.wanted - guess.after, damping)
    states, end = scan_varying(A, guess.wanted - (A @ guess.before.unsqueeze(-1)).squeeze(-1), start)
    return torch.cat([states[:, 1:], end.unsqueeze(1)], 1)
