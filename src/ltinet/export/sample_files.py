"""Files of simulated samples: CSV, `.npz` and `.mat` tables of times and outputs.

Every number is written so that it is read back bit for bit.
"""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np

from ltinet._util.floating_point import Array
from ltinet.errors import FileFormatError
from ltinet.io import mat5, npz
from ltinet.systems.signal_names import names_or_defaults

ROWS_PER_CHUNK = 8192
"""Number of rows that are converted to text at a time."""


def write_csv(path: Path, t: Array, y: Array) -> None:
    """Write columns t, y1, y2, …; raise `FileFormatError` for a batch."""
    if y.ndim > 2:
        raise FileFormatError(f"a CSV file cannot hold a batch of shape {y.shape}; write .npz or .mat instead")
    with path.open("wb") as stream:
        stream.write(csv_line(["t", *names_or_defaults(None, "outputs", y.shape[1])]))
        stream.writelines(csv_rows(np.column_stack([t, y])))


def csv_line(cells: Sequence[str]) -> bytes:
    """Return a line of a CSV table, with quotes where cells need them."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue().encode()


def csv_rows(table: Array) -> Iterator[bytes]:
    """Yield the rows of a table `(T, k)` of numbers, some thousand at a time.

    `repr` writes the shortest decimal that reads back as the same number.
    """
    for begin in range(0, len(table), ROWS_PER_CHUNK):
        rows = table[begin : begin + ROWS_PER_CHUNK].tolist()
        yield "".join(",".join(map(repr, row)) + "\n" for row in rows).encode("ascii")


WRITERS: Mapping[str, Callable[[Path, Array, Array], None]] = MappingProxyType(
    {
        "csv": write_csv,
        "npz": lambda path, t, y: npz.write(path, {"t": t, "y": y}),
        "mat": lambda path, t, y: mat5.write(path, {"t": t[:, None], "y": y}),
    }
)
"""Functions that write times `(T,)` and outputs `(..., T, p)`, by format, which is also the suffix."""
