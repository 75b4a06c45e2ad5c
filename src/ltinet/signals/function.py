"""An input given as a function of time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ltinet.errors import InvalidSignalError
from ltinet.signals.arrays import Times, Values
from ltinet.signals.sampled import as_times

Function = Callable[[float], ArrayLike]


@final
@dataclass(frozen=True, init=False, eq=False)
class FunctionSignal:
    """u(t) as a function of one time that returns the n_inputs values, with its derivative and knots where needed.

    `knots` are the times at which u is not smooth (kinks and jumps): integration stops there. At a jump the function
    gives the value after it. The derivative is asked for only by the engines that need one.
    """

    function: Function
    derivative_function: Function | None
    inner_knots: tuple[float, ...]
    n_inputs: int

    def __init__(
        self,
        function: Function,
        *,
        n_inputs: int,
        derivative: Function | None = None,
        knots: Sequence[float] = (),
    ) -> None:
        if not callable(function) or (derivative is not None and not callable(derivative)):
            raise InvalidSignalError("a function signal needs functions of time; give samples as an array instead")
        inner = as_times(knots, "knots") if len(knots) else np.empty(0)
        for name, value in (
            ("function", function),
            ("derivative_function", derivative),
            ("inner_knots", tuple(inner.tolist())),
            ("n_inputs", n_inputs),
        ):
            object.__setattr__(self, name, value)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """A function is a single signal."""
        return ()

    @property
    def start(self) -> float:
        """A function is defined everywhere."""
        return -np.inf

    @property
    def stop(self) -> float:
        """A function is defined everywhere."""
        return np.inf

    @property
    def knots(self) -> Times:
        """The knots that were given."""
        return np.unique(np.array(self.inner_knots, dtype=np.float64))

    def value(self, t: Times) -> Values:
        """u(t), the value after a jump."""
        return self._rows(self.function, t, "u")

    def value_before(self, t: Times) -> Values:
        """u(t⁻): the function one unit in the last place earlier at a knot, the function itself elsewhere."""
        at_knot = np.isin(t, self.knots)
        return self._rows(self.function, np.where(at_knot, np.nextafter(t, -np.inf), t), "u")

    def derivative(self, t: Times) -> Values:
        """u̇(t), from the function given for it."""
        if self.derivative_function is None:
            raise InvalidSignalError(
                "this engine needs the derivative of the input, and u is a function without one; pass "
                'FunctionSignal(u, n_inputs=…, derivative=…), or use engine="exact"'
            )
        return self._rows(self.derivative_function, t, "the derivative of u")

    def _rows(self, function: Function, t: Times, name: str) -> Values:
        rows = np.empty((len(t), self.n_inputs))
        for index, time in enumerate(np.asarray(t, dtype=np.float64).tolist()):
            row = np.asarray(function(time), dtype=np.float64)
            if row.shape not in ((self.n_inputs,), (() if self.n_inputs == 1 else (self.n_inputs,))):
                raise InvalidSignalError(
                    f"{name} returned shape {row.shape} at t = {time:g}; expected one number per input, {self.n_inputs}"
                )
            rows[index] = row
        if not np.all(np.isfinite(rows)):
            place = int(np.argmin(np.all(np.isfinite(rows), axis=1)))
            raise InvalidSignalError(f"{name} is not finite at t = {t[place]:g}")
        return rows
