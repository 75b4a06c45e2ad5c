"""Steps of scalars that change little in a step, as matrix products: series in the length, the same for all rates.

Everything is a Chebyshev series in the length between 0 and H: e^{λh}, and h times φ₁ − φ₂ and φ₂. All rates share the
polynomials of the lengths, so that all steps of all rates are one product with coefficients. A few inputs are
multiplied into the polynomials, and what they add is one product as well.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltinet.arrays import Array
from ltinet.solve.steps.propagators import phi_functions
from ltinet.solve.uneven import chebyshev
from ltinet.solve.uneven.doubled import Doubled, exponentials, less_product
from ltinet.tolerances import EPS

_LONGEST_SUMS = 128  # with which one product for all inputs is faster than products of every number
_POINTS = 64  # between which a series is corrected
_DOUBLED = 10  # coefficients with twice the digits: those that are not small


@dataclass(frozen=True)
class SlowRates:
    """Rates with |λ|H up to about ten, for lengths from 0 to H."""

    longest: float
    series: NDArray[Any]
    """Coefficients of e^{λh} or, for states that last, of e^{λh} − 1, after what the largest of them lack."""
    inputs: tuple[NDArray[Any], ...]
    """Coefficients of φ₁ − φ₂ and φ₂; of φ₁ for inputs that are kept."""
    drive: NDArray[Any]
    """B, transposed, (m × n_rates)."""
    driven: NDArray[Any] | None
    """Coefficients of what each of a few inputs adds at either end."""

    def factors(self, h: Array) -> NDArray[Any]:
        """By what steps of lengths h multiply states, `(k, n_rates)`."""
        return sums(self._polynomials(h), self.series)

    def step(self, h: Array, now: Array, then: Array) -> tuple[NDArray[Any], NDArray[Any]]:
        """The same, and what inputs `(batch, k, m)` at both ends add, `(batch, k, n_rates)`."""
        polynomials = self._polynomials(h)
        factors = sums(polynomials, self.series)
        polynomials = polynomials[-len(self.inputs[0]) :]
        polynomials *= h
        ends = (now, then)[: len(self.inputs)]
        if self.driven is not None and len(now) == 1:
            rows = np.concatenate([polynomials * own for u in ends for own in u[0].T])
            return factors, sums(rows, self.driven)[None]
        added = driven(now, self.drive)
        added *= sums(polynomials, self.inputs[0])
        for u, coefficients in zip(ends[1:], self.inputs[1:], strict=True):
            more = driven(u, self.drive)
            more *= sums(polynomials, coefficients)
            added += more
        return factors, added

    def _polynomials(self, h: Array) -> Array:
        """Those of all coefficients, after those of the small ones."""
        found, n_small = np.empty((len(self.series), len(h))), len(self.series) - len(self.inputs[0])
        chebyshev.polynomials(h, 0.0, self.longest, out=found[n_small:])
        found[:n_small] = found[len(found) - n_small :]
        return found


def slow_rates(
    rates: NDArray[Any], drive: NDArray[Any], longest: float, *, kept: NDArray[np.bool_], linear: bool
) -> SlowRates:
    """Prepare rates for lengths up to the longest, a power of two; of those `kept` for many steps, less one."""
    rho = 0.5 * longest * float(np.abs(rates).max())
    degree = max(chebyshev.degree_for(rho, left=EPS / 16.0), _DOUBLED)
    lengths = chebyshev.nodes(0.0, longest, degree)[:, None]
    first, second = phi_functions(rates * lengths)
    changes = lengths * rates * first
    changes += ~kept
    inputs = tuple(map(_coefficients, (first - second, second) if linear else (first,)))
    series = _coefficients(changes)
    if kept.any():
        series = _corrected(series, exponentials(rates, longest / _POINTS, _POINTS + 1, less_one=kept))
    few = 0 < len(drive) * len(inputs) * len(inputs[0]) <= _LONGEST_SUMS
    return SlowRates(
        longest=longest,
        series=series,
        inputs=inputs,
        drive=drive,
        driven=np.concatenate([own * weights for own in inputs for weights in drive]) if few else None,
    )


def _corrected(coefficients: NDArray[Any], table: Doubled) -> NDArray[Any]:
    """Coefficients, and before them small ones with which a series goes through a table of more digits.

    Rounding of coefficients is the same in every step: it would add up, where that of a step does not.
    """
    polynomials = chebyshev.exact_polynomials(np.linspace(-1.0, 1.0, _POINTS + 1), count=len(coefficients))
    left = less_product(Doubled(as_real(table.high), as_real(table.low)), polynomials, as_real(coefficients))
    small = np.ascontiguousarray(np.linalg.lstsq(polynomials.high, left, rcond=None)[0]).view(coefficients.dtype)
    coefficients[:-_DOUBLED] += small[:-_DOUBLED]
    return np.concatenate([small[-_DOUBLED:], coefficients])


def _coefficients(values: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(chebyshev.coefficients(as_real(values))).view(values.dtype)


def sums(functions: Array, coefficients: NDArray[Any]) -> NDArray[Any]:
    """Σ functions_k · coefficients_k for all lengths (columns) and rates, in real numbers."""
    return (functions.T @ as_real(coefficients)).view(coefficients.dtype)


def driven(u: Array, weights: NDArray[Any]) -> NDArray[Any]:
    """U · weights, `(…, n_rates)`; a column times a row is no work for BLAS, and NumPy's own loop for it is slow."""
    real = as_real(weights)
    return (u * real if len(real) == 1 else u @ real).view(weights.dtype)


def as_real(values: NDArray[Any]) -> Array:
    """The same numbers as reals: (Re, Im) in turn."""
    return np.ascontiguousarray(values).view(np.float64)
