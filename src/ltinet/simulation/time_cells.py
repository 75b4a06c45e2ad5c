"""Cells of time in which error bounds count, and the sizes of inputs and states within them.

Errors grow from where they enter, not from the beginning of a cell, so that there are more cells where states grow.
Sizes are upper bounds; one that overflows, or is NaN because an intermediate result overflowed, counts as infinite,
and 0 · ∞ counts as 0.
"""

import math

import numpy as np
from numpy.typing import NDArray

from ltinet._util.floating_point import EPS, Array
from ltinet.simulation.system_arrays import EngineArrays

# Numbers of cells: bounds hold for any of them, and are smaller and slower to compute with more.
DEFAULT_CELLS, MAX_CELLS = 32, 256  # of runs of the exact engine
_SOLVER_CELLS = 128  # of runs by ODE solvers
_MAX_GROWTH_EXPONENT = 1.0  # Re λ h up to which a state grows by at most e in a step: its end bounds it within that
# |λ| times the distance of two places up to which the values between them are taken from both ends and their change:
# e^{λs} then changes by (e^½ − 1) = 65 % at most. Faster modes are bounded by their size.
SLOW = 0.5
# Fraction of the samples that equal the one before, beyond which the rounding of held inputs counts as biased. A block
# of K m = N held terms is off by N/2 eps instead of √N eps (`step_rounding`): a fraction f of such blocks adds f √N/2 of
# the estimate, 16 % for the widest, N = 256, which lie within its six standard deviations.
_HELD_FRACTION = 0.02
# Fraction of distinct values below which steps at uneven times count as biased. Where values repeat in pairs, as many of
# the roundings are equal, and the root of their sum of squares grows by at most √1.2 = 1.1, within the five standard
# deviations of the estimate. Empirical otherwise: tests/trust/test_repeated_roundings.py hold with a tenth of it as well.
_DISTINCT_FRACTION = 0.8

IGNORE_OVERFLOW = np.errstate(over="ignore", invalid="ignore", divide="ignore")


# Arithmetic of upper bounds


def weighted_sizes(sizes: Array, weights: Array) -> Array:
    """Return sizes · |weights|ᵀ, where 0 · ∞ is 0."""
    with np.errstate(invalid="ignore"):
        if np.isfinite(sizes).all():
            return np.asarray(sizes @ weights.T)
        return np.asarray(np.where(weights == 0.0, 0.0, sizes[:, None, :] * weights).sum(axis=-1))


def safe_ratio(values: Array, divisors: Array) -> Array:
    """Return the quotient, 0 where the value is 0."""
    return np.divide(values, divisors, out=np.zeros_like(values), where=values > 0.0)


def nan_to_infinity(values: Array) -> Array:
    """Return infinity in place of NaN, the result of an overflow."""
    return np.where(np.isnan(values), np.inf, values)


# Cells


def divide_into_cells(
    arrays: EngineArrays, start: float, stop: float, *, n_samples: int, longest: float, fewest: int = DEFAULT_CELLS
) -> Array:
    """Return the edges of equal cells, more of them where states grow.

    There are at most as many as steps, unless states grow within the longest step.
    """
    if not stop > start:
        return _single_cell(start)
    n_cells = min(max(fewest, math.ceil(min(_largest_growth(arrays) * (stop - start), MAX_CELLS))), MAX_CELLS)
    if not grows_within_step(arrays, longest):
        n_cells = max(1, min(n_cells, n_samples - 1))
    return np.linspace(start, stop, n_cells + 1)


def uniform_cells(start: float, stop: float) -> NDArray[np.float64]:
    """Return the edges of equal cells for a run by ODE solvers."""
    return np.linspace(start, stop, _SOLVER_CELLS + 1) if stop > start else _single_cell(start)


def _single_cell(start: float) -> Array:
    """Return the edges of the cell of a single time, whose length is near rounding."""
    return start + np.array([0.0, EPS * (1.0 + abs(start))])


def grows_within_step(arrays: EngineArrays, step: float) -> bool:
    """Return whether a state grows so much in a step that its final size says little about the step."""
    return _largest_growth(arrays) * step > _MAX_GROWTH_EXPONENT


def _largest_growth(arrays: EngineArrays) -> float:
    """Return the largest growth rate of the states, at least 0."""
    return float(np.max(np.concatenate([arrays.growth, arrays.system.block_abscissas]), initial=0.0))


def cell_length(cells: Array) -> float:
    """Return the length of equal cells."""
    return float(cells[-1] - cells[0]) / (len(cells) - 1)


def step_cells(t: Array, cells: Array) -> NDArray[np.intp]:
    """Return the cell in which each step between times t ends."""
    return np.clip(np.searchsorted(cells, t[1:], side="left") - 1, 0, len(cells) - 2)


def samples_around(t: Array, cells: Array) -> NDArray[np.intp]:
    """Return the first and last of the samples around each cell, `(cells, 2)`, with both sides of a jump on an edge."""
    before, behind = (np.searchsorted(t, cells, side="left"), np.searchsorted(t, cells, side="right") - 1)
    first, last = np.minimum(before, behind)[:-1], np.maximum(before, behind)[1:]
    return np.column_stack([np.maximum(first, 0), np.minimum(last, len(t) - 1)])


# Sizes in cells


def update_maxima(sizes: Array, values: Array, piece: slice, samples: NDArray[np.intp]) -> None:
    """Update the maxima of cells by values `(batch, k, …)` at a piece of the samples.

    `samples` holds the first and last sample of each cell.
    """
    for cell, (first, last) in enumerate(samples.tolist()):
        inside = slice(max(first - piece.start, 0), max(min(last + 1, piece.stop) - piece.start, 0))
        if inside.start < inside.stop:
            np.maximum(sizes[:, cell], values[:, inside].max(axis=1), out=sizes[:, cell])


def window_sums(u: Array, width: int, around: NDArray[np.intp]) -> Array:
    """Return the largest Σ|u| over `width` samples that end in each cell."""
    total = np.cumsum(np.abs(u), axis=0)
    if len(u) <= width + 1:
        return np.tile(total[-1], (len(around), 1))
    total[width:] -= total[:-width].copy()
    return np.array([total[first : last + 1].max(axis=0) for first, last in around.tolist()])


def has_held_samples(u: Array) -> bool:
    """Return whether some input keeps a value other than zero for a considerable part of its samples."""
    same = (u[:, 1:] == u[:, :-1]) & (u[:, 1:] != 0.0)
    return bool(np.any(np.mean(same, axis=1) > _HELD_FRACTION)) if u.shape[1] > 1 else False


def median_changes(u: Array, around: NDArray[np.intp]) -> Array | None:
    """Return the median of |u_{k+1} − u_k| in each cell, `(cells, m)`; None where values of some input repeat."""
    ordered = np.sort(u, axis=0)
    n_distinct = np.count_nonzero(ordered[1:] != ordered[:-1], axis=0)
    if not np.all(n_distinct >= _DISTINCT_FRACTION * (len(u) - 1)):
        return None
    changes = np.abs(np.diff(u, axis=0))
    medians = [
        np.median(changes[first:last], axis=0) if last > first else changes[:1].sum(axis=0)
        for first, last in around.tolist()
    ]
    return np.array(medians)


def running_max(values: Array, n_behind: int) -> Array:
    """Return the largest of each row and the `n_behind` rows before it."""
    result = values.copy()
    for shift in range(1, n_behind + 1):
        np.maximum(result[shift:], values[:-shift], out=result[shift:])
    return result
