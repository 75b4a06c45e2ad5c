"""Files of samples, every bit of them: CSV, `.npz` and `.mat` tables of times and outputs."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from ltinet.arrays import Array
from ltinet.errors import FileFormatError
from ltinet.model.formats import mat5, npz


def write_csv(path: Path, t: Array, y: Array) -> None:
    """Columns t, y1, y2, …; repr() is the shortest text that reads back as the same number.

    Raises:
        FileFormatError: y is a batch, for which a table has no place.
    """
    if y.ndim > 2:
        raise FileFormatError(f"a batch of shape {y.shape} has no place in a CSV file; write .npz or .mat instead")
    with path.open("w", encoding="ascii", newline="\n") as stream:
        stream.write(",".join(["t", *(f"y{index + 1}" for index in range(y.shape[1]))]) + "\n")
        stream.writelines(",".join(map(repr, row)) + "\n" for row in np.column_stack([t, y]).tolist())


def write_npz(path: Path, t: Array, y: Array) -> None:
    """Arrays t and y."""
    npz.write(path, {"t": t, "y": y})


def write_mat(path: Path, t: Array, y: Array) -> None:
    """Variables t, a column, and y."""
    mat5.write(path, {"t": t[:, None], "y": y})


WRITERS: Mapping[str, Callable[[Path, Array, Array], None]] = MappingProxyType(
    {"csv": write_csv, "npz": write_npz, "mat": write_mat}
)
"""What writes times `(T,)` and outputs `(..., T, p)`, by the kind of file, which is also its suffix."""
