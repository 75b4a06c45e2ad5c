"""Sizes of the exponentials of a coupled block over a length of time.

|e^{Fs}| is evaluated at lengths h, h/2, h/4, …, which resolve a stiff block, and between each two of them, and widened by the
rotation ω g of each pair within a gap g: bounds by the entries of F would grow where the exponential decays. Between these
places its size is therefore estimated, not bounded.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.floating_point import MAX_FLOAT, Array, balancing_units

_TAYLOR_TERMS = 18  # 1/19! < eps/16: the Taylor series of a matrix of norm one
_MAX_HALVINGS = 64  # of a length: what e^{Fs} does within 2⁻⁶⁴ of it is below its rounding


class ExponentialSizes(NamedTuple):
    """Largest |e^{Fs}| up to a length, and ∫|e^{Fs}| ds, entry by entry."""

    peak: Array
    integral: Array


def exponential_sizes(F: Array, length: float) -> ExponentialSizes:
    """Return the sizes of the exponentials of a block up to a length; the cost is O(n³) for each halving of it."""
    n = len(F)
    units = balancing_units(F)
    norm = min(float(np.linalg.norm(F * units / units[:, None], 1)) * length, MAX_FLOAT) if n else 0.0
    halvings = min(max(math.ceil(math.log2(norm)), 0) if norm > 0.0 else 0, _MAX_HALVINGS)
    M = F * (length * 0.5**halvings)
    R = np.eye(n)
    for term in range(_TAYLOR_TERMS, 0, -1):
        R = np.eye(n) + M @ R / term
    exponentials = [R]
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(halvings):
            R = R @ R
            exponentials.append(R)
        levels = np.array(exponentials[::-1])
        shorter = np.concatenate([levels[1:], np.eye(n)[None]])
        between = shorter @ np.concatenate([shorter[1:], shorter[-1:]])
    largest = np.maximum(np.maximum(np.abs(levels), np.abs(shorter)), np.abs(between))
    pairs, lengths = oscillator_pairs(F), length * 0.5 ** np.arange(len(levels))
    largest = cover_rotation(largest, pairs, gaps=0.25 * lengths)
    largest = cover_rotation(largest.swapaxes(-1, -2), pairs, gaps=0.25 * lengths, of_rows=True).swapaxes(-1, -2)
    gaps = 0.5 * lengths
    gaps[-1] *= 2.0  # the last one is down to zero
    return ExponentialSizes(np.asarray(largest.max(axis=0)), np.asarray(np.tensordot(gaps, largest, axes=1)))


class OscillatorPairs(NamedTuple):
    """Pairs of a quasi-triangular block: index of their first state, frequency, and unit of the second state."""

    first: NDArray[np.intp]
    omega: Array
    unit: Array
    """Unit of the second state of each pair, in units of the first."""


def oscillator_pairs(F: Array) -> OscillatorPairs:
    """Return the pairs of a quasi-triangular block."""
    first = np.flatnonzero(np.diagonal(F, -1))
    omega = np.sqrt(np.abs(F[first, first + 1])) * np.sqrt(np.abs(F[first + 1, first]))
    units = balancing_units(F)
    return OscillatorPairs(first, np.asarray(omega), units[first + 1] / units[first])


def cover_rotation(values: Array, pairs: OscillatorPairs, *, gaps: ArrayLike, of_rows: bool = False) -> Array:
    """Widen the columns of pairs by their rotation between the places at which values are known.

    A component that rotates passes through zero while its modulus does not: within a gap g a pair turns by ω g, which
    adds that fraction of the other component. `gaps` are those along the first axis of values. With `of_rows` the values
    are transposed, and the columns are rows of the propagator.
    """
    angle = np.minimum(1.0, np.multiply.outer(np.asarray(gaps), pairs.omega))
    angle = angle.reshape(*angle.shape[:-1], *(1,) * (values.ndim - angle.ndim), angle.shape[-1])
    result = values.copy()
    one, other = values[..., pairs.first], values[..., pairs.first + 1]
    unit = 1.0 / pairs.unit if of_rows else pairs.unit
    result[..., pairs.first] = np.hypot(one, angle * other * unit)
    result[..., pairs.first + 1] = np.hypot(other, angle * one / unit)
    return result
