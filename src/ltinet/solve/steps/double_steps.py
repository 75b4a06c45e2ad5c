"""Steps of a coupled block in pairs of doubles.

The engine takes them where a step is so long that squaring an exponential in double precision would lose slow states,
and error bounds compare shorter steps with them.
"""

import math

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.double_double import exponentials
from ltinet.bounds.units import best_units

_TINY = 2.0**-1000  # below it the inverse of a power of two overflows


def double_steps(F: Array, G: Array, lengths: Array, *, linear: bool) -> list[tuple[Array, Array]]:
    """P and what inputs at both ends add, `(lengths, …)`, each as high + low, from one exponential (Van Loan 1978).

    Lengths come in rows, each half of the one before. exp(h [[F, G, 0], [0, 0, I/s], [0, 0, 0]]) has e^{Fh}, h φ₁ G and
    h² φ₂ G/s in its first rows; s, a power of two near h, keeps all of one size. So do units of inputs: balancing finds
    none for what nothing acts on.
    """
    n, m = G.shape
    scale = 2.0 ** math.frexp(float(lengths.max()))[1]
    whole = np.zeros((n + 2 * m, n + 2 * m))
    whole[:n, :n], whole[:n, n : n + m] = F, G
    whole[n : n + m, n + m :] = np.eye(m) / scale
    states = best_units(F)
    inputs = _like_one(scale * np.abs(G / states[:, None]).max(axis=0, initial=0.0))
    units = np.concatenate([states, 1.0 / inputs, 1.0 / inputs])
    levels = [exponentials(whole, float(first), len(lengths) - 1, units=units) for first in lengths[0]]
    high, low = (np.array([[own[part] for own in column] for column in levels]) for part in (0, 1))
    high, low = (part.swapaxes(0, 1).reshape(lengths.size, *whole.shape)[:, :n] for part in (high, low))
    first = high[:, :, n : n + m], low[:, :, n : n + m]
    nothing = np.zeros_like(first[0])
    if not linear:
        return [(high[:, :, :n], low[:, :, :n]), first, (nothing, nothing)]
    shares = (scale / lengths.ravel())[:, None, None]
    second = high[:, :, n + m :] * shares
    # One more rounding, of numbers no larger than what inputs add: far below what is looked for.
    return [(high[:, :, :n], low[:, :, :n]), (first[0] - second, first[1]), (second, nothing)]


def _like_one(sizes: Array) -> Array:
    """Powers of two that are as large; 1 for nothing, and for what is no number."""
    usable = np.where((sizes > _TINY) & (sizes < 1.0 / _TINY), sizes, 1.0)
    return np.asarray(np.ldexp(1.0, np.frexp(usable)[1]))
