"""Functions of the length of a step as Chebyshev series between two lengths: Σ c_k T_k(x), x from −1 to 1.

The highest degree comes first: sums then end with their largest terms, and round least.
"""

import numpy as np
import scipy  # which loads scipy.fft when it is first used

from ltinet.arrays import Array
from ltinet.solve.uneven.doubled import Doubled, plus, times


def nodes(low: float, high: float, degree: int) -> Array:
    """The `degree + 1` lengths, from the high end to the low one, at which a series is interpolated.

    Those of half the degree are every second of them.
    """
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    return np.asarray(middle + half * np.cos(np.pi / degree * np.arange(degree + 1)))


def coefficients(values: Array) -> Array:
    """The series `(degree + 1, …)` through values at the nodes, first axis."""
    found = np.asarray(scipy.fft.dct(values, type=1, axis=0)) / (len(values) - 1)
    found[[0, -1]] /= 2.0
    return found[::-1]


def polynomials(h: Array, low: float, high: float, *, out: Array) -> None:
    """T_{count−1} … T_1, T_0 at lengths h, one for each row of `(count, len(h))`."""
    x = (h - 0.5 * (low + high)) / (0.5 * (high - low))
    twice, ascending = 2.0 * x, out[::-1]
    ascending[0], ascending[1:2] = 1.0, x
    for two_before, before, own in zip(ascending, ascending[1:], ascending[2:], strict=False):
        np.multiply(twice, before, out=own)
        own -= two_before


def exact_polynomials(x: Array, *, count: int) -> Doubled:
    """The same at some x, `(len(x), count)`, with twice the digits."""
    found = [Doubled(np.ones_like(x), np.zeros_like(x)), Doubled(x, np.zeros_like(x))]
    while len(found) < count:
        twice = times(Doubled(2.0 * x, np.zeros_like(x)), found[-1])
        found.append(plus(twice, Doubled(-found[-2].high, -found[-2].low)))
    return Doubled(*(np.column_stack(parts[::-1]) for parts in zip(*found[:count], strict=True)))


def degree_for(rho: float, *, left: float) -> int:
    """A degree beyond which coefficients of e^{zx}, |z| ≤ ρ, are below a share of its largest value.

    They are 2 I_k(z), and |I_k(z)| ≤ (|z|/2)^k/k! e^{|Re z|} (Watson 1922). Averages of such functions need no more.
    """
    term, k = 2.0, 0
    while term > left or k < rho:
        k += 1
        term *= 0.5 * rho / k
    return max(k, 2)
