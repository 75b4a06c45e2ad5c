"""An initial state as it is typed: numbers with commas between them, or a file for a state too long to type."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltinet.cli.samples import read_arrays
from ltinet.errors import InvalidSignalError
from ltinet.shown import count_of, shown, shown_path


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


def checked_initial_state(text: str, n_states: int) -> NDArray[np.float64]:
    """The state, with one finite number for each state of the system.

    Raises:
        InvalidSignalError: it has others, or is none at all.
        FileFormatError: the file cannot be read or has no array x0.
    """
    state = read_initial_state(text)
    if len(state) != n_states:
        raise InvalidSignalError(
            f"--x0 has {count_of(len(state), 'number')}, but the system has {count_of(n_states, 'state')}; give one "
            "for each, or a .npz or .mat file with x0"
        )
    if not np.all(np.isfinite(state)):
        raise InvalidSignalError("--x0 has numbers that are not finite; replace NaN and infinities")
    return state


def is_file(text: str) -> bool:
    """Whether the state is to be read from a file."""
    return Path(text).suffix.lower() in (".npz", ".mat")
