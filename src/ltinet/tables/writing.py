"""Rows of numbers as text: each number as `repr` writes it, the shortest text that reads back as the same number.

pyarrow, where it is installed, writes most of them several times as fast, with the same digits. Its notation differs
for whole, tiny and huge numbers: these are left to `repr`, so that the text is the same with and without it.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ltinet.arrays import Array
from ltinet.tables.numbers import arrow

ROWS = 4096
"""Rows made into text at a time, which fit into the processor's cache."""
_WORTH_ARROW = 1 << 15  # numbers; to import it takes as long as to write a hundred thousand
_TINY, _HUGE = 1e-4, 1e9


def lines_of_numbers(table: Array) -> Iterator[bytes]:
    """Rows `(T, k)` as lines, cells separated by commas, some thousand lines at a time."""
    package = arrow() if table.size >= _WORTH_ARROW else None
    for begin in range(0, len(table), ROWS):
        part = table[begin : begin + ROWS]
        yield _by_repr(part) if package is None or not part.shape[1] else _by_arrow(part, package)


def _by_repr(table: Array) -> bytes:
    if not table.shape[1]:
        return b"\n" * len(table)
    # How Python writes a list of lists, with other signs between the numbers: faster than to join them one by one.
    return (str(table.tolist())[2:-2].replace("], [", "\n").replace(", ", ",") + "\n").encode("ascii")


def _by_arrow(table: Array, package: Any) -> bytes:
    compute = package.compute
    columns = [_column(np.ascontiguousarray(column), package) for column in table.T]
    lines = compute.binary_join_element_wise(compute.binary_join_element_wise(*columns, ","), "\n", "")
    return bytes(lines.buffers()[2])  # the texts of a column lie one after the other


def _column(numbers: Array, package: Any) -> Any:
    texts = package.array(numbers).cast(package.string())
    size = np.abs(numbers)
    differs = (numbers == np.rint(numbers)) | (size < _TINY) | ~(size < _HUGE)
    if not differs.any():
        return texts
    own = package.array(list(map(repr, numbers[differs].tolist())), package.string())
    return package.compute.replace_with_mask(texts, package.array(differs), own)
