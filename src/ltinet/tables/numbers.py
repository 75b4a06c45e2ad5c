"""Plain blocks of numbers by a parser in C: NumPy's, or pyarrow's where it is installed.

Both are asked only for blocks that have no signs but those of plain numbers, and what either refuses is read again row
by row, which decides: so both give the same array, bit by bit, or the same refusal.
"""

import io
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from ltinet.arrays import Array
from ltinet.tables.dialect import Dialect

_PLAIN = b"0123456789+-.eE \n"
_STAMPS = b"T:Zz"
_LONGEST_STAMP = 44
_WORTH_ARROW = 1 << 18  # bytes; to import it takes as long as NumPy takes for a few million


def plain_numbers(content: bytes, dialect: Dialect, n_columns: int) -> Array | None:
    """All cells `(rows, n_columns)` of a block; None if it must be read row by row."""
    ready = _prepared(content, dialect, b"")
    if ready is None:
        return None
    table = _by_arrow(ready, dialect, n_columns) if len(ready) >= _WORTH_ARROW else None
    if table is None:
        table = _by_numpy(ready, dialect, n_columns)
    return table if table is not None and np.isfinite(table).all() else None


def plain_stamped(content: bytes, dialect: Dialect, n_columns: int, time: int) -> tuple[list[str], Array] | None:
    """The column of stamps as text and all others as numbers; None if it must be read row by row.

    The table `(rows, n_columns)` has zeros where the stamps are.
    """
    ready = _prepared(content, dialect, _STAMPS)
    if ready is None or dialect.delimiter == " " or n_columns < 2:
        return None
    kinds = [(str(k), f"U{_LONGEST_STAMP}" if k == time else "f8") for k in range(n_columns)]
    try:
        found = np.loadtxt(_lines(ready), dtype=kinds, delimiter=dialect.delimiter, comments=None, ndmin=1)
    except ValueError:
        return None
    stamps = [stamp.strip() for stamp in found[str(time)].tolist()]
    table = np.column_stack([np.zeros(len(found)) if k == time else found[str(k)] for k in range(n_columns)])
    if not np.isfinite(table).all() or any(len(stamp) >= _LONGEST_STAMP - 1 for stamp in stamps):
        return None
    return stamps, table


@cache
def arrow() -> Any:
    """The package pyarrow with its parts for tables, None where it is not installed."""
    if find_spec("pyarrow") is None:
        return None
    import pyarrow
    import pyarrow.csv

    return pyarrow


def _prepared(content: bytes, dialect: Dialect, more: bytes) -> bytes | None:
    """The block with decimal points, if it has nothing but plain numbers; None otherwise."""
    delimiter = dialect.delimiter.encode()
    allowed = _PLAIN + delimiter + more
    if dialect.mark == ",":
        if delimiter == b"," or b"." in content or dialect.thousands is not None:
            return None
        content = content.replace(b",", b".")
    elif dialect.thousands is not None:
        return None
    return content if not content.translate(None, allowed) and not content.isspace() else None


def _lines(content: bytes) -> list[str]:
    return content.decode("ascii").split("\n")


def _by_numpy(content: bytes, dialect: Dialect, n_columns: int) -> Array | None:
    delimiter = None if dialect.delimiter == " " else dialect.delimiter
    try:
        table = np.loadtxt(_lines(content), delimiter=delimiter, comments=None, ndmin=2)
    except ValueError:
        return None
    return table if table.shape[1] == n_columns else None


def _by_arrow(content: bytes, dialect: Dialect, n_columns: int) -> Array | None:
    package = arrow()
    if package is None or dialect.delimiter == " ":
        return None
    names = [str(k) for k in range(n_columns)]
    csv = package.csv
    try:
        found = csv.read_csv(
            io.BytesIO(content),
            read_options=csv.ReadOptions(column_names=names, use_threads=False, block_size=len(content) + 1),
            parse_options=csv.ParseOptions(delimiter=dialect.delimiter, quote_char=False),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(names, package.float64()), null_values=[], check_utf8=False
            ),
        )
    except package.ArrowInvalid:
        return None
    table = np.empty((found.num_rows, n_columns))
    for place, column in enumerate(found.columns):
        if column.null_count:
            return None
        # By its buffers: to_numpy would import pandas, where that is installed, which takes a second.
        chunks = [
            np.frombuffer(chunk.buffers()[1], dtype=np.float64)[chunk.offset : chunk.offset + len(chunk)]
            for chunk in column.chunks
        ]
        table[:, place] = np.concatenate(chunks)
    return table
