"""A loop about its solution: the states that were found, with the derivatives of one Newton step more.

With the solution a constant, that step has no loop and no decision in it: derivatives of any kind pass through, many
directions at once too, and whoever takes them again and again needs to solve but once.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, final

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ltinet.learn.loops import Loop, Map, advanced, jacobian, linearised, outputs, over, settled
from ltinet.learn.varying_scan import scan_varying


class Seen(NamedTuple):
    """ξ = c + d_v φ(ξ) at samples, and 1 − d_v φ′ there: constants to derivatives."""

    xi: Tensor
    slope: Tensor

    def at(self, c: Tensor, xi_v: Tensor, fed: Map) -> Tensor:
        """ξ as a function of c, d_v and the map: ξ* − J⁻¹(ξ* − c − d_v φ(ξ*)), the implicit function about ξ*."""
        return self.xi - over(self.slope, self.xi - c - fed(self.xi) @ xi_v.mT)


class Solution(NamedTuple):
    """The states that await each sample, what the map sees there, and ∂w⁺/∂w: constants to derivatives."""

    first: Seen | None
    """At x0, where a run begins in one."""
    states: Tensor
    seen: Seen
    A: Tensor


def seen(c: Tensor, xi_v: Tensor, fed: Map) -> Seen:
    """Solve ξ = c + d_v φ(ξ) for c `(…, r)`."""
    xi = settled(c, xi_v, fed)
    return Seen(xi, jacobian(xi, xi_v, fed))


def solution(loop: Loop, u: Tensor, states: Tensor, fed: Map, *, first: Seen | None) -> Solution:
    """What derivatives are taken about, from the states that were found."""
    at = seen(states @ loop.C_xi.mT + u @ loop.xi_u.mT, loop.xi_v, fed)
    return Solution(first, states, at, linearised(loop, at.xi, fed))


def run_about(found: Solution, loop: Loop, u: Tensor, start: Tensor, fed: Map) -> tuple[Tensor, Tensor]:
    """Outputs and the last state. What the step adds to the states is zero but for its derivatives."""
    direct = u @ loop.xi_u.mT
    xi = found.seen.at(found.states @ loop.C_xi.mT + direct, loop.xi_v, fed)
    after = advanced(loop, found.states, u, fed(xi))
    moved, moved_end = scan_varying(found.A, after - after.detach(), start - start.detach())
    w, end = found.states + moved, after[:, -1].detach() + moved_end
    return outputs(loop, w, u, fed(found.seen.at(w @ loop.C_xi.mT + direct, loop.xi_v, fed))), end


@final
class KeptSolutions:
    """Solutions in the order in which they were found, given again in that order as often as one asks."""

    def __init__(self) -> None:
        self.found: list[Solution] = []
        self.is_complete, self._place = False, 0

    def next(self) -> Solution:
        """The next one."""
        self._place += 1
        return self.found[self._place - 1]

    def rewind(self) -> None:
        """All are found; begin with the first again."""
        self.is_complete, self._place = True, 0


@contextmanager
def plain_numbers() -> Iterator[None]:
    """Without derivatives, neither backward nor forward ones."""
    with torch.no_grad(), forward_ad._set_fwd_grad_enabled(False):
        yield
