"""The step of a model in discrete time: what may be given for it, and what is said where continuous time is needed."""

from typing import Any, Protocol

import numpy as np

from ltinet.errors import InvalidSystemError
from ltinet.shown import shown


class Timed(Protocol):
    """A system that knows whether it is discrete in time."""

    @property
    def dt(self) -> float | None:
        """Its time step, None in continuous time."""
        ...


def checked_time_step(dt: Any) -> float | None:
    """A positive, finite time step; None and 0 stand for continuous time.

    Raises:
        InvalidSystemError: it is something else, such as True, by which other libraries mean a step nobody named.
    """
    if dt is None:
        return None
    try:
        given = np.asarray(dt)
    except (TypeError, ValueError, RuntimeError):  # ragged lists; other libraries' arrays that refuse
        given = np.asarray(None)
    is_number = given.size == 1 and given.ndim <= 2 and given.dtype.kind in "iuf"
    step = float(given.reshape(())) if is_number else np.nan
    if step == 0.0:
        return None
    if not 0.0 < step < np.inf:
        what = "True, a step that nobody named" if dt is True else shown(repr(dt))
        raise InvalidSystemError(
            f"dt is {what}; give the time step of a model in discrete time as a positive number, None or 0 for "
            "continuous time"
        )
    return step


def require_continuous_time(system: Timed, call: str) -> None:
    """Refuse a system in discrete time, with the call that converts it; `call` is what was called on `system`.

    Raises:
        InvalidSystemError: it has a time step.
    """
    if system.dt is not None:
        raise InvalidSystemError(
            f"the system is discrete in time (dt = {system.dt:g}), and {call.partition('(')[0].rpartition('.')[2]} "
            f"works with x' = A x + B u; convert it first: {call.replace('system', 'system.to_continuous()', 1)}; the "
            'methods are "zoh" (the default), "foh" and "tustin"'
        )
