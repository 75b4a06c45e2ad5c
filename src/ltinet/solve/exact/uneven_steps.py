"""How far the steps that the engine takes at uneven times are from exact ones, measured.

Steps of different lengths come from series and tables that they share (`solve.uneven.any_length`): what is rounded
there, or left out beyond the last term, is in every step. It is looked at where it is used, at some lengths of every
octave, and compared with exponentials of more digits.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.bounds.double_double import exponentials
from ltinet.bounds.step_rounding import StepSizes
from ltinet.solve.modal import DenseBlock
from ltinet.solve.steps.propagators import exp_of_multiples, scalar_steps
from ltinet.solve.uneven.any_length import AnyLength, Dense, Scalars

_LEVELS = 24  # octaves of lengths below the longest that are told apart: shorter steps hardly move anything
_WITHIN = (1.0, 0.9, 0.77, 0.66, 0.54)  # of the longest length of an octave: where scalars are looked at
_WITHIN_BLOCKS = (0.9, 0.6)  # the same for blocks, whose exponentials with twice the digits cost time
_SMALL_BLOCK = 8  # states up to which these cost little
_BETWEEN = 2.0  # by how much steps may be farther off than at the lengths looked at


def shares_of_lengths(t: Array, cells: Array, longest: float) -> Array:
    """Which share of the steps that end in each cell is about as long as the longest, half of it, and so on."""
    lengths = np.diff(t)
    with np.errstate(divide="ignore", invalid="ignore"):
        halvings = np.floor(np.log2(longest) - np.log2(lengths))
    level = np.clip(halvings, 0, _LEVELS - 1).astype(np.intp)  # steps of length zero are the shortest
    cell = np.clip(np.searchsorted(cells, t[1:], side="left") - 1, 0, len(cells) - 2)
    counts = np.zeros((len(cells) - 1, _LEVELS))
    np.add.at(counts, (cell, level), 1.0)
    return np.asarray(counts / np.maximum(1.0, counts.sum(axis=1, keepdims=True)))


class Off(NamedTuple):
    """By how much steps of each octave are off, per unit of a state and of an input at both ends."""

    per_state: Array
    """`(levels, n)` for scalars, `(levels, n, n)` for a block."""
    per_input: Array
    """`(levels, n, m)`."""


@dataclass(frozen=True, eq=False)
class UnevenErrors:
    """What the engine's own steps add to rounding, on uneven times."""

    shares: Array
    """Which share of the steps in each cell is about as long as h, h/2, h/4, …"""
    scalars: list[tuple[slice, Off]]
    """By modes."""
    blocks: list[tuple[slice, Off]]

    def committed(self, sizes: StepSizes) -> Array:
        """In one step, `(cells, modes)`."""
        shares = self.shares
        total = np.zeros_like(sizes.here)
        for own, off in self.scalars:
            total[:, own] = (shares @ off.per_state) * sizes.behind[:, own]
        for own, off in self.blocks:
            total[:, own] = np.einsum("cl,lij,cj->ci", shares, off.per_state, sizes.behind[:, own], optimize=True)
        for own, off in (*self.scalars, *self.blocks):
            total[:, own] += np.einsum("cl,lij,cj->ci", shares, off.per_input, sizes.inputs, optimize=True)
        return np.asarray(_BETWEEN * total)


def uneven_errors(steps: AnyLength, slices: list[slice], *, longest: float, shares: Array) -> UnevenErrors:
    """Look at the steps of a run whose longest is known; `slices` is where the modes of its coupled blocks stand."""
    steps = steps.as_it_is()
    shares = shares[:, : int(np.max(np.flatnonzero(shares.any(axis=0)), initial=0)) + 1]
    n_levels = shares.shape[1]
    scalars, first = [], 0
    for own in steps.scalars:
        place = slice(first, first + len(own.steps.rates))
        scalars.append((place, _scalars_off(own, _lengths(longest, _WITHIN, n_levels), linear=steps.linear)))
        first = place.stop
    blocks = []
    for dense in steps.dense:
        own_blocks = [steps.system.blocks[number] for number in dense.numbers]
        within = _WITHIN if len(own_blocks[0].F) <= _SMALL_BLOCK else _WITHIN_BLOCKS
        offs = _blocks_off(dense, own_blocks, _lengths(longest, within, n_levels), linear=steps.linear)
        blocks += [(slices[number], off) for number, off in zip(dense.numbers, offs, strict=True)]
    return UnevenErrors(shares, scalars, blocks)


def _lengths(longest: float, within: tuple[float, ...], n_levels: int) -> Array:
    """`(levels, places)`."""
    return np.asarray(longest * np.multiply.outer(0.5 ** np.arange(n_levels), within))


def _scalars_off(scalars: Scalars, lengths: Array, *, linear: bool) -> Off:
    """Exponentials with the digits that rounding takes from λh; φ functions, which hardly feel them, as they are."""
    h, rates, drive = lengths.ravel(), scalars.steps.rates, scalars.steps.drive
    exact = np.array([exp_of_multiples(rates.astype(np.complex128), length, np.array([1]))[0] for length in h.tolist()])
    per_state = _largest(np.abs(scalars.steps.factors(h) - exact), lengths)
    _, begin, end = scalar_steps(rates, h, linear=linear)
    off = np.zeros((len(h), len(rates), len(drive)))
    for number, weights in enumerate(drive):
        for true, at_end in ((begin, False), (end, True)):
            unit, none = np.zeros((1, len(h), len(drive))), np.zeros((1, len(h), len(drive)))
            unit[..., number] = 1.0
            added = scalars.steps.step(h, *((none, unit) if at_end else (unit, none)))[1][0]
            off[..., number] += np.abs(added - true * weights)
    return Off(per_state, _largest(off, lengths))


def _blocks_off(dense: Dense, blocks: list[DenseBlock], lengths: Array, *, linear: bool) -> list[Off]:
    P, begin, end = dense.steps.of(lengths.ravel())
    found = []
    for number, block in enumerate(blocks):
        weights = np.eye(block.G.shape[1]) if dense.drive is None else dense.drive[number].T
        true = _true_steps(block, lengths, linear=linear)
        parts = [P[:, number], begin[:, number] @ weights, end[:, number] @ weights]
        off = [np.abs((own - high) - low) for own, (high, low) in zip(parts, true, strict=True)]
        found.append(Off(_largest(off[0], lengths), _largest(off[1] + off[2], lengths)))
    return found


def _true_steps(block: DenseBlock, lengths: Array, *, linear: bool) -> list[tuple[Array, Array]]:
    """P and what inputs at both ends add, `(lengths, …)`, each as high + low, from one exponential (Van Loan 1978).

    exp(h [[F, G, 0], [0, 0, I/s], [0, 0, 0]]) has e^{Fh}, h φ₁ G and h² φ₂ G/s in its first rows; s, a power of two
    near h, keeps all of one size.
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


def _largest(off: NDArray[Any], lengths: Array) -> Array:
    """The largest of each octave, `(levels, …)`; what is no number is infinite."""
    with np.errstate(invalid="ignore"):
        found = off.reshape(*lengths.shape, *off.shape[1:]).max(axis=1)
    return np.asarray(np.where(np.isnan(found), np.inf, found))
