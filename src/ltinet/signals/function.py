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
from ltinet.signals.sampled import SampledApproximation, SingleSignal
from ltinet.signals.times import as_times

# Function of one time; it may accept an array of times as well, which is faster.
Function = Callable[[Any], ArrayLike]
MAX_CALLS = 5_000_000
"""Largest number of calls of a function, each for one time or for many."""
_MIN_VECTORIZED = 16  # number of times from which on a call with all of them is tried
_N_CHECKED = 7  # number of times at which the result of that call is compared with calls for single times


@final
@dataclass(frozen=True, init=False, eq=False)
class FunctionSignal(SingleSignal):
    """Input signal u(t) given as a function of one time.

    For a single input the function may return a number. A function that also accepts times `(T,)` and returns values
    `(T, n_inputs)`, or a list with a number or an array `(T,)` for each input, as formulas written with NumPy do, is
    called once for many times. Such results are used only if they agree with those for single times.

    Parameters
    ----------
    function : callable
        Function of a time in seconds that returns n_inputs values; at a jump, the values after it.
    n_inputs : int
        Number of inputs.
    derivative : callable, optional
        Derivative of the function, which only some engines need.
    knots : sequence of float
        Times at which u is not smooth (kinks and jumps), at which integration stops.
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
            raise InvalidSignalError("function and derivative must be callable; give samples as an array to simulate")
        inner = as_times(knots, "knots") if np.size(knots) else np.empty(0)
        for name, value in (
            ("function", function),
            ("derivative_function", derivative),
            ("inner_knots", tuple(inner.tolist())),
            ("n_inputs", n_inputs),
        ):
            object.__setattr__(self, name, value)

    @property
    def start(self) -> float:
        """First time, −∞: functions are defined everywhere."""
        return -np.inf

    @property
    def stop(self) -> float:
        """Last time, ∞: functions are defined everywhere."""
        return np.inf

    @property
    def knots(self) -> Times:
        """Given knots, ascending."""
        return np.unique(np.array(self.inner_knots, dtype=np.float64))

    @property
    def degree(self) -> None:
        """Degree, None: a function is not known to be a polynomial."""
        return None

    def sampled_over(self, t: Times, *, tolerance: float) -> SampledApproximation:
        """Return samples whose linear interpolant is within tolerance · max |u| of the signal.

        Parameters
        ----------
        t : ndarray
            Output times; samples are computed from the first to the last.
        tolerance : float
            Largest error for each channel, relative to its largest value.

        Returns
        -------
        SampledApproximation
            The samples, their number per interval of `t`, and a bound on the error.
        """
        samples, per_interval = sample_function(self._limited(tolerance), t, tolerance=tolerance)
        return SampledApproximation(samples, per_interval, tolerance * float(np.abs(samples.u).max(initial=0.0)))

    def through(self, weights: Values) -> "FunctionSignal":
        """Return the signal weights · u.

        Parameters
        ----------
        weights : ndarray
            Matrix `(k, n_inputs)`.

        Returns
        -------
        FunctionSignal
            Signal with k channels.
        """
        derivative = self.derivative_function
        if derivative is not None:
            derivative = self._weighted(derivative, weights, "the derivative of u")
        function = self._weighted(self.function, weights, "u")
        return FunctionSignal(function, n_inputs=len(weights), derivative=derivative, knots=self.inner_knots)

    def _weighted(self, function: Function, weights: Values, name: str) -> Function:
        """Return the function weights · function(t)."""

        def weighted(t: Any) -> ArrayLike:
            rows = self._rows(function, np.atleast_1d(t), name) @ weights.T
            return rows if np.ndim(t) else rows[0]

        return weighted

    def _limited(self, tolerance: float) -> "FunctionSignal":
        """Return the function with a limit on the number of calls."""
        calls = count(1)

        def function(t: Any) -> ArrayLike:
            if next(calls) > MAX_CALLS:
                raise resolution_error(f"after {MAX_CALLS} calls", tolerance)
            return self.function(t)

        return FunctionSignal(function, n_inputs=self.n_inputs, knots=self.inner_knots)

    def value(self, t: Times) -> Values:
        """Return u(t), the value after a jump.

        Parameters
        ----------
        t : ndarray
            Times, `(T,)`.

        Returns
        -------
        ndarray
            Values, `(..., T, n_inputs)`.
        """
        return self._rows(self.function, t, "u")

    def value_before(self, t: Times) -> Values:
        """Return u(t⁻): at a knot the function one unit in the last place earlier, elsewhere the function itself.

        Parameters
        ----------
        t : ndarray
            Times, `(T,)`.

        Returns
        -------
        ndarray
            Values, `(..., T, n_inputs)`.
        """
        at_knot = np.isin(t, self.knots)
        return self._rows(self.function, np.where(at_knot, np.nextafter(t, -np.inf), t), "u")

    def derivative(self, t: Times) -> Values:
        """Return u̇(t) from the given derivative.

        Parameters
        ----------
        t : ndarray
            Times, `(T,)`.

        Returns
        -------
        ndarray
            Values, `(..., T, n_inputs)`.

        Raises
        ------
        InvalidSignalError
            No derivative was given.
        """
        if self.derivative_function is None:
            raise InvalidSignalError(
                "this engine needs the derivative of the input, and u is a function without one; pass "
                'FunctionSignal(u, n_inputs=…, derivative=…), or use engine="exact"'
            )
        return self._rows(self.derivative_function, t, "the derivative of u")

    def _rows(self, function: Function, t: Times, name: str) -> Values:
        """Return finite values `(T, n_inputs)`, by one call where that is equivalent."""
        rows = _call_vectorized(function, t, self.n_inputs) if len(t) >= _MIN_VECTORIZED else None
        if rows is None:
            rows = _call_each_time(function, t, n_inputs=self.n_inputs, name=name)
        if not np.all(np.isfinite(rows)):
            index = int(np.argmin(np.all(np.isfinite(rows), axis=1)))
            raise InvalidSignalError(f"{name} is not finite at t = {float(t[index])!r}")
        return rows


def _call_each_time(function: Function, t: Times, *, n_inputs: int, name: str) -> Values:
    """Return values `(T, n_inputs)` by one call for each time."""
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
    """Return the result of one call; ArithmeticError such as 1/0 is reported like the infinity that NumPy returns."""
    try:
        value = function(time)
    except ArithmeticError as error:
        raise InvalidSignalError(f"{name} is not finite at t = {time!r}: {error}") from error
    return as_array(value, f"{name} at t = {time!r}") if isinstance(value, np.ma.MaskedArray) else np.asarray(value)


def _call_vectorized(function: Function, t: Times, n_inputs: int) -> Values | None:
    """Return values `(T, n_inputs)` by one call for all times; None unless spot checks show that it is equivalent.

    With as many times as inputs the axes would be ambiguous: then the last time is passed twice.
    """
    times = np.append(t, t[-1]) if len(t) == n_inputs else np.array(t, dtype=np.float64)
    try:
        rows = _time_first(function(times), len(times), n_inputs)
        if rows is None or not np.all(np.isfinite(rows)):
            return None
        indices = np.linspace(0, len(t) - 1, _N_CHECKED).astype(int)
        expected = _call_each_time(function, t[indices], n_inputs=n_inputs, name="u")
    except Exception:  # functions of one time may raise anything for an array
        return None
    # NumPy's functions of arrays and of numbers may differ in the last places.
    close = np.abs(rows[indices] - expected) <= 16.0 * EPS * np.max(np.abs(rows), initial=0.0)
    return rows[: len(t)] if np.all(close) else None


def _time_first(values: Any, n_times: int, n_inputs: int) -> Values | None:
    """Return values `(n_times, n_inputs)` from an array, or from a list with a number or array for each input."""
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
