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

# MERGED ltinet.simulation.time_cells
# Sizes that may exceed all numbers where they are bounded from above: an infinite bound says so.

IGNORE_OVERFLOW = np.errstate(over="ignore", invalid="ignore", divide="ignore")


def weighted_sizes(sizes: Array, weights: Array) -> Array:
    """Sizes · |weights|ᵀ, in which nothing seen of anything is nothing."""
    with np.errstate(invalid="ignore"):
        return np.asarray(sizes @ weights.T) if np.isfinite(sizes).all() else _careful_product(sizes, weights)


def _careful_product(sizes: Array, weights: Array) -> Array:
    return np.asarray(np.where(weights == 0.0, 0.0, sizes[:, None, :] * weights).sum(axis=-1))


def safe_ratio(values: Array, by: Array) -> Array:
    """A quotient in which nothing over nothing is nothing."""
    return np.divide(values, by, out=np.zeros_like(values), where=values > 0.0)


def nan_to_infinity(values: Array) -> Array:
    """What is no number because it was too large on the way is infinite."""
    return np.where(np.isnan(values), np.inf, values)


# MERGED ltinet.simulation.time_cells
# Cells of time, how large inputs and states are in them, and whether inputs are held.

DEFAULT_CELLS, MAX_CELLS = 32, 256
_GROWS_LITTLE = 1.0  # exponent of what grows within a step
_DISTINCT_SHARE = 0.8  # share of samples that are no repetition of another one
_HELD_SHARE = 0.02  # share of samples that repeat the one before


def divide_into_cells(
    arrays: EngineArrays, start: float, stop: float, *, n_samples: int, longest: float, fewest: int = DEFAULT_CELLS
) -> Array:
    """Edges of equal cells, more of them where states grow: errors grow from where they enter, not from the cell.

    There are at most as many as steps, unless states grow within the longest of these.
    """
    if not stop > start:
        return start + np.array([0.0, EPS * (1.0 + abs(start))])
    wanted = min(max(fewest, math.ceil(min(_largest_growth(arrays) * (stop - start), MAX_CELLS))), MAX_CELLS)
    if not grows_within_step(arrays, longest):
        wanted = max(1, min(wanted, n_samples - 1))
    return np.linspace(start, stop, wanted + 1)


def grows_within_step(arrays: EngineArrays, step: float) -> bool:
    """Whether some state does so far that its size at the end of a step says little about the step."""
    return _largest_growth(arrays) * step > _GROWS_LITTLE


def _largest_growth(arrays: EngineArrays) -> float:
    """At which rate states grow."""
    return float(np.max(np.concatenate([arrays.growth, arrays.system.block_abscissas]), initial=0.0))


def cell_length(cells: Array) -> float:
    """That of equal cells."""
    return float(cells[-1] - cells[0]) / (len(cells) - 1)


def peaks(values: Array) -> Array:
    """The largest magnitudes over time `(..., T, m)`, `(..., m)`."""
    return np.asarray(np.maximum(values.max(axis=-2, initial=0.0), -values.min(axis=-2, initial=0.0)))


def step_cells(t: Array, cells: Array) -> NDArray[np.intp]:
    """The cell that each step between times t ends in."""
    return np.clip(np.searchsorted(cells, t[1:], side="left") - 1, 0, len(cells) - 2)


def samples_around(t: Array, cells: Array) -> NDArray[np.intp]:
    """The first and last of the samples around each cell, `(cells, 2)`; at a jump on an edge both its sides are."""
    before, behind = (np.searchsorted(t, cells, side="left"), np.searchsorted(t, cells, side="right") - 1)
    first, last = np.minimum(before, behind)[:-1], np.maximum(before, behind)[1:]
    return np.column_stack([np.maximum(first, 0), np.minimum(last, len(t) - 1)])


def update_maxima(sizes: Array, values: Array, own: slice, samples: NDArray[np.intp]) -> None:
    """Of values at some samples `(batch, k, …)`, into those of cells with a first and a last sample each."""
    for cell, (first, last) in enumerate(samples.tolist()):
        inside = slice(max(first - own.start, 0), max(min(last + 1, own.stop) - own.start, 0))
        if inside.start < inside.stop:
            np.maximum(sizes[:, cell], values[:, inside].max(axis=1), out=sizes[:, cell])


def window_sums(u: Array, width: int, around: NDArray[np.intp]) -> Array:
    """Σ|u| over `width` samples that end in each cell, the largest of them."""
    total = np.cumsum(np.abs(u), axis=0)
    if len(u) <= width + 1:
        return np.tile(total[-1], (len(around), 1))
    total[width:] -= total[:-width].copy()
    return np.array([total[first : last + 1].max(axis=0) for first, last in around.tolist()])


def has_held_samples(u: Array) -> bool:
    """Whether some input keeps a value other than zero for more than a few of its samples."""
    same = (u[:, 1:] == u[:, :-1]) & (u[:, 1:] != 0.0)
    return bool(np.any(np.mean(same, axis=1) > _HELD_SHARE)) if u.shape[1] > 1 else False


def median_changes(u: Array, around: NDArray[np.intp]) -> Array | None:
    """The median of |u_{k+1} − u_k| in each cell, `(cells, m)`; None where some input has values that come again."""
    ordered = np.sort(u, axis=0)
    others = np.count_nonzero(ordered[1:] != ordered[:-1], axis=0)
    if not np.all(others >= _DISTINCT_SHARE * (len(u) - 1)):
        return None
    changes = np.abs(np.diff(u, axis=0))
    found = [
        np.median(changes[first:last], axis=0) if last > first else changes[:1].sum(axis=0)
        for first, last in around.tolist()
    ]
    return np.array(found)


def running_max(values: Array, n_behind: int) -> Array:
    """The largest of each row and some rows before it."""
    result = values.copy()
    for shift in range(1, n_behind + 1):
        np.maximum(result[shift:], values[:-shift], out=result[shift:])
    return result


# MERGED ltinet.simulation.time_cells
# Cells of time: between them bounds that are not followed in time may differ.

_CELLS = 128


def uniform_cells(start: float, stop: float) -> NDArray[np.float64]:
    """Edges of equal cells; a single time has one cell of next to no length."""
    if stop > start:
        return np.linspace(start, stop, _CELLS + 1)
    return np.array([start, start + EPS * (1.0 + abs(start))])
