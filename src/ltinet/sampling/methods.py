"""The ways in which a model in discrete time may stand for one in continuous time, by the names in use."""

from typing import Any, Literal, TypeAlias, get_args

from ltinet.errors import InvalidSystemError
from ltinet.shown import shown

SamplingMethod: TypeAlias = Literal["zoh", "foh", "tustin"]
"""An input held between samples, one that goes along straight lines, and the trapezoidal rule."""


def checked_method(method: Any) -> SamplingMethod:
    """The method, if it is one.

    Raises:
        InvalidSystemError: it is not.
    """
    known: tuple[SamplingMethod, ...] = get_args(SamplingMethod)
    for name in known:
        if method == name:
            return name
    raise InvalidSystemError(f"method is {shown(repr(method))}; known are {', '.join(map(repr, known))}")
