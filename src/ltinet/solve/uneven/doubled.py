"""Numbers with twice the digits of a double, as the sum of two, and exponentials e^{kλq}, k = 0, 1, 2 … of that kind.

What is prepared for many steps must not be off in the same direction in all of them: what is below the last digit of
one step is above it after a million.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet.exact_arithmetic import exact_product, exact_sum
from ltinet.solve.steps.propagators import exact_exponents

_TINY = 2.0**-10  # |x| below which x³/6 + … need no more than the digits of a double, beside x
_ENOUGH = 2.0**1000  # exponents beyond are like it: nothing is left, or what is left is no number


class Doubled(NamedTuple):
    """The numbers high + low, real or complex."""

    high: NDArray[Any]
    low: NDArray[Any]

    def part(self, own: slice) -> "Doubled":
        """Some rows."""
        return Doubled(self.high[own], self.low[own])


def exponentials(rates: NDArray[Any], step: float, count: int, *, less_one: NDArray[np.bool_]) -> Doubled:
    """e^{kλq}, or e^{kλq} − 1, `(count, n_rates)`, for a step q that is a power of two; right to 2⁻⁷⁰ max(1, |kλq|)."""
    z = rates * step
    once = _doubled_up(z, np.zeros_like(z))
    found = Doubled(np.zeros((1, *z.shape), dtype=z.dtype), np.zeros((1, *z.shape), dtype=z.dtype))
    while len(found.high) < count:
        more = _composed(found, once)
        found = Doubled(np.concatenate([found.high, more.high]), np.concatenate([found.low, more.low]))
        once = _composed(once, once)
    ones = Doubled(np.where(less_one, 0.0, 1.0), np.zeros(len(rates)))
    return plus(ones, found.part(slice(0, count)))


def exponentials_at(rates: NDArray[Any], lengths: NDArray[np.float64]) -> Doubled:
    """e^{λh}, `(lengths, n_rates)`, for any lengths; right to 2⁻⁷⁰ max(1, |λh|)."""
    found = _doubled_up(*exact_exponents(rates, lengths))
    return plus(Doubled(np.ones_like(found.high), np.zeros_like(found.low)), found)


def _doubled_up(z: NDArray[Any], lost: NDArray[Any]) -> Doubled:
    """e^{z + lost} − 1."""
    largest = float(np.abs(z).max(initial=0.0))
    if not largest < _ENOUGH:
        z, lost, largest = _clipped(z), np.where(np.isfinite(lost), lost, 0.0), 2.0 * _ENOUGH
    halvings = max(0, int(np.ceil(np.log2(max(largest, _TINY) / _TINY))))
    share = np.ldexp(1.0, -halvings)
    high, low = _expm1(share * z)
    once = Doubled(high, low + share * lost * (1.0 + share * z))
    for _ in range(halvings):
        once = _composed(once, once)
    return once


def _clipped(z: NDArray[Any]) -> NDArray[Any]:
    """Exponents of which nothing is left, or which exceed all numbers or turn by more than any digit tells."""
    if not np.iscomplexobj(z):
        return np.asarray(np.clip(z, -_ENOUGH, _ENOUGH))
    return np.asarray(np.clip(z.real, -_ENOUGH, _ENOUGH) + 1j * np.clip(z.imag, -_ENOUGH, _ENOUGH))


def less_product(given: Doubled, left: Doubled, right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Given − left @ right for real matrices, of which the leading digits cancel."""
    total, lost = given.high, given.low - left.low @ right
    for column, row in zip(left.high.T, right, strict=True):
        term, lost_term = exact_product(column[:, None], row)
        total, more = exact_sum(total, -term)
        lost = lost + (more - lost_term)
    return np.asarray(total + lost)


def times(a: Doubled, b: Doubled) -> Doubled:
    """The product."""
    if not np.iscomplexobj(a.high):
        high, low = exact_product(a.high, b.high)
    else:
        high, low = _complex_product(a.high, b.high)
    return Doubled(*exact_sum(high, low + (a.high * b.low + a.low * b.high)))


def plus(a: Doubled, b: Doubled) -> Doubled:
    """The sum."""
    high, low = exact_sum(a.high, b.high)
    return Doubled(*exact_sum(high, low + (a.low + b.low)))


def _expm1(x: NDArray[Any]) -> Doubled:
    """e^x − 1 for tiny x."""
    whole = Doubled(x, np.zeros_like(x))
    square = times(whole, Doubled(0.5 * x, np.zeros_like(x)))
    rest = x * x * x * (1.0 / 6.0 + x * (1.0 / 24.0 + x * (1.0 / 120.0 + x * (1.0 / 720.0 + x / 5040.0))))
    return plus(whole, Doubled(square.high, square.low + rest))


def _composed(a: Doubled, b: Doubled) -> Doubled:
    """e^{x+y} − 1 = a + b + a b from a = e^x − 1 and b = e^y − 1."""
    return plus(plus(a, b), times(a, b))


def _complex_product(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The product of complex doubles rounded, and what rounding took from it."""
    high, low = (np.empty(np.broadcast_shapes(a.shape, b.shape), dtype=np.complex128) for _ in range(2))
    (xv, lost_xv), (yw, lost_yw) = exact_product(a.real, b.real), exact_product(a.imag, b.imag)
    (xw, lost_xw), (yv, lost_yv) = exact_product(a.real, b.imag), exact_product(a.imag, b.real)
    high.real, lost = exact_sum(xv, -yw)
    low.real = lost + (lost_xv - lost_yw)
    high.imag, lost = exact_sum(xw, yv)
    low.imag = lost + (lost_xw + lost_yv)
    return high, low
