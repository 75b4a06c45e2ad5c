"""Measured errors of the steps that the exact engine takes, in comparison with steps in double-double precision.

Steps at uneven times come from shared series and tables (`nonuniform`), so that their rounding and truncation is in
every step; outputs between samples come from steps of a fraction of an interval. Errors are therefore measured at a
few lengths of every octave below the longest step. Between the lengths at which they are measured they may be larger
by `EMPIRICAL_MARGIN`, an empirical factor: 2.6 was the largest in 2,000 random systems. A bound that uses it is an
estimate in this respect.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import MAX_FLOAT, Array
from ltinet.error_bounds.step_rounding import StepMagnitudes
from ltinet.simulation.modal import DenseBlock
from ltinet.simulation.nonuniform import DenseStepGroup, NonuniformSteps, ScalarStepGroup
from ltinet.simulation.propagators import (
    double_double_exponentials,
    double_double_steps,
    is_short_step,
    matrix_steps,
    perron_norm,
    scalar_steps,
)
from ltinet.simulation.system_arrays import EngineArrays
from ltinet.simulation.time_cells import step_cells

# MERGED ltinet.simulation.step_errors
# Steps of a coupled block to twice the digits, beside which those that the engine takes are measured.

OCTAVE_FRACTIONS = (1.0, 0.9, 0.77, 0.66, 0.54)  # of the longest length of an octave: where steps are looked at
EMPIRICAL_MARGIN = (
    3.0  # by how much steps may be farther off than at the lengths looked at: 2.6 was seen in 2,000 drawn ones
)


class StepErrors(NamedTuple):
    """By how much steps of the engine are off, per unit of a state and of an input at both ends; NaN is infinite."""

    per_state: Array
    """`(lengths, n, n)`."""
    per_input: Array
    """`(lengths, n, m)`."""


def measure_step_errors(block: DenseBlock, lengths: Array, *, linear: bool) -> StepErrors:
    """Those of steps of some lengths, whose rows halve."""
    found = matrix_steps(block.F, block.G, lengths.ravel(), linear=linear)
    true = double_double_steps(block.F, block.G, lengths, linear=linear)
    with np.errstate(invalid="ignore"):
        off = [np.abs((own - high) - low) for own, (high, low) in zip(found, true, strict=True)]
        parts = off[0], off[1] + off[2]
    return StepErrors(*(np.where(np.isnan(part), np.inf, part) for part in parts))


# MERGED ltinet.simulation.step_errors
# How far outputs between samples are off beyond the states at them: the step of a fraction of an interval, measured.
#
# Outputs between two samples come from the state at the first by a step of a length of its own. For coupled blocks that
# is an exponential of its own, or a series through some of these, and neither is off by what the step of a whole interval
# is off. Such steps are looked at in every octave below the longest, beside such of twice the digits.

_MANY_STATES = (
    16  # states from which on one place is looked at: exponentials in pairs of doubles take milliseconds each
)
_MAX_OCTAVES = 24  # at most


class BlockStepErrors(NamedTuple):
    """By how much the steps of a coupled block are off, at most."""

    modes: slice
    """Where the states of the block stand."""
    inputs_of_longest: Array
    """`(n, m)`: states after a step as long as that between samples, per unit of the inputs at both its ends."""
    outputs_per_state: Array
    """`(p, n)`: outputs after a step within an interval, per unit of the states at samples."""
    outputs_per_input: Array
    """`(p, m)`, per unit of the inputs."""

    def outputs(self, sizes: StepMagnitudes) -> Array:
        """Of outputs between samples, `(cells, p)`."""
        return np.asarray(
            sizes.begun[:, self.modes] @ self.outputs_per_state.T + sizes.inputs @ self.outputs_per_input.T
        )


def measure_block_errors(arrays: EngineArrays, longest: float, *, linear: bool) -> list[BlockStepErrors]:
    """Look at the blocks of an engine; short steps are series whose every entry is right to its last digits."""
    found = []
    for modes, block in zip(arrays.mode_slices, arrays.system.blocks, strict=True):
        size = perron_norm(block.F)
        if is_short_step(block.F, longest, size=size):
            continue
        octaves = math.ceil(math.log2(max(2.0, min(size * longest, MAX_FLOAT))))
        places = np.array(OCTAVE_FRACTIONS if len(block.F) <= _MANY_STATES else OCTAVE_FRACTIONS[:1])
        lengths = longest * np.multiply.outer(0.5 ** np.arange(min(octaves, _MAX_OCTAVES)), places)
        off = measure_step_errors(block, lengths, linear=linear)
        weights = EMPIRICAL_MARGIN * np.abs(block.C)
        per_state, per_input = (weights @ part.max(axis=0) for part in off)
        found.append(BlockStepErrors(modes, off.per_input[0], per_state, per_input))
    return found


# MERGED ltinet.simulation.step_errors
# How far the steps that the engine takes at uneven times are from exact ones, measured.
#
# Steps of different lengths come from series and tables that they share (`solve.uneven.any_length`): what is rounded
# there, or left out beyond the last term, is in every step. It is looked at where it is used, at some lengths of every
# octave, and compared with exponentials of more digits.

_LENGTH_OCTAVES = 24  # octaves of lengths below the longest that are told apart: shorter steps hardly move anything
_MAX_COMMON_LENGTHS = 16  # lengths up to which each is looked at itself
_COMMON_SHARE = 0.02  # share of all steps from which on a length is looked at where there are more


def step_length_shares(t: Array, cells: Array, longest: float) -> Array:
    """Which share of the steps that end in each cell is about as long as the longest, half of it, and so on."""
    return _shares(_octaves(np.diff(t), longest), t, cells, _LENGTH_OCTAVES)


def _octaves(lengths: Array, longest: float) -> NDArray[np.intp]:
    with np.errstate(divide="ignore", invalid="ignore"):
        halvings = np.floor(np.log2(longest) - np.log2(lengths))
    return np.asarray(np.clip(halvings, 0, _LENGTH_OCTAVES - 1), dtype=np.intp)  # steps of length zero are the shortest


def _shares(kinds: NDArray[np.intp], t: Array, cells: Array, n_kinds: int) -> Array:
    """Which share of the steps that end in each cell is of each kind."""
    places = step_cells(t, cells) * n_kinds + kinds
    counts = np.bincount(places, minlength=(len(cells) - 1) * n_kinds).reshape(-1, n_kinds)
    return np.asarray(counts / np.maximum(1, counts.sum(axis=1, keepdims=True)))


class StepLengths(NamedTuple):
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


def classify_step_lengths(t: Array, cells: Array, longest: float) -> StepLengths:
    """Sort the steps of a run by their lengths."""
    lengths = np.diff(t)
    values, index, counts = np.unique(lengths, return_inverse=True, return_counts=True)
    is_common = values > 0.0
    if np.count_nonzero(is_common) > _MAX_COMMON_LENGTHS:
        is_common &= counts >= max(2.0, _COMMON_SHARE * len(lengths))
        is_common[np.argsort(-counts * is_common, kind="stable")[_MAX_COMMON_LENGTHS:]] = False
    common = values[is_common]
    kinds = np.where(is_common[index], np.cumsum(is_common)[index] - 1, len(common) + _octaves(lengths, longest))
    shares = _shares(kinds, t, cells, len(common) + _LENGTH_OCTAVES)
    n_kinds = int(np.max(np.flatnonzero(shares.any(axis=0)), initial=0)) + 1
    return StepLengths(common, max(0, n_kinds - len(common)), shares[:, : max(n_kinds, len(common))], longest)


class StepDeviations(NamedTuple):
    """By how much steps of each kind are off, per unit of a state and of an input at both ends."""

    per_state: Array
    """`(kinds, n)` for scalars, `(kinds, n, n)` for a block."""
    per_input: Array
    """`(kinds, n, m)`."""

    def with_more(self, lengths: StepLengths) -> "StepDeviations":
        """The same, of octaves with more than what was seen."""
        more = np.where(np.arange(lengths.shares.shape[1]) < len(lengths.common), 1.0, EMPIRICAL_MARGIN)
        return StepDeviations((more * self.per_state.T).T, (more * self.per_input.T).T)


@dataclass(frozen=True, eq=False)
class NonuniformErrors:
    """What the engine's own steps add to rounding, on uneven times."""

    shares: Array
    """Which share of the steps in each cell is of each kind."""
    common: Array
    """Which share has a length that others have, `(cells,)`."""
    scalars: list[tuple[slice, StepDeviations]]
    """By modes."""
    blocks: list[tuple[slice, StepDeviations]]

    def committed(self, sizes: StepMagnitudes) -> tuple[Array, Array]:
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


def measure_nonuniform_errors(steps: NonuniformSteps, slices: list[slice], lengths: StepLengths) -> NonuniformErrors:
    """Look at the steps of a run; `slices` is where the modes of its coupled blocks stand."""
    scalars, first = [], 0
    for own in steps.scalars:
        place = slice(first, first + len(own.steps.rates))
        found = _scalar_deviations(own, lengths.all_kinds(OCTAVE_FRACTIONS), linear=steps.linear)
        scalars.append((place, found.with_more(lengths)))
        first = place.stop
    blocks = []
    for dense in steps.dense:
        own_blocks = [steps.system.blocks[number] for number in dense.numbers]
        looked_at = [
            *lengths.common[:, None, None],
            *([lengths.octaves(OCTAVE_FRACTIONS)] if lengths.n_octaves else []),
        ]
        offs = [_block_deviations(dense, own_blocks, at, linear=steps.linear) for at in looked_at]
        for number, *own_offs in zip(dense.numbers, *offs, strict=True):
            together = StepDeviations(*(np.concatenate(parts) for parts in zip(*own_offs, strict=True)))
            blocks.append((slices[number], together.with_more(lengths)))
    common = lengths.shares[:, : len(lengths.common)].sum(axis=1)
    return NonuniformErrors(lengths.shares, common, scalars, blocks)


def _scalar_deviations(scalars: ScalarStepGroup, lengths: Array, *, linear: bool) -> StepDeviations:
    """Exponentials beside such of twice the digits; φ functions, which hardly feel what rounding takes from λh."""
    h, rates, drive = lengths.ravel(), scalars.steps.rates, scalars.steps.drive
    exact = double_double_exponentials(rates, h)
    per_state = _largest(np.abs((scalars.steps.factors(h) - exact.high) - exact.low), lengths)
    _, begin, end = scalar_steps(rates, h, linear=linear)
    off = np.zeros((len(h), len(rates), len(drive)))
    for number, weights in enumerate(drive):
        for true, at_end in ((begin, False), (end, True)):
            unit, none = np.zeros((1, len(h), len(drive))), np.zeros((1, len(h), len(drive)))
            unit[..., number] = 1.0
            added = scalars.steps.step(h, *((none, unit) if at_end else (unit, none)))[1][0]
            off[..., number] += np.abs(added - true * weights)
    return StepDeviations(per_state, _largest(off, lengths))


def _block_deviations(
    dense: DenseStepGroup, blocks: list[DenseBlock], lengths: Array, *, linear: bool
) -> list[StepDeviations]:
    P, begin, end = dense.steps.of(lengths.ravel())
    found = []
    for number, block in enumerate(blocks):
        weights = np.eye(block.G.shape[1]) if dense.drive is None else dense.drive[number].T
        true = double_double_steps(block.F, block.G, lengths, linear=linear)
        parts = [P[:, number], begin[:, number] @ weights, end[:, number] @ weights]
        off = [np.abs((own - high) - low) for own, (high, low) in zip(parts, true, strict=True)]
        found.append(StepDeviations(_largest(off[0], lengths), _largest(off[1] + off[2], lengths)))
    return found


def _largest(off: NDArray[Any], lengths: Array) -> Array:
    """The largest of each kind, `(kinds, …)`; what is no number is infinite."""
    with np.errstate(invalid="ignore"):
        found = off.reshape(*lengths.shape, *off.shape[1:]).max(axis=1)
    return np.asarray(np.where(np.isnan(found), np.inf, found))
