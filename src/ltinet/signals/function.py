"""Input signals given as a function of time.

The function is called for one time at a time, or for many at once if its answers for many agree with those for single
times.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.floating_point import EPS
from ltinet.errors import InvalidSignalError
from ltinet.signals.adaptive_sampling import resolution_error, sample_function
from ltinet.signals.arrays import Times, Values, as_array
from ltinet.signals.sampled import SampledApproximation
from ltinet.signals.times import as_times

# MERGED ltinet.signals.function
# An input given as a function of time.

# Of a time; may take an array of times as well, which is faster where many are asked for.
Function = Callable[[Any], ArrayLike]
MAX_CALLS = 5_000_000
"""How often a function is called at most, for one time or for many at once."""
_MIN_VECTORISED = 16  # times from which on one call with all of them is tried
_N_CHECKED = 7  # places at which what that call gives is compared with calls for single times


@final
@dataclass(frozen=True, init=False, eq=False)
class FunctionSignal:
    """u(t) as a function of one time that returns the n_inputs values, with its derivative and knots where needed.

    For a single input it may return a number. A function that also takes times `(T,)` and returns values
    `(T, n_inputs)` is asked for many at once; so is one that then returns a list with a number or an array `(T,)` for
    each input, as formulas written with NumPy do. Such answers are used only if they agree with those for single times.

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
        inner = as_times(knots, "knots") if np.size(knots) else np.empty(0)
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

    @property
    def degree(self) -> None:
        """A function is no polynomial as far as anybody knows."""
        return None

    def sampled_over(self, t: Times, *, tolerance: float) -> SampledApproximation:
        """Samples so dense that straight lines between them are within tolerance · max |u| of it."""
        samples, per_interval = sample_function(self._limited(tolerance), t, tolerance=tolerance)
        return SampledApproximation(samples, per_interval, tolerance * float(np.abs(samples.u).max(initial=0.0)))

    def unbatched(self) -> list["FunctionSignal"]:
        """A function is a single signal."""
        return [self]

    def through(self, weights: Values) -> "FunctionSignal":
        """Weights · u, with the weighted derivative if there is one."""
        given = self.derivative_function
        derivative = None if given is None else self._weighted(given, weights, "the derivative of u")
        function = self._weighted(self.function, weights, "u")
        return FunctionSignal(function, n_inputs=len(weights), derivative=derivative, knots=self.inner_knots)

    def _weighted(self, function: Function, weights: Values, name: str) -> Function:
        def of_time(t: Any) -> ArrayLike:
            rows = self._rows(function, np.atleast_1d(t), name) @ weights.T
            return rows if np.ndim(t) else rows[0]

        return of_time

    def counted_from(self, origin: float) -> None:  # noqa: ARG002
        """None: a function is asked for its values at the times that were given."""
        return

    def _limited(self, tolerance: float) -> "FunctionSignal":
        """The same function, which refuses to be called too often."""
        calls = count(1)

        def function(t: Any) -> ArrayLike:
            if next(calls) > MAX_CALLS:
                raise resolution_error(f"after {MAX_CALLS} calls", tolerance)
            return self.function(t)

        return FunctionSignal(function, n_inputs=self.n_inputs, knots=self.inner_knots)

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
        together = _call_vectorised(function, t, self.n_inputs) if len(t) >= _MIN_VECTORISED else None
        rows = _call_each_time(function, t, n_inputs=self.n_inputs, name=name) if together is None else together
        if not np.all(np.isfinite(rows)):
            place = int(np.argmin(np.all(np.isfinite(rows), axis=1)))
            raise InvalidSignalError(f"{name} is not finite at t = {float(t[place])!r}")
        return rows


def _call_each_time(function: Function, t: Times, *, n_inputs: int, name: str) -> Values:
    """Values `(len(t), n_inputs)` by one call for each time."""
    rows = np.empty((len(t), n_inputs))
    for index, time in enumerate(np.asarray(t, dtype=np.float64).tolist()):
        row = _call_once(function, time, name)
        if row.dtype.kind not in "biuf" or row.shape not in ((n_inputs,), () if n_inputs == 1 else (n_inputs,)):
            raise InvalidSignalError(
                f"{name} returned shape {row.shape}, dtype {row.dtype} at t = {time!r}; expected one number per input, "
                f"{n_inputs} of them, all real"
            )
        rows[index] = row
    return rows


def _call_once(function: Function, time: float, name: str) -> NDArray[Any]:
    """One value, whatever it is; 1/0 raises in Python what NumPy calls infinite, and is told in the same way."""
    try:
        value = function(time)
    except ArithmeticError as error:
        raise InvalidSignalError(f"{name} is not finite at t = {time!r}: {error}") from error
    return as_array(value, f"{name} at t = {time!r}") if isinstance(value, np.ma.MaskedArray) else np.asarray(value)


def _call_vectorised(function: Function, t: Times, n_inputs: int) -> Values | None:
    """Values `(len(t), n_inputs)` by one call for all times; None unless that is proved to mean the same.

    As many times as inputs would leave open which axis is which: then the last time is asked for twice.
    """
    times = np.append(t, t[-1]) if len(t) == n_inputs else np.array(t, dtype=np.float64)
    try:
        rows = _time_first(function(times), len(times), n_inputs)
        if rows is None or not np.all(np.isfinite(rows)):
            return None
        places = np.linspace(0, len(t) - 1, _N_CHECKED).astype(int)
        expected = _call_each_time(function, t[places], n_inputs=n_inputs, name="u")
    except Exception:  # whatever a function of one time does with an array; asked for one time, it may speak again
        return None
    # NumPy's functions of arrays and of numbers may differ in the last places.
    close = np.abs(rows[places] - expected) <= 16.0 * EPS * np.max(np.abs(rows), initial=0.0)
    return rows[: len(t)] if np.all(close) else None


def _time_first(values: Any, n_times: int, n_inputs: int) -> Values | None:
    """Values `(n_times, n_inputs)` from such an array, or from a list with a number or array for each input."""
    if isinstance(values, (list, tuple)):
        parts = [np.asarray(part) for part in values]
        if len(parts) != n_inputs or any(part.shape not in ((), (n_times,)) for part in parts):
            return None
        values = np.stack([np.broadcast_to(part, n_times) for part in parts], axis=1) if parts else None
    rows = np.asarray(values)
    if rows.dtype.kind not in "biuf":
        return None
    if rows.shape == (n_inputs, n_times):
        rows = rows.T
    elif rows.shape == (n_times,) and n_inputs == 1:
        rows = rows[:, None]
    return np.array(rows, dtype=np.float64) if rows.shape == (n_times, n_inputs) else None
