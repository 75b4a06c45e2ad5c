"""Steps of a coupled block to twice the digits, beside which those that the engine takes are measured."""

import math
from typing import NamedTuple

import numpy as np

from ltinet.arrays import Array
from ltinet.bounds.double_double import exponentials
from ltinet.bounds.units import best_units
from ltinet.solve.modal import DenseBlock
from ltinet.solve.steps.propagators import matrix_steps

WITHIN = (1.0, 0.9, 0.77, 0.66, 0.54)  # of the longest length of an octave: where steps are looked at
_TINY = 2.0**-1000  # what a power of two cannot be divided by
BETWEEN = 3.0  # by how much steps may be farther off than at the lengths looked at: 2.6 was seen in 2,000 drawn ones


def true_steps(block: DenseBlock, lengths: Array, *, linear: bool) -> list[tuple[Array, Array]]:
    """P and what inputs at both ends add, `(lengths, …)`, each as high + low, from one exponential (Van Loan 1978).

    Lengths come in rows, each half of the one before. exp(h [[F, G, 0], [0, 0, I/s], [0, 0, 0]]) has e^{Fh}, h φ₁ G and
    h² φ₂ G/s in its first rows; s, a power of two near h, keeps all of one size. So do units of inputs: balancing finds
    none for what nothing acts on.
    """
    n, m = block.G.shape
    scale = 2.0 ** math.frexp(float(lengths.max()))[1]
    whole = np.zeros((n + 2 * m, n + 2 * m))
    whole[:n, :n], whole[:n, n : n + m] = block.F, block.G
    whole[n : n + m, n + m :] = np.eye(m) / scale
    states = best_units(block.F)
    inputs = _like_one(scale * np.abs(block.G / states[:, None]).max(axis=0, initial=0.0))
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


class StepErrors(NamedTuple):
    """By how much steps of the engine are off, per unit of a state and of an input at both ends; NaN is infinite."""

    per_state: Array
    """`(lengths, n, n)`."""
    per_input: Array
    """`(lengths, n, m)`."""


def step_errors(block: DenseBlock, lengths: Array, *, linear: bool) -> StepErrors:
    """Those of steps of some lengths, whose rows halve."""
    found = matrix_steps(block.F, block.G, lengths.ravel(), linear=linear)
    true = true_steps(block, lengths, linear=linear)
    with np.errstate(invalid="ignore"):
        off = [np.abs((own - high) - low) for own, (high, low) in zip(found, true, strict=True)]
        parts = off[0], off[1] + off[2]
    return StepErrors(*(np.where(np.isnan(part), np.inf, part) for part in parts))
