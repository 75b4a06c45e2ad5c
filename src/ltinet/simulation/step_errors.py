"""Measured errors of the steps that the exact engine takes, in comparison with steps in double-double precision.

Steps at uneven times come from shared series and tables (`nonuniform`), so that their rounding and truncation is in
every step; outputs between samples come from steps of a fraction of an interval. Errors are therefore measured at a
few lengths of every octave below the longest step.

Measured: errors at these lengths, and at all common lengths of a run, to all digits. Empirical: between them errors may
be larger by `EMPIRICAL_MARGIN`; a bound that uses it is an estimate in this respect.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import MAX_FLOAT, Array
from ltinet.error_bounds.double_double_exponentials import double_double_exponentials, double_double_steps
from ltinet.error_bounds.step_rounding import StepMagnitudes
from ltinet.simulation.modal import DenseBlock
from ltinet.simulation.nonuniform import DenseStepGroup, NonuniformSteps, ScalarStepGroup
from ltinet.simulation.propagators import is_short_step, matrix_steps, scalar_steps, step_norm
from ltinet.simulation.system_arrays import EngineArrays
from ltinet.simulation.time_cells import step_cells

OCTAVE_FRACTIONS = (1.0, 0.9, 0.77, 0.66, 0.54)  # of the longest length of an octave: where errors are measured
# Ratio of errors anywhere to those measured. Empirical: of 100 random blocks, at 40 lengths of an octave each, 9.1 was the
# largest, and 10 exceeded 3 (python -m benchmarks.constants EMPIRICAL_MARGIN). It is checked by
# tests/unit/error_bounds/test_uneven_steps.py and, run by run, by tests/hostile.
EMPIRICAL_MARGIN = 10.0
_MANY_STATES = 16  # states from which on one length per octave is measured, the longest: each takes milliseconds
_MAX_OCTAVES = (
    24  # of lengths below the longest: a step 2⁻²⁴ as long adds 2⁻²⁴ of its errors, far below eps of the state
)
# Lengths that are measured by themselves need no margin: with more of them bounds are smaller, and take longer.
_MAX_COMMON_LENGTHS = 16  # lengths up to which each is measured by itself
_COMMON_FRACTION = 0.02  # of all steps: the count from which on a length is measured by itself if there are more


# Outputs between samples


class BlockStepErrors(NamedTuple):
    """Estimated errors of the steps of a coupled block within intervals."""

    modes: slice
    """Indices of the states of the block among the modes."""
    inputs_of_longest: Array
    """`(n, m)`: states after a step as long as that between samples, per unit of the inputs at both its ends."""
    outputs_per_state: Array
    """`(p, n)`: outputs after a step within an interval, per unit of the states at samples."""
    outputs_per_input: Array
    """`(p, m)`, per unit of the inputs."""

    def outputs(self, sizes: StepMagnitudes) -> Array:
        """Return errors of outputs between samples, `(cells, p)`."""
        return np.asarray(
            sizes.at_step_starts[:, self.modes] @ self.outputs_per_state.T + sizes.inputs @ self.outputs_per_input.T
        )


def measure_block_errors(arrays: EngineArrays, longest: float, *, linear: bool) -> list[BlockStepErrors]:
    """Measure the errors of steps up to the longest for the blocks of an engine.

    The exponentials of such steps are computed for each length, or from a series, so that their errors differ from that
    of the step of a whole interval. Blocks whose steps are short are left out: their series has every entry correct to
    its last digits.
    """
    result = []
    for modes, block in zip(arrays.mode_slices, arrays.system.blocks, strict=True):
        if is_short_step(block.F, longest):
            continue
        octaves = math.ceil(math.log2(max(2.0, min(step_norm(block.F) * longest, MAX_FLOAT))))
        fractions = np.array(OCTAVE_FRACTIONS if len(block.F) <= _MANY_STATES else OCTAVE_FRACTIONS[:1])
        lengths = longest * np.multiply.outer(0.5 ** np.arange(min(octaves, _MAX_OCTAVES)), fractions)
        computed = matrix_steps(block.F, block.G, lengths.ravel(), linear=linear)
        per_state, begin, end = _differences(computed, double_double_steps(block.F, block.G, lengths, linear=linear))
        with np.errstate(invalid="ignore"):
            per_input = begin + end
        per_state, per_input = (np.where(np.isnan(part), np.inf, part) for part in (per_state, per_input))
        weights = EMPIRICAL_MARGIN * np.abs(block.C)
        result.append(
            BlockStepErrors(modes, per_input[0], weights @ per_state.max(axis=0), weights @ per_input.max(axis=0))
        )
    return result


def _differences(computed: Any, exact: Any) -> list[Array]:
    with np.errstate(invalid="ignore"):
        return [np.abs((part - high) - low) for part, (high, low) in zip(computed, exact, strict=True)]


# Lengths of nonuniform steps


def step_length_shares(t: Array, cells: Array, longest: float) -> Array:
    """Return which share of the steps that end in each cell is about as long as the longest, half of it, and so on."""
    return _shares(_octaves(np.diff(t), longest), t, cells, _MAX_OCTAVES)


def _octaves(lengths: Array, longest: float) -> NDArray[np.intp]:
    with np.errstate(divide="ignore", invalid="ignore"):
        halvings = np.floor(np.log2(longest) - np.log2(lengths))
    return np.asarray(np.clip(halvings, 0, _MAX_OCTAVES - 1), dtype=np.intp)  # steps of length zero are the shortest


def _shares(kinds: NDArray[np.intp], t: Array, cells: Array, n_kinds: int) -> Array:
    """Return which share of the steps that end in each cell is of each kind, `(cells, kinds)`."""
    indices = step_cells(t, cells) * n_kinds + kinds
    counts = np.bincount(indices, minlength=(len(cells) - 1) * n_kinds).reshape(-1, n_kinds)
    return np.asarray(counts / np.maximum(1, counts.sum(axis=1, keepdims=True)))


class StepLengths(NamedTuple):
    """Lengths of steps at which errors are measured, and the share of the steps that each stands for."""

    common: Array
    """Lengths that many steps have, whose errors all have the same direction; all lengths, where these are few."""
    n_octaves: int
    shares: Array
    """`(cells, common + octaves)`: of all common lengths, and of the octaves that contain the others."""
    longest: float

    @property
    def octaves(self) -> Array:
        """Lengths in every octave, `(octaves, fractions)`."""
        return np.asarray(self.longest * np.multiply.outer(0.5 ** np.arange(self.n_octaves), OCTAVE_FRACTIONS))

    @property
    def all_kinds(self) -> Array:
        """Common lengths, repeated, and those of the octaves, `(kinds, fractions)`."""
        return np.concatenate([np.tile(self.common[:, None], len(OCTAVE_FRACTIONS)), self.octaves])


def classify_step_lengths(t: Array, cells: Array, longest: float) -> StepLengths:
    """Sort the steps of a run by their lengths."""
    lengths = np.diff(t)
    values, index, counts = np.unique(lengths, return_inverse=True, return_counts=True)
    is_common = values > 0.0
    if np.count_nonzero(is_common) > _MAX_COMMON_LENGTHS:
        is_common &= counts >= max(2.0, _COMMON_FRACTION * len(lengths))
        is_common[np.argsort(-counts * is_common, kind="stable")[_MAX_COMMON_LENGTHS:]] = False
    common = values[is_common]
    kinds = np.where(is_common[index], np.cumsum(is_common)[index] - 1, len(common) + _octaves(lengths, longest))
    shares = _shares(kinds, t, cells, len(common) + _MAX_OCTAVES)
    n_kinds = int(np.max(np.flatnonzero(shares.any(axis=0)), initial=0)) + 1
    return StepLengths(common, max(0, n_kinds - len(common)), shares[:, : max(n_kinds, len(common))], longest)


# Errors of nonuniform steps


class StepDeviations(NamedTuple):
    """Errors of steps of each kind, per unit of a state and of an input at both ends."""

    per_state: Array
    """`(kinds, n)` for scalars, `(kinds, n, n)` for a block."""
    per_input: Array
    """`(kinds, n, m)`."""

    def with_margin(self, lengths: StepLengths) -> "StepDeviations":
        """Return the errors with the empirical margin for octaves, whose errors are measured at some lengths only."""
        margin = np.where(np.arange(lengths.shares.shape[1]) < len(lengths.common), 1.0, EMPIRICAL_MARGIN)
        return StepDeviations((margin * self.per_state.T).T, (margin * self.per_input.T).T)


@dataclass(frozen=True, eq=False)
class NonuniformErrors:
    """Estimated errors of the engine's steps on uneven times beside rounding."""

    shares: Array
    """Share of the steps in each cell that is of each kind."""
    common: Array
    """Share of the steps whose length is common, `(cells,)`."""
    deviations: list[tuple[slice, StepDeviations]]
    """By modes: scalars, then coupled blocks."""

    def local_errors(self, sizes: StepMagnitudes) -> tuple[Array, Array]:
        """Return the average and the largest errors of one step, `(cells, modes)` each."""
        average, largest = np.zeros_like(sizes.at_samples), np.zeros_like(sizes.at_samples)
        for modes, deviations in self.deviations:
            states = sizes.over_step[:, modes]
            per_state = deviations.per_state
            by_kind = per_state * states[:, None] if per_state.ndim == 2 else _by_kind(per_state, states)
            by_kind = by_kind + _by_kind(deviations.per_input, sizes.inputs)
            average[:, modes] = np.einsum("cl,cli->ci", self.shares, by_kind)
            largest[:, modes] = np.max(np.where(self.shares[:, :, None] > 0.0, by_kind, 0.0), axis=1, initial=0.0)
        return average, largest


def _by_kind(deviations: Array, sizes: Array) -> Array:
    """Return `(cells, kinds, n)` from deviations `(kinds, n, …)` per unit of sizes `(cells, …)`."""
    return np.asarray(np.einsum("lij,cj->cli", deviations, sizes, optimize=True))


def measure_nonuniform_errors(steps: NonuniformSteps, slices: list[slice], lengths: StepLengths) -> NonuniformErrors:
    """Measure the errors of the steps of a run; `slices` are the modes of its coupled blocks."""
    deviations, first = [], 0
    for scalars in steps.scalars:
        modes = slice(first, first + len(scalars.steps.rates))
        measured = _scalar_deviations(scalars, lengths.all_kinds, linear=steps.linear)
        deviations.append((modes, measured.with_margin(lengths)))
        first = modes.stop
    for dense in steps.dense:
        blocks = [steps.system.blocks[number] for number in dense.numbers]
        kinds = [*lengths.common[:, None, None], *([lengths.octaves] if lengths.n_octaves else [])]
        by_kinds = [_block_deviations(dense, blocks, indices, linear=steps.linear) for indices in kinds]
        for number, *of_block in zip(dense.numbers, *by_kinds, strict=True):
            together = StepDeviations(*(np.concatenate(parts) for parts in zip(*of_block, strict=True)))
            deviations.append((slices[number], together.with_margin(lengths)))
    common = lengths.shares[:, : len(lengths.common)].sum(axis=1)
    return NonuniformErrors(lengths.shares, common, deviations)


def _scalar_deviations(scalars: ScalarStepGroup, lengths: Array, *, linear: bool) -> StepDeviations:
    """Compare exponentials with double-double, and φ functions with double: these hardly depend on rounding of λh."""
    h, rates, drive = lengths.ravel(), scalars.steps.rates, scalars.steps.drive
    exact = double_double_exponentials(rates, h)
    per_state = _largest(np.abs((scalars.steps.factors(h) - exact.high) - exact.low), lengths)
    _, begin, end = scalar_steps(rates, h, linear=linear)
    errors = np.zeros((len(h), len(rates), len(drive)))
    for number, weights in enumerate(drive):
        for exact_weights, at_end in ((begin, False), (end, True)):
            unit, none = np.zeros((1, len(h), len(drive))), np.zeros((1, len(h), len(drive)))
            unit[..., number] = 1.0
            added = scalars.steps.step(h, *((none, unit) if at_end else (unit, none)))[1][0]
            errors[..., number] += np.abs(added - exact_weights * weights)
    return StepDeviations(per_state, _largest(errors, lengths))


def _block_deviations(
    dense: DenseStepGroup, blocks: list[DenseBlock], lengths: Array, *, linear: bool
) -> list[StepDeviations]:
    P, begin, end = dense.steps.of(lengths.ravel())
    result = []
    for number, block in enumerate(blocks):
        weights = np.eye(block.G.shape[1]) if dense.drive is None else dense.drive[number].T
        computed = [P[:, number], begin[:, number] @ weights, end[:, number] @ weights]
        errors = _differences(computed, double_double_steps(block.F, block.G, lengths, linear=linear))
        result.append(StepDeviations(_largest(errors[0], lengths), _largest(errors[1] + errors[2], lengths)))
    return result


def _largest(errors: NDArray[Any], lengths: Array) -> Array:
    """Return the largest error of each kind, `(kinds, …)`; NaN counts as infinite."""
    with np.errstate(invalid="ignore"):
        largest = errors.reshape(*lengths.shape, *errors.shape[1:]).max(axis=1)
    return np.asarray(np.where(np.isnan(largest), np.inf, largest))
