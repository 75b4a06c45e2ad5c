"""Steps of a coupled block to twice the digits, beside which those that the engine takes are measured."""

import math

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.double_double import exponentials
from ltinet.solve.modal import DenseBlock
from ltinet.solve.steps.propagators import matrix_steps
from ltinet.solve.steps.short_steps import is_short


def true_steps(block: DenseBlock, lengths: Array, *, linear: bool) -> list[tuple[Array, Array]]:
    """P and what inputs at both ends add, `(lengths, …)`, each as high + low, from one exponential (Van Loan 1978).

    Lengths come in rows, each half of the one before. exp(h [[F, G, 0], [0, 0, I/s], [0, 0, 0]]) has e^{Fh}, h φ₁ G and
    h² φ₂ G/s in its first rows; s, a power of two near h, keeps all of one size.
    """
    n, m = block.G.shape
    scale = 2.0 ** math.frexp(float(lengths.max()))[1]
    whole = np.zeros((n + 2 * m, n + 2 * m))
    whole[:n, :n], whole[:n, n : n + m] = block.F, block.G
    whole[n : n + m, n + m :] = np.eye(m) / scale
    levels = [exponentials(whole, float(first), len(lengths) - 1) for first in lengths[0]]
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


def inputs_off(block: DenseBlock, length: float, *, linear: bool) -> Array:
    """By how much a step of the engine is off per unit of the inputs at both its ends, (n × m).

    Short steps are series whose every entry is right to its last digits, which other bounds count.
    """
    if is_short(block.F, length):
        return np.zeros(block.G.shape)
    found = matrix_steps(block.F, block.G, np.array([length]), linear=linear)[1:]
    true = true_steps(block, np.array([[length]]), linear=linear)[1:]
    off = sum(np.abs((own[0] - high[0]) - low[0]) for own, (high, low) in zip(found, true, strict=True))
    return np.where(np.isnan(off), np.inf, off)
