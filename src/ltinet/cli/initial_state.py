"""An initial state as it is typed: numbers with commas between them, or a file for a state too long to type."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltinet.cli.samples import read_arrays
from ltinet.errors import InvalidSignalError
from ltinet.shown import shown, shown_path


def read_initial_state(text: str) -> NDArray[np.float64]:
    """The state as a vector.

    Raises:
        InvalidSignalError: it is neither numbers nor a file of a known kind.
        FileFormatError: the file cannot be read or has no array x0.
    """
    if is_file(text):
        return read_arrays(Path(text), ("x0",), title=shown_path(text))["x0"].ravel()
    try:
        return np.array([float(part) for part in text.split(",")])
    except ValueError:
        raise InvalidSignalError(
            f"--x0 is {shown(repr(text))}; give numbers with commas between them, as in 1,0,-2, or a .npz or .mat file "
            "with x0"
        ) from None


def is_file(text: str) -> bool:
    """Whether the state is to be read from a file."""
    return Path(text).suffix.lower() in (".npz", ".mat")
