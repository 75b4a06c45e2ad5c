"""The arguments of a run, checked at its door: what an engine does not know or cannot use is refused, not swallowed."""

import operator
import os
from typing import Any

import numpy as np

from ltinet.errors import SimulationError
from ltinet.shown import shown
from ltinet.tolerances import EPS

# Values of a function are rounded themselves: how close lines come to them says nothing below this.
_CLOSEST = 8.0 * EPS


def checked_input_tolerance(value: Any) -> float:
    """A distance of lines from a function, relative to it.

    Raises:
        SimulationError: it is not a number between rounding and infinity.
    """
    tolerance = positive(value, "input_tolerance")
    if tolerance < _CLOSEST:
        raise SimulationError(
            f"input_tolerance is {tolerance:g}; u's own values are rounded themselves: give {_CLOSEST:.2g} or more"
        )
    return tolerance


def checked_n_jobs(value: Any) -> int:
    """A number of threads or processes: positive, or negative to count down from all cores, −1 for all.

    Raises:
        SimulationError: it is not an integer, zero, or counts down beyond the first core.
    """
    try:
        n_jobs = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        n_jobs = 0
    if n_jobs > 0:
        return n_jobs
    cores = os.cpu_count() or 1
    if n_jobs == 0 or n_jobs < -cores:
        raise SimulationError(
            f"n_jobs is {shown(repr(value))}; give a whole number of them, or count down from the {cores} cores here: "
            f"-1 for all of them, -2 for all but one, and so on to -{cores}"
        )
    return n_jobs


def positive(value: Any, name: str) -> float:
    """A positive, finite number; text that looks like one is none.

    Raises:
        SimulationError: it is not; the message calls it `name`.
    """
    try:
        given = np.asarray(value)
    except (TypeError, ValueError, RuntimeError):  # ragged lists; other libraries' arrays that refuse
        given = np.asarray(None)
    number = float(given) if given.ndim == 0 and given.dtype.kind in "iuf" else np.nan
    if not 0.0 < number < np.inf:
        raise SimulationError(f"{name} is {shown(repr(value))}; give a positive, finite number")
    return number
