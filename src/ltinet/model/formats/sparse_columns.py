"""Sparse matrices as files hold them: every index checked before anything is stored by it.

SciPy converts sparse matrices without looking at their indices: one row number beyond the last row writes into memory
that belongs to something else.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Integers = NDArray[np.int64]


def from_columns(data: NDArray[Any], rows: Integers, starts: Integers, *, shape: tuple[int, ...], name: str) -> Any:
    """A matrix in compressed columns: those entries of `data` and `rows` that `starts` assigns to columns, checked.

    Writers may leave room behind the last entry; what is there is not looked at.

    Raises:
        ValueError: a row or a column does not exist, entries are missing, or one place is given twice.
    """
    n_rows, n_columns = shape
    if len(starts) != n_columns + 1 or starts[0] != 0 or np.any(starts[1:] < starts[:-1]):
        raise ValueError(f"{name} has {n_columns} columns, but not where each of them begins")
    count = int(starts[-1])
    if count > min(len(rows), len(data)):
        raise ValueError(f"{name} has {min(len(rows), len(data))} entries, but its columns need {count}")
    columns = np.repeat(np.arange(n_columns), np.diff(starts))
    _require_places(rows[:count], columns, shape, name)
    return sparse.csc_array((data[:count], rows[:count], starts), shape=(n_rows, n_columns))


def from_places(data: NDArray[Any], rows: Integers, columns: Integers, *, shape: tuple[int, ...], name: str) -> Any:
    """A matrix given entry by entry, rows and columns counted from 0, checked.

    Raises:
        ValueError: a row or a column does not exist, or one place is given twice.
    """
    _require_places(rows, columns, shape, name)
    return sparse.coo_array((data, (rows, columns)), shape=shape)


def _require_places(rows: Integers, columns: Integers, shape: tuple[int, ...], name: str) -> None:
    n_rows, n_columns = shape
    outside = (rows < 0) | (rows >= n_rows) | (columns < 0) | (columns >= n_columns)
    if np.any(outside):
        row, column = (int(places[np.argmax(outside)]) + 1 for places in (rows, columns))
        raise ValueError(f"{name} is {n_rows}×{n_columns} and has an entry in row {row}, column {column}")
    places = columns * n_rows + rows  # below 2⁶³, as `Allowance.claim_sparse` saw
    order = places if np.all(np.diff(places) > 0) else np.sort(places)
    again = np.flatnonzero(np.diff(order) == 0)
    if len(again):
        column, row = divmod(int(order[again[0]]), n_rows)
        raise ValueError(f"{name} has two entries in row {row + 1}, column {column + 1}")
