"""Piecewise polynomial input signals u(t) = Σ_k c[k, i] (t − t_i)^(d−k), such as splines through measurements."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltinet._util.text import format_count
from ltinet.errors import InvalidSignalError
from ltinet.signals.adaptive_sampling import sample_function
from ltinet.signals.arrays import Times, Values, as_real_array
from ltinet.signals.sampled import SampledApproximation, SampledSignal
from ltinet.signals.times import as_times

# MERGED ltinet.signals.polynomial
# An input that is a polynomial between breaks: a spline through measurements, a profile planned in pieces.


@final
@dataclass(frozen=True, init=False, eq=False, repr=False)
class PolynomialSignal:
    """u(t) = Σ_k c[k, i] (t − t_i)^(d−k) between breaks t_i and t_{i+1}, as SciPy's `PPoly` and its splines have it.

    `breaks` ascend strictly, `(pieces + 1,)`; `coefficients` are `(degree + 1, pieces, n_inputs)`, highest power first
    (`(degree + 1, pieces)` for a single input). Where pieces do not meet, u jumps.
    """

    breaks: Times
    coefficients: NDArray[np.float64]

    def __init__(self, breaks: ArrayLike, coefficients: ArrayLike) -> None:
        times, given = as_times(breaks, "breaks"), np.array(as_real_array(coefficients, "coefficients"))
        given = given[:, :, None] if given.ndim == 2 else given
        if given.ndim != 3 or not len(given) or given.shape[1] != len(times) - 1 or not given.shape[1]:
            raise InvalidSignalError(
                f"coefficients have shape {np.shape(coefficients)} for {len(times)} breaks; they must be (degree + 1, "
                "pieces, n_inputs) with a piece between every two breaks"
            )
        if not np.all(np.isfinite(given)):
            raise InvalidSignalError("coefficients has entries that are not finite; replace NaN and infinities")
        same = np.flatnonzero(times[1:] == times[:-1])
        if len(same):
            raise InvalidSignalError(
                f"breaks[{same[0]}] and the next are both {times[same[0]]:g}; breaks must ascend strictly: a jump "
                "is one break between two pieces"
            )
        given.setflags(write=False)
        times.setflags(write=False)
        object.__setattr__(self, "breaks", times)
        object.__setattr__(self, "coefficients", given)

    @classmethod
    def of(cls, polynomial: Any) -> "PolynomialSignal":
        """The same as a `scipy.interpolate.PPoly`, a `CubicSpline` for one; beyond its breaks it is not known."""
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
    def batch_shape(self) -> tuple[int, ...]:
        """A single signal."""
        return ()

    @property
    def start(self) -> float:
        """The first break."""
        return float(self.breaks[0])

    @property
    def stop(self) -> float:
        """The last break."""
        return float(self.breaks[-1])

    @property
    def knots(self) -> Times:
        """The breaks."""
        return self.breaks

    @property
    def degree(self) -> int:
        """Degree of the pieces."""
        return len(self.coefficients) - 1

    def value(self, t: Times) -> Values:
        """u(t), the value after a jump."""
        return self._at(t, np.searchsorted(self.breaks, t, side="right") - 1, self.coefficients)

    def value_before(self, t: Times) -> Values:
        """u(t⁻): at a break the end of the piece before it."""
        return self._at(t, np.searchsorted(self.breaks, t, side="left") - 1, self.coefficients)

    def derivative(self, t: Times) -> Values:
        """u̇(t), after a break."""
        powers = np.arange(self.degree, 0, -1, dtype=np.float64)[:, None, None]
        return self._at(t, np.searchsorted(self.breaks, t, side="right") - 1, powers * self.coefficients[:-1])

    def sampled_over(self, t: Times, *, tolerance: float) -> SampledApproximation:
        """Samples so dense that straight lines between them are within tolerance · max |u| of it."""
        samples, per_interval = sample_function(self, t, tolerance=tolerance)
        off = tolerance * float(np.abs(samples.u).max(initial=0.0)) if self.degree > 1 else 0.0
        return SampledApproximation(samples, per_interval, off)

    def unbatched(self) -> list["PolynomialSignal"]:
        """A single signal."""
        return [self]

    def through(self, weights: Values) -> "PolynomialSignal":
        """Weights · u."""
        return PolynomialSignal(self.breaks, self.coefficients @ weights.T)

    def counted_from(self, origin: float) -> "PolynomialSignal | None":
        """The same with times counted from an origin, where that takes nothing from its breaks."""
        moved = SampledSignal(self.breaks, np.zeros((len(self.breaks), 0))).counted_from(origin)
        return None if moved is None else PolynomialSignal(moved.t, self.coefficients)

    def _at(self, t: Times, piece: NDArray[np.intp], coefficients: NDArray[np.float64]) -> Values:
        """Polynomials of the pieces at times, by Horner's rule; the first and last piece go on beyond their breaks."""
        piece = np.clip(piece, 0, coefficients.shape[1] - 1)
        since = (t - self.breaks[piece])[:, None]
        values = np.zeros((len(t), self.n_inputs))
        for own in coefficients[:, piece]:
            values = values * since + own
        return values

    def __repr__(self) -> str:
        pieces = self.coefficients.shape[1]
        return f"PolynomialSignal({pieces} pieces of degree {self.degree}, {format_count(self.n_inputs, 'input')})"
