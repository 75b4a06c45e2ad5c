"""How far the steps that the engine takes at uneven times are from exact ones, measured.

Steps of different lengths come from series and tables that they share (`solve.uneven.any_length`): what is rounded
there, or left out beyond the last term, is in every step. It is looked at where it is used, at some lengths of every
octave, and compared with exponentials of more digits.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.bounds.step_rounding import StepSizes
from ltinet.solve.exact.sizes import cells_of_steps
from ltinet.solve.exact.true_steps import BETWEEN, WITHIN
from ltinet.solve.modal import DenseBlock
from ltinet.solve.steps.double_steps import double_steps
from ltinet.solve.steps.propagators import scalar_steps
from ltinet.solve.uneven.any_length import AnyLength, Dense, Scalars
from ltinet.solve.uneven.doubled import exponentials_at

_LEVELS = 24  # octaves of lengths below the longest that are told apart: shorter steps hardly move anything
_FEW = 16  # lengths up to which each is looked at itself
_COMMON = 0.02  # share of all steps from which on a length is looked at where there are more


def shares_of_lengths(t: Array, cells: Array, longest: float) -> Array:
    """Which share of the steps that end in each cell is about as long as the longest, half of it, and so on."""
    return _shares(_octaves(np.diff(t), longest), t, cells, _LEVELS)


def _octaves(lengths: Array, longest: float) -> NDArray[np.intp]:
    with np.errstate(divide="ignore", invalid="ignore"):
        halvings = np.floor(np.log2(longest) - np.log2(lengths))
    return np.asarray(np.clip(halvings, 0, _LEVELS - 1), dtype=np.intp)  # steps of length zero are the shortest


def _shares(kinds: NDArray[np.intp], t: Array, cells: Array, n_kinds: int) -> Array:
    """Which share of the steps that end in each cell is of each kind."""
    places = cells_of_steps(t, cells) * n_kinds + kinds
    counts = np.bincount(places, minlength=(len(cells) - 1) * n_kinds).reshape(-1, n_kinds)
    return np.asarray(counts / np.maximum(1, counts.sum(axis=1, keepdims=True)))


class Lengths(NamedTuple):
    """The lengths of steps at which these are looked at, and which share of the steps each stands for."""

    common: Array
    """Lengths that many steps have, which are all off in the same direction; all lengths, where these are few."""
    n_octaves: int
    shares: Array
    """`(cells, common + octaves)`: of all common lengths, and of the octaves that all others are in."""
    longest: float

    def octaves(self, within: tuple[float, ...]) -> Array:
        """Some lengths of every octave, `(octaves, places)`."""
        return np.asarray(self.longest * np.multiply.outer(0.5 ** np.arange(self.n_octaves), within))

    def all_kinds(self, within: tuple[float, ...]) -> Array:
        """The same after the common lengths, each of which is at all places, `(kinds, places)`."""
        return np.concatenate([np.tile(self.common[:, None], len(within)), self.octaves(within)])


def lengths_of(t: Array, cells: Array, longest: float) -> Lengths:
    """Sort the steps of a run by their lengths."""
    lengths = np.diff(t)
    values, index, counts = np.unique(lengths, return_inverse=True, return_counts=True)
    is_common = values > 0.0
    if np.count_nonzero(is_common) > _FEW:
        is_common &= counts >= max(2.0, _COMMON * len(lengths))
        is_common[np.argsort(-counts * is_common, kind="stable")[_FEW:]] = False
    common = values[is_common]
    kinds = np.where(is_common[index], np.cumsum(is_common)[index] - 1, len(common) + _octaves(lengths, longest))
    shares = _shares(kinds, t, cells, len(common) + _LEVELS)
    n_kinds = int(np.max(np.flatnonzero(shares.any(axis=0)), initial=0)) + 1
    return Lengths(common, max(0, n_kinds - len(common)), shares[:, : max(n_kinds, len(common))], longest)


class Off(NamedTuple):
    """By how much steps of each kind are off, per unit of a state and of an input at both ends."""

    per_state: Array
    """`(kinds, n)` for scalars, `(kinds, n, n)` for a block."""
    per_input: Array
    """`(kinds, n, m)`."""

    def with_more(self, lengths: Lengths) -> "Off":
        """The same, of octaves with more than what was seen."""
        more = np.where(np.arange(lengths.shares.shape[1]) < len(lengths.common), 1.0, BETWEEN)
        return Off((more * self.per_state.T).T, (more * self.per_input.T).T)


@dataclass(frozen=True, eq=False)
class UnevenErrors:
    """What the engine's own steps add to rounding, on uneven times."""

    shares: Array
    """Which share of the steps in each cell is of each kind."""
    common: Array
    """Which share has a length that others have, `(cells,)`."""
    scalars: list[tuple[slice, Off]]
    """By modes."""
    blocks: list[tuple[slice, Off]]

    def committed(self, sizes: StepSizes) -> tuple[Array, Array]:
        """In one step on the average, and at most, `(cells, modes)`."""
        average, largest = np.zeros_like(sizes.here), np.zeros_like(sizes.here)
        for own, off in (*self.scalars, *self.blocks):
            states = sizes.behind[:, own]
            one_by_one = off.per_state.ndim == 2
            by_kind = off.per_state * states[:, None] if one_by_one else _by_kind(off.per_state, states)
            by_kind = by_kind + _by_kind(off.per_input, sizes.inputs)
            average[:, own] = np.einsum("cl,cli->ci", self.shares, by_kind)
            largest[:, own] = np.max(np.where(self.shares[:, :, None] > 0.0, by_kind, 0.0), axis=1, initial=0.0)
        return average, largest


def _by_kind(off: Array, sizes: Array) -> Array:
    """`(cells, kinds, n)` from what steps of each kind are off, `(kinds, n, …)`, per unit of sizes `(cells, …)`."""
    return np.asarray(np.einsum("lij,cj->cli", off, sizes, optimize=True))


def uneven_errors(steps: AnyLength, slices: list[slice], lengths: Lengths) -> UnevenErrors:
    """Look at the steps of a run; `slices` is where the modes of its coupled blocks stand."""
    scalars, first = [], 0
    for own in steps.scalars:
        place = slice(first, first + len(own.steps.rates))
        found = _scalars_off(own, lengths.all_kinds(WITHIN), linear=steps.linear)
        scalars.append((place, found.with_more(lengths)))
        first = place.stop
    blocks = []
    for dense in steps.dense:
        own_blocks = [steps.system.blocks[number] for number in dense.numbers]
        looked_at = [*lengths.common[:, None, None], *([lengths.octaves(WITHIN)] if lengths.n_octaves else [])]
        offs = [_blocks_off(dense, own_blocks, at, linear=steps.linear) for at in looked_at]
        for number, *own_offs in zip(dense.numbers, *offs, strict=True):
            together = Off(*(np.concatenate(parts) for parts in zip(*own_offs, strict=True)))
            blocks.append((slices[number], together.with_more(lengths)))
    common = lengths.shares[:, : len(lengths.common)].sum(axis=1)
    return UnevenErrors(lengths.shares, common, scalars, blocks)


def _scalars_off(scalars: Scalars, lengths: Array, *, linear: bool) -> Off:
    """Exponentials beside such of twice the digits; φ functions, which hardly feel what rounding takes from λh."""
    h, rates, drive = lengths.ravel(), scalars.steps.rates, scalars.steps.drive
    exact = exponentials_at(rates, h)
    per_state = _largest(np.abs((scalars.steps.factors(h) - exact.high) - exact.low), lengths)
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
        true = double_steps(block.F, block.G, lengths, linear=linear)
        parts = [P[:, number], begin[:, number] @ weights, end[:, number] @ weights]
        off = [np.abs((own - high) - low) for own, (high, low) in zip(parts, true, strict=True)]
        found.append(Off(_largest(off[0], lengths), _largest(off[1] + off[2], lengths)))
    return found


def _largest(off: NDArray[Any], lengths: Array) -> Array:
    """The largest of each kind, `(kinds, …)`; what is no number is infinite."""
    with np.errstate(invalid="ignore"):
        found = off.reshape(*lengths.shape, *off.shape[1:]).max(axis=1)
    return np.asarray(np.where(np.isnan(found), np.inf, found))
