"""Piecewise polynomial input signals u(t) = Σ_k c[k, i] (t − t_i)^(d−k), such as splines through measurements."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.text import format_count
from ltinet.errors import InvalidSignalError
from ltinet.signals.adaptive_sampling import sample_function
from ltinet.signals.arrays import Times, Values, as_real_array
from ltinet.signals.sampled import SampledApproximation, SampledSignal, SingleSignal
from ltinet.signals.times import as_times


@final
@dataclass(frozen=True, init=False, eq=False, repr=False)
class PolynomialSignal(SingleSignal):
    """Piecewise polynomial u(t) = Σ_k c[k, i] (t − t_i)^(d−k) between breaks t_i and t_{i+1}, as in SciPy's `PPoly`.

    Where adjacent pieces have different values at their break, u jumps.

    Parameters
    ----------
    breaks : array_like
        Breaks, strictly ascending, `(pieces + 1,)`.
    coefficients : array_like
        Coefficients `(degree + 1, pieces, n_inputs)`, highest power first; `(degree + 1, pieces)` for a single input.
    """

    breaks: Times
    coefficients: NDArray[np.float64]

    def __init__(self, breaks: ArrayLike, coefficients: ArrayLike) -> None:
        times, array = as_times(breaks, "breaks"), np.array(as_real_array(coefficients, "coefficients"))
        array = array[:, :, None] if array.ndim == 2 else array
        if array.ndim != 3 or not len(array) or array.shape[1] != len(times) - 1 or not array.shape[1]:
            raise InvalidSignalError(
                f"coefficients have shape {np.shape(coefficients)} for {len(times)} breaks; they must be (degree + 1, "
                "pieces, n_inputs) with a piece between every two breaks"
            )
        if not np.all(np.isfinite(array)):
            raise InvalidSignalError("coefficients has entries that are not finite; replace NaN and infinities")
        same = np.flatnonzero(times[1:] == times[:-1])
        if len(same):
            raise InvalidSignalError(
                f"breaks[{same[0]}] and the next are both {times[same[0]]:g}; breaks must ascend strictly: a jump "
                "is one break between two pieces"
            )
        array.setflags(write=False)
        times.setflags(write=False)
        object.__setattr__(self, "breaks", times)
        object.__setattr__(self, "coefficients", array)

    @classmethod
    def of(cls, polynomial: Any) -> "PolynomialSignal":
        """Return the signal of a `scipy.interpolate.PPoly` such as a `CubicSpline`, defined between its breaks.

        Parameters
        ----------
        polynomial : scipy.interpolate.PPoly
            Piecewise polynomial with times along its first axis.

        Returns
        -------
        PolynomialSignal
            The signal.

        Raises
        ------
        InvalidSignalError
            The array of coefficients has a shape or axis that does not fit.
        """
        if polynomial.c.ndim > 3 or polynomial.axis != 0:
            raise InvalidSignalError(
                f"u is a {type(polynomial).__name__} of shape {polynomial.c.shape} along axis {polynomial.axis}; times "
                "must be its first axis and inputs its second"
            )
        return cls(polynomial.x, polynomial.c)

    @property
    def n_inputs(self) -> int:
        """Number of input channels."""
        return int(self.coefficients.shape[2])

    @property
    def start(self) -> float:
        """First break."""
        return float(self.breaks[0])

    @property
    def stop(self) -> float:
        """Last break."""
        return float(self.breaks[-1])

    @property
    def knots(self) -> Times:
        """Breaks."""
        return self.breaks

    @property
    def degree(self) -> int:
        """Degree of the pieces."""
        return len(self.coefficients) - 1

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
        return self._at(t, np.searchsorted(self.breaks, t, side="right") - 1, self.coefficients)

    def value_before(self, t: Times) -> Values:
        """Return u(t⁻), the value before a jump.

        Parameters
        ----------
        t : ndarray
            Times, `(T,)`.

        Returns
        -------
        ndarray
            Values, `(..., T, n_inputs)`.
        """
        return self._at(t, np.searchsorted(self.breaks, t, side="left") - 1, self.coefficients)

    def derivative(self, t: Times) -> Values:
        """Return u̇(t), the value after a knot.

        Parameters
        ----------
        t : ndarray
            Times, `(T,)`.

        Returns
        -------
        ndarray
            Values, `(..., T, n_inputs)`.
        """
        powers = np.arange(self.degree, 0, -1, dtype=np.float64)[:, None, None]
        return self._at(t, np.searchsorted(self.breaks, t, side="right") - 1, powers * self.coefficients[:-1])

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
        samples, per_interval = sample_function(self, t, tolerance=tolerance)
        error = tolerance * float(np.abs(samples.u).max(initial=0.0)) if self.degree > 1 else 0.0
        return SampledApproximation(samples, per_interval, error)

    def through(self, weights: Values) -> "PolynomialSignal":
        """Return the signal weights · u.

        Parameters
        ----------
        weights : ndarray
            Matrix `(k, n_inputs)`.

        Returns
        -------
        PolynomialSignal
            Signal with k channels.
        """
        return PolynomialSignal(self.breaks, self.coefficients @ weights.T)

    def counted_from(self, origin: float) -> "PolynomialSignal | None":
        """Return the signal with times relative to an origin, if that changes neither times nor values by rounding.

        Parameters
        ----------
        origin : float
            New zero of the time axis.

        Returns
        -------
        PolynomialSignal or None
            The signal, None where rounding would change it.
        """
        shifted = SampledSignal(self.breaks, np.zeros((len(self.breaks), 0))).counted_from(origin)
        return None if shifted is None else PolynomialSignal(shifted.t, self.coefficients)

    def _at(self, t: Times, piece: NDArray[np.intp], coefficients: NDArray[np.float64]) -> Values:
        """Return the given pieces at times, by Horner's rule; the outer pieces continue beyond their breaks."""
        piece = np.clip(piece, 0, coefficients.shape[1] - 1)
        since = (t - self.breaks[piece])[:, None]
        values = np.zeros((len(t), self.n_inputs))
        for power in coefficients[:, piece]:
            values = values * since + power
        return values

    def __repr__(self) -> str:
        pieces = self.coefficients.shape[1]
        return f"PolynomialSignal({pieces} pieces of degree {self.degree}, {format_count(self.n_inputs, 'input')})"
