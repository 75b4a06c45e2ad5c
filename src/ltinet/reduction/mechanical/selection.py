"""Which oscillators are kept: those with the largest shares, as many as asked for or as few as suffice."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array, Complex
from ltinet.reduction.norms import frobenius, norms
from ltinet.reduction.oscillators import Oscillators
from ltinet.reduction.supremum import mean_square, places_for

Found = TypeVar("Found")
_FEW = 200  # modes, up to which places may be many
_FINE, _COARSE = 0.8, 1.6  # spacings in phase: 1.02 and 1.09 of the largest value at most


@dataclass(frozen=True, eq=False)
class Kept:
    """Some oscillators of many, and what leaving out the others did."""

    places: NDArray[np.intp]
    """Which of them, ascending."""
    oscillators: Oscillators
    error: float
    """Sup of the response of those left out over all frequencies, rounding included."""
    mean: Callable[[], float]
    """The H2 norm of it."""
    peak: float
    """Sup of the response of those kept, or a little less."""


def keep(given: Oscillators, count: int) -> Kept:
    """Keep the `count` modes with the largest shares."""
    order = _ranked(given)
    chosen, left = np.sort(order[:count]), np.sort(order[count:])
    kept, dropped = given.taken(chosen), given.taken(left)
    return Kept(chosen, kept, _largest(dropped), lambda: _mean(dropped), _peak(kept))


def keep_enough(given: Oscillators, *, tolerance: float, already: float) -> Kept:
    """As few modes as err by `tolerance` of the largest gain at most, `already` counted; all where none suffice."""
    shares, ranked = np.sort(given.shares), _ranked(given)
    below = np.concatenate([[0.0], np.cumsum(shares)])  # the sum of the smallest 0, 1, 2, …

    def is_enough(count: int) -> bool:
        allowed, n_left = tolerance * _peak(given.taken(ranked[:count])) - already, len(given) - count
        if below[n_left] <= allowed or n_left == 0:
            return bool(below[n_left] <= allowed)
        return keep(given, count).error <= allowed

    return keep(given, fewest(len(given), lambda count: count, is_enough))


def _ranked(given: Oscillators) -> NDArray[np.intp]:
    return np.argsort(-given.shares, kind="stable")


def fewest(n: int, reduced: Callable[[int], Found], is_enough: Callable[[Found], bool]) -> Found:
    """The first of 0 … n that is enough, by bisection; that of n where none is."""
    low, high, best = 0, n, reduced(n)
    while low < high:
        middle = (low + high) // 2
        found = reduced(middle)
        if is_enough(found):
            best, high = found, middle
        else:
            low = middle + 1
    return best


def _largest(own: Oscillators) -> float:
    """The lesser of the supremum from places that suffice and the sum of all shares."""
    if len(own) == 0:
        return 0.0
    places = places_for(own.poles, spacing=_FINE if len(own) <= _FEW else _COARSE)
    values, rounding = own.response(places.omega)
    return min(places.supremum(norms(values) + rounding, 0.0), float(np.sum(own.shares)))


def _mean(own: Oscillators) -> float:
    def squares(omega: Array) -> Array:
        values, rounding = own.response(omega)
        return np.asarray((frobenius(values) + rounding) ** 2)

    return math.sqrt(mean_square(own.poles, squares))


def _peak(own: Oscillators) -> float:
    """At rest and where single modes peak."""
    peaks = np.sqrt(np.maximum(own.stiffness - 0.5 * own.damping**2, 0.0))
    values: Complex = own.response(np.append(peaks, 0.0))[0]
    return float(np.max(norms(values), initial=0.0))
