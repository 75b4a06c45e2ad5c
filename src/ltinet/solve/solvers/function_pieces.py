"""Pieces of time short enough for what a function of time does in them.

A solver steps over a pulse that it does not meet, and polynomials on the pieces that its steps leave do not see the
pulse either: a bound from them would be as blind as the solver. A function is therefore looked at all over its span,
and pieces whose polynomial misses what was seen are cut in halves.
"""

from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from ltinet.arrays import Array
from ltinet.bounds.collocation import Rule
from ltinet.signals.signal import Signal
from ltinet.signals.watched import first_look
from ltinet.tolerances import EPS

_ROUNDING = 64.0 * EPS  # of the largest value: what values of functions, and of polynomials through them, are off by
_HALVINGS = 40  # what a jump that is not among the knots leaves in a piece then is below rounding


class Look(NamedTuple):
    """Times all over a span and the function there, none for samples, which are what they are between knots."""

    t: Array
    u: Array


def look_at(signal: Signal, start: float, stop: float) -> Look:
    """A first look at an input."""
    t = first_look(start, stop) if signal.degree is None else np.empty(0)
    return Look(t, signal.value(t))


def cut_for(signal: Signal, look: Look, grid: Array, rule: Rule) -> Array:
    """The grid, with pieces halved on which a polynomial through the function at the nodes misses what was seen."""
    inside = (look.t > grid[0]) & (look.t < grid[-1])
    t, u = look.t[inside], look.u[inside]
    allowed = _ROUNDING * np.max(np.abs(u), axis=0, initial=0.0)
    for _ in range(_HALVINGS):
        piece = np.searchsorted(grid, t, side="right") - 1
        looked_at, which = np.unique(piece, return_inverse=True)
        start, width = grid[looked_at], np.diff(grid)[looked_at]
        series = np.einsum("kj,njm->nkm", rule.to_series, _at_nodes(signal, start, width, rule))
        x = 2.0 * (t - start[which]) / width[which] - 1.0
        found = np.einsum("tk,tkm->tm", chebyshev.chebvander(x, rule.n_nodes), series[which])
        misses = np.any(np.abs(found - u) > allowed, axis=1)
        if not misses.any():
            break
        own = np.unique(piece[misses])
        grid = np.union1d(grid, 0.5 * (grid[own] + grid[own + 1]))
        near = np.isin(piece, own)
        t, u = t[near], u[near]
    return grid


def _at_nodes(signal: Signal, start: Array, width: Array, rule: Rule) -> Array:
    """The function at the starts and at the nodes of some pieces, `(pieces, q + 1, m)`; at their ends before a jump."""
    times = start[:, None] + width[:, None] * np.append(0.0, rule.nodes[:-1])
    values = signal.value(times.ravel()).reshape(*times.shape, signal.n_inputs)
    return np.concatenate([values, signal.value_before(start + width)[:, None]], axis=1)
