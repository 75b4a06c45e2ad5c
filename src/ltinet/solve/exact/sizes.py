"""Cells of time, how large inputs and states are in them, and whether inputs are held."""

import math

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.solve.engine_arrays import EngineArrays
from ltinet.tolerances import EPS

CELLS, MOST_CELLS = 32, 256
_GROWS_LITTLE = 1.0  # exponent of what grows within a step
_OTHERS = 0.8  # share of samples that are no repetition of another one
_HELD = 0.02  # share of samples that repeat the one before


def cells_of(
    arrays: EngineArrays, start: float, stop: float, *, n_samples: int, longest: float, fewest: int = CELLS
) -> Array:
    """Edges of equal cells, more of them where states grow: errors grow from where they enter, not from the cell.

    There are at most as many as steps, unless states grow within the longest of these.
    """
    if not stop > start:
        return start + np.array([0.0, EPS * (1.0 + abs(start))])
    wanted = min(max(fewest, math.ceil(min(_fastest(arrays) * (stop - start), MOST_CELLS))), MOST_CELLS)
    if not grows_within(arrays, longest):
        wanted = max(1, min(wanted, n_samples - 1))
    return np.linspace(start, stop, wanted + 1)


def grows_within(arrays: EngineArrays, step: float) -> bool:
    """Whether some state does so far that its size at the end of a step says little about the step."""
    return _fastest(arrays) * step > _GROWS_LITTLE


def _fastest(arrays: EngineArrays) -> float:
    """At which rate states grow."""
    return float(np.max(np.concatenate([arrays.growth, arrays.system.slowest_of_blocks]), initial=0.0))


def length_of(cells: Array) -> float:
    """That of equal cells."""
    return float(cells[-1] - cells[0]) / (len(cells) - 1)


def peaks(values: Array) -> Array:
    """The largest magnitudes over time `(..., T, m)`, `(..., m)`."""
    return np.asarray(np.maximum(values.max(axis=-2, initial=0.0), -values.min(axis=-2, initial=0.0)))


def cells_of_steps(t: Array, cells: Array) -> NDArray[np.intp]:
    """The cell that each step between times t ends in."""
    return np.clip(np.searchsorted(cells, t[1:], side="left") - 1, 0, len(cells) - 2)


def samples_around(t: Array, cells: Array) -> NDArray[np.intp]:
    """The first and last of the samples around each cell, `(cells, 2)`; at a jump on an edge both its sides are."""
    before, behind = (np.searchsorted(t, cells, side="left"), np.searchsorted(t, cells, side="right") - 1)
    first, last = np.minimum(before, behind)[:-1], np.maximum(before, behind)[1:]
    return np.column_stack([np.maximum(first, 0), np.minimum(last, len(t) - 1)])


def take_largest(sizes: Array, values: Array, own: slice, samples: NDArray[np.intp]) -> None:
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


def repeats(u: Array) -> bool:
    """Whether some input keeps a value other than zero for more than a few of its samples."""
    same = (u[:, 1:] == u[:, :-1]) & (u[:, 1:] != 0.0)
    return bool(np.any(np.mean(same, axis=1) > _HELD)) if u.shape[1] > 1 else False


def usual_changes(u: Array, around: NDArray[np.intp]) -> Array | None:
    """The median of |u_{k+1} − u_k| in each cell, `(cells, m)`; None where some input has values that come again."""
    ordered = np.sort(u, axis=0)
    others = np.count_nonzero(ordered[1:] != ordered[:-1], axis=0)
    if not np.all(others >= _OTHERS * (len(u) - 1)):
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
