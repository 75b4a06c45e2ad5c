"""u comes before t here, t before u in python-control: where the two were exchanged, the error says so."""

from typing import Any

import numpy as np

from ltinet.errors import InvalidSignalError


def told_if_exchanged(error: InvalidSignalError, u: Any) -> InvalidSignalError:
    """A complaint about t, which says that u comes first where what came as u could be times.

    Inputs and times that both ascend strictly cannot be told apart; every other input is no list of times: it
    descends somewhere, stays equal, has channels, or is not made of numbers.
    """
    if not _could_be_times(u):
        return error
    return InvalidSignalError(
        f"{error}. What came as u ascends as times do: u comes first, simulate(u, t), and t second"
    )


def _could_be_times(u: Any) -> bool:
    if u is None or callable(u):
        return False
    try:
        given = np.asarray(u)
        return given.ndim == 1 and len(given) > 1 and bool(np.all(given[1:] > given[:-1]))
    except (TypeError, ValueError, RuntimeError):
        return False
