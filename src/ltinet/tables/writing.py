"""Rows of numbers as text: each number as `repr` writes it, the shortest text that reads back as the same number."""

from collections.abc import Iterator

import numpy as np

from ltinet.arrays import Array
from ltinet.tables.shortest import WIDTH, shortest_texts

ROWS = 8192
"""Rows made into text at a time."""
_FEW = 256  # numbers that are faster written one by one


def lines_of_numbers(table: Array) -> Iterator[bytes]:
    """Rows `(T, k)` as lines, cells separated by commas, some thousand lines at a time."""
    for begin in range(0, len(table), ROWS):
        part = table[begin : begin + ROWS]
        yield _one_by_one(part) if part.size < _FEW else _together(part)


def _one_by_one(table: Array) -> bytes:
    return "".join(",".join(map(repr, row)) + "\n" for row in table.tolist()).encode("ascii")


def _together(table: Array) -> bytes:
    texts = shortest_texts(table.ravel()).reshape(*table.shape, WIDTH)
    texts[:, :-1, -1] = ord(",")
    texts[:, -1, -1] = ord("\n")
    return np.ascontiguousarray(texts).tobytes().translate(None, b"\0")
